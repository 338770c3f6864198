// A text as characters, code points and bytes, with the bits that say how many bytes belong together.

import { h } from "dom";

const MOST = 24; // characters that are shown
/** Leading bits by how many bytes a character takes. @type {Record<number, number>} */
const MARKED = { 1: 1, 2: 3, 3: 4, 4: 5 };

/**
 * @param {HTMLElement} element
 * @param {{ text?: string }} start
 * @param {import("lessons/tool").Workshop} workshop
 */
export function mount(element, start, { say }) {
  const input = h("input", { type: "text", value: start.text ?? "", "aria-label": say("text"), autocomplete: "off", class: "wide" });
  const result = h("div", { class: "glyphs", "aria-live": "polite" });
  const note = h("p", { class: "soft", role: "status" });
  const redraw = () => {
    const characters = [...input.value].map((one) => (/^[\uD800-\uDFFF]$/.test(one) ? "\uFFFD" : one));
    result.replaceChildren(...characters.slice(0, MOST).map((one) => {
      const bytes = [...new TextEncoder().encode(one)];
      return h("div", { class: "glyph" }, h("span", { class: "char" }, one === " " ? "␣" : one),
        h("span", { class: "mono" }, `U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`),
        ...bytes.map((byte, i) => {
          const bits = byte.toString(2).padStart(8, "0");
          const marked = i ? 2 : MARKED[bytes.length];
          return h("span", { class: "mono byte" }, h("b", {}, byte.toString(16).toUpperCase().padStart(2, "0")), " ", h("em", {}, bits.slice(0, marked)), bits.slice(marked));
        }));
    }));
    const total = new TextEncoder().encode(input.value).length;
    note.textContent = [say("characters"), characters.length, "·", say("bytes"), total, ...(characters.length > MOST ? ["·", say("first"), MOST] : [])].join(" ");
  };
  input.addEventListener("input", redraw);
  element.replaceChildren(h("label", {}, `${say("text")} `, input), note, result);
  redraw();
}
