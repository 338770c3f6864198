// The opened number: what it is, how it was made, whether it can be made again, where it goes.

import { copy, fill, h } from "dom";
import { exact, format, ulpAt, ulpsApart } from "format";
import { walk } from "evaluate";
import { ordinal } from "store";
import { numpyCode } from "code";
import { number, Working } from "working";

/**
 * Draw the number `array[index]` into `panel`.
 * context: { store, words, open(array, index), home(array), title(view), link(array, index), wanted() }
 * Returns the operands that the number reads, as [{array, index}], all at once and term by term.
 */
export async function showNumber(panel, array, index, context) {
  const { store, words } = context;
  const step = store.step(array);
  await store.load([array, ...(step ? Object.values(step.operands) : []), ...indexOperands(store, array)]);
  if (!context.wanted()) return { reads: [], frames: [] }; // another number was opened meanwhile
  const recorded = store.value(array, index);
  const dtype = store.array(array).dtype;
  const working = step ? new Working(store.computation(array), store, store.outline.symbols[step.notation]).explain(index) : null;
  const focused = panel.contains(document.activeElement) ? document.activeElement.dataset.axis : null;
  panel.replaceChildren(
    h("div", { class: "panel-head" }, h("h2", { id: "number-title" }, words.number),
      h("button", { type: "button", class: "close", onclick: context.close }, words.close)),
    h("p", { class: "name" }, h("code", {}, array), index.length ? ` [${index.join(", ")}]` : ""),
    choosers(array, index, context),
    h("p", { class: "big" }, format(recorded, "all", dtype)),
    h("p", { class: "soft" }, store.isDerived(array) ? words.computed_here : fill(words.recorded, { dtype })),
    ...(working ? [...workingParts(working, context), verdict(working, recorded, array, context)] : [h("p", {}, words.no_operands)]),
    origin(array, context),
    usesOf(array, index, context),
    ...codeOf(array, index, context),
    h("p", {}, copyButton(array, index, context)),
  );
  if (focused) panel.querySelector(`[data-axis="${focused}"]`)?.focus();
  return { reads: working?.reads ?? [], frames: working ? framesOf(working) : [] };
}

/** What happens one after the other: the terms of a sum, else everything that is read at once. */
function framesOf(working) {
  const terms = working.lines.flatMap((line) => line.terms?.list ?? []);
  const frames = terms.map((term) => ({ reads: term.names.filter((token) => token.array), term }));
  return frames.length ? frames : [{ reads: working.reads }];
}

/** Arrays that steps use as indices: needed to say where a number goes. */
function indexOperands(store, array) {
  return (store.usesOf.get(array) ?? []).flatMap(({ id }) => {
    const step = store.step(id);
    const inner = step.equations.flatMap(([, , body]) => [...walk(body)].filter((n) => n[0] === "read")
      .flatMap((n) => n[2].flatMap((item) => [...walk(item)].filter((m) => m[0] === "read").map((m) => m[1]))));
    return inner.filter((name) => name in step.operands).map((name) => step.operands[name]);
  });
}

/** One chooser an axis: position, head, dimension. The choice holds from step to step. */
function choosers(array, index, context) {
  const { store, words } = context;
  const { axes, shape } = store.array(array);
  return h("div", { class: "choosers" }, axes.map((axis, place) => {
    const choose = (event) => context.open(array, index.with(place, Math.max(0, Math.min(shape[place] - 1, Number(event.target.value) - ordinal(axis, 0)))));
    const control = shape[place] > 200
      ? h("input", { type: "number", min: 0, max: shape[place] - 1, value: ordinal(axis, index[place]), "data-axis": axis, onchange: choose })
      : h("select", { "data-axis": axis, onchange: choose }, Array.from({ length: shape[place] }, (_, i) =>
        h("option", { value: ordinal(axis, i), selected: i === index[place] }, optionText(store, array, place, i))));
    const label = shape[place] > 200 ? store.labels(array, place)?.[index[place]] : null;
    return h("label", {}, `${words[`axis.${axis}`]} `, control, label ? ` ${label}` : "");
  }));
}

/** ["head 1", "position 2 (…)"]: a number's place in words, axis by axis. */
export function describeIndex(array, index, { store, words }) {
  return store.array(array).axes.map((axis, i) => {
    const label = store.labels(array, i)?.[index[i]];
    const place = `${words[`axis.${axis}`]} ${store.place(array, i, index[i])}`;
    return label === undefined ? place : fill(words.named, { place, label });
  });
}

function optionText(store, array, place, i) {
  return store.labels(array, place) ? store.label(array, place, i) : String(store.place(array, place, i));
}

function workingParts(working, context) {
  const { words } = context;
  const parts = [h("h3", {}, words.working), context.motion()];
  for (const line of working.lines) {
    parts.push(h("div", { class: "line" },
      h("div", { class: "names" }, `${line.left} = `, tokens(line.names, context)),
      ...(line.terms ? [termTable(line.terms, context)] : []),
      h("div", {}, "= ", tokens(line.numbers, context)),
      ...(isPlain(line) ? [] : [h("div", { class: "value" }, "= ", number(line.value))])));
  }
  if (working.omitted) parts.push(h("p", { class: "soft" }, fill(words.more_terms, { n: working.omitted.toLocaleString() })));
  return parts;
}

function isPlain(line) {
  return line.numbers.length === 1;
}

function tokens(list, context) {
  return list.map((token) => {
    if (typeof token === "string") return token;
    if (!token.array) return h("span", { title: exact(token.value, "float64") }, token.text);
    return h("a", { href: context.link(token.array, token.index), title: token.array,
      onclick: (event) => { event.preventDefault(); context.open(token.array, token.index, true); } }, token.text);
  });
}

function termTable(terms, context) {
  const { words } = context;
  const body = h("tbody");
  const add = (count) => {
    for (const term of terms.list.slice(body.children.length, body.children.length + count)) {
      const n = body.children.length;
      body.append(h("tr", { "data-term": n, class: context.term() === n ? "chosen" : null },
        h("td", {}, h("button", { type: "button", class: "link", title: words.choose_term, "aria-label": `${words.choose_term}${words.colon}${n}`, "aria-pressed": String(context.term() === n), onclick: () => context.chooseTerm(n) }, String(n))),
        h("td", { class: "names" }, tokens(term.names, context), h("br"), h("span", { class: "soft" }, tokens(term.numbers, context))),
        h("td", {}, format(term.value, 6, "float64")), h("td", {}, format(term.running, 6, "float64"))));
    }
  };
  add(16);
  const table = h("table", { class: "terms" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, words.term), h("th", { scope: "col" }, "Σ"),
    h("th", { scope: "col" }, "="), h("th", { scope: "col" }, words.running_sum))), body);
  const rest = () => terms.bounds - body.children.length;
  const more = h("p", { class: "soft" });
  const tell = () => {
    const left = rest();
    const button = terms.list.length > body.children.length
      ? h("button", { type: "button", class: "link", onclick: () => { add(48); tell(); } }, words.show_more) : null;
    more.replaceChildren(...(left > 0 ? [fill(words.more_terms, { n: left.toLocaleString() }), " ", ...(button ? [button] : [])] : []));
  };
  tell();
  return h("div", { class: "terms-box" }, table, more);
}

/** Recomputed beside recorded. Where terms cancel, the measure is the largest of them. */
function verdict(working, recorded, array, { store, words }) {
  if (store.isDerived(array)) return h("p", { class: "soft" });
  const value = working.value;
  const difference = value === recorded || (Number.isNaN(value) && Number.isNaN(recorded)) ? 0 : value - recorded;
  const dtype = store.array(array).dtype;
  const near = dtype === "int64" ? Math.abs(difference) : ulpsApart(Math.fround(value), recorded);
  const scaled = Math.abs(difference) / ulpAt(working.largest);
  const agrees = near <= 64 || scaled <= 16;
  const text = near <= 64 ? fill(words.ulp, { n: near }) : fill(words.ulp_terms, { n: scaled.toFixed(2) });
  return h("div", { class: agrees ? "verdict ok" : "verdict wrong", "data-ulps": near, "data-scaled": scaled, "data-value": String(value) },
    h("p", {}, agrees ? "✓ " : "✗ ", words.recomputed, words.colon, format(value, dtype === "int64" ? "all" : 12, dtype === "int64" ? dtype : "float64")),
    h("p", {}, words.difference, words.colon, difference === 0 ? "0" : format(difference, 3, "float64"), " · ", text));
}

function origin(array, context) {
  const view = context.home(array);
  if (!view) return h("p");
  return h("p", {}, context.words.came_from, " ", h("a", { href: `#step=${view}`, "data-step": view }, context.title(view)));
}

function usesOf(array, index, context) {
  const { store, words } = context;
  const uses = store.uses(array, index);
  if (!uses.length) return h("p");
  const items = uses.slice(0, 40).map(({ id, pattern }) => {
    const shape = store.shape(id);
    const count = pattern.reduce((n, at, axis) => n * (at === null ? shape[axis] : 1), 1);
    const first = pattern.map((at) => at ?? 0);
    const text = pattern.length ? `${id} [${pattern.map((at) => at ?? "·").join(", ")}]` : id;
    return h("li", {}, h("a", { href: context.link(id, first), onclick: (event) => { event.preventDefault(); context.open(id, first, true); } }, text),
      count > 1 ? ` ${fill(words.used_numbers, { n: count.toLocaleString() })}` : "");
  });
  return h("details", { class: "uses", open: uses.length <= 6 }, h("summary", {}, fill(words.named, { place: words.used_in, label: uses.length })), h("ul", {}, items));
}

/** The PyTorch that made the array, and a NumPy program that makes this number again. */
function codeOf(array, index, { store, words }) {
  const step = store.step(array);
  if (!step) return [];
  const torch = store.outline.torch[step.kind];
  const gradient = step.target.startsWith("d_") ? "loss.backward()\n\n" : "";
  return [
    ...(torch ? [listing(words.pytorch_lines, () => gradient + torch, words)] : []),
    listing(words.numpy_lines, () => numpyCode(store, array, index), words),
  ];
}

/** Code that is written when it is asked for, with a button that copies it. */
function listing(title, write, words) {
  const details = h("details", { class: "code" }, h("summary", {}, title));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("pre")) return;
    const text = write();
    const button = h("button", { type: "button", class: "link", onclick: async () => {
      if (await copy(text)) button.textContent = words.copied;
    } }, words.copy);
    details.append(button, h("pre", { tabindex: 0 }, h("code", {}, text)));
  });
  return details;
}

function copyButton(array, index, { words, link }) {
  const button = h("button", { type: "button", class: "link", onclick: async () => {
    if (await copy(new URL(link(array, index), location.href).href)) button.textContent = words.copied;
  } }, words.copy_link);
  return button;
}
