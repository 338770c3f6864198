// Where the learner is, as everything around the step says it: bar, lists of steps and chapters, map, buttons.

import { fill } from "dom";
import { lightMap, revealOnMap } from "network-map";

export class Place {
  /** steps: [{id, chapter, title}] in order. */
  constructor(steps, store, words) {
    Object.assign(this, { steps, store, words });
    this.bar = document.getElementById("progress");
    this.bar.max = steps.length;
    this.nextTitle = document.getElementById("next-title");
    this.buttons = [...document.querySelectorAll("[data-go]")];
    this.contents = document.querySelector(".contents");
    this.links = new Map([...this.contents.querySelectorAll("a[data-step]")].map((link) => [link.dataset.step, link]));
    this.chapters = new Map([...document.querySelectorAll(".chapters a")].map((link) => [link.dataset.chapter, link]));
    this.languages = [...document.querySelectorAll("a[data-language]")].map((link) => ({ link, file: link.href.split("#")[0] }));
    this.contents.querySelectorAll("details[open]").forEach((details) => { details.open = false; });
  }

  /** Write all that depends on the step. Nothing is measured here, so that the page is laid out once. */
  show(number) {
    const { id, chapter, title } = this.steps[number];
    const next = this.steps[number + 1];
    this.bar.value = number + 1;
    this.bar.setAttribute("aria-valuetext", `${fill(this.words.step_of, { n: number + 1, total: this.steps.length })}${this.words.colon}${title}`);
    document.title = `${title} · ${this.words.site}`;
    this.nextTitle.textContent = next?.title ?? "";
    for (const button of this.buttons) button.disabled = !(button.dataset.go === "1" ? next : number > 0);
    this.link?.removeAttribute("aria-current");
    this.link = this.links.get(id);
    this.link.setAttribute("aria-current", "step");
    this.enter(chapter);
    lightMap(id, this.store);
  }

  enter(chapter) {
    const details = this.link.closest("details");
    if (details !== this.details && this.details) this.details.open = false;
    this.details = details;
    details.open = true;
    this.moved = chapter !== this.chapter;
    if (!this.moved) return;
    this.chapters.get(this.chapter)?.removeAttribute("data-here");
    this.chapters.get(chapter).setAttribute("data-here", "");
    this.chapter = chapter;
  }

  /** Scroll the lists and the map, and nothing else, until the place is in sight. */
  reveal() {
    if (this.moved) {
      const item = this.chapters.get(this.chapter).parentElement;
      item.parentElement.scrollLeft = item.offsetLeft - 40;
    }
    revealOnMap();
    if (!this.link.offsetParent) return;
    const top = this.link.getBoundingClientRect().top - this.contents.getBoundingClientRect().top;
    if (top < 40 || top > this.contents.clientHeight - 60) this.contents.scrollTop += top - this.contents.clientHeight / 3;
  }

  /** The other language leads to the same place. */
  linkLanguages(address) {
    for (const { link, file } of this.languages) link.href = file + address;
  }
}
