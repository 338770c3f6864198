// The written-out working of one number: each equation with names, with numbers, and its value.

import { format } from "format";
import { FUNCTIONS } from "functions";

const LEVEL = { sum: 1, product: 2, atom: 3 };
const OPERATOR = { "+": " + ", "-": " − ", "*": " × ", "/": " ∕ ", "//": " div ", "%": " mod ", "**": "^" };
const OPERATOR_LEVEL = { "+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 3 };
const COMPARISON = { "==": " = ", "<=": " ≤ ", "<": " < ", ">=": " ≥ ", ">": " > " };
const SAID = new Set(["number", "letter", "size", "name"]); // what an equation says is exact: no measure of rounding
const MAX_LINES = 24;
const MAX_MEMBERS = 8;

/**
 * A token is text, or an operand {text, array, index, value} that can be opened in turn.
 * A line is {left, names, numbers, value, terms?}; terms are those of a sum that is the whole line.
 */
export class Working {
  constructor(computation, store, symbols) {
    this.computation = computation;
    this.store = store;
    this.symbols = symbols;
    this.lines = [];
    this.told = new Set();
    this.reads = [];
    this.largest = 0;
    this.omitted = 0;
  }

  /** Explain the target's element at `index`; the last line is the number itself. */
  explain(index) {
    this.tell(this.computation.target, index, true);
    return this;
  }

  get value() {
    return this.lines.at(-1).value;
  }

  symbol(name) {
    return this.symbols[name] ?? name;
  }

  tell(equation, index, isTarget = false) {
    const [name, , body] = equation;
    const key = `${name} ${index}`;
    if (this.told.has(key)) return;
    this.told.add(key);
    if (!isTarget && this.lines.length >= MAX_LINES) { this.omitted++; return; }
    const letters = this.computation.bind(equation, index);
    const { sum, around } = this.wholeSum(body);
    const line = sum ? this.sumLine(sum, around, letters) : this.plainLine(body, letters);
    this.lines.push({ left: indexed(this.symbol(name), index), ...line });
  }

  plainLine(body, letters) {
    const { value, names, numbers } = this.describe(body, letters);
    return { value, names, numbers };
  }

  /** A sum that makes up the line, perhaps divided by or added to something. */
  wholeSum(body) {
    if (body[0] === "reduce" && body[1] === "sum") return { sum: body, around: null };
    if (body[0] === "binary" && "/+".includes(body[1]) && body[2][0] === "reduce" && body[2][1] === "sum") {
      return { sum: body[2], around: body };
    }
    return {};
  }

  sumLine(sum, around, letters) {
    const terms = new Terms(this, sum, letters);
    let value = terms.total;
    let names = ["Σ"];
    let numbers = [number(terms.total)];
    if (around) {
      const right = this.describe(around[3], letters);
      names = ["Σ", OPERATOR[around[1]], ...wrap(right.names, right.level, OPERATOR_LEVEL[around[1]])];
      numbers = [...numbers, OPERATOR[around[1]], ...wrap(right.numbers, right.level, OPERATOR_LEVEL[around[1]])];
      value = around[1] === "/" ? value / right.value : value + right.value;
      this.note(value);
    }
    return { value, names, numbers, terms };
  }

  note(value) {
    if (Number.isFinite(value)) this.largest = Math.max(this.largest, Math.abs(value));
  }

  /** A node as {value, names, numbers, level}. */
  describe(node, letters) {
    const result = this[node[0]](node, letters);
    if (!SAID.has(node[0])) this.note(result.value);
    return result;
  }

  number(node) { return leaf(node[1]); }
  letter(node, letters) { return leaf(letters[node[1]], node[1]); }
  size(node) { return leaf(this.computation.sizes[node[1][1]], `|${node[1][1]}|`); }

  name(node, letters) {
    const value = this.computation.evaluate(node, letters);
    return leaf(value, node[1] === "inf" ? "∞" : node[1] === "pi" ? "π" : this.symbol(node[1]));
  }

  read(node, letters) {
    const index = node[2].map((item) => this.computation.evaluate(item, letters));
    const name = node[1];
    const local = this.computation.equations.get(name);
    if (local) this.tell(local, index);
    const value = this.computation.read(name, index);
    const token = { text: indexed(this.symbol(name), index), value };
    if (!local) {
      Object.assign(token, { array: this.computation.step.operands[name], index });
      this.reads.push(token);
    }
    const dtype = local ? "float64" : this.store.array(token.array).dtype;
    const shown = number(value, dtype);
    return { value, names: [token, ...this.indexReads(node, letters)], numbers: [shown], level: LEVEL.atom, numberLevel: signLevel(value) };
  }

  /** Which numbers said what is read: ids that pick a row. They are whole, so no measure of rounding. */
  indexReads(node, letters) {
    return node[2].filter((item) => item[0] === "read").flatMap((item) => {
      const { names, numbers } = this.read(item, letters);
      return [" (", ...names, " = ", ...numbers, ")"];
    });
  }

  negate(node, letters) {
    const body = this.describe(node[1], letters);
    return { value: -body.value, level: LEVEL.sum, names: ["−", ...wrap(body.names, body.level, LEVEL.product)],
      numbers: ["−", ...wrap(body.numbers, body.numberLevel ?? body.level, LEVEL.product)] };
  }

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

  compare([, op, left, right], letters) {
    const a = this.describe(left, letters);
    const b = this.describe(right, letters);
    const value = this.computation.evaluate(["compare", op, ["number", a.value], ["number", b.value]], letters);
    return { value, level: LEVEL.atom, names: ["[", ...a.names, COMPARISON[op], ...b.names, "]"], numbers: [number(value, "int64")] };
  }

  where([, condition, yes, no], letters) {
    const test = this.describe(condition, letters);
    const chosen = this.describe(test.value ? yes : no, letters);
    const said = condition[0] === "compare" ? test.names.slice(1, -1) : test.names;
    const why = [" (", ...said, test.value ? ": ✓)" : ": ✗)"];
    return { ...chosen, names: [...chosen.names, ...why] };
  }

  call([, name, body], letters) {
    const inner = this.describe(body, letters);
    const value = this.computation.evaluate(["call", name, ["number", inner.value]], letters);
    const sign = FUNCTIONS[name].text;
    return { value, level: LEVEL.atom, names: [sign, "(", ...inner.names, ")"], numbers: [sign, "(", ...inner.numbers, ")"] };
  }

  stream(node, letters) {
    const word = this.describe(node[1], letters);
    const n = this.describe(node[2], letters);
    const value = this.computation.evaluate(node, letters);
    return { value, level: LEVEL.atom, names: ["MCG31m1(", ...word.names, ", ", ...n.numbers, ")"], numbers: [number(value, "float64")] };
  }

  /** A reduction inside a line: its first members are written out, all of them are computed. */
  reduce(node, letters) {
    const value = this.computation.evaluate(node, letters);
    const first = node[1] === "nth_largest" && node[4][0] === "number" && node[4][1] === 0;
    const sign = first ? "argmax" : { sum: "Σ", max: "max", nth_largest: "argsort↓" }[node[1]];
    const members = [];
    let count = 0;
    for (const bound of this.computation.range(node[2], letters)) {
      if (count++ < MAX_MEMBERS) members.push(this.describe(node[3], { ...bound }));
    }
    const list = (part) => members.flatMap((member, i) => [...(i ? [", "] : []), ...member[part]]);
    const rest = count > members.length ? [", …"] : [];
    const order = node[1] === "nth_largest" && !first ? ["[", ...this.describe(node[4], letters).names, "]"] : [];
    return { value, level: LEVEL.atom, names: [`${sign}(`, ...list("names"), ...rest, ")", ...order], numbers: [number(value)] };
  }
}

/** The terms of a sum, described as they are asked for. */
export class Terms {
  constructor(working, node, letters) {
    this.working = working;
    this.node = node;
    this.bounds = working.computation.count(node[2]);
    this.list = [];
    this.total = 0;
    let running = 0;
    working.computation.each(node[2], letters, (bound) => {
      const early = this.list.length < 64;
      const term = early ? working.describe(node[3], { ...bound }) : { value: working.computation.evaluate(node[3], bound) };
      working.note(term.value);
      running += term.value;
      if (early) this.list.push({ ...term, running });
    });
    this.total = running;
  }

  get omitted() {
    return this.bounds - this.list.length;
  }
}

function indexed(symbol, index) {
  return index.length ? `${symbol}[${index.join(",")}]` : symbol;
}

function leaf(value, name) {
  const shown = number(value, Number.isInteger(value) ? "int64" : "float64");
  return { value, names: [name ?? shown], numbers: [shown], level: LEVEL.atom, numberLevel: signLevel(value) };
}

/** A negative number needs brackets behind an operator; its name does not. */
function signLevel(value) {
  return value < 0 ? LEVEL.sum : LEVEL.atom;
}

function wrap(tokens, level, wanted) {
  return level < wanted ? ["(", ...tokens, ")"] : tokens;
}

/** Operands and settings in full; values in between, which have no short exact form, to ten digits. */
export function number(value, dtype = "float64") {
  if (dtype === "float64" && Number.isFinite(value) && String(value).length > 12) return format(value, 10, dtype);
  return format(value, "all", dtype);
}
