// A curve over the updates of a training: a line, and a dot for each number on it.

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {{ values: number[], X: (u: number) => number, Y: (v: number) => number, part: number, color: import("pen").Color, array: string, places: (u: number) => number[] }} how
 */
export function curve(pen, scene, { values, X, Y, part, color, array, places }) {
  const shown = Math.max(1, Math.round(part * values.length));
  pen.line(values.slice(0, shown).flatMap((v, u) => (Number.isFinite(v) ? [X(u), Y(v)] : [])), { stroke: color, stroke_width: 2 });
  values.slice(0, shown).forEach((v, u) => {
    if (Number.isFinite(v)) pen.dot(X(u), Y(v), u === scene.index[0] ? 5 : 1.8, { color, place: { array, index: places(u) }, key: `${array} ${places(u)}` });
  });
}

/**
 * @param {Pen} pen
 * @param {[number, number]} ends
 * @param {number} y
 * @param {string} low
 * @param {string} high
 * @param {number} top
 */
export function axis(pen, [left, right], y, low, high, top) {
  pen.line([left, y, right, y], { stroke: "soft", stroke_width: 1 });
  pen.text(left - 8, y + 4, low, { size: 11, color: "soft", align: "right" });
  pen.text(left - 8, top + 4, high, { size: 11, color: "soft", align: "right" });
}
