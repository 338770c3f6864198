// What the tools of lessons have in common: a kind's equations over arrays of the reader's own, fields for numbers.

import { h } from "dom";
import { Computation } from "evaluate";

/** `say`: the tool's own words. @typedef {{ say: (key: string) => string, kinds: Record<string, Equation[]> }} Workshop */
/** @typedef {(element: HTMLElement, start: any, workshop: Workshop) => void} Mount */
/** Numbers with their shape, row by row. @typedef {{ shape: number[], values: number[] }} Numbers */

/**
 * What a kind of operation makes of `operands`: every number by the kind's own equations.
 * @param {Equation[]} equations
 * @param {Record<string, Numbers>} operands
 * @param {number[]} shape
 * @param {Record<string, number>} [settings]
 * @returns {Numbers}
 */
export function made(equations, operands, shape, settings = {}) {
  const source = {
    shape: (/** @type {string} */ name) => operands[name].shape,
    value: (/** @type {string} */ name, /** @type {number[]} */ index) => operands[name].values[flat(operands[name].shape, index)],
  };
  const names = Object.fromEntries(Object.keys(operands).map((name) => [name, name]));
  const computation = new Computation({ equations, operands: names, settings, shape }, source);
  const count = shape.reduce((product, n) => product * n, 1);
  return { shape, values: Array.from({ length: count }, (_, i) => computation.value(places(shape, i))) };
}

/** @param {number[]} shape @param {number[]} index */
function flat(shape, index) {
  return index.reduce((at, i, axis) => at * shape[axis] + i, 0);
}

/** @param {number[]} shape @param {number} at */
function places(shape, at) {
  return shape.map((n, axis) => Math.floor(at / shape.slice(axis + 1).reduce((product, m) => product * m, 1)) % n);
}

/**
 * A field for one number; what is none leaves the old one and is marked.
 * @param {number} value
 * @param {string} label
 * @param {(value: number) => void} set
 */
export function field(value, label, set) {
  const input = h("input", { type: "text", inputmode: "decimal", size: 4, value: whole(value), "aria-label": label, autocomplete: "off" });
  input.addEventListener("input", () => {
    const number = typed(input.value);
    input.setAttribute("aria-invalid", String(number === null));
    if (number !== null) set(number);
  });
  return input;
}

/** The number that a text says, whichever minus and decimal sign; null where it is none. @param {string} text */
export function typed(text) {
  const signed = text.trim().replaceAll("\u2212", "-");
  const plain = /^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$/.test(signed) ? signed.replaceAll(",", "") : signed.replace(/^([+-]?\d+),(\d+)$/, "$1.$2");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) && Number.isFinite(Number(plain)) ? Number(plain) : null;
}

/** A number with every digit that it has: a field holds what is counted with. @param {number} value */
function whole(value) {
  return String(value).replace("-", "\u2212");
}

/** @param {number} value */
export function said(value, digits = 3) {
  if (value === -Infinity) return "\u2212∞";
  return String(Number(value.toPrecision(digits))).replace("-", "\u2212");
}

/** Bytes in the unit that suits: 128 KiB, 2.1 GB where it is no whole number of KiB or MiB. @param {number} bytes */
export function inBytes(bytes) {
  const even = ["KiB", "MiB", "GiB"].findLast((_, i) => bytes % 1024 ** (i + 1) === 0 && bytes >= 1024 ** (i + 1) && bytes < 1024 ** (i + 2));
  if (even) return `${(bytes / 1024 ** (["KiB", "MiB", "GiB"].indexOf(even) + 1)).toLocaleString("en")} ${even}`;
  const [unit, size] = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, least]) => bytes >= Number(least)) ?? ["B", 1];
  return `${said(bytes / Number(size))} ${unit}`;
}

/**
 * A switch with its word.
 * @param {string} text
 * @param {boolean} isOn
 * @param {(isOn: boolean) => void} set
 */
export function toggle(text, isOn, set) {
  const box = h("input", { type: "checkbox", checked: isOn });
  box.addEventListener("change", () => set(box.checked));
  return h("label", { class: "switch-box" }, box, ` ${text}`);
}

/**
 * A slider with its word and what it stands at.
 * @param {{ text: string, min: number, max: number, step: number, value: number, say?: (value: number) => string }} how
 * @param {(value: number) => void} set
 */
export function slider({ text, min, max, step, value, say = said }, set) {
  const input = h("input", { type: "range", min, max, step, value });
  const output = h("output", {}, say(value));
  input.addEventListener("input", () => {
    output.textContent = say(Number(input.value));
    set(Number(input.value));
  });
  return h("label", { class: "slider-box" }, `${text} `, input, " ", output);
}

/**
 * Rows of numbers as a table whose cells are coloured by sign and size.
 * @param {{ title: string, rows: string[], columns: string[], values: number[][], digits?: number, lit?: number[], cell?: (i: number, j: number) => Node | null }} how
 */
export function matrix({ title, rows, columns, values, digits = 3, lit = [], cell = () => null }) {
  const most = Math.max(...values.flat().filter(Number.isFinite).map(Math.abs), 1e-9);
  return h("div", { class: "matrix" }, h("table", {}, h("caption", {}, title),
    h("thead", {}, h("tr", {}, h("td", {}), ...columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...values.map((row, i) => h("tr", {}, h("th", { scope: "row" }, rows[i]), ...row.map((value, j) => {
      const strong = Number.isFinite(value) ? Math.round(Math.sqrt(Math.abs(value) / most) * 5) : 0;
      const look = Number.isFinite(value) ? `${value < 0 ? "cool" : "warm"}-${strong}` : "masked";
      return h("td", { class: `${look}${i === lit[0] ? " lit" : ""}` }, cell(i, j) ?? said(value, digits));
    }))))));
}
