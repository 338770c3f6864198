// The receipt: what each parameter's step should change in the loss, added up, beside what the loss did.

import { ease, staggered } from "scene";
import { widthOf, wrap } from "pen";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** How much the loss changed: the difference of two losses, where the recording has one. @param {Scene} scene */
function changeOf(scene) {
  const { operations } = scene.store.outline;
  return Object.keys(operations).find((id) => operations[id].kind === "difference") ?? "";
}

/** @param {Scene} scene */
export function arrays(scene) {
  return [...scene.step.operations, ...(changeOf(scene) ? [changeOf(scene)] : [])];
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return [{ name: "parts", ms: 2600, say: scene.say("predicted_change.say_parts") }, { name: "came", ms: 800, say: scene.say("predicted_change.say_came") }];
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, store, step } = scene;
  const totals = step.operations.map((id) => store.value(id, []));
  const last = totals[totals.length - 1];
  const change = changeOf(scene);
  const came = change ? store.value(change, []) : NaN;
  const [left, right] = narrow ? [14, width - 14] : [60, width - 60];
  const [top, bottom] = [50, height - (narrow ? 64 : 56)];
  const low = Math.min(0, ...totals, Number.isFinite(came) ? came : 0);
  const high = Math.max(0, ...totals, Number.isFinite(came) ? came : 0);
  const Y = (/** @type {number} */ v) => top + (high - v) / ((high - low) || 1) * (bottom - top);
  const each = (right - left) / (totals.length + (change ? 2.5 : 0));
  heading(pen, [left, 20], scene.say(narrow ? "predicted_change.short_title" : "predicted_change.title", { n: totals.length }), narrow ? "" : scene.say("predicted_change.total", { value: scene.number(last, 4) }));
  pen.line([left, Y(0), right, Y(0)], { stroke: "soft", stroke_width: 1 });
  const largest = [...totals.keys()].sort((a, b) => Math.abs(totals[b] - (totals[b - 1] ?? 0)) - Math.abs(totals[a] - (totals[a - 1] ?? 0))).slice(0, narrow ? 2 : 4);
  let end = -Infinity;
  totals.forEach((total, k) => {
    const before = totals[k - 1] ?? 0;
    const come = ease(staggered(scene.part("parts"), k, totals.length));
    const id = step.operations[k];
    const x = left + k * each;
    pen.bar(x + each * 0.12, Y(before), Math.max(2, each * 0.76), (Y(total) - Y(before)) * come, { color: total < before ? "cool" : "warm", place: { array: id, index: [] }, key: id, stroke: id === scene.array ? "accent" : undefined, stroke_width: 2 });
    if (k < totals.length - 1) pen.line([x + each * 0.12, Y(total), x + each * 1.88, Y(total)], { stroke: "line", stroke_width: 1, alpha: come });
    if (!largest.includes(k)) return;
    const name = id.split(".").slice(-3).join(".");
    const text = `${name} ${scene.number(total - before, 2)}`;
    const y = (Y(total) + Y(before)) / 2 + 4;
    if (x + each + 6 + widthOf(text, { size: 11.5 }) > right - 2 * each || y < end) return;
    pen.text(x + each + 6, y, text, { size: 11.5, color: "soft", alpha: come });
    end = y + 13;
  });
  if (!change) return;
  const done = ease(scene.part("came"));
  pen.bar(right - each * 1.6, Y(0), each * 1.4, (Y(came) - Y(0)) * done, { color: "accent", place: { array: change, index: [] }, key: change });
  pen.line([left, Y(last), right, Y(last)], { stroke: "cool", stroke_width: 1, dash: [5, 4], alpha: 0.7 });
  const said = scene.say("predicted_change.came", { predicted: scene.number(last, 4), came: scene.number(came, 4) });
  const rows = wrap(said, right - left, { size: 13, bold: true }).length;
  pen.lines(left, height - 6 - 18.2 * (rows - 1), said, right - left, { size: 13, bold: true, alpha: done });
}
