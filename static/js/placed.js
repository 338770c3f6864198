// The picture of any operation: its arrays as cells, placed by its equations; the chosen element with its row, its
// column and its sum.

import { arrange, offset } from "arrange";
import { drawBreaks, drawHeads, drawTitle, labelRoom, titleOf } from "box-labels";
import { indexAt, litIn, placementOf, shapeOf, wantedOn } from "boxes";
import { drawLegend, LEGEND } from "legend";
import { drawTaken } from "taken";
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
  const { digits, size } = scene.once("digits", () => digitsThatFit(scene, arrangement));
  const lit = scene.once("lit", () => boxes.map((placed) => litIn(placed, scene)));
  const signs = signsOf(arrangement, scene);
  boxes.forEach((placed, i) => {
    drawTitle(pen, placed, scene, signs[i]);
    drawHeads(pen, placed, arrangement, scene);
    drawCells(pen, placed, scene, { cell: arrangement.cell, digits, size, lit: lit[i], isOut: placed === main });
    pen.line(frameOf(placed.x, placed.y, placed.x + placed.width, placed.y + placed.height), { stroke_width: 1 }); // zeros are pale
    drawBreaks(pen, placed, arrangement.cell);
    if (placed !== main || scene.part("land") >= 1) outline(pen, placed, lit[i], arrangement.cell);
  });
  drawTaken(pen, arrangement, scene);
  drawLegend(pen, boxes, scene);
  const end = drawSum(pen, arrangement.sum, scene);
  drawLanding(pen, cellAt(main, lit[boxes.length - 1], arrangement.cell), end, scene);
}

/** @param {Scene} scene */
function arrangementOf(scene) {
  const { width, height, narrow } = scene;
  return arrange(placementOf(scene), {
    x: narrow ? 6 : 20, width: width - (narrow ? 12 : 40), height: height - 8 - LEGEND, narrow,
    labels: labelRoom(scene), sum: sumHeight(scene),
    length: (box, axis) => shapeOf(scene, box)[axis],
    wanted: (_, box, axis) => wantedOn(scene, box, axis),
    title: (box) => widthOf(`= ${titleOf(scene, box)}`, { size: 12, bold: true }) + 6,
  });
}

/**
 * @param {import("pen").Pen} pen
 * @param {Placed} placed
 * @param {Scene} scene
 * @param {{ cell: [number, number], digits: number, size: number, lit: (number | null)[], isOut: boolean }} how
 */
function drawCells(pen, placed, scene, { cell: [cw, ch], digits, size, lit, isOut }) {
  const { box } = placed;
  const runs = runsIn(placed, lit);
  const array = scene.operand(box.name);
  const { dtype } = array ? scene.store.array(array) : { dtype: "float64" };
  const common = scene.once("common", () => commonOf(scene));
  const largest = common || scene.once(`largest ${box.name}`, () => largestOf(placed, scene, lit));
  const bystander = 1 - 0.72 * scene.part("read") * (1 - scene.part("land"));
  for (const { x, y, row, m, index, isLit, value, key } of scene.once(`cells ${box.name}`, () => cellsOf(placed, scene, lit, [cw, ch]))) {
    const alpha = isOut ? shown(scene, isLit, row === lit[box.down ?? -1] || box.down === null, m, placed.columns.list.length) : isLit ? 1 : bystander;
    if (alpha < 1 && isOut) pen.cell(x, y, cw, ch, 0, { largest: 1, alpha: 1 - alpha });
    pen.cell(x, y, cw, ch, value, { largest, dtype, digits, size, lit: isLit && !runs, bold: isLit, alpha, key, place: array ? { array, index } : undefined });
  }
}

/**
 * The cells of a box, with their numbers.
 * @param {Placed} placed
 * @param {Scene} scene
 * @param {(number | null)[]} lit
 * @param {[number, number]} cell
 */
function cellsOf(placed, scene, lit, [cw, ch]) {
  const { box, x, y, rows, columns } = placed;
  const name = scene.operand(box.name) ?? `${scene.array} ${box.name}`;
  return rows.list.flatMap((row, n) => columns.list.map((column, m) => {
    const index = indexAt(placed, lit, row, column);
    const isLit = box.axes.every((_, axis) => lit[axis] === null || lit[axis] === index[axis]);
    return { x: x + offset(columns, m) * cw, y: y + offset(rows, n) * ch, row, m, index, isLit, value: scene.value(box.name, index), key: `${name} ${index}` };
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
 * What is added or taken off, number by number, is of one kind: one colour then means one size everywhere.
 * @param {Scene} scene the largest number of all its arrays; 0 where each has a scale of its own
 */
function commonOf({ operation, store, array }) {
  const body = operation?.equations.at(-1)?.[2];
  if (!operation || body?.[0] !== "binary" || !["+", "-"].includes(body[1]) || body[2][0] !== "read" || body[3][0] !== "read") return 0;
  return Math.max(...[array, ...Object.values(operation.operands)].map((name) => store.largest(name)));
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
  if (ch < 14 || cw < 26) return { digits: 0, size: 11 };
  for (let digits = Math.min(scene.digits, 4); digits >= 2; digits--) {
    const width = Math.max(...boxes.map((placed) => widest(scene, placed, digits)));
    if (width > cw - 4) continue;
    return { digits, size: Math.max(11, Math.min(15, Math.floor(ch * 0.42), Math.floor(11 * (cw - 10) / width))) };
  }
  return { digits: 0, size: 11 };
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
 * Whether a whole run of cells is lit: one line round it says so.
 * @param {Placed} placed
 * @param {(number | null)[]} lit
 */
function runsIn({ box }, lit) {
  return [box.down, box.across].some((axis) => axis !== null && lit[axis] === null);
}

/**
 * @param {import("pen").Pen} pen
 * @param {Placed} placed
 * @param {(number | null)[]} lit
 * @param {[number, number]} cell
 */
function outline(pen, placed, lit, cell) {
  if (!runsIn(placed, lit)) return;
  const { box, x, y, width, height, rows, columns } = placed;
  const [row, column] = [box.down === null ? 0 : lit[box.down], box.across === null ? 0 : lit[box.across]];
  if ((row !== null && !rows.list.includes(row)) || (column !== null && !columns.list.includes(column))) return;
  const [left, top] = cellAt(placed, lit, cell);
  const [x0, x1] = column === null ? [x, x + width] : [left, left + cell[0]];
  const [y0, y1] = row === null ? [y, y + height] : [top, top + cell[1]];
  pen.line(frameOf(x0, y0, x1, y1), { stroke: "accent", stroke_width: 2 });
}

/**
 * The corners of a box, round to the first.
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 */
function frameOf(x0, y0, x1, y1) {
  return [x0, y0, x1, y0, x1, y1, x0, y1, x0, y0];
}

/**
 * Where the lit cell of a box is; the first one where several are.
 * @param {Placed} placed
 * @param {(number | null)[]} lit
 * @param {[number, number]} cell
 */
function cellAt({ box, x, y, rows, columns }, lit, [cw, ch]) {
  const at = (/** @type {number | null} */ axis, /** @type {import("arrange").Fold} */ fold) => (
    offset(fold, axis === null ? 0 : Math.max(0, fold.list.indexOf(lit[axis] ?? fold.list[0]))));
  return [x + at(box.across, columns) * cw, y + at(box.down, rows) * ch, cw, ch];
}

/** @type {Record<string, string>} */
const SIGNS = { "*": "×", "-": "−" };

/**
 * What stands before each box: "=" before what is made and, where it is one sum or product of two arrays, its sign.
 * @param {import("arrange").Arrangement} arrangement
 * @param {Scene} scene
 */
function signsOf({ boxes, main }, scene) {
  const [, , body] = scene.operation?.equations.at(-1) ?? [];
  const isPlain = scene.operation?.equations.length === 1 && body?.[0] === "binary" && body[2][0] === "read" && body[3][0] === "read";
  return boxes.map(({ box }) => {
    if (box === main.box) return boxes.length > 1 ? "=" : "";
    return isPlain && body[3][1] === box.name && body[2][1] !== box.name ? SIGNS[body[1]] ?? body[1] : "";
  });
}

/**
 * What was worked out goes to its cell.
 * @param {import("pen").Pen} pen
 * @param {number[]} cell
 * @param {{ x: number, y: number } | null} from
 * @param {Scene} scene
 */
function drawLanding(pen, [x, y, cw, ch], from, scene) {
  const part = ease(scene.part("land"));
  if (part <= 0 || part >= 1 || !from || !scene.working) return;
  const text = scene.number(scene.working.value, scene.digits, scene.store.array(scene.array).dtype);
  const w = Math.max(cw, widthOf(text, { size: 12, mono: true, bold: true }) + 8);
  const mix = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * part;
  pen.cell(mix(from.x, x + cw / 2 - w / 2), mix(from.y - 12, y + ch / 2 - 9), w, 18, scene.working.value, { largest: scene.store.largest(scene.array), lit: true, text });
}
