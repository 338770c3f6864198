// Curves over the updates, on a linear or a logarithmic scale. Moving over them moves the slider.

import { dress, fill, h, onKeys, onWidth, svg } from "dom";
import { format } from "format";

// A line has its colour, its dashes and the shape of its points: no two of the first 120 share all three.
const COLOURS = 8;
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "4 2"];
const POINTS = ["M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", "M-3.5,-3.5h7v7h-7z", "M0,-5L5,3.5H-5z",
  "M0,-5.5L5,0L0,5.5L-5,0z", "M0,5L5,-3.5H-5z", "M-1.5,-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z"];
const ROOMY = 640; // from this width on, names stand beside the marks

/** @typedef {{ values: Float64Array, name: string, look: number }} Line */
/** A value with its name, beside the lines. @typedef {{ value: number, name: string }} Mark */
/**
 * What is drawn. `guide`: a yardstick; `marks`: what came after the last update; `thin`: for a narrow strip.
 * @typedef {{ lines: Line[], marks: Mark[], guide: Mark | undefined, log: boolean | undefined, thin: boolean, width: number }} Options
 */

/** Lines of one array. */
export class Curves {
  /**
   * @param {import("charts").Series} series
   * @param {import("slices").Slices} slices
   * @param {Partial<Options>} options
   */
  constructor(series, slices, options) {
    this.series = series;
    this.slices = slices;
    /** @type {Options} */
    this.options = { lines: [], marks: [], guide: undefined, log: false, thin: false, width: 0, ...options };
    this.left = this.right = this.top = this.bottom = 0; // of the picture without its margins
    /** @type {(update: number) => number} */
    this.x = Number; // the place of an update
    /** @type {(value: number) => number} */
    this.y = Number; // the place of a value
    /** @type {SVGPathElement[]} */
    this.points = [];
    this.svg = svg("svg", { role: "img", tabindex: 0 });
    this.box = h("div", { class: "curves" }, this.svg);
    this.rule = svg("path", { class: "rule" });
    onWidth(this.box, (width) => this.draw({ width }));
    this.wire();
  }

  get lines() {
    return this.options.lines;
  }

  wire() {
    const { series, slices } = this;
    const under = (/** @type {PointerEvent} */ event) => {
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      return Math.max(0, Math.min(slices.count - 1, Math.round((x - this.left) / (this.x(1) - this.left))));
    };
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.svg.setPointerCapture(event.pointerId);
      series.moveTo(under(event));
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) series.moveTo(under(event));
      else if (event.pointerType === "mouse" && !series.timer) series.glance(under(event));
    });
    this.svg.addEventListener("pointerleave", () => series.glance());
    onKeys(this.svg, (key) => {
      const all = slices.count;
      /** @type {Record<string, number>} */
      const moves = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -all, End: all };
      const by = moves[key];
      if (by) series.moveTo(series.fixed + by);
      return by;
    });
  }

  /**
   * Draw all that does not move with the slider.
   * @param {Partial<Options>} changed
   */
  draw(changed) {
    Object.assign(this.options, changed);
    const { width, thin, marks, guide, lines } = this.options;
    if (!width) {
      this.follow();
      return;
    }
    const height = thin ? 84 : Math.round(Math.max(200, Math.min(300, width * 0.4)));
    const beside = !thin && width >= ROOMY; // the same for every array of a step, so that their updates align
    this.left = 52;
    this.right = width - (beside ? 170 : 16);
    this.top = thin ? 10 : 20;
    this.bottom = height - 22;
    const span = Math.max(1, this.slices.count - (thin ? 1 : 0)); // marks stand where the next update would
    this.x = (update) => this.left + (update / span) * (this.right - this.left);
    const ticks = this.scale([...marks, ...(guide ? [guide] : [])]);
    const axis = (/** @type {"x" | "y"} */ name, /** @type {number} */ x, /** @type {number} */ y, /** @type {string | number} */ text) => (
      svg("text", { class: `tick ${name}`, x, y, "text-anchor": name === "x" ? "middle" : "end" }, text));
    this.points = lines.map(({ look }) => svg("path", drawn("point", look)));
    dress(this.svg, { width, height });
    this.svg.replaceChildren(
      ...ticks.flatMap((tick) => [
        svg("path", { class: tick ? "grid" : "grid zero", d: `M${this.left},${this.y(tick)}H${this.right}` }),
        axis("y", this.left - 8, this.y(tick) + 4, short(tick))]),
      ...this.counts().map((n) => axis("x", this.x(n - 1), height - 5, n)),
      ...lines.map(({ values, look }) => svg("path", drawn("line", look, { d: this.path(values) }))),
      this.rule, ...this.extras(beside), ...this.points);
    this.follow();
  }

  /**
   * Set the vertical scale, from zero or by powers of ten; returns its ticks.
   * @param {Mark[]} others
   */
  scale(others) {
    const { top, bottom } = this;
    const { log, thin } = this.options;
    let [low, high] = log ? [Infinity, -Infinity] : [0, 0];
    for (const values of [...this.lines.map((line) => line.values), others.map(({ value }) => value)]) {
      for (const value of values) {
        if (!Number.isFinite(value) || (log && value <= 0)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (!(low < high)) [low, high] = Number.isFinite(low) && low ? [low / 2, low * 2] : [0.1, 1];
    const ticks = log ? powers(low, high) : rounds(low, high, thin ? 2 : 6);
    const measure = log ? Math.log10 : Number;
    const [from, to] = [measure(Math.min(low, ticks[0])), measure(Math.max(high, ticks[ticks.length - 1]))];
    this.y = (value) => bottom - ((measure(value) - from) / (to - from)) * (bottom - top);
    return ticks;
  }

  /** The updates that have a tick: the first, and round numbers. */
  counts() {
    const { count } = this.slices;
    const apart = nice(Math.max(1, count / Math.max(2, (this.right - this.left) / 60)));
    const round = Array.from({ length: Math.floor(count / apart) }, (_, i) => (i + 1) * apart);
    return [1, ...round.filter((n) => n > 1 + apart / 2)];
  }

  /**
   * A line through the numbers; where one cannot be drawn there is a gap.
   * @param {Float64Array} values
   */
  path(values) {
    let drawing = false;
    return Array.from(values, (value, update) => {
      const y = this.y(value);
      const was = drawing;
      drawing = Number.isFinite(y);
      return drawing ? `${was ? "L" : "M"}${this.x(update).toFixed(1)},${y.toFixed(2)}${was ? "" : "h0"}` : "";
    }).join("");
  }

  /**
   * The yardstick, and the marks behind the last update, with their names and values; no name lies on another.
   * @param {boolean} beside
   */
  extras(beside) {
    const { left, right, top, bottom } = this;
    const { guide } = this.options;
    const end = this.x(this.slices.count);
    const marks = this.options.marks.filter(({ value }) => Number.isFinite(this.y(value)));
    const names = [...(guide ? [guide] : []), ...marks].map(({ name, value }) => (
      { text: `${name} ${format(value, 4)}`, y: this.y(value) + (beside ? 4 : -7) })).sort((a, b) => a.y - b.y);
    names.forEach((name, i) => { name.y = Math.max(name.y, i ? names[i - 1].y + 16 : top - 8); });
    const lowest = bottom + (beside ? 4 : -8);
    names.reverse().forEach((name, i) => { name.y = Math.min(name.y, i ? names[i - 1].y - 16 : lowest); });
    const place = beside ? { x: end + 12 } : { x: end - 10, "text-anchor": "end" };
    const at = (/** @type {number} */ value) => `translate(${end},${this.y(value)})`;
    return [
      ...(guide ? [svg("path", { class: "guide", d: `M${left},${this.y(guide.value)}H${right}` })] : []),
      ...marks.map(({ value }) => svg("path", { class: "mark", d: POINTS[3], transform: at(value) })),
      ...names.map(({ text, y }) => svg("text", { class: "name", ...place, y }, text))];
  }

  follow() {
    const { slices, lines, series } = this;
    const at = Math.min(series.at, slices.count - 1);
    this.svg.setAttribute("aria-label", lines.map(({ values, name }) => {
      const [first, value, last] = [values[0], values[at], values[values.length - 1]].map((number) => slices.text(number));
      const told = { n: at + 1, total: slices.count, first, value, last };
      return `${name}${series.context.words.colon}${fill(series.context.words["series.summary"], told)}`;
    }).join(" "));
    if (!this.points.length) return;
    const x = this.x(at);
    this.rule.setAttribute("d", `M${x},${this.top - 6}V${this.bottom}`);
    lines.forEach(({ values }, i) => {
      const y = this.y(values[at]);
      const seen = Number.isFinite(y);
      dress(this.points[i], { visibility: seen ? "visible" : "hidden", transform: seen && `translate(${x},${y})` });
    });
  }
}

/**
 * How a line looks, for a legend.
 * @param {number} look
 */
export function sample(look) {
  return svg("svg", { class: "sample", width: 36, height: 14, "aria-hidden": "true" },
    svg("path", drawn("line", look, { d: "M1,7H35" })),
    svg("path", drawn("point", look, { transform: "translate(18,7)" })));
}

/**
 * Attributes of a line or point; a line alone (−1) has the accent and no dashes.
 * @param {"line" | "point"} kind
 * @param {number} look
 * @param {Attributes} attributes
 * @returns {Attributes}
 */
function drawn(kind, look, attributes = {}) {
  const own = kind === "line" ? { "stroke-dasharray": look >= 0 && DASHES[look % DASHES.length] }
    : { d: POINTS[Math.max(0, look) % POINTS.length] };
  return { class: `${kind} c${look % COLOURS}`, ...own, ...attributes };
}

/**
 * A round number in few characters.
 * @param {number} value
 */
function short(value) {
  const few = value && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e6) ? value.toExponential() : String(value);
  return few.replace("+", "").replaceAll("-", "−");
}

/**
 * The next of 1, 2, 5, 10, 20, …
 * @param {number} size
 */
function nice(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return ([1, 2, 5].find((factor) => factor * power >= size * 0.999) ?? 10) * power;
}

/**
 * About so many round numbers from the lowest to the highest.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 */
function rounds(low, high, count) {
  const apart = nice((high - low) / count);
  const [from, to] = [Math.ceil(low / apart - 0.3), Math.floor(high / apart + 0.3)];
  return Array.from({ length: to - from + 1 }, (_, i) => Number(((from + i) * apart).toPrecision(12)));
}

/**
 * @param {number} low
 * @param {number} high
 */
function powers(low, high) {
  const [from, to] = [Math.ceil(Math.log10(low) - 0.3), Math.floor(Math.log10(high) + 0.3)];
  if (to - from < 1) return [low, high].map((value) => Number(value.toPrecision(3)));
  const every = Math.ceil((to - from) / 6);
  return Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, i) => Number(`1e${from + i * every}`));
}
