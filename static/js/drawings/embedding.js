// An embedding: a tall table of which a few rows are taken, each by the number of its position.

import { ease, staggered } from "scene";
import { digitsFor, fit, heading, shownOf, strength } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return !scene.operation?.is_gradient && scene.index.length === 2;
}

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return [["ids", 500], ["mark", 700], ["slide", 1200]].map(([name, ms]) => ({ name: String(name), ms: Number(ms), say: scene.say(`embedding.move.${name}`) }));
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { array, index, store, width, height, narrow } = scene;
  const table = scene.operand("table") ?? "";
  const ids = scene.operand("ids") ?? "";
  const [n, d] = store.shape(array);
  const size = store.shape(table)[0];
  const pad = narrow ? 8 : 24;
  const top = 62;
  const bottom = height - 26;
  const strip = narrow ? 46 : 110;
  const idRoom = narrow ? 64 : 110;
  const left = pad + (narrow ? 30 : 56);
  const x = left + strip + (narrow ? 20 : 90) + idRoom;
  const rows = shownOf(n, (bottom - top) / 14, index[0]);
  const columns = shownOf(d, (width - pad - x) / 4, index[1]);
  const cw = Math.min(56, (width - pad - x) / columns.length);
  const each = Math.min(76, (bottom - top) / rows.length);
  const ch = Math.min(44, each * 0.66);
  const first = top + Math.max(0, (bottom - top - each * rows.length) / 2);
  const at = (/** @type {number} */ id) => top + (size > 1 ? id / (size - 1) : 0) * (bottom - top - 5);
  const largest = store.largest(array);
  heading(pen, [pad, 20, x - idRoom - pad], scene.say("embedding.table"));
  pen.text(pad, 37, fit(scene.say("embedding.size", { n: size.toLocaleString("en-US"), d }), x - idRoom - pad, { size: 11 }), { size: 11, color: "soft" });
  heading(pen, [x, 20, width - pad - x], scene.say("embedding.rows"), rows.length < n || columns.length < d ? scene.say("folded", { shown: rows.length * columns.length, all: n * d }) : "");
  pen.bar(left, top, strip, bottom - top, { color: "cell", stroke: "line" });
  for (const end of [0, size - 1]) pen.text(left - 6, at(end) + (end ? 5 : 9), fit(String(end), left - 6, { size: 11 }), { size: 11, color: "soft", align: "right" });
  const digits = scene.once("digits", () => digitsFor(scene, rows.flatMap((t) => columns.map((j) => store.value(array, [t, j]))), cw, ch));
  rows.forEach((t, i) => {
    const id = store.value(ids, [t]);
    const y = first + i * each + (each - ch) / 2;
    const lit = t === index[0];
    const mark = ease(staggered(scene.part("mark"), i, rows.length));
    const slide = ease(staggered(scene.part("slide"), i, rows.length));
    const elbow = left + strip + 6 + (1 - i / rows.length) * (narrow ? 8 : 70);
    const name = scene.label(array, 0, t);
    const text = `${fit(name, idRoom - 42, { size: 12 })} ${id}`;
    pen.text(x - 8, y + ch / 2 + 4, fit(text, idRoom - 8, { size: 12 }), { size: each < 14 ? 11 : 12, align: "right", bold: lit, color: lit ? "accent" : "ink", place: { array: ids, index: [t] } });
    if (mark > 0) {
      pen.bar(left, at(id), strip * mark, Math.max(3, Math.min(4, (bottom - top) / size)), { color: lit ? "accent" : "weight", radius: 0, alpha: lit ? 1 : 0.7 });
      pen.line([left + strip, at(id) + 2, elbow, at(id) + 2, elbow, y + ch / 2, x - idRoom - 2, y + ch / 2], { stroke: lit ? "accent" : "line", alpha: mark, stroke_width: lit ? 2 : 1 });
    }
    if (slide === 0) return;
    const w0 = strip / columns.length;
    columns.forEach((j, m) => {
      const mix = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * slide;
      const value = store.value(array, [t, j]);
      const chosen = lit && j === index[1];
      const gap = cw < 8 ? 0.3 : 1;
      pen.add({ kind: "cell", x: mix(left + m * w0, x + m * cw + gap), y: mix(at(id), y), w: mix(w0, cw - 2 * gap), h: mix(4, ch), strength: strength(value, largest),
        text: digits && slide === 1 ? scene.number(value, digits) : "", size: 11, mono: true, align: "center", bold: chosen, radius: 2,
        stroke: chosen ? "accent" : undefined, stroke_width: 2, key: `${array} ${[t, j]}`, place: { array, index: [t, j] } });
    });
  });
}
