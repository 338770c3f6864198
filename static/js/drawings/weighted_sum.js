// What attention fetches: each share beside its value, which fades to the share; all of them merge into one strip.

import { ease, staggered } from "scene";
import { digitsFor, fit, heading, shownOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return !scene.operation?.is_gradient && scene.index.length === 3;
}

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return [["shares", 600], ["scale", 800], ["merge", 900]].map(([name, ms]) => ({ name: String(name), ms: Number(ms), say: scene.say(`weighted_sum.move.${name}`) }));
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { array, index: [h, i, d], store, width, height, narrow } = scene;
  const weights = scene.operand("weights") ?? "";
  const values = scene.operand("value") ?? "";
  const n = store.shape(values)[1];
  const size = store.shape(array)[2];
  const pad = narrow ? 8 : 24;
  const label = narrow ? 46 : 70;
  const share = narrow ? 74 : 150;
  const top = 46;
  const out = 86;
  // The largest shares where there is no room for all.
  const most = Math.max(1, Math.floor((height - top - out) / 16));
  const list = scene.once("list", () => (n <= most ? shownOf(n, n, 0)
    : shownOf(n, n, 0).toSorted((a, b) => store.value(weights, [h, i, b]) - store.value(weights, [h, i, a])).slice(0, most).toSorted((a, b) => a - b)));
  const each = Math.min(64, (height - top - out) / list.length);
  const ch = Math.min(40, each - 3);
  const x = pad + label + share;
  const strips = narrow ? 1 : 2;
  const gap = narrow ? 0 : 44;
  const room = (width - pad - x - gap) / strips;
  const columns = shownOf(size, room / 4, d);
  const cw = Math.min(62, room / columns.length);
  const right = x + (strips - 1) * (cw * columns.length + gap);
  const largest = store.largest(values);
  const peak = Math.max(...list.map((j) => store.value(weights, [h, i, j])), 1e-9);
  const part = ease(scene.part("scale"));
  const merge = ease(scene.part("merge"));
  const y = top + each * list.length + 46;
  const digits = scene.once("digits", () => digitsFor(scene, list.flatMap((j) => columns.map((k) => store.value(values, [h, j, k]) * (narrow ? 1 : store.value(weights, [h, i, j])))), cw, ch));
  heading(pen, [pad, 20, x - pad - 6], scene.say("weighted_sum.shares"));
  heading(pen, [x, 20, room], scene.say("weighted_sum.values"), list.length < n ? scene.say("folded", { shown: list.length, all: n }) : "");
  if (!narrow) heading(pen, [right, 20, room], scene.say("weighted_sum.scaled"));
  list.forEach((j, a) => {
    const at = top + a * each;
    const weight = store.value(weights, [h, i, j]);
    const shown = ease(staggered(scene.part("shares"), a, list.length, 3));
    pen.text(pad + label - 6, at + ch / 2 + 4, fit(scene.label(values, 1, j), label - 6, { size: 11 }), { size: 11, align: "right", color: "soft" });
    const number = scene.number(weight, narrow ? 2 : 3);
    const long = share - (narrow ? 46 : 64);
    pen.bar(pad + label, at + ch * 0.2, Math.max(1, weight / peak * long * shown), ch * 0.6, { color: "warm", key: `${weights} ${[h, i, j]}`, place: { array: weights, index: [h, i, j] } });
    pen.text(pad + label + weight / peak * long + 4, at + ch / 2 + 4, number, { size: 11, mono: true, alpha: shown });
    columns.forEach((k, m) => {
      const value = store.value(values, [h, j, k]);
      const lit = k === d;
      pen.cell(x + m * cw, at, cw, ch, value, { largest, digits, lit, stroke: "value", key: `${values} ${[h, j, k]}`, place: { array: values, index: [h, j, k] } });
      if (!narrow && part > 0) pen.cell(x + (right - x) * part + m * cw, at, cw, ch, value * weight, { largest: largest * peak, alpha: part * (0.15 + 0.85 * Math.min(1, weight / peak)), lit, stroke: "value" });
      // The number stays to be read, however faded its cell.
      if (!narrow && part === 1 && digits) pen.text(right + (m + 0.5) * cw, at + ch / 2 + 4, scene.number(value * weight, digits), { size: 11, mono: true, bold: lit, align: "center" });
      // A copy falls into the sum.
      if (merge > 0 && merge < 1) pen.cell(right + m * cw, at + (y - at) * merge, cw, ch, value * weight, { largest: largest * peak, alpha: 0.5 });
    });
  });
  const done = ease((merge - 0.7) / 0.3);
  const high = Math.min(40, height - y - 8);
  pen.line([pad, y - 32, width - pad, y - 32]);
  heading(pen, [narrow ? pad : right, y - 12, room + (narrow ? x - pad : 0)], scene.say("weighted_sum.sum"));
  pen.text(right - 8, y + high / 2 + 4, fit(scene.label(array, 1, i), label + 40, { size: 12 }), { size: 12, bold: true, align: "right", color: "accent" });
  const most2 = store.largest(array);
  const outDigits = scene.once("out digits", () => digitsFor(scene, columns.map((k) => store.value(array, [h, i, k])), cw, high));
  columns.forEach((k, m) => pen.cell(right + m * cw, y, cw, high, store.value(array, [h, i, k]), { largest: most2, digits: outDigits, lit: k === d, alpha: done, key: `${array} ${[h, i, k]}`, place: { array, index: [h, i, k] } }));
}
