// What several drawings need: headings, rows of bars, strips and grids of cells, lines of numbers.

import { widthOf } from "pen";

/** @typedef {import("pen").Pen} Pen @typedef {import("scene").Scene} Scene */
/** @typedef {{ x: number, y: number, w: number, h: number }} Room */

/**
 * A text, cut off where its room ends.
 * @param {string} text
 * @param {number} width
 * @param {Partial<import("pen").Shape>} style
 */
export function fit(text, width, style = {}) {
  if (widthOf(text, style) <= width) return text;
  let cut = text;
  while (cut && widthOf(`${cut}…`, style) > width) cut = cut.slice(0, -1);
  return cut ? `${cut}…` : "";
}

/**
 * What a part of the picture is called, with a note where there is room.
 * @param {Pen} pen
 * @param {number[]} room x, the line that the letters stand on, and how wide: as far as the picture goes
 * @param {string} title
 */
export function heading(pen, [x, y, w = pen.width - x], title, note = "") {
  const bold = { size: 12.5, bold: true };
  const text = fit(title, w, bold);
  pen.text(x, y, text, bold);
  const at = widthOf(text, bold) + 9;
  if (note && at + widthOf(note, { size: 11 }) <= w) pen.text(x + at, y, note, { size: 11, color: "soft" });
}

/**
 * Which of `n` places are shown where there is room for `most`: those around the chosen one.
 * @param {number} n
 * @param {number} most
 * @param {number} chosen
 */
export function shownOf(n, most, chosen) {
  const count = Math.min(n, Math.max(1, Math.floor(most)));
  const first = Math.max(0, Math.min(n - count, chosen - Math.floor(count / 2)));
  return Array.from({ length: count }, (_, i) => first + i);
}

/**
 * Where the largest of many numbers stand, the largest first: not all of them are put in order.
 * @param {number} length
 * @param {(i: number) => number} of
 * @param {number} count
 */
export function largestPlaces(length, of, count) {
  /** @type {[number, number][]} */
  const best = [];
  for (let i = 0; i < length; i++) {
    const value = of(i);
    if (best.length === count && !(value > best[count - 1][0])) continue;
    let at = best.length;
    while (at && value > best[at - 1][0]) at -= 1;
    best.splice(at, 0, [value, i]);
    best.length = Math.min(best.length, count);
  }
  return best.map(([, i]) => i);
}

/**
 * An index with another last place.
 * @param {number[]} index
 * @param {number} last
 */
export function withLast(index, last) {
  return [...index.slice(0, -1), last];
}

/** How strongly a number of a row is coloured. @param {number} value @param {number} largest */
export function strength(value, largest) {
  if (!Number.isFinite(value)) return NaN;
  return largest ? Math.sign(value) * Math.min(1, Math.abs(value) / largest) ** 0.6 : 0;
}

/** @param {number[]} values */
export function largestOf(values) {
  return values.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most), 0);
}

/**
 * How many digits fit into a cell; 0: colour alone.
 * @param {Scene} scene
 * @param {number[]} values
 * @param {number} w
 * @param {number} h
 */
export function digitsFor(scene, values, w, h) {
  if (h < 15 || w < 20 || values.length > 1200) return 0;
  return [3, 2].find((digits) => digits <= scene.digits && values.every((value) => widthOf(scene.number(value, digits), { size: 11, mono: true, bold: true }) <= w - 4)) ?? 0;
}

/**
 * @typedef {{ value: number, label: string, lit?: boolean, grown?: number, place?: Place, key?: string, color?: import("pen").Color }} Bar
 */

/**
 * Bars above and below a line, with their numbers and labels where there is room; where each of them stands, and the
 * room of all.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Room} room
 * @param {Bar[]} items
 * @param {number} [most] how far the axis goes at least
 * @returns {{ places: Room[], top: number, tall: number }}
 */
export function bars(pen, scene, { x, y, w, h }, items, most = 0) {
  const values = items.map(({ value }) => (Number.isFinite(value) ? value : 0));
  const [low, high] = [Math.min(0, ...values), Math.max(most, ...values)];
  const top = y + 16;
  const room = h - 34 - (low < 0 ? 14 : 0);
  const scale = high > low ? room / (high - low) : 0;
  const zero = high > low ? top + high * scale : top + room;
  const each = w / items.length;
  const largest = Math.max(high, -low);
  const sparse = Math.ceil(24 / each);
  pen.line([x, zero, x + w, zero]);
  const places = items.map(({ value, label, lit, grown = 1, place, key, color }, i) => {
    const length = (Number.isFinite(value) ? value : 0) * scale * grown;
    const wide = Math.max(1, Math.min(each * 0.76, 64));
    const at = { x: x + i * each + (each - wide) / 2, y: length < 0 ? zero : zero - length, w: wide, h: Math.max(1, Math.abs(length)) };
    pen.add({ kind: "cell", ...at, color, strength: color ? undefined : strength(value, largest), key, place, radius: 2, stroke: lit ? "accent" : undefined, stroke_width: 2 });
    const text = scene.number(value, Math.min(3, scene.digits));
    const middle = x + (i + 0.5) * each;
    if (widthOf(text, { size: 11, mono: true }) <= each - 2) {
      pen.text(middle, length < 0 ? zero - length + 13 : zero - length - 5, text, { size: 11, mono: true, align: "center", alpha: grown, bold: lit });
    }
    if (lit || i % sparse === 0) {
      const name = fit(label, Math.max(each, 22) - 2, { size: 11 });
      pen.text(middle, y + h - 2, name, { size: 11, align: "center", color: lit ? "accent" : "soft", bold: lit });
    }
    return at;
  });
  return { places, top, tall: room };
}

/**
 * The rows of an array as small cells, with labels at their left where there is room.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Room} room
 * @param {{ array: string, lead: number[], rows: number[], columns: number[], chosen?: number[], digits?: number, keys?: boolean,
 *   label?: number, tall?: number, wide?: number, alpha?: (row: number, column: number) => number, value?: (index: number[]) => number, mark?: (index: number[]) => boolean }} how
 * @returns {(row: number, column: number) => Room} where a cell stands
 */
export function grid(pen, scene, { x, y, w, h }, how) {
  const { array, lead, rows, columns, chosen = [], keys = true, label = 46, tall = 26, wide = 64, alpha = () => 1 } = how;
  const value = how.value ?? ((index) => scene.store.value(array, index));
  const ch = Math.min(tall, h / rows.length);
  const cw = Math.min(wide, (w - label) / columns.length);
  const largest = scene.store.has(array) ? scene.store.largest(array) : largestOf(rows.flatMap((i) => columns.map((j) => value([...lead, i, j]))));
  const digits = how.digits ?? scene.once(`digits ${array} ${cw}`, () => digitsFor(scene, rows.flatMap((i) => columns.map((j) => value([...lead, i, j]))), cw, ch));
  const sparse = Math.ceil(13 / ch);
  const at = (/** @type {number} */ n, /** @type {number} */ m) => ({ x: x + label + m * cw, y: y + n * ch, w: cw, h: ch });
  rows.forEach((i, n) => {
    const isRow = i === chosen.at(-2);
    if (label && (n % sparse === 0)) {
      pen.text(x + label - 5, y + (n + 0.5) * ch + 4, fit(scene.label(array, lead.length, i), label - 6, { size: 11 }), { size: 11, align: "right", color: isRow ? "accent" : "soft", bold: isRow });
    }
    columns.forEach((j, m) => {
      const index = [...lead, i, j];
      const room = at(n, m);
      const lit = how.mark ? how.mark(index) : isRow && j === chosen.at(-1);
      pen.cell(room.x, room.y, cw, ch, value(index), { largest, digits, lit, alpha: alpha(i, j),
        key: keys ? `${array} ${index}` : undefined, place: { array, index } });
    });
  });
  return at;
}

/** A line on which numbers stand, zero in its middle; `most`: the number at its right end. */
export class NumberLine {
  /** @param {{ x: number, y: number, w: number, most: number }} how */
  constructor({ x, y, w, most }) {
    this.x = x;
    this.y = y;
    this.w = w;
    this.most = Number.isFinite(most) && most > 0 ? most : 1;
  }

  /** @param {number} value */
  at(value) {
    const part = Number.isFinite(value) ? Math.max(-1, Math.min(1, value / this.most)) : 0;
    return this.x + this.w / 2 + part * (this.w / 2 - 10);
  }

  /** @param {Pen} pen @param {Scene} scene */
  draw(pen, scene) {
    const { x, y, w, most } = this;
    pen.line([x, y, x + w, y]);
    for (const value of [-most, 0, most]) {
      pen.line([this.at(value), y - 4, this.at(value), y + 4]);
      const text = scene.number(value, 2);
      const align = value < 0 ? "left" : value > 0 ? "right" : "center";
      pen.text(this.at(value), y + 26, text, { size: 11, color: "soft", align });
    }
  }

  /** A number said above its place. @param {Pen} pen @param {number} value @param {string} text */
  tell(pen, value, text) {
    const half = widthOf(text, { size: 11, mono: true, bold: true }) / 2;
    const x = Math.max(this.x + half, Math.min(this.x + this.w - half, this.at(value)));
    pen.text(x, this.y - 13, text, { size: 11, mono: true, bold: true, color: "accent", align: "center" });
  }
}
