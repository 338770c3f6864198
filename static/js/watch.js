// What a whole step does, move by move: a row slides out of its table, a mask closes, a softmax
// rescales, a road carries the copy; every other step lights what each number reads.

import { h } from "dom";
import { fly } from "motion";
import { Working } from "working";

const MOST = 24; // numbers that are shown one by one
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
const FILL = { embedding: rowsSlide, add: rowsSlide, causal_mask: maskCloses, softmax: rowsRescale };

/**
 * Buttons that show one step. context: { store, words, array, choice(axis), cells(array, index), light(reads),
 * pace(), still(), prepare(names), paces() → a select, begin(watch) }
 */
export class Watch {
  constructor(context) {
    this.context = context;
    this.at = -1;
    this.stopped = 0; // how often
    const { words } = context;
    this.button = h("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => this.toggle() }, `▶ ${words.watch}`);
    this.element = h("div", { class: "pick watch" }, this.button,
      h("button", { type: "button", class: "chip", onclick: () => this.single() }, words.watch_next), context.paces());
    this.copies = new Set();
    this.changed = new Set();
  }

  /** Load what the moves need; false when it was stopped meanwhile. */
  async ready() {
    if (this.moves) return true;
    const { stopped } = this;
    const { store, array } = this.context;
    const step = store.step(array);
    this.context.begin(this);
    await this.context.prepare([array, ...Object.values(step.operands)]);
    if (stopped !== this.stopped) return false;
    this.moves = (step.target.startsWith("d_") ? numberByNumber : FILL[step.kind] ?? numberByNumber)(step, this.context);
    return true;
  }

  async toggle() {
    if (this.playing) { this.pause(); return; }
    this.playing = true;
    this.show();
    if (!await this.ready()) return;
    if (this.at >= this.moves.length - 1) this.clear();
    const tick = () => {
      if (!this.playing) return;
      if (!this.next()) { this.pause(); return; }
      this.timer = setTimeout(tick, this.context.pace());
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
    this.button.setAttribute("aria-pressed", String(Boolean(this.playing)));
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

  next() {
    if (this.at >= this.moves.length - 1) return false;
    this.at += 1;
    const { reads = [], slides = [], closes = [], shares = [], road = false } = this.moves[this.at];
    this.context.light([...reads, ...slides.map(([from]) => from)]);
    this.road(road);
    if (!this.context.still() && !calm.matches) for (const [from, to] of slides) this.slide(from, to);
    for (const place of closes) this.dress(place, "closed");
    for (const { place, share } of shares) this.dress(place, "bar", share);
    return true;
  }

  slide(from, to) {
    const [start] = this.context.cells(from.array, from.index);
    const end = this.context.cells(to.array, to.index).at(-1);
    if (start && end) fly(start, end, Math.min(900, this.context.pace() * 0.9), this.copies);
  }

  dress({ array, index }, name, share) {
    for (const cell of this.context.cells(array, index)) {
      if (share !== undefined) cell.style.setProperty("--share", share);
      cell.classList.add(name);
      this.changed.add(cell);
    }
  }

  road(on) {
    for (const road of document.querySelectorAll(".map .road")) road.classList.toggle("carrying", on && !calm.matches && !this.context.still());
  }
}

/** Every row of what is made, at the heads that are chosen now: index of its first number, and its length. */
function rows(array, { store, choice }) {
  const { shape, axes } = store.array(array);
  const before = shape.slice(0, -2).map((length, axis) => Math.min(choice(axes[axis]) ?? 0, length - 1));
  return Array.from({ length: shape.at(-2) ?? 1 }, (_, row) => ({ row, length: shape.at(-1),
    at: (column) => [...before, ...(shape.length > 1 ? [row] : []), column] }));
}

function each(length, make) {
  return Array.from({ length }, (_, i) => make(i));
}

/** Looked-up rows come out of their table; the two summands of a residual meet, and the road is the first. */
function rowsSlide(step, context) {
  const { a, b, table, ids } = step.operands;
  return rows(step.id, context).map(({ row, length, at }) => ({
    road: Boolean(a),
    slides: each(length, (column) => {
      const to = { array: step.id, index: at(column) };
      if (table) return [[{ array: table, index: [context.store.flatValue(ids, row), column] }, to]];
      return [a, b].filter((operand) => context.store.size(operand) === context.store.size(step.id)).map((operand) => [{ array: operand, index: at(column) }, to]);
    }).flat(),
  }));
}

function maskCloses(step, context) {
  return rows(step.id, context).map(({ row, length, at }) => ({
    closes: each(length, (column) => column).filter((column) => column > row).map((column) => ({ array: step.id, index: at(column) })),
    reads: each(Math.min(row + 1, length), (column) => ({ array: step.operands.scores, index: at(column) })),
  }));
}

/** Each row becomes shares of one. */
function rowsRescale(step, context) {
  return rows(step.id, context).map(({ length, at }) => ({
    reads: each(length, (column) => ({ array: step.operands.x, index: at(column) })),
    shares: each(length, (column) => ({ place: { array: step.id, index: at(column) }, share: context.store.value(step.id, at(column)) })),
  }));
}

/** Any other step: the numbers that each number reads, and the way from there. */
function numberByNumber(step, context) {
  const { store } = context;
  const { shape } = store.array(step.id);
  const count = Math.min(MOST, store.size(step.id));
  return each(count, (flat) => {
    const index = [];
    for (let axis = shape.length - 1, rest = flat; axis >= 0; axis--) {
      index.unshift(rest % shape[axis]);
      rest = Math.floor(rest / shape[axis]);
    }
    const { reads } = new Working(store.computation(step.id), store, store.outline.symbols[step.notation]).explain(index);
    return { reads: [...reads, { array: step.id, index }], slides: reads.slice(0, 8).map((read) => [read, { array: step.id, index }]) };
  });
}
