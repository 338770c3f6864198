// One merge of byte-pair encoding: tokens that often stand together become one.

import { chips, placeWidth, wires } from "chips";
import { bare } from "dom";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** All merges of the step, in order. @param {Scene} scene */
function merges(scene) {
  return scene.step.operations.map((id) => scene.store.made(id)).filter(({ kind }) => kind === "bpe_merge");
}

/** @param {Scene} scene */
export function suits(scene) {
  return merges(scene).length > 0;
}

/** @param {Scene} scene */
export function arrays(scene) {
  return merges(scene).flatMap(({ id, operands }) => [id, operands.before]);
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return merges(scene).map((_, i) => ({ name: String(i), ms: 900, say: scene.say("bpe_merge.say", { n: i + 1 }) }));
}

/**
 * @param {Scene} scene
 * @param {string} array
 */
function tokens({ store }, array) {
  return Array.from({ length: store.shape(array)[0] }, (_, n) => store.value(array, [n]));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow } = scene;
  const all = merges(scene);
  const names = [all[0].operands.before, ...all.map(({ id }) => id)];
  const fits = Math.max(2, Math.floor((height - 20) / 92));
  const shown = names.length <= fits ? names : [...names.slice(0, fits - 1), names[names.length - 1]];
  const left = narrow ? 10 : 50;
  const right = width - left;
  let spans = tokens(scene, names[0]).map(() => 1);
  const gap = Math.min(130, (height - 60) / shown.length);
  const rows = names.map((array, r) => {
    const now = tokens(scene, array);
    if (r) spans = joined(tokens(scene, names[r - 1]), now, spans);
    return now.map((id, n) => ({ text: bare(scene.label(array, 0, n)), under: String(id), span: spans[n], place: { array, index: [n] }, key: `${array} ${n}`,
      color: /** @type {import("pen").Color} */ (r && spans[n] > 1 ? "glow" : "cell"), lit: array === scene.array && n === scene.index[0] }));
  });
  const each = placeWidth(rows, right - left, 120);
  const middles = shown.map((array, k) => {
    const r = names.indexOf(array);
    const y = 36 + k * gap;
    heading(pen, [left, y - 10], r ? scene.say("bpe_merge.after", { n: r }) : scene.say("bpe_merge.before"), k && names.indexOf(shown[k - 1]) !== r - 1 ? "…" : "");
    return { y, at: chips(pen, rows[r], { x: left, y, each, right, part: r ? scene.part(String(r - 1)) : 1 }), row: rows[r] };
  });
  middles.slice(1).forEach(({ y, at, row }, k) => {
    const before = middles[k];
    const pairs = /** @type {[number, number][]} */ (row.flatMap(({ span }, n) => {
      const start = left + row.slice(0, n).reduce((a, one) => a + one.span, 0) * each;
      return before.at.filter((m) => m > start && m < start + span * each).map((m) => [m, at[n]]);
    }));
    wires(pen, pairs, { top: before.y + 52, bottom: y - 24, part: scene.part(String(names.indexOf(shown[k + 1]) - 1)), right });
  });
}

/**
 * How many places each token takes after a merge: those of what it was made from.
 * @param {number[]} before
 * @param {number[]} after
 * @param {number[]} spans
 */
function joined(before, after, spans) {
  let i = 0;
  return after.map((id) => {
    const isSame = before[i] === id;
    const span = spans[i] + (isSame ? 0 : spans[i + 1] ?? 0);
    i += isSame ? 1 : 2;
    return span;
  });
}
