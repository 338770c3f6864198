// Softmax of one row: scores, how far they are below the largest as powers of e, laid end to end, read as shares of one.

import { bars, heading, rowOf, ruler, sheet } from "shapes";
import { ease } from "scene";

/** @typedef {import("scene").Scene} Scene */

const MOST = 24; // places of a row that are drawn as bars

/** @param {Scene} scene */
export function suits(scene) {
  return (scene.store.shape(scene.array).at(-1) ?? 0) <= 64;
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["scores", "powers", "end", "shares"].map((name) => ({ name, ms: 800, say: scene.say(`softmax.say_${name}`) }));
}

/**
 * @param {import("pen").Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, index, array } = scene;
  const row = index.slice(0, -1);
  const chosen = index.at(-1) ?? 0;
  const x = scene.operand("x") ?? "";
  const all = rowOf(scene, x, row);
  const first = all.length <= MOST ? 0 : Math.max(0, Math.min(chosen - MOST / 2, all.length - MOST));
  const list = all.slice(first, first + MOST);
  const shares = list.map(({ i, label }) => ({ share: scene.value("out", [...row, i]), label, lit: i === chosen, place: { array, index: [...row, i] }, key: `${array} ${[...row, i]}` }));
  const left = narrow ? 10 : 40;
  const half = (width - 2 * left - 30) / 2;
  const tall = Math.min(230, height * (narrow ? 0.34 : 0.4));
  const note = list.length < all.length ? scene.say("part", { n: list.length, all: all.length }) : "";
  const at = (/** @type {number} */ i) => (scene.digits && list.length < 13 ? scene.number(i, 3) : "");
  pen.alpha = ease(scene.part("scores"));
  heading(pen, left, 16, scene.say("softmax.scores"), note);
  bars(pen, [left, 24, half, tall], list.map((one) => ({ ...one, text: at(one.value), lit: one.i === chosen })), { zero: 0.5 });
  pen.alpha = 1;
  const powers = ease(scene.part("powers"));
  const second = left + half + 30;
  if (powers > 0) {
    heading(pen, second, 16, scene.say("softmax.powers"));
    bars(pen, [second, 24, half, tall], list.map((one) => {
      const value = scene.value("e", [...row, one.i]);
      return { ...one, value, text: at(value), place: undefined, key: `e ${one.i}`, color: /** @type {const} */ ("warm"), lit: one.i === chosen };
    }), { largest: 1, grow: powers });
  }
  const end = ease(scene.part("end"));
  const low = 24 + tall + 34;
  if (end > 0) {
    heading(pen, left, low, scene.say("softmax.end", { total: scene.number(scene.value("total", row), 4) }));
    ruler(pen, [left, low + 10, width - 2 * left, narrow ? 34 : 44], shares, scene, end);
  }
  pen.alpha = ease(scene.part("shares"));
  const rest = low + (narrow ? 74 : 88);
  if (height - rest > 30 && index.length > 1) {
    heading(pen, left, rest, scene.say("softmax.shares"));
    sheet(pen, [left, rest + 8, width - 2 * left, height - rest - 14], scene, array, index, 3);
  }
  pen.alpha = 1;
}
