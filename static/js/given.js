// The picture of an array that nothing made: the chosen layer of it, as cells.

import { arrange, HEAD, offset } from "arrange";
import { drawBreaks, drawHeads, widestLabel } from "box-labels";
import { indexAt } from "boxes";
import { drawLegend, LEGEND } from "legend";
import { widthOf } from "pen";
import { place } from "placement";

/** @typedef {import("scene").Scene} Scene @typedef {import("placement").Box} Box */

/**
 * An array that nothing made: the chosen layer of it, as cells.
 * @param {import("pen").Pen} pen
 * @param {Scene} scene
 */
export function drawGiven(pen, scene) {
  const { store, array } = scene;
  if (!array || !store.has(array)) return;
  const { axes, shape } = store.array(array);
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
