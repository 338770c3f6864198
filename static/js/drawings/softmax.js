// Softmax: scores as bars, their exponentials, laid end to end as one bar, and read as shares of one.

import { ease, staggered } from "scene";
import { widthOf } from "pen";
import { bars, fit, grid, heading, largestOf, shownOf, strength, withLast } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen @typedef {import("shapes").Room} Room */

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  const say = (/** @type {string} */ key) => scene.say(`softmax.move.${key}`);
  const list = [{ name: "scores", ms: 500, say: say("scores") }, { name: "exponentials", ms: 900, say: say("exponentials") },
    { name: "laid", ms: 900, say: say("laid") }, { name: "shares", ms: 500, say: say("shares") }];
  if (scene.index.length > 1) list.push({ name: "rest", ms: 500, say: say("rest") });
  return list;
}

/**
 * The places of the row that are shown: all of them, or the largest and the chosen one.
 * @param {Scene} scene
 */
function shown(scene) {
  const n = scene.store.shape(scene.array).at(-1) ?? 0;
  const all = Array.from({ length: n }, (_, k) => k);
  const most = Math.floor((scene.width / 2 - 30) / (n > 64 ? 46 : 5));
  if (n <= most) return all;
  const chosen = scene.index.at(-1);
  const share = (/** @type {number} */ k) => scene.store.value(scene.array, withLast(scene.index, k));
  const first = scene.once("order", () => all.toSorted((a, b) => share(b) - share(a))).slice(0, most);
  if (chosen !== undefined && !first.includes(chosen)) first[most - 1] = chosen;
  return first;
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { array, index, width, height, narrow, store } = scene;
  const places = scene.once("shown", () => shown(scene));
  const n = store.shape(array).at(-1) ?? 0;
  const x = scene.operand("x") ?? "";
  const pad = narrow ? 8 : 24;
  const gap = narrow ? 14 : 40;
  const half = (width - 2 * pad - gap) / 2;
  const hasRows = index.length > 1 && (store.shape(array).at(-2) ?? 0) > 1 && n <= 64;
  const top = { y: 34, h: height * (hasRows ? 0.42 : 0.6) - 34 };
  const name = (/** @type {number} */ k) => scene.label(array, index.length - 1, k);
  const lit = (/** @type {number} */ k) => k === index.at(-1);
  const axis = index.length - 2;
  const from = axis >= 0 ? scene.label(array, axis, index[axis]) : "";
  heading(pen, [pad, 20, half], scene.say("softmax.scores"), from && scene.say("softmax.row", { token: from }));
  bars(pen, scene, { x: pad, w: half, ...top }, places.map((k) => ({ value: scene.value("x", withLast(index, k)), label: name(k), lit: lit(k),
    key: `${x} ${withLast(index, k)}`, place: x ? { array: x, index: withLast(index, k) } : undefined })));
  const right = pad + half + gap;
  heading(pen, [right, 20, half], scene.say(narrow ? "softmax.short" : "softmax.exponentials"));
  if (!narrow) pen.line([pad + half + 8, top.y + top.h / 2, right - 10, top.y + top.h / 2, right - 15, top.y + top.h / 2 - 4, right - 10, top.y + top.h / 2, right - 15, top.y + top.h / 2 + 4], { stroke: "soft" });
  const { places: stand } = bars(pen, scene, { x: right, w: half, ...top }, places.map((k, i) => ({ value: scene.value("e", withLast(index, k)), label: name(k), lit: lit(k),
    grown: ease(staggered(scene.part("exponentials"), i, places.length)) })));
  const y = top.y + top.h + 34;
  drawShares(pen, scene, { x: pad, y, w: width - 2 * pad, h: Math.min(46, height * 0.1) }, places, stand, n);
  if (hasRows) drawRows(pen, scene, { x: pad, y: y + Math.min(46, height * 0.1) + 56, w: width - 2 * pad, h: height - y - Math.min(46, height * 0.1) - 62 });
}

/**
 * The one bar: each exponential comes from where it stood.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Room} room
 * @param {number[]} places
 * @param {Room[]} stand
 * @param {number} n
 */
function drawShares(pen, scene, { x, y, w, h }, places, stand, n) {
  const { array, index, store } = scene;
  const share = (/** @type {number} */ k) => store.value(array, withLast(index, k));
  const said = scene.part("shares");
  const largest = largestOf(places.map(share));
  heading(pen, [x, y - 8, w], scene.say("softmax.laid", { total: scene.number(scene.value("total", index.slice(0, -1)), 4) }));
  let at = x;
  places.forEach((k, i) => {
    const part = ease(staggered(scene.part("laid"), i, places.length, 3));
    const long = share(k) * w;
    const from = stand[i];
    const mix = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * part;
    const lit = k === index.at(-1);
    const label = `${scene.label(array, index.length - 1, k)} `;
    const number = scene.number(share(k), 3);
    const style = { size: 11, mono: true, bold: lit };
    const text = said < 1 || part < 1 ? "" : widthOf(label + number, style) < long - 4 ? label + number : widthOf(number, style) < long - 4 ? number : "";
    if (long > 0 && part > 0) {
      pen.add({ kind: "cell", x: mix(from.x, at), y: mix(from.y, y), w: Math.max(0.5, mix(from.w, long - (long > 6 ? 1 : 0))), h: mix(from.h, h), strength: strength(share(k), largest),
        ...style, align: "center", text, key: `${array} ${withLast(index, k)}`, place: { array, index: withLast(index, k) }, stroke: lit ? "accent" : undefined, stroke_width: 2 });
    }
    at += long;
  });
  if (places.length < n) {
    const rest = x + w - at;
    if (rest > 0.5) pen.bar(at, y, rest, h, { color: "tint", alpha: scene.part("laid") });
  }
  pen.line([x, y + h + 5, x, y + h + 9, x + w, y + h + 9, x + w, y + h + 5], { stroke: "soft", alpha: said });
  pen.text(x, y + h + 22, "0", { size: 11, color: "soft", alpha: said });
  pen.text(x + w, y + h + 22, "1", { size: 11, color: "soft", align: "right", alpha: said });
  const note = places.length < n ? scene.say("more", { n: n - places.length }) : scene.say("softmax.one");
  pen.text(x + w / 2, y + h + 22, fit(note, w - 40, { size: 11 }), { size: 11, color: "soft", align: "center", alpha: said });
}

/** @param {Pen} pen @param {Scene} scene @param {Room} room */
function drawRows(pen, scene, { x, y, w, h }) {
  const { array, index, store } = scene;
  const [rows, columns] = store.shape(array).slice(-2);
  const list = shownOf(rows, h / 4, index.at(-2) ?? 0);
  heading(pen, [x, y - 8, w], scene.say("softmax.rows"), list.length < rows ? scene.say("folded", { shown: list.length, all: rows }) : "");
  const rest = ease(scene.part("rest"));
  grid(pen, scene, { x, y, w, h }, { array, lead: index.slice(0, -2), rows: list, columns: Array.from({ length: columns }, (_, k) => k), chosen: index, keys: false,
    mark: (at) => at.at(-2) === index.at(-2), alpha: (i) => (i === index.at(-2) ? scene.part("shares") : rest) });
}
