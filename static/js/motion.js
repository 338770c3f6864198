// Motion that explains: the operands of a number leave their tables and meet where the number is made.

import { h } from "dom";

const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

const PACES = { slow: 2400, normal: 1100, fast: 350, still: 0 }; // ms a term
const STILL = 900; // without motion, terms still light up one after the other

/** How fast motions go: one choice for the whole page, wherever it is made. */
export class Pace {
  constructor(words) {
    this.words = words;
    this.name = "normal";
  }

  /** Milliseconds a term. */
  get term() {
    return PACES[this.name] || STILL;
  }

  get still() {
    return this.name === "still";
  }

  select() {
    const select = h("select", { class: "pace", "aria-label": this.words.speed, onchange: () => {
      this.name = select.value;
      for (const other of document.querySelectorAll("select.pace")) other.value = this.name;
    } }, Object.keys(PACES).map((name) => h("option", { value: name, selected: name === this.name }, this.words[name])));
    return select;
  }
}

/**
 * Plays one opened number term by term. Nothing is hidden meanwhile: copies move, the tables stay.
 * context: { cells(array, index) → elements, target() → element, light(reads), pace() → ms a term, moves() }
 */
export class Motion {
  constructor(context) {
    this.context = context;
    this.copies = new Set();
    this.stop();
  }

  /** frames: a list of {reads, text}: what is read at once, and what to say then. */
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

  play(ended) {
    this.playing = true;
    if (this.at >= this.frames.length - 1) this.at = -1;
    const tick = () => {
      if (!this.playing) return;
      if (!this.step()) {
        this.playing = false;
        ended();
        return;
      }
      this.timer = setTimeout(tick, this.context.pace());
    };
    tick();
  }

  pause() {
    this.playing = false;
    clearTimeout(this.timer);
  }

  /** One term further; false when all have been shown. */
  step() {
    if (this.at >= this.frames.length - 1) return false;
    this.at += 1;
    const frame = this.frames[this.at];
    this.context.light(frame.reads);
    this.say(frame, this.at);
    const target = this.context.target();
    if (target && !calm.matches && this.context.moves()) {
      for (const { array, index } of frame.reads) for (const cell of this.context.cells(array, index)) fly(cell, target, Math.min(900, this.context.pace() * 0.9), this.copies);
    }
    return true;
  }
}

/** A copy of a cell travels to another one. It is kept in `copies` until it has arrived. */
export function fly(from, to, duration, copies) {
  const a = from.getBoundingClientRect();
  const b = to.getBoundingClientRect();
  if (!a.width || !b.width) return;
  const copy = h("div", { class: "flying", "aria-hidden": "true" }, from.textContent);
  for (const [name, value] of Object.entries({ left: a.left, top: a.top, width: a.width, height: a.height })) copy.style[name] = `${value}px`;
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
