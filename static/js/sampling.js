// From logits to an id, with other settings than the recorded ones: the equations of tracer/ops/sampling,
// run on the recorded logits in double precision.

import { Computation } from "evaluate";
import { flatten } from "store";

export const MOST = 50; // candidates

export class Sampling {
  /** kinds: kind → target → equations; logits: {length, at(i)}. */
  constructor(kinds, logits) {
    this.kinds = kinds;
    const raw = { shape: [1, logits.length], at: logits.at };
    const count = Math.min(MOST, logits.length);
    this.ids = this.compute("top_k", "ids", { logits: raw }, {}, [count]);
    this.raw = this.ids.map((id) => logits.at(id));
  }

  /** settings: {temperature, k, p, uniform} → what each step makes, candidate by candidate. */
  run({ temperature, k, p, uniform }) {
    const ids = this.ids.slice(0, k);
    const count = [ids.length];
    const scaled = this.compute("temperature", "out", { logits: given(this.raw.slice(0, k), [1, ids.length]) }, { temperature }, [1, ids.length]);
    const softmax = this.compute("softmax", "out", { x: given(scaled) }, {}, count);
    const probabilities = this.compute("top_p", "out", { probabilities: given(softmax) }, { top_p: p }, count);
    const cumulative = this.compute("cumulative", "out", { probabilities: given(probabilities) }, {}, count);
    const [choice] = this.compute("draw", "choice", { uniform: given([uniform], []), cumulative: given(cumulative) }, {}, []);
    return { ids, scaled, softmax, probabilities, cumulative, choice, token: ids[choice] };
  }

  compute(kind, target, operands, attributes, shape) {
    const source = { shape: (name) => operands[name].shape, value: (name, index) => operands[name].at(flatten(index, operands[name].shape)) };
    const names = Object.fromEntries(Object.keys(operands).map((name) => [name, name]));
    const computation = new Computation({ equations: this.kinds[kind][target], operands: names, attributes, shape }, source);
    const size = shape.reduce((a, b) => a * b, 1);
    return Array.from({ length: size }, (_, n) => computation.value(shape.length ? places(n, shape) : []));
  }
}

function given(values, shape = [values.length]) {
  return { shape, at: (i) => values[i] };
}

function places(flat, shape) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index.unshift(flat % shape[axis]);
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}
