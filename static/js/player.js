// The player: shows one step at a time, its tables, and the opened number. One engine for every route.

import { SHARED } from "charts";
import { fill, h, Later, oncePerFrame } from "dom";
import { Motion, Pace } from "motion";
import { showNumber } from "number";
import { Place } from "place";
import { parse, write } from "state";
import { StepView } from "step-view";
import { flatten, Store } from "store";

const STEP_PACES = { slow: 9000, normal: 4500, fast: 1500 }; // ms a step
const SAME_CHOICE = { position: ["query_position"], query_position: ["position"] };
const UNFELT = new Set(["Tab", "Shift", "Control", "Alt", "Meta"]); // keys that touch nothing
const ADDRESS_PAUSE = 150; // ms between addresses while a key is held: browsers take some 20 a second

export class Player {
  constructor(store, words) {
    this.store = store;
    this.words = words;
    this.sections = [...document.querySelectorAll("section.step")];
    this.ids = this.sections.map((section) => section.dataset.step);
    this.titles = new Map([...document.querySelectorAll(".contents a[data-step]")].map((a) => [a.dataset.step, a.textContent]));
    this.place = new Place(this.sections.map(({ dataset }) => (
      { id: dataset.step, chapter: dataset.chapter, title: this.titles.get(dataset.step) })), store, words);
    this.views = new Map(); // number of a step → its view: the current one and its neighbours
    this.view = null;
    this.way = 1; // the direction that the learner goes
    this.later = new Later();
    this.home = new Map();
    for (const chapter of store.outline.chapters) {
      for (const view of chapter.views) for (const name of [...view.arrays, ...view.steps]) this.home.set(name, view.id);
    }
    this.chosen = new Map(); // axis name → index, kept from step to step
    this.panel = document.getElementById("number");
    this.digitButtons = [...document.querySelectorAll("[data-digits]")];
    this.notice = document.getElementById("notice");
    this.currentState = null; // the opened number: {of, index}
    this.reads = [];
    this.digits = 4;
    this.term = null; // the term of a sum that alone is lit
    this.pace = new Pace(words);
    this.frames = [];
    this.motion = new Motion({
      cells: (array, index) => this.view.cells(array, index),
      target: () => this.currentState && this.view.cells(this.currentState.of, this.currentState.index)[0],
      light: (reads) => this.mark(reads),
      pace: () => this.pace.term,
      moves: () => !this.pace.still,
    });
  }

  start() {
    // Without scripts an address leads to its section; with scripts the browser must not scroll there.
    for (const section of this.sections) section.removeAttribute("id");
    document.documentElement.classList.add("scripted");
    this.wire();
    this.arrive();
  }

  /** Go where the address leads, whoever wrote it; one that says nothing of digits is told of the chosen ones. */
  arrive() {
    this.noteAddress(location.hash);
    const state = parse(this.address);
    this.go(state);
    if (state.digits === null && this.digits !== 4) this.setAddress(this.withDigits(this.digits), true);
  }

  wire() {
    window.addEventListener("hashchange", () => {
      this.play(false);
      this.arrive();
    });
    for (const touch of ["pointerdown", "click", "keydown", "input", "wheel"]) {
      document.addEventListener(touch, (event) => this.touched(event), { capture: true, passive: true });
    }
    document.addEventListener("keydown", (event) => this.pressed(event));
    window.addEventListener("beforeprint", () => this.view.later.finish());
    const { bar, buttons } = this.place;
    bar.addEventListener("input", oncePerFrame(() => this.navigate(Number(bar.value) - 1, true)));
    for (const button of buttons) {
      button.addEventListener("click", () => this.navigate(this.current + Number(button.dataset.go)));
    }
    for (const button of this.digitButtons) {
      button.addEventListener("click", () => this.setDigits(button.dataset.digits === "all" ? "all" : Number(button.dataset.digits)));
    }
    this.playButton = document.getElementById("play");
    this.playButton.addEventListener("click", () => this.play(!this.playing));
    const help = document.getElementById("help");
    document.getElementById("help-open").addEventListener("click", () => help.showModal());
    this.stepAlong = oncePerFrame(() => {
      const by = this.pendingSteps;
      this.pendingSteps = 0;
      this.navigate(this.current + by, false, true);
    });
    this.pendingSteps = 0;
  }

  /** Show what the address says. An address that names nothing known shows the first step and says so. */
  go(state) {
    const known = state.step === null || this.ids.includes(state.step);
    const current = known && state.step !== null ? this.ids.indexOf(state.step) : 0;
    const number = state.of && this.numberAt(state);
    const shared = state.at[this.store.outline.letters[SHARED]];
    if (!state.of && shared !== undefined) this.chosen.set(SHARED, shared);
    this.digits = state.digits ?? this.digits;
    this.setNotice(!known ? this.words.unknown_link : state.of && !number ? this.words.unknown_number : "");
    if (number) this.keepChoice(state.of, number);
    else this.forgetNumber();
    if (number) this.currentState = { of: state.of, index: number };
    this.showStep(current);
    if (number) this.showNumber(state.of, number);
  }

  /** The index that an address means, or null when the recording has no such number. */
  numberAt({ of, at }) {
    if (!this.store.has(of)) return null;
    const shape = this.store.shape(of);
    const index = this.store.letters(of).map((letter) => at[letter] ?? 0);
    return index.every((i, axis) => i < shape[axis]) ? index : null;
  }

  setNotice(text) {
    if (this.notice.textContent !== text) this.notice.textContent = text;
  }

  navigate(to, replace = false, held = false) {
    const index = Math.max(0, Math.min(this.ids.length - 1, to));
    if (index === this.current) return;
    const address = this.currentState ? this.sameNumber(this.ids[index]) : write({ step: this.ids[index], digits: this.digits, at: {} }, []);
    this.setAddress(address, replace, held);
    this.rushing = held;
    this.go(parse(address));
    this.rushing = false;
    if (!replace) this.view.focus();
  }

  noteAddress(address) {
    clearTimeout(this.addressTimer);
    this.address = address;
    this.place.linkLanguages(address);
  }

  /** Write the address; while a key is held, now and then: browsers refuse a page that does it too often. */
  setAddress(address, replace = false, held = false) {
    this.noteAddress(address);
    const set = () => {
      this.addressSet = performance.now();
      history[replace ? "replaceState" : "pushState"](null, "", address);
    };
    if (held && performance.now() - this.addressSet < ADDRESS_PAUSE) this.addressTimer = setTimeout(set, ADDRESS_PAUSE);
    else set();
  }

  /** The reader has something in hand: whatever it is, the steps stay where they are. */
  touched(event) {
    if (this.playing && !isOwn(event)) this.play(false);
  }

  /** Go on by itself, a step at a time, until the end or until the reader touches anything. */
  play(on) {
    clearTimeout(this.playing);
    this.playing = null;
    if (on && this.current < this.ids.length - 1) {
      this.playing = setTimeout(() => {
        this.navigate(this.current + 1, true);
        this.play(true);
      }, STEP_PACES[document.getElementById("speed").value]);
    }
    const playing = Boolean(this.playing);
    this.playButton.setAttribute("aria-pressed", String(playing));
    const [sign, word] = this.playButton.children;
    sign.textContent = playing ? "❚❚" : "▶";
    word.textContent = playing ? this.words.pause : this.words.play;
  }

  /** With a number open, the next step opens its own at the same position, head and dimension. */
  sameNumber(view) {
    const { views } = this.store.outline.chapters.find((chapter) => chapter.views.some((v) => v.id === view));
    const { steps, arrays } = views.find((v) => v.id === view);
    const of = steps.at(-1) ?? arrays[0];
    const shape = this.store.shape(of);
    if (!this.store.size(of)) return write({ step: view, digits: this.digits, at: {} }, []);
    return this.link(of, this.store.array(of).axes.map((axis, i) => Math.min(this.chosen.get(axis) ?? 0, shape[i] - 1)), view);
  }

  showStep(index) {
    const changed = index !== this.current;
    if (changed) this.enter(index);
    else if (this.view.digits !== this.digits) this.view.drawNow();
    else this.view.follow();
    for (const button of this.digitButtons) button.setAttribute("aria-pressed", String(button.dataset.digits === String(this.digits)));
    if (!changed) return;
    this.place.show(index);
    // Everything is written; what follows needs the layout.
    window.scrollTo({ top: 0 });
    this.place.reveal();
    this.view.reveal();
    this.prepareNeighbours();
  }

  enter(index) {
    this.later.clear();
    for (const view of this.views.values()) view.later.pause();
    const left = this.view;
    const near = Math.abs(index - this.current) === 1 && !this.rushing && left?.drawn;
    left?.leave();
    this.way = index < this.current ? -1 : 1;
    this.current = index;
    this.view = this.viewAt(index);
    this.reads = [];
    this.frames = [];
    this.lit = this.litCells();
    if (this.rushing) this.dropOthers();
    this.view.enter(this.rushing);
    if (near) this.view.later.addFirst(() => left.makeReady()); // laid out again, as soon as the new step is painted
  }

  viewAt(index) {
    if (!this.views.has(index)) this.views.set(index, new StepView(this.sections[index], this));
    return this.views.get(index);
  }

  /** The steps on both sides are made ready while nothing else is to do; those farther away become text again. */
  prepareNeighbours() {
    const around = [this.current + this.way, this.current - this.way].filter((index) => this.sections[index]);
    const prepare = () => {
      const index = around.shift();
      if (index !== undefined) this.viewAt(index).prepare(prepare);
    };
    this.view.later.whenDone(() => {
      this.later.add(() => this.dropOthers(around));
      this.later.whenDone(prepare);
    });
  }

  dropOthers(kept = []) {
    for (const [index, view] of this.views) {
      if (index === this.current || kept.includes(index)) continue;
      view.drop();
      this.views.delete(index);
    }
  }

  /** Room for the opened number, or none: the width of the steps changes. */
  showPanel(shown) {
    if (this.panel.hidden !== shown) return;
    this.panel.hidden = !shown;
    document.documentElement.classList.toggle("number-open", shown);
    for (const view of this.views.values()) view.rest();
  }

  choose(axis, i) {
    this.chosen.set(axis, i);
    this.view.follow();
  }

  /** The index of the opened number when it belongs to `array`. */
  opened(array) {
    return this.currentState?.of === array ? this.currentState.index : null;
  }

  /** Without a number open, the tables show a place of `array`. */
  lookAt(array, index) {
    if (this.currentState) this.closeNumber();
    this.keepChoice(array, index);
    this.view.follow();
  }

  /** The shared choice came to rest: the address names it, and an opened number goes along. */
  settled(axis, i) {
    const { of, index } = this.currentState ?? {};
    const place = of ? this.store.array(of).axes.indexOf(axis) : 0;
    if (place < 0 || (of && index[place] === i)) return;
    const letters = of ? this.store.letters(of) : [this.store.outline.letters[axis]];
    const at = Object.fromEntries(letters.map((letter, j) => [letter, j === place ? i : index[j]]));
    const address = write({ step: this.ids[this.current], of, at, digits: this.digits }, letters);
    this.setAddress(address, true);
    if (of) this.go(parse(address));
  }

  keepChoice(of, index) {
    if (!of) return;
    this.store.array(of).axes.forEach((axis, i) => {
      for (const name of [axis, ...(SAME_CHOICE[axis] ?? [])]) this.chosen.set(name, index[i]);
    });
  }

  title(view) {
    return this.titles.get(view) ?? view;
  }

  link(array, index, view = this.home.get(array)) {
    const letters = this.store.letters(array);
    const at = Object.fromEntries(letters.map((letter, i) => [letter, index[i]]));
    return write({ step: view ?? this.ids[this.current], of: array, at, digits: this.digits }, letters);
  }

  /** Open a number: on this step when its array is shown here, else (`travel`) in the step that made it. */
  open(array, index, travel = false) {
    const letters = this.store.letters(array);
    const at = Object.fromEntries(letters.map((letter, i) => [letter, index[i]]));
    const here = !travel && this.view.tables.has(array) ? this.ids[this.current] : this.home.get(array) ?? this.ids[this.current];
    const address = write({ step: here, of: array, at, digits: this.digits }, letters);
    if (address !== this.address) this.setAddress(address);
    this.go(parse(address));
  }

  async showNumber(array, index) {
    this.reads = [];
    this.frames = [];
    this.motion.stop();
    this.showPanel(true);
    const mine = this.currentState;
    const context = { store: this.store, words: this.words, home: (name) => this.home.get(name), title: (view) => this.title(view),
      link: (name, at) => this.link(name, at), open: (name, at, travel) => this.open(name, at, travel), close: () => this.closeNumber(),
      wanted: () => this.currentState === mine, term: () => this.term, chooseTerm: (n) => this.chooseTerm(n), motion: () => this.motionControls() };
    try {
      const { reads, frames } = await showNumber(this.panel, array, index, context);
      if (this.currentState !== mine) return;
      this.reads = reads;
      this.frames = frames;
      this.motion.load(frames, (frame, n) => this.markTerm(frame.term ? n : null));
    } catch (error) {
      if (this.currentState !== mine) return;
      this.panel.replaceChildren(h("p", { class: "wrong", role: "alert" }, fill(this.words.load_failed, { file: error.message })));
    }
    this.mark();
  }

  /** Light one term of the sum alone; the choice holds from number to number. Chosen again, it is let go. */
  chooseTerm(n) {
    this.term = this.term === n ? null : n;
    this.markTerm(this.term);
    this.mark();
  }

  markTerm(n) {
    for (const row of this.panel.querySelectorAll("[data-term]")) {
      const chosen = Number(row.dataset.term) === n;
      row.classList.toggle("chosen", chosen);
      row.querySelector("button").setAttribute("aria-pressed", String(chosen));
      if (chosen) row.scrollIntoView({ block: "nearest" });
    }
  }

  /** Buttons that play the number term by term, each in its own step, slower, faster or without motion. */
  motionControls() {
    const { words } = this;
    const play = h("button", { type: "button", class: "chip", onclick: () => {
      if (this.motion.playing) this.motion.pause();
      else this.motion.play(() => { play.textContent = `▶ ${words.motion}`; this.mark(); });
      play.textContent = this.motion.playing ? `❚❚ ${words.pause}` : `▶ ${words.motion}`;
    } }, `▶ ${words.motion}`);
    const one = h("button", { type: "button", class: "chip", onclick: () => { this.motion.pause(); if (!this.motion.step()) { this.motion.stop(); this.motion.step(); } } }, words.motion_step);
    return h("div", { class: "pick" }, play, one, this.pace.select());
  }

  /** Light the opened number, and in the tables of its operands the numbers that it reads: by default the chosen term's. */
  mark(reads = this.frames[this.term]?.term ? this.frames[this.term].reads : this.reads) {
    this.lit = this.litCells(reads);
    this.view.mark();
  }

  /** array → places of the numbers that are read. */
  litCells(reads = []) {
    const lit = new Map();
    for (const { array, index } of reads) {
      if (!lit.has(array)) lit.set(array, new Set());
      lit.get(array).add(flatten(index, this.store.shape(array)));
    }
    return lit;
  }

  markTable(name, table) {
    const { of, index } = this.currentState ?? {};
    table.mark(of === name ? table.flat(index) : -1, this.lit.get(name) ?? new Set());
  }

  /** No number is open any more. */
  forgetNumber() {
    if (!this.currentState) return;
    this.currentState = null;
    this.reads = [];
    this.frames = [];
    this.motion.stop();
    this.showPanel(false);
    this.mark();
  }

  closeNumber() {
    const was = this.currentState;
    this.forgetNumber();
    this.setAddress(write({ step: this.ids[this.current], digits: this.digits, at: {} }, []));
    if (!was || !this.view.focusOn(was.of, was.index)) this.view.focus();
  }

  setDigits(digits) {
    this.digits = digits;
    const address = this.withDigits(digits);
    this.setAddress(address, true);
    this.go(parse(address));
  }

  /** The address of now with these digits. */
  withDigits(digits) {
    const state = parse(this.address);
    const letters = state.of && this.store.has(state.of) ? this.store.letters(state.of) : Object.keys(state.at);
    return write({ ...state, step: this.ids[this.current], digits }, letters);
  }

  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, dialog")) return;
    if (event.key === "Escape" && !this.panel.hidden) { this.closeNumber(); return; }
    if (event.key === "?") { document.getElementById("help").showModal(); return; }
    if (togglesPlay(event)) {
      this.play(!this.playing);
      event.preventDefault();
      return;
    }
    const by = { ArrowRight: 1, n: 1, ArrowLeft: -1, p: -1 }[event.key];
    if (by && event.repeat) {
      this.pendingSteps += by; // repeats must not queue up
      this.stepAlong();
    } else if (by) this.navigate(this.current + by);
    else if (event.key === "Home") this.navigate(0);
    else if (event.key === "End") this.navigate(this.ids.length - 1);
    else if (event.key === "[" || event.key === "]") this.navigate(this.chapterStart(event.key === "]" ? 1 : -1));
    else return;
    event.preventDefault();
  }

  chapterStart(direction) {
    const chapter = this.sections[this.current].dataset.chapter;
    const starts = this.sections.map((s, i) => (i === 0 || s.dataset.chapter !== this.sections[i - 1].dataset.chapter ? i : -1)).filter((i) => i >= 0);
    const now = starts.findIndex((i) => this.sections[i].dataset.chapter === chapter);
    return starts[Math.max(0, Math.min(starts.length - 1, now + direction))];
  }
}

/** Whether an event is for the controls of playing themselves, or touches nothing. */
function isOwn(event) {
  if (event.type === "wheel") return false;
  if (event.type === "keydown" && (UNFELT.has(event.key) || togglesPlay(event))) return true;
  const pressesPlay = event.type !== "keydown" || event.key === "Enter" || event.key === " ";
  return Boolean(event.target.closest(pressesPlay ? "#play, #speed" : "#speed"));
}

/** Space, where it presses nothing else. */
function togglesPlay(event) {
  return event.key === " " && !event.target.closest("input, button, a, select, summary, dialog, [tabindex='0']");
}

const page = JSON.parse(document.getElementById("page").textContent);
const store = await Store.open(page.route, page.root);
const player = new Player(store, page.words);
window.twoRoutes.start(() => player.start());
