// A number's place in words.

import { fill } from "dom";

/**
 * ["head 1", "position 2 (…)"]: axis by axis.
 * @param {string} array
 * @param {number[]} index
 * @param {{ store: import("store").Store, words: Words }} context
 */
export function describeIndex(array, index, { store, words }) {
  return store.array(array).axes.map((axis, i) => {
    const label = store.labels(array, i)?.[index[i]];
    const place = `${words[`axis.${axis}`]} ${store.place(array, i, index[i])}`;
    return label === undefined ? place : fill(words.named, { place, label });
  });
}
