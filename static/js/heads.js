// Features cut into heads, or heads laid side by side: no number changes, each only moves to another place. The cells
// stay in their order, and gaps open or close between them.

import { bare } from "dom";
import { ease } from "scene";
import { digitsFor, fit, heading, shownOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

const GAPS = [10, 26]; // between heads, between queries, keys and values
const COLORS = /** @type {const} */ (["query", "key", "value"]);

/**
 * The array of whole rows, and those cut into heads; `cuts`: whether the rows are what is there before.
 * @param {Scene} scene
 */
function partsOf({ store, step, operation }) {
  const made = step.operations.map((id) => store.made(id)).filter(({ kind, is_gradient }) => kind === operation?.kind && is_gradient === operation?.is_gradient);
  const reads = [...new Set(made.flatMap(({ operands }) => Object.values(operands)))];
  const all = [...made.map(({ id }) => id), ...reads];
  const whole = all.find((array) => store.shape(array).length === 2) ?? "";
  return { whole, parts: all.filter((array) => store.shape(array).length === 3), cuts: reads.includes(whole) };
}

/** @param {Scene} scene */
export function suits(scene) {
  const { whole, parts } = partsOf(scene);
  return Boolean(whole) && parts.length > 0 && scene.store.shape(whole)[1] * 3 < scene.width;
}

/** @param {Scene} scene */
export function arrays(scene) {
  const { whole, parts } = partsOf(scene);
  return [whole, ...parts];
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  const { cuts } = partsOf(scene);
  return [{ name: "before", ms: 500, say: scene.say(cuts ? "heads.say_whole" : "heads.say_apart") },
    { name: "move", ms: 1800, say: scene.say(cuts ? "heads.say_cut" : "heads.say_join") }];
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { store, width, height, narrow, array, index } = scene;
  const { whole, parts, cuts } = partsOf(scene);
  const [T, columns] = store.shape(whole);
  const [heads, , dh] = store.shape(parts[0]);
  const label = narrow ? 44 : 64;
  const pad = narrow ? 8 : 24;
  const [between, groups] = narrow ? [5, 10] : GAPS;
  const gaps = (parts.length * heads - parts.length) * between + (parts.length - 1) * groups;
  const cw = Math.min(44, (width - 2 * pad - label - gaps) / columns);
  const rows = shownOf(T, (height - 150) / 2 / 6, index.at(-2) ?? 0);
  const ch = Math.min(40, (height - 150) / 2 / rows.length);
  const left = Math.max(pad, (width - label - columns * cw - gaps) / 2) + label;
  const tops = [46, 46 + rows.length * ch + 84];
  const [wholeTop, partTop] = cuts ? tops : tops.toReversed();
  const X = (/** @type {number} */ o, /** @type {number} */ apart) => {
    const head = Math.floor(o / dh);
    const group = Math.floor(head / heads);
    return left + o * cw + apart * ((head - group) * between + group * groups) + (1 - apart) * gaps / 2;
  };
  const at = (/** @type {number} */ o) => ({ part: parts[Math.floor(o / (heads * dh))], place: [Math.floor(o / dh) % heads, o % dh] });
  const chosen = array === whole ? index.at(-1) ?? 0 : parts.indexOf(array) * heads * dh + index[0] * dh + (index[2] ?? 0);
  const move = ease(scene.part("move"));
  const largest = store.largest(whole);
  const digits = scene.once("digits", () => digitsFor(scene, rows.flatMap((t) => Array.from({ length: columns }, (_, o) => store.value(whole, [t, o]))), cw, ch));
  heading(pen, [left, 16, width - left], scene.say(cuts ? "heads.whole" : "heads.apart"), rows.length < T ? scene.say("part", { n: rows.length, all: T }) : "");
  heading(pen, [left, tops[1] - 30, width - left], scene.say(cuts ? "heads.apart" : "heads.whole"));
  for (const [top, apart, come] of [[wholeTop, 0, cuts ? 1 : move], [partTop, 1, cuts ? move : 1]]) {
    const [from, start] = top === tops[1] ? [tops[0], 1 - apart] : [top, apart];
    rows.forEach((t, row) => {
      const y = from + row * ch + (top - from) * come;
      const isRow = t === index.at(-2);
      pen.text(X(0, apart) - 6, top + (row + 0.5) * ch + 4, ch < 12 && !isRow ? "" : fit(bare(scene.label(whole, 0, t)), label - 6, { size: 11 }), { size: 11, align: "right", color: isRow ? "accent" : "soft", bold: isRow });
      for (let o = 0; o < columns; o++) {
        const own = at(o);
        const place = apart ? { array: own.part, index: [own.place[0], t, own.place[1]] } : { array: whole, index: [t, o] };
        const x = X(o, start) + (X(o, apart) - X(o, start)) * come;
        pen.cell(x, y, cw, ch, store.value(whole, [t, o]), { largest, digits, lit: isRow && o === chosen, place, key: `${place.array} ${place.index}`, alpha: top === tops[1] ? Math.min(1, come * 3) : 1 });
      }
    });
  }
  names(pen, scene, { parts, heads, dh, X, cw, y: partTop - 6, chosen });
  const value = scene.number(store.value(array, index), scene.digits);
  if (move === 1) pen.text(X(chosen, partTop > wholeTop ? 1 : 0) + cw / 2, tops[1] + rows.length * ch + 18, value, { size: 12, mono: true, bold: true, color: "accent", align: "center", place: { array, index } });
}

/**
 * What each head is called, over it, and over all heads whether they are queries, keys or values.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {{ parts: string[], heads: number, dh: number, X: (o: number, apart: number) => number, cw: number, y: number, chosen: number }} how
 */
function names(pen, scene, { parts, heads, dh, X, cw, y, chosen }) {
  parts.forEach((_, p) => {
    const color = parts.length > 1 ? COLORS[p % COLORS.length] : "soft";
    const word = parts.length > 1 ? `${scene.say(`heads.${COLORS[p % COLORS.length]}`)} · ` : "";
    for (let h = 0; h < heads; h++) {
      const o = (p * heads + h) * dh;
      const isChosen = Math.floor(chosen / dh) === p * heads + h;
      const texts = [`${word}${scene.say("heads.head", { n: h })}`, scene.say("heads.head", { n: h }), String(h)];
      const room = dh * cw;
      const style = { size: 11.5, bold: isChosen };
      const text = texts.map((one) => fit(one, room, style)).find((one, i) => one === texts[i]) ?? "";
      pen.text(X(o, 1), y, text, { ...style, color: isChosen ? "accent" : color });
      pen.line([X(o, 1), y + 4, X(o, 1) + room, y + 4], { stroke: color === "soft" ? "line" : color, stroke_width: 2 });
    }
  });
}
