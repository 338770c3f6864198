// What stands around a table: choosers for the axes that it does not show, a search, the file with all its numbers.

import { fill, h } from "dom";
import { format } from "format";

/** @typedef {{ axis: number, element: HTMLElement, show: (i: number) => void }} Picker */

/**
 * A control for an axis that is neither down nor across.
 * @param {string} word what the axis is called
 * @param {number} length
 * @param {(i: number) => string} label
 * @param {(i: number) => void} choose
 * @returns {Omit<Picker, "axis">}
 */
export function picker(word, length, label, choose) {
  return length > 12 ? slider(word, length, choose) : chips(word, Array.from({ length }, (_, i) => label(i)), choose);
}

/**
 * Buttons for the places on a short axis.
 * @param {string} word
 * @param {string[]} labels
 * @param {(i: number) => void} choose
 */
function chips(word, labels, choose) {
  const buttons = labels.map((label, i) => h("button", { type: "button", class: "chip", onclick: () => choose(i) }, label));
  return {
    element: h("div", { class: "pick", role: "group", "aria-label": word }, h("span", {}, word), buttons),
    show: (/** @type {number} */ chosen) => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen))),
  };
}

/**
 * A slider for the places on a longer one.
 * @param {string} word
 * @param {number} length
 * @param {(i: number) => void} choose
 */
function slider(word, length, choose) {
  const output = h("output");
  const input = h("input", { type: "range", min: 0, max: length - 1, "aria-label": word, oninput: () => choose(Number(input.value)) });
  return {
    element: h("div", { class: "pick" }, h("span", {}, word), input, output),
    show: (/** @type {number} */ chosen) => {
      input.value = String(chosen);
      output.value = String(chosen + 1);
    },
  };
}

/**
 * A form that finds a row, and a button that sorts.
 * @param {Words} words
 * @param {(typed: string) => string} find returns what to say
 * @param {() => boolean} sort returns whether the table is sorted now
 */
export function finder(words, find, sort) {
  const input = h("input", { type: "search", placeholder: words.find_row, "aria-label": words.find_row });
  const answer = h("span", { class: "soft", role: "status" });
  const button = h("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => {
    button.setAttribute("aria-pressed", String(sort()));
  } }, words.sort_values);
  return h("form", { class: "pick", onsubmit: (event) => { event.preventDefault(); answer.textContent = find(input.value.trimEnd()); } },
    input, h("button", { type: "submit", class: "chip" }, words.find), button, answer);
}

/**
 * The next row behind `after` whose number or label is what was typed, or else contains it; −1 when there is none.
 * @param {string} text
 * @param {number} rows
 * @param {string[] | undefined} labels
 * @param {number} after
 */
export function findRow(text, rows, labels, after) {
  if (/^\d+$/.test(text) && Number(text) < rows) return Number(text);
  if (!labels) return -1;
  const search = (/** @type {(label: string) => boolean} */ matches) => {
    for (let i = 1; i <= rows; i++) {
      const row = (after + i) % rows;
      if (matches(labels[row])) return row;
    }
    return -1;
  };
  const found = [text, `␣${text}`].map((whole) => search((label) => label === whole)).find((row) => row >= 0);
  return found ?? search((label) => label.includes(text));
}

/**
 * The first row: what the axes are called, and every column.
 * @param {string} axes
 * @param {string[]} names
 */
export function headRow(axes, names) {
  const corner = axes ? h("th", { scope: "col", class: "corner" }, axes) : h("td", { class: "corner" }); // no header without text
  return h("thead", {}, h("tr", { "aria-rowindex": 1 }, corner, names.map((name) => h("th", { scope: "col" }, name))));
}

/**
 * What is said under a table, and the button that saves it.
 * @param {string} note
 * @param {Words} words
 * @param {() => void} save
 */
export function tools(note, words, save) {
  return h("p", { class: "tools soft" }, note, " ", h("button", { type: "button", class: "link", onclick: save }, words.csv));
}

/**
 * Save the whole array, one row a line, every number in full.
 * @param {string} name
 * @param {import("store").Store} store
 */
export function saveCsv(name, store) {
  const { shape, axes, dtype } = store.array(name);
  const width = shape.at(-1) ?? 1;
  const lines = [`# ${name} ${axes.map((axis, i) => `${axis}=${shape[i]}`).join(" ")}`];
  for (let start = 0; start < store.size(name); start += width) {
    const row = [];
    for (let i = start; i < start + width; i++) row.push(format(store.flatValue(name, i), "all", dtype).replaceAll("−", "-").replace("∞", "inf"));
    lines.push(row.join(","));
  }
  const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  h("a", { href: url, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/**
 * What a table says of its digits and of its axes, when they are exchanged.
 * @param {{ rounded: boolean, axes: string }} about `axes`: "" where they stand as in the recording
 * @param {Digits} digits
 * @param {Words} words
 */
export function noteOf({ rounded, axes }, digits, words) {
  const note = rounded && digits !== "all" ? fill(words.rounded_note, { n: digits }) : "";
  return note + (axes ? ` ${fill(words.transposed, { axes })}` : "");
}
