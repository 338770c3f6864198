// The picture of any operation: its arrays as cells, placed by its equations; the chosen element with its row, its
// column and its sum.

import { arrange, HEAD, keyOf, offset, TITLE } from "arrange";
import { bare } from "dom";
import { widthOf } from "pen";
import { place } from "placement";
import { ease } from "scene";
import { drawSum, sumHeight } from "sum";

/** @typedef {import("scene").Scene} Scene @typedef {import("arrange").Placed} Placed @typedef {import("placement").Box} Box */

/** @type {WeakMap<Equation[], import("placement").Placement>} */
const placements = new WeakMap();

/** @param {Scene} scene */
export function placementOf(scene) {
  const equations = scene.operation?.equations ?? [];
  const known = placements.get(equations) ?? place(equations);
  placements.set(equations, known);
  return known;
}

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
 * The shape of an array, or of a value in between.
 * @param {Scene} scene
 * @param {Box} box
 */
export function shapeOf(scene, box) {
  const array = scene.operand(box.name);
  if (array) return scene.store.shape(array);
  const sizes = scene.computation?.sizes ?? {};
  return box.axes.map(({ letter }) => (letter ? sizes[letter] : 1));
}

/**
 * Where an axis is folded, these places are seen: the chosen one, those that a lookup takes, and the largest.
 * @param {Scene} scene
 * @param {Box} box
 * @param {number} axis
 */
function wantedOn(scene, box, axis) {
  const { at, lookup, letter } = box.axes[axis];
  const letters = scene.letters;
  /** @type {number[]} */
  const found = [];
  const evaluate = (/** @type {Letters} */ bound) => {
    const i = scene.computation?.evaluate(at, { ...letters, ...bound });
    if (i !== undefined && Number.isInteger(i)) found.push(i);
  };
  if (letter && letter in letters) found.push(letters[letter]);
  else if (!letter) evaluate({});
  if (lookup) {
    const over = placementOf(scene);
    for (const name of [over.rows, over.columns]) {
      if (name) for (let i = 0; i < Math.min(40, scene.computation?.sizes[name] ?? 0); i++) evaluate({ [name]: i });
    }
  }
  const out = scene.store.values(scene.array);
  const target = placementOf(scene).boxes.at(-1);
  if (out && letter && target) found.push(...largestPlaces(out, scene, target.axes.findIndex((other) => other.letter === letter)));
  return [...new Set(found)];
}

/**
 * Where along an axis what is made is largest: the strongest places of the first numbers.
 * @param {ArrayLike<number>} values
 * @param {Scene} scene
 * @param {number} axis
 */
function largestPlaces(values, scene, axis) {
  const shape = scene.store.shape(scene.array);
  if (axis < 0 || shape[axis] < 200) return [];
  const after = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const best = new Float64Array(shape[axis]);
  for (let flat = 0; flat < values.length; flat++) {
    const i = Math.floor(flat / after) % shape[axis];
    if (Math.abs(values[flat]) > best[i]) best[i] = Math.abs(values[flat]);
  }
  return Array.from(best.keys()).filter((i) => best[i] > 0).sort((a, b) => best[b] - best[a]).slice(0, 6);
}

/** @param {Scene} scene */
function labelRoom(scene) {
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
function drawTitle(pen, { box, x, y, head, columns, rows }, scene) {
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
function drawHeads(pen, placed, { cell: [cw, ch], left, boxes, main }, scene) {
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

/**
 * Which cells the chosen element reads: place of the row and of the column, or null for all of them.
 * @param {Placed} placed
 * @param {Scene} scene
 */
function litIn({ box }, scene) {
  const { computation } = scene;
  const bound = scene.letters;
  return box.axes.map(({ at, letter }) => {
    if (letter) return letter in bound ? bound[letter] : null;
    if (!computation) return null;
    const i = computation.evaluate(at, bound);
    return Number.isFinite(i) ? i : null;
  });
}

/**
 * The index in its array of the cell at a row and a column; on other axes the chosen element says the place.
 * @param {Placed} placed
 * @param {(number | null)[]} lit
 * @param {number} row
 * @param {number} column
 */
function indexAt({ box }, lit, row, column) {
  return box.axes.map((_, axis) => (axis === box.down ? row : axis === box.across ? column : lit[axis] ?? 0));
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

export { keyOf, TITLE };

/**
 * An array that nothing made: the chosen layer of it, as cells.
 * @param {import("pen").Pen} pen
 * @param {Scene} scene
 */
export function drawGiven(pen, scene) {
  const { store, array } = scene;
  if (!array || !store.has(array)) return;
  const { axes, shape } = store.array(array);
  const letters = axes.map((_, i) => /** @type {LetterNode} */ (["letter", `a${i}`]));
  const [box] = place([["out", letters, ["number", 0]]]).boxes;
  const given = /** @type {Box} */ ({ ...box, name: array });
  const lit = scene.index;
  const room = { width: scene.width - 40, height: scene.height - 8, narrow: scene.narrow, labels: scene.narrow ? 44 : 90, sum: 8,
    length: (/** @type {Box} */ _, /** @type {number} */ axis) => shape[axis], wanted: (/** @type {string} */ _, /** @type {Box} */ __, /** @type {number} */ axis) => [lit[axis]],
    title: () => widthOf(array, { size: 12, bold: true }) };
  const arrangement = arrange({ rows: null, columns: null, layers: [], boxes: [given] }, room);
  const [only] = arrangement.boxes;
  const [cw, ch] = arrangement.cell;
  const digits = cw > 44 && ch > 13 ? Math.min(3, scene.digits) : 0;
  pen.text(only.x, only.y - HEAD - 6, array, { size: 12, bold: true });
  drawHeads(pen, only, arrangement, scene);
  only.rows.list.forEach((row, n) => only.columns.list.forEach((column, m) => {
    const index = indexAt(only, lit, row, column);
    pen.cell(only.x + offset(only.columns, m) * cw, only.y + offset(only.rows, n) * ch, cw, ch, store.value(array, index),
      { largest: store.largest(array), digits, dtype: store.array(array).dtype, key: `${array} ${index}`, place: { array, index }, lit: index.every((at, axis) => at === lit[axis]) });
  }));
}
