// Arrays with a slice for every update, as pictures under one slider: curves, and maps of coloured cells.

import { fill, h, oncePerFrame } from "dom";
import { format } from "format";
import { ordinal, unflatten } from "store";

const SHARED = "update";
const COLOURS = 8;
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "4 2"];
const DOTS = ["M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", "M-3.5,-3.5h7v7h-7z", "M0,-5L5,3.5H-5z", "M0,-5.5L5,0L0,5.5L-5,0z",
  "M0,5L5,-3.5H-5z", "M-1.5,-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z"];
const kept = new Map(); // array → how its picture was last set: {log, change, cell}

/**
 * One slider above the parts of `section`, a picture in each part whose array runs over the updates.
 * context: as for tables, and opened(array) → index of the opened number, settled(axis).
 * Returns { axis, follow(), stop() }, or null when no array has that axis.
 */
export function drawSeries(section, names, context) {
  section.querySelectorAll(".updates, .picture").forEach((old) => old.remove());
  const mine = names.filter((name) => context.store.array(name).axes.includes(SHARED));
  return mine.length ? new Series(section, mine, context) : null;
}

class Series {
  constructor(section, names, context) {
    this.axis = SHARED;
    this.context = context;
    this.section = section;
    this.pictures = [];
    this.total = Math.max(...names.map((name) => this.length(name)));
    this.at = this.fixed = this.chosen();
    this.draw = oncePerFrame(() => {
      this.drawing = true;
      context.choose(SHARED, this.at);
      this.drawing = false;
    });
    section.querySelector(".part").before(this.bar());
    for (const name of names) if (context.store.array(name).axes[0] === SHARED) this.addPicture(name);
    this.follow();
  }

  length(name) {
    const { shape, axes } = this.context.store.array(name);
    return shape[axes.indexOf(SHARED)];
  }

  chosen() {
    return Math.min(this.context.choice(SHARED) ?? 0, this.total - 1);
  }

  async addPicture(name) {
    const { store } = this.context;
    const box = h("div", { class: "picture" });
    this.section.querySelector(`[data-array="${CSS.escape(name)}"] .equation`).before(box);
    const { axes } = store.array(name);
    // The table below tells when an array is missing.
    await Promise.all([store.load([name]), ...axes.map((_, axis) => store.loadLabels(name, axis))]).catch(() => box.remove());
    if (!box.isConnected) return;
    if (!kept.has(name)) kept.set(name, {});
    const picture = new (axes.length > 2 ? Maps : Lines)(new Slices(name, store), this, kept.get(name), box);
    this.pictures.push(picture);
    picture.follow();
  }

  bar() {
    const { words } = this.context;
    this.input = h("input", { type: "range", min: 1, max: this.total, "aria-label": words["axis.update"],
      oninput: () => { this.pause(); this.moveTo(this.input.value - 1); } });
    this.output = h("output", {});
    this.button = h("button", { type: "button", onclick: () => (this.timer ? this.pause() : this.play()) });
    this.status = h("span", { class: "quiet", role: "status" });
    this.pause();
    return h("div", { class: "updates" }, this.button, this.output, this.input, this.status);
  }

  /** Choose an update to stay with. */
  moveTo(update) {
    this.fixed = Math.max(0, Math.min(this.total - 1, update));
    this.glance(this.fixed);
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      const { activeElement } = document;
      this.context.settled(SHARED);
      if (this.section.contains(activeElement)) this.status.textContent = activeElement.matches("svg") ? activeElement.ariaLabel : "";
    }, 400);
  }

  /** Show an update for as long as the pointer is over it; without one, go back. */
  glance(update = this.fixed) {
    if (update === this.at) return;
    this.at = update;
    this.draw();
  }

  play() {
    if (this.at === this.total - 1) this.moveTo(0);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pace = Math.max(calm ? 500 : 60, Math.min(800, 12000 / this.total));
    this.timer = setInterval(() => {
      this.moveTo(this.fixed + 1);
      if (this.fixed === this.total - 1) this.pause();
    }, pace);
    this.button.textContent = `❚❚ ${this.context.words.pause}`;
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = `▶ ${this.context.words.play}`;
  }

  stop() {
    this.pause();
    clearTimeout(this.rest);
  }

  /** Draw what the chosen update says, whoever chose it. */
  follow() {
    this.at = this.chosen();
    if (!this.drawing) this.fixed = this.at;
    const text = fill(this.context.words["series.update_of"], { n: this.at + 1, total: this.total });
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

  /** The name of a place along one of the axes of a slice. */
  label(axis, i) {
    const label = this.store.labels(this.name, axis + 1)?.[i];
    return label === undefined ? String(ordinal(this.axes[axis], i)) : `${i} ${label}`;
  }
}

/** One axis or two: a curve for the array, or one for each place on its second axis; a table of values below. */
class Lines {
  constructor(slices, series, state, box) {
    const { words, digits, open } = series.context;
    Object.assign(this, { slices, series, words });
    const name = (cell) => (slices.shape.length ? slices.label(0, cell) : slices.name);
    const many = slices.size > 1;
    const lines = Array.from({ length: slices.size }, (_, i) => ({ values: slices.line(i), name: name(i), look: many ? i : -1 }));
    this.text = (value, all) => format(value, all ? "all" : digits, slices.dtype);
    const extras = this.evaluation(lines[0].values);
    this.curves = new Curves(series, { lines, ...extras, log: state.log, name: slices.name, text: this.text });
    const scale = choices(words["series.scale"], [words["series.linear"], words["series.log"]], state.log ? 1 : 0, (i) => {
      state.log = Boolean(i);
      this.curves.setScale(state.log);
    });
    this.cells = lines.map((_, i) => h("button", { type: "button", class: "link",
      onclick: () => open(slices.name, slices.index(series.at, i)) }));
    this.column = h("th", { scope: "col", class: "now" });
    const column = (n) => h("th", { scope: "col" }, `${words["axis.update"]} ${n}`);
    const table = h("table", { class: "values" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, many ? words[`axis.${slices.axes[0]}`] : ""), this.column, column(1), column(slices.count))),
      h("tbody", {}, lines.map(({ values, name, look }, i) => h("tr", {},
        h("th", { scope: "row" }, many ? sample(look) : null, ` ${name}`), h("td", { class: "now" }, this.cells[i]),
        h("td", {}, this.text(values[0])), h("td", {}, this.text(values.at(-1)))))));
    box.append(scale, this.curves.box, h("div", { class: "window" }, table), ...(extras.told ? [h("p", { class: "soft" }, extras.told)] : []));
  }

  /** The losses after the last update and the yardstick ln V belong to the series that starts with the recorded loss. */
  evaluation(values) {
    const { summary = {}, labels } = this.slices.store.outline;
    if (this.slices.size > 1 || values[0] !== Math.fround(summary.loss)) return {};
    const { words } = this;
    const marks = ["train", "validation"].map((text) => ({ value: Math.fround(summary[`${text}_loss`]), name: words[`series.${text}`] }));
    const size = labels.vocabulary?.length;
    const guide = size > 1 ? { value: Math.log(size), name: "ln V" } : null;
    const [train, validation] = marks.map(({ value }) => this.text(value, true));
    const told = [fill(words["series.evaluated"], { train, validation }), ...(guide
      ? [fill(words["series.yardstick"], { n: size.toLocaleString("en"), value: format(guide.value, 6, "float64") })] : [])];
    return { marks, guide, told: told.join(" ") };
  }

  follow() {
    const { at } = this.series;
    this.column.textContent = `${this.words["axis.update"]} ${at + 1}`;
    this.cells.forEach((cell, i) => { cell.textContent = this.text(this.slices.value(at, i), true); });
    this.curves.follow();
  }
}

/** Three axes or more: the last two as a map of cells, one map for each place on the others. */
class Maps {
  constructor(slices, series, state, box) {
    const { words } = series.context;
    Object.assign(this, { slices, series, state, words });
    [this.rows, this.columns] = slices.shape.slice(-2);
    this.measure();
    state.cell ??= this.moved;
    this.text = (value) => format(value, "all", slices.dtype);
    this.strip = new Curves(series, { lines: [], thin: true, name: slices.name, text: this.text });
    this.caption = h("p", { class: "caption" });
    this.key = h("div", { class: "key" }, h("span", {}), h("i", {}), h("span", {}));
    this.maps = h("div", { class: "maps" });
    const show = choices(words["series.show"], [words["series.value"], words["series.change"]], state.change ? 1 : 0, (i) => {
      state.change = Boolean(i);
      this.follow();
    });
    const [down, across] = slices.axes.slice(-2).map((axis) => words[`axis.${axis}`]);
    box.append(show, this.caption, this.strip.box, h("div", { class: "hint soft" }, `${down} ↓ ${across} →`, this.key), this.maps);
    onWidth(this.maps, (width) => this.draw(width));
    this.look(state.cell);
  }

  /** The largest value and the largest change of the series, and the cell that ends farthest from its start. */
  measure() {
    const { slices } = this;
    const first = Float64Array.from({ length: slices.size }, (_, cell) => slices.value(0, cell));
    let [value, change, lowest] = [0, 0, 0];
    for (let update = 0; update < slices.count; update++) {
      for (let cell = 0; cell < slices.size; cell++) {
        const now = slices.value(update, cell);
        if (!Number.isFinite(now)) continue;
        value = Math.max(value, Math.abs(now));
        lowest = Math.min(lowest, now);
        change = Math.max(change, Math.abs(now - first[cell]) || 0);
      }
    }
    const distance = first.map((from, cell) => Math.abs(slices.value(slices.count - 1, cell) - from) || 0);
    Object.assign(this, { first, largest: { value, change }, lowest, moved: distance.indexOf(Math.max(...distance)) });
  }

  draw(width) {
    const { slices, rows, columns } = this;
    const names = [rows, columns].map((n, axis) => Array.from({ length: n }, (_, i) => slices.label(slices.axes.length - 2 + axis, i)));
    const [left, top] = names.map((list) => Math.max(...list.map(wide)) + 8);
    const maps = slices.size / (rows * columns);
    let [beside, size] = [maps + 1, 0];
    while (size < 20 && beside > 1) size = ((width - 28 * (--beside - 1)) / beside - left - 2) / columns;
    size = Math.floor(Math.max(9, Math.min(Math.max(40, Math.min(60, top)), size)));
    const turned = top > size;
    const head = turned ? top : 18;
    this.size = size;
    this.corner = [left, head];
    this.cells = [];
    this.here = svg("rect", { class: "here", width: size, height: size });
    const every = Math.ceil(13 / size);
    this.maps.replaceChildren(...Array.from({ length: maps }, (_, map) => {
      const picture = svg("svg", { role: "img", tabindex: 0, "data-map": map, width: left + columns * size + 2, height: head + rows * size + 2 });
      names[0].forEach((name, i) => { if (i % every === 0) picture.append(svg("text", { x: left - 6, y: head + (i + 0.5) * size + 4, "text-anchor": "end" }, name)); });
      names[1].forEach((name, j) => {
        const [x, y] = [left + (j + 0.5) * size, head - 6];
        if (j % every) return;
        picture.append(svg("text", turned ? { transform: `translate(${x + 4},${y}) rotate(-90)` } : { x, y, "text-anchor": "middle" }, name));
      });
      for (let cell = 0; cell < rows * columns; cell++) {
        const rect = svg("rect", { x: left + (cell % columns) * size + 0.5, y: head + Math.floor(cell / columns) * size + 0.5,
          width: size - 1, height: size - 1, "data-cell": map * rows * columns + cell });
        picture.append(rect);
        this.cells.push(rect);
      }
      this.wire(picture);
      const place = unflatten(map, slices.shape.slice(0, -2)).map((i, axis) => `${this.words[`axis.${slices.axes[axis]}`]} ${slices.label(axis, i)}`);
      return h("figure", {}, maps > 1 ? h("figcaption", {}, place.join(", ")) : null, picture);
    }));
    this.look(this.state.cell);
    this.follow();
  }

  wire(picture) {
    const cellOf = (event) => event.target.dataset.cell;
    picture.addEventListener("pointerover", (event) => { if (cellOf(event)) this.look(Number(cellOf(event))); });
    picture.addEventListener("pointerleave", () => this.look(this.state.cell));
    picture.addEventListener("click", (event) => { if (cellOf(event)) this.open(Number(cellOf(event))); });
    picture.addEventListener("focus", () => { if (this.mapOf(this.state.cell) !== Number(picture.dataset.map)) this.choose(Number(picture.dataset.map) * this.rows * this.columns); });
    onKeys(picture, (key) => {
      const { cell } = this.state;
      const { rows, columns } = this;
      const [row, column] = [Math.floor(cell / columns) % rows, cell % columns];
      const to = { ArrowLeft: column && -1, ArrowRight: column < columns - 1 && 1, ArrowUp: row && -columns,
        ArrowDown: row < rows - 1 && columns, Home: -column, End: columns - 1 - column }[key];
      if (key === "Enter" || key === " ") this.open(cell);
      else if (to === undefined) return false;
      else this.choose(cell + Number(to));
      return true;
    });
  }

  mapOf(cell) {
    return Math.floor(cell / (this.rows * this.columns));
  }

  choose(cell) {
    this.state.cell = cell;
    this.look(cell);
  }

  open(cell) {
    this.choose(cell);
    this.series.context.open(this.slices.name, this.slices.index(this.series.at, cell));
  }

  /** Tell about a cell: its curve over all updates above the maps, its value in words. */
  look(cell) {
    const { slices, words } = this;
    this.looked = cell;
    const place = unflatten(cell, slices.shape).map((i, axis) => `${words[`axis.${slices.axes[axis]}`]} ${slices.label(axis, i)}`).join(", ");
    this.strip.setLines([{ values: slices.line(cell), name: place, look: -1 }]);
    if (this.cells) {
      const [left, top] = this.corner;
      const [row, column] = [Math.floor(cell / this.columns) % this.rows, cell % this.columns];
      set(this.here, { x: left + column * this.size, y: top + row * this.size });
      this.maps.children[this.mapOf(cell)].querySelector("svg").append(this.here);
    }
    this.place = place;
    this.tell();
  }

  tell() {
    const { slices, words, looked } = this;
    const now = slices.value(this.series.at, looked);
    const change = now - this.first[looked];
    const signed = `${change > 0 ? "+" : ""}${format(change, 4, "float64")}`;
    this.caption.replaceChildren(`${this.place}: `, h("strong", {}, this.text(now)), ` · ${words["series.change"]}: ${signed}`);
    for (const picture of this.maps.querySelectorAll("svg")) picture.ariaLabel = this.strip.svg.ariaLabel;
  }

  follow() {
    const { slices, series, state } = this;
    const opened = series.context.opened(slices.name);
    if (opened && String(opened) !== this.opened) this.choose(opened.slice(1).reduce((flat, i, axis) => flat * slices.shape[axis] + i, 0));
    this.opened = opened && String(opened);
    const largest = this.largest[state.change ? "change" : "value"];
    this.cells?.forEach((rect, cell) => {
      const value = slices.value(series.at, cell) - (state.change ? this.first[cell] : 0);
      const share = Number.isNaN(value) ? "none" : Math.round(Math.max(-1, Math.min(1, value / (largest || 1))) * 95);
      const look = value === 0 ? "zero" : share;
      if (rect.shown === look) return;
      rect.shown = look;
      rect.setAttribute("class", typeof look === "string" ? look : value < 0 ? "neg" : "pos");
      rect.style.setProperty("--share", `${Math.abs(share)}%`);
    });
    const signed = state.change || this.lowest < 0;
    this.key.classList.toggle("signed", signed);
    this.key.firstChild.textContent = signed ? format(-largest, 3) : "0";
    this.key.lastChild.textContent = format(largest, 3);
    this.strip.follow();
    this.tell();
  }
}

/** Curves over the updates. Moving over them moves the slider. */
class Curves {
  constructor(series, options) {
    Object.assign(this, { series, marks: [], guide: null }, options);
    this.svg = svg("svg", { role: "img", tabindex: 0 });
    this.box = h("div", { class: this.thin ? "curves thin" : "curves" }, this.svg);
    this.rule = svg("path", { class: "rule" });
    onWidth(this.box, (width) => { this.width = width; this.draw(); });
    this.wire();
  }

  setLines(lines) {
    this.lines = lines;
    this.draw();
  }

  setScale(log) {
    this.log = log;
    this.draw();
  }

  wire() {
    const { series } = this;
    const under = (event) => {
      const share = (event.clientX - this.svg.getBoundingClientRect().left - this.left) / (this.right - this.left);
      return Math.max(0, Math.min(this.count - 1, Math.round(share * this.span)));
    };
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.svg.setPointerCapture(event.pointerId);
      series.pause();
      series.moveTo(under(event));
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) series.moveTo(under(event));
      else if (event.pointerType === "mouse" && !series.timer) series.glance(under(event));
    });
    this.svg.addEventListener("pointerleave", () => series.glance());
    onKeys(this.svg, (key) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -this.count, End: this.count }[key];
      if (by) series.pause();
      if (by) series.moveTo(series.fixed + by);
      return by;
    });
  }

  draw() {
    const { width, thin, marks, guide, lines } = this;
    if (!width || !lines.length) return;
    this.count = lines[0].values.length;
    this.span = Math.max(1, this.count - 1 + (marks.length ? 1 : 0));
    const height = thin ? 84 : Math.round(Math.max(200, Math.min(300, width * 0.4)));
    Object.assign(this, { left: 52, right: width - 16, top: thin ? 10 : 20, bottom: height - 22 });
    this.x = (update) => this.left + (update / this.span) * (this.right - this.left);
    const ticks = this.scaleOver([...marks, ...(guide ? [guide] : [])].map(({ value }) => value));
    this.dots = lines.map(({ look }) => svg("path", { class: `dot c${look % COLOURS}`, d: DOTS[Math.max(0, look) % DOTS.length] }));
    set(this.svg, { width, height });
    this.svg.replaceChildren(
      ...ticks.flatMap((tick) => [svg("path", { class: tick ? "grid" : "grid zero", d: `M${this.left},${this.y(tick)}H${this.right}` }),
        svg("text", { class: "tick y", x: this.left - 8, y: this.y(tick) + 4, "text-anchor": "end" }, plain(tick))]),
      ...this.updateTicks().map((n) => svg("text", { class: "tick x", x: this.x(n - 1), y: height - 5, "text-anchor": "middle" }, n)),
      ...lines.map((line) => svg("path", { class: `line c${line.look % COLOURS}`, d: this.path(line.values), "stroke-dasharray": dash(line.look) })),
      this.rule, ...this.extras(), ...this.dots);
    this.follow();
  }

  /** The vertical scale and its ticks: from zero, or by powers of ten. */
  scaleOver(others) {
    const { lines, log, top, bottom, thin } = this;
    let [low, high] = log ? [Infinity, -Infinity] : [0, 0];
    for (const values of [...lines.map((line) => line.values), others]) {
      for (const value of values) {
        if (!Number.isFinite(value) || (log && value <= 0)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (!(low <= high)) [low, high] = [1, 1];
    const measure = log ? Math.log10 : Number;
    const ticks = log ? logTicks(low, high) : linearTicks(low, high === low ? low + 1 : high, thin ? 2 : 6);
    const [from, to] = [Math.min(low, ticks[0]), Math.max(high, ticks.at(-1))].map(measure);
    this.y = (value) => bottom - ((measure(value) - from) / (to - from)) * (bottom - top);
    return ticks;
  }

  updateTicks() {
    const step = Math.max(1, nice((this.count - 1) / Math.max(1, Math.floor((this.right - this.left) / 90))));
    const ticks = [1];
    for (let n = step > 1 ? step : 2; n <= this.count; n += step) if (n - 1 >= step / 2) ticks.push(n);
    return ticks;
  }

  /** A line through the numbers; where one cannot be drawn there is a gap, and a number alone is a dot. */
  path(values) {
    let drawing = false;
    return Array.from(values, (value, update) => {
      const y = this.y(value);
      const command = Number.isFinite(y) ? `${drawing ? "L" : "M"}${this.x(update).toFixed(1)},${y.toFixed(2)}${drawing ? "" : "h0"}` : "";
      drawing = Boolean(command);
      return command;
    }).join("");
  }

  /** The yardstick and the marks behind the last update, each with its name and value, none over another. */
  extras() {
    const { guide, top, bottom, left, right } = this;
    const shown = [];
    const labels = [];
    const label = (item) => labels.push({ text: `${item.name} ${format(item.value, 4)}`, y: this.y(item.value) - 7 });
    if (guide) {
      shown.push(svg("path", { class: "guide", d: `M${left},${this.y(guide.value)}H${right}` }));
      label(guide);
    }
    for (const mark of this.marks.filter(({ value }) => Number.isFinite(this.y(value)))) {
      shown.push(svg("path", { class: "mark", d: DOTS[3], transform: `translate(${this.x(this.count)},${this.y(mark.value)})` }));
      label(mark);
    }
    labels.sort((a, b) => a.y - b.y);
    labels.forEach((item, i) => { item.y = Math.max(item.y, i ? labels[i - 1].y + 16 : top - 8); });
    labels.reverse().forEach((item, i) => { item.y = Math.min(item.y, i ? labels[i - 1].y - 16 : bottom - 8); });
    return [...shown, ...labels.map(({ text, y }) => svg("text", { class: "label", x: right - 10, y, "text-anchor": "end" }, text))];
  }

  follow() {
    if (!this.dots) return;
    const at = Math.min(this.series.at, this.count - 1);
    const x = this.x(at);
    this.rule.setAttribute("d", `M${x},${this.top - 6}V${this.bottom}`);
    this.lines.forEach(({ values }, i) => {
      const y = this.y(values[at]);
      set(this.dots[i], Number.isFinite(y) ? { transform: `translate(${x},${y})`, visibility: "visible" } : { visibility: "hidden" });
    });
    const told = this.lines.map(({ name, values }) => `${name}: ${fill(this.series.context.words["series.summary"], {
      n: at + 1, total: this.count, first: this.text(values[0]), value: this.text(values[at]), last: this.text(values.at(-1)) })}`);
    this.svg.ariaLabel = `${this.lines[0].name === this.name ? "" : `${this.name}. `}${told.join(" ")}`;
  }
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, attributes);
  element.append(...children);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

/** Call `draw` with the width of `box` now and whenever it changes. */
function onWidth(box, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) draw(width = box.clientWidth);
  }).observe(box);
}

/** Keys that `press` takes are not the page's. */
function onKeys(element, press) {
  element.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !press(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** Buttons of which one is pressed. */
function choices(name, labels, chosen, choose) {
  const buttons = labels.map((label, i) => h("button", { type: "button", class: "chip", "aria-pressed": String(i === chosen),
    onclick: () => {
      buttons.forEach((button, j) => button.setAttribute("aria-pressed", String(i === j)));
      choose(i);
    } }, label));
  return h("div", { class: "pick", role: "group", "aria-label": name }, h("span", {}, name), buttons);
}

function dash(look) {
  return look < 0 ? "" : DASHES[look % DASHES.length];
}

/** How a curve looks, for the legend. */
function sample(look) {
  return svg("svg", { class: "sample", width: 36, height: 14, "aria-hidden": true },
    svg("path", { class: `line c${look % COLOURS}`, d: "M1,7H35", "stroke-dasharray": dash(look) }),
    svg("path", { class: `dot c${look % COLOURS}`, d: DOTS[look % DOTS.length], transform: "translate(18,7)" }));
}

/** The next of 1, 2, 5, 10, … */
function nice(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 2, 5, 10].find((factor) => factor * power >= size * 0.999) * power;
}

function linearTicks(low, high, count) {
  const step = nice((high - low) / count);
  const [from, to] = [Math.ceil(low / step - 0.3), Math.floor(high / step + 0.3)];
  return Array.from({ length: to - from + 1 }, (_, i) => Number(((from + i) * step).toPrecision(12)));
}

function logTicks(low, high) {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.ceil((to - from) / 6);
  const factors = to - from < 3 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let e = from; e <= to; e += every) for (const factor of factors) ticks.push(Number(`${factor}e${e}`));
  const inside = ticks.filter((tick) => tick >= low && tick <= high);
  return inside.length > 1 ? inside : [10 ** from, 10 ** Math.max(to, from + 1)];
}

function plain(value) {
  return String(value).replaceAll("-", "−");
}

/** About how wide a label is in the pictures: wide characters count twice. */
function wide(text) {
  return Array.from(text, (c) => (c > "\u2e80" ? 12 : 6.8)).reduce((a, b) => a + b, 0);
}
