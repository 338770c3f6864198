// Where the arrays of an operation stand, from its equations alone; no kind of operation is known here.
//
// The last two letters of what is made are its rows and its columns, those before them its layers. An operand that
// shares the rows stands left of it, one that shares the columns above it, one with both in line with it; a read
// within an index is a lookup. What each equation in between makes stands in line too, in order.

import { walk } from "evaluate";

/**
 * "left": rows level with the rows, the summed letter runs towards what is made; "above": columns over the columns;
 * "line": cell on cell; "column": beside the rows; "row": over the columns; "terms": a list of what is summed;
 * "whole": all of it is summed; "scalar": one number.
 * @typedef {"left" | "above" | "line" | "column" | "row" | "terms" | "whole" | "scalar"} Where
 *
 * What an axis is for: a letter of the picture, or what picks a place on it.
 * @typedef {object} Axis
 * @property {"rows" | "columns" | "sum" | "layer"} role
 * @property {string | null} letter the letter that runs along it; null where it has places of its own
 * @property {boolean} lookup whether another array says which places are taken
 * @property {ExpressionNode} at
 *
 * @typedef {object} Box
 * @property {string} name in the equations
 * @property {"operand" | "between" | "out"} what
 * @property {Where} where
 * @property {Axis[]} axes
 * @property {number | null} down which axis runs down
 * @property {number | null} across which axis runs across
 * @property {boolean} lookup
 *
 * @typedef {object} Placement
 * @property {string | null} rows
 * @property {string | null} columns
 * @property {string[]} layers
 * @property {Box[]} boxes in order of reading; what is made comes last
 */

/**
 * @param {Equation[]} equations
 * @returns {Placement}
 */
export function place(equations) {
  const target = equations[equations.length - 1];
  const letters = target[1].map((item) => item[1]);
  const made = new Map(equations.map((equation) => [equation[0], equation]));
  const frame = frameOf(letters, equations);
  /** @type {Map<string, Box>} */
  const boxes = new Map();
  for (const equation of equations) {
    for (const node of walk(equation[2])) {
      if (node[0] !== "read" || made.has(node[1])) continue;
      const box = boxOf(node[1], "operand", node[2], frame);
      const known = boxes.get(node[1]);
      if (!known || rank(box) > rank(known)) boxes.set(node[1], box);
    }
  }
  const between = equations.slice(0, -1).map(([name, index]) => boxOf(name, "between", index, frame));
  const out = boxOf(target[0], "out", target[1], frame);
  return { ...frame, boxes: settle([...boxes.values(), ...between, out], frame) };
}

/**
 * The rows, columns and layers of what is made. One letter alone is a column of rows where an operand goes on after
 * it (a statistic of each row), else a row of columns.
 * @param {string[]} letters
 * @param {Equation[]} equations
 */
function frameOf(letters, equations) {
  if (letters.length > 1) return { rows: letters[letters.length - 2], columns: letters[letters.length - 1], layers: letters.slice(0, -2) };
  if (!letters.length) return { rows: null, columns: null, layers: [] };
  const [letter] = letters;
  const isRow = equations.some((equation) => [...walk(equation[2])].some((node) => (
    node[0] === "read" && node[2].length > 1 && mentions(node[2][node[2].length - 2]).has(letter))));
  return isRow ? { rows: letter, columns: null, layers: [] } : { rows: null, columns: letter, layers: [] };
}

/**
 * The letters in an index, within what it reads as well.
 * @param {ExpressionNode} node
 */
function mentions(node) {
  return new Set([...walk(node)].flatMap((part) => (part[0] === "letter" ? [part[1]] : [])));
}

/**
 * @param {string} name
 * @param {Box["what"]} what
 * @param {ExpressionNode[]} index
 * @param {Omit<Placement, "boxes">} frame
 * @returns {Box}
 */
function boxOf(name, what, index, frame) {
  const axes = index.map((at) => axisOf(at, frame));
  // Where two axes say the same, the last one is shown and the chosen element picks a place on the other.
  for (const role of /** @type {const} */ (["rows", "columns"])) {
    // Of these, a place that is looked up is one of its own: the logit of the target, row by row.
    const same = axes.filter((axis) => axis.role === role);
    if (same.length > 1) same.filter((axis) => axis.lookup).forEach((axis) => { axis.role = "sum"; });
    same.filter((axis) => axis.role === role).slice(0, -1).forEach((axis) => { axis.role = "layer"; });
  }
  const shown = axes.flatMap((axis, i) => (axis.role === "layer" ? [] : [i]));
  for (const i of shown.slice(0, -2)) axes[i].role = "layer";
  const has = (/** @type {string} */ role) => shown.slice(-2).find((i) => axes[i].role === role) ?? null;
  const [rows, columns, sum] = [has("rows"), has("columns"), has("sum")];
  const sums = shown.slice(-2).filter((i) => axes[i].role === "sum");
  const box = { name, what, axes, lookup: axes.some((axis) => axis.lookup) };
  if (rows !== null && columns !== null) return { ...box, where: "line", down: rows, across: columns };
  if (rows !== null && sum !== null) return { ...box, where: "left", down: rows, across: sum };
  if (columns !== null && sum !== null) return { ...box, where: "above", down: sum, across: columns };
  if (rows !== null) return { ...box, where: "column", down: rows, across: null };
  if (columns !== null) return { ...box, where: "row", down: null, across: columns };
  if (sums.length > 1) return { ...box, where: "whole", down: sums[0], across: sums[1] };
  if (sum !== null) return { ...box, where: "terms", down: null, across: sum };
  return { ...box, where: "scalar", down: null, across: null };
}

/**
 * @param {ExpressionNode} at
 * @param {Omit<Placement, "boxes">} frame
 * @returns {Axis}
 */
function axisOf(at, frame) {
  const found = mentions(at);
  const lookup = [...walk(at)].some((node) => node[0] === "read");
  const letter = at[0] === "letter" ? at[1] : null;
  const role = frame.columns !== null && found.has(frame.columns) ? "columns" : frame.rows !== null && found.has(frame.rows) ? "rows"
    : [...found].some((name) => !frame.layers.includes(name)) || (lookup && !found.size) ? "sum" : "layer";
  return { role, letter, lookup, at };
}

/**
 * How much of a picture a read makes: where an array is read twice, the fuller read places it.
 * @param {Box} box
 */
function rank(box) {
  return Number(box.down !== null) + Number(box.across !== null);
}

/**
 * A list of what is summed stands by the operand that runs along the same letter; alone it is a row, over the columns
 * or beside the rows.
 * @param {Box[]} boxes
 * @param {Omit<Placement, "boxes">} frame
 * @returns {Box[]}
 */
function settle(boxes, frame) {
  const runs = (/** @type {Box} */ box, /** @type {number | null} */ axis) => (axis === null ? null : box.axes[axis].letter);
  const down = new Set(boxes.filter((box) => box.where === "above").map((box) => runs(box, box.down)));
  const settled = boxes.map((box) => {
    if (box.where !== "terms" || !down.has(runs(box, box.across))) return box;
    return { ...box, down: box.across, across: null };
  });
  if (frame.rows !== null || frame.columns !== null) return settled;
  return settled.map((box) => (box.where === "terms" ? { ...box, where: /** @type {const} */ ("left") } : box));
}
