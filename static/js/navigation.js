// Where the learner is, as everything around the step says it: bar, lists of steps and chapters, map, buttons.

import { all, byId, fill, first } from "dom";
import { Picker } from "picker";

export class Navigation {
  /**
   * @param {import("player").Player} player
   * @param {import("network-map").NetworkMap} map
   */
  constructor(player, map) {
    const { line, store, words } = player;
    this.player = player;
    this.line = line;
    this.map = map;
    this.store = store;
    this.words = words;
    this.picker = new Picker(line, words, (step) => player.navigate(step, { stay: true }));
    this.bar = byId("progress", HTMLInputElement);
    this.bar.max = String(line.stops.length);
    this.nextTitle = byId("next-title", HTMLElement);
    this.buttons = /** @type {HTMLButtonElement[]} */ (all(document, "button[data-go]"));
    this.contents = first(document, ".contents");
    this.links = new Map(all(this.contents, "a[data-step]").map((link) => [link.dataset.step, link]));
    this.chapters = new Map(all(document, ".chapters a").map((link) => [link.dataset.chapter, link]));
    const languages = /** @type {HTMLAnchorElement[]} */ (all(document, "a[data-language]"));
    this.languages = languages.map((link) => ({ link, file: link.href.split("#")[0] }));
    /** @type {HTMLElement | undefined} */
    this.link = undefined; // in the list of steps
    /** @type {HTMLDetailsElement | null} */
    this.details = null; // the unfolded chapter
    this.chapter = "";
    this.moved = false; // whether the chapter is another one than before
    for (const details of all(this.contents, "details[open]")) /** @type {HTMLDetailsElement} */ (details).open = false;
  }

  /**
   * Write all that depends on the step. Nothing is measured here, so that the page is laid out once.
   * @param {string} id
   */
  show(id) {
    const { line, player } = this;
    const number = line.number(id);
    const title = player.title(id);
    const next = line.from(id, 1);
    this.bar.value = String(number + 1);
    this.bar.setAttribute("aria-valuetext", `${fill(this.words.step_of, { n: number + 1, total: line.stops.length })}${this.words.colon}${title}`);
    document.title = `${title} · ${this.words.site}`;
    this.nextTitle.textContent = next === id ? "" : player.title(next);
    if (this.nextTitle.parentElement) this.nextTitle.parentElement.hidden = next === id;
    for (const button of this.buttons) button.disabled = line.from(id, Number(button.dataset.go)) === id;
    this.link?.removeAttribute("aria-current");
    this.link = this.links.get(line.stops[number]);
    this.link?.setAttribute("aria-current", line.stops[number] === id ? "step" : "true");
    this.enter(player.chapterOf(line.stops[number]));
    this.picker.show(id);
    this.map.light(id, this.store);
  }

  /** @param {string} chapter */
  enter(chapter) {
    const details = this.link?.closest("details") ?? null;
    if (details !== this.details && this.details) this.details.open = false;
    this.details = details;
    if (details) details.open = true;
    this.moved = chapter !== this.chapter;
    if (!this.moved) return;
    this.chapters.get(this.chapter)?.removeAttribute("data-here");
    this.chapters.get(chapter)?.setAttribute("data-here", "");
    this.chapter = chapter;
  }

  /** Scroll the lists and the map, and nothing else, until the place is in sight. */
  reveal() {
    const item = this.chapters.get(this.chapter)?.parentElement;
    if (this.moved && item?.parentElement) item.parentElement.scrollLeft = item.offsetLeft - 40;
    this.map.reveal();
    if (!this.link?.offsetParent) return;
    const top = this.link.getBoundingClientRect().top - this.contents.getBoundingClientRect().top;
    if (top < 40 || top > this.contents.clientHeight - 60) this.contents.scrollTop += top - this.contents.clientHeight / 3;
  }

  /**
   * The other languages lead to the same place.
   * @param {string} address
   */
  linkLanguages(address) {
    for (const { link, file } of this.languages) link.href = file + address;
  }
}
