// Curves over the updates, on a linear or a logarithmic scale. Moving over them moves the slider.

import { dress, fill, h, onKeys, onWidth, svg } from "dom";
import { format } from "format";

// A line has its colour, its dashes and the shape of its points: no two of the first 120 share all three.
const COLOURS = 8;
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "4 2"];
const POINTS = ["M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", "M-3.5,-3.5h7v7h-7z", "M0,-5L5,3.5H-5z", "M0,-5.5L5,0L0,5.5L-5,0z",
  "M0,5L5,-3.5H-5z", "M-1.5,-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z"];
const ROOMY = 640; // from this width on, names stand beside the marks

/** Lines of one array. options: lines [{values, name, look}], marks and guide {value, name}, log, thin. */
export class Curves {
  constructor(series, slices, options) {
    Object.assign(this, { series, slices, marks: [] }, options);
    this.svg = svg("svg", { role: "img", tabindex: 0 });
    this.box = h("div", { class: "curves" }, this.svg);
    this.rule = svg("path", { class: "rule" });
    onWidth(this.box, (width) => this.draw({ width }));
    this.wire();
  }

  wire() {
    const { series, slices } = this;
    const under = (event) => {
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      return Math.max(0, Math.min(slices.count - 1, Math.round((x - this.left) / (this.x(1) - this.left))));
    };
    const on = (name, run) => this.svg.addEventListener(name, run);
    on("pointerdown", (event) => {
      if (event.button) return;
      this.svg.setPointerCapture(event.pointerId);
      series.moveTo(under(event));
    });
    on("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) series.moveTo(under(event));
      else if (event.pointerType === "mouse" && !series.timer) series.glance(under(event));
    });
    on("pointerleave", () => series.glance());
    onKeys(this.svg, (key) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -slices.count, End: slices.count }[key];
      if (by) series.moveTo(series.fixed + by);
      return by;
    });
  }

  /** Draw all that does not move with the slider. */
  draw(options) {
    const { width, thin, marks, guide, lines } = Object.assign(this, options);
    if (!width) return;
    const height = thin ? 84 : Math.round(Math.max(200, Math.min(300, width * 0.4)));
    const beside = !thin && width >= ROOMY; // the same for all arrays of a step: their updates stand one above another
    Object.assign(this, { left: 52, right: width - (beside ? 170 : 16), top: thin ? 10 : 20, bottom: height - 22 });
    const span = Math.max(1, this.slices.count - (thin ? 1 : 0)); // marks stand where the next update would
    this.x = (update) => this.left + (update / span) * (this.right - this.left);
    const ticks = this.scale([...marks, ...(guide ? [guide] : [])]);
    this.points = lines.map(({ look }) => svg("path", drawn("point", look, { d: POINTS[Math.max(0, look) % POINTS.length] })));
    dress(this.svg, { width, height });
    this.svg.replaceChildren(
      ...ticks.flatMap((tick) => [
        svg("path", { class: tick ? "grid" : "grid zero", d: `M${this.left},${this.y(tick)}H${this.right}` }),
        svg("text", { class: "tick y", x: this.left - 8, y: this.y(tick) + 4, "text-anchor": "end" }, String(tick).replaceAll("-", "−"))]),
      ...this.counts().map((n) => svg("text", { class: "tick x", x: this.x(n - 1), y: height - 5, "text-anchor": "middle" }, n)),
      ...lines.map(({ values, look }) => svg("path", drawn("line", look, { d: this.path(values) }))),
      this.rule, ...this.extras(beside), ...this.points);
    this.follow();
  }

  /** Set the vertical scale, from zero or by powers of ten; returns its ticks. */
  scale(others) {
    const { log, top, bottom } = this;
    let [low, high] = log ? [Infinity, -Infinity] : [0, 0];
    for (const values of [...this.lines.map((line) => line.values), others.map(({ value }) => value)]) {
      for (const value of values) {
        if (!Number.isFinite(value) || (log && value <= 0)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (!(low < high)) [low, high] = Number.isFinite(low) && low ? [low / 2, low * 2] : [0.1, 1];
    const ticks = log ? powers(low, high) : steps(low, high, this.thin ? 2 : 6);
    const measure = log ? Math.log10 : Number;
    const [from, to] = [measure(Math.min(low, ticks[0])), measure(Math.max(high, ticks.at(-1)))];
    this.y = (value) => bottom - ((measure(value) - from) / (to - from)) * (bottom - top);
    return ticks;
  }

  /** The updates that have a tick: the first, and round numbers. */
  counts() {
    const { count } = this.slices;
    const step = nice(Math.max(1, count / Math.max(2, (this.right - this.left) / 60)));
    return [1, ...Array.from({ length: Math.floor(count / step) }, (_, i) => (i + 1) * step).filter((n) => n > 1 + step / 2)];
  }

  /** A line through the numbers; where one cannot be drawn there is a gap. */
  path(values) {
    let drawing = false;
    return Array.from(values, (value, update) => {
      const y = this.y(value);
      const was = drawing;
      drawing = Number.isFinite(y);
      return drawing ? `${was ? "L" : "M"}${this.x(update).toFixed(1)},${y.toFixed(2)}${was ? "" : "h0"}` : "";
    }).join("");
  }

  /** The yardstick, and the marks behind the last update, with their names and values; no name lies on another. */
  extras(beside) {
    const { guide, left, right, top, bottom } = this;
    const end = this.x(this.slices.count);
    const marks = this.marks.filter(({ value }) => Number.isFinite(this.y(value)));
    const names = [...(guide ? [guide] : []), ...marks].map(({ name, value }) => (
      { text: `${name} ${format(value, 4)}`, y: this.y(value) + (beside ? 4 : -7) })).sort((a, b) => a.y - b.y);
    names.forEach((name, i) => { name.y = Math.max(name.y, i ? names[i - 1].y + 16 : top - 8); });
    names.reverse().forEach((name, i) => { name.y = Math.min(name.y, i ? names[i - 1].y - 16 : bottom - (beside ? -4 : 8)); });
    return [
      ...(guide ? [svg("path", { class: "guide", d: `M${left},${this.y(guide.value)}H${right}` })] : []),
      ...marks.map(({ value }) => svg("path", { class: "mark", d: POINTS[3], transform: `translate(${end},${this.y(value)})` })),
      ...names.map(({ text, y }) => svg("text", { class: "name", x: end + (beside ? 12 : -10), y, "text-anchor": beside ? "start" : "end" }, text))];
  }

  follow() {
    if (!this.points) return;
    const { slices, lines } = this;
    const { at, total, context } = this.series;
    const x = this.x(Math.min(at, slices.count - 1));
    this.rule.setAttribute("d", `M${x},${this.top - 6}V${this.bottom}`);
    const told = lines.map(({ values, name }, i) => {
      const value = values[Math.min(at, slices.count - 1)];
      const y = this.y(value);
      dress(this.points[i], Number.isFinite(y) ? { transform: `translate(${x},${y})`, visibility: "visible" } : { visibility: "hidden" });
      const [first, now, last] = [values[0], value, values.at(-1)].map((number) => slices.text(number));
      return `${name}: ${fill(context.words["series.summary"], { n: at + 1, total, first, value: now, last })}`;
    });
    this.svg.setAttribute("aria-label", told.join(" "));
  }
}

/** How a line looks, for a legend. */
export function sample(look) {
  return svg("svg", { class: "sample", width: 36, height: 14, "aria-hidden": "true" }, svg("path", drawn("line", look, { d: "M1,7H35" })),
    svg("path", drawn("point", look, { d: POINTS[look % POINTS.length], transform: "translate(18,7)" })));
}

/** Attributes of a line or point; a line alone (−1) has the accent and no dashes. */
function drawn(kind, look, attributes) {
  const dashes = kind === "line" && look >= 0 && DASHES[look % DASHES.length];
  return { ...attributes, class: `${kind} c${look % COLOURS}`, "stroke-dasharray": dashes };
}

/** The next of 1, 2, 5, 10, 20, … */
function nice(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 2, 5, 10].find((factor) => factor * power >= size * 0.999) * power;
}

function steps(low, high, count) {
  const step = nice((high - low) / count);
  const from = Math.ceil(low / step - 0.3);
  return Array.from({ length: Math.floor(high / step + 0.3) - from + 1 }, (_, i) => Number(((from + i) * step).toPrecision(12)));
}

function powers(low, high) {
  const [from, to] = [Math.ceil(Math.log10(low) - 0.3), Math.floor(Math.log10(high) + 0.3)];
  if (to - from < 1) return [low, high].map((value) => Number(value.toPrecision(3)));
  const every = Math.ceil((to - from) / 6);
  return Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, i) => Number(`1e${from + i * every}`));
}
