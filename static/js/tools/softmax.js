// Shares of one whole from numbers of the reader's own, at a temperature.

import { h } from "dom";
import { field, made, said, slider } from "lessons/tool";

const MOST = 8;

/**
 * @param {HTMLElement} element
 * @param {{ numbers?: number[], temperature?: number }} start
 * @param {import("lessons/tool").Workshop} workshop
 */
export function mount(element, start, { say, kinds }) {
  const numbers = [...(start.numbers ?? [2, 6, 4])];
  let temperature = start.temperature ?? 1;
  const fields = h("div", { class: "pick" });
  const bars = h("div", { class: "bars", "aria-live": "polite" });
  const redraw = () => {
    const n = numbers.length;
    const scaled = made(kinds.temperature, { logits: { shape: [1, n], values: numbers } }, [1, n], { temperature });
    const shares = made(kinds.softmax, { x: { shape: [1, 1, n], values: scaled.values } }, [1, 1, n]).values;
    bars.replaceChildren(...shares.map((share, i) => h("div", { class: "bar-row" }, h("span", { class: "mono" }, said(numbers[i])),
      h("meter", { min: 0, max: 1, value: share, "aria-label": said(numbers[i]) }), h("span", { class: "mono" }, said(share)))));
  };
  const refill = () => {
    fields.replaceChildren(...numbers.map((value, i) => field(value, `${say("number")} ${i}`, (typed) => { numbers[i] = typed; redraw(); })),
      h("button", { type: "button", class: "chip", disabled: numbers.length >= MOST, onclick: () => { numbers.push(0); refill(); } }, say("more")),
      h("button", { type: "button", class: "chip", disabled: numbers.length <= 2, onclick: () => { numbers.pop(); refill(); } }, say("fewer")));
    redraw();
  };
  element.replaceChildren(fields, slider({ text: say("temperature"), min: 0.1, max: 4, step: 0.1, value: temperature }, (value) => { temperature = value; redraw(); }), bars);
  refill();
}
