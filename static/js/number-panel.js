// What is said of the opened number: what it is, how it was made, whether it can be made again, where it goes.

import { numpyCode } from "code";
import { copy, fill, first, h } from "dom";
import { format, ulpAt, ulpsApart } from "format";
import { sizeOf } from "indices";
import { number } from "said";
import { termTable, tokens } from "terms";
import { indexOperands, usesOf } from "uses";
import { Working } from "working";

const MOST_USES = 40;
const MOST_OPTIONS = 200; // of a longer axis a place is typed

/**
 * `home`: array → the step that made it; `wanted`: whether the number is still the opened one.
 * @typedef {object} PanelContext
 * @property {import("store").Store} store
 * @property {Words} words
 * @property {Map<string, string>} home
 * @property {() => boolean} wanted
 * @property {(step: string) => string} title
 * @property {(place: Place) => string} link
 * @property {(place: Place, travel?: boolean) => void} open
 * @property {() => void} close
 * @property {() => void} trail shows the way through the number, or hides it
 * @property {() => number | null} term
 * @property {(n: number) => void} chooseTerm
 * @property {() => HTMLElement} motion
 */

/**
 * Draw a number into `panel`. Returns the numbers that it reads, all at once and term by term.
 * @param {HTMLElement} panel
 * @param {Place} place
 * @param {PanelContext} context
 * @returns {Promise<{ reads: Place[], frames: Frame[] }>}
 */
export async function showNumber(panel, place, context) {
  const { store, words } = context;
  const { array, index } = place;
  const operation = store.operation(array);
  await store.load([array, ...Object.values(operation?.operands ?? {}), ...indexOperands(store, array)]);
  if (!context.wanted()) return { reads: [], frames: [] }; // another number was opened meanwhile
  const recorded = store.value(array, index);
  const { dtype } = store.array(array);
  const working = operation ? new Working(store.computation(array), store, store.outline.symbols[operation.notation]).explain(index) : null;
  const focused = focusedAxis(panel);
  panel.replaceChildren(
    h("div", { class: "panel-head" }, h("h2", { id: "number-title" }, words.number),
      h("button", { type: "button", class: "chip", title: words["trail.open"], onclick: context.trail }, words["trail.name"]),
      h("button", { type: "button", class: "close", onclick: context.close }, words.close)),
    h("p", { class: "name" }, h("code", {}, array), index.length ? ` [${index.join(", ")}]` : ""),
    choosers(place, context),
    h("p", { class: "big" }, format(recorded, "all", dtype)),
    h("p", { class: "soft" }, store.isDerived(array) ? words.computed_here : fill(words.recorded, { dtype })),
    ...(working ? [...workingParts(working, context), verdict(working, recorded, array, context)] : [h("p", {}, words.no_operands)]),
    origin(array, context),
    uses(place, context),
    ...codeOf(place, context),
    h("p", {}, copyButton(words.copy_link, () => new URL(context.link(place), location.href).href, words)),
  );
  if (focused) first(panel, `[data-axis="${focused}"]`).focus();
  return { reads: working?.reads ?? [], frames: working ? framesOf(working) : [] };
}

/** @param {HTMLElement} panel */
function focusedAxis(panel) {
  const { activeElement } = document;
  return activeElement instanceof HTMLElement && panel.contains(activeElement) ? activeElement.dataset.axis : undefined;
}

/**
 * What happens one after the other: the terms of a sum, else everything that is read at once.
 * @param {Working} working
 * @returns {Frame[]}
 */
function framesOf(working) {
  const terms = working.lines.flatMap((line) => line.terms?.list ?? []);
  if (!terms.length) return [{ reads: working.reads }];
  return terms.map((term) => ({ reads: term.names.filter((token) => typeof token !== "string" && "array" in token), term }));
}

/**
 * One chooser an axis: position, head, dimension. The choice holds from step to step.
 * @param {Place} place
 * @param {PanelContext} context
 */
function choosers({ array, index }, { store, words, open }) {
  const { axes, shape } = store.array(array);
  return h("div", { class: "choosers" }, axes.map((axis, n) => {
    const from = store.outline.numbered[axis] ?? 0;
    const choose = (/** @type {Event} */ { target }) => {
      const typed = Number(/** @type {HTMLInputElement | HTMLSelectElement} */ (target).value) - from;
      open({ array, index: index.with(n, Math.max(0, Math.min(shape[n] - 1, typed))) });
    };
    const word = `${words[`axis.${axis}`]} `;
    if (shape[n] <= MOST_OPTIONS) {
      return h("label", {}, word, h("select", { "data-axis": axis, onchange: choose }, Array.from({ length: shape[n] }, (_, i) => (
        h("option", { value: from + i, selected: i === index[n] }, store.label(array, n, i))))));
    }
    const label = store.labels(array, n)?.[index[n]];
    return h("label", {}, word, h("input", { type: "number", min: 0, max: shape[n] - 1, value: from + index[n],
      "data-axis": axis, onchange: choose }), label ? ` ${label}` : "");
  }));
}

/**
 * @param {Working} working
 * @param {PanelContext} context
 */
function workingParts(working, context) {
  const { words } = context;
  const parts = [h("h3", {}, words.working), context.motion()];
  for (const line of working.lines) {
    const isPlain = line.numbers.length === 1;
    parts.push(h("div", { class: "line" },
      h("div", { class: "names" }, `${line.left} = `, tokens(line.names, context)),
      line.terms ? termTable(line.terms, context) : null,
      h("div", {}, "= ", tokens(line.numbers, context)),
      isPlain ? null : h("div", { class: "value" }, "= ", number(line.value))));
  }
  if (working.omitted) parts.push(h("p", { class: "soft" }, fill(words.more_terms, { n: working.omitted.toLocaleString() })));
  return parts;
}

/**
 * Recomputed beside recorded. Where terms cancel, the measure is the largest of them.
 * @param {Working} working
 * @param {number} recorded
 * @param {string} array
 * @param {PanelContext} context
 */
function verdict(working, recorded, array, { store, words }) {
  if (store.isDerived(array)) return h("p", { class: "soft" });
  const { value } = working;
  const difference = value === recorded || (Number.isNaN(value) && Number.isNaN(recorded)) ? 0 : value - recorded;
  const { dtype } = store.array(array);
  const near = dtype === "int64" ? Math.abs(difference) : ulpsApart(Math.fround(value), recorded);
  const scaled = Math.abs(difference) / ulpAt(working.largest);
  const agrees = near <= 64 || scaled <= 16;
  const text = near <= 64 ? fill(words.ulp, { n: near }) : fill(words.ulp_terms, { n: scaled.toFixed(2) });
  return h("div", { class: agrees ? "verdict ok" : "verdict wrong", "data-ulps": near, "data-scaled": scaled, "data-value": String(value) },
    h("p", {}, agrees ? "✓ " : "✗ ", words.recomputed, words.colon, format(value, dtype === "int64" ? "all" : 12, dtype === "int64" ? dtype : "float64")),
    h("p", {}, words.difference, words.colon, difference === 0 ? "0" : format(difference, 3, "float64"), " · ", text));
}

/**
 * @param {string} array
 * @param {PanelContext} context
 */
function origin(array, { home, title, words }) {
  const step = home.get(array);
  if (!step) return h("p");
  return h("p", {}, words.came_from, " ", h("a", { href: `#step=${step}`, "data-step": step }, title(step)));
}

/**
 * @param {Place} place
 * @param {PanelContext} context
 */
function uses({ array, index }, { store, words, link, open }) {
  const found = usesOf(store, array, index);
  if (!found.length) return h("p");
  const items = found.slice(0, MOST_USES).map(({ id, pattern }) => {
    const shape = store.shape(id);
    const count = sizeOf(shape.filter((_, axis) => pattern[axis] === null));
    const place = { array: id, index: pattern.map((at) => at ?? 0) };
    const text = pattern.length ? `${id} [${pattern.map((at) => at ?? "·").join(", ")}]` : id;
    return h("li", {}, h("a", { href: link(place), onclick: (event) => { event.preventDefault(); open(place, true); } }, text),
      count > 1 ? ` ${fill(words.used_numbers, { n: count.toLocaleString() })}` : "");
  });
  return h("details", { class: "uses", open: found.length <= 6 },
    h("summary", {}, fill(words.named, { place: words.used_in, label: found.length })), h("ul", {}, items));
}

/**
 * The PyTorch that made the array, and a NumPy program that makes this number again.
 * @param {Place} place
 * @param {PanelContext} context
 */
function codeOf({ array, index }, { store, words }) {
  const operation = store.operation(array);
  if (!operation) return [];
  const torch = store.outline.torch[operation.kind];
  const gradient = operation.is_gradient ? "loss.backward()\n\n" : "";
  return [
    ...(torch ? [listing(words.pytorch_lines, () => gradient + torch, words)] : []),
    listing(words.numpy_lines, () => numpyCode(store, array, index), words),
  ];
}

/**
 * Code that is written when it is asked for, with a button that copies it.
 * @param {string} title
 * @param {() => string} write
 * @param {Words} words
 */
function listing(title, write, words) {
  const details = h("details", { class: "code" }, h("summary", {}, title));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("pre")) return;
    const text = write();
    details.append(copyButton(words.copy, () => text, words), h("pre", { tabindex: 0 }, h("code", {}, text)));
  });
  return details;
}

/**
 * @param {string} title
 * @param {() => string} write
 * @param {Words} words
 */
function copyButton(title, write, words) {
  const button = h("button", { type: "button", class: "link", onclick: async () => {
    if (await copy(write())) button.textContent = words.copied;
  } }, title);
  return button;
}
