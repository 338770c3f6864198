// Try other settings on the logits of a round. Nothing here is recorded, and it says so.

import { fill, h, loadFailed } from "dom";
import { format } from "format";
import { Sampling } from "sampling";
import { uniformNumber } from "special";

const DIGITS = 7; // of probabilities: the trained model's are near 1
const MOST_UNIFORM = 0.999999;
/** @type {Map<string, { sampling: Sampling, settings: Settings }>} */
const kept = new Map(); // logits → their sampling (sorting fifty thousand once is enough) and its settings

/** @typedef {import("sampling").Settings} Settings */
/** @typedef {ReturnType<Sampling["run"]>} Result */
/** The number of a round, and the names of its arrays. @typedef {{ round: string, logits: string, uniform: string, scaled: string, candidates: string, token: string }} Round */
/** @typedef {{ store: import("store").Store, words: Words }} Context */

/**
 * Fill `box` with controls for the round that its attributes name.
 * @param {HTMLElement} box
 * @param {Context} context
 */
export async function playground(box, { store, words }) {
  const round = /** @type {Round & DOMStringMap} */ (box.dataset);
  box.replaceChildren(h("p", { class: "soft" }, words.loading));
  try {
    await Promise.all([round.logits, round.uniform, round.token].map((name) => store.ready(name)));
  } catch (error) {
    box.replaceChildren(loadFailed(words, error));
    return;
  }
  const [, length] = store.shape(round.logits);
  const recorded = recordedSettings(round, store);
  const mine = kept.get(round.logits) ?? {
    sampling: new Sampling(store.outline.sampling, { length, at: (id) => store.flatValue(round.logits, id) }),
    settings: { ...recorded },
  };
  kept.set(round.logits, mine);
  const label = (/** @type {number} */ id) => store.label(round.logits, 1, id);
  new Playground(mine.sampling, mine.settings, recorded, { words, label, number: Number(round.round), token: store.flatValue(round.token, 0) }).draw(box);
}

/**
 * @param {Round} round
 * @param {import("store").Store} store
 * @returns {Settings}
 */
function recordedSettings({ scaled, candidates, uniform }, store) {
  return { temperature: store.made(scaled).settings.temperature, k: store.size(candidates), p: 1,
    uniform: store.flatValue(uniform, 0) };
}

class Playground {
  /**
   * @param {Sampling} sampling
   * @param {Settings} settings
   * @param {Settings} recorded
   * @param {{ words: Words, label: (id: number) => string, number: number, token: number }} about the round
   */
  constructor(sampling, settings, recorded, about) {
    this.sampling = sampling;
    this.settings = settings;
    this.recorded = recorded;
    this.about = about;
    const { words } = about;
    this.bar = h("div", { class: "cumulative", "aria-hidden": "true" });
    this.rows = h("tbody");
    this.verdict = h("p", { role: "status" });
    this.ranges = [
      this.range("temperature", words["try.temperature"], [0.1, 3, 0.05]),
      this.range("k", words["try.top_k"], [1, sampling.ids.length, 1]),
      this.range("p", words["try.top_p"], [0.01, 1, 0.01]),
      this.range("uniform", words["try.uniform"], [0, MOST_UNIFORM, 0.000001], (value) => format(value, 6)),
    ];
    this.seed = h("input", { type: "number", min: 0, step: 1, size: 8, oninput: () => this.drawAgain() });
  }

  /** @param {HTMLElement} box */
  draw(box) {
    const { words } = this.about;
    const reset = h("button", { type: "button", class: "chip", onclick: () => this.reset() }, words["try.reset"]);
    const heads = ["axis.candidate", "try.logit_scaled", "try.probability", "try.cumulative"].map((key) => h("th", { scope: "col" }, words[key]));
    this.wireBar();
    box.replaceChildren(
      h("p", { class: "tag" }, words["try.title"]), h("p", { class: "computed" }, words["try.computed"]),
      h("div", { class: "controls" }, this.ranges.map(({ element }) => element),
        h("label", { class: "range" }, h("span", {}, words["try.seed"]), this.seed), reset),
      this.bar, this.verdict,
      h("div", { class: "window", tabindex: 0, role: "group", "aria-label": words["try.title"] },
        h("table", {}, h("thead", {}, h("tr", {}, heads)), this.rows)));
    this.update();
  }

  /**
   * @param {keyof Settings} name
   * @param {string} text
   * @param {[number, number, number]} span least, most, and from one to the next
   * @param {(value: number) => string} show
   */
  range(name, text, [min, max, step], show = String) {
    const output = h("output", {}, show(this.settings[name]));
    const input = h("input", { type: "range", min, max, step, value: this.settings[name],
      oninput: () => this.set(name, Number(input.value)) });
    return { input, output, name, show, element: h("label", { class: "range" }, h("span", {}, text), input, output) };
  }

  /**
   * @param {keyof Settings} name
   * @param {number} value
   */
  set(name, value) {
    this.settings[name] = value;
    this.update();
  }

  /** The uniform number that another seed gives this round. */
  drawAgain() {
    if (!this.seed.validity.valid || this.seed.value === "") return;
    this.set("uniform", uniformNumber(Number(this.seed.value), this.about.number));
  }

  reset() {
    Object.assign(this.settings, this.recorded);
    this.seed.value = "";
    this.update();
  }

  wireBar() {
    const { bar } = this;
    const drag = (/** @type {PointerEvent} */ event) => {
      const { left, width } = bar.getBoundingClientRect();
      this.set("uniform", Math.max(0, Math.min(MOST_UNIFORM, (event.clientX - left) / width)));
    };
    bar.addEventListener("pointerdown", (event) => { bar.setPointerCapture(event.pointerId); drag(event); });
    bar.addEventListener("pointermove", (event) => { if (bar.hasPointerCapture(event.pointerId)) drag(event); });
  }

  update() {
    const { settings, recorded, about: { words, label, token } } = this;
    for (const { input, output, name, show } of this.ranges) {
      input.value = String(settings[name]);
      output.textContent = show(settings[name]);
    }
    const result = this.sampling.run(settings);
    drawBar(this.bar, result, settings.uniform, label);
    this.rows.replaceChildren(...result.ids.map((id, c) => row(result, c, label(id))));
    const same = this.ranges.every(({ name }) => settings[name] === recorded[name]);
    const wins = fill(words["try.wins"], { token: label(result.token), probability: format(result.probabilities[result.choice], DIGITS) });
    const compared = fill(result.token === token ? words["try.same"] : words["try.other"], { token: label(token) });
    this.verdict.textContent = [wins, compared, ...(same ? [words["try.recorded_settings"]] : [])].join(" ");
    this.verdict.className = result.token === token ? "" : "other";
  }
}

/**
 * @param {Result} result
 * @param {number} c
 * @param {string} name
 */
function row({ probabilities, choice, scaled, cumulative }, c, name) {
  const look = c === choice ? "now" : probabilities[c] === 0 ? "out" : null;
  return h("tr", { class: look }, h("th", { scope: "row" }, name),
    [format(scaled[c], 4), format(probabilities[c], DIGITS), format(cumulative[c], DIGITS)].map((text) => h("td", {}, text)));
}

/**
 * The interval from 0 to 1, cut where the cumulative probabilities say, and where the number fell.
 * @param {HTMLElement} bar
 * @param {Result} result
 * @param {number} uniform
 * @param {(id: number) => string} label
 */
function drawBar(bar, { ids, probabilities, choice }, uniform, label) {
  const pieces = ids.map((id, c) => {
    const piece = h("span", { class: `piece${c === choice ? " now" : ""}`, title: label(id) }, probabilities[c] > 0.1 ? label(id) : "");
    piece.style.flexGrow = String(probabilities[c]);
    return piece;
  });
  const needle = h("i", {});
  needle.style.left = `${uniform * 100}%`;
  bar.replaceChildren(...pieces, needle);
}
