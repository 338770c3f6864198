// Places made geometry: which box of cells stands where, how large its cells are, and what is folded for want of room.

/** @typedef {import("placement").Box} Box */

/**
 * The places of an axis that are shown.  `breaks`: before which of them others are left out.
 * @typedef {{ list: number[], all: number, breaks: Set<number> }} Fold
 *
 * A box with its place in the picture.  `size`: of a cell; `head`: whether labels stand over its columns.
 * @typedef {object} Placed
 * @property {Box} box
 * @property {number} x
 * @property {number} y
 * @property {number} width
 * @property {number} height
 * @property {Fold} columns
 * @property {Fold} rows
 * @property {boolean} head
 * @property {number} room for its title, px
 *
 * @typedef {object} Arrangement
 * @property {Placed[]} boxes
 * @property {[number, number]} cell width and height of a cell
 * @property {{ x: number, y: number, width: number, height: number, corner: boolean }} sum where the chosen number is worked out
 * @property {number} left where the labels of the rows end
 * @property {number} labels how wide they are
 * @property {Placed} main
 *
 * What an arrangement has to know.
 * @typedef {object} Room
 * @property {number} x where it begins
 * @property {number} width
 * @property {number} height
 * @property {boolean} narrow
 * @property {number} labels room for the labels of the rows
 * @property {number} sum room for the working, where it finds no corner
 * @property {(box: Box, axis: number) => number} length of an axis
 * @property {(key: string, box: Box, axis: number) => number[]} wanted places that must be seen
 * @property {(box: Box) => number} title width
 */

const LARGEST = [88, 42]; // of a cell
const SMALLEST = [8, 9];
const COMFORT = [40, 16]; // of a cell with its number: an axis that is folded anyway is folded so far
const FLATTEST = 3.2; // a cell is at most so many times as wide as it is high
const MOST = 130; // places of an axis
const LIST = [210, 84]; // the least room in which the terms of a sum can be listed
export const BREAK = 0.7; // of a cell, where places are left out
const TITLE = 18;
export const HEAD = 15;
const ONE = { list: [0], all: 1, breaks: /** @type {Set<number>} */ (new Set()) };

/**
 * The better of two ways: side by side on common rows, or one over the other on common columns.
 * @param {import("placement").Placement} placement
 * @param {Room} room
 * @returns {Arrangement}
 */
export function arrange({ boxes }, room) {
  const ways = [plan(boxes, false)];
  if (ways[0].stackable) ways.push(plan(boxes, true));
  const laid = ways.map((way) => layOut(way, room));
  return laid.reduce((a, b) => (b.score > a.score * 1.05 ? b : a)).arrangement;
}

/**
 * The working stands in the corner between what is read, where it has room there, else below; in little room it is short.
 * @param {ReturnType<typeof plan>} way
 * @param {Room} room
 */
function layOut(way, room) {
  const tries = [{ room, corner: true }, { room, corner: false }, { room: { ...room, sum: Math.min(room.sum, 30) }, corner: false }];
  for (const { room: given, corner } of tries.slice(hasCorner(way) ? 0 : 1)) {
    const fitted = fit(way, given, corner);
    const arrangement = lay(fitted, given);
    const { width, height } = arrangement.sum;
    const isLast = given !== room;
    if (corner ? width >= LIST[0] && height >= LIST[1] : fitted.ch >= 6 || isLast) return { arrangement, score: fitted.score };
  }
  throw new Error("the last try always ends it");
}

/**
 * Groups from left to right, and bands from top to bottom; a box stands in one of each.
 * @param {Box[]} boxes
 * @param {boolean} stacked
 */
function plan(boxes, stacked) {
  const out = boxes[boxes.length - 1];
  const inLine = boxes.filter((box) => box.where === "line" && box !== out);
  const isOver = (/** @type {Box} */ box) => box.where === "above" || box.where === "row" || (box.where === "terms" && box.down === null) || (stacked && box.where === "line");
  const over = boxes.filter((box) => box !== out && isOver(box));
  const besideOver = boxes.filter((box) => box.where === "terms" && box.down !== null);
  const beside = boxes.filter((box) => box !== out && !over.includes(box) && !besideOver.includes(box));
  const order = (/** @type {Box} */ box) => (box.where === "left" || box.where === "whole" || box.lookup ? 0 : 1);
  const groups = [...beside.sort((a, b) => order(a) - order(b)).map((box) => [box]), ...besideOver.map((box) => [box]), [...over, out]];
  const level = [...beside, out];
  const firstAbove = over.find((box) => box.where === "above");
  const bands = [...over.map((box) => (box === firstAbove ? [box, ...besideOver] : [box])), level];
  return { groups, bands, out, stackable: inLine.length > 0 && inLine.every((box) => box.axes[box.across ?? 0].letter !== null) };
}

/**
 * How large the cells can be; the longest axis is folded until they are large enough to be seen.
 * @param {ReturnType<typeof plan>} way
 * @param {Room} room
 * @param {boolean} corner whether the working stands in it
 */
function fit(way, room, corner) {
  /** @type {Map<string, number>} */
  const most = new Map();
  const gap = room.narrow ? 14 : 34;
  const least = room.narrow ? [6, 8] : SMALLEST;
  for (;;) {
    const folds = foldsOf(room, most);
    const unitsX = way.groups.map((group) => Math.max(...group.map((box) => units(folds.columns(box)))));
    const unitsY = way.bands.map((band) => Math.max(...band.map((box) => units(folds.rows(box)))));
    const fixedX = room.labels + gap * (way.groups.length - 1);
    const fixedY = way.bands.length * TITLE + HEAD * 2 + (way.bands.length - 1) * 8 + (corner ? 0 : room.sum);
    const wide = widthOfCell(way, room, unitsX, room.width - fixedX);
    const tall = Math.max(0.25, room1((room.height - fixedY) / sum(unitsY), 1));
    if (wide < least[0] && shorten(way, folds, most, true, 3)) continue;
    if (tall < least[1] && shorten(way, folds, most, false, 3)) continue;
    if (wide < COMFORT[0] && shorten(way, folds, most, true, 9, true)) continue;
    if (tall < COMFORT[1] && shorten(way, folds, most, false, 9, true)) continue;
    const cw = Math.min(wide, Math.max(tall * FLATTEST, 14));
    const ch = Math.min(tall, Math.max(cw * 2, 14));
    return { way, folds, cw, ch, gap, corner, unitsX, unitsY, score: Math.min(cw, 46) * Math.min(ch, 22) * shownOf(way, folds) };
  }
}

/**
 * The widest cell with which all groups fit, those too that their title makes wider than their cells.
 * @param {ReturnType<typeof plan>} way
 * @param {Room} room
 * @param {number[]} unitsX
 * @param {number} width
 */
function widthOfCell(way, room, unitsX, width) {
  const titles = titlesOf(way, room);
  let cw = room1(width / sum(unitsX), 0);
  while (cw > 1 && sum(unitsX.map((n, i) => Math.max(n * cw, titles[i]))) > width) cw -= 0.25;
  return cw;
}

/**
 * The room that the titles of each group ask for; where there are too many groups, they are cut short.
 * @param {ReturnType<typeof plan>} way
 * @param {Room} room
 */
function titlesOf({ groups }, room) {
  const most = (room.width - room.labels) / groups.length - (room.narrow ? 14 : 34);
  return groups.map((group) => Math.min(most, Math.max(...group.map((box) => room.title(box)))));
}

/**
 * @param {number} size
 * @param {0 | 1} axis
 */
function room1(size, axis) {
  return Math.min(LARGEST[axis], Math.floor(size * 4) / 4);
}

/** @param {ReturnType<typeof plan>} way */
function hasCorner({ groups, bands }) {
  return groups.length > 1 && bands.length > 1 && bands[0][0].where === "above" && groups[0][0].where === "left" && groups.length === 2;
}

/**
 * @param {Room} room
 * @param {Map<string, number>} most
 */
function foldsOf(room, most) {
  /** @type {Map<string, Fold>} */
  const known = new Map();
  const of = (/** @type {Box} */ box, /** @type {number | null} */ axis) => {
    if (axis === null) return ONE;
    const key = keyOf(box, axis);
    const length = room.length(box, axis);
    if (!most.has(key)) most.set(key, Math.min(length, MOST));
    const made = known.get(key) ?? fold(length, most.get(key) ?? length, room.wanted(key, box, axis));
    known.set(key, made);
    return made;
  };
  return {
    columns: (/** @type {Box} */ box) => of(box, box.across),
    rows: (/** @type {Box} */ box) => of(box, box.down),
  };
}

/**
 * Axes with the same letter are folded alike, so that rows stay level with rows.
 * @param {Box} box
 * @param {number} axis
 */
function keyOf(box, axis) {
  return box.axes[axis].letter ?? `${box.name} ${axis}`;
}

/**
 * Some places of an axis: what is wanted with its neighbours, the first and the last, then from the start.
 * @param {number} length
 * @param {number} most
 * @param {number[]} wanted
 * @returns {Fold}
 */
function fold(length, most, wanted) {
  if (length <= most) return { list: Array.from({ length }, (_, i) => i), all: length, breaks: new Set() };
  /** @type {Set<number>} */
  const chosen = new Set();
  const add = (/** @type {number} */ i) => { if (i >= 0 && i < length && chosen.size < most) chosen.add(i); };
  wanted.forEach(add);
  [0, length - 1].forEach(add);
  for (let near = 1; near < length && chosen.size < most; near++) for (const i of [...wanted.slice(0, 1), 0]) { add(i + near); add(i - near); }
  const list = [...chosen].sort((a, b) => a - b);
  return { list, all: length, breaks: new Set(list.flatMap((place, i) => (i && place !== list[i - 1] + 1 ? [i] : []))) };
}

/** @param {Fold} folded */
function units({ list, breaks }) {
  return list.length + BREAK * breaks.size;
}

/**
 * How much is seen of the axis that is folded most, as a part of what could be seen at all.
 * @param {ReturnType<typeof plan>} way
 * @param {ReturnType<typeof foldsOf>} folds
 */
function shownOf({ groups }, folds) {
  const parts = groups.flat().flatMap((box) => [folds.columns(box), folds.rows(box)]).map(({ list, all }) => list.length / Math.min(all, MOST));
  return Math.min(...parts);
}

/** @param {number[]} list */
function sum(list) {
  return list.reduce((a, b) => a + b, 0);
}

/**
 * Show fewer places of the longest axis in a direction; false when there is nothing left to fold.
 * @param {ReturnType<typeof plan>} way
 * @param {ReturnType<typeof foldsOf>} folds
 * @param {Map<string, number>} most
 * @param {boolean} across
 * @param {number} least places that stay
 * @param {boolean} folded whether only an axis that is folded already is asked
 */
function shorten(way, folds, most, across, least, folded = false) {
  let longest = "";
  let length = least;
  for (const box of way.groups.flat()) {
    const axis = across ? box.across : box.down;
    if (axis === null) continue;
    const { list, all } = across ? folds.columns(box) : folds.rows(box);
    const count = list.length;
    if (count > length && (!folded || (count < all && all > MOST))) { length = count; longest = keyOf(box, axis); }
  }
  if (longest) most.set(longest, Math.max(least, Math.floor(length * 0.9)));
  return Boolean(longest);
}

/**
 * @param {ReturnType<typeof fit>} fitted
 * @param {Room} room
 * @returns {Arrangement}
 */
function lay({ way, folds, cw, ch, gap, corner, unitsX, unitsY }, room) {
  const heads = way.bands.map((_, i) => (i === 0 || i === way.bands.length - 1 ? HEAD : 0));
  const titles = titlesOf(way, room);
  const widths = unitsX.map((n, i) => Math.max(n * cw, titles[i]));
  const heights = unitsY.map((n) => n * ch);
  const width = room.labels + sum(widths) + gap * (widths.length - 1);
  const height = sum(heights) + way.bands.length * TITLE + sum(heads) + 8 * (heights.length - 1) + (corner ? 0 : room.sum);
  const x0 = room.x + Math.max(0, (room.width - width) / 2) + room.labels;
  const y0 = 4 + Math.max(0, (room.height - height) / 2);
  const lefts = starts(widths, x0, () => gap);
  const tops = starts(heights, y0, (i) => TITLE + heads[i], 8);
  /** @type {Placed[]} */
  const boxes = [];
  way.groups.forEach((group, g) => group.forEach((box) => {
    const band = way.bands.findIndex((list) => list.includes(box));
    const [columns, rows] = [folds.columns(box), folds.rows(box)];
    boxes.push({ box, x: lefts[g], y: tops[band], width: units(columns) * cw, height: units(rows) * ch, columns, rows, head: heads[band] > 0,
      room: widths[g] + (g < widths.length - 1 ? gap - 6 : 0) });
  }));
  const main = boxes[boxes.length - 1];
  const bottom = Math.max(...boxes.map((placed) => placed.y + placed.height));
  const below = Math.max(width, Math.min(room.width, 560));
  const space = corner ? { x: x0 - room.labels, y: y0, width: main.x - gap - x0 + room.labels, height: main.y - TITLE - HEAD - 10 - y0, corner }
    : { x: Math.max(room.x, Math.min(x0 - room.labels, room.x + room.width - below)), y: bottom + 10, width: Math.min(below, room.width), height: room.sum - 10, corner };
  return { boxes, cell: [cw, ch], sum: space, left: x0, labels: room.labels, main };
}

/**
 * @param {number[]} sizes
 * @param {number} from
 * @param {(i: number) => number} before room before each
 * @param {number} between
 */
function starts(sizes, from, before, between = 0) {
  /** @type {number[]} */
  const found = [];
  sizes.forEach((_, i) => {
    const gap = between ? before(i) : i ? before(i) : 0;
    found.push((i ? found[i - 1] + sizes[i - 1] + between : from) + gap);
  });
  return found;
}

/**
 * Where a place of a fold begins, in cells from its start.
 * @param {Fold} folded
 * @param {number} i which of the list
 */
export function offset({ breaks }, i) {
  let gaps = 0;
  for (const at of breaks) if (at <= i) gaps += 1;
  return i + gaps * BREAK;
}
