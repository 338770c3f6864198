// The search over lessons, glossary and steps: all of it lies in a script beside the page.

import { all, byId, fill, h } from "dom";

const MOST = 40; // that are shown
const EXACT = 30; // what a title is worth that is what is looked for

/** Title, what it is, address, text. @typedef {[string, string, string, string]} Entry */

/** On the page of the search. @param {Words} words */
export function search(words) {
  const input = document.getElementById("wanted");
  if (!(input instanceof HTMLInputElement)) return;
  const entries = /** @type {Entry[]} */ (window.twoRoutes.received.get("search"));
  const show = () => {
    const hits = found(entries, input.value);
    byId("hits", HTMLOListElement).replaceChildren(...hits.slice(0, MOST).map(([title, what, address, text]) => (
      h("li", {}, h("a", { href: address }, title), h("span", { class: "soft" }, ` ${what}`), text ? h("p", {}, text) : null))));
    byId("found", HTMLParagraphElement).textContent = input.value.trim() ? fill(words["lesson.hits"], { n: hits.length }) : "";
    history.replaceState(null, "", input.value ? `#${new URLSearchParams({ q: input.value })}` : " ");
  };
  input.addEventListener("input", show);
  document.addEventListener("keydown", (event) => moveWith(event, input));
  input.value = new URLSearchParams(location.hash.slice(1)).get("q") ?? "";
  input.focus();
  show();
}

/**
 * The arrow keys go through what was found, from where one types and back; Enter there opens the first.
 * @param {KeyboardEvent} event
 * @param {HTMLInputElement} input
 */
function moveWith(event, input) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
  const places = [input, ...all(byId("hits", HTMLOListElement), "a")];
  const at = places.findIndex((place) => place === document.activeElement);
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const typing = at === 0;
  if (by && at >= 0) places[Math.min(Math.max(at + by, 0), places.length - 1)].focus();
  else if (event.key === "Enter" && typing) places[1]?.click();
  else if ((event.key === "Escape" || event.key === "/") && !typing) input.select();
  else return;
  event.preventDefault();
}

/**
 * Entries that have every part of what is wanted, those first that have it in their titles.
 * @param {Entry[]} entries
 * @param {string} wanted
 */
function found(entries, wanted) {
  const [parts, whole] = [partsOf(wanted), wanted.trim().toLowerCase()];
  if (!parts.length) return [];
  const scored = entries.map((entry, place) => ({ entry, place, scores: [...parts.map((part) => scoreOf(entry, part)), entry[0].toLowerCase() === whole ? EXACT : 1] }))
    .filter(({ scores }) => scores.every(Boolean));
  const total = (/** @type {{ scores: number[] }} */ { scores }) => scores.reduce((sum, score) => sum + score, 0);
  return scored.sort((a, b) => total(b) - total(a) || a.place - b.place).map(({ entry }) => entry);
}

/** @param {Entry} entry @param {string} part */
function scoreOf([title, , , text], part) {
  const [name, body] = [title.toLowerCase(), text.toLowerCase()];
  if (name === part) return 12;
  return (begins(name, part) ? 6 : name.includes(part) ? 3 : 0) + (begins(body, part) ? 1 : 0);
}

/** Whether a word begins so; Chinese has no gaps between words. @param {string} text @param {string} part */
function begins(text, part) {
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]) || /\p{Script=Han}/u.test(part)) return true;
  return false;
}

/** Words, and of Chinese each two signs that stand together. @param {string} wanted */
function partsOf(wanted) {
  return (wanted.toLowerCase().match(/\p{Script=Han}+|[\p{L}\p{N}√·-]+/gu) ?? []).flatMap((part) => (
    /\p{Script=Han}/u.test(part) && part.length > 2 ? Array.from({ length: part.length - 1 }, (_, i) => part.slice(i, i + 2)) : [part]));
}
