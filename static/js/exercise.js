// An exercise on any operation: one of its numbers is hidden; the learner says first what can be seen, then works the
// number out, and the page checks.

import { fill, h } from "dom";
import { format } from "format";
import { questions } from "predict";
import { clear, note, progress } from "progress";

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
  const counted = h("p", { class: "soft counted" });
  const compute = () => { box.replaceChildren(form, verdict, counted); answer.focus(); };
  const count = () => counted.replaceChildren(fill(words["predict.counted"], { ...progress() }), " ",
    h("button", { type: "button", class: "link", onclick: () => { clear(); count(); } }, words["predict.clear"]));
  form.addEventListener("submit", count);
  count();
  const asked = questions(store, { array, index }, words);
  if (asked.length) predict(box, asked, words, counted, count, compute);
  else compute();
}

/**
 * One question after the other; then the number itself.
 * @param {HTMLElement} box
 * @param {import("predict").Question[]} list
 * @param {Words} words
 * @param {HTMLElement} counted
 * @param {() => void} count
 * @param {() => void} done
 */
function predict(box, [first, ...rest], words, counted, count, done) {
  const said = h("p", { role: "status" });
  const options = first.options.map((text, i) => h("button", { type: "button", class: "chip", onclick: () => {
    note(i === first.right);
    count();
    said.className = i === first.right ? "right" : "wrong";
    said.textContent = fill(words[i === first.right ? "predict.yes" : "predict.no"], { answer: first.options[first.right] });
    for (const option of options) option.disabled = true;
    onward.hidden = false;
    onward.focus();
  } }, text));
  const onward = h("button", { type: "button", class: "chip", hidden: true, onclick: () => {
    if (rest.length) predict(box, rest, words, counted, count, done);
    else done();
  } }, words["predict.on"]);
  box.replaceChildren(h("div", { class: "pick", role: "group", "aria-label": first.text }, h("span", {}, first.text), options), said, onward,
    h("button", { type: "button", class: "link", onclick: done }, words["predict.skip"]), counted);
  options[0].focus();
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
  note(right);
  verdict.className = right ? "right" : "wrong";
  verdict.textContent = right ? fill(words.right_answer, { value: format(value, 6) }) : words.wrong_answer;
}
