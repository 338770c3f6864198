// The moves of an operation: a row slides out of its table, a mask closes, a softmax rescales, a road carries
// the copy; every other operation lights what each number reads.

import { unflatten } from "indices";
import { Working } from "working";

const MOST = 24; // numbers that are shown one by one

/**
 * What happens at once. `slides`: from where to where; `closes`: what the mask takes away; `shares`: of one;
 * `road`: whether the residual road carries something.
 * @typedef {object} Move
 * @property {Place[]} [reads]
 * @property {[Place, Place][]} [slides]
 * @property {Place[]} [closes]
 * @property {{ place: Place, share: number }[]} [shares]
 * @property {boolean} [road]
 */

/** @typedef {{ store: import("store").Store, choice: (axis: string) => number | undefined }} Context */

/** @type {Record<string, (operation: Operation, context: Context) => Move[]>} */
const BY_KIND = { embedding: rowsSlide, add: rowsSlide, causal_mask: maskCloses, softmax: rowsRescale };

/**
 * @param {Operation} operation
 * @param {Context} context
 */
export function movesOf(operation, context) {
  const forward = operation.is_gradient ? undefined : BY_KIND[operation.kind];
  return (forward ?? numberByNumber)(operation, context);
}

/**
 * Every row of what is made, at the heads that are chosen now: its length, and the places of its numbers.
 * @param {string} array
 * @param {Context} context
 */
function rows(array, { store, choice }) {
  const { shape, axes } = store.array(array);
  const before = shape.slice(0, -2).map((length, axis) => Math.min(choice(axes[axis]) ?? 0, length - 1));
  const length = shape.at(-1) ?? 0;
  return each(shape.at(-2) ?? 1, (row) => ({ row, length,
    at: (/** @type {number} */ column) => ({ array, index: [...before, ...(shape.length > 1 ? [row] : []), column] }) }));
}

/**
 * @template T
 * @param {number} length
 * @param {(i: number) => T} make
 */
function each(length, make) {
  return Array.from({ length }, (_, i) => make(i));
}

/**
 * Looked-up rows come out of their table; the two summands of a residual meet, and the road is the first.
 * @param {Operation} operation
 * @param {Context} context
 * @returns {Move[]}
 */
function rowsSlide({ id, operands: { a, b, table, ids } }, context) {
  const { store } = context;
  const summands = [a, b].filter((operand) => operand && store.size(operand) === store.size(id));
  return rows(id, context).map(({ row, length, at }) => ({
    road: Boolean(a),
    slides: each(length, (column) => {
      const to = at(column);
      const from = table ? [{ array: table, index: [store.flatValue(ids, row), column] }]
        : summands.map((operand) => ({ array: operand, index: to.index }));
      return from.map((place) => /** @type {[Place, Place]} */ ([place, to]));
    }).flat(),
  }));
}

/**
 * @param {Operation} operation
 * @param {Context} context
 * @returns {Move[]}
 */
function maskCloses({ id, operands }, context) {
  return rows(id, context).map(({ row, length, at }) => ({
    closes: each(length, at).slice(row + 1),
    reads: each(Math.min(row + 1, length), (column) => ({ array: operands.scores, index: at(column).index })),
  }));
}

/**
 * Each row becomes shares of one.
 * @param {Operation} operation
 * @param {Context} context
 * @returns {Move[]}
 */
function rowsRescale({ id, operands }, context) {
  return rows(id, context).map(({ length, at }) => ({
    reads: each(length, (column) => ({ array: operands.x, index: at(column).index })),
    shares: each(length, (column) => ({ place: at(column), share: context.store.value(id, at(column).index) })),
  }));
}

/**
 * Any other operation: the numbers that each number reads, and the way from there.
 * @param {Operation} operation
 * @param {Context} context
 * @returns {Move[]}
 */
function numberByNumber({ id, notation }, { store }) {
  return each(Math.min(MOST, store.size(id)), (flat) => {
    const made = { array: id, index: unflatten(flat, store.shape(id)) };
    const { reads } = new Working(store.computation(id), store, store.outline.symbols[notation]).explain(made.index);
    return { reads: [...reads, made], slides: reads.slice(0, 8).map((read) => [read, made]) };
  });
}
