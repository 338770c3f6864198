// An array as a table: two axes at once, the others chosen above it, long axes scrolled in a window.

import { bare, h, loadFailed } from "dom";
import { format } from "format";
import { TableCursor } from "table-cursor";
import { TableLayout } from "table-layout";
import { AT_ONCE, cellsIn, headOf, ROW_HEIGHT, say, shade, TableRows } from "table-rows";
import { finder, findRow, headRow, noteOf, picker, saveCsv, tools } from "table-tools";

/**
 * `shared` names an axis that has one slider for the whole step, above the tables.
 * @typedef {object} TableContext
 * @property {import("store").Store} store
 * @property {Words} words
 * @property {Digits} digits
 * @property {string} [shared]
 * @property {import("table-layout").Choose} choice
 * @property {(axis: string, i: number) => void} choose
 * @property {(place: Place) => void} open
 * @property {(run: () => void) => void} later
 */

/** One array on the page. */
export class ArrayTable {
  /**
   * @param {string} name
   * @param {TableContext} context
   */
  constructor(name, context) {
    this.name = name;
    this.context = context;
    this.array = context.store.array(name);
    this.layout = new TableLayout(this.array, context.shared, context.choice);
    this.element = h("div", { class: "numbers" });
    this.viewport = h("div", { class: "window", tabindex: -1 });
    /** @type {import("table-tools").Picker[]} */
    this.pickers = [];
    /** @type {TableRows | null} */
    this.rows = null; // while nothing is drawn
    /** @type {TableCursor | null} */
    this.cursor = null;
    /** @type {ArrayLike<number> | null} */
    this.values = null; // null: computed where they are shown
    this.scale = 0; // the value of the fullest colour; 0: cells without colour
    this.base = 0; // where in the flat array the shown slice begins
    this.selected = this.secret = -1; // the opened number, and one that is hidden
    /** @type {Set<number>} */
    this.lit = new Set();
    /** @type {number | null} */
    this.wanted = null; // a row that has to be in view
    /** @type {{ text: string, row: number } | null} */
    this.found = null;
    this.shown = false;
  }

  /** About how many elements `show` makes before it returns. */
  get cost() {
    return (Math.min(this.layout.rows, AT_ONCE) + 1) * (this.layout.columns + 1) + 30;
  }

  showOnce() {
    if (this.shown) return;
    this.shown = true;
    this.show();
  }

  /** Draw the table: now when its numbers are here, else as soon as they are. */
  show() {
    const { store, words } = this.context;
    if (store.isReady(this.name)) {
      this.draw();
      return;
    }
    this.element.replaceChildren(h("p", { class: "soft" }, words.loading));
    store.ready(this.name).then(() => this.draw(), (error) => this.element.replaceChildren(loadFailed(words, error)));
  }

  /** Keep the room that the table will take. */
  keepRoom() {
    this.element.style.minHeight = `${Math.min(this.layout.rows + 1, AT_ONCE) * ROW_HEIGHT + 40}px`;
  }

  draw() {
    const { store, words } = this.context;
    const { layout } = this;
    this.values = store.values(this.name);
    this.scale = this.array.dtype === "int64" ? 0 : store.largest(this.name);
    this.base = layout.base();
    const rows = new TableRows(layout, this.viewport, (row, r) => this.writeRow(row, r),
      (focused) => this.cursor?.makeReachable(focused));
    this.rows = rows;
    const grid = h("table", { role: "grid", "aria-label": this.name, "aria-rowcount": layout.rows + 1 },
      headRow(this.axisNames(), this.columnNames()), rows.body);
    this.viewport.append(grid);
    this.viewport.classList.toggle("long", layout.long);
    this.viewport.classList.toggle("short", !layout.long && layout.isShared(layout.down));
    this.pickers = layout.others.filter((axis) => !layout.isShared(axis)).map((axis) => this.picker(axis));
    this.cursor = new TableCursor(grid, rows, { bring: (r) => rows.bring(r), open: ({ r, c }) => this.open(r, c) });
    if (layout.isShared(layout.down)) {
      rows.whole = true; // short in any case, and the chosen row can be any
      this.wanted = layout.chosenOn(layout.down);
    }
    rows.draw(this.wanted ?? 0);
    this.element.style.minHeight = "";
    const find = layout.long ? [finder(words, (typed) => this.find(typed), () => this.sort())] : [];
    this.element.replaceChildren(...this.pickers.map(({ element }) => element), ...find, this.viewport,
      tools(this.note(), words, () => saveCsv(this.name, store)));
    if (!rows.whole && !layout.long) this.context.later(() => rows.drawWhole());
    if (this.element.isConnected) this.reveal();
  }

  /** "position ↓ dimension →", as far as there are two axes. */
  axisNames() {
    const { down, across } = this.layout;
    return [down >= 0 ? `${this.axisWord(down)} ↓` : "", across >= 0 ? `${this.axisWord(across)} →` : ""].filter(Boolean).join(" ");
  }

  columnNames() {
    const { across, columns } = this.layout;
    return Array.from({ length: columns }, (_, c) => (across < 0 ? this.context.words["series.value"] : this.label(across, c)));
  }

  note() {
    const axes = this.layout.exchanged && this.layout.across >= 0 ? this.axisNames() : "";
    return noteOf({ rounded: this.array.dtype !== "int64", axes }, this.context.digits, this.context.words);
  }

  /**
   * @param {number} axis
   * @param {number} i
   */
  label(axis, i) {
    return this.context.store.label(this.name, axis, i);
  }

  /** @param {number} axis */
  axisWord(axis) {
    return this.context.words[`axis.${this.array.axes[axis]}`];
  }

  /** @param {number} axis */
  picker(axis) {
    const choose = (/** @type {number} */ i) => this.context.choose(this.array.axes[axis], i);
    const made = { axis, ...picker(this.axisWord(axis), this.array.shape[axis], (i) => this.label(axis, i), choose) };
    made.show(this.layout.chosenOn(axis));
    return made;
  }

  /**
   * @param {HTMLElement} row
   * @param {number} r
   */
  writeRow(row, r) {
    const { layout } = this;
    row.className = this.rowLook(r);
    say(headOf(row), layout.down < 0 ? this.context.words["series.value"] : this.label(layout.down, layout.rowAt(r)));
    cellsIn(row).forEach((cell, c) => this.paint(cell, layout.flatAt(this.base, r, c)));
  }

  /** @param {number} r */
  rowLook(r) {
    const { layout } = this;
    if (layout.isShared(layout.down) && r === layout.chosenOn(layout.down)) return "now";
    return this.found?.row === layout.rowAt(r) ? "found" : "";
  }

  /** Rows by value, largest first, in the column where the cursor is; again: in their own order. Whether they are sorted. */
  sort() {
    const { layout } = this;
    const column = this.cursor?.at?.c ?? 0;
    if (layout.order) layout.order = null;
    else layout.sort((r) => this.valueAt(layout.flatAt(this.base, r, column)));
    this.rows?.forget();
    this.rows?.scrollTo(0);
    return Boolean(layout.order);
  }

  /** @param {number} flat */
  valueAt(flat) {
    return this.values ? this.values[flat] : this.context.store.flatValue(this.name, flat);
  }

  /**
   * Write what a cell says, from the number that it stands for now.
   * @param {HTMLElement} cell
   * @param {number} flat
   */
  paint(cell, flat) {
    say(cell, this.secret === flat ? "?" : format(this.valueAt(flat), this.context.digits, this.array.dtype));
    this.colour(cell, flat);
  }

  /**
   * @param {HTMLElement} cell
   * @param {number} flat
   */
  colour(cell, flat) {
    const look = this.look(flat);
    if (cell.className !== look) cell.className = look;
  }

  /** @param {number} flat */
  look(flat) {
    const mark = this.selected === flat ? " sel" : this.lit.has(flat) ? " lit" : "";
    return `${this.secret === flat ? "secret" : shade(this.valueAt(flat), this.scale)}${mark}`.trim();
  }

  /** The choices moved: other numbers in the same cells, or another row lit. */
  follow() {
    if (!this.rows) return;
    const { layout } = this;
    const base = layout.base();
    if (base !== this.base) {
      this.base = base;
      for (const { axis, show } of this.pickers) show(layout.chosenOn(axis));
      this.repaint();
      this.cursor?.makeReachable(false);
    }
    if (!layout.isShared(layout.down)) return;
    this.rows.drawWhole();
    this.rows.scrollTo(layout.chosenOn(layout.down));
    this.relook();
  }

  repaint() {
    this.rows?.each((cell, r, c) => this.paint(cell, this.layout.flatAt(this.base, r, c)));
  }

  relook() {
    for (const [r, row] of this.rows?.drawn ?? []) row.className = this.rowLook(r);
  }

  /**
   * Show which numbers are meant: the opened one (flat, or −1), and those that it reads.
   * @param {number} selected
   * @param {Set<number>} lit
   */
  mark(selected, lit) {
    if (selected === this.selected && lit.size === 0 && this.lit.size === 0) return;
    const before = { selected: this.selected, lit: this.lit };
    this.selected = selected;
    this.lit = lit;
    const first = selected >= 0 ? selected : lit.values().next().value;
    if (first !== undefined) this.want(first);
    this.rows?.each((cell, r, c) => {
      const flat = this.layout.flatAt(this.base, r, c);
      if (flat === selected || flat === before.selected || lit.has(flat) || before.lit.has(flat)) this.colour(cell, flat);
    });
    this.cursor?.makeReachable(false);
  }

  /**
   * Hide one number, for an exercise; null shows it again.
   * @param {number[] | null} index
   */
  keepSecret(index) {
    this.secret = index ? this.layout.flat(index) : -1;
    if (index) this.want(this.secret);
    this.repaint();
  }

  /** @param {number[]} index */
  wantIndex(index) {
    this.want(this.layout.flat(index));
  }

  /**
   * The row of a number has to be in view.
   * @param {number} flat
   */
  want(flat) {
    const { layout } = this;
    if (!layout.long || layout.down < 0) return;
    this.wanted = layout.placeOf(Math.floor(flat / layout.strides[layout.down]) % layout.rows);
    if (this.element.isConnected) this.reveal();
  }

  /** Scroll to what has to be in view. Scrolling needs a layout: it comes after everything that is written. */
  reveal() {
    if (!this.rows || this.wanted === null) return;
    this.rows.scrollTo(this.wanted);
    this.wanted = null;
  }

  /**
   * The cell that shows a number now, if it is drawn.
   * @param {number[]} index
   */
  cellOf(index) {
    const place = this.layout.cellOf(index);
    return place && this.rows ? this.rows.cell(place.r, place.c) : null;
  }

  /**
   * Put the focus on the cell of a number; false when it is not in view.
   * @param {number[]} index
   */
  focusOn(index) {
    const place = this.layout.cellOf(index);
    if (!place || !this.rows?.cell(place.r, place.c)) return false;
    this.cursor?.moveTo(place, { preventScroll: true });
    return true;
  }

  /**
   * @param {number} r
   * @param {number} c
   */
  open(r, c) {
    this.context.open({ array: this.name, index: this.layout.indexAt(r, c) });
  }

  /**
   * Scroll to the next row that is what was typed; returns its name, or that there is none.
   * @param {string} typed
   */
  find(typed) {
    if (!typed) return "";
    const { layout } = this;
    const text = typed.replaceAll(" ", "␣");
    const labels = this.context.store.labels(this.name, layout.down)?.map(bare);
    const row = findRow(text, layout.rows, labels, this.found?.text === text ? this.found.row : -1);
    if (row < 0) return this.context.words.not_found;
    this.found = { text, row };
    this.rows?.scrollTo(layout.placeOf(row));
    this.relook();
    return this.label(layout.down, row);
  }
}
