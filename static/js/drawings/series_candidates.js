// What would come next at every moment: for each part of the text how its likeliest next tokens share the whole among
// them, update after update, and beside it the moment that is looked at.

import { bare } from "dom";
import { ease } from "scene";
import { fit, heading, shownOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen @typedef {import("shapes").Room} Room */

const COLORS = /** @type {const} */ (["warm", "cool", "query", "weight", "key", "gradient"]);
const MOST = 160; // moments that are drawn; of more, as many as there is room for

/** @param {Scene} scene */
export function suits(scene) {
  return scene.array !== scene.step.arrays.at(-1);
}

/** @param {Scene} scene */
export function arrays(scene) {
  return [...scene.step.arrays, ...scene.step.operations];
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return [{ name: "train", ms: 3500, say: scene.say("series_candidates.say_train") }, { name: "look", ms: 900, say: scene.say("series_candidates.say_look") }];
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { width, height, narrow, store, index } = scene;
  const shape = store.shape(scene.step.arrays[0]);
  const [chosen, at] = [index[0] ?? shape[0] - 1, index[1] ?? 0];
  const train = scene.part("train");
  // While the training runs the moment runs along; then the eye goes back to the one that is chosen.
  const moment = train < 1 ? Math.round(train * (shape[0] - 1)) : Math.round(shape[0] - 1 + (chosen - shape[0] + 1) * ease(scene.part("look")));
  const pad = narrow ? 10 : 28;
  const left = { x: pad, y: 0, w: narrow ? width - 2 * pad : width * 0.58 - pad, h: narrow ? height * 0.52 : height };
  const right = narrow ? { x: pad, y: left.h + 6, w: width - 2 * pad, h: height - left.h - 12 } : { x: width * 0.58 + 40, y: 0, w: width * 0.42 - 40 - pad, h: height };
  strips(pen, scene, left, { moment, at, until: Math.round(train * (shape[0] - 1)) });
  bars(pen, scene, right, moment, at);
}

/**
 * A strip for each part of the text.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Room} room
 * @param {{ moment: number, at: number, until: number }} how
 */
function strips(pen, scene, { x, y, w, h }, { moment, at, until }) {
  const { store, step } = scene;
  const [ids, , , p] = [...step.arrays, ...step.operations];
  const [moments, positions, count] = store.shape(ids);
  const rows = shownOf(positions, (h - 64) / 34, at);
  const tall = Math.min(96, (h - 64) / rows.length);
  const steps = Array.from({ length: Math.min(moments, MOST) }, (_, k) => Math.round(k * (moments - 1) / Math.max(1, Math.min(moments, MOST) - 1)));
  const wide = w / steps.length;
  const edge = (/** @type {number} */ k) => Math.round(x + k * wide); // on whole pixels: no seams
  const X = (/** @type {number} */ m) => x + (moments > 1 ? m / (moments - 1) : 0) * (w - wide) + wide / 2;
  heading(pen, [x, 18, w], scene.say("series_candidates.strips"), rows.length < positions ? scene.say("part", { n: rows.length, all: positions }) : "");
  rows.forEach((t, row) => {
    const top = y + 28 + row * tall;
    const colors = colorsOf(scene, t);
    const high = tall - 24;
    const text = `${textOf(scene, t)} →`;
    pen.text(x, top + 12, fit(text, w, { size: 12, bold: t === at }), { size: 12, bold: t === at, color: t === at ? "accent" : "ink" });
    pen.bar(x, top + 18, edge(steps.length) - x, high, { color: "tint", radius: 1, stroke: t === at ? "accent" : undefined, stroke_width: 1.5 });
    steps.forEach((m, k) => {
      let from = top + 18 + high;
      for (let c = 0; m <= until && c < count; c++) {
        const place = { array: p, index: [m, t, c] };
        const part = store.value(p, place.index) * high;
        if (part < 0.4) continue;
        from -= part;
        pen.bar(edge(k), from, edge(k + 1) - edge(k), part, { radius: 0, color: colors.get(store.value(ids, place.index)) ?? "soft", alpha: t === at ? 0.95 : 0.6, place });
      }
    });
  });
  rows.forEach((_, row) => pen.line([X(moment), y + 44 + row * tall, X(moment), y + 24 + (row + 1) * tall], { stroke: "ink", stroke_width: 2 }));
  const bottom = y + 28 + rows.length * tall;
  pen.text(x, bottom + 14, scene.say("series_candidates.at", { n: 0 }), { size: 11, color: "soft" });
  pen.text(x + w, bottom + 14, scene.say("series_candidates.at", { n: moments - 1 }), { size: 11, color: "soft", align: "right" });
}

/**
 * The candidates of one moment after one part of the text, and what is left for all others.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Room} room
 * @param {number} moment
 * @param {number} at
 */
function bars(pen, scene, { x, y, w, h }, moment, at) {
  const { store, step } = scene;
  const [ids, , , p] = [...step.arrays, ...step.operations];
  const [, , count] = store.shape(ids);
  const colors = colorsOf(scene, at);
  heading(pen, [x, y + 18, w], fit(textOf(scene, at), w * 0.6, { size: 12, bold: true }), scene.say("series_candidates.at", { n: moment }));
  const tall = Math.min(64, (h - 34) / (count + 1));
  const list = Array.from({ length: count }, (_, c) => {
    const place = { array: p, index: [moment, at, c] };
    const id = store.value(ids, place.index);
    return { name: bare(store.outline.tokens[id] ?? String(id)), share: store.value(p, place.index), color: colors.get(id) ?? /** @type {const} */ ("soft"), key: `token ${id}`, place };
  });
  const others = { name: scene.say("series_candidates.others"), share: Math.max(0, 1 - list.reduce((sum, { share }) => sum + share, 0)), color: /** @type {const} */ ("tint"), key: "others", place: undefined };
  const names = Math.min(w * 0.4, 120);
  [...list, others].forEach(({ name, share, color, key, place }, row) => {
    const top = y + 30 + row * tall;
    pen.text(x + names - 8, top + tall * 0.58, fit(name, names - 8, { size: 13 }), { size: 13, align: "right", key: `${key} name` });
    pen.bar(x + names, top + 4, Math.max(1, (w - names - 70) * share), tall - 10, { color, stroke: key === "others" ? "line" : undefined, key, place });
    pen.text(x + names + Math.max(1, (w - names - 70) * share) + 8, top + tall * 0.58, scene.number(share, 3), { size: 12, mono: true, key: `${key} share` });
  });
}

/**
 * The text up to a position.
 * @param {Scene} scene
 * @param {number} t
 */
function textOf({ store, step }, t) {
  return (store.labels(step.arrays[0], 1) ?? []).slice(0, t + 1).map(bare).join(" ");
}

/**
 * Token → its colour, the one that becomes likeliest first; the same in every moment.
 * @param {Scene} scene
 * @param {number} t
 * @returns {Map<number, import("pen").Color>}
 */
function colorsOf(scene, t) {
  return scene.once(`colors ${t}`, () => {
    const { store, step } = scene;
    const [ids, , , p] = [...step.arrays, ...step.operations];
    const [moments, , count] = store.shape(ids);
    /** @type {Map<number, number>} */
    const most = new Map();
    for (let m = 0; m < moments; m++) {
      for (let c = 0; c < count; c++) {
        const id = store.value(ids, [m, t, c]);
        most.set(id, Math.max(most.get(id) ?? 0, store.value(p, [m, t, c])));
      }
    }
    const ranked = [...most].sort((a, b) => b[1] - a[1]).map(([id]) => id);
    return new Map(ranked.slice(0, COLORS.length).map((id, i) => [id, COLORS[i]]));
  });
}
