// What a cache keeps: rows of keys or values that this round would compute again to the last bit, and the one that is new.

import { bare } from "dom";
import { ease, staggered } from "scene";
import { heading } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return Boolean(scene.operation?.operands.before) && scene.store.shape(scene.operand("before") ?? "").length === 3;
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["kept", "now", "compare", "new"].map((name) => ({ name, ms: 800, say: scene.say(`kept_rows.say_${name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, store, index, operation } = scene;
  const [before, now] = [scene.operand("before") ?? "", scene.operand("now") ?? ""];
  const head = Math.min(index[0] ?? 0, store.shape(now)[0] - 1);
  const [, rows, columns] = store.shape(now);
  const kept = store.shape(before)[1];
  const shift = operation?.settings.shift ?? 0;
  const left = narrow ? 58 : 110;
  const side = (width - left - 20 - (narrow ? 26 : 60)) / 2;
  const shown = Math.min(rows, Math.floor((height - 110) / 16));
  const tall = Math.min(44, (height - 110) / shown);
  const w = Math.min(46, side / columns);
  const right = left + columns * w + (narrow ? 26 : 60);
  heading(pen, [left, 30], scene.say(narrow ? "kept_rows.short_before" : "kept_rows.before", { n: kept }));
  heading(pen, [right, 30], scene.say(narrow ? "kept_rows.short_now" : "kept_rows.now", { n: rows }));
  const strip = (/** @type {string} */ array, /** @type {number} */ j, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ alpha, lit = false) => {
    for (let d = 0; d < columns; d++) {
      const at = [head, j, d];
      pen.cell(x + d * w, y, w, tall - 6, store.value(array, at), { largest: store.largest(array), key: `${array} ${at}`, place: { array, index: at }, alpha });
    }
    if (lit) pen.bar(x - 2, y - 2, columns * w + 4, tall - 2, { stroke: "accent", stroke_width: 2, frame: true, alpha });
  };
  for (let j = 0; j < shown; j++) {
    const y = 44 + j * tall;
    const isNew = j + shift >= kept;
    pen.text(left - 8, y + tall / 2, bare(scene.label(now, 1, j)), { size: 12, color: isNew ? "accent" : "soft", align: "right", bold: isNew });
    if (!isNew) strip(before, j + shift, left, y, ease(staggered(scene.part("kept"), j, shown)));
    strip(now, j, right, y, ease(staggered(scene.part(isNew ? "new" : "now"), j, shown)), isNew);
    if (isNew) pen.text(left + columns * w - 4, y + tall / 2, scene.say("kept_rows.new"), { size: 12, bold: true, color: "accent", align: "right", alpha: ease(scene.part("new")) });
    else {
      const isSame = Array.from({ length: columns }, (_, d) => d).every((d) => store.value(before, [head, j + shift, d]) === store.value(now, [head, j, d]));
      pen.text((left + columns * w + right) / 2, y + tall / 2 + 2, isSame ? "=" : "≈", { size: 20, bold: true, align: "center", color: isSame ? "ok" : "wrong", alpha: ease(scene.part("compare")) });
    }
  }
  pen.lines(narrow ? 12 : left, 44 + shown * tall + 30, scene.say("kept_rows.saved", { kept: kept - shift, rows, new: rows - kept + shift, head }), width - (narrow ? 24 : left + 20), { size: 13.5, bold: true });
}
