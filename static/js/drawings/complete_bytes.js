// Bytes of a round: those that were held back, those of the new token, and the characters that they close into.

import { chips, placeWidth } from "chips";
import { bits, characters, hex } from "utf8";
import { ease } from "scene";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** The operations of the step. @param {Scene} scene */
function find(scene) {
  const made = scene.step.operations.map((id) => scene.store.made(id));
  const complete = made.find(({ kind }) => kind === "complete_bytes");
  return { complete: complete?.id ?? "", bytes: complete?.operands.bytes ?? "", held: made.find(({ kind }) => kind === "join_bytes")?.operands.held };
}

/** @param {Scene} scene */
export function suits(scene) {
  return Boolean(find(scene).complete);
}

/** @param {Scene} scene */
export function arrays(scene) {
  const { complete, bytes, held } = find(scene);
  return [complete, bytes, ...(held ? [held] : [])];
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  const { complete, held } = find(scene);
  const last = scene.store.value(complete, []) ? "close" : "wait";
  return [...(held ? ["held"] : []), "new", "close"].map((name) => ({ name, ms: 900, say: scene.say(`complete_bytes.say_${name === "close" ? last : name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, store } = scene;
  const { complete, bytes, held } = find(scene);
  const count = held ? store.shape(held)[0] : 0;
  const values = Array.from({ length: store.shape(bytes)[0] }, (_, n) => store.value(bytes, [n]));
  const groups = characters(values, store.value(complete, []));
  const left = narrow ? 12 : 70;
  const right = width - left;
  const row = /** @type {import("chips").Chip[]} */ (values.map((value, n) => ({ text: hex(value), under: bits(value), place: { array: bytes, index: [n] }, key: `${bytes} ${n}`, color: n < count ? "tint" : "cell",
    alpha: ease(scene.part(n < count ? "held" : "new")) })));
  const each = placeWidth([row], Math.min(right - left, 150 * values.length), 150);
  const x = left;
  const y = height * 0.2;
  heading(pen, [left, y - 18], scene.say("complete_bytes.bytes"), count ? scene.say("complete_bytes.kept", { n: count }) : "");
  chips(pen, row, { x, y, each, right });
  const close = ease(scene.part("close"));
  const low = y + 96;
  groups.forEach(({ from, bytes: own, text }) => {
    const [a, b] = [x + from * each + 6, x + (from + own.length) * each - 6];
    if (b > right) return;
    const color = text ? "accent" : "soft";
    pen.line([a, low - 26, a, low - 14, b, low - 14, b, low - 26], { stroke: color, stroke_width: 2, alpha: close, dash: text ? undefined : [4, 4] });
    pen.line([(a + b) / 2, low - 14, (a + b) / 2, low], { stroke: color, stroke_width: 2, alpha: close });
    const size = text ? Math.min(96, height * 0.2) : 14;
    pen.text((a + b) / 2, low + size * 0.95, text || scene.say("complete_bytes.waits"), { size, serif: Boolean(text), align: text || from ? "center" : "center", color: text ? "ink" : "soft", bold: Boolean(text), alpha: close });
  });
  const whole = groups.every(({ text }) => text);
  pen.lines(left, Math.min(height - 40, low + height * 0.3 + 40), scene.say(whole ? "complete_bytes.shown" : "complete_bytes.hidden"), right - left, { size: 14, color: whole ? "accent" : "soft", bold: true, alpha: close });
}
