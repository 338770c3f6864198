// Arrays with a slice for every update, as pictures under one slider: curves, and maps of coloured cells.

import { Curves, sample } from "curves";
import { choices, fill, h, oncePerFrame } from "dom";
import { format } from "format";
import { Maps } from "maps";
import { unflatten } from "store";

export const SHARED = "update";
const kept = new Map(); // array → how its picture was last set: {log, change, cell}

/**
 * One slider above the parts of `section`, a picture in each part whose array runs over the updates.
 * context: as for tables, and opened(array) → index of the opened number, settled(axis, i).
 * Returns { axis, follow(), stop() }, or null when no array has that axis.
 */
export function drawSeries(section, names, context) {
  const mine = names.filter((name) => context.store.array(name).axes.includes(SHARED));
  return mine.length ? new Series(section, mine, context) : null;
}

class Series {
  constructor(section, names, context) {
    Object.assign(this, { section, context, axis: SHARED, pictures: [] });
    const { store } = context;
    this.total = Math.max(...names.map((name) => store.shape(name)[store.array(name).axes.indexOf(SHARED)]));
    this.draw = oncePerFrame(() => {
      this.drawing = true;
      context.choose(SHARED, this.at);
      this.drawing = false;
    });
    this.elements = [this.bar()];
    section.querySelector(".part").before(this.elements[0]);
    for (const name of names) if (store.array(name).axes[0] === SHARED) this.addPicture(name);
    this.follow();
  }

  bar() {
    const { words } = this.context;
    this.input = h("input", { type: "range", min: 1, max: this.total, "aria-label": words["axis.update"],
      oninput: () => this.moveTo(this.input.value - 1) });
    this.output = h("output");
    this.button = h("button", { type: "button", onclick: () => (this.timer ? this.pause() : this.play()) });
    this.status = h("span", { class: "quiet", role: "status" });
    this.pause();
    return h("div", { class: "updates" }, this.button, this.output, this.input, this.status);
  }

  async addPicture(name) {
    const { store } = this.context;
    const { axes } = store.array(name);
    const box = h("div", { class: "picture" });
    this.elements.push(box);
    this.section.querySelector(`[data-array="${CSS.escape(name)}"] .equation`).before(box);
    try {
      await Promise.all([store.load([name]), ...axes.map((_, axis) => store.loadLabels(name, axis))]);
    } catch {
      box.remove(); // the table below says what is missing
    }
    if (!box.isConnected) return;
    if (!kept.has(name)) kept.set(name, {});
    const picture = new (axes.length > 2 ? Maps : Lines)(new Slices(name, store), this, kept.get(name), box);
    this.pictures.push(picture);
    picture.follow();
  }

  /** Choose an update to stay with. */
  moveTo(update, playing = false) {
    if (!playing) this.pause();
    this.fixed = Math.max(0, Math.min(this.total - 1, update));
    this.glance();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      const focused = document.activeElement.closest(".picture svg");
      this.status.textContent = focused?.getAttribute("aria-label") ?? "";
      this.context.settled(SHARED, this.fixed);
    }, 400);
  }

  /** Show an update while the pointer is over it; without one, go back to the chosen one. */
  glance(update = this.fixed) {
    if (update === this.at) return;
    this.at = update;
    this.draw();
  }

  play() {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (this.fixed === this.total - 1) this.moveTo(0);
    this.timer = setInterval(() => {
      this.moveTo(this.fixed + 1, true);
      if (this.fixed === this.total - 1) this.pause();
    }, Math.max(calm ? 500 : 60, Math.min(800, 12000 / this.total)));
    this.button.textContent = `❚❚ ${this.context.words.pause}`;
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = `▶ ${this.context.words["series.play"]}`;
  }

  stop() {
    this.pause();
    clearTimeout(this.rest);
    for (const element of this.elements) element.remove();
  }

  /** Draw what the chosen update says, whoever chose it. */
  follow() {
    const { words, choice } = this.context;
    this.at = Math.min(choice(SHARED) ?? 0, this.total - 1);
    if (!this.drawing) this.fixed = this.at;
    const text = fill(words["series.update_of"], { n: this.at + 1, total: this.total });
    this.input.value = this.at + 1;
    this.input.setAttribute("aria-valuetext", text);
    this.output.value = text;
    for (const picture of this.pictures) picture.follow();
  }
}

/** The slices of one array: for each update, its numbers in order. */
class Slices {
  constructor(name, store) {
    const { shape, axes, dtype } = store.array(name);
    Object.assign(this, { name, store, dtype, count: shape[0], shape: shape.slice(1), axes: axes.slice(1) });
    this.size = this.shape.reduce((a, b) => a * b, 1);
  }

  value(update, cell) {
    return this.store.flatValue(this.name, Math.min(update, this.count - 1) * this.size + cell);
  }

  line(cell) {
    return Float64Array.from({ length: this.count }, (_, update) => this.value(update, cell));
  }

  index(update, cell) {
    return [Math.min(update, this.count - 1), ...unflatten(cell, this.shape)];
  }

  label(axis, i) {
    return this.store.label(this.name, axis + 1, i);
  }

  text(value, digits = "all") {
    return format(value, digits, this.dtype);
  }
}

/** One axis or two: a curve for the array, or for each place on its second axis; their values below. */
class Lines {
  constructor(slices, series, state, box) {
    const { words, digits, open } = series.context;
    Object.assign(this, { slices, series, words });
    const many = slices.axes.length > 0;
    const lines = Array.from({ length: slices.size }, (_, i) => (
      { values: slices.line(i), name: many ? slices.label(0, i) : slices.name, look: many ? i : -1 }));
    const extras = this.evaluation(lines[0].values);
    this.curves = new Curves(series, slices, { lines, ...extras, log: state.log });
    this.cells = lines.map((_, i) => h("button", { type: "button", class: "link",
      onclick: () => open(slices.name, slices.index(series.at, i)) }));
    this.now = h("th", { scope: "col", class: "now" });
    const head = (text) => h("th", { scope: "col" }, text);
    const row = ({ values, name, look }, i) => h("tr", {},
      h("th", { scope: "row" }, many ? sample(look) : null, ` ${name}`), h("td", { class: "now" }, this.cells[i]),
      [values[0], values.at(-1)].map((value) => h("td", {}, slices.text(value, digits))));
    box.append(
      choices(words["series.scale"], [words["series.linear"], words["series.log"]], state.log ? 1 : 0, (i) => {
        state.log = i === 1;
        this.curves.draw({ log: state.log });
      }),
      this.curves.box,
      h("div", { class: "window" }, h("table", { class: "values" },
        h("thead", {}, h("tr", {}, many ? head(words[`axis.${slices.axes[0]}`]) : h("td"), this.now,
          head(this.heading(0)), head(this.heading(slices.count - 1)))),
        h("tbody", {}, lines.map(row)))),
      h("p", { class: "soft" }, extras.told ?? ""));
  }

  heading(update) {
    return `${this.words["axis.update"]} ${update + 1}`;
  }

  /** By the series that begins with the recorded loss: the losses after the last update, and the yardstick ln V. */
  evaluation(values) {
    const { slices, words } = this;
    const { summary, labels } = slices.store.outline;
    if (slices.axes.length || values[0] !== Math.fround(summary.loss)) return {};
    const marks = ["train", "validation"].map((text) => (
      { value: Math.fround(summary[`${text}_loss`]), name: words[`series.${text}`] }));
    const [train, validation] = marks.map(({ value }) => slices.text(value));
    const told = fill(words["series.evaluated"], { train, validation });
    const n = labels.vocabulary?.length;
    if (!n) return { marks, told };
    const guide = { value: Math.log(n), name: "ln V" };
    const yardstick = { n: n.toLocaleString("en"), value: format(guide.value, 6, "float64") };
    return { marks, guide, told: `${told} ${fill(words["series.yardstick"], yardstick)}` };
  }

  follow() {
    const { at } = this.series;
    this.now.textContent = this.heading(at);
    this.cells.forEach((cell, i) => { cell.textContent = this.slices.text(this.slices.value(at, i)); });
    this.curves.follow();
  }
}
