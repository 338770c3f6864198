// Motion that explains: the operands of a number leave their tables and meet where the number is made.

import { all, h } from "dom";

const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

/** @type {Record<string, number>} */
const PACES = { slow: 2400, normal: 1100, fast: 350, still: 0 }; // ms a term
const STILL = 900; // without motion, terms still light up one after the other

/** How fast motions go: one choice for the whole page, wherever it is made. */
export class Pace {
  /** @param {Words} words */
  constructor(words) {
    this.words = words;
    this.name = "normal";
  }

  /** Milliseconds a term. */
  get term() {
    return PACES[this.name] || STILL;
  }

  /** Milliseconds that a copy travels. */
  get flight() {
    return Math.min(900, this.term * 0.9);
  }

  /** Whether anything moves: not where the reader or their system would rather it did not. */
  get moves() {
    return this.name !== "still" && !calm.matches;
  }

  select() {
    const select = h("select", { class: "pace", "aria-label": this.words.speed, onchange: () => {
      this.name = select.value;
      for (const other of all(document, "select.pace")) /** @type {HTMLSelectElement} */ (other).value = this.name;
    } }, Object.keys(PACES).map((name) => h("option", { value: name, selected: name === this.name }, this.words[name])));
    return select;
  }
}

/**
 * `cells`: those that show a number; `target`: the one where the motion ends.
 * @typedef {object} MotionContext
 * @property {(place: Place) => HTMLElement[]} cells
 * @property {() => HTMLElement | null | undefined} target
 * @property {(reads: Place[]) => void} light
 * @property {Pace} pace
 */

/** Plays one opened number term by term. Nothing is hidden meanwhile: copies move, the tables stay. */
export class Motion {
  /** @param {MotionContext} context */
  constructor(context) {
    this.context = context;
    /** @type {Set<Element>} */
    this.copies = new Set();
    /** @type {Frame[]} */
    this.frames = [];
    /** @type {(frame: Frame, n: number) => void} */
    this.say = () => {};
    this.at = -1;
    this.timer = 0;
    this.playing = false;
  }

  /**
   * @param {Frame[]} frames what is read at once
   * @param {(frame: Frame, n: number) => void} say is told of each
   */
  load(frames, say) {
    this.stop();
    this.frames = frames;
    this.say = say;
  }

  stop() {
    clearTimeout(this.timer);
    for (const copy of this.copies) copy.remove();
    this.copies.clear();
    this.at = -1;
    this.playing = false;
  }

  /** @param {() => void} ended */
  play(ended) {
    this.playing = true;
    if (this.at >= this.frames.length - 1) this.at = -1;
    const tick = () => {
      if (!this.playing) return;
      if (!this.next()) {
        this.playing = false;
        ended();
        return;
      }
      this.timer = setTimeout(tick, this.context.pace.term);
    };
    tick();
  }

  pause() {
    this.playing = false;
    clearTimeout(this.timer);
  }

  /** One term further; false when all have been shown. */
  next() {
    if (this.at >= this.frames.length - 1) return false;
    this.at += 1;
    const { reads } = this.frames[this.at];
    const { light, target, cells, pace } = this.context;
    light(reads);
    this.say(this.frames[this.at], this.at);
    const end = target();
    if (end && pace.moves) for (const cell of reads.flatMap(cells)) fly(cell, end, pace.flight, this.copies);
    return true;
  }
}

/**
 * A copy of a cell travels to another one. It is kept in `copies` until it has arrived.
 * @param {Element} from
 * @param {Element} to
 * @param {number} duration ms
 * @param {Set<Element>} copies
 */
function fly(from, to, duration, copies) {
  const a = from.getBoundingClientRect();
  const b = to.getBoundingClientRect();
  if (!a.width || !b.width) return;
  const copy = h("div", { class: "flying", "aria-hidden": "true" }, from.textContent);
  for (const side of /** @type {const} */ (["left", "top", "width", "height"])) copy.style[side] = `${a[side]}px`;
  document.body.append(copy);
  copies.add(copy);
  const move = copy.animate([
    { transform: "none", opacity: 1 },
    { transform: `translate(${b.left - a.left}px, ${b.top - a.top}px)`, opacity: 1, offset: 0.75 },
    { transform: `translate(${b.left - a.left}px, ${b.top - a.top}px) scale(0.7)`, opacity: 0 },
  ], { duration, easing: "cubic-bezier(.4,0,.2,1)" });
  const end = () => { copy.remove(); copies.delete(copy); };
  move.addEventListener("finish", end);
  move.addEventListener("cancel", end);
}
