// The stage: one picture for the step that is shown. What stands in it follows from the step, from what is chosen, from
// the room and from the time of its moves; so going back, dragging and stills come for nothing.

import { between, find } from "canvas";
import { h, loadFailed } from "dom";
import { drawingFor, hasOwn, namesFor } from "drawing";
import { Lens } from "lens";
import { MovesBar } from "moves-bar";
import { Pen } from "pen";
import { ease, Scene } from "scene";
import { Surface } from "surface";
import { Which } from "which";

/** @typedef {import("pen").Shape} Shape */

const TRAVEL = 420; // ms from one picture to the next
const STAYS = 500; // ms after which a reader has not merely passed by
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

export class Stage extends Surface {
  /**
   * @param {HTMLElement} host
   * @param {import("player").Player} player
   */
  constructor(host, player) {
    super(host, () => { if (this.id) this.rebuild(false); });
    this.player = player;
    this.canvas.tabIndex = 0;
    this.half = h("p", { class: "half", role: "status" });
    this.which = new Which((array) => this.look(array));
    this.lens = new Lens(player.words);
    host.replaceChildren(this.which.element, this.canvas, this.half, this.lens.element);
    this.bar = new MovesBar(player, (progress, say) => this.showMoment(progress, say));
    this.bar.place(host);
    /** @type {Shape[]} */
    this.shapes = []; // of the picture, which the canvas may still be on its way to
    /** @type {Scene | null} */
    this.scene = null;
    /** @type {import("drawing").Drawing | null} */
    this.drawing = null;
    this.wantsPlay = false;
    this.id = "";
    /** @type {View | null} */
    this.view = null;
    this.array = "";
    this.frame = this.rest = 0;
    // What tests and measurements read: `figure.stage.shapes`, the picture as it stands, and `.stage`.
    Object.defineProperties(host, { stage: { value: this }, shapes: { get: () => this.shapes } });
    this.listen();
  }

  listen() {
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.point(event));
    // A finger that is lifted has left, too: what it touched stays to be read.
    this.canvas.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") this.lens.hide(); });
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    document.addEventListener("pointerdown", (event) => { if (!this.bar.owns(event.target)) this.bar.stop(); }, true);
    document.addEventListener("wheel", () => this.bar.stop(), { passive: true, capture: true });
    document.addEventListener("keydown", (event) => { if (!this.bar.owns(event.target)) this.bar.stop(); }, true);
  }

  /**
   * The picture of a step, of the array that its opened number is in, else of its main one.
   * @param {string} id
   * @param {string} main
   * @param {View | null} view from how far it is seen
   * @param {boolean} hurries nothing travels while a key is held
   */
  show(id, main, view = null, hurries = false) {
    const step = this.player.store.steps.get(id);
    if (!step) return;
    const was = this.view;
    this.view = view;
    if (view) {
      const isSame = was === view && (view === "route" || this.player.chapterOf(this.id) === this.player.chapterOf(id));
      this.id = id;
      this.which.show([], "", this.player.words);
      if (!isSame) this.look("", was !== view);
      return;
    }
    const names = step.operations.length ? step.operations : step.arrays;
    const opened = this.player.opened.place?.array ?? "";
    const array = names.includes(opened) ? opened : this.best(step, names, main);
    const travels = this.id !== "" && !hurries && (this.id !== id || was !== view);
    this.id = id;
    this.which.show(names, array, this.player.words);
    this.look(array, travels);
  }

  /**
   * The array that a step's own drawing shows, else the one that it is about.
   * @param {StepOutline} step
   * @param {string[]} names
   * @param {string} main
   */
  best(step, names, main) {
    const { store, words } = this.player;
    const size = { width: this.width, height: this.height, digits: 3 };
    const own = names.filter((array) => store.operation(array) && hasOwn(new Scene({ store, words, step, array, index: store.shape(array).map(() => 0), ...size })));
    return own.includes(main) ? main : own.at(-1) ?? (names.includes(main) ? main : names.at(-1) ?? "");
  }

  /**
   * Look at one of the arrays of the step.
   * @param {string} array
   */
  look(array, travels = true) {
    this.array = array;
    this.lens.hide();
    this.bar.reset();
    this.rebuild(travels);
  }

  /** What is chosen has changed. */
  follow() {
    if (!this.scene || !this.array) return;
    const index = this.index();
    if (String(index) !== String(this.scene.index)) this.rebuild(true);
  }

  index() {
    const { store, choice, opened } = this.player;
    if (!store.has(this.array)) return [];
    const { axes, shape } = store.array(this.array);
    const chosen = opened.indexIn(this.array) ?? choice.within(store.array(this.array));
    // Where nothing is chosen yet: of a round the last position, which the next token is asked of; else one in the middle,
    // which tells more than the first, that sees itself alone.
    const isRound = (this.player.store.steps.get(this.id)?.round ?? null) !== null;
    const usual = (/** @type {number} */ n) => (isRound ? n - 1 : Math.floor(n / 2));
    return chosen.map((i, axis) => (axes[axis].endsWith("position") && choice.get(axes[axis]) === undefined && !opened.indexIn(this.array) ? usual(shape[axis]) : i));
  }

  /** The chosen number. @returns {Place | null} */
  get place() {
    return this.array && this.scene ? { array: this.array, index: this.scene.index } : null;
  }

  pause() {
    this.bar.stop();
    this.lens.hide();
  }

  /**
   * A new scene; its numbers are waited for.
   * @param {boolean} travels from what is shown now
   */
  async rebuild(travels) {
    if (!this.width) this.measure();
    const { store, words, digits } = this.player;
    const step = this.seen();
    if (!step || !this.width || !this.height) return;
    const scene = new Scene({ store, words, step, titles: this.player.texts, array: this.array, index: this.index(), width: this.width, height: this.height,
      digits: digits === "all" ? 6 : Math.min(digits, 4) });
    this.scene = scene;
    this.which.layers(scene, (index) => this.player.lookAt({ array: scene.array, index }), (axis, i) => this.player.settled(axis, i));
    this.drawing = null; // until the numbers are here
    this.host.dataset.picture = step.id;
    const drawing = drawingFor(scene);
    const names = namesFor(scene, drawing);
    const missing = names.filter((name) => !store.isReady(name));
    if (missing.length) {
      this.host.classList.add("waiting");
      try {
        await Promise.all(missing.map((name) => store.ready(name)));
      } catch (error) {
        if (this.scene === scene) this.half.replaceChildren(loadFailed(words, error));
        return;
      }
      if (this.scene !== scene) return;
    }
    this.host.classList.remove("waiting");
    this.drawing = drawing;
    this.bar.load(drawing.moves(scene));
    this.half.textContent = "";
    this.go(this.draw(), travels && !calm.matches);
    this.describe();
    if (this.wantsPlay) this.playMoves();
    clearTimeout(this.rest);
    if (drawing.later) this.rest = setTimeout(() => this.addLater(scene, drawing), STAYS);
  }

  /**
   * What a picture has more for those who stay. Where it cannot be loaded, the picture is as it was.
   * @param {Scene} scene
   * @param {import("drawing").Drawing} drawing
   */
  async addLater(scene, drawing) {
    const more = await drawing.later?.(scene).catch(() => false);
    if (more && this.scene === scene && !this.bar.playing) this.go(this.draw(), false);
  }

  /** Play the moves from the start; how long they take, ms. */
  playMoves() {
    this.wantsPlay = !this.drawing; // as soon as its numbers are here
    if (this.wantsPlay) return 0;
    this.bar.set(0);
    this.bar.play(this.bar.length);
    return this.bar.length;
  }

  /**
   * What the picture is of: the step, or the chapter or the route around it as if it were one.
   * @returns {StepOutline | undefined}
   */
  seen() {
    const { store } = this.player;
    if (!this.view) return store.steps.get(this.id);
    const of = this.view === "chapter" ? this.player.chapterOf(this.id) : "";
    return { id: this.view, kind: this.view, of, operations: [], arrays: [], place: 0, at: {} };
  }

  draw() {
    const { scene, drawing } = this;
    if (!scene || !drawing) return [];
    const pen = new Pen(this.width, this.height);
    drawing.draw(pen, scene);
    return pen.shapes;
  }

  /**
   * From the shapes of now to others.
   * @param {Shape[]} shapes
   * @param {boolean} travels
   */
  go(shapes, travels) {
    cancelAnimationFrame(this.frame);
    const from = this.shapes;
    this.shapes = shapes;
    if (!travels || !from.length) { this.paint(shapes); return; }
    const start = performance.now();
    const tick = (/** @type {number} */ now) => {
      const part = Math.min(1, (now - start) / TRAVEL);
      this.paint(between(from, shapes, ease(part)));
      if (part < 1) this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  /**
   * The picture at a moment of its moves.
   * @param {Map<string, number>} progress
   * @param {string} say
   */
  showMoment(progress, say) {
    if (!this.scene || !this.drawing) return;
    this.scene.progress = progress;
    if (this.half.textContent !== say) this.half.textContent = say;
    this.go(this.draw(), false);
  }

  /** What the picture shows, for those who do not see it; its numbers are in the tables of the panel. */
  describe() {
    const { scene, player } = this;
    if (!scene) return;
    const { store } = player;
    const chosen = store.has(this.array) && store.size(this.array) ? `${this.array}[${scene.index}] = ${scene.number(store.value(this.array, scene.index), 4, store.array(this.array).dtype)}` : "";
    this.canvas.setAttribute("aria-label", [player.title(this.id), chosen].filter(Boolean).join(" · "));
  }

  /** @param {MouseEvent} event */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    return find(this.shapes, event.clientX - box.left, event.clientY - box.top, "pointerType" in event && event.pointerType === "touch" ? 14 : 4);
  }

  /** @param {PointerEvent} event */
  point(event) {
    const shape = this.under(event);
    this.canvas.classList.toggle("over", Boolean(shape));
    if (shape?.place && this.scene) this.lens.show(shape, this.shapes, this.scene);
    else this.lens.hide();
  }

  /**
   * A number is chosen; one that is chosen already is opened.
   * @param {MouseEvent} event
   */
  click(event) {
    const { place, link } = this.under(event) ?? {};
    if (link) location.hash = link;
    else if (place) this.choose(place);
  }

  /** @param {Place} place */
  choose(place) {
    const isChosen = place.array === this.array && String(place.index) === String(this.scene?.index);
    if (isChosen || place.array !== this.array) this.player.open(place);
    else this.player.lookAt(place);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const { scene } = this;
    if (!scene || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter") this.choose({ array: this.array, index: scene.index });
    else if (!this.step(event.key, event.shiftKey)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Shift and an arrow choose the neighbour.
   * @param {string} key
   * @param {boolean} shift
   */
  step(key, shift) {
    const { scene } = this;
    const { shape } = this.player.store.array(this.array);
    const axis = key === "ArrowLeft" || key === "ArrowRight" ? shape.length - 1 : key === "ArrowUp" || key === "ArrowDown" ? shape.length - 2 : -1;
    if (!scene || axis < 0 || !shift) return false;
    const by = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
    this.player.lookAt({ array: this.array, index: scene.index.with(axis, Math.max(0, Math.min(shape[axis] - 1, scene.index[axis] + by))) });
    return true;
  }
}
