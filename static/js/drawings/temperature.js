// From logits to shares, candidate by candidate: divided by the temperature, the largest kept, read as shares.

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

const COLUMNS = /** @type {const} */ (["logit", "scaled", "p"]);

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return COLUMNS.map((name) => ({ name, ms: 900, say: scene.say(`temperature.say_${name}`) }));
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
  const left = narrow ? 12 : 40;
  const names = Math.min(narrow ? 62 : 120, Math.max(...list.map(({ name }) => widthOf(name, { size: 13, mono: true }))) + 14);
  const each = (width - 2 * left - names) / COLUMNS.length;
  const shown = list.slice(0, Math.max(1, Math.floor((height - 110) / 24)));
  const tall = Math.min(52, (height - 110) / shown.length);
  const settings = store.operation(list[0].places.scaled.array)?.settings ?? {};
  const all = store.shape(list[0].places.logit.array).at(-1) ?? 0;
  COLUMNS.forEach((column, k) => {
    const x = left + names + k * each;
    const come = ease(scene.part(column));
    const largest = column === "p" ? 1 : Math.max(...list.flatMap(({ logit, scaled }) => [Math.abs(logit), Math.abs(scaled)]), 1e-9);
    pen.alpha = 0.25 + 0.75 * come;
    const title = scene.say(narrow ? `temperature.short_${column}` : `temperature.${column}`, { t: settings.temperature ?? 1 });
    heading(pen, [x, 22], title);
    pen.alpha = 1;
    shown.forEach((one, c) => {
      const y = 38 + c * tall;
      const value = one[column];
      const room = each - (narrow ? 12 : 90);
      pen.bar(x, y + tall * 0.2, Math.max(1, Math.abs(value) / largest * room * come), tall * 0.5, { color: column === "p" ? "accent" : value < 0 ? "cool" : "warm", alpha: column === "p" || k === 0 ? 1 : 0.75, place: one.places[column], key: `${column} ${one.id}` });
      if (narrow) pen.text(x, y + tall * 0.2 - 2, scene.number(value, 3), { size: 11, mono: true, alpha: come });
      else pen.text(x + Math.max(1, Math.abs(value) / largest * room * come) + 8, y + tall * 0.56, scene.number(value, 4), { size: 12, mono: true, alpha: come });
    });
  });
  shown.forEach(({ name, isChosen }, c) => pen.text(left + names - 8, 38 + (c + 0.56) * tall, name, { size: 13, mono: true, align: "right", bold: isChosen, color: isChosen ? "accent" : "ink" }));
  pen.lines(left, height - 40, scene.say("temperature.kept", { n: list.length, shown: shown.length, all: all.toLocaleString("en") }), width - 2 * left, { size: 12.5, color: "soft" });
}
