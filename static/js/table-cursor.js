// Moving about in a table: one cell can be reached with Tab, arrow keys move from there.

import { around } from "dom";

/** @typedef {{ r: number, c: number }} Cell */

export class TableCursor {
  /**
   * @param {HTMLElement} grid
   * @param {import("table-rows").TableRows} rows
   * @param {{ bring: (r: number) => void, open: (cell: Cell) => void }} table draw a row, open a number
   */
  constructor(grid, rows, table) {
    this.rows = rows;
    this.table = table;
    /** @type {Cell | null} */
    this.at = null;
    /** @type {HTMLElement | null} */
    this.reachable = null;
    grid.addEventListener("click", (event) => this.clicked(event));
    grid.addEventListener("keydown", (event) => this.pressed(event));
  }

  /**
   * Some cell can be reached with Tab: the opened number, else where the cursor was, else the first.
   * @param {boolean} focus
   */
  makeReachable(focus) {
    const selected = /** @type {HTMLElement | null} */ (this.rows.body.querySelector("td.sel"));
    const cell = selected ?? (this.at && this.rows.cell(this.at.r, this.at.c)) ?? this.rows.cell(this.rows.from, 0);
    if (!cell) return;
    this.reach(cell);
    if (focus) cell.focus({ preventScroll: true });
  }

  /** @param {HTMLElement} cell */
  reach(cell) {
    if (this.reachable !== cell) this.reachable?.setAttribute("tabindex", "-1");
    this.reachable = cell;
    cell.tabIndex = 0;
  }

  /** @param {Event} event */
  clicked(event) {
    const cell = around(event, "td[data-r]");
    if (cell) this.open(cell);
  }

  /** @param {HTMLElement} cell */
  open(cell) {
    this.at = placeOf(cell);
    this.table.open(this.at);
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const cell = around(event, "td[data-r]");
    if (!cell || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") this.open(cell);
    else {
      const { rows, columns } = this.rows.layout;
      const by = moves(columns)[event.key];
      if (!by) return;
      const { r, c } = placeOf(cell);
      this.moveTo({ r: clamp(r + by[0], rows), c: clamp(c + by[1], columns) });
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * @param {Cell} to
   * @param {FocusOptions} options
   */
  moveTo(to, options = {}) {
    this.table.bring(to.r);
    const cell = this.rows.cell(to.r, to.c);
    if (!cell) return;
    this.at = to;
    this.reach(cell);
    cell.focus(options);
  }
}

/**
 * @param {number} columns
 * @returns {Record<string, [number, number]>} key → rows down, columns across
 */
function moves(columns) {
  return { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -columns], End: [0, columns] };
}

/** @param {HTMLElement} cell */
function placeOf({ dataset }) {
  return { r: Number(dataset.r), c: Number(dataset.c) };
}

/**
 * @param {number} value
 * @param {number} length
 */
function clamp(value, length) {
  return Math.max(0, Math.min(length - 1, value));
}
