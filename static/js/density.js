// Very many numbers as one density: how many lie where, with some of them marked.

import { widthOf } from "pen";

/** @typedef {import("pen").Pen} Pen @typedef {import("scene").Scene} Scene */

const BINS = 90;

/**
 * @typedef {object} Density
 * @property {number[]} counts
 * @property {number} low
 * @property {number} high
 * @property {number} most
 */

/**
 * Counted once for a scene.
 * @param {ArrayLike<number>} values
 * @param {number} from
 * @param {number} count
 * @returns {Density}
 */
function densityOf(values, from, count) {
  let low = Infinity;
  let high = -Infinity;
  for (let i = from; i < from + count; i++) {
    if (!Number.isFinite(values[i])) continue;
    if (values[i] < low) low = values[i];
    if (values[i] > high) high = values[i];
  }
  if (!(high > low)) { low -= 0.5; high = low + 1; }
  const counts = new Array(BINS).fill(0);
  for (let i = from; i < from + count; i++) {
    if (Number.isFinite(values[i])) counts[Math.min(BINS - 1, Math.floor((values[i] - low) / (high - low) * BINS))] += 1;
  }
  return { counts, low, high, most: Math.max(...counts) };
}

/**
 * The row of an array that the chosen element stands in.
 * @param {Scene} scene
 * @param {string} array
 * @param {number[]} row
 */
export function densityOfRow(scene, array, row) {
  return scene.once(`density ${array}`, () => {
    const { store } = scene;
    const shape = store.shape(array);
    const length = shape[shape.length - 1];
    const before = row.reduce((flat, i, axis) => flat * shape[axis] + i, 0);
    const values = store.values(array) ?? Float64Array.from({ length: (before + 1) * length }, (_, i) => (i < before * length ? 0 : store.flatValue(array, i)));
    return densityOf(values, before * length, length);
  });
}

/**
 * The density over a line, with its ends named; returns where a value stands.
 * @param {Pen} pen
 * @param {[number, number, number, number]} box
 * @param {Density} density
 * @param {Scene} scene
 * @param {{ grow?: number, low?: number, high?: number }} [how]
 */
export function drawDensity(pen, [x, y, width, height], density, scene, { grow = 1, low = density.low, high = density.high } = {}) {
  const at = (/** @type {number} */ value) => x + (value - low) / (high - low) * width;
  const step = (density.high - density.low) / BINS;
  const base = y + height - 18;
  const points = density.counts.flatMap((count, i) => {
    const tall = Math.sqrt(count / density.most) * (height - 26) * grow;
    return [at(density.low + i * step), base - tall, at(density.low + (i + 1) * step), base - tall];
  });
  pen.area([at(density.low), base, ...points, at(density.high), base], { color: "tint", stroke: "soft", stroke_width: 1 });
  pen.line([x, base, x + width, base], { stroke: "soft", stroke_width: 1 });
  pen.text(x, base + 14, scene.number(low, 3), { size: 11, color: "soft" });
  pen.text(x + width, base + 14, scene.number(high, 3), { size: 11, color: "soft", align: "right" });
  return { at, base };
}

/**
 * A value on the line, with a flag that stays in the picture.
 * @param {Pen} pen
 * @param {{ at: (value: number) => number, base: number }} line
 * @param {number} value
 * @param {string} text
 * @param {{ y: number, color: import("pen").Color, place?: Place, key?: string, left: number, right: number }} how
 */
export function flag(pen, { at, base }, value, text, { y, color, place, key, left, right }) {
  const x = at(value);
  const style = { size: 12, bold: true };
  const w = widthOf(text, style);
  const start = Math.max(left, Math.min(right - w, x - w / 2));
  pen.line([x, base, x, y + 6], { stroke: color, stroke_width: 2 });
  pen.dot(x, base, 5, { color, place, key, stroke: "paper" });
  pen.text(start, y, text, { ...style, color });
}
