// What the stream would answer at a station: the last norm and the table read it there as they read its end. None of
// these numbers is recorded; they follow from recorded ones, by the same equations.

import { Computation } from "evaluate";

/** @typedef {import("store").Store} Store @typedef {{ id: number, share: number }} Answer */

/**
 * What has to be loaded for it.
 * @param {Store} store
 * @param {Stations} pass
 */
export function readers(store, { norm, head }) {
  const { x, ...own } = store.made(norm).operands;
  return [...Object.values(own), store.made(head).operands.table].filter((name) => name !== x);
}

/**
 * The likeliest token after position `t`, if the stream ended with these numbers.
 * @param {Store} store
 * @param {Stations} pass
 * @param {string} station an array of the stream
 * @param {number} t
 * @returns {Answer}
 */
export function readOut(store, { norm, head }, station, t) {
  const made = store.made(norm);
  const read = new Computation(made, through(store, made.operands.x, station));
  const { table } = store.made(head).operands;
  const [count, d] = store.shape(table);
  const row = Float64Array.from({ length: d }, (_, i) => read.value([t, i]));
  const rows = store.values(table);
  const logits = new Float64Array(count);
  let id = 0;
  for (let v = 0; v < count; v++) {
    let sum = 0;
    for (let i = 0; i < d; i++) sum += row[i] * (rows ? rows[v * d + i] : store.flatValue(table, v * d + i));
    logits[v] = sum;
    if (sum > logits[id]) id = v;
  }
  const largest = logits[id];
  return { id, share: 1 / logits.reduce((total, logit) => total + Math.exp(logit - largest), 0) };
}

/**
 * The recording, with another array in place of `x`: what was made from `x` is made from that.
 * @param {Store} store
 * @param {string} x
 * @param {string} station
 * @returns {Source}
 */
function through(store, x, station) {
  /** @type {Map<string, Computation>} */
  const made = new Map();
  const view = { shape: (/** @type {string} */ name) => store.shape(name), value(/** @type {string} */ name, /** @type {number[]} */ index) {
    if (name === x) return store.value(station, index);
    const operation = store.operation(name);
    if (operation?.operands.x !== x) return store.value(name, index);
    const own = made.get(name) ?? new Computation(operation, view);
    made.set(name, own);
    return own.value(index);
  } };
  return view;
}
