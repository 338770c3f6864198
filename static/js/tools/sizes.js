// How large a model is, drawn as areas: parameters and operations part by part, memory of training and of generating.

import { h, onWidth } from "dom";
import { areas } from "lessons/areas";
import { FLOAT, cached, held, partsOf, scoring, total } from "lessons/sizes";
import { field, inBytes, said } from "lessons/tool";

/** @typedef {import("lessons/sizes").Shape} Shape */
/** @typedef {import("lessons/sizes").Choices} Choices */
/** `batch`: sequences at once; `number`: bytes of a number while generating. @typedef {{ shape: Shape, batch: number, number: number }} State */
/** @typedef {(key: string) => string} Say */

const SIZES = ["vocabulary", "context", "width", "heads", "kv_heads", "blocks", "hidden"];
const NUMBERS = [2, 4]; // bytes of bfloat16, of float32
const HIGH = 150; // pixels of a drawing

/**
 * @param {HTMLElement} element
 * @param {{ like?: string, batch?: number, shapes: Record<string, Shape>, choices: Choices }} start
 * @param {import("lessons/tool").Workshop} workshop
 */
export function mount(element, start, { say }) {
  const names = Object.keys(start.shapes);
  const state = { shape: { ...start.shapes[start.like ?? names[0]] }, batch: start.batch ?? 1, number: NUMBERS[0] };
  let width = 600;
  const controls = h("div", { class: "controls" });
  const results = h("div", { class: "results", "aria-live": "polite" });
  const redraw = () => results.replaceChildren(...draw(state, start.choices, say, width));
  const size = (/** @type {string} */ name, /** @type {number} */ value, /** @type {(value: number) => void} */ set) => (
    h("label", { class: "field" }, say(name), field(value, say(name), (typed) => { set(Math.max(0, Math.round(typed))); redraw(); })));
  const choice = (/** @type {string} */ name, /** @type {{ value: any, word: string }[]} */ values, /** @type {any} */ chosen, /** @type {(value: any) => void} */ set) => {
    const select = h("select", {}, ...values.map(({ value, word }) => h("option", { value: String(value), selected: chosen === value }, word)));
    select.addEventListener("change", () => { set(values[select.selectedIndex].value); redraw(); });
    return h("label", { class: "field" }, say(name), select);
  };
  const refill = () => {
    const { shape } = state;
    controls.replaceChildren(
      ...SIZES.map((name) => size(name, Number(shape[name]), (value) => { shape[name] = value; })),
      ...Object.entries(start.choices).map(([name, values]) => choice(name, values, shape[name], (value) => { shape[name] = value; })),
      size("batch", state.batch, (value) => { state.batch = value; }),
      choice("number", NUMBERS.map((value) => ({ value, word: String(value) })), state.number, (value) => { state.number = value; }));
    redraw();
  };
  const presets = h("div", { class: "pick" }, h("span", {}, say("like")), ...names.map((name) => (
    h("button", { type: "button", class: "chip", onclick: () => { state.shape = { ...start.shapes[name] }; refill(); } }, name))));
  element.replaceChildren(presets, controls, results);
  refill();
  onWidth(results, (wide) => { width = wide; redraw(); });
}

/** @param {State} state @param {Choices} choices @param {Say} say @param {number} width */
function draw(state, choices, say, width) {
  const wrong = problem(state, say);
  if (wrong) return [h("p", { class: "wrong" }, wrong)];
  const training = ofTraining(state, choices, say);
  const generating = ofGenerating(state, choices, say);
  const most = Math.max(sum(training), sum(generating)); // both on one scale
  return [
    ...[ofParameters(state, choices, say), ofOperations(state, choices, say)].map(({ title, quantities }) => areas(title, quantities, width, HIGH)),
    areas(`${say("training")} ${inBytes(sum(training))}`, training, width, HIGH * sum(training) / most),
    ...(training.length < 5 ? [h("p", { class: "soft" }, say("uncounted"))] : []),
    areas(`${say("generating")} ${inBytes(sum(generating))}`, generating, width, HIGH * sum(generating) / most),
  ];
}

/** @param {import("lessons/areas").Quantity[]} quantities */
function sum(quantities) {
  return quantities.reduce((all, { value }) => all + value, 0);
}

/** @param {number} n */
function whole(n) {
  return n.toLocaleString("en");
}

/** @param {number} part @param {number} all */
function share(part, all) {
  return `${said(100 * part / all)} %`;
}

/** @param {State} state @param {Choices} choices @param {Say} say */
function ofParameters({ shape }, choices, say) {
  const parts = partsOf(shape, choices);
  const all = total(parts);
  const quantities = parts.map(({ name, each, times, part }) => ({ name: say(`part ${name}`), value: each * times, tone: part,
    note: [whole(each), ...(times > 1 ? [`× ${times}`] : []), "·", share(each * times, all)].join(" ") }));
  return { title: `${say("parameters")} ${whole(all)}`, quantities };
}

/** Six for each parameter that multiplies, and those of scores and mixtures. @param {State} state @param {Choices} choices @param {Say} say */
function ofOperations({ shape }, choices, say) {
  const found = partsOf(shape, choices).filter(({ multiplies }) => multiplies).map(({ name, each, times, part }) => ({ name: say(`part ${name}`), value: 6 * each * times, tone: part }));
  const all = [...found, { name: say("scoring"), value: scoring(shape, choices), tone: "scores" }];
  const flops = all.reduce((so, { value }) => so + value, 0);
  return { title: `${say("flops")} ${whole(flops)}`, quantities: all.map((one) => ({ ...one, note: `${whole(one.value)} · ${share(one.value, flops)}` })) };
}

/** @param {State} state @param {Choices} choices @param {Say} say */
function ofTraining({ shape, batch }, choices, say) {
  const tones = { parameters: "table", gradients: "attention", moments: "mlp", activations: "scores", backward: "norm" };
  return Object.entries(held(shape, choices, batch)).flatMap(([name, count]) => (count === null ? [] : [
    { name: say(`held_${name}`), value: FLOAT * count, tone: tones[/** @type {keyof typeof tones} */ (name)], note: inBytes(FLOAT * count) }]));
}

/** @param {State} state @param {Choices} choices @param {Say} say */
function ofGenerating({ shape, batch, number }, choices, say) {
  const [weights, token] = [total(partsOf(shape, choices)) * number, cached(shape, choices) * number];
  const tokens = batch * Number(shape.context);
  return [{ name: say("held_parameters"), value: weights, tone: "table", note: inBytes(weights) },
    { name: say("held_cache"), value: tokens * token, tone: "scores", note: `${whole(tokens)} × ${inBytes(token)} = ${inBytes(tokens * token)}` }];
}

/** @param {State} state @param {Say} say */
function problem({ shape, batch }, say) {
  const [D, H, K] = ["width", "heads", "kv_heads"].map((name) => Number(shape[name]));
  const least = [...["vocabulary", "context", "width", "heads", "blocks"].map((name) => Number(shape[name])), batch];
  if (least.some((size) => size < 1)) return say("at_least");
  if (D % H) return say("cut");
  if (K && H % K) return say("shared");
  return shape.position === "rotary" && (D / H) % 2 ? say("pairs") : "";
}
