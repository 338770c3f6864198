// Quantities as areas: rectangles in one frame, as near to squares as the order of sizes lets them be.

import { h, svg } from "dom";

/** `tone`: which of the colours. @typedef {{ name: string, value: number, tone: string, note: string }} Quantity */
/** @typedef {{ x: number, y: number, width: number, height: number }} Place */

const [LETTER, LINE] = [7.2, 18]; // pixels: at most the width of a letter of labels, the height of a line
const LEAST = 0.5; // pixels: thinner is not seen

/**
 * Where each value lies in a frame, its area in proportion: rows are filled along the shorter side, a row as long as
 * its rectangles become squarer (Bruls, Huizing and van Wijk 2000).
 * @param {number[]} values above zero, largest first
 * @param {Place} frame
 * @returns {Place[]}
 */
function squarified(values, frame) {
  const scale = frame.width * frame.height / values.reduce((sum, value) => sum + value, 0);
  let { x, y, width, height } = frame;
  /** @type {Place[]} */
  const places = [];
  for (let from = 0; from < values.length;) {
    const side = Math.min(width, height);
    let to = from + 1;
    while (to < values.length && flattest(values.slice(from, to + 1), scale, side) <= flattest(values.slice(from, to), scale, side)) to++;
    const row = values.slice(from, to).map((value) => value * scale);
    const thick = row.reduce((sum, area) => sum + area, 0) / side;
    let along = 0;
    for (const area of row) {
      places.push(width < height ? { x: x + along, y, width: area / thick, height: thick } : { x, y: y + along, width: thick, height: area / thick });
      along += area / thick;
    }
    if (width < height) [y, height] = [y + thick, height - thick];
    else [x, width] = [x + thick, width - thick];
    from = to;
  }
  return places;
}

/** The largest ratio of sides in a row. @param {number[]} row @param {number} scale @param {number} side */
function flattest(row, scale, side) {
  const thick = row.reduce((sum, value) => sum + value, 0) * scale / side;
  return Math.max(...row.map((value) => Math.max(thick * thick / (value * scale), value * scale / (thick * thick))));
}

/**
 * Quantities as a drawing, and as a list that says what it shows.
 * @param {string} title
 * @param {Quantity[]} quantities
 * @param {number} width of the drawing, in pixels
 * @param {number} height
 */
export function areas(title, quantities, width, height) {
  const drawn = quantities.filter(({ value }) => value > 0).sort((a, b) => b.value - a.value);
  const places = squarified(drawn.map(({ value }) => value), { x: 0, y: 0, width, height });
  const boxes = drawn.map(({ name, tone, value }, i) => {
    const { x, y, width: wide, height: high } = places[i];
    const fits = high >= LINE && wide >= LETTER * letters(name) + 8;
    return Math.min(wide, high) < LEAST ? null : svg("g", { "data-value": value },
      svg("title", {}, name), svg("rect", { x, y, width: wide, height: high, class: tone }), fits ? svg("text", { x: x + 4, y: y + 14 }, name) : null);
  });
  return h("figure", { class: "sized" }, h("figcaption", {}, title),
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, boxes),
    h("ul", {}, ...quantities.map(({ name, value, tone, note }) => h("li", { "data-value": value }, h("i", { class: tone }), h("span", {}, name), " ", h("span", { class: "mono" }, note)))));
}

/** How many letters wide a text is: Chinese ones count two. @param {string} text */
function letters(text) {
  return [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? 2 : 1), 0);
}
