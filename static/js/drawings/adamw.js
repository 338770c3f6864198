// AdamW: for every weight of one parameter the size of its gradient against the size of its step; and the chosen one,
// from gradient to moments to the step.

import { ease, staggered } from "scene";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

const MOST = 3000; // points

/** @param {Scene} scene */
export function suits(scene) {
  return scene.operation?.target === "after";
}

/** @param {Scene} scene */
export function arrays(scene) {
  return [...scene.step.operations, gradientOf(scene)].filter(Boolean);
}

/** The gradient that the moments were made from. @param {Scene} scene */
function gradientOf(scene) {
  return scene.step.operations.map((id) => scene.store.made(id)).find(({ operands }) => operands.gradient)?.operands.gradient ?? "";
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["axes", "points", "chosen"].map((name) => ({ name, ms: name === "points" ? 1600 : 800, say: scene.say(`adamw.say_${name}`) }));
}

/**
 * Size of the gradient and of the step of each weight that has one: all of them, or evenly spread ones.
 * @param {Scene} scene
 */
function pointsOf(scene) {
  return scene.once("points", () => {
    const { store, array } = scene;
    const [gradient, before] = [gradientOf(scene), scene.operand("before") ?? ""];
    const size = store.size(array);
    let moved = 0;
    for (let flat = 0; flat < size; flat++) if (store.flatValue(gradient, flat) !== 0) moved++;
    const every = Math.max(1, Math.ceil(moved / MOST));
    const list = [];
    const ofAll = { least: Infinity, most: 0, longest: 0 }; // so that whichever is chosen has its place
    let n = 0;
    for (let flat = 0; flat < size; flat++) {
      const g = Math.abs(store.flatValue(gradient, flat));
      if (!g) continue;
      const step = Math.abs(store.flatValue(array, flat) - store.flatValue(before, flat));
      ofAll.least = Math.min(ofAll.least, g);
      ofAll.most = Math.max(ofAll.most, g);
      ofAll.longest = Math.max(ofAll.longest, step);
      if (n++ % every === 0) list.push({ flat, g, step });
    }
    return { list, moved, still: size - moved, ...ofAll };
  });
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, store, array, index, operation } = scene;
  const { list, moved, still, least, most, longest } = pointsOf(scene);
  const say = (/** @type {string} */ key, values = {}) => scene.say(`adamw.${key}`, values);
  const left = narrow ? 16 : 60;
  const counts = { ...(list.length < moved && { sample: moved }), ...(still && { without: still }) };
  const said = Object.entries(counts).map(([key, n]) => say(key, { n: n.toLocaleString("en") }));
  const notes = narrow || !said.length ? said : [said.join(" · ")];
  const [top, bottom] = [46 + 15 * notes.length, height - (narrow ? 130 : 112)];
  const low = Math.floor(Math.min(-1, Math.log10(least)));
  const high = Math.ceil(Math.max(low + 1, moved ? Math.log10(most) : low));
  const lr = operation?.settings.lr ?? 0;
  const tallest = Math.max(lr * 1.25, longest);
  const X = (/** @type {number} */ g) => left + (Math.log10(g) - low) / (high - low) * (width - 2 * left);
  const Y = (/** @type {number} */ step) => bottom - step / tallest * (bottom - top);
  heading(pen, [left, 18], say(narrow ? "short_title" : "title", { n: list.length.toLocaleString("en") }));
  notes.forEach((note, i) => pen.text(left, 34 + 15 * i, note, { size: 11, color: "soft" }));
  const every = Math.ceil((high - low) / (narrow ? 4 : 10));
  for (let e = low; e <= high; e += every) {
    pen.line([X(10 ** e), bottom, X(10 ** e), bottom + 5], { stroke: "soft", stroke_width: 1 });
    pen.text(X(10 ** e), bottom + 18, `1e${e < 0 ? "−" : ""}${Math.abs(e)}`, { size: 11, color: "soft", align: e === low ? "left" : e + every > high ? "right" : "center" });
  }
  pen.line([left, bottom, width - left, bottom], { stroke: "soft", stroke_width: 1 });
  pen.text(width - left, bottom + 34, say("x"), { size: 11.5, color: "soft", align: "right" });
  pen.line([left, Y(lr), width - left, Y(lr)], { stroke: "accent", stroke_width: 1.5, dash: [6, 4] });
  pen.text(width - left, Y(lr) - 6, say("rate", { lr: scene.number(lr, 3) }), { size: 11.5, color: "accent", align: "right" });
  const decay = operation?.settings.weight_decay ?? 0;
  pen.text(left, top - 8, `${say("y")} · ${say(decay ? "decay" : "no_decay", { value: scene.number(decay, 3) })}`, { size: 11.5, color: "soft" });
  pen.line([left, top, left, bottom], { stroke: "soft", stroke_width: 1 });
  for (const step of narrow ? [] : [0, lr / 2, lr]) pen.text(left - 8, Y(step) + 4, scene.number(step, 2), { size: 11, color: "soft", align: "right" });
  list.forEach(({ flat, g, step }, i) => {
    const come = ease(staggered(scene.part("points"), i, list.length, list.length / 6));
    if (come > 0) pen.dot(X(g), bottom + (Y(step) - bottom) * come, 2.6, { color: "accent", alpha: 0.35, key: `point ${flat}` });
  });
  drawChosen(pen, scene, { X, Y, left, bottom, say });
  if (!list.length) pen.text(width / 2, (top + bottom) / 2, say("none"), { size: 13, align: "center", color: "soft" });
  if (!store.has(array) || !index) return;
}

/**
 * The chosen weight: from its gradient to its step, with numbers.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {{ X: (g: number) => number, Y: (step: number) => number, left: number, bottom: number, say: (key: string, values?: Record<string, unknown>) => string }} at
 */
function drawChosen(pen, scene, { X, Y, left, bottom, say }) {
  const { store, index, array, width } = scene;
  const g = store.value(gradientOf(scene), index);
  const before = store.value(scene.operand("before") ?? "", index);
  const after = store.value(array, index);
  pen.alpha = ease(scene.part("chosen"));
  if (g !== 0) pen.dot(X(Math.abs(g)), Y(Math.abs(after - before)), 7, { color: "warm", stroke: "ink", place: { array, index }, key: `${array} ${index}` });
  const [mHat, vHat] = ["m_hat", "v_hat"].map((name) => scene.value(name, index));
  const parts = [say("gradient", { value: scene.number(g, 3) }), say("ratio", { value: scene.number(mHat / (Math.sqrt(vHat) || 1), 3) }),
    say("step", { value: scene.number(after - before, 3) }), say("move", { before: scene.number(before, 4), after: scene.number(after, 4) })];
  pen.lines(left, bottom + 54, `[${index}]  ${parts.join("  →  ")}`, width - 2 * left, { size: 13, bold: true });
  pen.alpha = 1;
}
