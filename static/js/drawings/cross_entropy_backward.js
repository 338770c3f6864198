// The gradient of the logits: the target should rise, each of the others fall by as much as it was believed.

import { bare } from "dom";
import { ease, staggered } from "scene";
import { widthOf, wrap } from "pen";
import { heading, largestPlaces } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return scene.operation?.target === "d_logits";
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["believed", "target", "rest"].map((name) => ({ name, ms: 900, say: scene.say(`cross_entropy_backward.say_${name}`) }));
}

/**
 * The target and those that are believed most, of the chosen position.
 * @param {Scene} scene
 */
function shownOf(scene) {
  return scene.once("shown", () => {
    const { store, index, array } = scene;
    const logits = scene.operand("logits") ?? "";
    const [t, chosen] = index;
    const length = store.shape(logits)[1];
    const target = store.value(scene.operand("targets") ?? "", [t]);
    const count = scene.narrow ? 6 : 12;
    const largest = largestPlaces(length, (v) => (v === target || v === chosen ? -Infinity : store.flatValue(logits, t * length + v)), count);
    const places = [...new Set([target, chosen, ...largest])];
    const level = store.value(scene.operand("log_sum_exp") ?? "", [t]);
    return places.map((v) => ({ v, isTarget: v === target, label: bare(store.labels(array, 1)?.[v] ?? String(v)),
      p: Math.exp(store.value(logits, [t, v]) - level), gradient: store.value(array, [t, v]) }));
  });
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, index, array, store } = scene;
  const list = shownOf(scene);
  const left = narrow ? 12 : 60;
  const say = (/** @type {string} */ key, values = {}) => scene.say(`cross_entropy_backward.${key}`, values);
  const length = store.shape(array)[1];
  heading(pen, [left, 18], say("title", { label: bare(scene.label(array, 0, index[0])) }), narrow ? "" : say("note", { n: list.length, all: length.toLocaleString("en") }));
  const zero = height * 0.5;
  const each = Math.min(84, (width - 2 * left) / list.length);
  const most = Math.max(...list.map(({ gradient }) => Math.abs(gradient)), 1e-30);
  const room = height * 0.5 - 74;
  pen.line([left, zero, left + each * list.length, zero], { stroke: "soft", stroke_width: 1.5 });
  list.forEach(({ v, isTarget, label, p, gradient }, i) => {
    const x = left + (i + 0.5) * each;
    const come = isTarget ? ease(scene.part("target")) : ease(staggered(scene.part("rest"), i, list.length));
    // The arrow is the wish: against the gradient.
    const tall = -gradient / most * room;
    const end = zero - (Math.abs(tall) < 7 ? Math.sign(tall) * 7 : tall) * come;
    const color = tall > 0 ? "ok" : "wrong";
    const place = { array, index: [index[0], v] };
    pen.bar(x - each * 0.22, zero, each * 0.44, end - zero, { color, place, key: `${array} ${place.index}`, alpha: 0.85 * come, stroke: v === index[1] ? "accent" : undefined, stroke_width: 2 });
    pen.area([x, end - Math.sign(tall) * 9, x - each * 0.3, end, x + each * 0.3, end], { color, alpha: come });
    const text = widthOf(label, { size: 12 }) < each ? label : `${[...label].slice(0, Math.max(1, Math.floor(each / 9) - 1)).join("")}…`;
    pen.text(x, tall > 0 ? zero + 18 : zero - 10, text, { size: 12, align: "center", bold: isTarget, color: isTarget ? "accent" : "ink", alpha: ease(scene.part("believed")) });
    if (each > 44) {
      pen.text(x, tall > 0 ? zero + 34 : zero - 26, `p ${scene.number(p, 2)}`, { size: 11, color: "soft", align: "center", alpha: ease(scene.part("believed")) });
      pen.text(x, tall > 0 ? end - 16 : end + 24, scene.number(gradient, 3), { size: 11, mono: true, align: "center", alpha: come });
    }
  });
  const style = /** @type {const} */ ({ size: 12.5, color: "soft" });
  const rows = wrap(say("formula"), width - 2 * left, style).length;
  pen.lines(left, height - 6 - 17.5 * (rows - 1), say("formula"), width - 2 * left, style);
}
