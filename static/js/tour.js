// A tour of the route: stop after stop, each a picture with something chosen and a sentence or two. It goes on by key,
// or by itself until the reader touches anything.

import { all, fill, h } from "dom";
import { keep, kept } from "kept";

const READ = 62; // ms a letter
const PAUSE = 1500; // ms after the moves and the reading

export class Tour {
  /**
   * @param {import("player").Player} player
   * @param {Stop[]} stops
   */
  constructor(player, stops) {
    this.player = player;
    this.stops = stops;
    this.at = -1;
    this.playing = false;
    this.timer = 0;
    const { words } = player;
    this.count = h("p", { class: "soft" });
    this.title = h("h2", { tabindex: -1 });
    this.text = h("div", { class: "sentence" });
    this.play = h("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => this.toggle() },
      h("span", { "aria-hidden": "true" }, "▶"), h("span", { class: "word" }, ` ${words["tour.play"]}`));
    const go = (/** @type {number} */ by, /** @type {(Node | string)[]} */ text, className = "") => h("button", { type: "button", class: className, onclick: () => this.go(this.at + by) }, ...text);
    this.back = go(-1, [h("span", { "aria-hidden": "true" }, "←"), h("span", { class: "word" }, ` ${words.back}`)]);
    this.next = go(1, [`${words.next} →`], "onward");
    this.out = h("button", { type: "button", class: "chip", onclick: () => this.leave() }, words["tour.leave"]);
    this.element = h("section", { class: "tour", "aria-live": "polite", hidden: true }, this.count, this.title, this.text,
      h("div", { class: "tour-go" }, this.play, this.out, this.back, this.next));
    document.addEventListener("keydown", (event) => this.press(event), true);
    document.addEventListener("pointerdown", (event) => { if (!this.element.contains(/** @type {Node} */ (event.target))) this.stop(); }, true);
    for (const button of all(document, "[data-tour]")) {
      button.hidden = !stops.length;
      button.addEventListener("click", () => this.go(0));
    }
  }

  /** Whether there is a tour that this reader has met on no page. */
  get isNew() {
    return this.stops.length > 0 && kept("tour") === null;
  }

  get active() {
    return this.at >= 0;
  }

  /**
   * Show what an address says of the tour: a stop by its name, or none.
   * @param {string | null} name
   */
  follow(name) {
    const at = name === null ? -1 : Math.max(0, this.stops.findIndex((stop) => stop.name === name));
    if (at === this.at || !this.stops.length) return;
    this.at = at;
    document.documentElement.classList.toggle("touring", this.active);
    this.element.hidden = !this.active;
    if (!this.active) { this.stop(); this.element.removeAttribute("data-stop"); return; }
    keep("tour", "met");
    this.show(this.stops[at]);
  }

  /** @param {Stop} stop */
  show(stop) {
    const { words } = this.player;
    this.element.dataset.stop = stop.name;
    const round = this.player.store.steps.get(stop.step)?.round ?? null;
    this.count.textContent = [fill(words["tour.count"], { n: this.at + 1, total: this.stops.length }),
      ...(round === null || stop.view === "route" ? [] : [fill(words["tour.round"], { n: round })])].join(" · ");
    this.title.textContent = stop.title;
    this.text.innerHTML = stop.say; // the builder's prose: what a recording says is escaped in it
    this.back.disabled = this.at === 0;
    this.out.hidden = this.at === this.stops.length - 1; // where going on leads there too
    this.next.textContent = this.at === this.stops.length - 1 ? words["tour.end"] : `${words.next} →`;
  }

  /**
   * The choices of a stop, before its step is shown.
   * @param {string | null} name
   */
  choose(name) {
    const stop = this.stops.find((one) => one.name === name);
    const { choice, store } = this.player;
    const axes = Object.entries(store.outline.letters);
    for (const [letter, i] of Object.entries(stop?.at ?? {})) {
      for (const [axis, own] of axes) if (own === letter) choice.set(axis, i);
    }
  }

  /**
   * Go to a stop; after the last one the tour is over.
   * @param {number} at
   */
  go(at) {
    if (at >= this.stops.length) { this.leave(); return; }
    const stop = this.stops[Math.max(0, at)];
    this.player.visit(stop);
  }

  leave() {
    this.stop();
    this.player.leaveTour();
  }

  toggle() {
    if (this.playing) { this.stop(); return; }
    this.playing = true;
    this.play.setAttribute("aria-pressed", "true");
    this.wait();
  }

  stop() {
    this.playing = false;
    clearTimeout(this.timer);
    this.play.setAttribute("aria-pressed", "false");
  }

  /** By itself: the moves, the time to read, the next stop. */
  wait() {
    clearTimeout(this.timer);
    if (!this.playing) return;
    const letters = this.text.textContent.length * (/[\u4e00-\u9fff]/.test(this.text.textContent) ? 3 : 1);
    const time = Math.max(letters * READ, this.player.stage.playMoves()) + PAUSE;
    this.timer = setTimeout(() => {
      if (!this.playing) return;
      if (this.at === this.stops.length - 1) this.stop();
      else { this.go(this.at + 1); this.wait(); }
    }, time);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (!this.active || event.altKey || event.ctrlKey || event.metaKey || (event.target instanceof Element && event.target.closest("input, select, dialog"))) return;
    const by = { ArrowRight: 1, ArrowLeft: -1, n: 1, p: -1 }[event.key];
    if (by) { this.stop(); this.go(this.at + by); }
    else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation(); // the picture that came is not stopped by the key that brought it
  }
}
