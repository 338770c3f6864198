// What is written around the boxes of a placed picture: their names, and labels of rows and columns.

import { BREAK, HEAD, offset } from "arrange";
import { placementOf } from "boxes";
import { bare } from "dom";
import { widthOf } from "pen";

/** @typedef {import("scene").Scene} Scene @typedef {import("arrange").Placed} Placed @typedef {import("placement").Box} Box */

/**
 * Room for the labels of the rows: the widest of any box.
 * @param {Scene} scene
 */
export function labelRoom(scene) {
  let widest = 0;
  for (const { name, down } of placementOf(scene).boxes) {
    const array = scene.operand(name);
    if (array && down !== null) widest = Math.max(widest, widestLabel(scene, array, down));
  }
  return widest ? Math.min(scene.narrow ? 44 : 90, widest) + 10 : 4;
}

/**
 * @param {Scene} scene
 * @param {string} array
 * @param {number} axis
 */
export function widestLabel(scene, array, axis) {
  const length = Math.min(60, scene.store.shape(array)[axis]);
  let widest = 12;
  for (let i = 0; i < length; i++) widest = Math.max(widest, widthOf(bare(scene.label(array, axis, i)), { size: 11.5 }));
  return widest;
}

/**
 * What an array is called over its box: its name in the equations, what is made by the end of its own, and its symbol.
 * @param {Scene} scene
 * @param {Box} box
 */
export function titleOf(scene, { name, what }) {
  const { operation, store } = scene;
  const symbol = operation ? store.outline.symbols[operation.notation]?.[name] ?? "" : "";
  const own = what === "out" && name === "out" ? scene.array.split(".").at(-1) ?? name : name;
  const said = wayOf(scene, name) ?? scene.words[`picture.name.${own}`] ?? (name.startsWith("d_") ? "" : own);
  return symbol && symbol !== said ? `${said} ${symbol}`.trim() : said || name;
}

/**
 * Of gradients that meet: by which way each has come, which is the kind of what it came through.
 * @param {Scene} scene
 * @param {string} name
 */
function wayOf({ operation, store, words }, name) {
  const from = operation?.kind === "gradient_sum" ? store.operation(operation.operands[name] ?? "") : null;
  return [from?.kind, "any"].map((kind) => words[`picture.${`way.${kind}`}`]).find((said) => from && said);
}

/**
 * @param {import("pen").Pen} pen
 * @param {Placed} placed
 * @param {Scene} scene
 * @param {string} sign before it, such as "="
 */
export function drawTitle(pen, { box, x, y, head, room }, scene, sign = "") {
  const style = { size: 12, bold: true };
  const before = sign ? `${sign} ` : "";
  pen.text(x, y - (head ? HEAD : 0) - 6, short(before + titleOf(scene, box), room, 12, true), { ...style, color: roleOf(box) });
}

/**
 * Where places of an axis are left out: a mark in the gap.
 * @param {import("pen").Pen} pen
 * @param {Placed} placed
 * @param {[number, number]} cell
 */
export function drawBreaks(pen, { x, y, width, height, rows, columns }, [cw, ch]) {
  for (const i of columns.breaks) {
    const at = x + (offset(columns, i) - BREAK / 2) * cw;
    if (cw * BREAK > 13) pen.text(at, y + height / 2 + 4, "⋯", { size: 13, color: "soft", align: "center" });
    else pen.line([at, y, at, y + height], { stroke: "soft", stroke_width: 1, dash: [1, 3] });
  }
  for (const i of rows.breaks) {
    const at = y + (offset(rows, i) - BREAK / 2) * ch;
    if (ch * BREAK > 13) pen.text(x + width / 2, at + 4, "⋮", { size: 13, color: "soft", align: "center" });
    else pen.line([x, at, x + width, at], { stroke: "soft", stroke_width: 1, dash: [1, 3] });
  }
}

/**
 * Which axes are folded, as words: one for each letter.
 * @param {Placed[]} boxes
 * @param {Scene} scene
 */
export function foldsIn(boxes, scene) {
  /** @type {Map<string, string>} */
  const said = new Map();
  for (const { box, columns, rows } of boxes) {
    for (const [axis, { list, all }] of /** @type {const} */ ([[box.down, rows], [box.across, columns]])) {
      if (axis === null || list.length === all) continue;
      const array = scene.operand(box.name);
      const name = array ? scene.store.array(array).axes[axis] : "";
      said.set(`${list.length} ${all}`, `${scene.words[`axis.${name}`] ?? name} ${scene.say("folded", { shown: list.length, all: all.toLocaleString("en") })}`.trim());
    }
  }
  return [...said.values()];
}

/**
 * The colour of what an array is for, whatever the sign of its numbers.
 * @param {Box} box
 * @returns {import("pen").Color}
 */
function roleOf({ name }) {
  if (name.startsWith("d_")) return "gradient";
  if (name === "query" || name === "key" || name === "value" || name === "weight") return name;
  return name === "table" ? "weight" : "ink";
}

/**
 * Labels of rows at the far left, of columns over the first box that has them; where they are too close, some.
 * @param {import("pen").Pen} pen
 * @param {Placed} placed
 * @param {import("arrange").Arrangement} arrangement
 * @param {Scene} scene
 */
export function drawHeads(pen, placed, { cell: [cw, ch], left, labels, sum, boxes, main }, scene) {
  const { box, x, y, columns, rows, head } = placed;
  const array = scene.operand(box.name);
  const { down, across } = box;
  const isFirst = boxes.filter((other) => other.y === placed.y).every((other) => other.x >= x);
  const room = x === left || !sum.corner ? x - left + labels - 10 : scene.narrow ? 0 : 22;
  if (array && down !== null && isFirst && ch >= 6 && room >= 12) {
    const every = Math.ceil(12 / ch);
    rows.list.forEach((i, n) => {
      if (n % every) return;
      const text = short(bare(scene.label(array, down, i)), room, 11.5);
      pen.text(x - 8, y + (offset(rows, n) + 0.5) * ch + 4, text, { size: 11.5, color: "soft", align: "right" });
    });
  }
  if (!array || across === null || !head || (placed === main && boxes.some((other) => other !== main && other.x === x && other.head))) return;
  const widest = Math.max(...columns.list.slice(0, 40).map((i) => widthOf(short(bare(scene.label(array, across, i)), 58, 11), { size: 11 })));
  const every = Math.ceil((widest + 4) / cw);
  columns.list.forEach((i, n) => {
    if (n % every || (n && columns.breaks.has(n) && every > 1)) return;
    const text = short(bare(scene.label(array, across, i)), 58, 11);
    const middle = Math.min(x + (offset(columns, n) + 0.5) * cw, pen.width - widthOf(text, { size: 11 }) / 2 - 1);
    pen.text(middle, y - 5, text, { size: 11, color: "soft", align: "center" });
  });
}

/**
 * A label that is too long ends in "…", so that it does not look whole.
 * @param {string} text
 * @param {number} width
 * @param {number} size
 */
function short(text, width, size, bold = false) {
  if (widthOf(text, { size, bold }) <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && widthOf(`${letters.join("")}…`, { size, bold }) > width) letters.pop();
  return `${letters.join("")}…`;
}
