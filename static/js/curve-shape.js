// The picture of a function of one number: dots that fall from the axis onto its curve.

import { bare } from "dom";
import { heading } from "shapes";
import { ease, staggered } from "scene";
import { Computation } from "evaluate";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

const POINTS = 120;

/** @param {string} table of the words */
export function curve(table) {
  return {
    /** @param {Scene} scene */
    moves: (scene) => ["axis", "curve", "fall"].map((name) => ({ name, ms: name === "fall" ? 1600 : 700, say: scene.say(`${table}.say_${name}`) })),
    /**
     * @param {Pen} pen
     * @param {Scene} scene
     */
    draw: (pen, scene) => drawCurve(pen, scene, table),
  };
}

/**
 * The function itself, from the equations of the operation, at any number.
 * @param {Scene} scene
 */
function functionOf(scene) {
  const { operation } = scene;
  let x = 0;
  const shape = scene.store.shape(scene.array).map(() => 1);
  if (!operation) return () => NaN;
  const computation = new Computation({ ...operation, shape }, { shape: () => shape, value: () => x });
  return (/** @type {number} */ value) => { x = value; computation.locals.clear(); return computation.value(shape.map(() => 0)); };
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {string} table
 */
function drawCurve(pen, scene, table) {
  const { width, height, narrow, index, array, store } = scene;
  const row = index.slice(0, -1);
  const length = store.shape(array).at(-1) ?? 0;
  const x = scene.operand("x") ?? "";
  const numbers = scene.once("numbers", () => Array.from({ length }, (_, d) => [store.value(x, [...row, d]), store.value(array, [...row, d])]));
  const reach = Math.max(1e-6, ...numbers.map(([v]) => Math.abs(v))) * 1.08;
  const line = scene.once("curve", () => { const f = functionOf(scene); return Array.from({ length: POINTS + 1 }, (_, i) => { const v = -reach + 2 * reach * i / POINTS; return [v, f(v)]; }); });
  const high = Math.max(reach * 0.05, ...line.map(([, v]) => v), ...numbers.map(([, v]) => v));
  const low = Math.min(0, ...line.map(([, v]) => v), ...numbers.map(([, v]) => v));
  const pad = narrow ? 14 : 50;
  const [top, bottom] = [54, height - 60];
  const X = (/** @type {number} */ v) => pad + (v + reach) / (2 * reach) * (width - 2 * pad);
  const Y = (/** @type {number} */ v) => bottom - (v - low) / (high - low) * (bottom - top);
  const label = row.length ? bare(scene.label(array, row.length - 1, row.at(-1) ?? 0)) : "";
  heading(pen, pad, 18, scene.say(`${table}.title`, { n: length, label }));
  pen.line([X(-reach), Y(0), X(reach), Y(0)], { stroke: "soft", stroke_width: 1 });
  pen.line([X(0), top - 8, X(0), bottom], { stroke: "line", stroke_width: 1 });
  pen.text(X(0) + 6, Y(0) + 16, "0", { size: 11, color: "soft" });
  pen.text(X(reach), Y(0) + 16, scene.number(reach, 2), { size: 11, color: "soft", align: "right" });
  pen.text(X(-reach), Y(0) + 16, scene.number(-reach, 2), { size: 11, color: "soft" });
  const drawn = ease(scene.part("curve"));
  pen.line([X(-reach), Y(0), X(0), Y(0), X(Math.min(reach, high)), Y(Math.min(reach, high))], { stroke: "line", stroke_width: 2, dash: [5, 4], alpha: drawn });
  if (drawn > 0) pen.line(line.slice(0, Math.max(2, Math.round(drawn * line.length))).flatMap(([v, f]) => [X(v), Y(f)]), { stroke: "ink", stroke_width: 2.5 });
  pen.text(width - pad, top - 14, scene.say(`${table}.thin`), { size: 11.5, color: "soft", align: "right", alpha: drawn });
  numbers.forEach(([v, f], d) => {
    const fall = ease(staggered(scene.part("fall"), d, length, 8));
    const isLit = d === index.at(-1);
    const y = Y(0) + (Y(f) - Y(0)) * fall;
    pen.line([X(v), Y(0), X(v), y], { stroke: isLit ? "accent" : "line", stroke_width: isLit ? 2 : 1 });
    pen.dot(X(v), y, isLit ? 7 : 4.5, { color: isLit ? "accent" : f < 0 ? "cool" : "warm", stroke: "paper", place: { array, index: [...row, d] }, key: `${array} ${[...row, d]}`, alpha: ease(scene.part("axis")) });
  });
  const [v, f] = numbers[index.at(-1) ?? 0];
  pen.text(pad, height - 14, scene.say(`${table}.chosen`, { x: scene.number(v, 3), y: scene.number(f, 3), part: v ? scene.number(f / v, 2) : "½" }), { size: 13, mono: false, bold: true, color: "accent" });
}
