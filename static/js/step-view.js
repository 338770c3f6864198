// One step on the page: its words, and a table for every array that it reads and makes.

import { drawSeries } from "charts";
import { fill, h, Later } from "dom";
import { exercise } from "exercise";
import { playground } from "playground";
import { ArrayTable } from "table";
import { Watch } from "watch";

const SMALL = 1200; // operands of more numbers than this are folded until asked for
const AT_ONCE = 300; // elements of a step's tables: about as many as are in view; the others are drawn when the page is idle

/**
 * The steps that are not on the page wait as text, as they came: all at once are some fifty thousand elements.
 * A view unpacks one of them.  The neighbours of the current step are unpacked and laid out, unseen, while
 * the page is idle, so that going there has nothing left to lay out.
 *
 * player: { store, words, digits, place in the tables: choice(axis), choose(axis, i), open(array, index),
 *   link(array, index), and what of the numbers is lit: markTable(name, table) }
 */
export class StepView {
  constructor(section, player) {
    Object.assign(this, { section, player });
    this.text = section.querySelector("noscript");
    this.later = new Later();
    this.tables = new Map(); // array → its tables
    this.series = null;
    this.watching = null;
  }

  /** Everything, piece by piece, while nothing else is to do; then `done`. */
  prepare(done) {
    this.later.add(() => this.unpack());
    this.later.add(() => this.makeReady());
    this.later.add(() => this.draw());
    this.later.whenDone(done);
  }

  /** In view.  While a key is held only the words come at once. */
  enter(held) {
    const wasDrawn = this.drawn;
    this.shown = true;
    this.unpack(held);
    if (!held || wasDrawn) this.drawNow();
    else this.later.add(() => this.drawNow());
    this.stand("current");
    if (wasDrawn) {
      for (const table of this.allTables()) table.restoreScroll();
      this.follow();
      this.mark();
    }
    // To end `inert` costs every cell a new style: that can wait until the step is painted.
    if (this.section.inert) this.later.addFirst(() => this.openUp());
    this.later.resume();
  }

  /** Out of view and out of reach: no moment at which it is laid out, but can be reached. */
  leave() {
    this.shown = this.wantsFocus = false;
    if (this.section.contains(document.activeElement)) document.activeElement.blur();
    for (const table of this.allTables()) table.keepScroll();
    this.watching?.stop();
    this.series?.pause();
    this.later.pause();
    this.stand("");
  }

  /** Off the page: text again. */
  drop() {
    this.later.clear();
    this.series?.stop();
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
    for (const table of this.allTables()) table.restoreScroll();
  }

  /** "current": in view; "ready": laid out, but not seen, "whole": the parts outside of the window too; "": neither. */
  stand(how) {
    this.section.className = `step ${how}`.trim();
  }

  openUp() {
    if (!this.shown) return;
    this.section.inert = false;
    if (this.wantsFocus && [document.body, this.focusedBefore].includes(document.activeElement)) this.focus();
  }

  /** The heading gets the focus, as soon as it can be reached, unless the reader puts it elsewhere first. */
  focus() {
    this.wantsFocus = this.section.inert;
    this.focusedBefore = document.activeElement;
    if (!this.wantsFocus) this.section.querySelector("h2").focus({ preventScroll: true });
  }

  /** Put the text in its place; `wordsFirst`: what is below the words when the page is idle. */
  unpack(wordsFirst = false) {
    if (this.parts) {
      if (!wordsFirst) this.appendParts();
      return;
    }
    const template = h("template");
    template.innerHTML = this.text.textContent;
    this.parts = document.createDocumentFragment();
    this.parts.append(...[...template.content.children].filter((child) => child.matches(".part")));
    this.section.replaceChildren(template.content);
    if (!wordsFirst) this.appendParts();
  }

  appendParts() {
    this.section.append(this.parts);
  }

  /** The step as far as a window shows it. */
  drawNow() {
    this.appendParts();
    this.draw();
    let made = 0;
    for (const table of this.allTables()) {
      if (!made || made + table.cost <= AT_ONCE) table.showOnce();
      made += table.cost;
    }
  }

  /** Tables for every array of the step: what is given, what each part reads, what it makes. */
  draw() {
    if (this.drawn && this.digits === this.player.digits) return;
    Object.assign(this, { drawn: true, digits: this.player.digits });
    this.watching?.stop();
    this.watching = null;
    this.tables.clear();
    const parts = [...this.section.querySelectorAll("[data-array]")];
    this.drawCharts(parts.map((part) => part.dataset.array));
    for (const box of this.section.querySelectorAll(".playground")) this.later.add(() => this.drawPlayground(box));
    this.small = SMALL * Math.min(1, 4 / parts.length); // a step with very many parts must not show thousands of numbers
    for (const part of parts) this.drawPart(part);
  }

  drawPart(part) {
    const name = part.dataset.array;
    part.querySelector(".made .numbers").replaceWith(this.newTable(name));
    const box = part.querySelector(".operands");
    if (!box) return;
    box.replaceChildren(...this.operandTables(name));
    part.querySelector(".exercise")?.remove();
    part.querySelector(".watch")?.remove();
    part.querySelector(".equation").before(this.watchFor(name).element);
    part.append(this.exerciseFor(name));
  }

  drawPlayground(box) {
    return playground(box, Number(box.dataset.round), this.player).catch((error) => {
      box.replaceChildren(h("p", { class: "wrong", role: "alert" }, fill(this.player.words.load_failed, { file: error.message })));
    });
  }

  drawCharts(names) {
    this.series?.stop();
    this.series = null;
    const { player } = this;
    this.series = drawSeries(this.section, names, { ...this.tableContext(),
      opened: (array) => player.opened(array), settled: (axis, i) => player.settled(axis, i) });
  }

  /** A table that is drawn when the page is idle, unless `drawNow` comes first. */
  newTable(name) {
    const table = new ArrayTable(name, this.tableContext());
    if (!this.tables.has(name)) this.tables.set(name, []);
    this.tables.get(name).push(table);
    this.player.markTable(name, table);
    table.keepRoom();
    this.later.add(() => table.showOnce());
    return table.element;
  }

  operandTables(name) {
    const { store, words } = this.player;
    const step = store.step(name);
    return [...new Set(Object.values(step?.operands ?? {}))].map((operand) => {
      const open = store.size(operand) <= this.small && !store.isDerived(operand);
      const view = this.player.home.get(operand);
      const details = h("details", { open }, h("summary", {}, h("code", {}, operand), ` ${store.shape(operand).join(" × ")}`),
        view ? h("p", { class: "soft" }, `${words.came_from} `, h("a", { href: `#step=${view}` }, this.player.title(view))) : null);
      const fillIn = () => { if (!details.querySelector(".numbers")) details.append(this.newTable(operand)); };
      if (open) fillIn();
      details.addEventListener("toggle", () => { if (details.open) fillIn(); });
      return details;
    });
  }

  tableContext() {
    const { player } = this;
    return {
      store: player.store, words: player.words, digits: player.digits, shared: this.series?.axis,
      choice: (axis) => player.chosen.get(axis),
      choose: (axis, i) => player.choose(axis, i),
      open: (array, index) => player.open(array, index),
      later: (run) => this.later.add(run),
    };
  }

  /** Buttons that show what a whole step does, move by move. */
  watchFor(array) {
    const { player } = this;
    return new Watch({
      store: player.store, words: player.words, array,
      choice: (axis) => player.chosen.get(axis),
      cells: (name, index) => this.cells(name, index),
      light: (reads) => {
        for (const { array: name, index } of reads?.slice(0, 1) ?? []) this.tables.get(name)?.forEach((table) => table.want(table.flat(index)));
        player.mark(reads ?? undefined);
      },
      pace: () => player.pace.term,
      still: () => player.pace.still,
      paces: () => player.pace.select(),
      prepare: (names) => this.showOperands(array, names),
      begin: (watch) => { if (this.watching !== watch) this.watching?.stop(); this.watching = watch; },
    });
  }

  /** Unfold the tables that a step reads, with their numbers. */
  async showOperands(array, names) {
    for (const details of this.section.querySelectorAll(`[data-array="${CSS.escape(array)}"] .operands details`)) details.open = true;
    await Promise.all(names.map((name) => this.player.store.ready(name)));
    this.later.finish();
    await new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); });
  }

  /** The number that an exercise asks for is hidden wherever it is shown. */
  exerciseFor(array) {
    const { player } = this;
    const tables = () => this.tables.get(array) ?? [];
    return exercise(array, {
      store: player.store, words: player.words, shown: () => this.shown,
      hide: (_, index) => {
        player.lookAt(array, index);
        tables().forEach((table) => table.keepSecret(index));
      },
      show: () => tables().forEach((table) => table.keepSecret(null)),
      open: (name, index) => player.open(name, index),
    });
  }

  allTables() {
    return [...this.tables.values()].flat();
  }

  /** The cells that show a number now. */
  cells(array, index) {
    return (this.tables.get(array) ?? []).map((table) => table.cellOf(index)).filter(Boolean);
  }

  /** Put the focus on a number; false when no table shows it. */
  focusOn(array, index) {
    return (this.tables.get(array) ?? []).some((table) => table.focusOn(index));
  }

  /** Tables and pictures show what is chosen now. */
  follow() {
    for (const table of this.allTables()) table.follow(); // these scroll, so they come first
    this.series?.follow();
  }

  mark() {
    for (const [name, tables] of this.tables) for (const table of tables) this.player.markTable(name, table);
  }

  /** Scroll the tables to what has to be in view: it needs the layout, so it comes last. */
  reveal() {
    for (const table of this.allTables()) table.reveal();
  }
}
