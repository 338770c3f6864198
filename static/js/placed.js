// The picture of any operation: its arrays as cells, placed by its equations; the chosen element with its row, its
// column and its sum.

import { arrange, offset } from "arrange";
import { drawHeads, drawTitle, labelRoom, titleOf } from "box-labels";
import { indexAt, litIn, placementOf, shapeOf, wantedOn } from "boxes";
import { widthOf } from "pen";
import { ease } from "scene";
import { drawSum, sumHeight } from "sum";

/** @typedef {import("scene").Scene} Scene @typedef {import("arrange").Placed} Placed */

/**
 * First the chosen number, slowly, then its row, then all the others.
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  const sums = Boolean(scene.working?.terms);
  const say = (/** @type {string} */ name) => scene.say(`move.${sums ? `sum.${name}` : name}`);
  const list = [{ name: "read", ms: 700, say: say("read") }];
  if (placementOf(scene).boxes.length < 2) list.pop();
  else list.push({ name: "pairs", ms: sums ? 900 : 700, say: say("pairs") });
  if (sums) list.push({ name: "sum", ms: 900, say: say("sum") });
  list.push({ name: "land", ms: 500, say: say("land") });
  if (scene.store.size(scene.array) > 1) list.push({ name: "row", ms: 900, say: say("row") }, { name: "rest", ms: 600, say: say("rest") });
  return list;
}

/**
 * @param {import("pen").Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const arrangement = scene.once("arrangement", () => arrangementOf(scene));
  const { boxes, main } = arrangement;
  const digits = scene.once("digits", () => digitsThatFit(scene, arrangement));
  const lit = scene.once("lit", () => boxes.map((placed) => litIn(placed, scene)));
  boxes.forEach((placed, i) => {
    drawTitle(pen, placed, scene);
    drawHeads(pen, placed, arrangement, scene);
    drawCells(pen, placed, scene, { cell: arrangement.cell, digits, lit: lit[i], isOut: placed === main });
  });
  drawSigns(pen, arrangement);
  drawFlight(pen, arrangement, lit, scene, digits);
  drawSum(pen, arrangement.sum, scene);
}

/** @param {Scene} scene */
function arrangementOf(scene) {
  const { width, height, narrow } = scene;
  return arrange(placementOf(scene), {
    width: width - (narrow ? 12 : 40), height: height - 8, narrow,
    labels: labelRoom(scene), sum: sumHeight(scene),
    length: (box, axis) => shapeOf(scene, box)[axis],
    wanted: (_, box, axis) => wantedOn(scene, box, axis),
    title: (box) => widthOf(titleOf(scene, box), { size: 12, bold: true }) + 6,
  });
}

/**
 * @param {import("pen").Pen} pen
 * @param {Placed} placed
 * @param {Scene} scene
 * @param {{ cell: [number, number], digits: number, lit: (number | null)[], isOut: boolean }} how
 */
function drawCells(pen, placed, scene, { cell: [cw, ch], digits, lit, isOut }) {
  const { box, x, y, rows, columns } = placed;
  const array = scene.operand(box.name);
  const { dtype } = array ? scene.store.array(array) : { dtype: "float64" };
  const largest = scene.once(`largest ${box.name}`, () => largestOf(placed, scene, lit));
  const bystander = 1 - 0.72 * scene.part("read") * (1 - scene.part("land"));
  rows.list.forEach((row, n) => columns.list.forEach((column, m) => {
    const index = indexAt(placed, lit, row, column);
    const isLit = box.axes.every((_, axis) => lit[axis] === null || lit[axis] === index[axis]);
    const alpha = isOut ? shown(scene, isLit, row === lit[box.down ?? -1] || box.down === null, m, columns.list.length) : isLit ? 1 : bystander;
    const at = [x + offset(columns, m) * cw, y + offset(rows, n) * ch];
    if (alpha < 1 && isOut) pen.cell(at[0], at[1], cw, ch, 0, { largest: 1, alpha: 1 - alpha });
    pen.cell(at[0], at[1], cw, ch, scene.value(box.name, index), { largest, dtype, digits, lit: isLit, alpha,
      key: `${array ?? `${scene.array} ${box.name}`} ${index}`, place: array ? { array, index } : undefined });
  }));
}

/**
 * How much of a made number is seen: the chosen one lands first, its row follows, then the rest.
 * @param {Scene} scene
 * @param {boolean} isLit
 * @param {boolean} inRow
 * @param {number} m
 * @param {number} n
 */
function shown(scene, isLit, inRow, m, n) {
  if (isLit) return scene.part("land") >= 1 ? 1 : 0;
  return inRow ? Math.max(0, Math.min(1, scene.part("row") * n - m)) : ease(scene.part("rest"));
}

/**
 * @param {Placed} placed
 * @param {Scene} scene
 * @param {(number | null)[]} lit
 */
function largestOf(placed, scene, lit) {
  const array = scene.operand(placed.box.name);
  const known = array ? scene.store.largest(array) : 0;
  if (known) return known;
  let largest = 0;
  for (const row of placed.rows.list) {
    for (const column of placed.columns.list) {
      const size = Math.abs(scene.value(placed.box.name, indexAt(placed, lit, row, column)));
      if (size > largest && size < Infinity) largest = size;
    }
  }
  return largest;
}

/**
 * The most significant digits with which every number fits into its cell; 0: colour alone.
 * @param {Scene} scene
 * @param {import("arrange").Arrangement} arrangement
 */
function digitsThatFit(scene, { boxes, cell: [cw, ch] }) {
  if (ch < 14 || cw < 26) return 0;
  for (let digits = Math.min(scene.digits, 4); digits >= 2; digits--) {
    if (boxes.every((placed) => widest(scene, placed, digits) <= cw - 4)) return digits;
  }
  return 0;
}

/**
 * @param {Scene} scene
 * @param {Placed} placed
 * @param {number} digits
 */
function widest(scene, placed, digits) {
  const array = scene.operand(placed.box.name);
  const { dtype } = array ? scene.store.array(array) : { dtype: "float64" };
  const lit = litIn(placed, scene);
  let width = 0;
  for (const row of placed.rows.list) {
    for (const column of placed.columns.list) {
      width = Math.max(width, widthOf(scene.number(scene.value(placed.box.name, indexAt(placed, lit, row, column)), digits, dtype), { size: 11, mono: true, bold: true }));
    }
  }
  return width;
}

/**
 * "=" before what is made, where it stands beside what it is made of.
 * @param {import("pen").Pen} pen
 * @param {import("arrange").Arrangement} arrangement
 */
function drawSigns(pen, { boxes, main, cell: [, ch] }) {
  const before = boxes.filter((placed) => placed !== main && placed.y === main.y);
  if (!before.length) return;
  const end = Math.max(...before.map((placed) => placed.x + placed.width));
  pen.text((end + main.x) / 2, main.y + Math.max(main.height, ch) / 2 + 6, "=", { size: 18, color: "soft", align: "center" });
}

/**
 * Copies of what is read travel to where the number is made.
 * @param {import("pen").Pen} pen
 * @param {import("arrange").Arrangement} arrangement
 * @param {(number | null)[][]} lit
 * @param {Scene} scene
 * @param {number} digits
 */
function drawFlight(pen, { boxes, main, sum, cell: [cw, ch] }, lit, scene, digits) {
  const part = ease(scene.part("pairs"));
  if (part <= 0 || part >= 1) return;
  const sums = Boolean(scene.working?.terms);
  const target = lit[boxes.length - 1];
  const at = (/** @type {Placed} */ { box, x, y, rows, columns }, /** @type {(number | null)[]} */ where, /** @type {number} */ n, /** @type {number} */ m) => (
    [x + offset(columns, where[box.across ?? -1] === null ? m : Math.max(0, columns.list.indexOf(where[box.across ?? -1] ?? 0))) * cw,
      y + offset(rows, where[box.down ?? -1] === null ? n : Math.max(0, rows.list.indexOf(where[box.down ?? -1] ?? 0))) * ch]);
  const end = sums ? [sum.x + 40, sum.y + 30] : at(main, target, 0, 0);
  boxes.slice(0, -1).forEach((placed, i) => {
    const isLong = lit[i].some((place) => place === null);
    const count = isLong ? Math.max(placed.box.across !== null && lit[i][placed.box.across] === null ? placed.columns.list.length : placed.rows.list.length) : 1;
    for (let k = 0; k < Math.min(count, 24); k++) {
      const [x, y] = at(placed, lit[i], k, k);
      const row = placed.rows.list[Math.min(k, placed.rows.list.length - 1)];
      const column = placed.columns.list[Math.min(k, placed.columns.list.length - 1)];
      const index = placed.box.axes.map((_, axis) => lit[i][axis] ?? (axis === placed.box.down ? row : column));
      const goal = sums ? [end[0] + (i % 2) * cw, end[1] + k * Math.min(20, (sum.height - 60) / count)] : end;
      pen.cell(x + (goal[0] - x) * part, y + (goal[1] - y) * part, cw, ch, scene.value(placed.box.name, index), { largest: scene.once(`largest ${placed.box.name}`, () => 0), digits, lit: true, alpha: 1 - 0.5 * part });
    }
  });
}
