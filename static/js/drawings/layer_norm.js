// Layer norm: the numbers of one position as dots on a line, whose mean is taken off and whose spread becomes one.

import { ease } from "scene";
import { heading, largestOf, NumberLine } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */
/** @typedef {{ name: string, values: number[], note: string, array?: string | null }} Line */

const MOVES = { mean: ["come"], rstd: ["come", "centred", "divided"], out: ["come", "centred", "divided", "scaled"] };

/** @param {Scene} scene */
const targetOf = (scene) => /** @type {"mean" | "rstd" | "out"} */ (scene.operation?.equations.at(-1)?.[0] ?? "out");

/** @param {Scene} scene */
export function suits(scene) {
  return Boolean(scene.operand("x")) && targetOf(scene) in MOVES && !scene.operation?.is_gradient;
}

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return MOVES[targetOf(scene)].map((name) => ({ name, ms: 800, say: scene.say(`layer_norm.move.${name}`) }));
}

/** The vector that the chosen number belongs to. @param {Scene} scene */
function vector(scene) {
  const out = targetOf(scene) === "out";
  const x = scene.operand("x") ?? "";
  const lead = out ? scene.index.slice(0, -1) : scene.index;
  const n = scene.store.shape(x).at(-1) ?? 0;
  return { x, lead, n, chosen: out ? scene.index.at(-1) ?? -1 : -1 };
}

/**
 * What stands on each line; the statistics are worked out from the numbers themselves.
 * @param {Scene} scene
 * @returns {Line[]}
 */
function linesOf(scene) {
  const { x, lead, n } = vector(scene);
  const { store, operation } = scene;
  const values = Array.from({ length: n }, (_, d) => store.value(x, [...lead, d]));
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const centred = values.map((value) => value - mean);
  const spread = Math.sqrt(centred.reduce((sum, value) => sum + value * value, 0) / n);
  const rstd = 1 / Math.sqrt(spread * spread + (operation?.settings.eps ?? 0));
  const target = targetOf(scene);
  const note = (/** @type {number} */ m, /** @type {number} */ s) => scene.say("layer_norm.note", { mean: scene.number(m, 3), spread: scene.number(s, 3) });
  /** @type {Line[]} */
  const lines = [{ name: "come", values, note: note(mean, spread), array: x }];
  if (target === "mean") return lines;
  lines.push({ name: "centred", values: centred, note: note(0, spread) });
  lines.push({ name: "divided", values: centred.map((value) => value * rstd), note: note(0, spread * rstd) });
  if (target !== "out") return lines;
  const out = Array.from({ length: n }, (_, d) => store.value(scene.array, [...lead, d]));
  const middle = out.reduce((sum, value) => sum + value, 0) / n;
  lines.push({ name: "scaled", values: out, array: scene.array,
    note: note(Math.abs(middle) < 1e-6 ? 0 : middle, Math.sqrt(out.reduce((sum, value) => sum + (value - middle) ** 2, 0) / n)) });
  return lines;
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { width, height, narrow } = scene;
  const { lead, n, chosen } = vector(scene);
  const lines = scene.once("lines", () => linesOf(scene));
  const pad = narrow ? 14 : 40;
  const each = Math.min(150, (height - 8) / lines.length);
  const top = Math.max(4, (height - each * lines.length) / 2);
  const ends = lines.map(({ values }, i) => largestOf(i < 2 ? [...lines[0].values, ...lines[1]?.values ?? []] : [...values, ...lines[2].values, ...lines.at(-1)?.values ?? []]));
  const rows = lines.map((_, i) => new NumberLine({ x: pad, y: top + i * each + each * 0.56, w: width - 2 * pad, most: ends[i] }));
  const radius = n > 200 ? 2 : n > 64 ? 3 : narrow ? 4.5 : 6;
  lines.forEach(({ name, values, note, array }, i) => {
    const part = ease(scene.part(name));
    const row = rows[i];
    const said = scene.say(`layer_norm.${name}`, { n, token: lead.length ? scene.label(vector(scene).x, lead.length - 1, lead[lead.length - 1]) : "" });
    pen.alpha = i ? part : 1;
    heading(pen, { x: pad, y: row.y - each * 0.36, w: width - 2 * pad, h: 0 }, said, note);
    row.draw(pen, scene);
    pen.alpha = 1;
    const mean = values.reduce((sum, value) => sum + value, 0) / n;
    pen.line([row.at(mean), row.y - 15, row.at(mean), row.y + 15], { stroke: "accent", dash: [3, 3], alpha: i || lines.length === 1 ? part : 1 });
    const from = i ? rows[i - 1] : null;
    values.forEach((value, d) => {
      const lit = d === chosen;
      const [x0, y0] = from ? [from.at(lines[i - 1].values[d]), from.y] : [row.at(value), row.y];
      const x = x0 + (row.at(value) - x0) * part;
      const y = y0 + (row.y - y0) * part;
      if (lit && from && part > 0 && part < 1) pen.line([x0, y0 + radius, x, y - radius], { stroke: "accent", stroke_width: 1, alpha: 0.7 });
      if (part > 0 || !i) pen.dot(x, y, lit ? radius + 2 : radius, { strength: lit ? undefined : value, color: "accent", stroke: "paper",
        key: array ? `${array} ${[...lead, d]}` : `${scene.array} ${name} ${d}`, place: array ? { array, index: [...lead, d] } : undefined });
    });
    if (chosen >= 0 && part === 1) row.tell(pen, values[chosen], scene.number(values[chosen], 3));
  });
}
