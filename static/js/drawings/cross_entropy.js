// Cross-entropy over the whole vocabulary: all logits of a position as one density, the target's place in it, and the
// distance from there to the level of all of them together, which is the loss.

import { bare } from "dom";
import { densityOfRow, drawDensity, flag } from "density";
import { ease } from "scene";
import { widthOf } from "pen";
import { bars, heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  const { operation, store } = scene;
  return Boolean(operation) && scene.index.length === 1 && Boolean(logitsOf(scene)) && store.has(logitsOf(scene));
}

/** The logits, whichever target is looked at. @param {Scene} scene */
function logitsOf(scene) {
  return siblings(scene).map(({ operands }) => operands.logits).find(Boolean) ?? "";
}

/** The operations of the step, by what they make. @param {Scene} scene */
function siblings(scene) {
  return scene.step.operations.map((id) => scene.store.made(id));
}

/**
 * @param {Scene} scene
 * @param {string} target
 */
function made(scene, target) {
  return siblings(scene).find((one) => one.target === target)?.id ?? "";
}

/** @param {Scene} scene */
export function arrays(scene) {
  return [...scene.step.operations, ...siblings(scene).flatMap(({ operands }) => Object.values(operands))];
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["logits", "target", "all", "gap", "each"].map((name) => ({ name, ms: 800, say: scene.say(`cross_entropy.say_${name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, index, store } = scene;
  const [t] = index;
  const logits = logitsOf(scene);
  const length = store.shape(logits).at(-1) ?? 0;
  const left = narrow ? 12 : 50;
  const right = width - left;
  const level = store.value(made(scene, "log_sum_exp"), [t]);
  const target = store.value(made(scene, "target_logit"), [t]);
  const targets = siblings(scene).map(({ operands }) => operands.targets).find(Boolean) ?? "";
  const id = targets ? store.value(targets, [t]) : 0;
  const density = densityOfRow(scene, logits, [t]);
  const high = Math.max(level, density.high);
  const low = Math.min(density.low, target);
  const tall = height * (narrow ? 0.46 : 0.5);
  const say = (/** @type {string} */ key, values = {}) => scene.say(`cross_entropy.${key}`, values);
  heading(pen, [left, 18], say(narrow ? "short_title" : "title", { n: length.toLocaleString("en"), label: bare(scene.label(logits, 0, t)) }));
  const line = drawDensity(pen, [left, 78, right - left, tall - 78], density, scene, { grow: ease(scene.part("logits")), low, high: high + (high - low) * 0.02 });
  pen.alpha = ease(scene.part("target"));
  const name = bare(store.labels(logits, 1)?.[id] ?? String(id));
  flag(pen, line, target, say("target", { label: name, value: scene.number(target, 3) }), { y: 62, color: "accent", left, right, place: { array: logits, index: [t, id] }, key: `${logits} ${[t, id]}` });
  pen.alpha = ease(scene.part("all"));
  flag(pen, line, level, say("all", { value: scene.number(level, 4) }), { y: 40, color: "ink", left, right, place: { array: made(scene, "log_sum_exp"), index: [t] } });
  const gap = ease(scene.part("gap"));
  pen.alpha = gap;
  const loss = store.value(made(scene, "out"), [t]);
  const y = line.base + 34;
  const from = line.at(target);
  pen.line([from, y, from + (line.at(level) - from) * gap, y], { stroke: "wrong", stroke_width: 5 });
  const text = say(narrow ? "short_gap" : "gap", { loss: scene.number(loss, 4) });
  const half = widthOf(text, { size: 14, bold: true }) / 2;
  const middle = Math.max(left + half, Math.min(right - half, (from + line.at(level)) / 2));
  pen.text(middle, y + 20, text, { size: 14, bold: true, color: "wrong", align: "center" });
  pen.alpha = ease(scene.part("each"));
  drawEach(pen, scene, [left, y + 44, right - left, height - y - 50], made(scene, "out"), length);
  pen.alpha = 1;
}

/**
 * The losses of all positions, with the yardstick of guessing.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {[number, number, number, number]} box
 * @param {string} array
 * @param {number} length of the vocabulary
 */
function drawEach(pen, scene, [x, y, width, height], array, length) {
  if (height < 80) return;
  const { store } = scene;
  const n = Math.min(store.shape(array)[0], Math.floor(width / 34));
  const guess = Math.log(length);
  const losses = Array.from({ length: n }, (_, i) => store.value(array, [i]));
  const largest = Math.max(guess, ...losses.filter(Number.isFinite));
  heading(pen, [x, y + 8], scene.say("cross_entropy.each"), scene.say("cross_entropy.guess", { n: length.toLocaleString("en"), value: scene.number(guess, 4) }));
  const room = { x, y: y + 12, w: Math.min(width * 0.7, n * 96), h: height - 12 };
  const { top, tall } = bars(pen, scene, room, losses.map((value, i) => ({ value, label: bare(scene.label(array, 0, i)), place: { array, index: [i] }, key: `${array} ${i}`, lit: i === scene.index[0], color: /** @type {const} */ ("wrong") })), largest);
  const line = top + tall * (1 - guess / largest);
  pen.line([x, line, x + room.w, line], { stroke: "soft", stroke_width: 1.5, dash: [5, 4] });
  pen.text(x + room.w + 8, line + 4, `ln ${length.toLocaleString("en")}`, { size: 11.5, color: "soft" });
}
