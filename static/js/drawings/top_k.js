// Top-k: all logits as one density; a line falls where the k-th largest stands, and what lies left of it is out.

import { arraysOf, candidates, roundOf } from "candidates";
import { densityOfRow, drawDensity } from "density";
import { ease } from "scene";
import { fit, heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return Boolean(roundOf(scene));
}

export const arrays = arraysOf;

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["all", "cut", "kept"].map((name) => ({ name, ms: 900, say: scene.say(`top_k.say_${name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const round = roundOf(scene);
  if (!round) return;
  const { width, height, narrow, store } = scene;
  const list = candidates(scene, round);
  const { array } = list[0].places.scaled;
  const all = store.shape(array).at(-1) ?? 0;
  const left = narrow ? 12 : 50;
  const w = width - 2 * left;
  const cut = ease(scene.part("cut"));
  const kept = ease(scene.part("kept"));
  const tall = height * 0.46;
  heading(pen, [left, 18, w], scene.say("top_k.all", { n: all.toLocaleString("en") }));
  // Divided by one number, the logits lie as they lay: only the axis is another.
  const before = list[0].places.logit.array;
  const by = before === array ? 1 : store.made(array).settings.temperature ?? 1;
  const logits = densityOfRow(scene, before, [0]);
  const density = { ...logits, low: logits.low / by, high: logits.high / by };
  const { at, base } = drawDensity(pen, [left, 30, w, tall - 30], density, scene, { grow: ease(scene.part("all")), high: density.high + (density.high - density.low) * 0.03 });
  // Between the last that is kept and the next: the line stands at the last one.
  const edge = at(list[list.length - 1].scaled) - 5;
  pen.area([left, 34, edge, 34, edge, base, left, base], { color: "paper", alpha: 0.72 * cut });
  pen.line([edge, 34 + (1 - cut) * (base - 34), edge, base + 6], { stroke: "accent", stroke_width: 2.5, alpha: cut });
  const out = scene.say("top_k.out", { n: (all - list.length).toLocaleString("en") });
  pen.text(Math.max(left, edge - 10), 52, fit(out, Math.max(60, edge - left - 10), { size: 12 }), { size: 12, color: "soft", align: "right", alpha: cut });
  const rows = list.slice(0, Math.max(1, Math.floor((height - tall - 60) / 26)));
  const each = Math.min(46, (height - tall - 60) / rows.length);
  const names = narrow ? 70 : 110;
  const largest = Math.max(...list.map(({ scaled }) => Math.abs(scaled)), 1e-9);
  heading(pen, [left, tall + 34, w], scene.say("top_k.kept", { n: list.length }), rows.length < list.length ? scene.say("part", { n: rows.length, all: list.length }) : "");
  for (const one of list) pen.dot(at(one.scaled), base, 4, { color: "accent", place: one.places.scaled, key: `at ${one.id}` });
  rows.forEach(({ id, name, scaled, isChosen, places }, row) => {
    const y = tall + 44 + row * each;
    const [x, from] = [left + names, at(scaled)];
    const long = Math.max(1, Math.abs(scaled) / largest * (w - names - 70));
    pen.text(x - 8, y + each * 0.55, fit(name, names - 10, { size: 13, mono: true }), { size: 13, mono: true, align: "right", color: isChosen ? "accent" : "ink", bold: isChosen, alpha: kept });
    // Each comes down from where it stands on the line.
    pen.bar(from + (x - from) * kept, base + (y + each * 0.14 - base) * kept, 2 + (long - 2) * kept, each * 0.55, { color: scaled < 0 ? "cool" : "warm", place: places.scaled, key: `scaled ${id}`, alpha: kept > 0 ? 1 : 0 });
    pen.text(x + long + 8, y + each * 0.55, scene.number(scaled, 4), { size: 12, mono: true, alpha: kept });
  });
}
