// The rows of a table that are drawn: all of a short one, those in view of a long one.

import { h } from "dom";
import { oncePerFrame } from "later";

export const ROW_HEIGHT = 28;
export const AT_ONCE = 12; // rows of a table that are drawn at once; the rest follows when the page is idle
const SHADES = 14; // of a cell's colour: as many as the style sheet has

export class TableRows {
  /**
   * @param {import("table-layout").TableLayout} layout
   * @param {HTMLElement} viewport the box that scrolls
   * @param {(row: HTMLElement, r: number) => void} write puts the numbers of a row into its cells
   * @param {(focused: boolean) => void} drawn is told that other rows are there now, and whether the focus was in them
   */
  constructor(layout, viewport, write, drawn) {
    this.layout = layout;
    this.viewport = viewport;
    this.write = write;
    this.told = drawn;
    this.body = h("tbody");
    this.pattern = h("tr", {}, h("th", { scope: "row" }, " "),
      Array.from({ length: layout.columns }, (_, c) => h("td", { tabindex: -1, "data-c": c }, " ")));
    /** @type {Map<number, HTMLElement>} */
    this.drawn = new Map(); // row → its element
    this.from = this.to = -1;
    this.whole = layout.rows <= AT_ONCE;
    this.scrolled = 0;
    if (layout.long) viewport.addEventListener("scroll", oncePerFrame(() => this.draw(viewport.scrollTop / ROW_HEIGHT)));
  }

  /**
   * Draw the rows around the one at the top of the window; rows that leave it become those that enter.
   * @param {number} top
   */
  draw(top) {
    const { from, to } = this.range(top);
    if (from === this.from && to === this.to) return;
    this.from = from;
    this.to = to;
    const focused = this.body.contains(document.activeElement);
    const free = [...this.drawn].filter(([r]) => r < from || r >= to);
    free.forEach(([r]) => this.drawn.delete(r));
    const rows = [];
    for (let r = from; r < to; r++) {
      const row = this.drawn.get(r) ?? this.fill(free.pop()?.[1], r);
      this.drawn.set(r, row);
      rows.push(row);
    }
    if (from > 0) rows.unshift(this.spacer(from));
    if (to < this.layout.rows) rows.push(this.spacer(this.layout.rows - to));
    this.body.replaceChildren(...rows);
    this.told(focused);
  }

  drawWhole() {
    if (this.whole || this.layout.long) return;
    this.whole = true;
    this.draw(0);
  }

  /** @param {number} row */
  scrollTo(row) {
    this.viewport.scrollTop = Math.max(0, (row - 3) * ROW_HEIGHT);
    if (this.layout.long) this.draw(Math.max(0, row - 3));
  }

  /**
   * Draw a row, wherever it is.
   * @param {number} r
   */
  bring(r) {
    this.drawWhole();
    if (!this.drawn.has(r)) this.scrollTo(r);
  }

  /** A table that is not laid out has no place that it is scrolled to. */
  keepScroll() {
    if (this.layout.long) this.scrolled = this.viewport.scrollTop;
  }

  restoreScroll() {
    if (this.scrolled) this.viewport.scrollTop = this.scrolled;
  }

  /** @param {number} top */
  range(top) {
    const { rows, long } = this.layout;
    if (!long) return { from: 0, to: this.whole ? rows : AT_ONCE };
    const inView = Math.ceil((innerHeight * 0.6) / ROW_HEIGHT); // the window's height in the style sheet
    const from = Math.max(0, Math.min(Math.floor(top) - 3, rows - inView - 6));
    return { from, to: Math.min(rows, from + inView + 6) };
  }

  /**
   * @param {HTMLElement | undefined} free a row that left the window
   * @param {number} r
   */
  fill(free, r) {
    const row = free ?? /** @type {HTMLElement} */ (this.pattern.cloneNode(true));
    row.setAttribute("aria-rowindex", String(r + 2));
    for (const cell of cellsIn(row)) cell.setAttribute("data-r", String(r));
    this.write(row, r);
    return row;
  }

  /** @param {number} rows how many are not drawn there */
  spacer(rows) {
    const cell = h("td", { colspan: this.layout.columns + 1 });
    cell.style.height = `${rows * ROW_HEIGHT - 2}px`; // with the space between rows
    return h("tr", { class: "spacer", "aria-hidden": "true" }, cell);
  }

  /** Nothing drawn holds any more: the rows stand in another order. */
  forget() {
    this.drawn.clear();
    this.from = -1;
  }

  /**
   * @param {number} r
   * @param {number} c
   */
  cell(r, c) {
    const row = this.drawn.get(r);
    return row ? cellsIn(row)[c] ?? null : null;
  }

  /** @param {(cell: HTMLElement, r: number, c: number) => void} visit */
  each(visit) {
    for (const [r, row] of this.drawn) cellsIn(row).forEach((cell, c) => visit(cell, r, c));
  }
}

/**
 * The cells of a row with numbers: all but the first, which names it.
 * @param {Element} row
 */
export function cellsIn(row) {
  return /** @type {HTMLElement[]} */ ([...row.children].slice(1));
}

/**
 * What names a row.
 * @param {Element} row
 */
export function headOf(row) {
  return /** @type {HTMLElement} */ (row.children[0]);
}

/**
 * Write a text into the one text node of a cell, when it says something else.
 * @param {Element} cell
 * @param {string} text
 */
export function say(cell, text) {
  const node = /** @type {Text} */ (cell.firstChild);
  if (node.data !== text) node.data = text;
}

/**
 * The class of a cell: the sign of its number, and how large it is of the largest.
 * @param {number} value
 * @param {number} largest 0: cells without colour
 */
export function shade(value, largest) {
  if (value === 0 || !Number.isFinite(value)) return "nothing";
  if (!largest) return "";
  return `${value < 0 ? "neg" : "pos"} s${Math.round(Math.min(1, Math.abs(value) / largest) * SHADES)}`;
}
