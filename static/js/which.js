// Which of a step's arrays the picture shows: a step may make several.

import { h } from "dom";

export class Which {
  /** @param {(array: string) => void} look */
  constructor(look) {
    this.look = look;
    this.element = h("div", { class: "which", role: "group" });
  }

  /**
   * @param {string[]} names
   * @param {string} chosen
   * @param {Words} words
   */
  show(names, chosen, words) {
    this.element.hidden = names.length < 2;
    this.element.setAttribute("aria-label", words.makes);
    if (names.length < 2) { this.element.replaceChildren(); return; }
    const short = tails(names);
    if (names.length > 5) this.element.replaceChildren(this.select(names, short, chosen, words));
    else this.element.replaceChildren(...names.map((name, i) => this.button(name, short[i], chosen)));
  }

  /**
   * @param {string} name
   * @param {string} text
   * @param {string} chosen
   */
  button(name, text, chosen) {
    return h("button", { type: "button", class: "chip", title: name, "aria-pressed": String(name === chosen), onclick: () => {
      for (const other of this.element.children) other.setAttribute("aria-pressed", String(other.getAttribute("title") === name));
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
 * What tells names apart: the parts after those that all of them begin with.
 * @param {string[]} names
 */
function tails(names) {
  const parts = names.map((name) => name.split("."));
  let same = 0;
  while (parts.every((part) => part.length > same + 1 && part[same] === parts[0][same])) same += 1;
  return parts.map((part) => part.slice(same).join("."));
}
