// The map beside the steps: lights the node that the current step belongs to, and keeps it in sight.
// Where a step is on the map its section says: direction, pass, place, and the parameter that it updates.

import { all } from "dom";
import { keep, kept } from "kept";

const narrow = matchMedia("(max-width: 820px)");
const inThousands = new Intl.NumberFormat("en-US");
const EDGE = 60; // px at the bottom of the window that the buttons take

/** What the map shows for a step: which nodes, in which direction, in which pass. @typedef {{ mode: string, pass: string, array: string, lights: (node: HTMLElement) => boolean }} Shown */

export class NetworkMap {
  /** @param {HTMLElement[]} sections one for each step */
  constructor(sections) {
    this.side = all(document, ".side")[0];
    this.fold = /** @type {HTMLDetailsElement} */ (all(this.side, ".map-fold")[0]);
    this.map = all(this.fold, ".map")[0];
    this.nodes = all(this.side, ".node");
    this.modules = this.nodes.filter((node) => node.classList.contains("step-node"));
    this.modes = all(this.side, "[data-mode]");
    this.steps = new Map(sections.map(({ dataset }) => [dataset.step ?? "", dataset]));
    const forward = [...this.steps.values()].filter(({ mode, pass }) => mode === "forward" && pass);
    /** @type {Map<string, DOMStringMap>} */
    this.places = new Map(); // pass and place → the first step there
    for (const step of forward.reverse()) this.places.set(key(step.pass, step.place), step);
    this.first = this.map.dataset.pass ?? "";
    this.isGeneration = this.map.dataset.kind === "round";
    this.whole = this.first; // the pass that is shown while a step is of none
    this.pass = ""; // the pass that is shown
    /** @type {Set<HTMLElement>} */
    this.lit = new Set();
    this.wire();
  }
  wire() {
    const { fold, side } = this;
    for (const button of all(side, "button[data-show]")) {
      button.addEventListener("click", () => { this.turnTo(button.dataset.show ?? ""); keep("side", button.dataset.show ?? ""); });
    }
    fold.addEventListener("toggle", () => this.reveal());
    this.turnTo(kept("side") ?? "map");
  }

  /**
   * Map, list of steps, or neither: then the picture has the room.
   * @param {string} what
   */
  turnTo(what) {
    this.side.dataset.show = what;
    document.documentElement.classList.toggle("folded", what === "none");
    for (const button of all(this.side, "button[data-show]")) {
      button.setAttribute("aria-pressed", String(button.dataset.show === what));
    }
    this.reveal();
  }

  /**
   * @param {string} id of a step
   * @returns {Shown}
   */
  read(id) {
    const step = this.steps.get(id) ?? {};
    const { mode = "", place, of, makes = "" } = step;
    if (of) return { mode, pass: this.first, array: makes, lights: (node) => has(node.dataset.parameters, of) };
    return { mode, pass: mode === "forward" ? this.passOf(step) : this.first, array: "",
      lights: (node) => Boolean(place && node.dataset.place === place) || has(node.dataset.before, id) };
  }

  /**
   * The step's pass, if it is a whole one; else the pass in which generation was.
   * @param {DOMStringMap} step
   */
  passOf({ pass, place }) {
    const ends = [this.modules[0], this.modules[this.modules.length - 1]];
    if (!pass || !place || ends.some((node) => !this.places.has(key(pass, node.dataset.place)))) return this.whole;
    if (this.isGeneration) this.whole = pass;
    return pass;
  }

  /**
   * Light the node of a step; links and shapes of all nodes become those of the step's pass.
   * @param {string} id
   * @param {import("store").Store} store
   */
  light(id, store) {
    const shown = this.read(id);
    const before = this.lit;
    this.lit = new Set(this.nodes.filter(shown.lights));
    const changed = shown.pass === this.pass ? this.nodes.filter((node) => this.lit.has(node) || before.has(node)) : this.nodes;
    this.pass = shown.pass;
    for (const node of changed) {
      const isLit = this.lit.has(node);
      if (this.modules.includes(node)) this.enterPass(node);
      if (isLit) node.dataset.lit = shown.mode;
      else delete node.dataset.lit;
      if (isLit) node.setAttribute("aria-current", node.dataset.step === id ? "step" : "true");
      else node.removeAttribute("aria-current");
      this.writeShape(node, shown, store);
    }
    for (const word of this.modes) word.toggleAttribute("data-here", this.lit.size > 0 && word.dataset.mode === shown.mode);
  }

  /**
   * A node leads to its step in this pass. Where the pass has none (no dropout in evaluation) it is pale.
   * @param {HTMLElement} node
   */
  enterPass(node) {
    const step = this.places.get(key(this.pass, node.dataset.place))?.step;
    node.classList.toggle("absent", !step);
    if (!step || node.dataset.step === step) return;
    node.dataset.step = step;
    node.setAttribute("href", `#step=${step}`);
  }

  /**
   * The shape of what the node makes in this pass; on the way back of its gradient, at an update of the parameter.
   * @param {HTMLElement} node
   * @param {Shown} shown
   * @param {import("store").Store} store
   */
  writeShape(node, shown, store) {
    const text = node.querySelector(".shape");
    if (!text) return;
    const lit = this.lit.has(node);
    const array = lit && shown.array ? shown.array : this.arrayOf(node);
    const lengths = array && store.has(array) ? store.shape(array) : [];
    const shape = lengths.map((length) => inThousands.format(length)).join("×");
    const said = shown.mode === "backward" && lit ? `↑ ${shape}` : shape;
    if (text.textContent !== said) text.textContent = said;
  }

  /**
   * What a node makes in this pass; inputs and tables are those of the first one.
   * @param {HTMLElement} node
   */
  arrayOf({ dataset: { place, array } }) {
    if (place) return this.places.get(key(this.pass, place))?.makes;
    return this.pass === this.first && !this.isGeneration ? array : undefined;
  }

  /**
   * The middle of the node that a step belongs to, in the units of the map: "x,y"; nothing for a step without one.
   * @param {string} id
   */
  middleOf(id) {
    const { lights } = this.read(id);
    const box = this.nodes.find((node) => this.map.contains(node) && lights(node))?.querySelector("rect");
    if (!box) return "";
    const [x, y, w, hgt] = ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)));
    return `${x + w / 2},${y + hgt / 2}`;
  }

  /** Scroll the box around the map or the list, and nothing else, until the current place is in sight. */
  reveal() {
    const isList = this.side.dataset.show === "steps" && !narrow.matches;
    const boxes = isList ? all(this.side, ".contents") : [this.map, this.fold];
    const place = isList ? boxes[0].querySelector("a[aria-current]") : this.lit.values().next().value;
    const box = boxes.find((one) => one.scrollHeight > one.clientHeight + 1);
    if (!place || !box) return;
    const outer = box.getBoundingClientRect();
    const height = Math.min(outer.bottom, innerHeight - EDGE) - outer.top;
    const top = place.getBoundingClientRect().top - outer.top;
    if (top < 40 || top > height - 60) box.scrollTop += top - height / 3;
  }
}

/**
 * @param {string | undefined} pass
 * @param {string | undefined} place
 */
function key(pass, place) {
  return `${pass} ${place}`;
}

/**
 * @param {string | undefined} list words with blanks between them
 * @param {string} word
 */
function has(list, word) {
  return Boolean(list) && ` ${list} `.includes(` ${word} `);
}
