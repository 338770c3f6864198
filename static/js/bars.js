// Parts that several drawings share.

import { widthOf } from "pen";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/**
 * Upright bars on a line, each with its number and its label below.
 * @param {Pen} pen
 * @param {[number, number, number, number]} box
 * @param {{ value: number, label?: string, text?: string, place?: Place, key?: string, alpha?: number, color?: import("pen").Color, lit?: boolean }[]} list
 * @param {{ largest?: number, zero?: number, grow?: number }} how `zero`: where the line is, from 0 (top) to 1
 */
export function bars(pen, [x, y, width, height], list, { largest, zero = 1, grow = 1 }) {
  const each = Math.min(96, width / list.length);
  const most = largest ?? Math.max(1e-300, ...list.map(({ value }) => (Number.isFinite(value) ? Math.abs(value) : 0)));
  const line = y + 16 + (height - 50) * zero;
  const room = Math.max(4, (height - 50) * Math.max(zero, 1 - zero) - 4);
  const size = each > 40 ? 12 : 11;
  const every = Math.max(1, Math.ceil(widest(list.map(({ label = "" }) => label), 11.5) / each));
  list.forEach(({ value, label = "", text, place, key, alpha, color, lit }, i) => {
    const left = x + i * each;
    const tall = Number.isFinite(value) ? value / most * room * grow : 0;
    pen.bar(left + each * 0.14, line, each * 0.72, -tall, { color: color ?? (value < 0 ? "cool" : "warm"), place, key, alpha, stroke: lit ? "accent" : undefined, stroke_width: 2 });
    if (text && widthOf(text, { size, mono: true }) < each + 2) pen.text(left + each / 2, value < 0 ? line - tall + 13 : line - tall - 5, text, { size, mono: true, align: "center", alpha, bold: lit });
    if (label && i % every === 0) pen.text(left + each / 2, y + height - 4, label, { size: 11.5, color: lit ? "accent" : "soft", align: "center", bold: lit });
  });
  pen.line([x, line, x + each * list.length, line], { stroke: "soft", stroke_width: 1 });
  return each * list.length;
}

/**
 * @param {string[]} texts
 * @param {number} size
 */
function widest(texts, size) {
  return Math.max(0, ...texts.map((text) => widthOf(text, { size }))) + 4;
}

/**
 * Shares laid end to end as one bar; as far as `grow`.
 * @param {Pen} pen
 * @param {[number, number, number, number]} box
 * @param {{ share: number, label: string, place?: Place, key?: string, lit?: boolean }[]} list
 * @param {Scene} scene
 */
export function ruler(pen, [x, y, width, height], list, scene, grow = 1) {
  let at = x;
  pen.bar(x, y, width, height, { color: "tint", alpha: 0.5 });
  list.forEach(({ share, label, place, key, lit }, i) => {
    const w = width * share * grow;
    if (w > 0.3) {
      const texts = [`${label} ${scene.number(share, 3)}`, label];
      const text = grow > 0.6 ? texts.find((one) => widthOf(one, { size: 12.5, bold: lit }) < w - 10) : undefined;
      pen.bar(at, y, Math.max(0.5, w - 1.5), height, { color: undefined, strength: 1 - 0.3 * (i % 3), text, size: 12.5, bold: lit, align: "center", place, key, stroke: lit ? "accent" : undefined, stroke_width: 2.5 });
    }
    at += w;
  });
}
