// A window on the ids: the same places, from some offset; inputs and answers are two windows, one place apart.

import { chips, placeWidth, wires } from "chips";
import { bare } from "dom";
import { widthOf } from "pen";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
function windows(scene) {
  return scene.step.operations.map((id) => scene.store.made(id)).filter(({ kind }) => kind === "window");
}

/** @param {Scene} scene */
export function suits(scene) {
  return windows(scene).length > 0;
}

/** @param {Scene} scene */
export function arrays(scene) {
  return windows(scene).flatMap(({ id, operands }) => [id, operands.ids]);
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  const list = windows(scene).map((_, i) => ({ name: String(i), ms: 900, say: scene.say(i ? "window.say_shifted" : "window.say_window") }));
  return list.length > 1 ? [...list, { name: "pairs", ms: 900, say: scene.say("window.say_pairs") }] : list;
}

/**
 * @param {Scene} scene
 * @param {string} array
 * @returns {import("chips").Chip[]}
 */
function row(scene, array) {
  const { store } = scene;
  return Array.from({ length: store.shape(array)[0] }, (_, n) => ({ text: bare(scene.label(array, 0, n)), under: String(store.value(array, [n])), place: { array, index: [n] }, key: `${array} ${n}`, lit: array === scene.array && n === scene.index[0] }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow } = scene;
  const list = windows(scene);
  const source = row(scene, list[0].operands.ids);
  const left = narrow ? 10 : 50;
  const right = width - left;
  const rows = [source, ...list.map(({ id }) => row(scene, id))];
  const each = placeWidth(rows, right - left, 120);
  const gap = Math.min(150, (height - 40) / rows.length);
  heading(pen, [left, 26], scene.say("window.ids"));
  const above = chips(pen, source, { x: left, y: 38, each, right });
  const made = list.map(({ id, settings }, k) => {
    const from = settings.offset ?? 0;
    const y = 38 + (k + 1) * gap;
    const title = scene.say(list.length > 1 ? `window.row_${Math.min(k, 1)}` : "window.row");
    heading(pen, [Math.max(left, Math.min(left + from * each, right - widthOf(title, { size: 13, bold: true }))), y - 12], title);
    const at = chips(pen, rows[k + 1], { x: left, y, each, right, from, part: scene.part(String(k)) });
    if (!k) wires(pen, at.map((x, i) => [above[i + from] ?? x, x]), { top: 92, bottom: y - 28, part: scene.part("0"), right, color: "line" });
    return { y, at, id };
  });
  if (made.length < 2) return;
  wires(pen, made[0].at.map((x, i) => [x, made[1].at[i]]), { top: made[0].y + 52, bottom: made[1].y - 3, part: scene.part("pairs"), right, color: "accent" });
}
