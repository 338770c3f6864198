// Only the last position goes on: its row stays, the others fade.

import { bare } from "dom";
import { ease } from "scene";
import { fit, grid, heading, shownOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

/** @param {Scene} scene */
export function suits(scene) {
  return scene.operation?.kind === "last_position" && !scene.operation.is_gradient && scene.index.length === 2;
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return ["all", "fade", "last"].map((name) => ({ name, ms: 700, say: scene.say(`last_position.say_${name}`) }));
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { store, array, index, operation, width, height, narrow } = scene;
  const x = scene.operand("x") ?? "";
  const [n, d] = store.shape(x);
  const last = operation?.settings.position ?? n - 1;
  const pad = narrow ? 8 : 28;
  const label = narrow ? 48 : 84;
  const rows = shownOf(n, (height - 190) / 10, last);
  const columns = shownOf(d, (width - 2 * pad - label) / 6, index[1]);
  const tall = Math.min(48, (height - 190) / rows.length);
  const fade = ease(scene.part("fade"));
  const part = rows.length < n || columns.length < d ? scene.say("part", { n: rows.length * columns.length, all: n * d }) : "";
  heading(pen, [pad, 20, width - 2 * pad], scene.say("last_position.all"), part);
  const at = grid(pen, scene, { x: pad, y: 34, w: width - 2 * pad, h: tall * rows.length }, { array: x, lead: [], rows, columns, chosen: [last, index[1]], label, tall, wide: 80,
    alpha: (t) => (t === last ? 1 : 1 - 0.8 * fade), digits: 0 });
  const row = at(rows.indexOf(last), 0);
  const right = at(rows.indexOf(last), columns.length - 1);
  pen.add({ kind: "cell", x: row.x - 3, y: row.y - 3, w: right.x + right.w - row.x + 6, h: tall + 6, frame: true, stroke: "accent", stroke_width: 2, radius: 5, alpha: fade });
  const come = ease(scene.part("last"));
  const y = 34 + tall * rows.length + 76;
  heading(pen, [pad, y - 16, width - 2 * pad], scene.say("last_position.last", { token: bare(scene.label(x, 0, last)) }));
  pen.alpha = come;
  grid(pen, scene, { x: pad, y: row.y + (y - row.y) * come, w: width - 2 * pad, h: Math.min(48, height - y - 12) }, { array, lead: [], rows: [0], columns, chosen: [0, index[1]], label, tall: 48, wide: 80 });
  pen.alpha = 1;
  const text = fit(scene.number(store.value(array, index)), 90, { size: 12, mono: true });
  if (y + 66 < height) pen.text(at(rows.indexOf(last), columns.indexOf(index[1])).x, y + 64, text, { size: 12, mono: true, bold: true, color: "accent", alpha: come, place: { array, index } });
}
