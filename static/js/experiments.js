// The page of experiments: the moments of a training under a slider, and one of several models at a time.

import { all, first } from "dom";

const PACE = 140; // ms a moment, while it plays
const TRUE_MINUS = "\u2212";

/** What was recorded at every moment: templates/attention.html, site_builder/experiments_heads.py.
 * @typedef {object} Moments
 * @property {number[]} updates
 * @property {number[][]} readings of each figure that is told, its values
 * @property {number[]} decimals of each of them
 * @property {number[]} starts of each matrix, its first weight
 * @property {string[]} weights of each moment, 16-bit thousandths in base64
 * @property {string[][]} [written] beside the rows of each matrix, where that changes: a sign a row
 */

export function startExperiments() {
  for (const box of all(document, "[data-moments]")) new Slider(box);
  for (const box of all(document, "[data-readers]")) chooseReader(box);
}

/** The experiment that the address names, in view; within another page it stands alone. */
export function showAsked() {
  const name = new URLSearchParams(location.hash.slice(1)).get("experiment");
  const section = all(document, "[data-experiment]").find(({ dataset }) => dataset.experiment === name);
  section?.classList.add("asked");
  section?.scrollIntoView();
}

/** The matrices, readings and marks of a moment. */
class Slider {
  /** @param {HTMLElement} box */
  constructor(box) {
    /** @type {Moments} */
    this.moments = JSON.parse(box.dataset.moments ?? "");
    this.input = /** @type {HTMLInputElement} */ (first(box, "[data-moment]"));
    this.update = first(box, "[data-update]");
    this.readings = all(box, "[data-reading]");
    this.matrices = all(box, ".cells").map((cells) => all(cells, "rect"));
    this.rows = all(box, ".matrix").map((matrix) => all(matrix, "[data-due]"));
    this.marks = all(box, ".moment");
    this.timer = 0;
    this.input.addEventListener("input", () => {
      clearInterval(this.timer);
      this.show();
    });
    first(box, "[data-play]").addEventListener("click", () => this.play());
    this.show();
  }

  /** From the first moment to the last. */
  play() {
    clearInterval(this.timer);
    this.input.value = "0";
    this.show();
    this.timer = setInterval(() => {
      this.input.stepUp();
      this.show();
      if (this.input.value === this.input.max) clearInterval(this.timer);
    }, PACE);
  }

  show() {
    const { updates, readings, decimals, starts, weights, written } = this.moments;
    const at = Number(this.input.value);
    const update = updates[at].toLocaleString("en");
    this.input.setAttribute("aria-valuetext", update);
    this.update.textContent = update;
    this.readings.forEach((reading, i) => {
      reading.textContent = readings[i][at].toFixed(decimals[i]).replace("-", TRUE_MINUS);
    });
    const bytes = Uint8Array.from(atob(weights[at]), (sign) => sign.charCodeAt(0));
    const thousandths = new DataView(bytes.buffer);
    this.matrices.forEach((rects, i) => rects.forEach((rect, cell) => {
      rect.setAttribute("fill-opacity", String(thousandths.getUint16(2 * (starts[i] + cell), true) / 1000));
    }));
    written?.forEach((texts, i) => this.rows[i].forEach((sign, row) => {
      sign.textContent = texts[at][row];
      sign.classList.toggle("wrong", texts[at][row] !== sign.dataset.due);
    }));
    const done = updates[at] / updates[updates.length - 1];
    for (const mark of this.marks) {
      const [left, right] = [Number(mark.dataset.left), Number(mark.dataset.right)];
      mark.setAttribute("transform", `translate(${left + done * (right - left)},0)`);
    }
  }
}

/**
 * Of the models that read the sentences the one whose button is pressed.
 * @param {HTMLElement} box
 */
function chooseReader(box) {
  const buttons = all(box, "button");
  const readers = all(box, ".reader");
  buttons.forEach((button, chosen) => button.addEventListener("click", () => {
    buttons.forEach((each, i) => each.setAttribute("aria-pressed", String(i === chosen)));
    readers.forEach((each, i) => each.classList.toggle("chosen", i === chosen));
  }));
}
