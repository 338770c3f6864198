// Chips in a row: bytes, tokens, ids; and lines from what was read to what was made.

import { widthOf } from "pen";
import { ease, staggered } from "scene";

/** @typedef {import("pen").Pen} Pen @typedef {import("pen").Color} Color */
/** `under`: small, below the chip. @typedef {{ text: string, under?: string, place?: Place, key?: string, lit?: boolean, color?: Color, alpha?: number, span?: number }} Chip */

/**
 * The width of a place in rows that stand over one another.
 * @param {Chip[][]} rows
 * @param {number} width
 * @param {number} most
 */
export function placeWidth(rows, width, most) {
  const widest = Math.max(...rows.flat().map(({ text, under = "", span = 1 }) => Math.max(widthOf(text, { size: 14, mono: true }) + 18, widthOf(under, { size: 11 }) + 6) / span), 30);
  const count = Math.max(...rows.map((row) => row.reduce((n, { span = 1 }) => n + span, 0)));
  return Math.max(Math.min(widest, 44), Math.min(most, width / count));
}

/**
 * A row of chips; returns their middles. What does not fit is left out and said with "…".
 * @param {Pen} pen
 * @param {Chip[]} row
 * @param {{ x: number, y: number, each: number, right: number, part?: number, from?: number }} at `from`: how many places in front are empty
 */
export function chips(pen, row, { x, y, each, right, part = 1, from = 0 }) {
  const middles = /** @type {number[]} */ ([]);
  let at = x + from * each;
  let left = 0; // out, for want of room
  const isLong = at + row.reduce((n, { span = 1 }) => n + span, 0) * each > right + 1;
  row.forEach(({ text, under, place, key, lit, color = "cell", alpha = 1, span = 1 }, i) => {
    const w = each * span;
    middles.push(at + w / 2);
    if (at + w > right - (isLong ? 40 : -1)) { left += 1; at += w; return; }
    const come = ease(staggered(part, i, row.length)) * alpha;
    const size = widthOf(text, { size: 14, mono: true }) < w - 8 ? 14 : 11;
    const shown = [text, `${[...text].slice(0, 2).join("")}…`, ""].find((one) => widthOf(one, { size, mono: true }) < w - 7);
    pen.bar(at + 3, y, w - 6, 32, { color, stroke: lit ? "accent" : "line", stroke_width: lit ? 2 : 1, radius: 7, text: shown, size, mono: true, align: "center", place, key, alpha: come });
    if (under && widthOf(under, { size: 11 }) < w + 2) pen.text(at + w / 2, y + 47, under, { size: 11, color: "soft", align: "center", alpha: come });
    at += w;
  });
  if (left) pen.text(right, y + 21, `… +${left}`, { size: 12, bold: true, align: "right" });
  return middles;
}

/**
 * Lines from one row of chips down to another.
 * @param {Pen} pen
 * @param {[number, number][]} pairs
 * @param {{ top: number, bottom: number, part?: number, color?: Color, right: number }} at
 */
export function wires(pen, pairs, { top, bottom, part = 1, color = "soft", right }) {
  pairs.forEach(([a, b], i) => {
    const go = ease(staggered(part, i, pairs.length));
    if (go <= 0 || Math.max(a, b) > right) return;
    pen.line([a, top, a + (b - a) * go, top + (bottom - top) * go], { stroke: color, stroke_width: 1.5 });
  });
}
