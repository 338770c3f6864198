// The picture of an array with one axis beside the updates, or none: curves, and their values below.

import { Curves, sample } from "curves";
import { choices, fill, h } from "dom";
import { format } from "format";

/** A curve for the array, or for each place on its second axis. */
export class Lines {
  /**
   * @param {import("slices").Slices} slices
   * @param {import("charts").Series} series
   * @param {import("charts").Setting} setting
   * @param {HTMLElement} box
   */
  constructor(slices, series, setting, box) {
    const { words, digits, open } = series.context;
    this.slices = slices;
    this.series = series;
    this.words = words;
    const many = slices.axes.length > 0;
    const lines = Array.from({ length: slices.size }, (_, i) => (
      { values: slices.line(i), name: many ? slices.label(0, i) : slices.name, look: many ? i : -1 }));
    const { told, ...extras } = this.evaluation(lines[0].values);
    this.curves = new Curves(series, slices, { lines, ...extras, log: setting.log });
    this.cells = lines.map((_, i) => h("button", { type: "button", class: "link",
      onclick: () => open({ array: slices.name, index: slices.index(series.at, i) }) }));
    this.now = h("th", { scope: "col", class: "now" });
    const head = (/** @type {string} */ text) => h("th", { scope: "col" }, text);
    const rows = lines.map(({ values, name, look }, i) => h("tr", {},
      h("th", { scope: "row" }, many ? sample(look) : null, ` ${name}`), h("td", { class: "now" }, this.cells[i]),
      [values[0], values[values.length - 1]].map((value) => h("td", {}, slices.text(value, digits)))));
    box.append(
      choices(words["series.scale"], [words["series.linear"], words["series.log"]], setting.log ? 1 : 0, (i) => {
        setting.log = i === 1;
        this.curves.draw({ log: setting.log });
      }),
      this.curves.box,
      h("div", { class: "window" }, h("table", { class: "values" },
        h("thead", {}, h("tr", {}, many ? head(words[`axis.${slices.axes[0]}`]) : h("td"), this.now,
          head(this.heading(0)), head(this.heading(slices.count - 1)))),
        h("tbody", {}, rows))),
      h("p", { class: "soft" }, told));
  }

  /** @param {number} update */
  heading(update) {
    return `${this.words["axis.update"]} ${update + 1}`;
  }

  /**
   * By the series that begins with the recorded loss: the losses after the last update, and the yardstick ln V.
   * @param {Float64Array} values
   * @returns {Partial<import("curves").Options> & { told: string }}
   */
  evaluation(values) {
    const { slices, words } = this;
    const { summary, labels } = slices.store.outline;
    if (slices.axes.length || values[0] !== Math.fround(summary.loss)) return { told: "" };
    const marks = ["train", "validation"].map((text) => (
      { value: Math.fround(summary[`${text}_loss`]), name: words[`series.${text}`] }));
    const [train, validation] = marks.map(({ value }) => slices.text(value));
    const told = fill(words["series.evaluated"], { train, validation });
    const n = labels.vocabulary?.length;
    if (!n) return { marks, told };
    const guide = { value: Math.log(n), name: "ln V" };
    const yardstick = { n: n.toLocaleString("en"), value: format(guide.value, 6, "float64") };
    return { marks, guide, told: `${told} ${fill(words["series.yardstick"], yardstick)}` };
  }

  follow() {
    const { at } = this.series;
    this.now.textContent = this.heading(at);
    this.cells.forEach((cell, i) => { cell.textContent = this.slices.text(this.slices.value(at, i)); });
    this.curves.follow();
  }
}
