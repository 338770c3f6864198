// Which of the steps that do the same is shown: a list for each axis along which they differ.

import { byId, fill, first, h } from "dom";

export class Picker {
  /**
   * @param {import("main-line").MainLine} line
   * @param {Words} words
   * @param {(step: string) => void} choose
   */
  constructor(line, words, choose) {
    this.line = line;
    this.words = words;
    this.choose = choose;
    this.host = byId("variants", HTMLElement);
    this.said = first(this.host, "p");
    /** @type {FamilyOutline | null} */
    this.family = null;
    /** @type {Map<string, HTMLSelectElement>} */
    this.lists = new Map(); // by axis
    this.step = "";
  }

  /** @param {string} step */
  show(step) {
    this.step = step;
    const { family, at } = this.line.member(step);
    if (family !== this.family) this.enter(family);
    for (const [axis, list] of this.lists) {
      /** @type {HTMLElement} */ (list.parentElement).hidden = !(axis in at);
      list.value = String(at[axis]);
    }
  }

  /**
   * Other steps: other lists. A list that has the focus stays where it is.
   * @param {FamilyOutline} family
   */
  enter(family) {
    const { words } = this;
    const axes = Object.entries(family.axes);
    this.family = family;
    this.host.hidden = family.steps.length < 2;
    this.host.dataset.variants = family.steps.join(" ");
    this.said.textContent = fill(words["variants.line"], {
      axes: axes.map(([axis, { length: n }]) => fill(words[`variants.${axis}`], { n })).join(words.comma) });
    this.lists = new Map(axes.map(([axis, values]) => [axis, h("select",
      { "aria-label": words[`variant.${axis}`], onchange: (/** @type {Event} */ event) => this.pick(axis, event) },
      values.map((value) => h("option", { value }, this.label(axis, value))))]));
    this.host.replaceChildren(...[...this.lists].map(([axis, list]) => h("label", {}, `${words[`variant.${axis}`]} `, list)), this.said);
  }

  /**
   * @param {string} axis
   * @param {Event} event
   */
  pick(axis, event) {
    this.choose(this.line.pick(this.step, axis, /** @type {HTMLSelectElement} */ (event.target).value));
  }

  /**
   * @param {string} axis
   * @param {string | number} value
   */
  label(axis, value) {
    return this.words[`${axis === "text" ? "pass" : axis}.${value}`] ?? String(value);
  }
}
