// Which of a step's arrays the picture shows, and which layer of it: a step may make several, and each may have heads.

import { TIMES } from "choice";
import { h } from "dom";

export class Which {
  /** @param {(array: string) => void} look */
  constructor(look) {
    this.look = look;
    this.element = h("div", { class: "which", role: "group" });
    /** @type {HTMLElement[]} */
    this.arrays = [];
    /** @type {{ key: string, parts: HTMLElement[], set: (index: number[]) => void } | null} */
    this.slider = null; // kept while it is dragged
  }

  /**
   * @param {string[]} names
   * @param {string} chosen
   * @param {Words} words
   */
  show(names, chosen, words) {
    this.element.setAttribute("aria-label", words.makes);
    const short = called(tails(names), words);
    this.arrays = names.length < 2 ? [] : names.length > 5 ? [this.select(names, short, chosen, words)] : names.map((name, i) => this.button(name, short[i], chosen));
    this.put([]);
  }

  /** @param {HTMLElement[]} layers */
  put(layers) {
    this.element.replaceChildren(...this.arrays, ...layers);
    this.element.hidden = !this.element.children.length;
  }

  /**
   * The layers of the array, such as its heads: one is shown, the others are a press away; along a training a slider.
   * @param {import("scene").Scene} scene
   * @param {(index: number[]) => void} choose
   * @param {(axis: string, i: number) => void} settle
   */
  layers(scene, choose, settle) {
    const { store, words, array, index } = scene;
    if (!store.has(array)) { this.put([]); return; }
    const { axes, shape } = store.array(array);
    const key = `${scene.step.id} ${array}`;
    if (this.slider?.key !== key) this.slider = null;
    this.put(axes.flatMap((axis, i) => (TIMES.includes(axis) ? this.time(scene, key, i, choose, settle) : i < axes.length - 2 ? layer(axis, i) : [])));
    /** @param {string} axis @param {number} i @returns {HTMLElement[]} */
    function layer(axis, i) {
      if (shape[i] < 2) return [];
      const name = words[`axis.${axis}`] ?? axis;
      const options = Array.from({ length: shape[i] }, (_, k) => h("option", { value: k, selected: k === index[i] }, `${name} ${scene.label(array, i, k)}`));
      if (shape[i] > 4) return [h("select", { "aria-label": name, onchange: (event) => choose(index.with(i, Number(event.target.value))) }, options)];
      return options.map((option, k) => h("button", { type: "button", class: "chip", "aria-pressed": String(k === index[i]),
        onclick: () => choose(index.with(i, k)) }, option.textContent));
    }
  }

  /**
   * @param {import("scene").Scene} scene
   * @param {string} key
   * @param {number} i which axis
   * @param {(index: number[]) => void} choose
   * @param {(axis: string, i: number) => void} settle
   */
  time(scene, key, i, choose, settle) {
    const { store, words, array, index } = scene;
    const { axes, shape } = store.array(array);
    const name = words[`axis.${axes[i]}`] ?? axes[i];
    if (!this.slider) {
      const says = h("output", { class: "mono" });
      const range = h("input", { type: "range", min: 0, max: shape[i] - 1, "aria-label": name, oninput: () => choose(now.with(i, Number(range.value))),
        onchange: () => settle(axes[i], Number(range.value)) });
      let now = index;
      this.slider = { key, parts: [range, says], set: (index) => {
        now = index;
        range.value = String(index[i]);
        says.textContent = `${name} ${scene.label(array, i, index[i])} / ${scene.label(array, i, shape[i] - 1)}`;
        range.setAttribute("aria-valuetext", says.textContent);
      } };
    }
    this.slider.set(index);
    return this.slider.parts;
  }

  /**
   * @param {string} name
   * @param {string} text
   * @param {string} chosen
   */
  button(name, text, chosen) {
    return h("button", { type: "button", class: "chip", title: name, "aria-pressed": String(name === chosen), onclick: () => {
      for (const other of this.arrays) other.setAttribute("aria-pressed", String(other.getAttribute("title") === name));
      this.look(name);
    } }, text);
  }

  /**
   * @param {string[]} names
   * @param {string[]} short
   * @param {string} chosen
   * @param {Words} words
   */
  select(names, short, chosen, words) {
    const select = h("select", { "aria-label": words.makes, onchange: () => this.look(select.value) },
      names.map((name, i) => h("option", { value: name, selected: name === chosen }, short[i])));
    return select;
  }
}

/**
 * In words, where there are words for all of them and they differ.
 * @param {string[]} tails
 * @param {Words} words
 */
function called(tails, words) {
  const said = tails.map((tail) => words[`picture.name.${tail}`] ?? words[`picture.name.${tail.split(".").at(-1)}`] ?? tail);
  return new Set(said).size === said.length ? said : tails;
}

/**
 * What tells names apart: the parts after those that all of them begin with; a number says nothing by itself.
 * @param {string[]} names
 */
function tails(names) {
  const parts = names.map((name) => name.split("."));
  let same = 0;
  while (parts.length && parts.every((part) => part.length > same && part[same] === parts[0][same] && !/^\d+$/.test(part[same + 1] ?? ""))) same += 1;
  return parts.map((part) => part.slice(same).join(".") || (part.at(-1) ?? ""));
}
