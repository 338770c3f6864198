// What a whole operation does, move by move, played on the tables.

import { all, h } from "dom";
import { fly } from "motion";
import { movesOf } from "moves";

/**
 * @typedef {object} WatchContext
 * @property {import("store").Store} store
 * @property {Words} words
 * @property {string} array
 * @property {import("motion").Pace} pace
 * @property {(axis: string) => number | undefined} choice
 * @property {(place: Place) => HTMLElement[]} cells
 * @property {(reads: Place[] | null) => void} light
 * @property {(names: string[]) => Promise<void>} prepare unfolds the tables of these arrays
 * @property {(watch: Watch) => void} begin stops any other
 */

/** Buttons that show one operation. */
export class Watch {
  /** @param {WatchContext} context */
  constructor(context) {
    this.context = context;
    /** @type {import("moves").Move[] | null} */
    this.moves = null;
    this.at = -1;
    this.stopped = 0; // how often
    this.playing = false;
    this.timer = 0;
    const { words } = context;
    this.button = h("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => this.toggle() }, `▶ ${words.watch}`);
    this.element = h("div", { class: "pick watch" }, this.button,
      h("button", { type: "button", class: "chip", onclick: () => this.single() }, words.watch_next), context.pace.select());
    /** @type {Set<Element>} */
    this.copies = new Set();
    /** @type {Set<HTMLElement>} */
    this.changed = new Set();
  }

  /** Load what the moves need; false when it was stopped meanwhile. */
  async ready() {
    if (this.moves) return true;
    const { stopped } = this;
    const { store, array } = this.context;
    const operation = store.operation(array);
    if (!operation) return false;
    this.context.begin(this);
    await this.context.prepare([array, ...Object.values(operation.operands)]);
    if (stopped !== this.stopped) return false;
    this.moves = movesOf(operation, this.context);
    return true;
  }

  async toggle() {
    if (this.playing) { this.pause(); return; }
    this.playing = true;
    this.show();
    if (!await this.ready()) return;
    if (this.isAtEnd()) this.clear();
    const tick = () => {
      if (!this.playing) return;
      if (!this.next()) { this.pause(); return; }
      this.timer = setTimeout(tick, this.context.pace.term);
    };
    tick();
  }

  async single() {
    this.pause();
    if (!await this.ready()) return;
    if (!this.next()) { this.clear(); this.next(); }
  }

  pause() {
    clearTimeout(this.timer);
    this.playing = false;
    this.show();
  }

  stop() {
    this.stopped += 1;
    this.pause();
    this.clear();
    this.moves = null;
  }

  show() {
    const { words } = this.context;
    this.button.textContent = this.playing ? `❚❚ ${words.pause}` : `▶ ${words.watch}`;
    this.button.setAttribute("aria-pressed", String(this.playing));
  }

  /** Everything as it was: nothing that moved or was marked stays. */
  clear() {
    this.at = -1;
    for (const copy of this.copies) copy.remove();
    this.copies.clear();
    for (const cell of this.changed) {
      cell.classList.remove("closed", "bar");
      cell.style.removeProperty("--share");
    }
    this.changed.clear();
    this.road(false);
    this.context.light(null);
  }

  isAtEnd() {
    return this.at >= (this.moves?.length ?? 0) - 1;
  }

  /** One move further; false when all have been shown. */
  next() {
    if (!this.moves || this.isAtEnd()) return false;
    this.at += 1;
    const { reads = [], slides = [], closes = [], shares = [], road = false } = this.moves[this.at];
    this.context.light([...reads, ...slides.map(([from]) => from)]);
    this.road(road);
    if (this.context.pace.moves) for (const [from, to] of slides) this.slide(from, to);
    for (const place of closes) this.dress(place, "closed");
    for (const { place, share } of shares) this.dress(place, "bar", share);
    return true;
  }

  /**
   * @param {Place} from
   * @param {Place} to
   */
  slide(from, to) {
    const [start] = this.context.cells(from);
    const end = this.context.cells(to).at(-1);
    if (start && end) fly(start, end, this.context.pace.flight, this.copies);
  }

  /**
   * @param {Place} place
   * @param {string} name
   * @param {number} [share]
   */
  dress(place, name, share) {
    for (const cell of this.context.cells(place)) {
      if (share !== undefined) cell.style.setProperty("--share", String(share));
      cell.classList.add(name);
      this.changed.add(cell);
    }
  }

  /** @param {boolean} on */
  road(on) {
    for (const road of all(document, ".map .road")) road.classList.toggle("carrying", on && this.context.pace.moves);
  }
}
