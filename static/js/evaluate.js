// One element of what an operation makes, computed from its operands: the language of tracer/ops,
// interpreted for a single number. The equations themselves come from there, as data.

import { FUNCTIONS } from "functions";
import { mcg31m1 } from "special";

const CONSTANTS = { inf: Infinity, pi: Math.PI };
const BINARY = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b),
  "%": (a, b) => a - b * Math.floor(a / b),
  "**": (a, b) => a ** b,
};
const COMPARE = {
  "==": (a, b) => a === b,
  "<=": (a, b) => a <= b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  ">": (a, b) => a > b,
};

/** Every part of a node that is itself a node. */
export function children(node) {
  switch (node[0]) {
    case "read": return node[2];
    case "reduce": return node.slice(3);
    case "binary": case "compare": return [node[2], node[3]];
    case "call": return [node[2]];
    case "negate": return [node[1]];
    case "where": case "stream": return node.slice(1);
    default: return [];
  }
}

export function* walk(node) {
  yield node;
  for (const child of children(node)) yield* walk(child);
}

/**
 * The computation of one step's array, element by element.
 * step: { equations, operands: {name: array}, attributes, shape }
 * source: { shape(array), value(array, index) }
 */
export class Computation {
  constructor(step, source) {
    this.step = step;
    this.source = source;
    this.equations = new Map(step.equations.map((equation) => [equation[0], equation]));
    this.target = step.equations.at(-1);
    this.sizes = this.letterSizes();
    // Intermediate values that take a reduction are kept; the others are computed when they are read.
    this.locals = new Map();
    this.kept = new Set(step.equations.filter(([, , body]) => [...walk(body)].some((node) => node[0] === "reduce")).map(([name]) => name));
    this.orders = new Map();
  }

  /** The length of every letter's axis, from the shapes of the target, of its operands and of what comes between. */
  letterSizes() {
    const sizes = {};
    const between = new Map();
    const note = (index, shape) => index.forEach((item, axis) => {
      if (item[0] === "letter") sizes[item[1]] ??= shape[axis];
    });
    note(this.target[1], this.step.shape);
    for (const [name, index, body] of this.step.equations) {
      for (const [, read, at] of [...walk(body)].filter((node) => node[0] === "read")) {
        if (this.isOperand(read)) note(at, this.source.shape(this.step.operands[read]));
        else if (between.has(read)) note(at, between.get(read));
      }
      between.set(name, index.map((item) => sizes[item[1]]));
    }
    return sizes;
  }

  isOperand(name) {
    return !this.equations.has(name) && name in this.step.operands;
  }

  /** The target's element at `index`, in double precision. */
  value(index) {
    return this.element(this.target, index);
  }

  element(equation, index) {
    return this.evaluate(equation[2], this.bind(equation, index));
  }

  bind(equation, index) {
    const letters = {};
    equation[1].forEach((item, axis) => { letters[item[1]] = index[axis]; });
    return letters;
  }

  evaluate(node, letters) {
    switch (node[0]) {
      case "number": return node[1];
      case "letter": return letters[node[1]];
      case "name": return node[1] in CONSTANTS ? CONSTANTS[node[1]] : this.step.attributes[node[1]];
      case "size": return this.sizes[node[1][1]];
      case "read": return this.read(node[1], node[2].map((item) => this.evaluate(item, letters)));
      case "negate": return -this.evaluate(node[1], letters);
      case "binary": return BINARY[node[1]](this.evaluate(node[2], letters), this.evaluate(node[3], letters));
      case "compare": return Number(COMPARE[node[1]](this.evaluate(node[2], letters), this.evaluate(node[3], letters)));
      case "where": return this.evaluate(this.evaluate(node[1], letters) ? node[2] : node[3], letters);
      case "call": return FUNCTIONS[node[1]].value(this.evaluate(node[2], letters));
      case "stream": return mcg31m1(this.evaluate(node[1], letters), this.evaluate(node[2], letters));
      case "reduce": return this.reduce(node, letters);
    }
    throw new Error(`unknown node ${node[0]}`);
  }

  read(name, index) {
    const equation = this.equations.get(name);
    if (!equation) return this.source.value(this.step.operands[name], index);
    if (!this.kept.has(name)) return this.element(equation, index);
    const key = `${name} ${index}`;
    if (!this.locals.has(key)) this.locals.set(key, this.element(equation, index));
    return this.locals.get(key);
  }

  reduce(node, letters) {
    if (node[1] === "nth_largest") return this.nthLargest(node, letters);
    let result = node[1] === "sum" ? 0 : -Infinity;
    this.each(node[2], letters, (bound) => {
      const value = this.evaluate(node[3], bound);
      result = node[1] === "sum" ? result + value : Math.max(result, value);
    });
    return result;
  }

  /** How many combinations of the reduced letters there are. */
  count(over) {
    return over.reduce((n, item) => n * this.sizes[item[1]], 1);
  }

  /** `visit` the letters in every combination of the reduced ones. One object, changed in place. */
  each(over, letters, visit) {
    const bound = { ...letters };
    const loop = (depth) => {
      if (depth === over.length) { visit(bound); return; }
      const name = over[depth][1];
      for (let i = 0; i < this.sizes[name]; i++) {
        bound[name] = i;
        loop(depth + 1);
      }
    };
    loop(0);
  }

  /** The same, one combination at a time. */
  *range(over, letters) {
    const bound = { ...letters };
    const names = over.map((item) => item[1]);
    const step = function* (depth, sizes) {
      if (depth === names.length) { yield bound; return; }
      for (let i = 0; i < sizes[names[depth]]; i++) {
        bound[names[depth]] = i;
        yield* step(depth + 1, sizes);
      }
    };
    yield* step(0, this.sizes);
  }

  nthLargest(node, letters) {
    // The order does not depend on n: it is sorted once.
    if (!this.orders.has(node)) {
      const list = Float64Array.from({ length: this.count(node[2]) }, (_, i) => this.evaluate(node[3], { ...letters, [node[2][0][1]]: i }));
      this.orders.set(node, Array.from(list.keys()).sort((a, b) => list[b] - list[a] || a - b));
    }
    return this.orders.get(node)[this.evaluate(node[4], letters)];
  }
}
