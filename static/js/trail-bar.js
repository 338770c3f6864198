// The trail as breadcrumbs over the picture, and as a line on the map.

import { byId, h, svg } from "dom";
import { compact } from "format";
import { trailOf } from "trail";

export class TrailBar {
  /** @param {import("player").Player} player */
  constructor(player) {
    this.player = player;
    this.host = byId("trail", HTMLElement);
    /** @type {Place[]} */
    this.places = [];
    this.at = -1;
    /** @type {SVGElement | null} */
    this.line = null;
    this.asked = 0;
  }

  get active() {
    return this.at >= 0;
  }

  /** The trail of the opened number, or none any more. */
  async toggle() {
    if (this.active) { this.close(); return; }
    const place = this.player.opened.place ?? this.player.stage.place;
    if (!place) return;
    const mine = ++this.asked;
    this.host.hidden = false;
    this.host.replaceChildren(h("span", { class: "soft" }, this.player.words.loading));
    try {
      const { places, at } = await trailOf(this.player.store, place);
      if (mine !== this.asked) return;
      this.places = places;
      this.at = at;
    } catch {
      if (mine === this.asked) this.close();
      return;
    }
    this.draw();
  }

  close() {
    this.asked += 1;
    this.places = [];
    this.at = -1;
    this.host.hidden = true;
    this.host.replaceChildren();
    this.line?.remove();
    this.line = null;
  }

  /**
   * Along the trail.
   * @param {number} by
   */
  walk(by) {
    const to = this.places[this.at + by];
    if (!this.active || !to) return;
    this.at += by;
    this.player.open(to, true);
    this.mark();
  }

  draw() {
    const { player } = this;
    const { words, store } = player;
    const crumbs = this.places.map((place, i) => {
      const name = place.array.split(".").slice(-2).join(".");
      return h("li", {}, h("a", { href: player.link(place), title: `${place.array} [${place.index.join(", ")}]`, onclick: (event) => { event.preventDefault(); this.walk(i - this.at); } },
        `${name}${place.index.length ? `[${place.index.join(",")}]` : ""}`, h("small", {}, compact(store.value(place.array, place.index), 2, store.array(place.array).dtype))));
    });
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ run) => h("button", { type: "button", class: "chip", "aria-label": label, onclick: run }, text);
    this.host.replaceChildren(button("‹", words["trail.back"], () => this.walk(-1)), h("ol", { tabindex: 0, title: words["trail.how"] }, crumbs),
      button("›", words["trail.on"], () => this.walk(1)), button("✕", words["trail.close"], () => this.close()));
    this.drawLine();
    this.mark();
  }

  /** The crumb of the number that is shown. */
  mark() {
    const items = [...this.host.querySelectorAll("a")];
    items.forEach((item, i) => item.toggleAttribute("aria-current", i === this.at));
    items[this.at]?.setAttribute("aria-current", "true");
    const list = this.host.querySelector("ol");
    const item = items[this.at];
    if (list && item) list.scrollLeft = item.offsetLeft - list.clientWidth / 2 + item.offsetWidth / 2;
  }

  /** From module to module on the map, in the order of the trail. */
  drawLine() {
    const { map } = this.player.navigation;
    this.line?.remove();
    const points = this.places.map(({ array }) => map.middleOf(this.player.home.get(array) ?? "")).filter((point, i, all) => point && point !== all[i - 1]);
    const picture = map.map.querySelector("svg");
    if (!picture || points.length < 2) return;
    this.line = svg("polyline", { class: "trail-line", points: points.join(" "), "aria-hidden": "true" });
    picture.append(this.line);
  }
}
