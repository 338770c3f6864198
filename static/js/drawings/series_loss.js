// All updates: the loss falls, and the right next tokens become likely; one update is looked at.

import { axis, curve } from "curve";
import { bare } from "dom";
import { ease } from "scene";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

const COLORS = /** @type {const} */ (["query", "key", "value", "weight", "gradient", "warm", "cool"]);

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return [{ name: "loss", ms: 3000, say: scene.say("series_loss.say_loss") }, { name: "targets", ms: 2000, say: scene.say("series_loss.say_targets") }];
}

/** @param {Scene} scene */
export function arrays(scene) {
  return scene.step.arrays;
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, store, step, index } = scene;
  const [loss, probability] = step.arrays;
  const n = store.shape(loss)[0];
  const at = Math.min(index[0] ?? n - 1, n - 1);
  const [left, right] = narrow ? [40, width - 12] : [70, width - 120];
  const middle = probability ? height * 0.54 : height - 40;
  const X = (/** @type {number} */ u) => left + (n > 1 ? u / (n - 1) : 0.5) * (right - left);
  const values = Array.from({ length: n }, (_, u) => store.value(loss, [u]));
  const most = Math.max(...values.filter(Number.isFinite), 1e-9);
  heading(pen, [left, 18], scene.say("series_loss.loss"), scene.say("series_loss.at", { n: at + 1, value: scene.number(values[at], 4) }));
  curve(pen, scene, { values, X, Y: (v) => middle - 14 - v / most * (middle - 52), part: ease(scene.part("loss")), color: "wrong", array: loss, places: (u) => [u] });
  axis(pen, [left, right], middle - 14, `${0}`, scene.number(most, 3), 38);
  pen.line([X(at), 28, X(at), height - 34], { stroke: "accent", stroke_width: 1.5, dash: [4, 4] });
  if (probability) targets(pen, scene, { probability, X, at, left, right, top: middle + 26, bottom: height - 42 });
  pen.text(left, height - 12, scene.say("series_loss.update", { n: 1 }), { size: 11, color: "soft" });
  pen.text(right, height - 12, scene.say("series_loss.update", { n }), { size: 11, color: "soft", align: "right" });
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {{ probability: string, X: (u: number) => number, at: number, left: number, right: number, top: number, bottom: number }} box
 */
function targets(pen, scene, { probability, X, at, left, right, top, bottom }) {
  const { store, narrow } = scene;
  const [n, positions] = store.shape(probability);
  heading(pen, [left, top - 6], scene.say("series_loss.targets"));
  axis(pen, [left, right], bottom, "0", "1", top + 8);
  const ends = Array.from({ length: Math.min(positions, COLORS.length) }, (_, t) => ({ t, y: bottom - store.value(probability, [at, t]) * (bottom - top - 8) })).sort((a, b) => a.y - b.y);
  ends.forEach((end, i) => { end.y = Math.max(end.y, i ? ends[i - 1].y + 14 : end.y); });
  for (const { t, y } of ends) {
    const values = Array.from({ length: n }, (_, u) => store.value(probability, [u, t]));
    curve(pen, scene, { values, X, Y: (v) => bottom - v * (bottom - top - 8), part: ease(scene.part("targets")), color: COLORS[t], array: probability, places: (u) => [u, t] });
    if (!narrow && y < bottom + 30) pen.text(right + 10, y + 4, `${bare(scene.label(probability, 1, t))} → ${scene.number(store.value(probability, [at, t]), 3)}`, { size: 12, color: COLORS[t] });
  }
  if (positions > COLORS.length) pen.text(right, top - 6, scene.say("part", { n: COLORS.length, all: positions }), { size: 11, color: "soft", align: "right" });
}
