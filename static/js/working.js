// The written-out working of one number: each equation with names, with numbers, and its value.

import { children } from "evaluate";
import { FUNCTIONS } from "functions";
import { indexed, leaf, LEVEL, number, signLevel, wrap } from "said";

/** @type {Record<string, string>} */
const OPERATOR = { "+": " + ", "-": " − ", "*": " × ", "/": " ∕ ", "//": " div ", "%": " mod ", "**": "^" };
/** @type {Record<string, number>} */
const OPERATOR_LEVEL = { "+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 3 };
/** @type {Record<string, string>} */
const COMPARISON = { "==": " = ", "<=": " ≤ ", "<": " < ", ">=": " ≥ ", ">": " > " };
const MAX_LINES = 24;
const MAX_MEMBERS = 8;
const MAX_TERMS = 64;

/** @type {Record<string, string>} */
const REDUCTION = { sum: "Σ", max: "max", nth_largest: "argsort↓" };
/** @type {Record<string, string>} */
const CONSTANT = { inf: "∞", pi: "π" };

/** @typedef {import("said").Token} Token */
/** @typedef {import("said").Said} Said */
/** @typedef {Said & { running: number }} Term */
/** `terms`: those of a sum that is the whole line. @typedef {{ left: string, names: Token[], numbers: Token[], value: number, terms?: Terms }} Line */
/** @typedef {Extract<ExpressionNode, ["read", ...unknown[]]>} ReadNode */

export class Working {
  /**
   * @param {import("evaluate").Computation} computation
   * @param {import("store").Store} store
   * @param {Record<string, string>} symbols
   */
  constructor(computation, store, symbols) {
    this.computation = computation;
    this.store = store;
    this.symbols = symbols;
    /** @type {Line[]} */
    this.lines = [];
    /** @type {Set<string>} */
    this.told = new Set();
    /** @type {import("said").Operand[]} */
    this.reads = [];
    this.largest = 0;
    this.omitted = 0;
  }

  /**
   * Explain the target's element at `index`; the last line is the number itself.
   * @param {number[]} index
   */
  explain(index) {
    this.tell(this.computation.target, index, true);
    return this;
  }

  get value() {
    return this.lines[this.lines.length - 1].value;
  }

  /** @param {string} name */
  symbol(name) {
    return this.symbols[name] ?? name;
  }

  /**
   * @param {Equation} equation
   * @param {number[]} index
   */
  tell(equation, index, isTarget = false) {
    const [name, , body] = equation;
    const key = `${name} ${index}`;
    if (this.told.has(key)) return;
    this.told.add(key);
    if (!isTarget && this.lines.length >= MAX_LINES) { this.omitted++; return; }
    const letters = this.computation.bind(equation, index);
    const { value, names, numbers, terms } = this.sumLine(body, letters) ?? { ...this.describe(body, letters), terms: undefined };
    this.lines.push({ left: indexed(this.symbol(name), index), value, names, numbers, terms });
  }

  /**
   * A line that is a sum, perhaps divided by or added to something; null when it is something else.
   * @param {ExpressionNode} body
   * @param {Letters} letters
   */
  sumLine(body, letters) {
    if (isSum(body)) {
      const terms = new Terms(this, body, letters);
      return { value: terms.total, names: ["Σ"], numbers: [number(terms.total)], terms };
    }
    if (body[0] !== "binary" || !"/+".includes(body[1]) || !isSum(body[2])) return null;
    const [, sign, sum, around] = body;
    const terms = new Terms(this, sum, letters);
    const right = this.describe(around, letters);
    const value = sign === "/" ? terms.total / right.value : terms.total + right.value;
    this.note(value);
    const behind = (/** @type {Token[]} */ tokens) => [OPERATOR[sign], ...wrap(tokens, right.level, OPERATOR_LEVEL[sign])];
    return { value, names: ["Σ", ...behind(right.names)], numbers: [number(terms.total), ...behind(right.numbers)], terms };
  }

  /** @param {number} value */
  note(value) {
    if (Number.isFinite(value)) this.largest = Math.max(this.largest, Math.abs(value));
  }

  /**
   * An operand that is not stored was rounded when it was computed: where its terms cancelled, they are the measure.
   * @param {string} array
   * @param {number[]} index
   */
  noteTermsOf(array, index) {
    const { same_as: same, derived } = this.store.array(array);
    if (same) this.noteTermsOf(same, index);
    if (derived) this.note(new Working(this.store.computation(array), this.store, {}).explain(index).largest);
  }

  /**
   * @param {ExpressionNode} node
   * @param {Letters} letters
   */
  describe(node, letters) {
    const said = this.say(node, letters);
    if (!isSaid(node)) this.note(said.value);
    return said;
  }

  /**
   * @param {ExpressionNode} node
   * @param {Letters} letters
   * @returns {Said}
   */
  say(node, letters) {
    switch (node[0]) {
      case "number": return leaf(node[1]);
      case "letter": return leaf(letters[node[1]], node[1]);
      case "size": return leaf(this.computation.sizes[node[1][1]], `|${node[1][1]}|`);
      case "name": return leaf(this.computation.evaluate(node, letters), CONSTANT[node[1]] ?? this.symbol(node[1]));
      case "read": return this.read(node, letters);
      case "negate": return this.negate(node[1], letters);
      case "binary": return this.binary(node, letters);
      case "compare": return this.compare(node, letters);
      case "where": return this.where(node, letters);
      case "call": return this.call(node, letters);
      case "stream": return this.stream(node, letters);
      case "reduce": return this.reduce(node, letters);
    }
  }

  /**
   * @param {ReadNode} node
   * @param {Letters} letters
   * @returns {Said}
   */
  read(node, letters) {
    const [, name, items] = node;
    const index = items.map((item) => this.computation.evaluate(item, letters));
    const local = this.computation.equations.get(name);
    if (local) this.tell(local, index);
    const value = this.computation.read(name, index);
    const token = { text: indexed(this.symbol(name), index), value };
    if (!local) this.noteTermsOf(this.computation.operation.operands[name], index);
    const names = [local ? token : this.operand(token, name, index), ...this.indexReads(node, letters)];
    const dtype = local ? "float64" : this.store.array(this.computation.operation.operands[name]).dtype;
    return { value, names, numbers: [number(value, dtype)], level: LEVEL.atom, numberLevel: signLevel(value) };
  }

  /**
   * @param {import("said").Local} token
   * @param {string} name
   * @param {number[]} index
   */
  operand(token, name, index) {
    const operand = { ...token, array: this.computation.operation.operands[name], index };
    this.reads.push(operand);
    return operand;
  }

  /**
   * Which numbers said what is read: ids that pick a row. They are whole, so no measure of rounding.
   * @param {ReadNode} node
   * @param {Letters} letters
   * @returns {Token[]}
   */
  indexReads(node, letters) {
    return node[2].flatMap((item) => {
      if (item[0] !== "read") return [];
      const { names, numbers } = this.read(item, letters);
      return [" (", ...names, " = ", ...numbers, ")"];
    });
  }

  /**
   * @param {ExpressionNode} node
   * @param {Letters} letters
   */
  negate(node, letters) {
    const body = this.describe(node, letters);
    return { value: -body.value, level: LEVEL.sum, names: ["−", ...wrap(body.names, body.level, LEVEL.product)],
      numbers: ["−", ...wrap(body.numbers, body.numberLevel ?? body.level, LEVEL.product)] };
  }

  /**
   * @param {Extract<ExpressionNode, ["binary", ...unknown[]]>} node
   * @param {Letters} letters
   */
  binary([, op, left, right], letters) {
    const a = this.describe(left, letters);
    const b = this.describe(right, letters);
    const level = OPERATOR_LEVEL[op];
    const rightLevel = op === "+" || op === "*" ? level : level + 1;
    const names = [...wrap(a.names, a.level, level), OPERATOR[op], ...wrap(b.names, b.level, rightLevel)];
    // A negative number at the very left needs no brackets, except under a power.
    const leftLevel = a.numberLevel === undefined ? a.level : op === "**" ? a.numberLevel : LEVEL.atom;
    const numbers = [...wrap(a.numbers, leftLevel, level), OPERATOR[op], ...wrap(b.numbers, b.numberLevel ?? b.level, rightLevel)];
    const value = this.computation.evaluate(["binary", op, ["number", a.value], ["number", b.value]], letters);
    return { value, level, names, numbers };
  }

  /**
   * @param {Extract<ExpressionNode, ["compare", ...unknown[]]>} node
   * @param {Letters} letters
   */
  compare([, op, left, right], letters) {
    const a = this.describe(left, letters);
    const b = this.describe(right, letters);
    const value = this.computation.evaluate(["compare", op, ["number", a.value], ["number", b.value]], letters);
    return { value, level: LEVEL.atom, names: ["[", ...a.names, COMPARISON[op], ...b.names, "]"], numbers: [number(value, "int64")] };
  }

  /**
   * @param {Extract<ExpressionNode, ["where", ...unknown[]]>} node
   * @param {Letters} letters
   */
  where([, condition, yes, no], letters) {
    const test = this.describe(condition, letters);
    const chosen = this.describe(test.value ? yes : no, letters);
    const said = condition[0] === "compare" ? test.names.slice(1, -1) : test.names;
    const why = [" (", ...said, test.value ? ": ✓)" : ": ✗)"];
    return { ...chosen, names: [...chosen.names, ...why] };
  }

  /**
   * @param {Extract<ExpressionNode, ["call", ...unknown[]]>} node
   * @param {Letters} letters
   */
  call([, name, body], letters) {
    const inner = this.describe(body, letters);
    const value = this.computation.evaluate(["call", name, ["number", inner.value]], letters);
    const sign = FUNCTIONS[name].text;
    return { value, level: LEVEL.atom, names: [sign, "(", ...inner.names, ")"], numbers: [sign, "(", ...inner.numbers, ")"] };
  }

  /**
   * @param {Extract<ExpressionNode, ["stream", ...unknown[]]>} node
   * @param {Letters} letters
   */
  stream(node, letters) {
    const word = this.describe(node[1], letters);
    const n = this.describe(node[2], letters);
    const value = this.computation.evaluate(node, letters);
    return { value, level: LEVEL.atom, names: ["MCG31m1(", ...word.names, ", ", ...n.numbers, ")"], numbers: [number(value, "float64")] };
  }

  /**
   * A reduction inside a line: its first members are written out, all of them are computed.
   * @param {ReduceNode} node
   * @param {Letters} letters
   */
  reduce(node, letters) {
    const [, kind, over, body] = node;
    const rank = node.length === 5 ? node[4] : null;
    const isFirst = rank?.[0] === "number" && rank[1] === 0;
    const members = [];
    for (const bound of this.computation.range(over, letters)) {
      if (members.length === MAX_MEMBERS) break;
      members.push(this.describe(body, { ...bound }));
    }
    const list = members.flatMap((member, i) => [...(i ? [", "] : []), ...member.names]);
    const rest = this.computation.count(over) > members.length ? [", …"] : [];
    const order = rank && !isFirst ? ["[", ...this.describe(rank, letters).names, "]"] : [];
    const value = this.computation.evaluate(node, letters);
    return { value, level: LEVEL.atom, numbers: [number(value)],
      names: [`${isFirst ? "argmax" : REDUCTION[kind]}(`, ...list, ...rest, ")", ...order] };
  }
}

/** The terms of a sum: all are added, the first ones are described. */
export class Terms {
  /**
   * @param {Working} working
   * @param {ReduceNode} node
   * @param {Letters} letters
   */
  constructor(working, [, , over, body], letters) {
    const { computation } = working;
    this.bounds = computation.count(over);
    /** @type {Term[]} */
    this.list = [];
    this.total = 0;
    computation.each(over, letters, (bound) => {
      const described = this.list.length < MAX_TERMS ? working.describe(body, { ...bound }) : null;
      const value = described?.value ?? computation.evaluate(body, bound);
      working.note(value);
      this.total += value;
      if (described) this.list.push({ ...described, running: this.total });
    });
  }
}

/**
 * What an equation and its settings say, as 1 − β, reads nothing: it is no term, and no measure of rounding.
 * @param {ExpressionNode} node
 * @returns {boolean}
 */
function isSaid(node) {
  return node[0] !== "read" && children(node).every(isSaid);
}

/**
 * @param {ExpressionNode} node
 * @returns {node is ReduceNode}
 */
function isSum(node) {
  return node[0] === "reduce" && node[1] === "sum";
}
