// Back through a layer norm: the gradients of one position as dots, of which two things are taken off, for a shift and a
// stretch of the input change nothing; then they are divided by the spread, as the numbers were.

import { drawDots } from "dot-lines";
import { largestOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

const NAMES = ["come", "shifted", "stretched", "out"];

/** @param {Scene} scene */
export function suits(scene) {
  return scene.operation?.equations.at(-1)?.[0] === "d_x" && Boolean(scene.operand("mean")) && Boolean(scene.operand("weight"));
}

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return NAMES.map((name) => ({ name, ms: 800, say: scene.say(`layer_norm_backward.move.${name}`) }));
}

/**
 * @param {Scene} scene
 * @returns {import("dot-lines").Line[]}
 */
function linesOf(scene) {
  const { store, array } = scene;
  const lead = scene.index.slice(0, -1);
  const n = store.shape(array).at(-1) ?? 0;
  const each = (/** @type {(d: number) => number} */ of) => Array.from({ length: n }, (_, d) => of(d));
  const mean = scene.value("mean", lead);
  const rstd = scene.value("rstd", lead);
  const normalised = each((d) => (scene.value("x", [...lead, d]) - mean) * rstd);
  const come = each((d) => scene.value("d_out", [...lead, d]) * scene.value("weight", [d]));
  const shift = come.reduce((sum, g) => sum + g, 0) / n;
  const stretch = come.reduce((sum, g, d) => sum + g * normalised[d], 0) / n;
  const shifted = come.map((g) => g - shift);
  const stretched = shifted.map((g, d) => g - normalised[d] * stretch);
  const most = largestOf([...come, ...shifted, ...stretched]);
  const say = (/** @type {string} */ key, values = {}) => scene.say(`layer_norm_backward.${key}`, values);
  const note = (/** @type {string} */ key, /** @type {number} */ value) => say(key, { value: scene.number(value, 3) });
  const token = lead.length ? scene.label(array, lead.length - 1, lead[lead.length - 1]) : "";
  const out = each((d) => store.value(array, [...lead, d]));
  return [
    { name: "come", title: say("come", { token }), values: come, most, note: note("mean", shift) },
    { name: "shifted", title: say("shifted"), values: shifted, most, note: note("along", stretch) },
    { name: "stretched", title: say("stretched"), values: stretched, most, note: "" },
    { name: "out", title: say("out"), values: out, most: largestOf(out), note: note("times", rstd), array },
  ];
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  drawDots(pen, scene, scene.once("lines", () => linesOf(scene)), { lead: scene.index.slice(0, -1), chosen: scene.index.at(-1) ?? -1 });
}
