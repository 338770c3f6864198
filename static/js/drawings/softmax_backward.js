// Back through a softmax: each share's gradient stands as high as it is and as wide as the share; the level of all of them
// together is what none of them gains, and what rises above it is left, times the share.

import { bare } from "dom";
import { ease } from "scene";
import { fit, heading, shownOf, strength } from "shapes";
import { widthOf } from "pen";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return scene.index.length > 0 && Boolean(scene.operand("out")) && Boolean(scene.operand("d_out"));
}

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return ["come", "level", "left"].map((name) => ({ name, ms: 900, say: scene.say(`softmax_backward.move.${name}`) }));
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { store, array, index, width, height, narrow } = scene;
  const lead = index.slice(0, -1);
  const chosen = index.at(-1) ?? 0;
  const [shares, gradients] = [scene.operand("out") ?? "", scene.operand("d_out") ?? ""];
  const n = store.shape(array).at(-1) ?? 0;
  const list = shownOf(n, (width - 40) / 14, chosen).map((j) => {
    const at = [...lead, j];
    return { j, at, share: store.value(shares, at), gradient: store.value(gradients, at), left: store.value(array, at), name: bare(scene.label(array, lead.length, j)) };
  });
  const level = scene.value("inner", lead);
  const pad = narrow ? 12 : 40;
  const label = narrow ? 0 : 92;
  const w = width - 2 * pad - label;
  // As wide as its share, but that a share of nothing is still seen.
  const least = Math.min(16, w / list.length / 2);
  const total = list.reduce((sum, { share }) => sum + share, 0) || 1;
  const wide = (/** @type {number} */ share) => least + share / total * (w - least * list.length);
  const upper = { y: 34, h: height * 0.5 - 60 };
  const lower = { y: height * 0.5 + 24, h: height * 0.5 - 66 };
  const scale = (/** @type {number[]} */ values, /** @type {{ y: number, h: number }} */ room) => {
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    const unit = high > low ? room.h / (high - low) : 0;
    return { at: (/** @type {number} */ v) => room.y + (high - v) * unit, unit };
  };
  const above = scale([...list.map(({ gradient }) => gradient), level], upper);
  const below = scale(list.map(({ left }) => left), lower);
  const [come, leveled, left] = ["come", "level", "left"].map((name) => ease(scene.part(name)));
  const largest = Math.max(...list.map(({ gradient }) => Math.abs(gradient)), 1e-300);
  const most = Math.max(...list.map((one) => Math.abs(one.left)), 1e-300);
  heading(pen, [pad, 18, width - 2 * pad], scene.say("softmax_backward.come"), list.length < n ? scene.say("part", { n: list.length, all: n }) : "");
  heading(pen, [pad, lower.y - 16, width - 2 * pad], scene.say("softmax_backward.left"));
  pen.line([pad, above.at(0), pad + w, above.at(0)], { stroke: "soft", stroke_width: 1 });
  pen.line([pad, below.at(0), pad + w, below.at(0)], { stroke: "soft", stroke_width: 1, alpha: left });
  let x = pad;
  for (const { j, at, share, gradient, left: result, name } of list) {
    const room = wide(share);
    const lit = j === chosen;
    const mark = lit ? /** @type {const} */ ("accent") : undefined;
    pen.bar(x + 1, above.at(0), room - 2, (above.at(gradient) - above.at(0)) * come, { strength: strength(gradient, largest), color: undefined, key: `${gradients} ${at}`, place: { array: gradients, index: at }, stroke: mark, stroke_width: 2 });
    pen.bar(x + 1, below.at(0), room - 2, (below.at(result) - below.at(0)) * left, { strength: strength(result, most), color: undefined, key: `${array} ${at}`, place: { array, index: at }, stroke: mark, stroke_width: 2 });
    const text = scene.number(result, 3);
    if (left === 1 && widthOf(text, { size: 11, mono: true }) < room) pen.text(x + room / 2, result < 0 ? below.at(result) + 13 : below.at(result) - 4, text, { size: 11, mono: true, align: "center", bold: lit, color: lit ? "accent" : "ink" });
    const said = fit(`${name} ${scene.number(share, 2)}`, room, { size: 11 });
    if (said.length > 2) pen.text(x + room / 2, height - 8, said, { size: 11, align: "center", color: lit ? "accent" : "soft", bold: lit });
    x += room;
  }
  pen.line([pad, above.at(level), pad + w * leveled, above.at(level)], { stroke: "accent", stroke_width: 2, dash: [6, 4], key: "level" });
  const said = scene.say("softmax_backward.level", { value: scene.number(level, 3) });
  if (!narrow) pen.lines(pad + w + 8, above.at(level) + 4, said, label - 8, { size: 11, color: "accent", alpha: leveled });
}
