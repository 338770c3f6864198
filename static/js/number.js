// The opened number: what it is, how it was made, whether it can be made again, where it goes.

import { fill, h } from "dom";
import { exact, format, ulpAt, ulpsApart } from "format";
import { walk } from "evaluate";
import { ordinal } from "store";
import { number, Working } from "working";

/**
 * Draw the number `array[index]` into `panel`.
 * context: { store, words, open(array, index), home(array), title(view), link(array, index) }
 * Returns the operands that the number reads, as [{array, index}].
 */
export async function showNumber(panel, array, index, context) {
  const { store, words } = context;
  const step = store.step(array);
  await store.load([array, ...(step ? Object.values(step.operands) : []), ...indexOperands(store, array)]);
  const recorded = store.value(array, index);
  const dtype = store.array(array).dtype;
  const working = step ? new Working(store.computation(array), store, store.outline.symbols[step.kind]).explain(index) : null;
  panel.replaceChildren(
    h("div", { class: "panel-head" }, h("h2", { id: "number-title" }, words.number),
      h("button", { type: "button", class: "close", onclick: context.close }, words.close)),
    h("p", { class: "name" }, h("code", {}, array), index.length ? ` [${index.join(", ")}]` : ""),
    h("p", { class: "soft" }, describeIndex(array, index, context)),
    h("p", { class: "big" }, format(recorded, "all", dtype)),
    h("p", { class: "soft" }, store.isDerived(array) ? words.computed_here : fill(words.recorded, { dtype })),
    ...(working ? [...workingParts(working, context), verdict(working, recorded, array, context)] : [h("p", {}, words.no_operands)]),
    origin(array, context),
    usesOf(array, index, context),
    h("p", {}, copyButton(array, index, context)),
  );
  return working ? working.reads : [];
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

export function describeIndex(array, index, { store, words }) {
  return store.array(array).axes.map((axis, i) => {
    const label = store.labels(array, i)?.[index[i]];
    return `${words[`axis.${axis}`]} ${ordinal(axis, index[i])}${label === undefined ? "" : ` (${label})`}`;
  }).join(", ");
}

function workingParts(working, context) {
  const { words } = context;
  const parts = [h("h3", {}, words.working)];
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
      body.append(h("tr", {},
        h("td", { class: "names" }, tokens(term.names, context), h("br"), h("span", { class: "soft" }, tokens(term.numbers, context))),
        h("td", {}, format(term.value, 6, "float64")), h("td", {}, format(term.running, 6, "float64"))));
    }
  };
  add(16);
  const table = h("table", { class: "terms" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Σ"),
    h("th", { scope: "col" }, words.term), h("th", { scope: "col" }, words.running_sum))), body);
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
    h("p", {}, agrees ? "✓ " : "✗ ", words.recomputed, ": ", format(value, dtype === "int64" ? "all" : 12, dtype === "int64" ? dtype : "float64")),
    h("p", {}, words.difference, ": ", difference === 0 ? "0" : format(difference, 3, "float64"), " · ", text));
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
  return h("details", { class: "uses", open: uses.length <= 6 }, h("summary", {}, `${words.used_in} (${uses.length})`), h("ul", {}, items));
}

function copyButton(array, index, { words, link }) {
  const button = h("button", { type: "button", class: "link", onclick: async () => {
    await navigator.clipboard?.writeText(new URL(link(array, index), location.href).href);
    button.textContent = words.copied;
  } }, words.copy_link);
  return button;
}
