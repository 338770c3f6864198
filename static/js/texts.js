// The steps as text, as they came with the page. What several say to the letter is written once: here it is put together.

import { all, first, h } from "dom";

export class Texts {
  /**
   * @param {HTMLElement[]} sections one for each step
   * @param {import("store").Store} store
   * @param {Map<string, string>} home array → the step that made it
   */
  constructor(sections, store, home) {
    this.texts = new Map(sections.map((section) => [section.dataset.step ?? "", first(section, "noscript")]));
    this.store = store;
    this.home = home;
    /** @type {Map<string, string>} */
    this.titles = new Map();
  }

  /** The element that holds a step's text. @param {string} step */
  of(step) {
    return /** @type {HTMLElement} */ (this.texts.get(step));
  }

  /** @param {string} step */
  title(step) {
    if (!this.titles.has(step)) {
      const found = this.texts.get(step)?.textContent.match(/<h2[^>]*>([^<]*)/);
      this.titles.set(step, found ? parse(found[1]).textContent : step);
    }
    return /** @type {string} */ (this.titles.get(step));
  }

  /** The name of the chapter that a step stands in, as it says itself. @param {string} step */
  where(step) {
    const found = this.texts.get(step)?.textContent.match(/class="where">([^<]*?) · /);
    return found ? parse(found[1]).textContent : step;
  }

  /** A step, whole. @param {string} step */
  content(step) {
    /** @type {Map<string, DocumentFragment>} */
    const parsed = new Map();
    const read = (/** @type {string} */ id) => {
      if (!parsed.has(id)) parsed.set(id, parse(this.of(id).textContent));
      return /** @type {DocumentFragment} */ (parsed.get(id));
    };
    const content = read(step);
    for (const place of all(content, "[data-words]")) {
      place.replaceWith(...all(read(place.dataset.words ?? ""), ".say, .misread").map((one) => one.cloneNode(true)));
    }
    for (const part of all(content, "[data-like]")) {
      const { like = "" } = part.dataset;
      this.complete(part, first(read(this.home.get(like) ?? ""), `[data-array="${CSS.escape(like)}"]`));
    }
    return content;
  }

  /**
   * A part gets the formula, the symbols and the source of another one; the arrays and lengths are its own.
   * @param {HTMLElement} part
   * @param {HTMLElement} like
   */
  complete(part, like) {
    const copy = (/** @type {string} */ selector) => /** @type {HTMLElement | null} */ (like.querySelector(selector)?.cloneNode(true) ?? null);
    const array = part.dataset.array ?? "";
    const names = [array, ...Object.values(this.store.made(array).operands)];
    const lengths = part.querySelector(".legend");
    const legend = copy(".legend");
    const items = [...legend?.children ?? []];
    names.forEach((name, i) => items[i].lastElementChild?.replaceWith(this.link(name)));
    if (lengths) {
      for (const item of items.slice(names.length)) item.remove();
      legend?.append(...lengths.children);
      lengths.remove();
    }
    first(part, "h3").after(...[copy(".formula"), legend].filter((one) => one !== null));
    part.append(...[copy(".source")].filter((one) => one !== null));
  }

  /** @param {string} array */
  link(array) {
    const step = this.home.get(array);
    const name = h("code", {}, array);
    return step ? h("a", { href: `#step=${step}` }, name) : name;
  }
}

/** @param {string} text */
function parse(text) {
  const template = h("template");
  template.innerHTML = text;
  return template.content;
}
