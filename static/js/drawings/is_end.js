// Is it the end? The drawn token beside the one that ends a text, and the text as it stands.

import { roundOf } from "candidates";
import { bare } from "dom";
import { ease } from "scene";
import { fit, heading } from "shapes";
import { widthOf } from "pen";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return scene.operation?.kind === "is_end" && Boolean(roundOf(scene));
}

/** @param {Scene} scene */
export function arrays(scene) {
  return [roundOf(scene)?.outcome.choice ?? ""].filter(Boolean);
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  const ends = scene.store.value(scene.array, []) === 1;
  return ["token", "compare", "text"].map((name) => ({ name, ms: 800, say: scene.say(`is_end.say_${name === "text" ? (ends ? "ends" : "goes_on") : name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const round = roundOf(scene);
  if (!round) return;
  const { store, width, height, array } = scene;
  const [token, eos] = [scene.operand("token") ?? "", scene.operand("eos") ?? ""];
  const ends = store.value(array, []) === 1;
  const drawn = bare(round.names[store.value(round.outcome.choice, [])] ?? "");
  const each = Math.min(240, (width - 90) / 2);
  const middle = width / 2;
  const y = Math.max(60, height * 0.22);
  const chip = (/** @type {number} */ x, /** @type {string} */ name, /** @type {string} */ from, /** @type {string} */ title, alpha = 1) => {
    heading(pen, [x, y - 12, each], title);
    pen.bar(x, y, each, 64, { color: "cell", stroke: ends ? "ok" : "line", stroke_width: 2, radius: 10, text: fit(name, each - 12, { size: 20, bold: true }), size: 20, bold: true, align: "center", alpha, place: { array: from, index: [] }, key: from });
    pen.text(x + each / 2, y + 84, store.value(from, []).toLocaleString("en"), { size: 13, mono: true, color: "soft", align: "center", alpha });
  };
  chip(middle - 34 - each, drawn, token, scene.say("is_end.token"), ease(scene.part("token")));
  chip(middle + 34, ends ? drawn : scene.say("is_end.mark"), eos, scene.say("is_end.eos"));
  const compare = ease(scene.part("compare"));
  pen.text(middle, y + 43, ends ? "=" : "≠", { size: 34, bold: true, align: "center", color: ends ? "ok" : "wrong", alpha: compare, place: { array, index: [] }, key: array });
  const low = y + 150;
  const come = ease(scene.part("text"));
  const style = { size: 30, serif: true };
  const text = fit(round.text, width - 60, style);
  pen.text(middle, low + 40, text, { ...style, align: "center", alpha: come });
  pen.text(middle + widthOf(text, style) / 2 + 14, low + 38, ends ? "■" : "…", { size: 18, color: ends ? "ok" : "soft", alpha: come });
  pen.lines(Math.max(20, middle - 260), low + 84, scene.say(ends ? "is_end.ends" : "is_end.goes_on"), Math.min(520, width - 40), { size: 14, color: "soft", alpha: come });
}
