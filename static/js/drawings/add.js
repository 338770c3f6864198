// An addition: one strip of numbers for each position; what a branch adds; what comes out.  Where the addition is one
// of the residual stream, its stations so far stand above.

import { bare } from "dom";
import { readers, readOut } from "readout";
import { nameOf } from "route-parts";
import { ease } from "scene";
import { fit, heading, shownOf } from "shapes";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen @typedef {import("shapes").Room} Room */

/** @param {Scene} scene */
export function suits(scene) {
  return !scene.operation?.is_gradient && scene.index.length === 2;
}

/** Whether it is an addition of the residual stream. @param {Scene} scene */
const isStream = (scene) => scene.step.role === "attention" || scene.step.role === "mlp";

/** @param {Scene} scene @returns {import("scene").Move[]} */
export function moves(scene) {
  return ["before", "branch", "after"].map((name) => ({ name, ms: name === "branch" ? 900 : 600, say: scene.say(`add.move.${isStream(scene) ? "" : "any_"}${name}`) }));
}

/**
 * The stream before this addition, from the first on: its additions, each before the next.
 * @param {Scene} scene
 */
function stations(scene) {
  const stops = passOf(scene)?.stops ?? [];
  return stops.slice(0, stops.findIndex(({ array }) => array === scene.array) + 1);
}

/** @param {Scene} scene */
function passOf(scene) {
  return isStream(scene) ? scene.store.outline.stations.find(({ stops }) => stops.some(({ array }) => array === scene.array)) : undefined;
}

/**
 * Once the reader stays: what the stream would answer at each station, read by the last norm and the table.
 * @param {Scene} scene
 */
export async function later(scene) {
  const { store, index: [t] } = scene;
  const pass = passOf(scene);
  if (!pass?.norm || !pass.head) return false;
  const needed = readers(store, pass);
  await Promise.all(needed.map((name) => store.ready(name)));
  const names = store.labels(needed[needed.length - 1], 0);
  scene.once("answers", () => new Map(stations(scene).map(({ array }) => {
    const { id, share } = readOut(store, pass, array, t);
    return [array, `${scene.number(share, 2)} ${bare(names?.[id] ?? String(id))}`];
  })));
  return true;
}

/** @param {Scene} scene */
export function arrays(scene) {
  return stations(scene).map(({ array }) => array);
}

/** @param {Pen} pen @param {Scene} scene */
export function draw(pen, scene) {
  const { array, index, store, width, height, narrow } = scene;
  const [a, b] = [scene.operand("a") ?? "", scene.operand("b") ?? ""];
  const [n, d] = store.shape(array);
  const stops = scene.once("stops", () => stations(scene));
  const small = stops.length > 1 ? Math.min(height * 0.26, 130) : 0;
  if (small) drawStations(pen, scene, stops, { x: narrow ? 8 : 24, y: 34, w: width - (narrow ? 16 : 48), h: small - 24 });
  const y = small + (small ? 44 : 34);
  const label = narrow ? 42 : 60;
  const pad = narrow ? 8 : 24;
  const sign = narrow ? 16 : 34;
  const parts = /** @type {const} */ ([["before", a], ["branch", b], ["after", array]]);
  const room = narrow ? width - 2 * pad - label : (width - 2 * pad - label - 2 * sign) / 3;
  const high = narrow ? (height - y - 2 * 34) / 3 : height - y - 10;
  const rows = shownOf(n, high / 5, index[0]);
  const columns = shownOf(d, room / 3, index[1]);
  const ch = Math.min(narrow ? 26 : 56, high / rows.length);
  const cw = Math.min(40, room / columns.length);
  const largest = Math.max(...parts.map(([, name]) => store.largest(name)));
  // What is small beside the stream has colours of its own, and says so.
  const own = store.largest(b) || 1;
  const under = y + rows.length * ch + 20;
  const times = largest / own >= 4 && (narrow || under < height - 4) ? Math.round(largest / own) : 1;
  const sparse = Math.ceil(13 / ch);
  const folded = rows.length < n || columns.length < d ? scene.say("folded", { shown: rows.length * columns.length, all: n * d }) : "";
  const corner = parts.map((_, k) => ({ x: pad + label + (narrow ? 0 : k * (room + sign)), y: y + (narrow ? k * (high + 34) : 0) }));
  parts.forEach(([name, from], k) => {
    const part = ease(scene.part(name));
    const { x, y: at } = corner[k];
    const title = isStream(scene) ? scene.say(`add.${name === "branch" ? scene.step.role : name}`) : k === 2 ? scene.say("add.any_after") : from.split(".").at(-1) ?? "";
    heading(pen, [x, at - 10, room], narrow && k ? `${"+="[k - 1]} ${title}` : title, k === 0 ? folded : k === 1 && narrow && times > 1 ? scene.say("add.stronger", { n: times }) : "");
    const middle = at + rows.length * ch / 2;
    if (k && !narrow) pen.text(x - sign / 2, middle + 6, "+="[k - 1], { size: 18, align: "center", color: "soft" });
    rows.forEach((t, i) => {
      const isRow = t === index[0];
      if ((k === 0 || narrow) && i % sparse === 0) pen.text(x - 6, Math.min(at + (i + 0.5) * ch + 4, height - 3), fit(scene.label(array, 0, t), label - 4, { size: 11 }), { size: 11, align: "right", color: isRow ? "accent" : "soft", bold: isRow });
      columns.forEach((j, m) => {
        const lit = isRow && j === index[1];
        pen.cell(x + m * cw, at + i * ch + 1, cw, ch - 2, store.value(from, [t, j]), { largest: k === 1 && times > 1 ? own : largest, lit, key: `${from} ${[t, j]}`, place: { array: from, index: [t, j] }, alpha: part });
        // What the branch adds travels onto the strip.
        const fly = ease(scene.part("after"));
        if (k === 1 && fly > 0 && fly < 1) {
          for (const start of [corner[0], corner[1]]) {
            pen.cell(start.x + (corner[2].x - start.x) * fly + m * cw, start.y + (corner[2].y - start.y) * fly + i * ch + 1, cw, ch - 2, store.value(start === corner[0] ? a : b, [t, j]), { largest, alpha: 0.5 });
          }
        }
      });
    });
  });
  const [p, q, r] = [a, b, array].map((name) => scene.number(store.value(name, index), 3));
  const text = `${p} + ${q} = ${r}`.replaceAll("+ −", "− ");
  if (times > 1 && !narrow) pen.text(corner[1].x, under, scene.say("add.stronger", { n: times }), { size: 11, color: "soft", alpha: ease(scene.part("branch")) });
  const below = corner[2].y + rows.length * ch + 20;
  if (below < height - 4 && scene.part("after") === 1) pen.text(width - pad, below, fit(text, width - 2 * pad, { size: 12, mono: true }), { size: 12, mono: true, bold: true, color: "accent", align: "right" });
}

/**
 * The stream of the chosen position at each station of this pass.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {ReturnType<typeof stations>} stops
 * @param {Room} room
 */
function drawStations(pen, scene, stops, { x, y, w, h }) {
  const { store, index } = scene;
  const most = Math.max(2, Math.floor((w + 16) / 76));
  const list = stops.length > most ? [stops[0], ...stops.slice(1 - most)] : stops;
  const each = (w + 16) / Math.max(list.length, 3);
  const d = store.shape(scene.array)[1];
  const columns = shownOf(d, (each - 16) / 2, index[1]);
  const answers = /** @type {Map<string, string> | undefined} */ (scene.kept.get("answers"));
  const short = scene.narrow ? "short_" : "";
  const notes = [list.length < stops.length ? scene.say(`add.${short}folded`, { n: list.length, all: stops.length }) : "", answers ? scene.say(`add.${short}answers`) : ""];
  heading(pen, [x, y - 14, w], scene.say("add.stream", { token: scene.label(scene.array, 0, index[0]) }), notes.filter(Boolean).join(" · "));
  const largest = Math.max(...list.map(({ array }) => store.largest(array)));
  list.forEach((stop, k) => {
    const at = x + k * each;
    const cw = (each - 16) / columns.length;
    const last = k === list.length - 1;
    const alpha = last ? ease(scene.part("after")) : 1;
    columns.forEach((j, m) => pen.cell(at + m * cw, y + 20, cw, Math.min(40, h - 30), store.value(stop.array, [index[0], j]), { largest, alpha, lit: j === index[1], place: { array: stop.array, index: [index[0], j] } }));
    const middle = y + 20 + Math.min(40, h - 30) / 2;
    if (!last) pen.area([at + each - 13, middle - 5, at + each - 5, middle, at + each - 13, middle + 5], { color: "soft" });
    const answer = answers?.get(stop.array);
    if (answer) pen.text(at, y + 36 + Math.min(40, h - 30), fit(`→ ${answer}`, each - 4, { size: 11, mono: true }), { size: 11, mono: true, color: last ? "accent" : "ink", bold: last });
    pen.text(at, y + 14, fit(nameOf(scene, stop, each < 90 ? "short." : ""), each - 10, { size: 11 }), { size: 11, color: last ? "accent" : "soft", bold: last });
  });
}
