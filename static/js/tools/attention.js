// One head of attention on the reader's own tokens: queries, keys and values are the tokens themselves, and every number
// follows by the equations of the kinds.

import { h } from "dom";
import { field, made, matrix, said, toggle } from "lessons/tool";

/**
 * @param {HTMLElement} element
 * @param {{ tokens?: number[][], names?: string[], masked?: boolean, divided?: boolean }} start
 * @param {import("lessons/tool").Workshop} workshop
 */
export function mount(element, start, { say, kinds }) {
  const tokens = (start.tokens ?? [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]).map((row) => [...row]);
  const names = tokens.map((_, i) => start.names?.[i] ?? `t${i}`);
  const state = { masked: start.masked ?? true, divided: start.divided ?? true, row: tokens.length - 1 };
  const results = h("div", { class: "matrices", "aria-live": "polite" });
  const redraw = () => results.replaceChildren(...draw(tokens, names, state, { say, kinds }));
  const features = tokens[0].map((_, d) => String(d));
  const input = matrix({ title: say("tokens"), rows: names, columns: features, values: tokens,
    cell: (i, d) => field(tokens[i][d], `${names[i]}, ${d}`, (value) => { tokens[i][d] = value; redraw(); }) });
  const which = h("span", { class: "pick", role: "group", "aria-label": say("row") }, h("span", {}, say("row")), ...names.map((name, i) => {
    const button = h("button", { type: "button", class: "chip", "aria-pressed": String(i === state.row) }, name);
    button.addEventListener("click", () => {
      state.row = i;
      for (const other of which.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
      redraw();
    });
    return button;
  }));
  element.replaceChildren(h("div", { class: "controls" }, input, h("div", { class: "switches" },
    toggle(say("masked"), state.masked, (isOn) => { state.masked = isOn; redraw(); }),
    toggle(say("divided"), state.divided, (isOn) => { state.divided = isOn; redraw(); }), which)), results);
  redraw();
}

/**
 * @param {number[][]} tokens
 * @param {string[]} names
 * @param {{ masked: boolean, divided: boolean, row: number }} state
 * @param {import("lessons/tool").Workshop} workshop
 */
function draw(tokens, names, { masked, divided, row }, { say, kinds }) {
  const [T, d] = [tokens.length, tokens[0].length];
  const x = { shape: [1, T, d], values: tokens.flat() };
  // Every product without a division, as a linear map whose weights are the keys.
  const products = { ...made(kinds.linear_without_bias, { x: { ...x, shape: [T, d] }, weight: { ...x, shape: [T, d] } }, [T, T]), shape: [1, T, T] };
  const scaled = divided ? made(kinds.scaled_scores, { query: x, key: x }, [1, T, T]) : products;
  const seen = masked ? made(kinds.causal_mask, { scores: scaled }, [1, T, T]) : scaled;
  const weights = made(kinds.softmax, { x: seen }, [1, T, T]);
  const out = made(kinds.weighted_sum, { weights, value: x }, [1, T, d]);
  const rows = (/** @type {import("lessons/tool").Numbers} */ { values }, /** @type {number} */ n) => Array.from({ length: T }, (_, i) => values.slice(i * n, (i + 1) * n));
  const terms = names.map((_, j) => `${said(weights.values[row * T + j], 2)} × (${tokens[j].map((value) => said(value, 2)).join(", ")})`);
  const square = (/** @type {string} */ title, /** @type {import("lessons/tool").Numbers} */ made, digits = 3) => (
    matrix({ title: say(title), rows: names, columns: names, values: rows(made, T), digits, lit: [row] }));
  return [
    square("scores", products), ...(divided ? [square("scaled", scaled)] : []), ...(masked ? [square("hidden", seen)] : []),
    square("weights", weights, 2),
    matrix({ title: say("out"), rows: names, columns: tokens[0].map((_, n) => String(n)), values: rows(out, d), digits: 2, lit: [row] }),
    h("p", { class: "working" }, `${names[row]}: ${terms.join(" + ")} = (${rows(out, d)[row].map((value) => said(value, 2)).join(", ")})`),
  ];
}
