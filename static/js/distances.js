// Four distances: the route, the chapter, the step, the number. Enter goes nearer, Escape farther.

import { byId, fill, h } from "dom";
import { write } from "state";

export class Distances {
  /** @param {import("player").Player} player */
  constructor(player) {
    this.player = player;
    this.host = byId("distances", HTMLElement);
    /** @type {View | null} */
    this.view = null;
  }

  /**
   * Title, sentence and the way here, for what is seen now.
   * @param {View | null} view
   */
  show(view) {
    const { player } = this;
    const { current: id, words, line } = player;
    this.view = view;
    document.documentElement.dataset.view = view ?? "step";
    const chapter = player.texts.where(this.firstOf(id));
    const number = line.number(id) + 1;
    const steps = [[words["distance.route"], "route"], [chapter, "chapter"], [fill(words.step_of, { n: number, total: line.stops.length }), null]];
    this.host.replaceChildren(...steps.flatMap(([text, own], i) => [i ? " › " : "", own === view ? h("span", { "aria-current": "true" }, text)
      : h("a", { href: write({ step: id, view: /** @type {View | null} */ (own), digits: player.digits }) }, text)]));
    const title = byId("step-title", HTMLElement);
    const sentence = byId("sentence", HTMLElement);
    if (!view) this.head(title, sentence, player.title(id), player.step.section.querySelector(".say .sentence") ?? player.step.section.querySelector(".say p"));
    else if (view === "chapter") {
      const opening = player.texts.content(this.firstOf(id)).querySelector(".opening p:not(.tag)");
      this.head(title, sentence, chapter, opening);
    } else {
      const [stop] = player.tour.stops;
      const text = h("template");
      text.innerHTML = stop?.say ?? "";
      this.head(title, sentence, stop?.title ?? words[player.store.outline.route], text.content.querySelector("p"));
    }
  }

  /** The first step of a step's chapter, which tells of it. @param {string} step */
  firstOf(step) {
    const { store } = this.player;
    return store.outline.chapters.find(({ id }) => id === this.player.chapterOf(step))?.steps[0].id ?? step;
  }

  /**
   * @param {HTMLElement} title
   * @param {HTMLElement} sentence
   * @param {string} text
   * @param {Element | null} said
   */
  head(title, sentence, text, said) {
    title.textContent = text;
    sentence.replaceChildren(...(said?.cloneNode(true).childNodes ?? []));
  }

  /**
   * From the number to the step, to the chapter, to the route, or back; false where there is nothing farther.
   * @param {number} by 1: farther, −1: nearer
   */
  go(by) {
    const order = /** @type {(View | null)[]} */ ([null, "chapter", "route"]);
    const at = order.indexOf(this.view) + by;
    if (at < 0 || at >= order.length) return false;
    this.player.see(order[at]);
    return true;
  }
}
