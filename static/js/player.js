// The player: shows one step at a time, its tables, and the opened number. One engine for every route.

import { Address } from "address";
import { Autoplay } from "autoplay";
import { SHARED } from "charts";
import { Choice } from "choice";
import { all, byId, first } from "dom";
import { wireKeys } from "keys";
import { oncePerFrame } from "later";
import { Pace } from "motion";
import { Navigation } from "navigation";
import { Neighbours } from "neighbours";
import { NetworkMap } from "network-map";
import { OpenedNumber } from "opened-number";
import { Stage } from "stage";
import { parse, write } from "state";

export class Player {
  /**
   * @param {import("store").Store} store
   * @param {Words} words
   */
  constructor(store, words) {
    this.store = store;
    this.words = words;
    this.sections = all(document, "section.step");
    this.ids = this.sections.map(({ dataset }) => dataset.step ?? "");
    this.titles = new Map(all(document, ".contents a[data-step]").map((a) => [a.dataset.step, a.textContent]));
    this.home = homes(store.outline.chapters);
    this.navigation = new Navigation(this.sections.map(({ dataset: { step = "", chapter = "" } }) => (
      { id: step, chapter, title: this.title(step) })), new NetworkMap(this.sections), store, words);
    this.address = new Address((text) => this.navigation.linkLanguages(text));
    this.choice = new Choice();
    this.neighbours = new Neighbours(this.sections, this);
    this.pace = new Pace(words);
    this.opened = new OpenedNumber(this);
    this.stage = new Stage(first(document, "figure.stage"), this);
    this.autoplay = new Autoplay(words, {
      left: () => this.current < this.ids.length - 1,
      next: () => this.navigate(this.current + 1, { replace: true }),
    });
    this.digitButtons = all(document, "[data-digits]");
    this.notice = byId("notice", HTMLElement);
    /** @type {Digits} */
    this.digits = 4;
  }

  get current() {
    return this.neighbours.current;
  }

  get step() {
    return this.neighbours.step;
  }

  start() {
    // Without scripts an address leads to its section; with scripts the browser must not scroll there.
    for (const section of this.sections) section.removeAttribute("id");
    document.documentElement.classList.add("scripted");
    this.wire();
    this.arrive();
  }

  wire() {
    window.addEventListener("hashchange", () => {
      this.autoplay.stop();
      this.arrive();
    });
    window.addEventListener("beforeprint", () => this.step.later.finish());
    this.autoplay.wire();
    wireKeys(this);
    const { bar, buttons } = this.navigation;
    bar.addEventListener("input", oncePerFrame(() => this.navigate(Number(bar.value) - 1, { replace: true })));
    for (const button of buttons) {
      button.addEventListener("click", () => this.navigate(this.current + Number(button.dataset.go)));
    }
    for (const button of this.digitButtons) {
      button.addEventListener("click", () => this.setDigits(button.dataset.digits === "all" ? "all" : Number(button.dataset.digits)));
    }
  }

  /** Go where the address leads, whoever wrote it; one that says nothing of digits is told of the chosen ones. */
  arrive() {
    this.address.note(location.hash);
    const { state } = this.address;
    this.go(state);
    if (state.digits === null && this.digits !== 4) this.address.set(this.withDigits(this.digits), { replace: true });
  }

  /**
   * Show what the address says. An address that names nothing known shows the first step and says so.
   * @param {State} state
   */
  go(state, held = false) {
    const { step, of, at, digits } = state;
    const known = step === null || this.ids.includes(step);
    const index = of ? this.indexAt(of, at) : null;
    const shared = at[this.store.outline.letters[SHARED]];
    if (!of && shared !== undefined) this.choice.set(SHARED, shared);
    this.digits = digits ?? this.digits;
    this.setNotice(!known ? this.words.unknown_link : of && !index ? this.words.unknown_number : "");
    if (of && index) {
      this.choice.keep(this.store.array(of).axes, index);
      this.opened.set({ array: of, index });
    } else this.opened.forget();
    this.showStep(known && step !== null ? this.ids.indexOf(step) : 0, held);
    if (index) this.opened.show();
  }

  /**
   * The index that an address means, or null when the recording has no such number.
   * @param {string} array
   * @param {Letters} at
   */
  indexAt(array, at) {
    if (!this.store.has(array)) return null;
    const shape = this.store.shape(array);
    const index = this.store.letters(array).map((letter) => at[letter] ?? 0);
    return index.every((i, axis) => i < shape[axis]) ? index : null;
  }

  /** @param {string} text */
  setNotice(text) {
    if (this.notice.textContent !== text) this.notice.textContent = text;
  }

  /**
   * @param {number} to the number of a step, from 0
   * @param {{ replace?: boolean, held?: boolean }} how
   */
  navigate(to, { replace = false, held = false } = {}) {
    const index = Math.max(0, Math.min(this.ids.length - 1, to));
    if (index === this.current) return;
    const address = this.opened.place ? this.sameNumber(this.ids[index]) : this.stepAddress(this.ids[index]);
    this.address.set(address, { replace, held });
    this.go(parse(address), held);
    if (!replace) this.step.focus();
  }

  /**
   * The number of the first step of the chapter before this one or after it.
   * @param {number} direction
   */
  chapterStart(direction) {
    const chapters = this.sections.map(({ dataset }) => dataset.chapter);
    const starts = chapters.flatMap((chapter, i) => (chapter === chapters[i - 1] ? [] : [i]));
    const now = starts.findIndex((i) => chapters[i] === chapters[this.current]);
    return starts[Math.max(0, Math.min(starts.length - 1, now + direction))];
  }

  /**
   * @param {number} index
   * @param {boolean} held
   */
  showStep(index, held) {
    const changed = index !== this.current;
    if (changed) {
      this.opened.enterStep();
      this.neighbours.enter(index, held);
    } else if (this.step.digits !== this.digits) this.step.drawNow();
    else this.step.follow();
    for (const button of this.digitButtons) button.setAttribute("aria-pressed", String(button.dataset.digits === String(this.digits)));
    this.stage.show(this.ids[index], this.sections[index].dataset.makes ?? "");
    if (!changed) return;
    this.navigation.show(index);
    // Everything is written; what follows needs the layout.
    window.scrollTo({ top: 0 });
    this.navigation.reveal();
    this.step.reveal();
    this.neighbours.prepare();
  }

  /**
   * @param {string} axis
   * @param {number} i
   */
  choose(axis, i) {
    this.choice.set(axis, i);
    this.step.follow();
    this.stage.follow();
  }

  /**
   * Without a number open, the tables show a place of an array.
   * @param {Place} place
   */
  lookAt({ array, index }) {
    if (this.opened.place) this.closeNumber();
    this.choice.keep(this.store.array(array).axes, index);
    this.step.follow();
    this.stage.follow();
  }

  /**
   * The shared choice came to rest: the address names it, and an opened number goes along.
   * @param {string} axis
   * @param {number} i
   */
  settled(axis, i) {
    const opened = this.opened.place;
    if (!opened) {
      const letter = this.store.outline.letters[axis];
      this.address.set(write({ step: this.ids[this.current], at: { [letter]: i }, digits: this.digits }, [letter]), { replace: true });
      return;
    }
    const place = this.store.array(opened.array).axes.indexOf(axis);
    if (place < 0 || opened.index[place] === i) return;
    const address = this.link({ array: opened.array, index: opened.index.with(place, i) }, this.ids[this.current]);
    this.address.set(address, { replace: true });
    this.go(parse(address));
  }

  /** @param {string} step */
  title(step) {
    return this.titles.get(step) ?? step;
  }

  /**
   * The address of a step, no number open.
   * @param {string} step
   */
  stepAddress(step) {
    return write({ step, digits: this.digits });
  }

  /**
   * The address of a number, in the step that made it unless another is named.
   * @param {Place} place
   */
  link({ array, index }, step = this.home.get(array) ?? this.ids[this.current]) {
    const letters = this.store.letters(array);
    const at = Object.fromEntries(letters.map((letter, i) => [letter, index[i]]));
    return write({ step, of: array, at, digits: this.digits }, letters);
  }

  /**
   * With a number open, the next step opens its own at the same position, head and dimension.
   * @param {string} id
   */
  sameNumber(id) {
    const step = this.store.steps.get(id);
    const array = step?.operations.at(-1) ?? step?.arrays[0];
    if (!array || !this.store.size(array)) return this.stepAddress(id);
    return this.link({ array, index: this.choice.within(this.store.array(array)) }, id);
  }

  /**
   * Open a number: on this step when its array is shown here, else (`travel`) in the step that made it.
   * @param {Place} place
   */
  open(place, travel = false) {
    const here = !travel && this.step.shows(place.array);
    const address = here ? this.link(place, this.ids[this.current]) : this.link(place);
    if (address !== this.address.text) this.address.set(address);
    this.go(parse(address));
  }

  closeNumber() {
    const was = this.opened.place;
    this.opened.forget();
    this.address.set(this.stepAddress(this.ids[this.current]));
    if (!was || !this.step.focusOn(was.array, was.index)) this.step.focus();
  }

  /** @param {Digits} digits */
  setDigits(digits) {
    this.digits = digits;
    const address = this.withDigits(digits);
    this.address.set(address, { replace: true });
    this.go(parse(address));
  }

  /**
   * The address of now with these digits.
   * @param {Digits} digits
   */
  withDigits(digits) {
    const { state } = this.address;
    const letters = state.of && this.store.has(state.of) ? this.store.letters(state.of) : Object.keys(state.at);
    return write({ ...state, step: this.ids[this.current], digits }, letters);
  }
}

/**
 * Array → the step that made it, or that it is given to.
 * @param {ChapterOutline[]} chapters
 */
function homes(chapters) {
  /** @type {Map<string, string>} */
  const home = new Map();
  for (const { steps } of chapters) {
    for (const { id, operations, arrays } of steps) for (const name of [...arrays, ...operations]) home.set(name, id);
  }
  return home;
}
