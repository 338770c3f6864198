// Slices as maps of coloured cells, one map for each head; above them how one cell changed.

import { Curves } from "curves";
import { bare, choices, dress, h, onKeys, onWidth, svg } from "dom";
import { format } from "format";
import { describeIndex } from "number";
import { flatten, unflatten } from "store";

const [SMALLEST, LEAST, GAP] = [9, 16, 16]; // sizes in pixels; maps with cells below LEAST are not set side by side
const SHADES = 32;

/** Three axes or more: the last two make a map, one for each place on the others. */
export class Maps {
  constructor(slices, series, state, box) {
    const { words } = series.context;
    Object.assign(this, { slices, series, state, words });
    [this.rows, this.columns] = slices.shape.slice(-2);
    this.measure();
    this.strip = new Curves(series, slices, { lines: [], thin: true });
    this.caption = h("p", { class: "caption" });
    this.key = h("span", { class: "key" }, h("span"), h("i"), h("span"));
    this.maps = h("div", { class: "maps" });
    const [down, across] = slices.axes.slice(-2).map((axis) => words[`axis.${axis}`]);
    box.append(
      choices(words["series.show"], [words["series.value"], words["series.change"]], state.change ? 1 : 0, (i) => {
        state.change = i === 1;
        this.follow();
      }),
      this.caption, this.strip.box, h("p", { class: "soft" }, `${down} ↓ ${across} → `, this.key), this.maps);
    onWidth(this.maps, (width) => this.draw(width));
    this.look();
  }

  /** The largest value, the largest change, and the cell to begin with: the one that ends farthest from its start. */
  measure() {
    const { slices, state } = this;
    const first = Float64Array.from({ length: slices.size }, (_, cell) => slices.value(0, cell));
    const largest = { value: 0, change: 0 };
    for (let update = 0; update < slices.count; update++) {
      for (let cell = 0; cell < slices.size; cell++) {
        const value = slices.value(update, cell);
        if (!Number.isFinite(value)) continue;
        this.signed ||= value < 0;
        largest.value = Math.max(largest.value, Math.abs(value));
        largest.change = Math.max(largest.change, Math.abs(value - first[cell]) || 0);
      }
    }
    const moved = first.map((value, cell) => Math.abs(slices.value(slices.count - 1, cell) - value) || 0);
    state.cell ??= moved.indexOf(Math.max(...moved));
    Object.assign(this, { first, largest });
  }

  draw(width) {
    const { slices, rows, columns } = this;
    const leading = slices.axes.length - 2;
    const [down, over] = [rows, columns].map((length, axis) => (
      Array.from({ length }, (_, i) => slices.label(leading + axis, i))));
    const [left, across] = [down, over].map((list) => Math.max(...list.map(wide)) + 8);
    const per = rows * columns;
    const maps = slices.size / per;
    let beside = maps + 1;
    let size = 0;
    while (size < LEAST && beside > 1) size = ((width - GAP * (--beside - 1)) / beside - left - 8) / columns;
    size = Math.floor(Math.max(SMALLEST, Math.min(size, Math.max(40, Math.min(60, across)))));
    const turned = across > size;
    const top = turned ? across : 18;
    Object.assign(this, { left, top, size, here: svg("rect", { class: "here", width: size, height: size }) });
    this.cells = Array.from({ length: slices.size }, (_, cell) => (
      svg("rect", { "data-cell": cell, ...this.place(cell), width: size - 1, height: size - 1 })));
    const every = (_, i) => i % Math.ceil(13 / size) === 0;
    const name = (text, x, y, place) => svg("text", { x, y, ...place }, text);
    const middle = (i) => (i + 0.5) * size + 4;
    const names = () => [
      ...down.map((text, i) => name(text, left - 6, top + middle(i), { "text-anchor": "end" })).filter(every),
      ...over.map((text, j) => (turned
        ? name(text, 0, 0, { transform: `translate(${left + middle(j)},${top - 6}) rotate(-90)` })
        : name(text, left + middle(j) - 4, top - 6, { "text-anchor": "middle" }))).filter(every)];
    this.svgs = Array.from({ length: maps }, (_, map) => svg("svg",
      { role: "img", tabindex: 0, width: left + columns * size + 2, height: top + rows * size + 2 },
      names(), this.cells.slice(map * per, (map + 1) * per)));
    this.svgs.forEach((picture, map) => this.wire(picture, map * per));
    const title = (map) => unflatten(map, slices.shape.slice(0, -2)).map((i, axis) => (
      `${this.words[`axis.${slices.axes[axis]}`]} ${slices.label(axis, i)}`)).join(this.words.comma);
    this.maps.replaceChildren(...this.svgs.map((picture, map) => (
      h("figure", {}, h("figcaption", {}, title(map)), picture))));
    this.look();
    this.follow();
  }

  place(cell, inset = 0.5) {
    const [row, column] = this.at(cell);
    return { x: this.left + column * this.size + inset, y: this.top + row * this.size + inset };
  }

  at(cell) {
    return [Math.floor(cell / this.columns) % this.rows, cell % this.columns];
  }

  wire(picture, firstCell) {
    const { columns, rows } = this;
    const on = (name, run) => picture.addEventListener(name, (event) => {
      const cell = event.target.dataset.cell;
      if (cell) run(Number(cell), event);
    });
    on("pointermove", (cell, event) => {
      const at = `${event.clientX},${event.clientY}`; // a page that moves under a resting pointer means nothing
      if (at !== this.pointer && cell !== this.looked) this.look(cell);
      this.pointer = at;
    });
    on("click", (cell) => this.open(cell));
    picture.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.look();
    });
    picture.addEventListener("focus", () => {
      const { cell } = this.state;
      if (cell < firstCell || cell >= firstCell + rows * columns) this.choose(firstCell);
    });
    onKeys(picture, (key) => {
      const { cell } = this.state;
      const [row, column] = this.at(cell);
      const by = { ArrowLeft: column && -1, ArrowRight: column < columns - 1 ? 1 : 0, ArrowUp: row && -columns,
        ArrowDown: row < rows - 1 ? columns : 0, Home: -column, End: columns - 1 - column }[key];
      if (by) this.choose(cell + by);
      if (key === "Enter" || key === " ") this.open(cell);
      return by !== undefined || key === "Enter" || key === " ";
    });
  }

  choose(cell) {
    this.state.cell = cell;
    this.look(cell);
  }

  open(cell) {
    this.choose(cell);
    this.series.context.open(this.slices.name, this.slices.index(this.series.at, cell));
  }

  /** Tell about a cell: its curve above the maps, its value in words. */
  look(cell = this.state.cell) {
    this.looked = cell;
    this.strip.draw({ lines: [{ values: this.slices.line(cell), name: this.describe(), look: -1 }] });
    if (this.cells) {
      dress(this.here, this.place(cell, 0));
      this.svgs[Math.floor(cell / (this.rows * this.columns))].append(this.here);
    }
    this.tell();
  }

  /** The looked-at cell without its update, which the slider names. */
  describe() {
    const { slices, series } = this;
    return describeIndex(slices.name, slices.index(0, this.looked), series.context).slice(1).join(this.words.comma);
  }

  tell() {
    const { slices, words, looked } = this;
    const value = slices.value(this.series.at, looked);
    const change = value - this.first[looked];
    this.caption.replaceChildren(this.strip.lines[0].name, h("br"), h("strong", {}, slices.text(value)),
      ` · ${words["series.change"]}${words.colon}${change > 0 ? "+" : ""}${format(change, 4, "float64")}`);
    const told = this.strip.svg.getAttribute("aria-label");
    for (const picture of this.svgs ?? []) picture.setAttribute("aria-label", told);
  }

  follow() {
    const { slices, series, state, first } = this;
    const opened = series.context.opened(slices.name);
    if (opened && String(opened) !== this.opened) this.choose(flatten(opened.slice(1), slices.shape));
    this.opened = String(opened);
    const largest = this.largest[state.change ? "change" : "value"];
    this.cells?.forEach((rect, cell) => {
      const value = slices.value(series.at, cell) - (state.change ? first[cell] : 0);
      const share = Math.ceil(Math.min(1, Math.abs(value) / largest) * SHADES) / SHADES;
      const look = value > 0 ? share : value < 0 ? -share : value;
      if (Object.is(rect.look, look)) return;
      rect.look = look;
      const name = look > 0 ? "pos" : look < 0 ? "neg" : look === 0 ? "zero" : "none";
      if (rect.name !== name) rect.setAttribute("class", rect.name = name);
      if (look) rect.setAttribute("fill-opacity", share);
    });
    const signed = this.signed || Boolean(state.change);
    this.key.classList.toggle("signed", signed);
    this.key.firstChild.textContent = signed ? format(-largest, 3) : "0";
    this.key.lastChild.textContent = format(largest, 3);
    this.strip.follow();
    this.tell();
  }
}

/** About how wide a label is: wide characters count nearly twice. */
function wide(text) {
  return Array.from(bare(text), (c) => (c > "\u2e80" ? 12 : 7)).reduce((a, b) => a + b, 0);
}
