// Three ways to choose from the same candidates: the number that was drawn, the largest, and the draw that PyTorch makes.

import { arraysOf, candidates, roundOf } from "candidates";
import { ease } from "scene";
import { fit, heading } from "shapes";
import { widthOf } from "pen";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return Boolean(roundOf(scene)) && scene.step.operations.length > 0;
}

/** @param {Scene} scene */
export function arrays(scene) {
  return [...arraysOf(scene), ...scene.step.operations, ...scene.step.arrays];
}

const WAYS = /** @type {const} */ (["drawn", "largest", "torch"]);

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return WAYS.map((name) => ({ name, ms: 800, say: scene.say(`greedy.say_${name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const round = roundOf(scene);
  if (!round) return;
  const { width, height, narrow, store, step } = scene;
  const list = candidates(scene, round);
  const taken = { drawn: round.outcome.token, largest: step.operations[0], torch: step.arrays[0] };
  const left = narrow ? 12 : 40;
  const top = 96;
  const rows = list.slice(0, Math.max(1, Math.floor((height - top - 16) / 30)));
  const each = Math.min(60, (height - top - 16) / rows.length);
  const names = narrow ? 52 : 110;
  const column = Math.min(150, (width - 2 * left) * (narrow ? 0.21 : 0.15));
  const long = width - 2 * left - names - 3 * column - (narrow ? 8 : 70);
  heading(pen, [left + names, 26, long], scene.say(narrow ? "greedy.short_chances" : "greedy.chances"), rows.length < list.length ? scene.say("part", { n: rows.length, all: list.length }) : "");
  WAYS.forEach((way, k) => {
    const x = width - left - (3 - k) * column;
    const array = taken[way];
    if (!array) return;
    const id = store.value(array, []);
    const row = rows.findIndex((one) => one.id === id);
    pen.lines(x + 4, 26, scene.say(`greedy.${narrow ? "short_" : ""}${way}`), column - 8, { size: 11.5, bold: true });
    pen.line([x, 16, x, top + rows.length * each], { stroke: "line" });
    const come = ease(scene.part(way));
    if (row < 0) { pen.text(x + column / 2, top - 8, fit(String(id), column - 8, { size: 12 }), { size: 12, align: "center", alpha: come, place: { array, index: [] } }); return; }
    const size = narrow ? 11.5 : 13;
    const text = fit(rows[row].name, column - 12, { size, bold: true });
    const w = Math.max(30, widthOf(text, { size, bold: true }) + 12);
    const y = 66 + (top + row * each + each * 0.18 - 66) * come;
    pen.bar(x + (column - w) / 2, y, w, Math.min(30, each * 0.62), { color: "glow", stroke: "accent", stroke_width: 2, radius: 7, text, size, bold: true, align: "center", alpha: come, place: { array, index: [] }, key: way });
  });
  rows.forEach(({ id, name, p, places }, row) => {
    const y = top + row * each;
    pen.text(left + names - 8, y + each * 0.6, fit(name, names - 10, { size: 13, mono: true }), { size: 13, mono: true, align: "right" });
    pen.bar(left + names, y + each * 0.18, Math.max(1, long * p), each * 0.6, { color: "warm", place: places.p, key: `share ${id}` });
    if (!narrow) pen.text(left + names + Math.max(1, long * p) + 8, y + each * 0.6, scene.number(p, 4), { size: 12, mono: true });
    pen.line([left, y + each, width - left, y + each], { stroke: "line", alpha: 0.6 });
  });
}
