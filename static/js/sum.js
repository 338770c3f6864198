// The chosen number, worked out in the picture: its terms with a bar each and their sum, or its line with numbers put in.

import { ease, staggered } from "scene";
import { widthOf, wrap } from "pen";

/** @typedef {import("scene").Scene} Scene @typedef {{ x: number, y: number, width: number, height: number, corner: boolean }} Space */

const ROW = 21; // px a term in a list
const LEAST = 13;

/**
 * How high the working is, where it has to stand below the picture.
 * @param {Scene} scene
 */
export function sumHeight(scene) {
  if (!scene.operation || !scene.working) return 8;
  if (scene.working.terms) return scene.narrow ? 104 : 124;
  return 26 + 18 * wrap(lineOf(scene), scene.width - 80, { size: 13, mono: true }).length;
}

/** @param {Scene} scene */
function lineOf(scene) {
  const line = scene.working;
  if (!line) return "";
  const numbers = scene.text(line.numbers);
  const value = scene.number(line.value, scene.digits, scene.store.array(scene.array).dtype);
  return numbers === value ? `${line.left} = ${value}` : `${line.left} = ${numbers} = ${value}`;
}

/**
 * @param {import("pen").Pen} pen
 * @param {Space} space
 * @param {Scene} scene
 */
export function drawSum(pen, space, scene) {
  const line = scene.working;
  if (!line) return;
  const before = pen.alpha;
  pen.alpha = before * ease(scene.part("pairs"));
  if (!line.terms) drawLine(pen, space, scene);
  else if (space.corner && space.width > 190 && space.height > 80) drawList(pen, space, scene, line, line.terms);
  else if (!space.corner) drawBars(pen, space, scene, line, line.terms);
  pen.alpha = before;
}

/**
 * @param {import("pen").Pen} pen
 * @param {Space} space
 * @param {Scene} scene
 */
function drawLine(pen, { x, y, width }, scene) {
  pen.lines(x, y + 18, lineOf(scene), Math.min(width, scene.width - 24), { size: 13, mono: true });
}

/**
 * Σ = …, and what is done to the sum.
 * @param {Scene} scene
 * @param {import("working").Line} line
 * @param {import("working").Terms} terms
 */
function tail(scene, line, terms) {
  const value = scene.number(line.value, scene.digits);
  const sum = scene.number(terms.total, scene.digits);
  const rest = scene.text(line.numbers.slice(1));
  return rest ? [`Σ = ${sum}`, `${rest} = ${value}`] : [`Σ = ${sum}`];
}

/**
 * The terms that there is room for: all of them, else the largest, in order.
 * @param {import("working").Terms} terms
 * @param {number} room
 */
function shownTerms(terms, room) {
  const { list } = terms;
  if (list.length <= room) return list.map((_, i) => i);
  return [...list.keys()].sort((a, b) => Math.abs(list[b].value) - Math.abs(list[a].value)).slice(0, room).sort((a, b) => a - b);
}

/**
 * @param {import("pen").Pen} pen
 * @param {Space} space
 * @param {Scene} scene
 * @param {import("working").Line} line
 * @param {import("working").Terms} terms
 */
function drawList(pen, { x, y, width, height }, scene, line, terms) {
  const rows = shownTerms(terms, Math.max(1, Math.floor((height - 62) / LEAST)));
  const step = Math.min(ROW, (height - 62) / rows.length);
  const most = Math.max(...rows.map((i) => Math.abs(terms.list[i].value))) || 1;
  const texts = rows.map((i) => scene.text(terms.list[i].numbers, Math.min(3, scene.digits)));
  const room = Math.max(...texts.map((text) => widthOf(text, { size: 11.5, mono: true })));
  const showText = room + 110 < width && step >= 12.5;
  const left = showText ? x + room + 66 : x + 66;
  const half = Math.max(20, (x + width - left - 16) / 2);
  const axis = left + half;
  pen.text(x, y + 12, `${line.left} = Σ`, { size: 12, bold: true });
  rows.forEach((i, n) => {
    const term = terms.list[i];
    const p = ease(staggered(scene.part("sum"), n, rows.length));
    const middle = y + 26 + (n + 0.5) * step;
    if (showText) pen.text(x, middle + 4, texts[n], { size: 11.5, mono: true });
    pen.text(left - 6, middle + 4, scene.number(term.value, Math.min(3, scene.digits)), { size: 11.5, mono: true, align: "right", alpha: p });
    pen.bar(axis, middle - step * 0.36, half * term.value / most * p, step * 0.72, { color: term.value < 0 ? "cool" : "warm" });
  });
  const end = y + 26 + rows.length * step;
  pen.line([axis, y + 22, axis, end], { stroke: "soft", stroke_width: 1 });
  drawTail(pen, x, end + 18, scene, line, terms, rows.length, width);
}

/**
 * @param {import("pen").Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {Scene} scene
 * @param {import("working").Line} line
 * @param {import("working").Terms} terms
 * @param {number} shown
 * @param {number} width
 */
function drawTail(pen, x, y, scene, line, terms, shown, width) {
  const done = ease(scene.part("sum"));
  const [sum, rest] = tail(scene, line, terms);
  const more = terms.bounds > shown ? scene.say("more", { n: (terms.bounds - shown).toLocaleString("en") }) : "";
  const style = { size: 12.5, mono: true, bold: true, alpha: done };
  pen.text(x, y, sum, style);
  const one = widthOf(sum, style);
  if (rest) pen.text(x + one + 10, y, rest, style);
  const two = rest ? one + 10 + widthOf(rest, style) : one;
  if (!more) return;
  const fits = two + 14 + widthOf(more, { size: 11 }) <= width;
  pen.text(fits ? x + two + 14 : x, fits ? y : y + 15, more, { size: 11, color: "soft" });
}

/**
 * The terms as upright bars, side by side.
 * @param {import("pen").Pen} pen
 * @param {Space} space
 * @param {Scene} scene
 * @param {import("working").Line} line
 * @param {import("working").Terms} terms
 */
function drawBars(pen, { x, y, width, height }, scene, line, terms) {
  const rows = shownTerms(terms, Math.max(1, Math.floor(width / 9)));
  const step = Math.min(54, width / rows.length);
  const most = Math.max(...rows.map((i) => Math.abs(terms.list[i].value))) || 1;
  const tall = height - 44;
  const zero = y + 18 + tall / 2;
  pen.text(x, y + 10, `${line.left} = Σ`, { size: 12, bold: true });
  rows.forEach((i, n) => {
    const { value } = terms.list[i];
    const p = ease(staggered(scene.part("sum"), n, rows.length));
    pen.bar(x + n * step + step * 0.15, zero, step * 0.7, -value / most * (tall / 2 - 10) * p, { color: value < 0 ? "cool" : "warm" });
    const text = scene.number(value, 2);
    if (widthOf(text, { size: 11, mono: true }) < step - 2) {
      pen.text(x + (n + 0.5) * step, value < 0 ? zero - 4 : zero + 12, text, { size: 11, mono: true, align: "center", alpha: p });
    }
  });
  pen.line([x, zero, x + rows.length * step, zero], { stroke: "soft", stroke_width: 1 });
  drawTail(pen, x, y + height - 6, scene, line, terms, rows.length, width);
}
