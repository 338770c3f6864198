// The home page: both routes at work, played from recorded numbers until the reader takes over.

import { all } from "dom";
import { Pace } from "motion";
import { MovesBar } from "moves-bar";
import * as route from "drawings/route";
import { Pen } from "pen";
import { Scene } from "scene";
import { Store } from "store";
import { Surface } from "surface";

/** The route as a whole is shown as if it were a step. */
const ROUTE = { id: "route", kind: "route", operations: [], arrays: [], place: 0, at: {} };
const REST = 2600; // ms at the end, before it begins again

/** A route that moves by itself. */
class Moving {
  /**
   * @param {HTMLElement} host
   * @param {Store} store
   * @param {Words} words
   */
  constructor(host, store, words) {
    this.store = store;
    this.words = words;
    this.surface = new Surface(host, () => this.rebuild());
    this.surface.canvas.setAttribute("aria-label", host.dataset.label ?? "");
    const pace = new Pace(words);
    this.bar = new MovesBar({ words, pace }, (progress) => this.show(progress));
    host.replaceChildren(this.surface.canvas, this.bar.element);
    Object.assign(host, { moving: this }); // for tests: its shapes
    /** @type {Scene | null} */
    this.scene = null;
    this.timer = 0;
    this.taken = !pace.moves; // over by the reader, or not to move at all
    host.addEventListener("pointerdown", () => this.take());
    host.addEventListener("keydown", () => this.take());
  }

  take() {
    this.taken = true;
    clearTimeout(this.timer);
  }

  rebuild() {
    const { width, height } = this.surface;
    if (!width || !height) return;
    this.scene = new Scene({ store: this.store, words: this.words, step: ROUTE, array: "", index: [], width, height, digits: 3 });
    this.bar.load(route.moves(this.scene));
    this.draw();
    if (!this.taken) this.again();
  }

  /** From the start, and once more after a rest, as long as nobody has touched it. */
  again() {
    clearTimeout(this.timer);
    this.bar.stop();
    this.bar.set(0);
    this.bar.play(this.bar.length);
    this.timer = setTimeout(() => { if (!this.taken) this.again(); }, this.bar.length + REST);
  }

  /** @param {Map<string, number>} progress */
  show(progress) {
    if (!this.scene) return;
    this.scene.progress = progress;
    this.draw();
  }

  draw() {
    if (!this.scene) return;
    const pen = new Pen(this.surface.width, this.surface.height);
    route.draw(pen, this.scene);
    this.surface.paint(pen.shapes);
  }
}

/**
 * @param {Words} words
 * @param {string} root
 */
export async function startHome(words, root) {
  for (const host of all(document, "figure[data-route]")) {
    const store = await Store.open(`home-${host.dataset.route}-outline`, root);
    await store.load(route.arrays(new Scene({ store, words, step: ROUTE, array: "", index: [], width: 1, height: 1, digits: 3 })));
    const moving = new Moving(host, store, words);
    if (moving.surface.measure()) moving.rebuild();
  }
}
