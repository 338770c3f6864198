// How large a model is, part by part, drawn as areas; the parts' formulas are those of tracer/format/sizes.py.

import { h } from "dom";
import { field, said } from "lessons/tool";

/** @typedef {Record<string, number | string | boolean>} Shape */
/** @typedef {{ name: string, each: number, times: number }} Part */

/**
 * Every part that has parameters, in the order of the model.
 * @param {Shape} shape
 * @param {Choices} choices
 * @returns {Part[]}
 */
function partsOf(shape, choices) {
  const [V, C, D, L] = ["vocabulary", "context", "width", "blocks"].map((name) => Number(shape[name]));
  const F = Number(shape.hidden) || 4 * D;
  const K = Number(shape.kv_heads) || Number(shape.heads);
  const bias = Number(shape.bias);
  const chosen = (/** @type {string} */ name) => choices[name].find(({ value }) => value === shape[name]);
  const norm = (chosen("norm")?.count ?? 1) * D;
  const linear = (/** @type {number} */ a, /** @type {number} */ b) => a * b + b * bias;
  const qkv = (Number(shape.heads) + 2 * K) * (D / Number(shape.heads));
  return [
    { name: "token table", each: V * D, times: 1 },
    ...(shape.position === "learned" ? [{ name: "position table", each: C * D, times: 1 }] : []),
    { name: "block: norm 1", each: norm, times: L },
    { name: "block: attention, Q K V", each: linear(D, qkv), times: L },
    { name: "block: attention, output", each: linear(D, D), times: L },
    { name: "block: norm 2", each: norm, times: L },
    ...(chosen("activation")?.gated ? [{ name: "block: MLP, gate", each: linear(D, F), times: L }] : []),
    { name: "block: MLP, up", each: linear(D, F), times: L },
    { name: "block: MLP, down", each: linear(F, D), times: L },
    { name: "final norm", each: norm, times: 1 },
    ...(shape.tied ? [] : [{ name: "head", each: V * D, times: 1 }]),
  ];
}

/** Parameters, those that multiply, bytes of cache a token, operations a token of training. @param {Shape} shape @param {Choices} choices */
function countsOf(shape, choices) {
  const parts = partsOf(shape, choices);
  const total = (/** @type {Part[]} */ list) => list.reduce((sum, { each, times }) => sum + each * times, 0);
  const looked = shape.tied ? ["position table"] : ["position table", "token table"];
  const parameters = total(parts);
  const multiplied = total(parts.filter(({ name }) => !looked.includes(name)));
  const [D, L, H, C] = ["width", "blocks", "heads", "context"].map((name) => Number(shape[name]));
  const cached = 2 * L * (Number(shape.kv_heads) || H) * (D / H);
  return { parameters, multiplied, cached, flops: 6 * multiplied + 12 * L * D * C };
}

const SIZES = ["vocabulary", "context", "width", "heads", "kv_heads", "blocks", "hidden"];
/** What may be chosen: name → kinds, each with its word and, of a norm, its parameters a feature, of an activation whether it is gated. @typedef {Record<string, { value: string | boolean, word: string, count?: number, gated?: boolean }[]>} Choices */

/**
 * @param {HTMLElement} element
 * @param {{ like?: string, shapes: Record<string, Shape>, choices: Choices }} start
 * @param {import("lessons/tool").Workshop} workshop
 */
export function mount(element, start, { say }) {
  const names = Object.keys(start.shapes);
  let shape = { ...start.shapes[start.like ?? names[0]] };
  const controls = h("div", { class: "controls" });
  const results = h("div", { "aria-live": "polite" });
  const redraw = () => results.replaceChildren(...draw(shape, start.choices, say));
  const refill = () => {
    controls.replaceChildren(
      ...SIZES.map((name) => h("label", { class: "field" }, say(name), field(Number(shape[name]), say(name), (value) => { shape[name] = Math.max(0, Math.round(value)); redraw(); }))),
      ...Object.entries(start.choices).map(([name, values]) => {
        const select = h("select", {}, ...values.map(({ value, word }) => h("option", { value: String(value), selected: shape[name] === value }, word)));
        select.addEventListener("change", () => { shape[name] = (values.find(({ value }) => String(value) === select.value) ?? values[0]).value; redraw(); });
        return h("label", { class: "field" }, say(name), select);
      }));
    redraw();
  };
  const presets = h("div", { class: "pick" }, h("span", {}, say("like")), ...names.map((name) => (
    h("button", { type: "button", class: "chip", onclick: () => { shape = { ...start.shapes[name] }; refill(); } }, name))));
  element.replaceChildren(presets, controls, results);
  refill();
}

/** @param {Shape} shape @param {Choices} choices @param {(key: string) => string} say */
function draw(shape, choices, say) {
  const wrong = problem(shape, say);
  if (wrong) return [h("p", { class: "wrong" }, wrong)];
  const parts = partsOf(shape, choices);
  const { parameters, cached, flops } = countsOf(shape, choices);
  const whole = (/** @type {number} */ n) => n.toLocaleString("en");
  return [
    h("p", { class: "working" }, `${say("parameters")} ${whole(parameters)} · ${say("flops")} ${whole(flops)} · ${say("cache")} ${whole(cached * 2)} B / ${whole(cached * 4)} B`),
    h("div", { class: "areas" }, ...parts.map(({ name, each, times }) => h("div", { class: "bar-row" }, h("span", {}, say(`part ${name}`)),
      h("meter", { min: 0, max: parameters, value: each * times, "aria-label": name }), h("span", { class: "mono" }, [whole(each), ...(times > 1 ? [`× ${times}`] : []), "·", said(100 * each * times / parameters), "%"].join(" "))))),
  ];
}

/** @param {Shape} shape @param {(key: string) => string} say */
function problem(shape, say) {
  const [D, H, K] = ["width", "heads", "kv_heads"].map((name) => Number(shape[name]));
  if (["vocabulary", "context", "width", "heads", "blocks"].some((name) => !(Number(shape[name]) >= 1))) return say("at_least");
  if (D % H) return say("cut");
  return K && H % K ? say("shared") : "";
}
