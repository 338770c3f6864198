// The player: shows one step at a time, its tables, and the opened number. One engine for every route.

import { Address } from "address";
import { Autoplay } from "autoplay";
import { Choice, TIMES } from "choice";
import { Distances } from "distances";
import { all, byId, first } from "dom";
import { wireKeys } from "keys";
import { oncePerFrame } from "later";
import { MainLine } from "main-line";
import { Pace } from "motion";
import { Navigation } from "navigation";
import { Neighbours } from "neighbours";
import { NetworkMap } from "network-map";
import { OpenedNumber } from "opened-number";
import { Panel } from "panel";
import { Stage } from "stage";
import { parse, USUAL_DIGITS, write } from "state";
import { swipes } from "swipe";
import { Texts } from "texts";
import { Tour } from "tour";
import { TrailBar } from "trail-bar";

export class Player {
  /**
   * @param {import("store").Store} store
   * @param {Words} words
   * @param {Stop[]} stops of the tour
   */
  constructor(store, words, stops = []) {
    this.store = store;
    this.words = words;
    this.sections = all(document, "section.step");
    this.home = store.homes();
    this.chapters = new Map(this.sections.map(({ dataset: { step = "", chapter = "" } }) => [step, chapter]));
    this.line = new MainLine(store.outline);
    this.texts = new Texts(this.sections, store, this.home);
    this.navigation = new Navigation(this, new NetworkMap(this.sections));
    this.address = new Address((text) => this.navigation.linkLanguages(text));
    this.choice = new Choice(store.outline.start);
    this.neighbours = new Neighbours(new Map(this.sections.map((section) => [section.dataset.step ?? "", section])), this);
    this.pace = new Pace(words);
    this.opened = new OpenedNumber(this);
    this.panel = new Panel(() => this.showPanel());
    this.tour = new Tour(this, stops);
    this.distances = new Distances(this);
    this.trail = new TrailBar(this);
    this.stage = new Stage(first(document, "figure.stage"), this);
    this.autoplay = new Autoplay(words, {
      left: () => this.line.from(this.current, 1) !== this.current,
      next: () => this.walk(1, { replace: true }),
    });
    this.digitButtons = all(document, "[data-digits]");
    this.notice = byId("notice", HTMLElement);
    /** @type {Digits} */
    this.digits = USUAL_DIGITS;
  }

  get current() { return this.neighbours.current; }

  get step() { return this.neighbours.step; }

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
    swipes(this.stage.canvas, (by) => this.walk(by));
    byId("tour", HTMLElement).append(this.tour.element);
    const { bar, buttons } = this.navigation;
    bar.addEventListener("input", oncePerFrame(() => this.navigate(this.line.at(Number(bar.value) - 1), { replace: true })));
    for (const button of buttons) {
      button.addEventListener("click", () => this.walk(Number(button.dataset.go)));
    }
    for (const button of this.digitButtons) {
      button.addEventListener("click", () => this.setDigits(button.dataset.digits === "all" ? "all" : Number(button.dataset.digits)));
    }
  }

  /** Go where the address leads, whoever wrote it; one that says nothing of digits is told of the chosen ones. */
  arrive() {
    if (this.tour.isNew && !location.hash) { this.visit(this.tour.stops[0], true); return; }
    this.address.note(location.hash);
    const { state } = this.address;
    this.go(state);
    if (state.digits === null && this.digits !== USUAL_DIGITS) this.address.set(this.withDigits(this.digits), { replace: true });
  }

  /**
   * Show what the address says. An address that names nothing known shows the first step and says so.
   * @param {State} state
   */
  go(state, held = false) {
    const { step, of, at, digits } = state;
    const known = step === null || this.store.steps.has(step);
    const index = of ? this.indexAt(of, at) : null;
    for (const axis of of ? [] : TIMES) {
      const i = at[this.store.outline.letters[axis]];
      if (i !== undefined) this.choice.set(axis, i);
    }
    this.digits = digits ?? this.digits;
    this.tour.choose(state.tour);
    this.tour.follow(state.tour);
    this.setNotice(!known ? this.words.unknown_link : of && !index ? this.words.unknown_number : "");
    if (of && index) {
      this.choice.keep(this.store.array(of).axes, index);
      this.opened.set({ array: of, index });
    } else this.opened.forget();
    this.showStep(known && step !== null ? step : this.line.stops[0], held, index ? null : state.view);
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
   * @param {string} id of a step
   * @param {{ replace?: boolean, held?: boolean, stay?: boolean }} how `stay`: the focus stays where it is
   */
  navigate(id, { replace = false, held = false, stay = false } = {}) {
    if (id === this.current) return;
    const { view } = this.distances;
    const address = this.opened.place ? this.sameNumber(id) : write({ step: id, digits: this.digits, view });
    this.address.set(address, { replace, held });
    this.go(parse(address), held);
    if (!replace && !stay) this.step.focus();
  }

  /**
   * So many steps farther on the main line.
   * @param {number} by
   * @param {{ replace?: boolean, held?: boolean }} how
   */
  walk(by, how = {}) {
    if (by && this.distances.view === "chapter") this.navigate(this.chapterStart(Math.sign(by)), how);
    else if (by) this.navigate(this.line.from(this.current, by), how);
  }

  /** The panel shows something else: what it shows is drawn. */
  showPanel() {
    if (!this.current) return;
    if (this.panel.hasTables) this.step.drawNow();
    if (this.panel.tab === "map") this.navigation.reveal();
    if (this.panel.isOfNumber) this.opened.ensure(this.stage.place, this.panel.tab === "code");
    this.step.follow();
    this.step.mark();
  }

  /**
   * Go to a stop of the tour.
   * @param {Stop} stop
   */
  visit(stop, replace = false) {
    this.follow(write({ step: stop.step, digits: this.digits, tour: stop.name, view: stop.view === "step" ? null : stop.view }), replace);
    this.stage.playMoves();
  }

  /**
   * See this place from farther away or from nearer.
   * @param {View | null} view
   */
  see(view) {
    this.follow(write({ step: this.current, digits: this.digits, view }));
  }

  leaveTour() {
    this.follow(this.stepAddress(this.current));
  }

  /** @param {string} address */
  follow(address, replace = false) {
    this.address.set(address, { replace });
    this.go(parse(address));
  }

  /** @param {string} step */
  chapterOf(step) { return this.chapters.get(step) ?? ""; }

  /**
   * The first step of the chapter before this one or after it, on the main line.
   * @param {number} direction
   */
  chapterStart(direction) {
    const { line } = this;
    const chapters = line.stops.map((stop) => this.chapterOf(stop));
    const starts = chapters.flatMap((chapter, i) => (chapter === chapters[i - 1] ? [] : [i]));
    const now = starts.findLastIndex((start) => start <= line.number(this.current));
    return line.at(starts[Math.max(0, Math.min(starts.length - 1, now + direction))]);
  }

  /**
   * @param {string} id
   * @param {boolean} held
   * @param {View | null} view
   */
  showStep(id, held, view) {
    const changed = id !== this.current;
    if (changed) {
      this.opened.enterStep();
      this.neighbours.enter(id, held);
    } else if (this.step.digits !== this.digits) this.step.drawNow();
    else this.step.follow();
    for (const button of this.digitButtons) button.setAttribute("aria-pressed", String(button.dataset.digits === String(this.digits)));
    this.distances.show(view);
    this.stage.show(id, this.step.section.dataset.makes ?? "", view, held);
    if (!changed) return;
    if (this.panel.tab === "map") this.panel.choose(""); // where it covers the picture that it led to
    this.navigation.show(id);
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
      this.address.set(write({ step: this.current, at: { [letter]: i }, digits: this.digits }, [letter]), { replace: true });
      return;
    }
    const place = this.store.array(opened.array).axes.indexOf(axis);
    if (place < 0 || opened.index[place] === i) return;
    this.follow(this.link({ array: opened.array, index: opened.index.with(place, i) }, this.current), true);
  }

  /** @param {string} step */
  title(step) { return this.texts.title(step); }

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
  link({ array, index }, step = this.home.get(array) ?? this.current) {
    const letters = this.store.letters(array);
    const at = Object.fromEntries(letters.map((letter, i) => [letter, index[i]]));
    return write({ step, of: array, at, digits: this.digits }, letters);
  }

  /**
   * With a number open, the next step opens its own at the same position, head and dimension; a variant of this step
   * that of the same array.
   * @param {string} id
   */
  sameNumber(id) {
    const { operations, arrays } = this.line.member(id);
    const here = this.line.member(this.current);
    const [now, then] = [here, { operations, arrays }].map((step) => [...step.operations, ...step.arrays]);
    const same = here.family.steps.includes(id) ? now.indexOf(this.opened.place?.array ?? "") : -1;
    const array = then[same] ?? operations.at(-1) ?? arrays[0];
    if (!array || !this.store.size(array)) return this.stepAddress(id);
    return this.link({ array, index: this.choice.within(this.store.array(array)) }, id);
  }

  /**
   * Open a number: on this step when its array is shown here, else (`travel`) in the step that made it.
   * @param {Place} place
   */
  open(place, travel = false) {
    const here = !travel && this.step.shows(place.array);
    const address = here ? this.link(place, this.current) : this.link(place);
    if (address !== this.address.text) this.address.set(address);
    this.go(parse(address));
  }

  closeNumber() {
    const was = this.opened.place;
    this.opened.forget();
    this.address.set(this.stepAddress(this.current));
    if (!was || !this.step.focusOn(was.array, was.index)) this.step.focus();
  }

  /** @param {Digits} digits */
  setDigits(digits) {
    this.digits = digits;
    this.follow(this.withDigits(digits), true);
  }

  /**
   * The address of now with these digits.
   * @param {Digits} digits
   */
  withDigits(digits) {
    const { state } = this.address;
    const letters = state.of && this.store.has(state.of) ? this.store.letters(state.of) : Object.keys(state.at);
    return write({ ...state, step: this.current, digits }, letters);
  }
}
