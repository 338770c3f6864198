// What is written around the boxes of a placed picture: their names, and labels of rows and columns.

import { HEAD, offset } from "arrange";
import { placementOf, shapeOf } from "boxes";
import { bare } from "dom";
import { widthOf } from "pen";

/** @typedef {import("scene").Scene} Scene @typedef {import("arrange").Placed} Placed @typedef {import("placement").Box} Box */

/** @param {Scene} scene */
export function labelRoom(scene) {
  const { boxes, rows } = placementOf(scene);
  const out = boxes[boxes.length - 1];
  if (!rows || out.down === null) return scene.narrow ? 4 : 12;
  const length = Math.min(40, scene.store.shape(scene.array)[out.down]);
  let widest = 12;
  for (let i = 0; i < length; i++) widest = Math.max(widest, widthOf(bare(scene.label(scene.array, out.down, i)), { size: 11.5 }));
  return Math.min(scene.narrow ? 44 : 90, widest) + 10;
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
  const said = scene.words[`picture.name.${own}`] ?? (name.startsWith("d_") ? "" : own);
  return symbol && symbol !== said ? `${said} ${symbol}`.trim() : said || name;
}

/**
 * @param {import("pen").Pen} pen
 * @param {Placed} placed
 * @param {Scene} scene
 */
export function drawTitle(pen, { box, x, y, head, columns, rows }, scene) {
  const shape = shapeOf(scene, box);
  const isFolded = columns.list.length < columns.all || rows.list.length < rows.all;
  const name = titleOf(scene, box);
  pen.text(x, y - (head ? HEAD : 0) - 6, name, { size: 12, bold: true, color: roleOf(box) });
  const note = isFolded ? scene.say("folded", { shown: `${rows.list.length}×${columns.list.length}`, all: shape.slice(-2).map((n) => n.toLocaleString("en")).join("×") }) : "";
  const from = x + widthOf(name, { size: 12, bold: true }) + 8;
  if (note) pen.text(from, y - (head ? HEAD : 0) - 6, note, { size: 11, color: "soft" });
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
export function drawHeads(pen, placed, { cell: [cw, ch], left, boxes, main }, scene) {
  const { box, x, y, columns, rows, head } = placed;
  const array = scene.operand(box.name);
  const { down, across } = box;
  const isFirst = boxes.filter((other) => other.y === placed.y).every((other) => other.x >= x);
  const room = x - left > 30 ? 30 : x - left + 90;
  if (array && down !== null && isFirst && ch >= 6) {
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
    pen.text(x + (offset(columns, n) + 0.5) * cw, y - 5, short(bare(scene.label(array, across, i)), 58, 11), { size: 11, color: "soft", align: "center" });
  });
}

/**
 * A label that is too long ends in "…", so that it does not look whole.
 * @param {string} text
 * @param {number} width
 * @param {number} size
 */
function short(text, width, size) {
  if (widthOf(text, { size }) <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && widthOf(`${letters.join("")}…`, { size }) > width) letters.pop();
  return `${letters.join("")}…`;
}
