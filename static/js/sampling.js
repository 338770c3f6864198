// From logits to an id, with other settings than the recorded ones: the equations of tracer/ops/sampling,
// run on the recorded logits in double precision.

import { Computation } from "evaluate";
import { flatten, sizeOf, unflatten } from "indices";

const MOST = 50; // candidates

/** @typedef {{ temperature: number, k: number, p: number, uniform: number }} Settings */
/** Numbers by their place in the flat array. @typedef {{ shape: number[], at: (flat: number) => number }} Given */

export class Sampling {
  /**
   * @param {Outline["sampling"]} kinds kind → target → equations
   * @param {{ length: number, at: (id: number) => number }} logits
   */
  constructor(kinds, logits) {
    this.kinds = kinds;
    const raw = { shape: [1, logits.length], at: logits.at };
    const count = Math.min(MOST, logits.length);
    this.ids = this.compute("top_k", "ids", { logits: raw }, {}, [count]);
    this.raw = this.ids.map((id) => logits.at(id));
  }

  /**
   * What each operation makes, candidate by candidate.
   * @param {Settings} settings
   */
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

  /**
   * @param {string} kind
   * @param {string} target
   * @param {Record<string, Given>} operands
   * @param {Record<string, number>} settings
   * @param {number[]} shape
   */
  compute(kind, target, operands, settings, shape) {
    /** @type {Source} */
    const source = { shape: (name) => operands[name].shape, value: (name, index) => operands[name].at(flatten(index, operands[name].shape)) };
    const names = Object.fromEntries(Object.keys(operands).map((name) => [name, name]));
    const computation = new Computation({ equations: this.kinds[kind][target], operands: names, settings, shape }, source);
    return Array.from({ length: sizeOf(shape) }, (_, n) => computation.value(unflatten(n, shape)));
  }
}

/**
 * @param {number[]} values
 * @returns {Given}
 */
function given(values, shape = [values.length]) {
  return { shape, at: (i) => values[i] };
}
