// The recording in the browser: its outline, and its numbers as they are needed.

import { children, Computation, walk } from "evaluate";

const TYPES = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array };

const asked = new Map(); // name → promise of its content: two tables may ask for one script

/** Add a data script to the page and wait for what it hands over. */
function receive(name, root) {
  const { received, waiting } = window.twoRoutes;
  if (received.has(name)) return Promise.resolve(received.get(name));
  if (!asked.has(name)) {
    asked.set(name, new Promise((resolve, reject) => {
      waiting.set(name, resolve);
      const script = document.createElement("script");
      script.src = `${root}data/${name}.js`;
      script.addEventListener("error", () => {
        asked.delete(name); // a later try may find it
        reject(new Error(`data/${name}.js`));
      });
      document.head.append(script);
    }));
  }
  return asked.get(name);
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function decode(text, dtype) {
  const values = new TYPES[dtype](bytesOf(text).buffer);
  return dtype === "int64" ? Float64Array.from(values, Number) : values;
}

export function flatten(index, shape) {
  return index.reduce((flat, i, axis) => flat * shape[axis] + i, 0);
}

export function unflatten(flat, shape) {
  const index = new Array(shape.length);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

/** How a place on an axis is numbered for people: heads and updates are counted from 1. */
export function ordinal(axis, i) {
  return axis === "head" || axis === "update" ? i + 1 : i;
}

export class Store {
  constructor(outline, root) {
    this.outline = outline;
    this.root = root;
    this.numbers = new Map();
    this.computations = new Map();
    this.labelLists = new Map();
    this.largests = new Map();
    this.usesOf = this.findUses();
  }

  static async open(route, root) {
    return new Store(await receive(route, root), root);
  }

  findUses() {
    const uses = new Map();
    for (const [id, step] of Object.entries(this.outline.steps)) {
      for (const [operand, array] of Object.entries(step.operands)) {
        if (!uses.has(array)) uses.set(array, []);
        uses.get(array).push({ id, operand });
      }
    }
    return uses;
  }

  has(name) { return Object.hasOwn(this.outline.arrays, name); }
  array(name) { return this.outline.arrays[name]; }
  shape(name) { return this.outline.arrays[name].shape; }
  isDerived(name) { return Boolean(this.array(name).derived); }
  size(name) { return this.shape(name).reduce((a, b) => a * b, 1); }
  letters(name) { return this.array(name).axes.map((axis) => this.outline.letters[axis]); }

  /** The step that made an array, with its equations and the name of its symbols; undefined for what starts the computation. */
  step(name) {
    const step = this.outline.steps[name];
    return step && { notation: step.kind, ...step, id: name, equations: this.outline.equations[step.equations], shape: this.shape(name) };
  }

  /** Load the numbers of these arrays, and of what the derived ones among them are computed from. */
  async load(names) {
    const wanted = new Set();
    const add = (name) => {
      const array = this.array(name);
      if (array.same_as) add(array.same_as);
      else if (array.derived) Object.values(this.outline.steps[name].operands).forEach(add);
      else wanted.add(name);
    };
    names.forEach(add);
    await Promise.all([...wanted].map((name) => this.loadStored(name)));
  }

  async loadStored(name) {
    if (this.numbers.has(name)) return;
    const { script, dtype } = this.array(name);
    const content = await receive(script, this.root);
    const text = typeof content === "string" ? content : content[name];
    if (!this.numbers.has(name)) this.numbers.set(name, decode(text, dtype));
  }

  isLoaded(name) {
    const array = this.array(name);
    if (array.same_as) return this.isLoaded(array.same_as);
    if (array.derived) return Object.values(this.outline.steps[name].operands).every((operand) => this.isLoaded(operand));
    return this.numbers.has(name);
  }

  /** Whether a table of the array can be drawn: its numbers and its labels are here. */
  isReady(name) {
    return this.isLoaded(name) && this.array(name).axes.every((_, axis) => !this.labelList(name, axis) || this.labels(name, axis));
  }

  async ready(name) {
    await Promise.all([this.load([name]), ...this.array(name).axes.map((_, axis) => this.loadLabels(name, axis))]);
  }

  /** The stored numbers of an array, in order; null when they are computed where they are shown. */
  values(name) {
    const { same_as: same, derived } = this.array(name);
    return same ? this.values(same) : derived ? null : this.numbers.get(name);
  }

  /** The largest magnitude in an array; 0 when that is not known before its numbers are computed. */
  largest(name) {
    if (!this.largests.has(name)) {
      let largest = 0;
      for (const value of this.values(name) ?? []) {
        const size = Math.abs(value);
        if (size > largest && size < Infinity) largest = size;
      }
      this.largests.set(name, largest);
    }
    return this.largests.get(name);
  }

  value(name, index) {
    return this.flatValue(name, flatten(index, this.shape(name)));
  }

  flatValue(name, flat) {
    const array = this.array(name);
    if (array.same_as) return this.flatValue(array.same_as, flat);
    return array.derived ? this.derivedValue(name, flat) : this.numbers.get(name)[flat];
  }

  /** A number that is not stored: computed once, in double precision. */
  derivedValue(name, flat) {
    if (!this.numbers.has(name)) this.numbers.set(name, { values: new Float64Array(this.size(name)), known: new Uint8Array(this.size(name)) });
    const { values, known } = this.numbers.get(name);
    if (!known[flat]) {
      values[flat] = this.computation(name).value(unflatten(flat, this.shape(name)));
      known[flat] = 1;
    }
    return values[flat];
  }

  /** The computation of an array; its intermediate values are kept between numbers. */
  computation(name) {
    if (!this.computations.has(name)) this.computations.set(name, new Computation(this.step(name), this));
    return this.computations.get(name);
  }

  /** The name of the list of labels along an axis; undefined: numbers are the labels then. */
  labelList(name, axis) {
    return this.array(name).labels?.[this.array(name).axes[axis]];
  }

  async loadLabels(name, axis) {
    const list = this.labelList(name, axis);
    if (!list) return null;
    const labels = this.outline.labels[list];
    if (!Array.isArray(labels)) this.labelLists.set(list, await receive(labels.script, this.root));
    return this.labels(name, axis);
  }

  labels(name, axis) {
    const list = this.labelList(name, axis);
    const labels = list && this.outline.labels[list];
    return Array.isArray(labels) ? labels : this.labelLists.get(list) ?? null;
  }

  /** The number of a place on an axis for people: the last position alone is not the first. */
  place(name, axis, i) {
    return ordinal(this.array(name).axes[axis], i) + (this.outline.firsts[this.labelList(name, axis)] ?? 0);
  }

  /** The name of a place on an axis. */
  label(name, axis, i) {
    const labels = this.labels(name, axis);
    const place = this.place(name, axis, i);
    return labels ? `${place} ${labels[i]}` : String(place);
  }

  /**
   * Where a number goes: for every step that reads its array, the element pattern that depends on it,
   * with null for every index value. Found by solving the step's equations for their output.
   */
  uses(name, index) {
    return (this.usesOf.get(name) ?? []).flatMap(({ id, operand }) =>
      reached(this.step(id), operand, index, this).map((pattern) => ({ id, pattern })));
  }
}

/** Patterns of the target's index that depend on element `index` of an operand. */
function reached(step, operand, index, store) {
  const computation = new Computation(step, store);
  const found = new Map();
  const follow = (name, at, depth) => {
    for (const equation of step.equations) {
      if (equation[0] === name && depth > 0) continue;
      for (const { node, guards } of readsOf(equation[2])) {
        if (node[1] !== name || (depth === 0) !== computation.isOperand(name)) continue;
        for (const letters of solve(node[2], at, computation).flatMap((solution) => past(guards, solution, computation))) {
          const pattern = equation[1].map((item) => letters[item[1]] ?? null);
          if (equation === computation.target) found.set(String(pattern), pattern);
          else follow(equation[0], pattern, depth + 1);
        }
      }
    }
  };
  follow(operand, index, 0);
  return [...found.values()];
}

/** Every element read in an expression, with the choices that it stands behind: [condition, outcome]. */
function* readsOf(node, guards = []) {
  if (node[0] === "read") yield { node, guards };
  const [condition, yes, no] = node[0] === "where" ? children(node) : [];
  for (const child of children(node)) {
    yield* readsOf(child, child === yes ? [...guards, [condition, true]] : child === no ? [...guards, [condition, false]] : guards);
  }
}

/** What becomes of a solution behind choices: the letters for which all go the right way, as far as letters decide it. */
function past(guards, solution, computation) {
  const reads = (body) => [...walk(body)].filter((node) => node[0] === "read").map((node) => node[1]);
  const isFixed = (name) => !computation.isOperand(name) && reads(computation.equations.get(name)[2]).length === 0;
  const decided = guards.filter(([condition]) => reads(condition).every(isFixed));
  const letters = decided.flatMap(([condition]) => [...walk(condition)].filter((node) => node[0] === "letter"));
  const free = letters.filter(([, name], i) => !(name in solution) && letters.findIndex((other) => other[1] === name) === i);
  const found = [];
  computation.each(free, solution, (bound) => {
    if (decided.every(([condition, outcome]) => Boolean(computation.evaluate(condition, bound)) === outcome)) found.push({ ...bound });
  });
  return found;
}

/** Letters for which an index expression takes the values of `at` (null: any value). */
function solve(items, at, computation) {
  let solutions = [{}];
  items.forEach((item, axis) => {
    if (at[axis] === null) return;
    if (item[0] === "letter") {
      solutions = solutions.filter((s) => (s[item[1]] ?? at[axis]) === at[axis]).map((s) => ({ ...s, [item[1]]: at[axis] }));
      return;
    }
    const names = [...new Set([...walk(item)].filter((n) => n[0] === "letter").map((n) => n[1]))];
    solutions = solutions.flatMap((solution) => {
      const free = names.filter((name) => !(name in solution)).map((name) => ["letter", name]);
      return matching(computation, free, solution, item, at[axis]);
    });
  });
  return solutions;
}

function matching(computation, free, solution, item, wanted) {
  const found = [];
  for (const letters of computation.range(free, solution)) {
    if (computation.evaluate(item, letters) === wanted) found.push({ ...letters });
  }
  return found;
}
