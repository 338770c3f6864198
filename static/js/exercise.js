// An exercise on any operation: one of its numbers is hidden, the learner works it out, the page checks.

import { fill, h } from "dom";
import { format } from "format";

const CLOSE = 0.005; // an answer to two or three significant digits counts

/**
 * `shown`: whether the learner is still here.
 * @typedef {object} ExerciseContext
 * @property {import("store").Store} store
 * @property {Words} words
 * @property {() => boolean} shown
 * @property {(index: number[]) => void} hide
 * @property {() => void} show
 * @property {(place: Place) => void} open
 */

/**
 * A box for one array.
 * @param {string} array
 * @param {ExerciseContext} context
 */
export function exercise(array, context) {
  const box = h("div", { class: "exercise" });
  const button = h("button", { type: "button", class: "chip", onclick: () => start(box, array, context, button) },
    context.words.practise);
  box.append(button);
  return box;
}

/**
 * @param {HTMLElement} box
 * @param {string} array
 * @param {ExerciseContext} context
 * @param {HTMLElement} button
 */
async function start(box, array, context, button) {
  const { store, words } = context;
  await store.load([array, ...Object.values(store.operation(array)?.operands ?? {})]);
  if (!context.shown()) return; // the learner has gone on
  const index = choose(store, array);
  context.hide(index);
  const answer = h("input", { type: "text", inputmode: "decimal", size: 12, "aria-label": words.your_answer, autocomplete: "off" });
  const verdict = h("p", { role: "status" });
  const form = h("form", { class: "pick", onsubmit: (event) => { event.preventDefault(); check(answer.value, store.value(array, index), verdict, words); } },
    h("span", {}, fill(words.what_is, { name: `${array} [${index.join(", ")}]` })), answer,
    h("button", { type: "submit", class: "chip" }, words.check),
    h("button", { type: "button", class: "chip", onclick: () => { context.show(); box.replaceChildren(button); context.open({ array, index }); } }, words.show_working),
    h("button", { type: "button", class: "chip", onclick: () => { context.show(); start(box, array, context, button); } }, words.another));
  box.replaceChildren(form, verdict);
  answer.focus();
}

/**
 * A number that is worth working out: finite, and not zero where there is another.
 * @param {import("store").Store} store
 * @param {string} array
 */
function choose(store, array) {
  const shape = store.shape(array);
  const pick = () => shape.map((length) => Math.floor(Math.random() * length));
  let index = pick();
  for (let tries = 0; tries < 50; tries++) {
    const value = store.value(array, index);
    if (Number.isFinite(value) && value !== 0) break;
    index = pick();
  }
  return index;
}

/**
 * @param {string} text
 * @param {number} value
 * @param {HTMLElement} verdict
 * @param {Words} words
 */
function check(text, value, verdict, words) {
  const given = Number(text.trim().replaceAll("−", "-").replace(",", "."));
  if (text.trim() === "" || Number.isNaN(given)) {
    verdict.className = "soft";
    verdict.textContent = words.not_a_number;
    return;
  }
  const right = Math.abs(given - value) <= CLOSE * Math.abs(value);
  verdict.className = right ? "right" : "wrong";
  verdict.textContent = right ? fill(words.right_answer, { value: format(value, 6) }) : words.wrong_answer;
}
