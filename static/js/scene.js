// What a drawing is given: one array of a step, the element that is chosen in it, the room there is, and how far each
// move has come.

import { roundOf } from "candidates";
import { bare, fill } from "dom";
import { compact } from "format";
import { Working } from "working";

const MOST_TERMS = 200_000; // that are added up for a picture: it must come at once

/**
 * A move of a picture: what it is called in the drawing, how long it takes, and half a sentence.
 * @typedef {{ name: string, ms: number, say: string }} Move
 *
 * @typedef {object} SceneContext
 * @property {import("store").Store} store
 * @property {Words} words
 * @property {StepOutline} step
 * @property {string} array the array that is looked at
 * @property {number[]} index the chosen element
 * @property {number} width
 * @property {number} height
 * @property {number} digits at most so many
 * @property {{ title(step: string): string }} [titles] of the steps
 */

/** Steps without titles go by their ids. */
const NAMES = { title: (/** @type {string} */ step) => step };

/** A picture's subject. The numbers it may need are loaded; `progress` is set before each drawing. */
export class Scene {
  /** @param {SceneContext} context */
  constructor({ store, words, step, array, index, width, height, digits, titles = NAMES }) {
    this.titles = titles;
    this.store = store;
    this.words = words;
    this.step = step;
    this.array = array;
    this.index = index;
    this.width = width;
    this.height = height;
    this.digits = digits;
    this.narrow = width < 560;
    this.operation = store.operation(array);
    this.computation = this.operation ? store.computation(array) : null;
    /** @type {Map<string, number>} */
    this.progress = new Map();
    /** @type {Map<string, unknown>} */
    this.kept = new Map();
  }

  /**
   * How far a move has come, from 0 to 1; 1 for all of them when a step is arrived at.
   * @param {string} move
   */
  part(move) {
    return this.progress.get(move) ?? 1;
  }

  /**
   * Made once for all drawings of this scene.
   * @template T
   * @param {string} key
   * @param {() => T} make
   * @returns {T}
   */
  once(key, make) {
    if (!this.kept.has(key)) this.kept.set(key, make());
    return /** @type {T} */ (this.kept.get(key));
  }

  /**
   * Words of the pictures: languages/…/pictures.toml.
   * @param {string} key
   * @param {Record<string, unknown>} [values]
   */
  say(key, values = {}) {
    return fill(this.words[`picture.${key}`] ?? key, values);
  }

  /**
   * A number, rounded for a picture: never to more digits than the reader has chosen.
   * @param {number} value
   * @param {number} [digits]
   */
  number(value, digits = this.digits, dtype = "float64") {
    return compact(value, Math.min(digits, this.digits), dtype);
  }

  /**
   * The array that is read under a name of the equations; what is made has its own name there.
   * @param {string} name
   */
  operand(name) {
    return this.operation?.operands[name] ?? (name === this.operation?.equations.at(-1)?.[0] ? this.array : null);
  }

  /**
   * An element of an operand, of what is made, or of a value in between.
   * @param {string} name as the equations call it
   * @param {number[]} index
   */
  value(name, index) {
    const array = this.operand(name);
    if (array) return this.store.value(array, index);
    return this.computation?.read(name, index) ?? NaN;
  }

  /** The letters of what is made, at the chosen element. @returns {Letters} */
  get letters() {
    const { computation } = this;
    return computation ? computation.bind(computation.target, this.index) : {};
  }

  /**
   * What a place on an axis is called: its label, else its number.
   * @param {string} array
   * @param {number} axis
   * @param {number} i
   */
  label(array, axis, i) {
    const labels = this.store.labels(array, axis) ?? this.candidateNames(array, axis);
    return labels ? labels[i] : String(this.store.place(array, axis, i));
  }

  /**
   * The tokens of the candidates of the round, for an array of its draw.
   * @param {string} array
   * @param {number} axis
   */
  candidateNames(array, axis) {
    const round = this.store.array(array).axes[axis] === "candidate" ? roundOf(this) : null;
    if (!round) return null;
    const own = [...Object.values(round.outcome), ...Object.values(this.store.operation(round.outcome.probabilities)?.operands ?? {})];
    return own.includes(array) ? round.names.map(bare) : null;
  }

  /** How the chosen number comes about: its last line, with the terms of its sum. */
  get working() {
    return this.once("working", () => {
      const { computation, operation, store } = this;
      if (!computation || !operation) return null;
      const summed = Object.entries(computation.sizes).filter(([letter]) => !(letter in this.letters));
      if (summed.reduce((product, [, size]) => product * size, 1) > MOST_TERMS) return null;
      return new Working(computation, store, store.outline.symbols[operation.notation]).explain(this.index).lines.at(-1) ?? null;
    });
  }

  /**
   * Tokens of a working as text; numbers, which a working says in full, are rounded.
   * @param {import("said").Token[]} tokens
   */
  text(tokens, digits = this.digits) {
    return tokens.map((token) => {
      const text = typeof token === "string" ? token : token.text;
      const value = Number(text.replaceAll("\u2212", "-"));
      return text.trim() === "" || Number.isNaN(value) ? text : compact(value, digits, Number.isInteger(value) ? "int64" : "float64");
    }).join("");
  }
}

/**
 * A place between two, and between two colours: slow at both ends.
 * @param {number} part
 */
export function ease(part) {
  return part <= 0 ? 0 : part >= 1 ? 1 : part * part * (3 - 2 * part);
}

/**
 * The part of one of `n` things that come one after the other while a move goes from 0 to 1; `overlap`: how many at once.
 * @param {number} part
 * @param {number} i
 * @param {number} n
 */
export function staggered(part, i, n, overlap = 2) {
  return Math.max(0, Math.min(1, (part * (n + overlap - 1) - i) / overlap));
}
