// GPT-2's tokenizer on the reader's own text: the vocabulary is that of the recording, and a pair of neighbours may merge
// where both together are a token; the lower its id, the earlier it was learned.

import { h } from "dom";
import { receive } from "received";

const MOST = 400; // tokens that are shown
const SPACE = "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]"; // as the tokenizer's own pattern has it
const PIECES = new RegExp(`'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE.slice(1, -1)}\\p{L}\\p{N}]+|${SPACE}+(?!${SPACE.replace("[", "[^")})|${SPACE}+`, "gu");

/** Bytes as a text of as many signs. @param {string} text */
function bytesOf(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

/** The single bytes in the order in which GPT-2 numbers them: printable ones first. */
const SINGLE = (() => {
  const bytes = Array.from({ length: 256 }, (_, i) => i);
  const isPrintable = (/** @type {number} */ n) => (n > 32 && n < 127) || (n > 160 && n !== 173);
  return [...bytes.filter(isPrintable), ...bytes.filter((n) => !isPrintable(n))];
})();

/**
 * What a label of the recording stands for, as bytes; tracer/model/token_labels.py makes them.
 * @param {string} label
 * @param {number} id
 */
function bytesOfLabel(label, id) {
  if (id < SINGLE.length) return String.fromCharCode(SINGLE[id]);
  const bare = label.replaceAll(/[\u2068\u2069]/g, "");
  if (/^[0-9A-F]{2}(·[0-9A-F]{2})+$/.test(bare)) return String.fromCharCode(...bare.split("·").map((two) => Number.parseInt(two, 16)));
  const text = bare.replaceAll(/U\+([0-9A-F]{4,6})(?:×(\d+))?/g, (_, code, times) => String.fromCodePoint(Number.parseInt(code, 16)).repeat(Number(times ?? 1)))
    .replaceAll(/[␣⏎⇥␡\u2400-\u241f]/g, (sign) => ({ "␣": " ", "⏎": "\n", "⇥": "\t", "␡": "\x7f" })[sign] ?? String.fromCharCode((sign.codePointAt(0) ?? 0) - 0x2400));
  return bytesOf(text);
}

/** @param {Map<string, number>} ids @param {string} piece its bytes */
function merged(ids, piece) {
  const parts = [...piece];
  for (;;) {
    let [best, at] = [Infinity, -1];
    for (let i = 0; i + 1 < parts.length; i++) {
      const id = ids.get(parts[i] + parts[i + 1]) ?? Infinity;
      if (id < best) [best, at] = [id, i];
    }
    if (at < 0) return parts.map((part) => ids.get(part) ?? -1);
    parts.splice(at, 2, parts[at] + parts[at + 1]);
  }
}

/**
 * @param {HTMLElement} element
 * @param {{ text?: string, labels: string }} start
 * @param {import("lessons/tool").Workshop} workshop
 */
export function mount(element, start, { say }) {
  const input = h("textarea", { rows: 3, "aria-label": say("text") });
  input.value = start.text ?? "";
  const [note, chips] = [h("p", { class: "soft", role: "status" }), h("div", { class: "tokens" })];
  /** @type {Promise<{ labels: string[], ids: Map<string, number> }> | null} */
  let vocabulary = null;
  const load = () => {
    vocabulary ??= receive(start.labels, "../").then((/** @type {string[]} */ labels) => (
      { labels, ids: new Map(labels.slice(0, -1).map((label, id) => [bytesOfLabel(label, id), id])) }));
    return vocabulary;
  };
  const redraw = async () => {
    note.textContent = say("loading");
    const known = await load().catch(() => null);
    if (!known) {
      vocabulary = null; // the next press tries again
      note.textContent = say("failed");
      return;
    }
    const { labels, ids } = known;
    const pieces = input.value.toWellFormed().match(PIECES) ?? [];
    const tokens = pieces.flatMap((piece) => merged(ids, bytesOf(piece)));
    Object.assign(element, { tokens }); // for tests
    note.textContent = [say("characters"), [...input.value].length, "·", say("bytes"), new TextEncoder().encode(input.value).length, "·", say("tokens"), tokens.length, ...(tokens.length > MOST ? ["·", say("first"), MOST] : [])].join(" ");
    chips.replaceChildren(...tokens.slice(0, MOST).map((id) => h("span", { class: "chip-token" }, h("b", {}, labels[id]), h("small", {}, String(id)))));
  };
  input.addEventListener("input", redraw);
  element.replaceChildren(h("label", { class: "field" }, say("text"), input),
    h("button", { type: "button", class: "chip", onclick: redraw }, say("cut")), note, chips);
}
