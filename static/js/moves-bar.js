// The moves of a picture: played, one by one, or dragged back and forth.

import { h } from "dom";
import { oncePerFrame } from "later";

/** @typedef {import("scene").Move} Move */

const HOLD = 350; // ms after each move
const STILL = 1100; // ms for each still, where motion is not wanted
const FACTORS = /** @type {Record<string, number>} */ ({ slow: 2, normal: 1, fast: 0.5, still: 1 });

export class MovesBar {
  /**
   * @param {{ words: Words, pace: import("motion").Pace }} page
   * @param {(progress: Map<string, number>, say: string) => void} show
   */
  constructor({ words, pace }, show) {
    this.words = words;
    this.pace = pace;
    this.show = show;
    /** @type {Move[]} */
    this.moves = [];
    this.time = 0;
    this.frame = 0;
    this.playing = false;
    this.until = 0;
    this.button = h("button", { type: "button", class: "watch-moves", "aria-label": words.watch, "aria-pressed": "false", onclick: () => this.toggle() },
      h("span", { "aria-hidden": "true" }, "▶"), " ", h("span", { class: "word" }, words.watch));
    this.range = h("input", { type: "range", min: 0, max: 1000, value: 1000, step: 1, "aria-label": words.moves,
      oninput: oncePerFrame(() => { this.stop(); this.set(Number(this.range.value) / 1000 * this.length); }) });
    this.element = h("div", { class: "moves-bar" },
      h("button", { type: "button", "aria-label": words.move_back, onclick: () => this.one(-1) }, "‹"), this.button,
      h("button", { type: "button", "aria-label": words.move_on, onclick: () => this.one(1) }, "›"), this.range);
  }

  /**
   * Into the page's place for it, else below the picture.
   * @param {HTMLElement} host
   */
  place(host) {
    (document.querySelector("[data-moves]") ?? host).append(this.element);
  }

  get length() {
    return this.moves.reduce((sum, { ms }) => sum + ms + HOLD, 0);
  }

  /** @param {EventTarget | null} target */
  owns(target) {
    return target instanceof Node && this.element.contains(target);
  }

  /** Another picture. */
  reset() {
    this.stop();
    this.load([]);
  }

  /** @param {Move[]} moves */
  load(moves) {
    const same = moves.map(({ name }) => name).join() === this.moves.map(({ name }) => name).join();
    this.moves = moves;
    this.element.classList.toggle("none", !moves.length);
    if (!same || !this.playing) this.rest();
  }

  /** At the end, where a step is arrived at. */
  rest() {
    this.time = this.length;
    this.range.value = "1000";
  }

  /** @param {number} time ms */
  set(time) {
    this.time = Math.max(0, Math.min(this.length, time));
    this.range.value = String(Math.round(this.time / (this.length || 1) * 1000));
    let start = 0;
    let say = "";
    /** @type {Map<string, number>} */
    const progress = new Map();
    for (const { name, ms, say: half } of this.moves) {
      const part = Math.max(0, Math.min(1, (this.time - start) / ms));
      if (this.time > start || !say) say = half;
      progress.set(name, part);
      start += ms + HOLD;
    }
    this.range.setAttribute("aria-valuetext", say);
    this.show(progress, say);
  }

  toggle() {
    if (this.playing) { this.stop(); return; }
    if (this.time >= this.length) this.time = 0;
    this.play(this.length);
  }

  /**
   * Go on or back by one move.
   * @param {number} direction
   */
  one(direction) {
    this.stop();
    let start = 0;
    const ends = [0, ...this.moves.map(({ ms }) => { start += ms + HOLD; return start; })];
    if (direction < 0) { this.set([...ends].reverse().find((end) => end < this.time - 1) ?? 0); return; }
    if (this.time >= this.length) this.time = 0;
    this.play(ends.find((end) => end > this.time + 1) ?? this.length);
  }

  /** @param {number} until ms */
  play(until) {
    if (!this.moves.length) return;
    this.playing = true;
    this.until = until;
    this.press();
    if (!this.pace.moves) { this.still(); return; }
    let last = performance.now();
    const tick = (/** @type {number} */ now) => {
      if (!this.playing) return;
      this.set(Math.min(until, this.time + (now - last) / (FACTORS[this.pace.name] ?? 1)));
      last = now;
      if (this.time >= until) this.stop();
      else this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  /** The ends of the moves, one after the other, as still pictures. */
  still() {
    let start = 0;
    const next = this.moves.map(({ ms }) => { start += ms + HOLD; return start; }).find((end) => end > this.time + 1) ?? this.length;
    this.set(next);
    if (next >= this.until) { this.stop(); return; }
    this.frame = setTimeout(() => { if (this.playing) this.still(); }, STILL);
  }

  stop() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.frame);
    clearTimeout(this.frame);
    this.press();
  }

  press() {
    this.button.setAttribute("aria-pressed", String(this.playing));
    this.button.firstChild?.replaceWith(h("span", { "aria-hidden": "true" }, this.playing ? "❚❚" : "▶"));
  }
}
