// The numbers under a pointer or finger, where the cells of a picture are too small for them.

import { h } from "dom";
import { exact } from "format";

/** @typedef {import("pen").Shape} Shape */

const GAP = 14; // px from the pointed cell

export class Lens {
  /** @param {Words} words */
  constructor(words) {
    this.words = words;
    this.element = h("div", { class: "lens", "aria-hidden": "true", hidden: true });
    this.shown = "";
  }

  hide() {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.shown = "";
  }

  /**
   * @param {Shape} shape
   * @param {Shape[]} shapes
   * @param {import("scene").Scene} scene
   */
  show(shape, shapes, scene) {
    const { place } = shape;
    if (!place) return;
    const key = `${place.array} ${place.index}`;
    if (key !== this.shown) this.fill(place, shape, shapes, scene);
    this.shown = key;
    this.element.hidden = false;
    const { offsetWidth: w, offsetHeight: tall } = this.element;
    const [x, y] = beside(shape, w, tall, scene);
    this.element.style.transform = `translate(${x}px, ${y + this.top()}px)`;
  }

  /** How far below the top of the figure the picture begins. */
  top() {
    return this.element.parentElement?.querySelector("canvas")?.offsetTop ?? 0;
  }

  /**
   * @param {Place} place
   * @param {Shape} shape
   * @param {Shape[]} shapes
   * @param {import("scene").Scene} scene
   */
  fill(place, shape, shapes, scene) {
    const { store } = scene;
    const { axes, dtype } = store.array(place.array);
    const value = store.value(place.array, place.index);
    const names = axes.map((axis, i) => `${this.words[`axis.${axis}`] ?? axis} ${scene.label(place.array, i, place.index[i])}`);
    const small = shape.kind === "cell" && !shape.text;
    this.element.replaceChildren(h("b", {}, exact(value, dtype)), h("span", {}, names.join(" · ")),
      small ? this.neighbours(place, shapes, scene) : "");
  }

  /**
   * The numbers around it, three by three.
   * @param {Place} place
   * @param {Shape[]} shapes
   * @param {import("scene").Scene} scene
   */
  neighbours(place, shapes, scene) {
    const { store } = scene;
    const shape = store.shape(place.array);
    if (shape.length < 2) return "";
    const seen = new Set(shapes.flatMap((other) => (other.place?.array === place.array ? [String(other.place.index)] : [])));
    const at = (/** @type {number} */ dy, /** @type {number} */ dx) => {
      const index = place.index.with(-2, place.index[place.index.length - 2] + dy).with(-1, place.index[place.index.length - 1] + dx);
      return seen.has(String(index)) ? scene.number(store.value(place.array, index), 3, store.array(place.array).dtype) : "";
    };
    return h("div", { class: "around" }, [-1, 0, 1].flatMap((dy) => [-1, 0, 1].map((dx) => h("i", { class: dx || dy ? null : "here" }, at(dy, dx)))));
  }
}

/**
 * Above what is pointed at, which a finger does not cover; else below it, else at the side with more room.
 * @param {Shape} shape
 * @param {number} w of the lens
 * @param {number} tall
 * @param {{ width: number, height: number }} picture
 */
function beside(shape, w, tall, { width, height }) {
  const isDot = shape.kind === "dot";
  const [left, top, right, bottom] = isDot ? [shape.x - shape.w, shape.y - shape.w, shape.x + shape.w, shape.y + shape.w] : [shape.x, shape.y, shape.x + shape.w, shape.y + shape.h];
  const x = Math.max(4, Math.min(width - w - 4, (left + right) / 2 - w / 2));
  if (top - tall - GAP >= 4) return [x, top - tall - GAP];
  if (bottom + GAP + tall <= height - 4) return [x, bottom + GAP];
  return [left > width - right ? Math.max(4, left - w - GAP) : Math.min(width - w - 4, right + GAP), Math.max(4, Math.min(height - tall - 4, top))];
}
