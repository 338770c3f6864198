// The draw: shares laid end to end as a ruler, the random number that falls on it, and the token that lies there.

import { arraysOf, candidates, roundOf } from "candidates";
import { ease } from "scene";
import { widthOf } from "pen";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return Boolean(roundOf(scene));
}

export const arrays = arraysOf;

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["shares", "end", "fall", "chosen"].map((name) => ({ name, ms: name === "fall" ? 1100 : 700, say: scene.say(`draw.say_${name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const round = roundOf(scene);
  if (!round) return;
  const list = candidates(scene, round);
  const { width, height, narrow, store } = scene;
  const left = narrow ? 14 : 70;
  const wide = width - 2 * left;
  const uniform = store.value(round.outcome.uniform, []);
  const chosen = list.find(({ isChosen }) => isChosen);
  const tall = Math.min(36, Math.max(16, (height - 262) / list.length));
  heading(pen, [left, 20], scene.say("draw.shares"));
  const label = Math.min(120, Math.max(...list.map(({ name }) => widthOf(name, { size: 13, mono: true }))) + 12);
  const room = wide - label - 70;
  list.forEach(({ name, p, isChosen, places }, c) => {
    const y = 34 + c * tall;
    const come = ease(scene.part("shares"));
    pen.text(left + label - 8, y + tall * 0.62, name, { size: 13, mono: true, align: "right", bold: isChosen, color: isChosen ? "accent" : "ink" });
    pen.bar(left + label, y + 3, Math.max(1, room * p * come), tall - 8, { color: "warm", alpha: 0.9 - 0.22 * (c % 3), place: places.p, key: `share ${c}`, stroke: isChosen ? "accent" : undefined, stroke_width: 2 });
    pen.text(left + label + Math.max(1, room * p * come) + 8, y + tall * 0.62, scene.number(p, 4), { size: 12, mono: true });
  });
  const y = 34 + list.length * tall + 84;
  const end = ease(scene.part("end"));
  heading(pen, [left, y - 52], scene.say("draw.ruler"));
  ruler(pen, [left, y, wide, 46], list.map(({ p, name, places, isChosen, c }) => ({ share: p, label: name, place: places.p, key: `ruler ${c}`, lit: isChosen && scene.part("chosen") > 0.5 })), scene, end);
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    pen.line([left + wide * tick, y + 48, left + wide * tick, y + 54], { stroke: "soft", stroke_width: 1 });
    pen.text(left + wide * tick, y + 68, String(tick), { size: 11, color: "soft", align: tick === 0 ? "left" : tick === 1 ? "right" : "center" });
  }
  needle(pen, scene, { x: left + wide * uniform, y, uniform, array: round.outcome.uniform, left, right: left + wide });
  const got = ease(scene.part("chosen"));
  if (got <= 0 || !chosen) return;
  const low = Math.min(height - 16, y + 112);
  pen.line([left + wide * uniform, y + 74, left + wide * uniform, low - 24], { stroke: "accent", stroke_width: 2, alpha: got });
  const text = scene.say("draw.chosen", { name: chosen.name, id: chosen.id.toLocaleString("en") });
  const w = widthOf(text, { size: 17, bold: true }) + 28;
  const x = Math.max(left, Math.min(left + wide - w, left + wide * uniform - w / 2));
  pen.bar(x, low - 22, w, 34, { color: "glow", stroke: "accent", stroke_width: 2, radius: 9, text, size: 17, bold: true, align: "center", alpha: got, place: { array: round.outcome.token, index: [] }, key: "chosen" });
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {{ x: number, y: number, uniform: number, array: string, left: number, right: number }} at
 */
function needle(pen, scene, { x, y, uniform, array, left, right }) {
  const fall = ease(scene.part("fall"));
  if (fall <= 0) return;
  const tip = y - 60 + 60 * fall;
  pen.line([x, tip - 22, x, y + 46 * fall], { stroke: "ink", stroke_width: 2.5 });
  pen.dot(x, tip - 24, 7, { color: "ink", place: { array, index: [] }, key: array });
  const text = scene.say("draw.number", { value: scene.number(uniform, 4) });
  const style = { size: 12.5, bold: true };
  pen.text(x + 12 + widthOf(text, style) > right ? Math.max(left, x - 12 - widthOf(text, style)) : x + 12, tip - 20, text, style);
}

/**
 * Shares laid end to end as one bar; as far as `grow`.
 * @param {Pen} pen
 * @param {[number, number, number, number]} box
 * @param {{ share: number, label: string, place?: Place, key?: string, lit?: boolean }[]} list
 * @param {Scene} scene
 */
function ruler(pen, [x, y, width, height], list, scene, grow = 1) {
  let at = x;
  pen.bar(x, y, width, height, { color: "tint", alpha: 0.5 });
  list.forEach(({ share, label, place, key, lit }, i) => {
    const w = width * share * grow;
    if (w > 0.3) {
      const texts = [`${label} ${scene.number(share, 3)}`, label];
      const text = grow > 0.6 ? texts.find((one) => widthOf(one, { size: 12.5, bold: lit }) < w - 10) : undefined;
      pen.bar(at, y, Math.max(0.5, w - 1.5), height, { color: undefined, strength: 1 - 0.3 * (i % 3), text, size: 12.5, bold: lit, align: "center", place, key, stroke: lit ? "accent" : undefined, stroke_width: 2.5 });
    }
    at += w;
  });
}
