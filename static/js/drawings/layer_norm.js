// Layer norm of one position: its numbers as dots on a line, shifted until their mean is zero, stretched until their
// spread is one, then scaled and shifted by what was learned.

import { heading, sheet } from "shapes";
import { ease } from "scene";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

const STAGES = ["come", "mean", "spread", "learned"];

/** @param {Scene} scene */
export function suits(scene) {
  return scene.operation?.target === "out";
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return STAGES.map((name) => ({ name, ms: 900, say: scene.say(`layer_norm.say_${name}`) }));
}

/**
 * The numbers of the chosen row at each stage.
 * @param {Scene} scene
 */
function stages(scene) {
  return scene.once("stages", () => {
    const row = scene.index.slice(0, -1);
    const length = scene.store.shape(scene.array).at(-1) ?? 0;
    const x = scene.operand("x") ?? "";
    const numbers = Array.from({ length }, (_, d) => scene.store.value(x, [...row, d]));
    const mean = scene.value("mean", row);
    const rstd = scene.value("rstd", row);
    return [numbers, numbers.map((v) => v - mean), numbers.map((v) => (v - mean) * rstd),
      numbers.map((_, d) => scene.value("out", [...row, d]))].map((list) => ({ list, middle: average(list), spread: Math.sqrt(average(list.map((v) => (v - average(list)) ** 2))) }));
  });
}

/** @param {number[]} list */
function average(list) {
  return list.reduce((a, b) => a + b, 0) / list.length;
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, index, array } = scene;
  const found = stages(scene);
  const left = narrow ? 12 : 50;
  const bottom = narrow ? 0 : Math.min(150, height * 0.24);
  const tall = (height - bottom - 10) / 4;
  const row = index.slice(0, -1);
  found.forEach(({ list, middle, spread }, s) => {
    const come = ease(scene.part(STAGES[s]));
    if (come <= 0) return;
    const y = 18 + s * tall;
    const before = found[Math.max(0, s - 1)].list;
    pen.alpha = come;
    heading(pen, left, y, scene.say(`layer_norm.${STAGES[s]}`), scene.say("layer_norm.note", { mean: scene.number(middle, 2), spread: scene.number(spread, 3) }));
    const line = y + tall * 0.55;
    const axis = scale(found, s, width, left);
    const was = scale(found, Math.max(0, s - 1), width, left);
    pen.line([left, line, width - left, line], { stroke: "line", stroke_width: 1.5 });
    pen.line([axis(0), line - 12, axis(0), line + 12], { stroke: "soft", stroke_width: 1 });
    pen.text(axis(0), line + 25, "0", { size: 11, color: "soft", align: "center" });
    pen.line([axis(middle), line - tall * 0.26, axis(middle), line + 14], { stroke: "accent", stroke_width: 1.5, dash: [4, 3] });
    list.forEach((value, d) => {
      const x = was(before[d]) + (axis(value) - was(before[d])) * come;
      const isLit = d === index.at(-1);
      const place = s === 0 ? { array: scene.operand("x") ?? "", index: [...row, d] } : s === 3 ? { array, index: [...row, d] } : undefined;
      pen.dot(x, line, isLit ? 8 : narrow ? 5 : 6.5, { color: isLit ? "accent" : value < 0 ? "cool" : "warm", stroke: "paper", place, key: `dot ${s} ${d}` });
    });
    pen.alpha = 1;
  });
  if (bottom) sheet(pen, [left, height - bottom + 14, width - 2 * left, bottom - 20], scene, array, index, 2);
}

/**
 * One scale for the first two lines, one for the last two.
 * @param {ReturnType<typeof stages>} found
 * @param {number} s
 * @param {number} width
 * @param {number} left
 */
function scale(found, s, width, left) {
  const pair = s < 2 ? found.slice(0, 2) : found.slice(2);
  const most = Math.max(1e-30, ...pair.flatMap(({ list }) => list.map(Math.abs)));
  return (/** @type {number} */ value) => width / 2 + value / most * (width / 2 - left - 12);
}
