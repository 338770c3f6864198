// UTF-8: characters, the bytes that write them, and the token of each byte.

import { chips, placeWidth, wires } from "chips";
import { bare } from "dom";
import { bits, characters, hex } from "utf8";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["characters", "bytes", "tokens"].map((name) => ({ name, ms: 900, say: scene.say(`byte_tokens.say_${name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, store, array } = scene;
  const bytes = scene.operand("bytes") ?? "";
  const values = Array.from({ length: store.shape(bytes)[0] }, (_, n) => store.value(bytes, [n]));
  const left = narrow ? 10 : 50;
  const right = width - left;
  const groups = characters(values, values.length);
  const top = /** @type {import("chips").Chip[]} */ (groups.map(({ text, bytes: own }) => ({ text, span: own.length, color: "glow" })));
  const middle = values.map((value, n) => ({ text: hex(value), under: narrow ? "" : bits(value), place: { array: bytes, index: [n] }, key: `${bytes} ${n}` }));
  const low = values.map((_, n) => ({ text: String(store.value(array, [n])), under: bare(scene.label(array, 0, n)), place: { array, index: [n] }, key: `${array} ${n}`, lit: n === scene.index[0] }));
  const each = placeWidth([top, middle, low], right - left, 110);
  const gap = Math.min(150, (height - 120) / 2.4);
  const y = [44, 44 + gap, 44 + 2 * gap];
  const at = { x: left, each, right };
  heading(pen, [left, 24], scene.say("byte_tokens.characters"));
  const a = chips(pen, top, { ...at, y: y[0], part: scene.part("characters") });
  heading(pen, [left, y[1] - 12], scene.say("byte_tokens.bytes"));
  const b = chips(pen, middle, { ...at, y: y[1], part: scene.part("bytes") });
  wires(pen, groups.flatMap(({ from, bytes: own }, g) => own.map((_, k) => /** @type {[number, number]} */ ([a[g], b[from + k]]))), { top: y[0] + 34, bottom: y[1] - 28, part: scene.part("bytes"), right });
  heading(pen, [left, y[2] - 12], scene.say("byte_tokens.tokens"));
  const c = chips(pen, low, { ...at, y: y[2], part: scene.part("tokens") });
  wires(pen, b.map((x, i) => [x, c[i]]), { top: y[1] + 52, bottom: y[2] - 28, part: scene.part("tokens"), right });
}
