// How widely dot products of random vectors spread, and what softmax makes of scores so wide.

import { h, svg } from "dom";
import { made, said, slider, toggle } from "lessons/tool";

const DRAWS = 2000;
const SHOWN = 8; // scores of one row
const WIDEST = 512;
const [WIDE, HIGH, FOOT] = [600, 130, 22]; // of the drawing

/** Pairs of normal numbers from a stream that a seed begins: the same on every machine. @param {number} seed */
function normals(seed) {
  let state = seed >>> 0;
  const uniform = () => { // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/**
 * @param {HTMLElement} element
 * @param {{ width?: number, divided?: boolean, seed?: number }} start
 * @param {import("lessons/tool").Workshop} workshop
 */
export function mount(element, start, { say, kinds }) {
  const state = { power: Math.log2(start.width ?? 4), divided: start.divided ?? false, seed: start.seed ?? 1 };
  const results = h("div", { "aria-live": "polite" });
  const redraw = () => {
    const d = 2 ** state.power;
    const normal = normals(state.seed);
    const scores = Array.from({ length: DRAWS }, () => {
      let sum = 0;
      for (let i = 0; i < d; i++) sum += normal() * normal();
      return state.divided ? sum / Math.sqrt(d) : sum;
    });
    const mean = scores.reduce((sum, value) => sum + value, 0) / DRAWS;
    const spread = Math.sqrt(scores.reduce((sum, value) => sum + (value - mean) ** 2, 0) / DRAWS);
    const row = scores.slice(0, SHOWN);
    const shares = made(kinds.softmax, { x: { shape: [1, 1, SHOWN], values: row } }, [1, 1, SHOWN]).values;
    results.replaceChildren(
      histogram(scores, spread, `${say("spread")} ${said(spread)}`),
      h("p", { class: "working" }, `${say("spread")} ${said(spread)}   √d = ${said(Math.sqrt(d))}`),
      h("p", {}, say("row")), h("div", { class: "bars" }, ...shares.map((share, i) => h("div", { class: "bar-row" }, h("span", { class: "mono" }, said(row[i], 2)),
        h("meter", { min: 0, max: 1, value: share, "aria-label": said(row[i], 2) }), h("span", { class: "mono" }, said(share, 2))))));
  };
  element.replaceChildren(h("div", { class: "switches" },
    slider({ text: "d", min: 2, max: 9, step: 1, value: state.power, say: (value) => String(2 ** value) }, (value) => { state.power = value; redraw(); }),
    toggle(say("divided"), state.divided, (isOn) => { state.divided = isOn; redraw(); }),
    h("button", { type: "button", class: "chip", onclick: () => { state.seed += 1; redraw(); } }, say("again"))), results);
  redraw();
}

/**
 * How often each score came, on one axis for every width, so that the spread is seen to grow; bars as wide as suits it.
 * @param {number[]} scores
 * @param {number} spread
 * @param {string} label
 */
function histogram(scores, spread, label) {
  const most = 3 * Math.sqrt(WIDEST);
  const at = (/** @type {number} */ score) => (score / most + 1) / 2 * WIDE;
  const step = spread / 3;
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const score of scores) counts.set(Math.round(score / step), (counts.get(Math.round(score / step)) ?? 0) + 1);
  const highest = Math.max(...counts.values());
  const bars = [...counts].map(([bin, n]) => svg("rect", { x: at((bin - 0.5) * step), width: at(step) - at(0), y: HIGH * (1 - n / highest), height: HIGH * n / highest }));
  const ticks = [-60, -40, -20, 0, 20, 40, 60].map((tick) => svg("text", { x: at(tick), y: HIGH + 18 }, said(tick)));
  const sides = [-spread, spread].map((x) => svg("line", { x1: at(x), x2: at(x), y1: 0, y2: HIGH }));
  return svg("svg", { class: "histogram", viewBox: `0 0 ${WIDE} ${HIGH + FOOT}`, role: "img", "aria-label": label },
    bars, sides, svg("path", { d: `M0 ${HIGH}H${WIDE}` }), ticks);
}
