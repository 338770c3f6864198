// How large a model is, part by part, drawn as areas; the parts' formulas are those of tracer/format/sizes.py.

import { h } from "dom";
import { field, said } from "lessons/tool";

/** @typedef {Record<string, number | string | boolean>} Shape */
/** @typedef {{ name: string, each: number, times: number }} Part */

/**
 * Every part that has parameters, in the order of the model.
 * @param {Shape} shape
 * @returns {Part[]}
 */
function partsOf(shape) {
  const [V, C, D, L] = ["vocabulary", "context", "width", "blocks"].map((name) => Number(shape[name]));
  const F = Number(shape.hidden) || 4 * D;
  const K = Number(shape.kv_heads) || Number(shape.heads);
  const bias = Number(shape.bias);
  const norm = shape.norm === "layer_norm" ? 2 * D : D;
  const linear = (/** @type {number} */ a, /** @type {number} */ b) => a * b + b * bias;
  const qkv = (Number(shape.heads) + 2 * K) * (D / Number(shape.heads));
  return [
    { name: "token table", each: V * D, times: 1 },
    ...(shape.position === "learned" ? [{ name: "position table", each: C * D, times: 1 }] : []),
    { name: "block: norm 1", each: norm, times: L },
    { name: "block: attention, Q K V", each: linear(D, qkv), times: L },
    { name: "block: attention, output", each: linear(D, D), times: L },
    { name: "block: norm 2", each: norm, times: L },
    ...(shape.activation === "swiglu" ? [{ name: "block: MLP, gate", each: linear(D, F), times: L }] : []),
    { name: "block: MLP, up", each: linear(D, F), times: L },
    { name: "block: MLP, down", each: linear(F, D), times: L },
    { name: "final norm", each: norm, times: 1 },
    ...(shape.tied ? [] : [{ name: "head", each: V * D, times: 1 }]),
  ];
}

/** Parameters, those that multiply, bytes of cache a token, operations a token of training. @param {Shape} shape */
function countsOf(shape) {
  const parts = partsOf(shape);
  const total = (/** @type {Part[]} */ list) => list.reduce((sum, { each, times }) => sum + each * times, 0);
  const looked = shape.tied ? ["position table"] : ["position table", "token table"];
  const parameters = total(parts);
  const multiplied = total(parts.filter(({ name }) => !looked.includes(name)));
  const [D, L, H, C] = ["width", "blocks", "heads", "context"].map((name) => Number(shape[name]));
  const cached = 2 * L * (Number(shape.kv_heads) || H) * (D / H);
  return { parameters, multiplied, cached, flops: 6 * multiplied + 12 * L * D * C };
}

const SIZES = ["vocabulary", "context", "width", "heads", "kv_heads", "blocks", "hidden"];
const CHOICES = /** @type {const} */ ({ norm: ["layer_norm", "rms_norm"], activation: ["gelu", "swiglu"], position: ["learned", "rotary"], bias: [true, false], tied: [true, false] });

/**
 * @param {HTMLElement} element
 * @param {{ like?: string, shapes: Record<string, Shape> }} start
 * @param {import("lessons/tool").Workshop} workshop
 */
export function mount(element, start, { words }) {
  const names = Object.keys(start.shapes);
  let shape = { ...start.shapes[start.like ?? names[0]] };
  const controls = h("div", { class: "controls" });
  const results = h("div", { "aria-live": "polite" });
  const redraw = () => results.replaceChildren(...draw(shape, words));
  const refill = () => {
    controls.replaceChildren(
      ...SIZES.map((name) => h("label", { class: "field" }, words[name], field(Number(shape[name]), words[name], (value) => { shape[name] = Math.max(0, Math.round(value)); redraw(); }))),
      ...Object.entries(CHOICES).map(([name, values]) => {
        const select = h("select", {}, ...values.map((value) => h("option", { value: String(value), selected: shape[name] === value }, words[`${name}_${value}`])));
        select.addEventListener("change", () => { shape[name] = values.find((value) => String(value) === select.value) ?? values[0]; redraw(); });
        return h("label", { class: "field" }, words[name], select);
      }));
    redraw();
  };
  const presets = h("div", { class: "pick" }, h("span", {}, words.like), ...names.map((name) => (
    h("button", { type: "button", class: "chip", onclick: () => { shape = { ...start.shapes[name] }; refill(); } }, name))));
  element.replaceChildren(presets, controls, results);
  refill();
}

/** @param {Shape} shape @param {Words} words */
function draw(shape, words) {
  const wrong = problem(shape, words);
  if (wrong) return [h("p", { class: "wrong" }, wrong)];
  const parts = partsOf(shape);
  const { parameters, cached, flops } = countsOf(shape);
  const whole = (/** @type {number} */ n) => n.toLocaleString("en");
  return [
    h("p", { class: "working" }, `${words.parameters} ${whole(parameters)} · ${words.flops} ${whole(flops)} · ${words.cache} ${whole(cached * 2)} B / ${whole(cached * 4)} B`),
    h("div", { class: "areas" }, ...parts.map(({ name, each, times }) => h("div", { class: "bar-row" }, h("span", {}, words[`part_${name}`] ?? name),
      h("meter", { min: 0, max: parameters, value: each * times, "aria-label": name }), h("span", { class: "mono" }, `${whole(each)}${times > 1 ? ` × ${times}` : ""} · ${said(100 * each * times / parameters)} %`)))),
  ];
}

/** @param {Shape} shape @param {Words} words */
function problem(shape, words) {
  const [D, H, K] = ["width", "heads", "kv_heads"].map((name) => Number(shape[name]));
  if (["vocabulary", "context", "width", "heads", "blocks"].some((name) => !(Number(shape[name]) >= 1))) return words.at_least;
  if (D % H) return words.cut;
  return K && H % K ? words.shared : "";
}
