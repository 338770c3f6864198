// The causal mask: −∞ drops onto every score of a later position; what is left is a triangle.

import { ease, staggered } from "scene";
import { grid, heading, shownOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return !scene.operation?.is_gradient && scene.index.length === 3;
}

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return [["scores", 500], ["drop", 1200], ["left", 500]].map(([name, ms]) => ({ name: String(name), ms: Number(ms), say: scene.say(`causal_mask.move.${name}`) }));
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { array, index, store, width, height, narrow } = scene;
  const scores = scene.operand("scores") ?? "";
  const [m, n] = store.shape(array).slice(-2);
  const pad = narrow ? 8 : 24;
  const label = narrow ? 46 : 64;
  const top = 66;
  const rows = shownOf(m, (height - top - 40) / 5, index[1]);
  const columns = shownOf(n, (width - 2 * pad - label) / 5, index[2]);
  const ch = Math.min(64, (height - top - 40) / rows.length);
  const cw = Math.min(110, (width - 2 * pad - label) / columns.length);
  const x = Math.max(pad, (width - label - cw * columns.length) / 2);
  const w = width - pad - x;
  const folded = rows.length < m || columns.length < n ? scene.say("folded", { shown: rows.length * columns.length, all: m * n }) : "";
  heading(pen, [x, 20, w], scene.say("causal_mask.title"), folded);
  const how = { lead: index.slice(0, 1), rows, columns, chosen: index, label, tall: ch, wide: cw };
  const room = { x, y: top, w: label + cw * columns.length, h: ch * rows.length };
  const masked = (/** @type {number} */ i, /** @type {number} */ j) => store.value(array, [index[0], i, j]) === -Infinity;
  const dropped = (/** @type {number} */ j) => ease(staggered(scene.part("drop"), columns.indexOf(j), columns.length, 3));
  const at = grid(pen, scene, room, { ...how, array: scores, alpha: (i, j) => (masked(i, j) ? 1 - dropped(j) : 1) });
  const sparse = Math.ceil(26 / cw);
  columns.forEach((j, b) => {
    if (b % sparse === 0) pen.text(at(0, b).x + cw / 2, top - 8, scene.label(array, 2, j), { size: 11, align: "center", color: j === index[2] ? "accent" : "soft", bold: j === index[2] });
    rows.forEach((i, a) => {
      if (!masked(i, j) || dropped(j) === 0) return;
      const cell = at(a, b);
      const lit = i === index[1] && j === index[2];
      pen.cell(cell.x, cell.y - (1 - dropped(j)) * 60, cw, ch, -Infinity, { largest: 1, text: cw >= 20 && ch >= 14 ? "−∞" : "", lit, alpha: dropped(j),
        key: `${array} ${[index[0], i, j]}`, place: { array, index: [index[0], i, j] } });
    });
  });
  // The stairs between past and future.
  const stairs = rows.flatMap((i, a) => {
    const end = columns.filter((j) => !masked(i, j)).length;
    return [at(a, end).x, at(a, 0).y, at(a, end).x, at(a, 0).y + ch];
  });
  pen.line(stairs, { stroke: "ink", stroke_width: 2, alpha: scene.part("left") });
  const y = top + ch * rows.length + 20;
  pen.lines(x, y, scene.say("causal_mask.left"), w, { size: 12, color: "soft", alpha: scene.part("left") });
}
