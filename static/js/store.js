// The recording in the browser: its outline, and its numbers as they are needed.

import { Computation } from "evaluate";
import { flatten, sizeOf, unflatten } from "indices";
import { decode, receive } from "received";

/** Numbers that are not stored: each is computed once. @typedef {{ values: Float64Array, known: Uint8Array }} Derived */

export class Store {
  /**
   * @param {Outline} outline
   * @param {string} root the way from the page to the folder of the site
   */
  constructor(outline, root) {
    this.outline = outline;
    this.root = root;
    /** @type {Map<string, Float32Array | Float64Array>} */
    this.numbers = new Map();
    /** @type {Map<string, Derived>} */
    this.derived = new Map();
    /** @type {Map<string, Computation>} */
    this.computations = new Map();
    /** @type {Map<string, string[]>} */
    this.labelLists = new Map();
    /** @type {Map<string, number>} */
    this.largests = new Map();
    this.steps = new Map(outline.chapters.flatMap((chapter) => chapter.steps).map((step) => [step.id, step]));
    this.readers = readersOf(outline);
  }

  /**
   * @param {string} route
   * @param {string} root
   */
  static async open(route, root) {
    return new Store(await receive(route, root), root);
  }

  /** Array → the step that made it, or that it is given to. */
  homes() {
    return new Map(this.outline.chapters.flatMap(({ steps }) => steps.flatMap(({ id, operations, arrays }) => (
      [...arrays, ...operations].map((name) => /** @type {[string, string]} */ ([name, id]))))));
  }

  /** @param {string} name */
  has(name) { return Object.hasOwn(this.outline.arrays, name); }
  /** @param {string} name */
  array(name) { return this.outline.arrays[name]; }
  /** @param {string} name */
  shape(name) { return this.outline.arrays[name].shape; }
  /** @param {string} name */
  isDerived(name) { return Boolean(this.array(name).derived); }
  /** @param {string} name */
  size(name) { return sizeOf(this.shape(name)); }
  /** @param {string} name */
  letters(name) { return this.array(name).axes.map((axis) => this.outline.letters[axis]); }

  /**
   * The operation that made an array, with its equations and the name of its symbols; undefined for what starts the computation.
   * @param {string} name
   * @returns {Operation | undefined}
   */
  operation(name) {
    const { operations, equations } = this.outline;
    if (!Object.hasOwn(operations, name)) return undefined;
    const own = operations[name];
    return { notation: own.kind, ...own, id: name, equations: equations[own.equations], shape: this.shape(name) };
  }

  /**
   * The same for an array that an operation made.
   * @param {string} name
   */
  made(name) {
    const operation = this.operation(name);
    if (!operation) throw new Error(`no operation made ${name}`);
    return operation;
  }

  /**
   * Load the numbers of these arrays, and of what the derived ones among them are computed from.
   * @param {string[]} names
   */
  async load(names) {
    /** @type {Set<string>} */
    const wanted = new Set();
    const add = (/** @type {string} */ name) => {
      const { same_as: same, derived } = this.array(name);
      if (same) add(same);
      else if (derived) Object.values(this.made(name).operands).forEach(add);
      else wanted.add(name);
    };
    names.forEach(add);
    await Promise.all([...wanted].map((name) => this.loadStored(name)));
  }

  /** @param {string} name */
  async loadStored(name) {
    const { script, dtype } = this.array(name);
    if (!script || this.numbers.has(name)) return;
    const content = await receive(script, this.root);
    const text = typeof content === "string" ? content : content[name];
    if (!this.numbers.has(name)) this.numbers.set(name, decode(text, dtype));
  }

  /**
   * @param {string} name
   * @returns {boolean}
   */
  isLoaded(name) {
    const { same_as: same, derived } = this.array(name);
    if (same) return this.isLoaded(same);
    if (derived) return Object.values(this.made(name).operands).every((operand) => this.isLoaded(operand));
    return this.numbers.has(name);
  }

  /**
   * Whether a table of the array can be drawn: its numbers and its labels are here.
   * @param {string} name
   */
  isReady(name) {
    return this.isLoaded(name) && this.array(name).axes.every((_, axis) => !this.labelList(name, axis) || this.labels(name, axis));
  }

  /** @param {string} name */
  async ready(name) {
    await Promise.all([this.load([name]), ...this.array(name).axes.map((_, axis) => this.loadLabels(name, axis))]);
  }

  /**
   * The stored numbers of an array, in order; null when they are computed where they are shown.
   * @param {string} name
   * @returns {Float32Array | Float64Array | null}
   */
  values(name) {
    const { same_as: same, derived } = this.array(name);
    return same ? this.values(same) : derived ? null : this.numbers.get(name) ?? null;
  }

  /**
   * The largest magnitude in an array; 0 when that is not known before its numbers are computed.
   * @param {string} name
   */
  largest(name) {
    const known = this.largests.get(name);
    if (known !== undefined) return known;
    let largest = 0;
    for (const value of this.values(name) ?? []) {
      const size = Math.abs(value);
      if (size > largest && size < Infinity) largest = size;
    }
    this.largests.set(name, largest);
    return largest;
  }

  /**
   * @param {string} name
   * @param {number[]} index
   */
  value(name, index) {
    return this.flatValue(name, flatten(index, this.shape(name)));
  }

  /**
   * @param {string} name
   * @param {number} flat
   * @returns {number}
   */
  flatValue(name, flat) {
    const { same_as: same, derived } = this.array(name);
    if (same) return this.flatValue(same, flat);
    if (derived) return this.derivedValue(name, flat);
    return /** @type {Float32Array | Float64Array} */ (this.numbers.get(name))[flat];
  }

  /**
   * A number that is not stored: computed once, in double precision.
   * @param {string} name
   * @param {number} flat
   */
  derivedValue(name, flat) {
    const size = this.size(name);
    const kept = this.derived.get(name) ?? { values: new Float64Array(size), known: new Uint8Array(size) };
    this.derived.set(name, kept);
    if (!kept.known[flat]) {
      kept.values[flat] = this.computation(name).value(unflatten(flat, this.shape(name)));
      kept.known[flat] = 1;
    }
    return kept.values[flat];
  }

  /**
   * The computation of an array; its intermediate values are kept between numbers.
   * @param {string} name
   */
  computation(name) {
    const computation = this.computations.get(name) ?? new Computation(this.made(name), this);
    this.computations.set(name, computation);
    return computation;
  }

  /**
   * The name of the list of labels along an axis; undefined: numbers are the labels then.
   * @param {string} name
   * @param {number} axis
   */
  labelList(name, axis) {
    return this.array(name).labels?.[this.array(name).axes[axis]];
  }

  /**
   * @param {string} name
   * @param {number} axis
   */
  async loadLabels(name, axis) {
    const list = this.labelList(name, axis);
    if (!list) return;
    const labels = this.outline.labels[list];
    if (!Array.isArray(labels)) this.labelLists.set(list, await receive(labels.script, this.root));
  }

  /**
   * The labels along an axis; null where there are none, or they are not here yet.
   * @param {string} name
   * @param {number} axis
   */
  labels(name, axis) {
    const list = this.labelList(name, axis);
    if (!list) return null;
    const labels = this.outline.labels[list];
    return Array.isArray(labels) ? labels : this.labelLists.get(list) ?? null;
  }

  /**
   * The number of a place on an axis for people: the last position alone is not the first.
   * @param {string} name
   * @param {number} axis
   * @param {number} i
   */
  place(name, axis, i) {
    return i + (this.outline.numbered[this.array(name).axes[axis]] ?? 0) + (this.outline.firsts[this.labelList(name, axis) ?? ""] ?? 0);
  }

  /**
   * The name of a place on an axis.
   * @param {string} name
   * @param {number} axis
   * @param {number} i
   */
  label(name, axis, i) {
    const labels = this.labels(name, axis);
    const place = this.place(name, axis, i);
    return labels ? `${place} ${labels[i]}` : String(place);
  }
}

/**
 * Array → the operations that read it, and as which operand.
 * @param {Outline} outline
 */
function readersOf({ operations }) {
  /** @type {Map<string, { id: string, operand: string }[]>} */
  const readers = new Map();
  for (const [id, { operands }] of Object.entries(operations)) {
    for (const [operand, array] of Object.entries(operands)) {
      const known = readers.get(array) ?? [];
      known.push({ id, operand });
      readers.set(array, known);
    }
  }
  return readers;
}
