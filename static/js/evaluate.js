// One element of what an operation makes, computed from its operands: the language of tracer/ops,
// interpreted for a single number. The equations themselves come from there, as data.

import { FUNCTIONS } from "functions";
import { mcg31m1 } from "special";

/** @type {Record<string, number>} */
const CONSTANTS = { inf: Infinity, pi: Math.PI };
/** @type {Record<string, (a: number, b: number) => number>} */
const BINARY = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b),
  "%": (a, b) => a - b * Math.floor(a / b),
  "**": (a, b) => a ** b,
};
/** @type {Record<string, (a: number, b: number) => boolean>} */
const COMPARE = {
  "==": (a, b) => a === b,
  "<=": (a, b) => a <= b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  ">": (a, b) => a > b,
};

/**
 * Every part of a node that is itself a node.
 * @param {ExpressionNode} node
 * @returns {ExpressionNode[]}
 */
export function children(node) {
  switch (node[0]) {
    case "read": return node[2];
    case "reduce": return node.length === 5 ? [node[3], node[4]] : [node[3]];
    case "binary": case "compare": return [node[2], node[3]];
    case "call": return [node[2]];
    case "negate": return [node[1]];
    case "stream": return [node[1], node[2]];
    case "where": return [node[1], node[2], node[3]];
    default: return [];
  }
}

/**
 * A node, and every node in it.
 * @param {ExpressionNode} node
 * @returns {Generator<ExpressionNode>}
 */
export function* walk(node) {
  yield node;
  for (const child of children(node)) yield* walk(child);
}

/** The computation of one operation's array, element by element. */
export class Computation {
  /**
   * @param {Computable} operation
   * @param {Source} source
   */
  constructor(operation, source) {
    this.operation = operation;
    this.source = source;
    this.equations = new Map(operation.equations.map((equation) => [equation[0], equation]));
    this.target = operation.equations[operation.equations.length - 1];
    this.sizes = this.letterSizes();
    // Intermediate values that take a reduction are kept; the others are computed when they are read.
    /** @type {Map<string, number>} */
    this.locals = new Map();
    this.kept = new Set(operation.equations.filter(([, , body]) => [...walk(body)].some((node) => node[0] === "reduce")).map(([name]) => name));
    /** @type {Map<ExpressionNode, number[]>} */
    this.orders = new Map();
  }

  /** The length of every letter's axis, from the shapes of the target, of its operands and of what comes between. */
  letterSizes() {
    /** @type {Letters} */
    const sizes = {};
    /** @type {Map<string, number[]>} */
    const between = new Map();
    const note = (/** @type {ExpressionNode[]} */ index, /** @type {number[]} */ shape) => index.forEach((item, axis) => {
      if (item[0] === "letter") sizes[item[1]] ??= shape[axis];
    });
    note(this.target[1], this.operation.shape);
    for (const [name, index, body] of this.operation.equations) {
      for (const node of walk(body)) {
        if (node[0] !== "read") continue;
        const [, read, at] = node;
        const shape = this.isOperand(read) ? this.source.shape(this.operation.operands[read]) : between.get(read);
        if (shape) note(at, shape);
      }
      between.set(name, index.map((item) => sizes[item[1]]));
    }
    return sizes;
  }

  /** @param {string} name */
  isOperand(name) {
    return !this.equations.has(name) && name in this.operation.operands;
  }

  /**
   * The equation of a value in between.
   * @param {string} name
   */
  equation(name) {
    return /** @type {Equation} */ (this.equations.get(name));
  }

  /**
   * The target's element at `index`, in double precision.
   * @param {number[]} index
   */
  value(index) {
    return this.element(this.target, index);
  }

  /**
   * @param {Equation} equation
   * @param {number[]} index
   */
  element(equation, index) {
    return this.evaluate(equation[2], this.bind(equation, index));
  }

  /**
   * @param {Equation} equation
   * @param {number[]} index
   */
  bind(equation, index) {
    /** @type {Letters} */
    const letters = {};
    equation[1].forEach((item, axis) => { letters[item[1]] = index[axis]; });
    return letters;
  }

  /**
   * @param {ExpressionNode} node
   * @param {Letters} letters
   * @returns {number}
   */
  evaluate(node, letters) {
    switch (node[0]) {
      case "number": return node[1];
      case "letter": return letters[node[1]];
      case "name": return node[1] in CONSTANTS ? CONSTANTS[node[1]] : this.operation.settings[node[1]];
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

  /**
   * @param {string} name
   * @param {number[]} index
   */
  read(name, index) {
    const equation = this.equations.get(name);
    if (!equation) return this.source.value(this.operation.operands[name], index);
    if (!this.kept.has(name)) return this.element(equation, index);
    const key = `${name} ${index}`;
    const known = this.locals.get(key);
    if (known !== undefined) return known;
    const value = this.element(equation, index);
    this.locals.set(key, value);
    return value;
  }

  /**
   * @param {ReduceNode} node
   * @param {Letters} letters
   */
  reduce(node, letters) {
    const [, kind, over, body] = node;
    if (node.length === 5) return this.nthLargest(node, letters);
    let result = kind === "sum" ? 0 : -Infinity;
    this.each(over, letters, (bound) => {
      const value = this.evaluate(body, bound);
      result = kind === "sum" ? result + value : Math.max(result, value);
    });
    return result;
  }

  /**
   * How many combinations of the reduced letters there are.
   * @param {LetterNode[]} over
   */
  count(over) {
    return over.reduce((n, item) => n * this.sizes[item[1]], 1);
  }

  /**
   * `visit` the letters in every combination of the reduced ones. One object, changed in place.
   * @param {LetterNode[]} over
   * @param {Letters} letters
   * @param {(bound: Letters) => void} visit
   */
  each(over, letters, visit) {
    const bound = { ...letters };
    const loop = (/** @type {number} */ depth) => {
      if (depth === over.length) { visit(bound); return; }
      const name = over[depth][1];
      for (let i = 0; i < this.sizes[name]; i++) {
        bound[name] = i;
        loop(depth + 1);
      }
    };
    loop(0);
  }

  /**
   * The same, one combination at a time.
   * @param {LetterNode[]} over
   * @param {Letters} letters
   */
  range(over, letters) {
    return combinations(over.map((item) => item[1]), this.sizes, { ...letters });
  }

  /**
   * @param {RankNode} node
   * @param {Letters} letters
   */
  nthLargest(node, letters) {
    // The order does not depend on n: it is sorted once.
    const [, , [[, letter]], body, n] = node;
    const order = this.orders.get(node) ?? this.sorted(this.sizes[letter], (i) => this.evaluate(body, { ...letters, [letter]: i }));
    this.orders.set(node, order);
    return order[this.evaluate(n, letters)];
  }

  /**
   * Places by value, largest first.
   * @param {number} length
   * @param {(i: number) => number} value
   */
  sorted(length, value) {
    const list = Float64Array.from({ length }, (_, i) => value(i));
    return Array.from(list.keys()).sort((a, b) => list[b] - list[a] || a - b);
  }
}

/**
 * @param {string[]} names
 * @param {Letters} sizes
 * @param {Letters} bound changed in place
 * @returns {Generator<Letters>}
 */
function* combinations(names, sizes, bound) {
  const [name, ...others] = names;
  if (name === undefined) {
    yield bound;
    return;
  }
  for (let i = 0; i < sizes[name]; i++) {
    bound[name] = i;
    yield* combinations(others, sizes, bound);
  }
}
