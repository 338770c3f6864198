// Slices as maps of coloured cells, one map for each head; above them how one cell changed.

import { Curves } from "curves";
import { describeIndex } from "describe";
import { bare, choices, dress, h, onKeys, onWidth, svg } from "dom";
import { format } from "format";
import { flatten, unflatten } from "indices";

const [SMALLEST, LEAST, GAP] = [9, 16, 16]; // sizes in pixels; maps with cells below LEAST are not set side by side
const SHADES = 32;

/** Three axes or more: the last two make a map, one for each place on the others. */
export class Maps {
  /**
   * @param {import("slices").Slices} slices
   * @param {import("charts").Series} series
   * @param {import("charts").Setting} setting
   * @param {HTMLElement} box
   */
  constructor(slices, series, setting, box) {
    const { words } = series.context;
    this.slices = slices;
    this.series = series;
    this.setting = setting;
    this.words = words;
    this.rows = slices.shape[slices.shape.length - 2];
    this.columns = slices.shape[slices.shape.length - 1];
    this.first = Float64Array.from({ length: slices.size }, (_, cell) => slices.value(0, cell));
    this.signed = false;
    this.largest = this.measure();
    setting.cell ??= this.mostMoved();
    this.looked = setting.cell;
    this.opened = "";
    this.pointer = "";
    this.left = this.top = this.size = 0; // of the cells, in pixels
    /** @type {SVGRectElement[]} */
    this.cells = [];
    /** @type {SVGSVGElement[]} */
    this.svgs = [];
    this.here = svg("rect", { class: "here" });
    this.strip = new Curves(series, slices, { lines: [], thin: true });
    this.caption = h("p", { class: "caption" });
    const ends = [h("span"), h("span")];
    this.ends = ends;
    this.key = h("span", { class: "key" }, ends[0], h("i"), ends[1]);
    this.maps = h("div", { class: "maps" });
    const [down, across] = slices.axes.slice(-2).map((axis) => words[`axis.${axis}`]);
    box.append(
      choices(words["series.show"], [words["series.value"], words["series.change"]], setting.change ? 1 : 0, (i) => {
        setting.change = i === 1;
        this.follow();
      }),
      this.caption, this.strip.box, h("p", { class: "soft" }, `${down} ↓ ${across} → `, this.key), this.maps);
    onWidth(this.maps, (width) => this.draw(width));
    this.look();
  }

  /** The largest value and the largest change. */
  measure() {
    const { slices, first } = this;
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
    return largest;
  }

  /** The cell to begin with: the one that ends farthest from its start. */
  mostMoved() {
    const moved = this.first.map((value, cell) => Math.abs(this.slices.value(this.slices.count - 1, cell) - value) || 0);
    return moved.indexOf(Math.max(...moved));
  }

  /** @param {number} width */
  draw(width) {
    const { slices, rows, columns } = this;
    const leading = slices.axes.length - 2;
    const [down, over] = [rows, columns].map((length, axis) => (
      Array.from({ length }, (_, i) => slices.label(leading + axis, i))));
    const [left, across] = [down, over].map((list) => Math.max(...list.map(wide)) + 8);
    const per = rows * columns;
    const maps = slices.size / per;
    this.left = left;
    this.size = this.sizeOfCells(width, maps, across);
    const turned = across > this.size;
    this.top = turned ? across : 18;
    dress(this.here, { width: this.size, height: this.size });
    this.cells = Array.from({ length: slices.size }, (_, cell) => (
      svg("rect", { "data-cell": cell, ...this.place(cell), width: this.size - 1, height: this.size - 1 })));
    this.svgs = Array.from({ length: maps }, (_, map) => svg("svg",
      { role: "img", tabindex: 0, width: left + columns * this.size + 2, height: this.top + rows * this.size + 2 },
      this.names(down, over, turned), this.cells.slice(map * per, (map + 1) * per)));
    this.svgs.forEach((picture, map) => this.wire(picture, map * per));
    const title = (/** @type {number} */ map) => unflatten(map, slices.shape.slice(0, -2)).map((i, axis) => (
      `${this.words[`axis.${slices.axes[axis]}`]} ${slices.label(axis, i)}`)).join(this.words.comma);
    this.maps.replaceChildren(...this.svgs.map((picture, map) => (
      h("figure", {}, h("figcaption", {}, title(map)), picture))));
    this.look();
    this.follow();
  }

  /**
   * As many maps side by side as leave the cells large enough.
   * @param {number} width
   * @param {number} maps
   * @param {number} across the width of a column's name
   */
  sizeOfCells(width, maps, across) {
    let size = 0;
    for (let beside = maps; size < LEAST && beside >= 1; beside--) {
      size = ((width - GAP * (beside - 1)) / beside - this.left - 8) / this.columns;
    }
    return Math.floor(Math.max(SMALLEST, Math.min(size, Math.max(40, Math.min(60, across)))));
  }

  /**
   * Names of rows and columns, as many as there is room for.
   * @param {string[]} down
   * @param {string[]} over
   * @param {boolean} turned
   */
  names(down, over, turned) {
    const { left, top, size } = this;
    const every = (/** @type {unknown} */ _, /** @type {number} */ i) => i % Math.ceil(13 / size) === 0;
    const middle = (/** @type {number} */ i) => (i + 0.5) * size + 4;
    return [
      ...down.map((text, i) => svg("text", { x: left - 6, y: top + middle(i), "text-anchor": "end" }, text)).filter(every),
      ...over.map((text, j) => svg("text", turned
        ? { x: 0, y: 0, transform: `translate(${left + middle(j)},${top - 6}) rotate(-90)` }
        : { x: left + middle(j) - 4, y: top - 6, "text-anchor": "middle" }, text)).filter(every)];
  }

  /** @param {number} cell */
  place(cell, inset = 0.5) {
    const { row, column } = this.at(cell);
    return { x: this.left + column * this.size + inset, y: this.top + row * this.size + inset };
  }

  /** @param {number} cell */
  at(cell) {
    return { row: Math.floor(cell / this.columns) % this.rows, column: cell % this.columns };
  }

  /**
   * @param {SVGSVGElement} picture
   * @param {number} firstCell
   */
  wire(picture, firstCell) {
    picture.addEventListener("pointermove", (event) => {
      const cell = cellOf(event);
      if (cell === null) return;
      const at = `${event.clientX},${event.clientY}`; // a page that moves under a resting pointer means nothing
      if (at !== this.pointer && cell !== this.looked) this.look(cell);
      this.pointer = at;
    });
    picture.addEventListener("click", (event) => {
      const cell = cellOf(event);
      if (cell !== null) this.open(cell);
    });
    picture.addEventListener("pointerleave", () => {
      this.pointer = "";
      this.look();
    });
    picture.addEventListener("focus", () => {
      if (this.chosen < firstCell || this.chosen >= firstCell + this.rows * this.columns) this.choose(firstCell);
    });
    onKeys(picture, (key) => this.pressed(key));
  }

  get chosen() {
    return this.setting.cell ?? 0;
  }

  /**
   * Whether the key was for the map.
   * @param {string} key
   */
  pressed(key) {
    const { rows, columns, chosen } = this;
    const { row, column } = this.at(chosen);
    /** @type {Record<string, number>} */
    const moves = { ArrowLeft: column && -1, ArrowRight: column < columns - 1 ? 1 : 0, ArrowUp: row && -columns,
      ArrowDown: row < rows - 1 ? columns : 0, Home: -column, End: columns - 1 - column };
    const by = moves[key];
    if (by) this.choose(chosen + by);
    const opens = key === "Enter" || key === " ";
    if (opens) this.open(chosen);
    return by !== undefined || opens;
  }

  /** @param {number} cell */
  choose(cell) {
    this.setting.cell = cell;
    this.look(cell);
  }

  /** @param {number} cell */
  open(cell) {
    this.choose(cell);
    this.series.context.open({ array: this.slices.name, index: this.slices.index(this.series.at, cell) });
  }

  /** Tell about a cell: its curve above the maps, its value in words. */
  look(cell = this.chosen) {
    this.looked = cell;
    this.strip.draw({ lines: [{ values: this.slices.line(cell), name: this.describe(), look: -1 }] });
    if (this.svgs.length) {
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
    const told = this.strip.svg.getAttribute("aria-label") ?? "";
    for (const picture of this.svgs) picture.setAttribute("aria-label", told);
  }

  follow() {
    const { slices, series, setting, first } = this;
    const opened = series.context.opened(slices.name);
    if (opened && String(opened) !== this.opened) this.choose(flatten(opened.slice(1), slices.shape));
    this.opened = String(opened);
    const largest = this.largest[setting.change ? "change" : "value"];
    this.cells.forEach((rect, cell) => shade(rect, slices.value(series.at, cell) - (setting.change ? first[cell] : 0), largest));
    const signed = this.signed || Boolean(setting.change);
    this.key.classList.toggle("signed", signed);
    this.ends[0].textContent = signed ? format(-largest, 3) : "0";
    this.ends[1].textContent = format(largest, 3);
    this.strip.follow();
    this.tell();
  }
}

/** @type {WeakMap<Element, number>} */
const shades = new WeakMap(); // rectangle → its share of the largest, with the sign

/**
 * Colour a cell: nothing is written where the shade stays.
 * @param {SVGRectElement} rect
 * @param {number} value
 * @param {number} largest
 */
function shade(rect, value, largest) {
  const share = Math.ceil(Math.min(1, Math.abs(value) / largest) * SHADES) / SHADES;
  const look = value > 0 ? share : value < 0 ? -share : value;
  const before = shades.get(rect);
  if (shades.has(rect) && Object.is(before, look)) return;
  shades.set(rect, look);
  const name = look > 0 ? "pos" : look < 0 ? "neg" : look === 0 ? "zero" : "none";
  if (rect.getAttribute("class") !== name) rect.setAttribute("class", name);
  if (look) rect.setAttribute("fill-opacity", String(share));
}

/**
 * The cell that an event is about, or null.
 * @param {Event} event
 */
function cellOf({ target }) {
  const cell = target instanceof SVGElement ? target.dataset.cell : undefined;
  return cell === undefined ? null : Number(cell);
}

/**
 * About how wide a label is: wide characters count nearly twice.
 * @param {string} text
 */
function wide(text) {
  return Array.from(bare(text), (c) => (c > "\u2e80" ? 12 : 7)).reduce((a, b) => a + b, 0);
}
