// Arrays with a slice for every update: one slider for all of a step, and curves of those that are numbers or rows of them.
// What has more axes the stage draws, slice by slice.

import { fill, first, h } from "dom";
import { oncePerFrame } from "later";
import { Lines } from "lines";
import { Slices } from "slices";

const SHARED = "update";
const SETTLED = 400; // ms without a change

/** @typedef {{ log?: boolean }} Setting */
/** @type {Map<string, Setting>} */
const kept = new Map(); // array → how its picture was last set

/**
 * As for tables, and: the index of the opened number, and what to do when the slider came to rest.
 * @typedef {import("table").TableContext & { opened: (array: string) => number[] | null, settled: (axis: string, i: number) => void }} SeriesContext
 */

/** @typedef {{ follow: () => void }} Picture */

/**
 * One slider above the parts of `section`, a picture in each part whose array runs over the updates; null when none does.
 * @param {HTMLElement} section
 * @param {string[]} names
 * @param {SeriesContext} context
 */
export function drawSeries(section, names, context) {
  const mine = names.filter((name) => context.store.array(name).axes.includes(SHARED));
  return mine.length ? new Series(section, mine, context) : null;
}

export class Series {
  /**
   * @param {HTMLElement} section
   * @param {string[]} names
   * @param {SeriesContext} context
   */
  constructor(section, names, context) {
    const { store, words } = context;
    this.section = section;
    this.context = context;
    this.axis = SHARED;
    /** @type {Picture[]} */
    this.pictures = [];
    this.total = Math.max(...names.map((name) => store.shape(name)[store.array(name).axes.indexOf(SHARED)]));
    this.at = this.fixed = 0; // the update that is shown, and the one that is chosen
    this.timer = this.rest = 0;
    this.drawing = false;
    this.draw = oncePerFrame(() => {
      this.drawing = true;
      context.choose(SHARED, this.at);
      this.drawing = false;
    });
    this.input = h("input", { type: "range", min: 1, max: this.total, "aria-label": words["axis.update"],
      oninput: () => this.moveTo(Number(this.input.value) - 1) });
    this.output = h("output");
    this.button = h("button", { type: "button", onclick: () => (this.timer ? this.pause() : this.play()) });
    this.status = h("span", { class: "quiet", role: "status" });
    this.pause();
    const bar = h("div", { class: "updates" }, this.button, this.output, this.input, this.status);
    first(section, ".part").before(bar);
    /** @type {Element[]} */
    this.elements = [bar];
    for (const name of names) if (store.array(name).axes[0] === SHARED && store.shape(name).length <= 2) this.addPicture(name);
    this.follow();
  }

  /** @param {string} name */
  async addPicture(name) {
    const { store } = this.context;
    const box = h("div", { class: "picture" });
    this.elements.push(box);
    first(this.section, `.part[data-array="${CSS.escape(name)}"] .equation`).before(box);
    try {
      await store.ready(name);
    } catch {
      box.remove(); // the table below says what is missing
    }
    if (!box.isConnected) return;
    const setting = kept.get(name) ?? {};
    kept.set(name, setting);
    const slices = new Slices(name, store);
    const picture = new Lines(slices, this, setting, box);
    this.pictures.push(picture);
    picture.follow();
  }

  /**
   * Choose an update to stay with.
   * @param {number} update
   */
  moveTo(update, playing = false) {
    if (!playing) this.pause();
    this.fixed = Math.max(0, Math.min(this.total - 1, update));
    this.glance();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      const focused = document.activeElement?.closest(".picture svg");
      this.status.textContent = focused?.getAttribute("aria-label") ?? "";
      this.context.settled(SHARED, this.fixed);
    }, SETTLED);
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
    this.timer = 0;
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
    this.input.value = String(this.at + 1);
    this.input.setAttribute("aria-valuetext", text);
    this.output.value = text;
    for (const picture of this.pictures) picture.follow();
  }
}
