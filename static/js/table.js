// An array as a table: two axes at once, the others chosen above it, long axes scrolled in a window.

import { fill, h, oncePerFrame } from "dom";
import { format } from "format";

const ROW_HEIGHT = 28;
const WINDOW_ROWS = 24;
const LONG = 200; // more rows than this are drawn as they come into view
const WIDE = 96; // a longer last axis goes down the page instead of across it

/**
 * One array on the page.
 * context: { store, words, choice(letter), choose(letter, value), open(array, index), digits, shared }
 * `shared` names an axis that has one slider for the whole step, above the tables.
 */
export class ArrayTable {
  constructor(name, context) {
    this.name = name;
    this.context = context;
    this.array = context.store.array(name);
    this.layOut();
    this.element = h("div", { class: "numbers" });
    this.lit = new Set();
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
  }

  async show() {
    const { store, words } = this.context;
    this.element.replaceChildren(h("p", { class: "soft" }, words.loading));
    try {
      await Promise.all([store.load([this.name]), ...this.array.shape.map((_, axis) => store.loadLabels(this.name, axis))]);
    } catch (error) {
      this.element.replaceChildren(h("p", { class: "wrong", role: "alert" }, fill(words.load_failed, { file: error.message })));
      return;
    }
    this.draw();
  }

  draw() {
    this.scale = this.largest();
    this.long = this.rows > LONG;
    const focused = this.body?.contains(document.activeElement);
    this.body = h("tbody");
    this.grid = h("table", { role: "grid", "aria-label": this.name, "aria-rowcount": this.rows + 1 },
      this.head(), this.body);
    const height = this.long ? " long" : this.isShared(this.down) ? " short" : "";
    this.viewport = h("div", { class: `window${height}`, tabindex: -1 }, this.grid);
    this.element.replaceChildren(...this.selectors(), ...(this.long ? [this.finder()] : []), this.viewport, this.tools());
    this.grid.addEventListener("click", (event) => this.clicked(event));
    this.grid.addEventListener("keydown", (event) => this.pressed(event));
    if (this.long) this.viewport.addEventListener("scroll", oncePerFrame(() => this.drawRows()));
    this.first = -1;
    this.drawRows();
    if (focused) this.makeReachable(true);
    if (this.isShared(this.down)) this.follow();
  }

  largest() {
    const { store } = this.context;
    if (this.array.derived) return null; // drawn row by row: its range is not known before it is computed
    let largest = 0;
    const size = Math.min(store.size(this.name), 300000);
    for (let i = 0; i < size; i++) {
      const value = Math.abs(store.flatValue(this.name, i));
      if (value < Infinity && value > largest) largest = value;
    }
    return largest;
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

  selectors() {
    return this.chosen.filter((axis) => !this.isShared(axis)).map((axis) => {
      const chosen = this.chosenIndex(axis);
      const word = this.axisWord(axis);
      if (this.array.shape[axis] > 12) return this.slider(axis, word, chosen);
      const chips = Array.from({ length: this.array.shape[axis] }, (_, i) => h("button", {
        type: "button", class: "chip", "aria-pressed": String(i === chosen),
        onclick: () => this.context.choose(this.array.axes[axis], i),
      }, this.label(axis, i)));
      return h("div", { class: "pick", role: "group", "aria-label": word }, h("span", {}, word), chips);
    });
  }

  slider(axis, word, chosen) {
    const output = h("output", {}, String(chosen + 1));
    const input = h("input", { type: "range", min: 0, max: this.array.shape[axis] - 1, value: chosen, "aria-label": word,
      oninput: () => { output.value = Number(input.value) + 1; this.context.choose(this.array.axes[axis], Number(input.value)); } });
    return h("div", { class: "pick" }, h("span", {}, word), input, output);
  }

  chosenIndex(axis) {
    return Math.min(this.context.choice(this.array.axes[axis]) ?? 0, this.array.shape[axis] - 1);
  }

  head() {
    const corner = [this.down >= 0 ? `${this.axisWord(this.down)} ↓` : "", this.across >= 0 ? `${this.axisWord(this.across)} →` : ""];
    const cells = [h("th", { scope: "col", class: "corner" }, corner.filter(Boolean).join(" "))];
    for (let c = 0; c < this.columns; c++) cells.push(h("th", { scope: "col" }, this.across < 0 ? this.context.words["series.value"] : this.label(this.across, c)));
    return h("thead", {}, h("tr", { "aria-rowindex": 1 }, cells));
  }

  drawRows() {
    const from = this.long ? Math.max(0, Math.min(Math.floor(this.viewport.scrollTop / ROW_HEIGHT) - 6, this.rows - WINDOW_ROWS)) : 0;
    const to = this.long ? Math.min(this.rows, from + WINDOW_ROWS) : this.rows;
    if (from === this.first) return;
    const focused = this.body.contains(document.activeElement);
    this.first = from;
    const rows = [];
    if (from > 0) rows.push(this.spacer(from));
    for (let r = from; r < to; r++) rows.push(this.row(r));
    if (to < this.rows) rows.push(this.spacer(this.rows - to));
    this.body.replaceChildren(...rows);
    this.makeReachable(focused);
  }

  spacer(rows) {
    const cell = h("td", { colspan: this.columns + 1 });
    cell.style.height = `${rows * ROW_HEIGHT}px`;
    return h("tr", { class: "spacer", "aria-hidden": "true" }, cell);
  }

  row(r) {
    const cells = [h("th", { scope: "row" }, this.down < 0 ? this.context.words["series.value"] : this.label(this.down, r))];
    for (let c = 0; c < this.columns; c++) cells.push(this.cell(r, c));
    const now = this.isShared(this.down) && r === this.chosenIndex(this.down);
    return h("tr", { "aria-rowindex": r + 2, class: now && "now" }, cells);
  }

  cell(r, c) {
    return this.paint(h("td", { tabindex: -1, "data-r": r, "data-c": c }), r, c);
  }

  /** What a cell says and how it looks, from the number that it stands for now. What stays is not written again. */
  paint(cell, r, c) {
    const { store, digits } = this.context;
    const index = this.indexOf(r, c);
    const key = String(index);
    const value = store.value(this.name, index);
    const { dtype } = this.array;
    const coloured = this.scale && Number.isFinite(value) && dtype !== "int64";
    const share = coloured ? Math.min(1, Math.abs(value) / this.scale) : 0;
    let look = share > 0 ? (value < 0 ? "neg" : "pos") : value === 0 || !Number.isFinite(value) ? "nothing" : "";
    let text = format(value, digits, dtype);
    if (this.secret === key) [look, text] = ["secret", "?"];
    if (this.selected === key) look += " sel";
    else if (this.lit.has(key)) look += " lit";
    if (cell.textContent !== text) cell.textContent = text;
    if (cell.className !== look) cell.className = look;
    const percent = Math.round(share * 42);
    if (share > 0 && cell.percent !== percent) cell.style.setProperty("--share", `${cell.percent = percent}%`);
    return cell;
  }

  indexOf(r, c) {
    const index = this.array.shape.map((_, axis) => (this.chosen.includes(axis) ? this.chosenIndex(axis) : 0));
    if (this.down >= 0) index[this.down] = r;
    if (this.across >= 0) index[this.across] = c;
    return index;
  }

  /** The shared choice moved: other numbers in the same cells, or another row lit. */
  follow() {
    if (!this.grid) return;
    if (this.isShared(this.down)) {
      this.scrollTo(this.chosenIndex(this.down));
      this.body.querySelector("tr.now")?.classList.remove("now");
      if (this.long) this.drawRows();
      this.at(this.chosenIndex(this.down), 0)?.parentElement.classList.add("now");
    } else if (this.chosen.some((axis) => this.isShared(axis))) {
      for (const cell of this.body.querySelectorAll("td[data-r]")) {
        this.paint(cell, Number(cell.dataset.r), Number(cell.dataset.c));
      }
    }
  }

  /** Show which numbers are meant: the opened one, or those that it reads. */
  mark(selected, lit) {
    const key = selected ? String(selected) : null;
    if (key === this.selected && lit.size === 0 && this.lit.size === 0) return;
    this.selected = key;
    this.lit = lit;
    if (!this.grid) return;
    const at = selected ?? [...lit].map((text) => text.split(",").map(Number))[0];
    if (at && this.long && this.down >= 0) this.scrollTo(at[this.down]);
    this.first = -1;
    this.drawRows();
  }

  /** Hide one number, for an exercise; null shows it again. */
  keepSecret(index) {
    this.secret = index && String(index);
    if (!this.grid) return;
    if (index && this.long && this.down >= 0) this.scrollTo(index[this.down]);
    this.first = -1;
    this.drawRows();
  }

  /** The cell that shows a number now, if it is in view. */
  cellOf(index) {
    if (!this.grid || this.chosen.some((axis) => index[axis] !== this.chosenIndex(axis))) return null;
    return this.at(this.down >= 0 ? index[this.down] : 0, this.across >= 0 ? index[this.across] : 0);
  }

  scrollTo(row) {
    this.viewport.scrollTop = Math.max(0, (row - 3) * ROW_HEIGHT);
  }

  /** One cell can be reached with Tab; arrow keys move from there. */
  makeReachable(focus) {
    const cell = this.body.querySelector("td.sel") ?? this.at(this.cursor?.[0], this.cursor?.[1]) ?? this.body.querySelector("td[data-r]");
    if (!cell) return;
    this.body.querySelector('td[tabindex="0"]')?.setAttribute("tabindex", "-1");
    cell.tabIndex = 0;
    if (focus) cell.focus({ preventScroll: true });
  }

  /** Put the focus on the cell of a number; false when it is not in view. */
  focusOn(index) {
    const cell = this.cellOf(index);
    if (!cell) return false;
    this.cursor = [Number(cell.dataset.r), Number(cell.dataset.c)];
    this.makeReachable(true);
    return true;
  }

  at(r, c) {
    return r === undefined ? null : this.body.querySelector(`td[data-r="${r}"][data-c="${c}"]`);
  }

  clicked(event) {
    const cell = event.target.closest("td[data-r]");
    if (cell) this.open(cell);
  }

  open(cell) {
    this.cursor = [Number(cell.dataset.r), Number(cell.dataset.c)];
    this.context.open(this.name, this.indexOf(...this.cursor));
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

  moveTo(r, c) {
    if (!this.at(r, c)) {
      this.scrollTo(r);
      this.drawRows();
    }
    this.body.querySelector('td[tabindex="0"]')?.setAttribute("tabindex", "-1");
    const cell = this.at(r, c);
    this.cursor = [r, c];
    cell.tabIndex = 0;
    cell.focus();
  }

  finder() {
    const { words } = this.context;
    const input = h("input", { type: "search", placeholder: words.find_row, "aria-label": words.find_row });
    const answer = h("span", { class: "soft", role: "status" });
    const form = h("form", { class: "pick", onsubmit: (event) => { event.preventDefault(); answer.textContent = this.find(input.value.trimEnd()); } },
      input, h("button", { type: "submit", class: "chip" }, words.find), answer);
    return form;
  }

  /** Scroll to the next row whose number or label is what was typed, or else contains it. */
  find(typed) {
    if (!typed) return "";
    const text = typed.replaceAll(" ", "␣");
    const labels = this.context.store.labels(this.name, this.down);
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
    this.scrollTo(row);
    this.first = -1;
    this.drawRows();
    this.at(row, 0)?.parentElement.classList.add("found");
    return this.label(this.down, row);
  }

  tools() {
    const { words, digits } = this.context;
    const note = this.array.dtype === "int64" || digits === "all" ? "" : fill(words.rounded_note, { n: digits });
    const extra = this.exchanged && this.across >= 0 ? ` ${this.axisWord(this.down)} ↓ ${this.axisWord(this.across)} →, ${words.transposed}.` : "";
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

function clamp(value, length) {
  return Math.max(0, Math.min(length - 1, value));
}
