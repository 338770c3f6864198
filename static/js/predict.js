// Before a number is worked out: what one can say of it from the picture. Which sign, which of a row is largest, what
// happens when one of its operands is taken away. The answers are computed.

import { bare } from "dom";
import { Computation } from "evaluate";

/** @typedef {import("store").Store} Store */
/** @typedef {{ text: string, options: string[], right: number }} Question `text` and `options`: words of the interface, or names */

const MOST = 8; // places of a row to choose from

/**
 * The questions that a number gives rise to.
 * @param {Store} store
 * @param {Place} place
 * @param {Words} words
 * @returns {Question[]}
 */
export function questions(store, place, words) {
  const value = store.value(place.array, place.index);
  if (!Number.isFinite(value)) return [];
  const sign = { text: words["predict.sign"], options: ["below", "zero", "above"].map((key) => words[`predict.${key}`]), right: Math.sign(value) + 1 };
  return [sign, largest(store, place, words), away(store, place, words)].filter((one) => one !== null);
}

/**
 * @param {Store} store
 * @param {Place} place
 * @param {Words} words
 * @returns {Question | null}
 */
function largest(store, { array, index }, words) {
  const axis = index.length - 1;
  const length = store.shape(array)[axis] ?? 0;
  if (length < 2 || length > MOST) return null;
  const row = Array.from({ length }, (_, i) => store.value(array, index.with(axis, i)));
  const most = Math.max(...row);
  if (row.filter((value) => value === most).length > 1) return null; // the answer must be one
  return { text: words["predict.largest"], options: row.map((_, i) => bare(store.label(array, axis, i))), right: row.indexOf(most) };
}

/**
 * What becomes of the number when its strongest operand is nothing.
 * @param {Store} store
 * @param {Place} place
 * @param {Words} words
 * @returns {Question | null}
 */
function away(store, { array, index }, words) {
  const operation = store.operation(array);
  if (!operation) return null;
  const operands = Object.entries(operation.operands).filter(([, name]) => store.array(name).dtype !== "int64" && String(store.shape(name)) === String(store.shape(array)));
  const [name, operand] = operands[0] ?? [];
  if (!name || !operand || store.value(operand, index) === 0) return null;
  const without = new Computation(operation, {
    shape: (one) => store.shape(one),
    value: (one, at) => (one === operand && String(at) === String(index) ? 0 : store.value(one, at)),
  }).value(index);
  const value = store.value(array, index);
  if (!Number.isFinite(without)) return null;
  const change = Math.abs(without - value) <= 1e-9 * Math.abs(value) ? 0 : Math.sign(without - value);
  return { text: words["predict.away"].replace("{name}", `${operand} [${index.join(", ")}]`), options: ["falls", "stays", "rises"].map((key) => words[`predict.${key}`]), right: change + 1 };
}
