// Try other settings on the logits of a round. Nothing here is recorded, and it says so.

import { fill, h } from "dom";
import { format } from "format";
import { Sampling } from "sampling";
import { uniformNumber } from "special";

const DIGITS = 7; // of probabilities: the trained model's are near 1
const kept = new Map(); // round → its Sampling (sorting fifty thousand logits once is enough) and its settings

/** Fill `box` with controls for `round`, a number. context: { store, words } */
export async function playground(box, round, { store, words }) {
  box.replaceChildren(h("p", { class: "soft" }, words.loading));
  const { arrays } = store.outline.passes.find((one) => one.kind === "round" && one.round === round);
  const names = [arrays.logits, arrays.uniform, arrays.token];
  await Promise.all([...names.map((name) => store.ready(name)), store.loadLabels(names[0], 1)]);
  if (!kept.has(round)) {
    const [, length] = store.shape(names[0]);
    const sampling = new Sampling(store.outline.sampling, { length, at: (id) => store.flatValue(names[0], id) });
    kept.set(round, { sampling, settings: recordedSettings(round, arrays, store) });
  }
  draw(box, kept.get(round), recordedSettings(round, arrays, store), { words, label: (id) => store.label(names[0], 1, id), recorded: store.flatValue(names[2], 0) });
}

function recordedSettings(number, arrays, store) {
  return { temperature: store.step(arrays.scaled_logits).attributes.temperature, k: store.size(arrays.candidates), p: 1,
    uniform: store.flatValue(arrays.uniform, 0), number };
}

function draw(box, { sampling, settings }, recorded, { words, label, recorded: token }) {
  const bar = h("div", { class: "cumulative", "aria-hidden": "true" });
  const rows = h("tbody");
  const verdict = h("p", { role: "status" });
  const range = (name, text, min, max, step, show = (value) => value) => {
    const output = h("output", {}, show(settings[name]));
    const input = h("input", { type: "range", min, max, step, value: settings[name], oninput: () => {
      settings[name] = Number(input.value);
      update();
    } });
    return { input, output, name, show, element: h("label", { class: "range" }, h("span", {}, text), input, output) };
  };
  const ranges = [
    range("temperature", words["try.temperature"], 0.1, 3, 0.05),
    range("k", words["try.top_k"], 1, sampling.ids.length, 1),
    range("p", words["try.top_p"], 0.01, 1, 0.01),
    range("uniform", words["try.uniform"], 0, 0.999999, 0.000001, (value) => format(value, 6)),
  ];
  const seed = h("input", { type: "number", min: 0, step: 1, size: 8, oninput: () => {
    if (!seed.validity.valid || seed.value === "") return;
    settings.uniform = uniformNumber(Number(seed.value), recorded.number);
    update();
  } });
  const reset = h("button", { type: "button", class: "chip", onclick: () => { Object.assign(settings, recorded); seed.value = ""; update(); } }, words["try.reset"]);
  bar.addEventListener("pointerdown", (event) => { bar.setPointerCapture(event.pointerId); drag(event); });
  bar.addEventListener("pointermove", (event) => { if (bar.hasPointerCapture(event.pointerId)) drag(event); });
  function drag(event) {
    const { left, width } = bar.getBoundingClientRect();
    settings.uniform = Math.max(0, Math.min(0.999999, (event.clientX - left) / width));
    update();
  }
  function update() {
    for (const { input, output, name, show } of ranges) {
      input.value = settings[name];
      output.textContent = show(settings[name]);
    }
    const result = sampling.run(settings);
    drawBar(bar, result, settings.uniform, label);
    rows.replaceChildren(...result.ids.map((id, c) => row(result, c, label(id))));
    const same = Object.keys(recorded).every((name) => settings[name] === recorded[name]);
    verdict.textContent = `${fill(words["try.wins"], { token: label(result.token), probability: format(result.probabilities[result.choice], DIGITS) })} `
      + fill(result.token === token ? words["try.same"] : words["try.other"], { token: label(token) })
      + (same ? ` ${words["try.recorded_settings"]}` : "");
    verdict.className = result.token === token ? "" : "other";
  }
  const heads = ["axis.candidate", "try.logit_scaled", "try.probability", "try.cumulative"].map((key) => h("th", { scope: "col" }, words[key]));
  box.replaceChildren(
    h("p", { class: "tag" }, words["try.title"]), h("p", { class: "computed" }, words["try.computed"]),
    h("div", { class: "controls" }, ranges.map(({ element }) => element), h("label", { class: "range" }, h("span", {}, words["try.seed"]), seed), reset),
    bar, verdict,
    h("div", { class: "window", tabindex: 0, role: "group", "aria-label": words["try.title"] }, h("table", {}, h("thead", {}, h("tr", {}, heads)), rows)));
  update();
}

function row(result, c, name) {
  const out = result.probabilities[c] === 0;
  return h("tr", { class: c === result.choice ? "now" : out ? "out" : null }, h("th", { scope: "row" }, name),
    [format(result.scaled[c], 4), format(result.probabilities[c], DIGITS), format(result.cumulative[c], DIGITS)].map((text) => h("td", {}, text)));
}

/** The interval from 0 to 1, cut where the cumulative probabilities say, and where the number fell. */
function drawBar(bar, { ids, probabilities, choice }, uniform, label) {
  const pieces = ids.map((id, c) => {
    const piece = h("span", { class: `piece${c === choice ? " now" : ""}`, title: label(id) }, probabilities[c] > 0.1 ? label(id) : "");
    piece.style.flexGrow = probabilities[c];
    return piece;
  });
  const needle = h("i", {});
  needle.style.left = `${uniform * 100}%`;
  bar.replaceChildren(...pieces, needle);
}
