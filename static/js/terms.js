// The terms of a sum as a table, and the numbers in a working as links.

import { fill, h } from "dom";
import { exact, format } from "format";

const AT_FIRST = 16; // terms
const MORE = 48;

/** @typedef {import("number-panel").PanelContext} PanelContext */

/**
 * @param {import("said").Token[]} list
 * @param {PanelContext} context
 */
export function tokens(list, context) {
  return list.map((token) => {
    if (typeof token === "string") return token;
    if (!("array" in token)) return h("span", { title: exact(token.value, "float64") }, token.text);
    return h("a", { href: context.link(token), title: token.array,
      onclick: (event) => { event.preventDefault(); context.open(token, true); } }, token.text);
  });
}

/**
 * @param {import("working").Terms} terms
 * @param {PanelContext} context
 */
export function termTable(terms, context) {
  const { words } = context;
  const body = h("tbody");
  const more = h("p", { class: "soft" });
  const show = (/** @type {number} */ count) => {
    const shown = body.children.length;
    body.append(...terms.list.slice(shown, shown + count).map((term, i) => termRow(term, shown + i, context)));
    const left = terms.bounds - body.children.length;
    const button = terms.list.length > body.children.length
      ? h("button", { type: "button", class: "link", onclick: () => show(MORE) }, words.show_more) : "";
    more.replaceChildren(...(left > 0 ? [fill(words.more_terms, { n: left.toLocaleString() }), " ", button] : []));
  };
  show(AT_FIRST);
  const heads = [words.term, "Σ", "=", words.running_sum].map((text) => h("th", { scope: "col" }, text));
  return h("div", { class: "terms-box" }, h("table", { class: "terms" }, h("thead", {}, h("tr", {}, heads)), body), more);
}

/**
 * @param {import("working").Term} term
 * @param {number} n
 * @param {PanelContext} context
 */
function termRow(term, n, context) {
  const { words } = context;
  const chosen = context.term() === n;
  const button = h("button", { type: "button", class: "link", title: words.choose_term,
    "aria-label": `${words.choose_term}${words.colon}${n}`, "aria-pressed": String(chosen), onclick: () => context.chooseTerm(n) }, String(n));
  return h("tr", { "data-term": n, class: chosen ? "chosen" : null }, h("td", {}, button),
    h("td", { class: "names" }, tokens(term.names, context), h("br"), h("span", { class: "soft" }, tokens(term.numbers, context))),
    h("td", {}, format(term.value, 6, "float64")), h("td", {}, format(term.running, 6, "float64")));
}
