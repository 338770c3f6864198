// Dropout: each cell has a random number, those above 1 − p go out, the others are scaled.

import { ease } from "scene";
import { fit, grid, heading, shownOf, withLast } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen @typedef {import("shapes").Room} Room */

/** @param {Scene} scene */
export function suits(scene) {
  return !scene.operation?.is_gradient && scene.index.length >= 2;
}

/** @param {Scene} scene */
const isMask = (scene) => scene.operation?.equations.at(-1)?.[0] === "mask";

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  const names = isMask(scene) ? ["draw", "compare", "rest"] : ["draw", "out", "scale"];
  return names.map((name) => ({ name, ms: 700, say: scene.say(`dropout.move.${name}`, { p: scene.operation?.settings.p }) }));
}

/** The mask's own step knows the random numbers. @param {Scene} scene */
const maskOf = (scene) => (isMask(scene) ? scene.array : scene.operand("mask") ?? "");

/** @param {Scene} scene */
export function arrays(scene) {
  const mask = scene.store.operation(maskOf(scene));
  return mask ? Object.values(mask.operands) : [];
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { array, index, store, width, height, narrow } = scene;
  const mask = maskOf(scene);
  const p = scene.operation?.settings.p ?? store.operation(mask)?.settings.p ?? 0;
  const [m, n] = store.shape(array).slice(-2);
  const pad = narrow ? 8 : 24;
  const x = scene.operand("x");
  const rulerHeight = 104;
  const count = x ? 2 : 1;
  const gap = 28;
  const room = (height - rulerHeight - 46 - (count - 1) * gap) / count;
  const rows = shownOf(m, room / 6, index.at(-2) ?? 0);
  const columns = shownOf(n, (width - 2 * pad - 46) / 5, index.at(-1) ?? 0);
  const folded = rows.length < m || columns.length < n ? scene.say("folded", { shown: rows.length * columns.length, all: m * n }) : "";
  const how = { lead: index.slice(0, -2), rows, columns, chosen: index, tall: Math.min(34, room / rows.length) };
  const kept = (/** @type {number} */ i, /** @type {number} */ j) => store.value(mask, [...how.lead, i, j]) > 0;
  const used = Math.min(room, how.tall * rows.length);
  let y = 30;
  if (x) {
    heading(pen, [pad, y - 10, width - 2 * pad], scene.say("dropout.before"), folded);
    grid(pen, scene, { x: pad, y, w: width - 2 * pad, h: room }, { array: x, ...how });
    y += used + gap;
  }
  ruler(pen, scene, { x: pad + (narrow ? 4 : 46), y: y + 4, w: width - 2 * pad - (narrow ? 8 : 46), h: rulerHeight - 20 }, p, columns);
  y += rulerHeight + 10;
  heading(pen, [pad, y - 10, width - 2 * pad], scene.say(x ? "dropout.after" : "dropout.mask", { scale: scene.number(1 / (1 - p), 4), p }));
  const out = ease(scene.part(isMask(scene) ? "compare" : "out"));
  const scale = ease(scene.part(isMask(scene) ? "rest" : "scale"));
  const at = grid(pen, scene, { x: pad, y, w: width - 2 * pad, h: room }, { array, ...how,
    alpha: (i, j) => (kept(i, j) ? 0.35 + 0.65 * scale : 1 - 0.85 * out) });
  rows.forEach((i, a) => columns.forEach((j, b) => {
    const cell = at(a, b);
    if (kept(i, j) || out === 0 || cell.w < 9) return;
    const r = Math.min(5, cell.w / 4, cell.h / 4);
    const [cx, cy] = [cell.x + cell.w - r - 4, cell.y + r + 4];
    pen.line([cx - r, cy - r, cx + r, cy + r], { stroke: "soft", alpha: out });
    pen.line([cx - r, cy + r, cx + r, cy - r], { stroke: "soft", alpha: out });
  }));
}

/**
 * The random numbers of the chosen row, from 0 to 1, and where 1 − p lies.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Room} room
 * @param {number} p
 * @param {number[]} columns
 */
function ruler(pen, scene, { x, y, w, h }, p, columns) {
  const { index, store } = scene;
  const mask = maskOf(scene);
  const random = store.operation(mask) ? store.computation(mask) : null;
  const line = y + h * 0.6;
  const edge = x + w * (1 - p);
  heading(pen, [x, y + 4, w], scene.say("dropout.random"));
  pen.line([x, line, x + w, line], { stroke: "soft" });
  pen.bar(edge, line - 14, w * p, 28, { color: "tint", radius: 0 });
  pen.line([edge, line - 18, edge, line + 18], { stroke: "accent", dash: [3, 3] });
  pen.text(x, line + 30, "0", { size: 11, color: "soft" });
  pen.text(x + w, line + 30, "1", { size: 11, color: "soft", align: "right" });
  const said = fit(`1 − p = ${scene.number(1 - p, 3)}`, w - 40, { size: 11 });
  pen.text(Math.min(edge, x + w - 50), line + 30, said, { size: 11, align: "center", color: "accent" });
  const fall = ease(scene.part("draw"));
  for (const j of columns) {
    const at = withLast(index, j);
    const u = random ? random.read("u", at) : NaN;
    if (!Number.isFinite(u)) continue;
    const lit = j === index.at(-1);
    const isOut = u >= 1 - p;
    pen.dot(x + w * u, line - 30 * (1 - fall), lit ? 7 : columns.length > 64 ? 3 : 5, { color: lit ? "accent" : isOut ? "soft" : "warm", stroke: "paper", alpha: fall, place: { array: mask, index: at } });
  }
}
