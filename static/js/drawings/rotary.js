// Rotary positions: a feature and its partner half a head further are an arrow on a dial. Each position turns it by its
// own angle; every pair of features has a speed of its own. The way back turns back.

import { bare } from "dom";
import { ease } from "scene";
import { fit, heading, shownOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return [{ name: "before", ms: 600, say: scene.say("rotary.say_before") },
    { name: "turn", ms: 2400, say: scene.say(scene.operation?.is_gradient ? "rotary.say_back" : "rotary.say_turn") }];
}

/** The arrows of the chosen head: of each position and pair where it points before and after. @param {Scene} scene */
function arrowsOf(scene) {
  return scene.once("arrows", () => {
    const { store, array, index: [head], operation } = scene;
    const x = scene.operand(operation?.is_gradient ? "d_out" : "x") ?? "";
    const [, T, width] = store.shape(array);
    const half = width / 2;
    const from = (/** @type {string} */ name, /** @type {number} */ t, /** @type {number} */ d) => (
      [store.value(name, [head, t, d]), store.value(name, [head, t, d + half])]);
    const rows = Array.from({ length: T }, (_, t) => Array.from({ length: half }, (_, d) => (
      { before: from(x, t, d), after: from(array, t, d), angle: scene.value("angle", [t, d]) })));
    return { rows, half, longest: Math.max(...rows.flat().map(({ before }) => Math.hypot(...before))) || 1 };
  });
}

/** @param {Scene} scene */
export function suits(scene) {
  return scene.store.shape(scene.array).length === 3 && ["out", "d_x"].includes(scene.operation?.target ?? "");
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { array, index, width, height, narrow, operation } = scene;
  const { rows, half, longest } = arrowsOf(scene);
  const label = narrow ? 40 : 70;
  const pad = narrow ? 6 : 24;
  const [top, below] = [50, 44];
  const least = narrow ? 26 : 34; // px that a dial takes at least
  const pairs = shownOf(half, (width - 2 * pad - label) / least, index[2] % half);
  const shown = shownOf(rows.length, (height - top - below) / least, index[1]);
  const side = Math.min(120, (width - 2 * pad - label) / pairs.length, (height - top - below) / shown.length);
  const left = Math.max(pad, (width - label - side * pairs.length) / 2) + label;
  const part = pairs.length < half || shown.length < rows.length ? scene.say("rotary.part", { pairs: pairs.length, all: half, n: shown.length, positions: rows.length }) : scene.say("rotary.note");
  heading(pen, [left - label, 18, width - left + label - pad], scene.say(operation?.is_gradient ? "rotary.back" : "rotary.title"), narrow ? "" : part);
  pairs.forEach((d, m) => pen.text(left + (m + 0.5) * side, top - 8, `${d}, ${d + half}`, { size: 11, align: "center", color: d === index[2] % half ? "accent" : "soft", bold: d === index[2] % half }));
  const turned = ease(scene.part("turn"));
  shown.forEach((t, n) => {
    const y = top + (n + 0.5) * side;
    pen.text(left - 6, y + 4, fit(bare(scene.label(array, 1, t)), label - 8, { size: 11 }), { size: 11, align: "right", color: t === index[1] ? "accent" : "soft", bold: t === index[1] });
    pairs.forEach((d, m) => dial(pen, scene, [left + (m + 0.5) * side, y, side * 0.46], { ...rows[t][d], longest, turned, t, d, half }));
  });
  if (turned === 1) tell(pen, scene, [left - label, top + shown.length * side + 24], rows[index[1]][index[2] % half]);
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {number[]} room middle and radius
 * @param {{ before: number[], after: number[], angle: number, longest: number, turned: number, t: number, d: number, half: number }} of
 */
function dial(pen, scene, [x, y, radius], { before, after, angle, longest, turned, t, d, half }) {
  const { array, index, operation } = scene;
  const lit = t === index[1] && d === index[2] % half;
  const round = Array.from({ length: 33 }, (_, i) => [x + radius * Math.cos(i * Math.PI / 16), y + radius * Math.sin(i * Math.PI / 16)]).flat();
  pen.line(round, { stroke: lit ? "accent" : "line", stroke_width: lit ? 2 : 1 });
  const start = Math.atan2(before[1], before[0]);
  const long = Math.hypot(...before) / longest * radius;
  const by = (operation?.is_gradient ? -angle : angle) * turned;
  // Several turns of a whole are not seen: the arc shows what is left of them.
  const seen = by % (2 * Math.PI);
  const steps = Math.max(1, Math.ceil(Math.abs(seen) * 8));
  const arc = Array.from({ length: steps + 1 }, (_, i) => start + seen * i / steps).flatMap((a) => [x + radius * Math.cos(a), y - radius * Math.sin(a)]);
  if (Math.abs(seen) > 0.02) pen.area([x, y, ...arc], { color: "tint" });
  pen.line([x, y, x + long * Math.cos(start), y - long * Math.sin(start)], { stroke: "soft", stroke_width: 1.5, dash: [3, 3] });
  // Where it points in the end is what was recorded; on the way there it is turned.
  const [a, b] = turned === 1 ? after : [Math.cos(start + by) * Math.hypot(...before), Math.sin(start + by) * Math.hypot(...before)];
  const tip = [x + a / longest * radius, y - b / longest * radius];
  pen.line([x, y, ...tip], { stroke: "accent", stroke_width: lit ? 3 : 2 });
  const place = { array, index: [index[0], t, lit ? index[2] : d] };
  pen.dot(tip[0], tip[1], lit ? 5 : 3, { color: "accent", key: `${array} ${place.index}`, place });
}

/**
 * The chosen pair in numbers.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {number[]} at
 * @param {{ before: number[], after: number[], angle: number }} pair
 */
function tell(pen, scene, [x, y], { before, after, angle }) {
  const digits = scene.narrow ? 2 : 3;
  const pair = (/** @type {number[]} */ two) => `(${two.map((value) => scene.number(value, digits)).join(", ")})`;
  const by = scene.say("rotary.by", { angle: scene.number(scene.operation?.is_gradient ? -angle : angle, digits) });
  pen.text(x, y, `${pair(before)} ${by} → ${pair(after)}`, { size: scene.narrow ? 11 : 12, mono: true, bold: true, color: "accent" });
}
