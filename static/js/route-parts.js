// The parts of a picture of the whole network: strips of the stream, and what is added between them.

import { ease } from "scene";
import { widthOf } from "pen";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/**
 * @typedef {object} Layout
 * @property {string} short "short." where names have little room
 * @property {number} top
 * @property {number} row height of a position
 * @property {number} left
 * @property {number} right
 * @property {Stations["stops"]} stops that are shown
 * @property {number} each width of a stop with what comes before it
 * @property {number} strip
 * @property {number} rows
 */

const CELLS = 24; // numbers of a strip, at most
export const NAME = { size: 12, bold: true };

/**
 * @param {Scene} scene
 * @param {Stations["stops"][number]} stop
 * @param {string} form
 */
export function nameOf(scene, { role, block }, form) {
  return scene.say(`route.${form}${role}`, { n: block ?? 0 });
}

/**
 * How far something has come that goes through the stops one by one.
 * @param {number} part
 * @param {Layout} place
 * @param {number} before
 */
function reached(part, { stops }, before) {
  return Math.max(0, Math.min(1, part * (stops.length + 0.5) - before));
}

/**
 * One strip of numbers for each position, below it its gradient, and its name on top.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Layout} place
 * @param {Stations["stops"][number]} stop
 * @param {number} s
 * @param {number} come
 */
export function drawStation(pen, scene, place, stop, s, come) {
  const { store } = scene;
  const n = Math.min(CELLS, store.shape(stop.array)[1]);
  const w = place.strip / n;
  const tall = Math.min(26, place.row * 0.42);
  const back = stop.gradient ? ease(reached(scene.part("backward"), place, place.stops.length - 1 - s)) : 0;
  const x = place.left + s * place.each;
  const name = nameOf(scene, stop, place.short);
  pen.text(x, place.top - 12, name, { ...NAME, alpha: 0.35 + 0.65 * come, link: `#step=${encodeURIComponent(stop.step)}`, w: widthOf(name, NAME), h: 16 });
  for (let t = 0; t < place.rows; t++) {
    const y = place.top + t * place.row + (place.row - tall) / 2 - (stop.gradient ? tall * 0.25 : 0);
    strip(pen, scene, stop.array, t, [x, y, w, tall], n, come);
    if (stop.gradient && back) strip(pen, scene, stop.gradient, t, [x, y + tall + 3, w, tall * 0.5], n, back);
  }
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {string} array
 * @param {number} t
 * @param {[number, number, number, number]} box of the first cell
 * @param {number} n
 * @param {number} alpha
 */
function strip(pen, { store }, array, t, [x, y, w, tall], n, alpha) {
  const largest = store.largest(array);
  for (let d = 0; d < n; d++) {
    const index = [t, d];
    pen.cell(x + d * w, y, w, tall, store.value(array, index), { largest, key: `${array} ${index}`, place: { array, index }, alpha });
  }
}

/**
 * What happens between two stations: the road goes on, and a branch adds to it.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Stations} pass
 * @param {Layout} place
 * @param {number} s
 * @param {number} come
 */
export function drawBranch(pen, scene, pass, place, s, come) {
  const from = place.left + (s - 1) * place.each + place.strip + 3;
  const to = place.left + s * place.each - 3;
  const stop = place.stops[s];
  const tall = Math.min(26, place.row * 0.42);
  const middle = (/** @type {number} */ t) => place.top + (t + 0.5) * place.row - (stop.gradient ? tall * 0.25 : 0);
  const part = Math.min(1, come * 1.4);
  if (part <= 0) return;
  const attention = stop.role === "attention" ? pass.attention.find(({ block }) => block === stop.block) : null;
  const back = stop.gradient ? reached(scene.part("backward"), place, place.stops.length - s) : 0;
  for (let t = 0; t < place.rows; t++) {
    pen.line([from, middle(t), from + (to - from) * part, middle(t)], { stroke: "warm", stroke_width: scene.narrow ? 2 : 4, alpha: 0.45 });
    if (attention) drawRibbons(pen, scene, attention.array, t, [from, to], middle, part);
    else drawFan(pen, [from, to], middle(t), place.row, part);
    if (back > 0) drawBack(pen, [from, to], middle(t) + tall * 0.75 + 3, back);
  }
}

/**
 * Attention: from every earlier position as much as its weight says, the mean of the heads.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {string} array
 * @param {number} i
 * @param {[number, number]} ends
 * @param {(t: number) => number} middle
 * @param {number} part
 */
function drawRibbons(pen, { store }, array, i, [from, to], middle, part) {
  const [heads, rows] = store.shape(array);
  if (i >= rows) return;
  for (let j = 0; j < i; j++) {
    let weight = 0;
    for (let head = 0; head < heads; head++) weight += store.value(array, [head, i, j]) / heads;
    if (weight < 0.02) continue;
    pen.line(curve(from, middle(j), to, middle(i), part), { stroke: "query", stroke_width: Math.max(0.8, 7 * weight), alpha: 0.2 + 0.5 * weight });
  }
}

/**
 * A line from one height to another, level at both ends; as far as `part`.
 * @param {number} x
 * @param {number} y
 * @param {number} right
 * @param {number} end
 * @param {number} part
 */
function curve(x, y, right, end, part) {
  const n = 14;
  const points = Array.from({ length: Math.max(2, Math.ceil(n * part) + 1) }, (_, k) => Math.min(part, k / n));
  return points.flatMap((u) => [x + (right - x) * u, y + (end - y) * ease(u)]);
}

/**
 * The MLP: each position by itself, wider inside.
 * @param {Pen} pen
 * @param {[number, number]} ends
 * @param {number} y
 * @param {number} row
 * @param {number} part
 */
function drawFan(pen, [from, to], y, row, part) {
  const tall = Math.min(row * 0.3, 18);
  const [a, b] = [from + (to - from) * 0.22, from + (to - from) * 0.78];
  const half = (a + b) / 2;
  pen.area([a, y - 2, half, y - tall, b, y - 2, b, y + 2, half, y + tall, a, y + 2], { color: "glow", stroke: "warm", stroke_width: 1, alpha: part });
}

/**
 * @param {Pen} pen
 * @param {[number, number]} ends
 * @param {number} y
 * @param {number} part
 */
function drawBack(pen, [from, to], y, part) {
  pen.line([to, y, to - (to - from) * part, y], { stroke: "gradient", stroke_width: 1.5, dash: [3, 3] });
  if (part >= 1) pen.area([from, y, from + 6, y - 3.5, from + 6, y + 3.5], { color: "gradient" });
}
