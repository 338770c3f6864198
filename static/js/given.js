// The picture of an array that nothing made: the chosen layer of it, as cells.

import { arrange, HEAD, offset } from "arrange";
import { drawBreaks, drawHeads, widestLabel } from "box-labels";
import { indexAt } from "boxes";
import { drawLegend, LEGEND } from "legend";
import { axis, curve } from "curve";
import { TIMES } from "choice";
import { bare } from "dom";
import { widthOf } from "pen";
import { place } from "placement";
import { fit, grid, heading, shownOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("placement").Box} Box */

/**
 * An array that nothing made: the chosen layer of it, as cells; of one that runs over a training, below it the way of
 * the chosen number.
 * @param {import("pen").Pen} pen
 * @param {Scene} scene
 */
export function drawGiven(pen, scene) {
  const { store, array } = scene;
  if (!array || !store.has(array)) return;
  const { axes, shape } = store.array(array);
  if (TIMES.includes(axes[0]) && axes.length > 2) drawSlice(pen, scene);
  else drawCells(pen, scene, axes, shape);
}

/**
 * @param {import("pen").Pen} pen
 * @param {Scene} scene
 */
function drawSlice(pen, scene) {
  const { store, array, index, width, height, narrow } = scene;
  const shape = store.shape(array);
  const [n, down, across] = [shape[0], shape[shape.length - 2], shape[shape.length - 1]];
  const lead = index.slice(0, -2);
  const pad = narrow ? 8 : 28;
  const label = narrow ? 48 : 90;
  const split = Math.round(height * 0.54);
  const rows = shownOf(down, (split - 60) / 6, index[index.length - 2]);
  const columns = shownOf(across, (width - 2 * pad - label) / 5, index[index.length - 1]);
  const part = rows.length < down || columns.length < across ? scene.say("part", { n: rows.length * columns.length, all: down * across }) : "";
  const axes = [scene.words[`axis.${store.array(array).axes[index.length - 2]}`], scene.words[`axis.${store.array(array).axes[index.length - 1]}`]];
  heading(pen, [pad, 18, width - 2 * pad], `${axes[0]} ↓ · ${axes[1]} →`, part);
  const heads = Math.max(1, Math.ceil(columns.length * 40 / (width - 2 * pad - label)));
  const at = grid(pen, scene, { x: pad, y: 44, w: width - 2 * pad, h: split - 60 }, { array, lead, rows, columns, chosen: index, label, tall: 48, wide: 110, keys: false });
  columns.forEach((j, m) => {
    if (m % heads === 0) pen.text(at(0, m).x + at(0, m).w / 2, 38, fit(bare(scene.label(array, shape.length - 1, j)), at(0, m).w * heads - 4, { size: 11 }), { size: 11, align: "center", color: j === index.at(-1) ? "accent" : "soft" });
  });
  const values = Array.from({ length: n }, (_, u) => store.value(array, [u, ...index.slice(1)]));
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const [left, right, top, bottom] = [pad + label, width - pad - 12, split + 34, height - 30];
  const X = (/** @type {number} */ u) => left + (n > 1 ? u / (n - 1) : 0.5) * (right - left);
  const Y = (/** @type {number} */ v) => bottom - (high > low ? (v - low) / (high - low) : 0.5) * (bottom - top);
  heading(pen, [pad, split + 14, width - 2 * pad], scene.say("series.one"), scene.say("series_loss.at", { n: store.place(array, 0, index[0]), value: scene.number(values[index[0]], 4) }));
  axis(pen, [left, right], bottom, scene.number(low, 2), scene.number(high, 2), top);
  curve(pen, scene, { values, X, Y, part: 1, color: "accent", array, places: (u) => [u, ...index.slice(1)] });
  pen.line([X(index[0]), top - 6, X(index[0]), bottom + 6], { stroke: "ink", stroke_width: 1.5, dash: [4, 4] });
}

/**
 * @param {import("pen").Pen} pen
 * @param {Scene} scene
 * @param {string[]} axes
 * @param {number[]} shape
 */
function drawCells(pen, scene, axes, shape) {
  const { store, array } = scene;
  const letters = axes.map((_, i) => /** @type {LetterNode} */ (["letter", `a${i}`]));
  const [box] = place([["out", letters, ["number", 0]]]).boxes;
  const given = /** @type {Box} */ ({ ...box, name: array });
  const lit = scene.index;
  const labels = box.down === null ? 4 : Math.min(scene.narrow ? 44 : 90, widestLabel(scene, array, box.down)) + 10;
  const room = { x: scene.narrow ? 6 : 20, width: scene.width - (scene.narrow ? 12 : 40), height: scene.height - 8 - LEGEND, narrow: scene.narrow, labels, sum: 8,
    length: (/** @type {Box} */ _, /** @type {number} */ axis) => shape[axis], wanted: (/** @type {string} */ _, /** @type {Box} */ __, /** @type {number} */ axis) => [lit[axis]],
    title: () => widthOf(array, { size: 12, bold: true }) };
  const arrangement = arrange({ rows: null, columns: null, layers: [], boxes: [given] }, room);
  const [only] = arrangement.boxes;
  const [cw, ch] = arrangement.cell;
  const digits = cw > 44 && ch > 13 ? Math.min(3, scene.digits) : 0;
  pen.text(only.x, only.y - HEAD - 6, array, { size: 12, bold: true });
  drawHeads(pen, only, arrangement, scene);
  only.rows.list.forEach((row, n) => only.columns.list.forEach((column, m) => {
    const index = indexAt(only, lit, row, column);
    pen.cell(only.x + offset(only.columns, m) * cw, only.y + offset(only.rows, n) * ch, cw, ch, store.value(array, index),
      { largest: store.largest(array), digits, dtype: store.array(array).dtype, key: `${array} ${index}`, place: { array, index }, lit: index.every((at, axis) => at === lit[axis]) });
  }));
  drawBreaks(pen, only, arrangement.cell);
  drawLegend(pen, [only], scene);
}
