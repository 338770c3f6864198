// The drawing of a function of one value: dots fall from the axis onto its curve.

import { ease, staggered } from "scene";
import { fit, heading, largestOf, withLast } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return [{ name: "stand", ms: 400, say: scene.say("activation.move.stand") }, { name: "curve", ms: 700, say: scene.say("activation.move.curve") },
    { name: "fall", ms: 1200, say: scene.say("activation.move.fall") }];
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {(x: number) => number} value the function
 */
export function drawActivation(pen, scene, value) {
  const { array, index, store, width, height, narrow } = scene;
  const x = scene.operand("x") ?? "";
  const n = store.shape(array).at(-1) ?? 1;
  const xs = scene.once("xs", () => Array.from({ length: n }, (_, k) => store.value(x, withLast(index, k))));
  const pad = narrow ? 12 : 36;
  const most = (largestOf(xs) || 1) * 1.08;
  const samples = Array.from({ length: 121 }, (_, i) => -most + i * most / 60);
  const curve = samples.map(value);
  const [low, high] = [Math.min(0, ...curve), Math.max(0, ...curve)];
  const [top, bottom] = [44, height - (narrow ? 32 : 40)];
  const sx = (width - 2 * pad) / (2 * most);
  const sy = (bottom - top) / (high - low);
  const at = (/** @type {number} */ a, /** @type {number} */ b) => [width / 2 + a * sx, top + (high - b) * sy];
  const zero = at(0, 0)[1];
  const token = index.length > 1 ? scene.label(array, index.length - 2, index[index.length - 2]) : "";
  heading(pen, [pad, 20, width - 2 * pad], scene.say("activation.title", { n, token }), scene.say("activation.hint"));
  pen.line([pad, zero, width - pad, zero]);
  pen.line([width / 2, top, width / 2, bottom]);
  for (const end of [-most, most]) pen.text(end < 0 ? pad : width - pad, zero + 15, scene.number(end, 2), { size: 11, color: "soft", align: end < 0 ? "left" : "right" });
  // The thin line: max(0, x), cut off where the picture ends.
  const end = Math.min(most, high);
  pen.line([...at(-most, 0), ...at(0, 0), ...at(end, end)], { stroke: "soft", stroke_width: 1, dash: [4, 4] });
  const relu = fit("max(0, x)", 90, { size: 11 });
  pen.text(at(end, end)[0] - 8, at(end, end)[1] + 10, relu, { size: 11, color: "soft", align: "right" });
  const drawn = ease(scene.part("curve"));
  const upto = Math.max(2, Math.round(drawn * samples.length));
  if (drawn > 0) pen.line(samples.slice(0, upto).flatMap((a, i) => at(a, curve[i])), { stroke: "ink", stroke_width: 2 });
  // The chosen one last, over all others.
  const order = [...xs.keys()].sort((a, b) => Number(a === index.at(-1)) - Number(b === index.at(-1)));
  for (const k of order) {
    const a = xs[k];
    const lit = k === index.at(-1);
    const part = ease(staggered(scene.part("fall"), k, n, Math.max(4, n / 4)));
    const [px, py] = at(a, value(a) * part);
    if (part > 0) pen.line([px, zero, px, py], { stroke: lit ? "accent" : "line", stroke_width: 1 });
    const made = part === 1;
    const place = { array: made ? array : x, index: withLast(index, k) };
    pen.dot(px, py, lit ? 7 : n > 200 ? 2.5 : narrow ? 3.5 : 5, { strength: lit ? undefined : a, stroke: "paper", key: `${place.array} ${place.index}`, place });
  }
  const k = index.at(-1) ?? 0;
  if (scene.part("fall") === 1) {
    const text = `${scene.number(xs[k], 3)} → ${scene.number(store.value(array, index), 3)}`;
    // The curve leaves the lower right and the upper left free.
    const isRight = xs[k] > 0;
    pen.text(isRight ? width - pad : pad, zero + (isRight ? 38 : -12), text, { size: 12, mono: true, bold: true, color: "accent", align: isRight ? "right" : "left" });
  }
}
