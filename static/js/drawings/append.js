// One id more: what was there, and the new one at the end.

import { chips, placeWidth, wires } from "chips";
import { bare } from "dom";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return scene.operation?.kind === "append";
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["before", "new", "after"].map((name) => ({ name, ms: 800, say: scene.say(`append.say_${name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, store, array } = scene;
  const [before, token] = [scene.operand("before") ?? "", scene.operand("token") ?? ""];
  const left = narrow ? 10 : 50;
  const right = width - left;
  const chip = (/** @type {string} */ name, /** @type {number} */ n) => ({ text: bare(scene.label(name, 0, n)), under: String(store.value(name, [n])), place: { array: name, index: [n] }, key: `${name} ${n}` });
  const count = store.shape(array)[0];
  const first = Math.max(0, count - Math.max(2, Math.floor((right - left) / 46) - 1)); // of a long sequence the end
  const old = Array.from({ length: store.shape(before)[0] - first }, (_, n) => chip(before, first + n));
  const all = Array.from({ length: count - first }, (_, n) => ({ ...chip(array, first + n), lit: first + n === count - 1, color: /** @type {import("pen").Color} */ (first + n === count - 1 ? "glow" : "cell") }));
  const each = placeWidth([old, all], right - left, 130);
  const y = [60, 60 + Math.min(190, height * 0.42)];
  heading(pen, [left, y[0] - 14], scene.say("append.before"), first ? scene.say("append.left", { n: first }) : "");
  const a = chips(pen, old, { x: left, y: y[0], each, right, part: scene.part("before") });
  const fresh = { ...all[all.length - 1], place: { array: token, index: [] }, key: "new" };
  const b = chips(pen, [fresh], { x: left, y: y[0], each, right, from: old.length + 0.4, part: scene.part("new") });
  if (left + (old.length + 1.4) * each < right) pen.text(left + (old.length + 0.2) * each, y[0] + 22, "+", { size: 20, color: "soft", align: "center", alpha: scene.part("new") });
  heading(pen, [left, y[1] - 14], scene.say("append.after", { n: count }));
  const c = chips(pen, all, { x: left, y: y[1], each, right, part: scene.part("after") });
  wires(pen, [...a, ...b].map((x, i) => [x, c[i]]), { top: y[0] + 54, bottom: y[1] - 32, part: scene.part("after"), right });
}
