// The chosen number, worked out in the picture: its terms with a bar each and their sum, or its line with numbers put in.

import { ease, staggered } from "scene";
import { widthOf, wrap } from "pen";
import { largestPlaces } from "shapes";

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
 * The working; where its result stands, from which it goes to its cell.
 * @param {import("pen").Pen} pen
 * @param {Space} space
 * @param {Scene} scene
 */
export function drawSum(pen, space, scene) {
  const line = scene.working;
  if (!line) return null;
  const before = pen.alpha;
  pen.alpha = before * ease(scene.part("pairs"));
  const end = line.terms ? drawTerms(pen, space, scene, line, line.terms) : drawLine(pen, space, scene, line);
  pen.alpha = before;
  return end;
}

/**
 * @param {import("pen").Pen} pen
 * @param {Space} space
 * @param {Scene} scene
 * @param {import("working").Line} line
 * @param {import("working").Terms} terms
 */
function drawTerms(pen, space, scene, line, terms) {
  if (space.corner) return drawList(pen, space, scene, line, terms);
  if (space.height >= 70) return drawBars(pen, space, scene, line, terms);
  return drawTail(pen, space.x, space.y + 14, scene, line, terms, [], space.width);
}

/**
 * @param {import("pen").Pen} pen
 * @param {Space} space
 * @param {Scene} scene
 * @param {import("working").Line} line
 */
function drawLine(pen, { x, y, width, height }, scene, line) {
  const style = { size: 13, mono: true };
  const text = lineOf(scene);
  const rows = wrap(text, width, style);
  const fits = rows.length * 18 <= height + 6 ? rows : wrap(`${line.left} = ${scene.number(line.value, scene.digits, scene.store.array(scene.array).dtype)}`, width, style);
  fits.forEach((row, i) => pen.text(x, y + 14 + i * 18, row, style));
  if (rows.length === 1) fly(pen, line.numbers, x + widthOf(`${line.left} = `, style), y + 14, style, scene, scene.digits);
  return { x: x + widthOf(fits.at(-1) ?? "", style) - 50, y: y + 14 + (fits.length - 1) * 18 };
}

/**
 * While numbers are brought: each goes from its cell to its place in the text.
 * @param {import("pen").Pen} pen
 * @param {import("said").Token[]} tokens
 * @param {number} x
 * @param {number} y
 * @param {Partial<import("pen").Shape>} style
 * @param {Scene} scene
 * @param {number} digits
 */
function fly(pen, tokens, x, y, style, scene, digits, part = ease(scene.part("pairs"))) {
  if (part <= 0 || part >= 1) return;
  const before = pen.alpha;
  pen.alpha = 1;
  let at = x;
  for (const token of tokens) {
    const text = scene.text([token], digits);
    const from = typeof token !== "string" && "array" in token ? cellOf(pen, `${token.array} ${token.index}`) : null;
    if (from) {
      const start = [from.x + from.w / 2 - widthOf(text, style) / 2, from.y + from.h / 2 + 4];
      const place = [start[0] + (at - start[0]) * part, start[1] + (y - start[1]) * part];
      const w = widthOf(text, style) + 8;
      pen.add({ ...from, x: place[0] - 4, y: place[1] - 13, w, h: 18, text, size: style.size, key: undefined, place: undefined, alpha: 1, stroke: "accent" });
    }
    at += widthOf(text, style);
  }
  pen.alpha = before;
}

/**
 * @param {import("pen").Pen} pen
 * @param {string} key
 */
function cellOf(pen, key) {
  return pen.shapes.find((shape) => shape.key === key && shape.kind === "cell");
}

/**
 * Σ = …, and what is done to the sum.
 * @param {Scene} scene
 * @param {import("working").Line} line
 * @param {import("working").Terms} terms
 */
function tail(scene, line, terms) {
  const value = scene.number(line.value, scene.digits);
  const sum = scene.number(running(scene, terms), scene.digits);
  const rest = scene.text(line.numbers.slice(1));
  return rest ? [`Σ = ${sum}`, `${rest} = ${value}`] : [`Σ = ${sum}`];
}

/**
 * The sum as far as it has come.
 * @param {Scene} scene
 * @param {import("working").Terms} terms
 */
function running(scene, { list, total }) {
  const part = scene.part("sum");
  if (part >= 1) return total;
  return list.reduce((sum, { value }, i) => sum + value * ease(staggered(part, i, list.length)), 0);
}

/**
 * The terms that there is room for: all of them, else the largest, in order.
 * @param {import("working").Terms} terms
 * @param {number} room
 */
function shownTerms(terms, room) {
  const { list } = terms;
  if (list.length <= room) return list.map((_, i) => i);
  return largestPlaces(list.length, (i) => Math.abs(list[i].value), room).sort((a, b) => a - b);
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
  const number = widthOf(String(rows[rows.length - 1]), { size: 11 }) + 8;
  const showText = room + number + 116 < width && step >= 12.5;
  const left = showText ? x + number + room + 72 : x + 66;
  const half = Math.max(20, (x + width - left - 16) / 2);
  const axis = left + half;
  pen.text(x, y + 12, `${line.left} = Σ`, { size: 12, bold: true });
  const pairs = scene.part("pairs");
  rows.forEach((i, n) => {
    const term = terms.list[i];
    const come = ease(staggered(pairs, n, rows.length, 4));
    const p = ease(staggered(scene.part("sum"), n, rows.length));
    const middle = y + 26 + (n + 0.5) * step;
    if (showText) pen.text(x + number - 8, middle + 4, String(i), { size: 11, color: "soft", align: "right" });
    if (showText && come >= 1) pen.text(x + number, middle + 4, texts[n], { size: 11.5, mono: true });
    if (showText) fly(pen, term.numbers, x + number, middle + 4, { size: 11.5, mono: true }, scene, Math.min(3, scene.digits), come);
    pen.text(left - 6, middle + 4, scene.number(term.value, Math.min(3, scene.digits)), { size: 11.5, mono: true, align: "right", alpha: p });
    pen.bar(axis, middle - step * 0.36, half * term.value / most * p, step * 0.72, { color: term.value < 0 ? "cool" : "warm" });
  });
  const end = y + 26 + rows.length * step;
  pen.line([axis, y + 22, axis, end], { stroke: "soft", stroke_width: 1 });
  return drawTail(pen, x, end + 18, scene, line, terms, rows, width);
}

/**
 * @param {import("pen").Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {Scene} scene
 * @param {import("working").Line} line
 * @param {import("working").Terms} terms
 * @param {number[]} rows the terms that are shown
 * @param {number} width
 */
function drawTail(pen, x, y, scene, line, terms, rows, width) {
  const done = scene.part("sum") > 0 ? 1 : 0;
  const [sum, rest] = tail(scene, line, terms);
  // Together with what is shown, the others make the sum.
  const others = terms.total - rows.reduce((all, i) => all + terms.list[i].value, 0);
  const more = terms.bounds > rows.length ? scene.say("more", { n: (terms.bounds - rows.length).toLocaleString("en"), value: scene.number(others, 3) }) : "";
  const style = { size: 12.5, mono: true, bold: true, alpha: done };
  pen.text(x, y, sum, style);
  const one = widthOf(sum, style);
  const two = rest ? one + 10 + widthOf(rest, style) : one;
  const below = two > width;
  if (rest) pen.text(below ? x : x + one + 10, below ? y + 16 : y, rest, { ...style, alpha: scene.part("sum") >= 1 ? 1 : 0 });
  const end = { x: x + (below ? 0 : Math.max(0, two - 50)), y };
  if (!more || below) return end;
  const fits = two + 14 + widthOf(more, { size: 11 }) <= width;
  if (fits) pen.text(x + two + 14, y, more, { size: 11, color: "soft" });
  return end;
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
  return drawTail(pen, x, y + height - 6, scene, line, terms, rows, width);
}
