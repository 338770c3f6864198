// An array as a table: two axes at once, the others chosen above it, long axes scrolled in a window.

import { bare, fill, h, oncePerFrame } from "dom";
import { format } from "format";

const ROW_HEIGHT = 28;
const AT_ONCE = 12; // rows of a table that are drawn at once; the rest follows when the page is idle
const LONG = 200; // of more rows than this only those in view are drawn
const WIDE = 96; // a longer last axis goes down the page instead of across it
const SHADES = 14; // of a cell's colour: as many as the style sheet has

/**
 * One array on the page.
 * context: { store, words, choice(axis), choose(axis, value), open(array, index), later(run), digits, shared }
 * `shared` names an axis that has one slider for the whole step, above the tables.
 * Cells are known by their place in the flat array: row × stride down + column × stride across + what is chosen.
 */
export class ArrayTable {
  constructor(name, context) {
    this.name = name;
    this.context = context;
    this.array = context.store.array(name);
    this.layOut();
    this.element = h("div", { class: "numbers" });
    this.selected = this.secret = -1;
    this.lit = new Set();
    this.drawn = new Map(); // row → its element
  }

  /** Which axis runs down, which across; the others are chosen. Without two axes, one is missing (−1). */
  layOut() {
    const { shape } = this.array;
    this.across = shape.length - 1;
    this.down = shape.length - 2;
    this.exchanged = this.across >= 0 && (shape[this.across] > WIDE || this.isShared(this.across));
    if (this.exchanged) [this.down, this.across] = [this.across, this.down];
    this.chosen = shape.map((_, axis) => axis).filter((axis) => axis !== this.down && axis !== this.across);
    this.rows = this.down < 0 ? 1 : shape[this.down];
    this.columns = this.across < 0 ? 1 : shape[this.across];
    this.long = this.rows > LONG;
    this.whole = this.rows <= AT_ONCE;
    this.strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
  }

  /** About how many elements `show` makes before it returns. */
  get cost() {
    return (Math.min(this.rows, AT_ONCE) + 1) * (this.columns + 1) + 30;
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
    store.ready(this.name).then(() => this.draw(), (error) => {
      this.element.replaceChildren(h("p", { class: "wrong", role: "alert" }, fill(words.load_failed, { file: error.message })));
    });
  }

  /** Keep the room that the table will take. */
  keepRoom() {
    this.element.style.minHeight = `${Math.min(this.rows + 1, AT_ONCE) * ROW_HEIGHT + 40}px`;
  }

  draw() {
    const { store } = this.context;
    this.values = store.values(this.name);
    this.scale = this.array.dtype === "int64" ? 0 : store.largest(this.name); // 0: cells without colour
    this.base = this.chosenBase();
    this.body = h("tbody");
    this.grid = h("table", { role: "grid", "aria-label": this.name, "aria-rowcount": this.rows + 1 }, this.head(), this.body);
    this.pattern = h("tr", {}, h("th", { scope: "row" }, " "),
      Array.from({ length: this.columns }, (_, c) => h("td", { tabindex: -1, "data-c": c }, " ")));
    const height = this.long ? " long" : this.isShared(this.down) ? " short" : "";
    this.viewport = h("div", { class: `window${height}`, tabindex: -1 }, this.grid);
    this.pickers = this.chosen.filter((axis) => !this.isShared(axis)).map((axis) => this.picker(axis));
    this.grid.addEventListener("click", (event) => this.clicked(event));
    this.grid.addEventListener("keydown", (event) => this.pressed(event));
    if (this.long) this.viewport.addEventListener("scroll", oncePerFrame(() => this.drawRows(this.viewport.scrollTop / ROW_HEIGHT)));
    if (this.isShared(this.down)) {
      this.whole = true; // short in any case, and the chosen row can be any
      this.wanted = this.chosenIndex(this.down);
    }
    this.drawRows(this.wanted ?? 0);
    this.element.style.minHeight = "";
    this.element.replaceChildren(...this.pickers.map(({ element }) => element), ...(this.long ? [this.finder()] : []), this.viewport, this.tools());
    if (!this.whole && !this.long) this.context.later(() => this.drawWhole());
    if (this.element.isConnected) this.reveal();
  }

  label(axis, i) {
    return this.context.store.label(this.name, axis, i);
  }

  isShared(axis) {
    return axis >= 0 && this.array.axes[axis] === this.context.shared;
  }

  axisWord(axis) {
    return this.context.words[`axis.${this.array.axes[axis]}`];
  }

  /** A control for an axis that is neither down nor across: {element, show(i)}. */
  picker(axis) {
    const word = this.axisWord(axis);
    const length = this.array.shape[axis];
    const choose = (i) => this.context.choose(this.array.axes[axis], i);
    const picker = length > 12 ? slider(word, length, choose) : chips(word, Array.from({ length }, (_, i) => this.label(axis, i)), choose);
    picker.axis = axis;
    picker.show(this.chosenIndex(axis));
    return picker;
  }

  chosenIndex(axis) {
    return Math.min(this.context.choice(this.array.axes[axis]) ?? 0, this.array.shape[axis] - 1);
  }

  /** Where in the flat array the shown slice begins. */
  chosenBase() {
    return this.chosen.reduce((flat, axis) => flat + this.chosenIndex(axis) * this.strides[axis], 0);
  }

  head() {
    const corner = [this.down >= 0 ? `${this.axisWord(this.down)} ↓` : "", this.across >= 0 ? `${this.axisWord(this.across)} →` : ""];
    const said = corner.filter(Boolean).join(" ");
    const cells = [said ? h("th", { scope: "col", class: "corner" }, said) : h("td", { class: "corner" })]; // no header without text
    for (let c = 0; c < this.columns; c++) cells.push(h("th", { scope: "col" }, this.across < 0 ? this.context.words["series.value"] : this.label(this.across, c)));
    return h("thead", {}, h("tr", { "aria-rowindex": 1 }, cells));
  }

  /** Draw the rows around the one at the top of the window; rows that leave it become those that enter. */
  drawRows(top) {
    const { from, to } = this.range(top);
    if (from === this.from && to === this.to) return;
    Object.assign(this, { from, to });
    const focused = this.body.contains(document.activeElement);
    const free = [...this.drawn].filter(([r]) => r < from || r >= to);
    free.forEach(([r]) => this.drawn.delete(r));
    const rows = [];
    for (let r = from; r < to; r++) {
      if (!this.drawn.has(r)) this.drawn.set(r, this.fillRow(free.pop()?.[1] ?? this.pattern.cloneNode(true), r));
      rows.push(this.drawn.get(r));
    }
    if (from > 0) rows.unshift(this.spacer(from));
    if (to < this.rows) rows.push(this.spacer(this.rows - to));
    this.body.replaceChildren(...rows);
    this.makeReachable(focused);
  }

  range(top) {
    if (!this.long) return { from: 0, to: this.whole ? this.rows : AT_ONCE };
    const inView = Math.ceil((innerHeight * 0.6) / ROW_HEIGHT); // the window's height in the style sheet
    const from = Math.max(0, Math.min(Math.floor(top) - 3, this.rows - inView - 6));
    return { from, to: Math.min(this.rows, from + inView + 6) };
  }

  drawWhole() {
    if (this.whole || this.long) return;
    this.whole = true;
    this.drawRows(0);
  }

  spacer(rows) {
    const cell = h("td", { colspan: this.columns + 1 });
    cell.style.height = `${rows * ROW_HEIGHT - 2}px`; // with the space between rows
    return h("tr", { class: "spacer", "aria-hidden": "true" }, cell);
  }

  fillRow(row, r) {
    row.setAttribute("aria-rowindex", r + 2);
    row.className = this.rowLook(r);
    const cells = row.children;
    cells[0].firstChild.data = this.down < 0 ? this.context.words["series.value"] : this.label(this.down, this.rowAt(r));
    for (let c = 0; c < this.columns; c++) {
      cells[c + 1].setAttribute("data-r", r);
      this.paint(cells[c + 1], this.flatAt(r, c));
    }
    return row;
  }

  rowLook(r) {
    if (this.isShared(this.down) && r === this.chosenIndex(this.down)) return "now";
    return this.found?.row === this.rowAt(r) ? "found" : "";
  }

  /** The row of the array that stands in row `r` of the table: another one when the table is sorted. */
  rowAt(r) {
    return this.order ? this.order[r] : r;
  }

  /** The row of the table in which row `r` of the array stands. */
  placeOf(r) {
    return this.order ? this.order.indexOf(r) : r;
  }

  /** Rows by value, largest first, in the column where the cursor is; again: in their own order. */
  sort() {
    if (this.order) this.order = null;
    else {
      const column = this.cursor?.[1] ?? 0;
      const keys = Float64Array.from({ length: this.rows }, (_, r) => this.valueAt(this.flatAt(r, column)));
      this.order = Uint32Array.from(keys.keys()).sort((a, b) => keys[b] - keys[a] || a - b);
    }
    this.drawn.clear();
    this.from = -1;
    this.scrollTo(0);
  }

  flatAt(r, c) {
    return this.base + (this.down < 0 ? 0 : this.rowAt(r) * this.strides[this.down]) + (this.across < 0 ? 0 : c * this.strides[this.across]);
  }

  valueAt(flat) {
    return this.values ? this.values[flat] : this.context.store.flatValue(this.name, flat);
  }

  /** Write what a cell says, from the number that it stands for now. */
  paint(cell, flat) {
    const text = this.secret === flat ? "?" : format(this.valueAt(flat), this.context.digits, this.array.dtype);
    if (cell.firstChild.data !== text) cell.firstChild.data = text;
    this.colour(cell, flat);
  }

  colour(cell, flat) {
    const look = this.look(flat);
    if (cell.className !== look) cell.className = look;
  }

  look(flat) {
    const mark = this.selected === flat ? " sel" : this.lit.has(flat) ? " lit" : "";
    if (this.secret === flat) return `secret${mark}`;
    const value = this.valueAt(flat);
    if (value === 0 || !Number.isFinite(value)) return `nothing${mark}`;
    if (!this.scale) return mark.trim();
    return `${value < 0 ? "neg" : "pos"} s${Math.round(Math.min(1, Math.abs(value) / this.scale) * SHADES)}${mark}`;
  }

  /** The choices moved: other numbers in the same cells, or another row lit. */
  follow() {
    if (!this.grid) return;
    const base = this.chosenBase();
    if (base !== this.base) {
      this.base = base;
      for (const { axis, show } of this.pickers) show(this.chosenIndex(axis));
      this.eachCell((cell, flat) => this.paint(cell, flat));
      this.makeReachable(false);
    }
    if (!this.isShared(this.down)) return;
    this.drawWhole();
    this.scrollTo(this.chosenIndex(this.down));
    for (const [r, row] of this.drawn) row.className = this.rowLook(r);
  }

  eachCell(visit) {
    for (const [r, row] of this.drawn) {
      for (let c = 0; c < this.columns; c++) visit(row.children[c + 1], this.flatAt(r, c));
    }
  }

  /** Show which numbers are meant: the opened one (flat, or −1), and those that it reads. */
  mark(selected, lit) {
    if (selected === this.selected && lit.size === 0 && this.lit.size === 0) return;
    const before = [this.selected, this.lit];
    Object.assign(this, { selected, lit });
    const first = selected >= 0 ? selected : lit.values().next().value;
    if (first !== undefined) this.want(first);
    if (!this.grid) return;
    this.eachCell((cell, flat) => {
      if (flat === selected || flat === before[0] || lit.has(flat) || before[1].has(flat)) this.colour(cell, flat);
    });
    this.makeReachable(false);
  }

  /** Hide one number, for an exercise; null shows it again. */
  keepSecret(index) {
    this.secret = index ? this.flat(index) : -1;
    if (index) this.want(this.secret);
    if (this.grid) this.eachCell((cell, flat) => this.paint(cell, flat));
  }

  flat(index) {
    return index.reduce((flat, i, axis) => flat + i * this.strides[axis], 0);
  }

  /** The row of a number has to be in view. */
  want(flat) {
    if (!this.long || this.down < 0) return;
    this.wanted = this.placeOf(Math.floor(flat / this.strides[this.down]) % this.rows);
    if (this.element.isConnected) this.reveal();
  }

  /** Scroll to what has to be in view. Scrolling needs a layout: it comes after everything that is written. */
  reveal() {
    if (!this.grid || this.wanted === undefined) return;
    this.scrollTo(this.wanted);
    this.wanted = undefined;
  }

  /** The cell that shows a number now, if it is drawn. */
  cellOf(index) {
    if (!this.grid || this.chosen.some((axis) => index[axis] !== this.chosenIndex(axis))) return null;
    return this.at(this.down >= 0 ? this.placeOf(index[this.down]) : 0, this.across >= 0 ? index[this.across] : 0);
  }

  /** A table that is not laid out has no place that it is scrolled to. */
  keepScroll() {
    if (this.long && this.grid) this.scrolled = this.viewport.scrollTop;
  }

  restoreScroll() {
    if (this.scrolled) this.viewport.scrollTop = this.scrolled;
  }

  scrollTo(row) {
    this.viewport.scrollTop = Math.max(0, (row - 3) * ROW_HEIGHT);
    if (this.long) this.drawRows(Math.max(0, row - 3));
  }

  /** One cell can be reached with Tab; arrow keys move from there. */
  makeReachable(focus) {
    const cell = this.body.querySelector("td.sel") ?? this.at(...(this.cursor ?? [])) ?? this.at(this.from, 0);
    if (!cell) return;
    if (this.reachable !== cell) this.reachable?.setAttribute("tabindex", "-1");
    this.reachable = cell;
    cell.tabIndex = 0;
    if (focus) cell.focus({ preventScroll: true });
  }

  /** Put the focus on the cell of a number; false when it is not in view. */
  focusOn(index) {
    const cell = this.cellOf(index);
    if (!cell) return false;
    this.moveTo(Number(cell.dataset.r), Number(cell.dataset.c), { preventScroll: true });
    return true;
  }

  at(r, c) {
    return this.drawn.get(r)?.children[c + 1] ?? null;
  }

  clicked(event) {
    const cell = event.target.closest("td[data-r]");
    if (cell) this.open(cell);
  }

  open(cell) {
    const [r, c] = this.cursor = [Number(cell.dataset.r), Number(cell.dataset.c)];
    const index = this.array.shape.map((_, axis) => (axis === this.down ? this.rowAt(r) : axis === this.across ? c : this.chosenIndex(axis)));
    this.context.open(this.name, index);
  }

  pressed(event) {
    const cell = event.target.closest("td[data-r]");
    if (!cell || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") {
      this.open(cell);
    } else {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
        PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -this.columns], End: [0, this.columns] }[event.key];
      if (!step) return;
      this.moveTo(clamp(Number(cell.dataset.r) + step[0], this.rows), clamp(Number(cell.dataset.c) + step[1], this.columns));
    }
    event.preventDefault();
    event.stopPropagation();
  }

  moveTo(r, c, options) {
    this.drawWhole();
    if (!this.at(r, c)) this.scrollTo(r);
    const cell = this.at(r, c);
    this.cursor = [r, c];
    this.reachable?.setAttribute("tabindex", "-1");
    this.reachable = cell;
    cell.tabIndex = 0;
    cell.focus(options);
  }

  finder() {
    const { words } = this.context;
    const input = h("input", { type: "search", placeholder: words.find_row, "aria-label": words.find_row });
    const answer = h("span", { class: "soft", role: "status" });
    const sort = h("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => {
      this.sort();
      sort.setAttribute("aria-pressed", String(Boolean(this.order)));
    } }, words.sort_values);
    const form = h("form", { class: "pick", onsubmit: (event) => { event.preventDefault(); answer.textContent = this.find(input.value.trimEnd()); } },
      input, h("button", { type: "submit", class: "chip" }, words.find), sort, answer);
    return form;
  }

  /** Scroll to the next row whose number or label is what was typed, or else contains it. */
  find(typed) {
    if (!typed) return "";
    const text = typed.replaceAll(" ", "␣");
    const labels = this.context.store.labels(this.name, this.down)?.map(bare);
    const start = (this.found?.text === text ? this.found.row : -1) + 1;
    const search = (matches) => {
      for (let i = 0; i < this.rows; i++) {
        const row = (start + i) % this.rows;
        if (matches(row)) return row;
      }
      return -1;
    };
    let row = /^\d+$/.test(text) && Number(text) < this.rows ? Number(text) : -1;
    if (row < 0 && labels) row = search((r) => labels[r] === text);
    if (row < 0 && labels) row = search((r) => labels[r] === `␣${text}`);
    if (row < 0 && labels) row = search((r) => labels[r].includes(text));
    if (row < 0) return this.context.words.not_found;
    this.found = { text, row };
    this.scrollTo(this.placeOf(row));
    for (const [r, element] of this.drawn) element.className = this.rowLook(r);
    return this.label(this.down, row);
  }

  tools() {
    const { words, digits } = this.context;
    const note = this.array.dtype === "int64" || digits === "all" ? "" : fill(words.rounded_note, { n: digits });
    const axes = () => `${this.axisWord(this.down)} ↓ ${this.axisWord(this.across)} →`;
    const extra = this.exchanged && this.across >= 0 ? ` ${fill(words.transposed, { axes: axes() })}` : "";
    return h("p", { class: "tools soft" }, note + extra, " ",
      h("button", { type: "button", class: "link", onclick: () => this.saveCsv() }, words.csv));
  }

  /** The whole array, one row a line, every number in full. */
  saveCsv() {
    const { store } = this.context;
    const { shape, axes, dtype } = this.array;
    const width = shape.at(-1) ?? 1;
    const lines = [`# ${this.name} ${axes.map((axis, i) => `${axis}=${shape[i]}`).join(" ")}`];
    for (let start = 0; start < store.size(this.name); start += width) {
      const row = [];
      for (let i = start; i < start + width; i++) row.push(format(store.flatValue(this.name, i), "all", dtype).replaceAll("−", "-").replace("∞", "inf"));
      lines.push(row.join(","));
    }
    const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    const link = h("a", { href: url, download: `${this.name}.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
}

/** Buttons for the places on a short axis. */
function chips(word, labels, choose) {
  const buttons = labels.map((label, i) => h("button", { type: "button", class: "chip", onclick: () => choose(i) }, label));
  return {
    element: h("div", { class: "pick", role: "group", "aria-label": word }, h("span", {}, word), buttons),
    show: (chosen) => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen))),
  };
}

/** A slider for the places on a longer one. */
function slider(word, length, choose) {
  const output = h("output");
  const input = h("input", { type: "range", min: 0, max: length - 1, "aria-label": word, oninput: () => choose(Number(input.value)) });
  return {
    element: h("div", { class: "pick" }, h("span", {}, word), input, output),
    show: (chosen) => { input.value = chosen; output.value = chosen + 1; },
  };
}

function clamp(value, length) {
  return Math.max(0, Math.min(length - 1, value));
}
