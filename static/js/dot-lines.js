// The numbers of one vector as dots on a line, and below it what becomes of them, line after line: each dot moves down to
// its new place.

import { ease } from "scene";
import { heading, NumberLine } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */
/**
 * `most`: the number at the right end of its axis; `array`: whose numbers they are, where they are recorded.
 * @typedef {{ name: string, title: string, values: number[], note: string, most: number, array?: string | null }} Line
 */

/**
 * Each line comes with the move of its name.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Line[]} lines
 * @param {{ lead: number[], chosen: number }} vector where it stands, and which of its numbers is chosen
 */
export function drawDots(pen, scene, lines, { lead, chosen }) {
  const { width, height, narrow } = scene;
  const n = lines[0].values.length;
  const pad = narrow ? 14 : 40;
  const each = Math.min(150, (height - 8) / lines.length);
  const top = Math.max(4, (height - each * lines.length) / 2);
  const rows = lines.map(({ most }, i) => new NumberLine({ x: pad, y: top + i * each + each * 0.56, w: width - 2 * pad, most }));
  const radius = n > 200 ? 2 : n > 64 ? 3 : narrow ? 4.5 : 6;
  lines.forEach(({ name, title, values, note, most, array }, i) => {
    const part = ease(scene.part(name));
    const row = rows[i];
    pen.alpha = i ? part : 1;
    const zoom = i && most !== lines[i - 1].most ? scene.say("axis.reaches", { now: scene.number(most, 2), before: scene.number(lines[i - 1].most, 2) }) : "";
    heading(pen, [pad, row.y - each * 0.36, width - 2 * pad], title, [note, zoom].filter(Boolean).join(" · "));
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
