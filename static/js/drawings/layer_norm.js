// Layer norm: the numbers of one position as dots on a line, whose mean is taken off and whose spread becomes one.

import { drawDots } from "dot-lines";
import { largestOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */
/** @typedef {import("dot-lines").Line} Line */

const MOVES = { mean: ["come"], rstd: ["come", "centred", "divided"], out: ["come", "centred", "divided", "scaled"] };

/** @param {Scene} scene */
const targetOf = (scene) => /** @type {"mean" | "rstd" | "out"} */ (scene.operation?.equations.at(-1)?.[0] ?? "out");

/** @param {Scene} scene */
export function suits(scene) {
  return Boolean(scene.operand("x")) && targetOf(scene) in MOVES && !scene.operation?.is_gradient;
}

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return MOVES[targetOf(scene)].map((name) => ({ name, ms: 800, say: scene.say(`layer_norm.move.${name}`) }));
}

/** The vector that the chosen number belongs to. @param {Scene} scene */
function vector(scene) {
  const out = targetOf(scene) === "out";
  const x = scene.operand("x") ?? "";
  const lead = out ? scene.index.slice(0, -1) : scene.index;
  const n = scene.store.shape(x).at(-1) ?? 0;
  return { x, lead, n, chosen: out ? scene.index.at(-1) ?? -1 : -1 };
}

/**
 * What stands on each line; the statistics are worked out from the numbers themselves.
 * @param {Scene} scene
 * @returns {Line[]}
 */
function linesOf(scene) {
  const { x, lead, n } = vector(scene);
  const { store, operation } = scene;
  const values = Array.from({ length: n }, (_, d) => store.value(x, [...lead, d]));
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const centred = values.map((value) => value - mean);
  const spread = Math.sqrt(centred.reduce((sum, value) => sum + value * value, 0) / n);
  const target = targetOf(scene);
  const held = scene.operand("rstd");
  const rstd = held ? store.value(held, lead) : 1 / Math.sqrt(spread * spread + (operation?.settings.eps ?? 0));
  const note = (/** @type {number} */ m, /** @type {number} */ s) => scene.say("layer_norm.note", { mean: scene.number(m, 3), spread: scene.number(s, 3) });
  /** @type {Omit<Line, "title" | "most">[]} */
  const lines = [{ name: "come", values, note: note(mean, spread), array: x }];
  if (target === "mean") return titled(scene, lines);
  lines.push({ name: "centred", values: centred, note: note(0, spread) });
  lines.push({ name: "divided", values: centred.map((value) => value * rstd), note: note(0, spread * rstd) });
  if (target !== "out") return titled(scene, lines);
  const out = Array.from({ length: n }, (_, d) => store.value(scene.array, [...lead, d]));
  const middle = out.reduce((sum, value) => sum + value, 0) / n;
  lines.push({ name: "scaled", values: out, array: scene.array,
    note: note(Math.abs(middle) < 1e-6 ? 0 : middle, Math.sqrt(out.reduce((sum, value) => sum + (value - middle) ** 2, 0) / n)) });
  return titled(scene, lines);
}

/**
 * The first two lines have one scale, and so have the others.
 * @param {Scene} scene
 * @param {Omit<Line, "title" | "most">[]} lines
 * @returns {Line[]}
 */
function titled(scene, lines) {
  const { x, lead, n } = vector(scene);
  const token = lead.length ? scene.label(x, lead.length - 1, lead[lead.length - 1]) : "";
  const most = [lines.slice(0, 2), lines.slice(2)].map((part) => largestOf(part.flatMap(({ values }) => values)));
  return lines.map((line, i) => ({ ...line, title: scene.say(`layer_norm.${line.name}`, { n, token }), most: most[i < 2 ? 0 : 1] }));
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { lead, chosen } = vector(scene);
  drawDots(pen, scene, scene.once("lines", () => linesOf(scene)), { lead, chosen });
}
