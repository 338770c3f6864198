// The opened number: its panel, the numbers that it reads, lit in the tables, and the motion between them.

import { all, byId, first, h, loadFailed } from "dom";
import { flatten } from "indices";
import { Motion } from "motion";
import { showNumber } from "number-panel";

export class OpenedNumber {
  /** @param {import("player").Player} player */
  constructor(player) {
    this.player = player;
    this.panel = byId("number", HTMLElement);
    /** @type {Place | null} */
    this.place = null;
    /** @type {Place[]} */
    this.reads = [];
    /** @type {Frame[]} */
    this.frames = [];
    /** @type {number | null} */
    this.term = null; // the term of a sum that alone is lit
    /** @type {Map<string, Set<number>>} */
    this.lit = new Map(); // array → places of the numbers that are read
    this.motion = new Motion({
      cells: ({ array, index }) => player.step.cells(array, index),
      target: () => (this.place ? player.step.cells(this.place.array, this.place.index)[0] : null),
      light: (reads) => this.light(reads),
      pace: player.pace,
    });
  }

  get shown() {
    return !this.panel.hidden;
  }

  /**
   * The index of the opened number when it belongs to `array`.
   * @param {string} array
   */
  indexIn(array) {
    return this.place?.array === array ? this.place.index : null;
  }

  /**
   * This number is the opened one; `show` fills the panel.
   * @param {Place} place
   */
  set(place) {
    this.place = place;
  }

  /**
   * A number is open: this one, if there was none. Its code is written out where it is asked for.
   * @param {Place | null} place
   * @param {boolean} withCode
   */
  ensure(place, withCode) {
    if (!this.place && place) this.player.open(place);
    if (withCode) for (const code of all(this.panel, "details.code")) code.setAttribute("open", "");
  }

  async show() {
    const mine = this.place;
    if (!mine) return;
    this.clear();
    this.showPanel(true);
    const wanted = () => this.place === mine;
    try {
      const { reads, frames } = await showNumber(this.panel, mine, this.context(wanted));
      if (!wanted()) return;
      this.reads = reads;
      this.frames = frames;
      this.motion.load(frames, (frame, n) => this.markTerm(frame.term ? n : null));
      if (this.player.panel.tab === "code") this.ensure(mine, true);
    } catch (error) {
      if (!wanted()) return;
      this.panel.replaceChildren(loadFailed(this.player.words, error));
    }
    this.light();
  }

  /** @param {() => boolean} wanted whether the number is still the opened one */
  context(wanted) {
    const { player } = this;
    return { store: player.store, words: player.words, home: player.home, wanted,
      title: (/** @type {string} */ step) => player.title(step),
      link: (/** @type {Place} */ place) => player.link(place),
      open: (/** @type {Place} */ place, travel = false) => player.open(place, travel),
      close: () => player.closeNumber(), trail: () => { player.trail.toggle(); }, term: () => this.term,
      chooseTerm: (/** @type {number} */ n) => this.chooseTerm(n), motion: () => this.motionControls() };
  }

  /** No number is open any more. */
  forget() {
    if (!this.place) return;
    this.place = null;
    this.clear();
    this.showPanel(false);
    this.light();
  }

  /** Nothing is read any more. */
  clear() {
    this.reads = [];
    this.frames = [];
    this.motion.stop();
  }

  /**
   * Room for the panel, or none: the width of the steps changes.
   * @param {boolean} shown
   */
  showPanel(shown) {
    if (this.shown === shown) return;
    this.panel.hidden = !shown;
    this.player.panel.number(shown);
  }

  /**
   * Light one term of the sum alone; the choice holds from number to number. Chosen again, it is let go.
   * @param {number} n
   */
  chooseTerm(n) {
    this.term = this.term === n ? null : n;
    this.markTerm(this.term);
    this.light();
  }

  /** @param {number | null} n */
  markTerm(n) {
    for (const row of all(this.panel, "[data-term]")) {
      const chosen = Number(row.dataset.term) === n;
      row.classList.toggle("chosen", chosen);
      first(row, "button").setAttribute("aria-pressed", String(chosen));
      if (chosen) row.scrollIntoView({ block: "nearest" });
    }
  }

  /** Buttons that play the number term by term, each in its own step, slower, faster or without motion. */
  motionControls() {
    const { motion, player: { words, pace } } = this;
    const show = () => { play.textContent = motion.playing ? `❚❚ ${words.pause}` : `▶ ${words.motion}`; };
    const play = h("button", { type: "button", class: "chip", onclick: () => {
      if (motion.playing) motion.pause();
      else motion.play(() => { show(); this.light(); });
      show();
    } }, `▶ ${words.motion}`);
    const one = h("button", { type: "button", class: "chip", onclick: () => {
      motion.pause();
      if (motion.next()) return;
      motion.stop();
      motion.next();
    } }, words.motion_next);
    return h("div", { class: "pick" }, play, one, pace.select());
  }

  /**
   * Light the opened number, and in the tables of its operands the numbers that it reads: by default the chosen term's.
   * @param {Place[] | null} reads
   */
  light(reads = null) {
    this.lit = this.cellsOf(reads ?? this.chosenReads());
    this.player.step.mark();
  }

  chosenReads() {
    const frame = this.term === null ? null : this.frames[this.term];
    return frame?.term ? frame.reads : this.reads;
  }

  /** @param {Place[]} reads */
  cellsOf(reads) {
    /** @type {Map<string, Set<number>>} */
    const lit = new Map();
    for (const { array, index } of reads) {
      const places = lit.get(array) ?? new Set();
      lit.set(array, places.add(flatten(index, this.player.store.shape(array))));
    }
    return lit;
  }

  /** Another step is shown: its tables have nothing lit yet. */
  enterStep() {
    this.reads = [];
    this.frames = [];
    this.lit = new Map();
  }

  /** @param {import("table").ArrayTable} table */
  markTable(table) {
    const index = this.indexIn(table.name);
    table.mark(index ? table.layout.flat(index) : -1, this.lit.get(table.name) ?? new Set());
  }
}
