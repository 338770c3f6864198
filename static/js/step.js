// One step on the page: as text, as words and tables in view, or made ready unseen.

import { byId, first } from "dom";
import { Later } from "later";
import { StepParts } from "step-parts";

const AT_ONCE = 300; // elements of a step's tables: about as many as are in view; the others are drawn when the page is idle

/**
 * The steps that are not on the page wait as text, as they came: all at once are some fifty thousand elements.
 * This unpacks one of them.  The neighbours of the current step are unpacked and laid out, unseen, while
 * the page is idle, so that going there has nothing left to lay out.
 */
export class Step {
  /**
   * @param {HTMLElement} section
   * @param {import("player").Player} player
   */
  constructor(section, player) {
    this.section = section;
    this.player = player;
    this.text = first(section, "noscript");
    this.later = new Later();
    this.content = new StepParts(section, player, this);
    /** @type {DocumentFragment | null} */
    this.below = null; // the parts below the words, while they are not in the page
    /** @type {Digits | null} */
    this.digits = null; // those that it is drawn with
    this.shown = this.unpacked = false;
  }

  get drawn() {
    return this.digits !== null;
  }

  /**
   * Everything, piece by piece, while nothing else is to do; then `done`.
   * @param {() => void} done
   */
  prepare(done) {
    this.later.add(() => this.unpack());
    if (this.player.panel.hasTables) {
      this.later.add(() => this.makeReady());
      this.later.add(() => this.draw());
    }
    this.later.whenDone(done);
  }

  /**
   * In view.  While a key is held only the words come at once.
   * @param {boolean} held
   */
  enter(held) {
    const wasDrawn = this.drawn;
    this.shown = true;
    this.unpack(held);
    if (!held || wasDrawn) this.drawNow();
    else this.later.add(() => this.drawNow());
    this.stand("current");
    if (wasDrawn) {
      for (const table of this.content.allTables()) table.rows?.restoreScroll();
      this.follow();
      this.mark();
    }
    // To end `inert` costs every cell a new style: that can wait until the step is painted.
    if (this.section.inert) this.later.addFirst(() => this.openUp());
    this.later.resume();
  }

  /** Out of view and out of reach: no moment at which it is laid out, but can be reached. */
  leave() {
    this.shown = false;
    const focused = document.activeElement;
    if (this.section.contains(focused)) /** @type {HTMLElement} */ (focused).blur();
    for (const table of this.content.allTables()) table.rows?.keepScroll();
    this.content.pause();
    this.later.pause();
    this.stand("");
  }

  /** Off the page: text again. */
  drop() {
    this.later.clear();
    this.content.stop();
    this.stand("");
    this.section.inert = false;
    this.section.replaceChildren(this.text);
  }

  /** A change of the page's width must not lay out what nobody sees. */
  rest() {
    if (!this.section.classList.contains("ready")) return;
    this.stand("");
    this.later.add(() => this.makeReady());
  }

  /** Laid out, but neither seen nor reached. */
  makeReady() {
    if (this.shown) return;
    this.stand("ready whole");
    this.section.inert = true;
    for (const table of this.content.allTables()) table.rows?.restoreScroll();
  }

  /**
   * "current": in view; "ready": laid out, but not seen, "whole": the parts outside of the window too; "": neither.
   * @param {string} how
   */
  stand(how) {
    this.section.className = `step ${how}`.trim();
  }

  openUp() {
    if (!this.shown) return;
    this.section.inert = false;
  }

  /** The heading over the picture gets the focus. */
  focus() {
    byId("step-title", HTMLElement).focus({ preventScroll: true });
  }

  /** Put the text in its place; `wordsFirst`: what is below the words when the page is idle. */
  unpack(wordsFirst = false) {
    if (!this.unpacked) {
      this.unpacked = true;
      const content = this.player.texts.content(this.section.dataset.step ?? "");
      this.below = document.createDocumentFragment();
      this.below.append(...[...content.children].filter((child) => child.matches(".part")));
      this.section.replaceChildren(content);
    }
    if (!wordsFirst) this.appendParts();
  }

  appendParts() {
    if (this.below) this.section.append(this.below);
    this.below = null;
  }

  /** The step as far as a window shows it. */
  drawNow() {
    this.appendParts();
    if (!this.player.panel.hasTables) return;
    this.draw();
    let made = 0;
    for (const table of this.content.allTables()) {
      if (!made || made + table.cost <= AT_ONCE) table.showOnce();
      made += table.cost;
    }
  }

  /** Its tables and pictures; again when other digits are chosen. */
  draw() {
    if (this.digits === this.player.digits) return;
    this.digits = this.player.digits;
    this.content.draw();
  }

  /**
   * Whether the step is about an array: makes it, reads it or has it given.
   * @param {string} array
   */
  shows(array) {
    const { store } = this.player;
    const { operations, arrays } = /** @type {StepOutline} */ (store.steps.get(this.section.dataset.step ?? ""));
    return arrays.includes(array) || operations.some((id) => id === array || Object.values(store.made(id).operands).includes(array));
  }

  /**
   * The cells that show a number now.
   * @param {string} array
   * @param {number[]} index
   * @returns {HTMLElement[]}
   */
  cells(array, index) {
    return this.content.tablesOf(array).flatMap((table) => table.cellOf(index) ?? []);
  }

  /**
   * Put the focus on a number; false when no table shows it.
   * @param {string} array
   * @param {number[]} index
   */
  focusOn(array, index) {
    return this.content.tablesOf(array).some((table) => table.focusOn(index));
  }

  /** Tables and pictures show what is chosen now. */
  follow() {
    for (const table of this.content.allTables()) table.follow(); // these scroll, so they come first
    this.content.series?.follow();
  }

  mark() {
    for (const table of this.content.allTables()) this.player.opened.markTable(table);
  }

  /** Scroll the tables to what has to be in view: it needs the layout, so it comes last. */
  reveal() {
    for (const table of this.content.allTables()) table.reveal();
  }
}
