// A chapter: what each of its steps makes, small, in order; a click goes to the step.

import { wrap } from "pen";
import { ease, staggered } from "scene";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen */

const MOST = 20000; // numbers: of a larger array the frame and its shape are shown
const CELLS = [40, 24]; // columns and rows of a small picture, at most
const GAP = 12;

/**
 * The steps of the chapter, each with the array that it is about.
 * @param {Scene} scene
 */
function stepsOf(scene) {
  const chapter = scene.store.outline.chapters.find(({ id }) => id === scene.step.of);
  return (chapter?.steps ?? []).map((step) => ({ step, array: step.main ?? "" }));
}

/** @param {Scene} scene */
export function arrays(scene) {
  return stepsOf(scene).flatMap(({ array }) => (array && isSmall(scene, array) ? [array] : []));
}

/**
 * @param {Scene} scene
 * @param {string} array
 */
function isSmall({ store }, array) {
  return store.has(array) && store.size(array) > 0 && store.size(array) <= MOST;
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  return [{ name: "steps", ms: Math.min(6000, 260 * stepsOf(scene).length), say: scene.say("chapter.steps") }];
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const steps = stepsOf(scene);
  const { width, height } = scene;
  const tile = tiles(steps.length, width - 2 * GAP, height - GAP);
  const showTitle = tile.w > 92 && tile.h > 52;
  steps.forEach(({ step, array }, n) => {
    const x = GAP + (n % tile.columns) * tile.w;
    const y = Math.floor(n / tile.columns) * tile.h + GAP / 2;
    pen.alpha = 0.12 + 0.88 * ease(staggered(scene.part("steps"), n, steps.length));
    const link = `#step=${encodeURIComponent(step.id)}`;
    const isRoad = step.kind === "add";
    pen.bar(x, y, tile.w - GAP, tile.h - GAP, { color: "cell", stroke: isRoad ? "warm" : "line", stroke_width: isRoad ? 2 : 1, radius: 7, link, key: `tile ${step.id}` });
    const head = showTitle ? title(pen, scene, step.id, [x + 8, y + 16, tile.w - GAP - 16, tile.h < 100 ? 1 : 2]) : 0;
    if (array) small(pen, scene, array, [x + 8, y + 8 + head, tile.w - GAP - 16, tile.h - GAP - 16 - head], showTitle && tile.h > 96);
    if (n < steps.length - 1 && (n + 1) % tile.columns) pen.line([x + tile.w - GAP + 1, y + (tile.h - GAP) / 2, x + tile.w - 1, y + (tile.h - GAP) / 2], { stroke: "soft", stroke_width: 2 });
  });
  pen.alpha = 1;
}

/**
 * Tiles about one and a half times as wide as high.
 * @param {number} n
 * @param {number} width
 * @param {number} height
 */
function tiles(n, width, height) {
  const columns = Math.max(1, Math.min(n, Math.round(Math.sqrt(n * width / height / 1.5))));
  return { columns, w: width / columns, h: Math.min(200, height / Math.ceil(n / columns)) };
}

/**
 * The name of a step in a line or two; how high they are.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {string} id
 * @param {[number, number, number, number]} box where it begins, its width, how many lines
 */
function title(pen, scene, id, [x, y, width, most]) {
  const style = { size: 11.5, bold: true };
  const lines = wrap(scene.titles.title(id), width, style);
  const shown = lines.slice(0, most);
  if (lines.length > most) shown[most - 1] = `${shown[most - 1].replace(/.{1,2}$/, "")}…`;
  shown.forEach((line, i) => pen.text(x, y + i * 15, line, style));
  return 15 * shown.length + 4;
}

/**
 * An array as cells: its chosen layer, its first rows and columns where there are many; below it its shape.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {string} array
 * @param {[number, number, number, number]} box
 * @param {boolean} hasShape
 */
function small(pen, scene, array, [x, y, width, height], hasShape) {
  const { store } = scene;
  if (!store.has(array)) return;
  const shape = store.shape(array);
  const [all, across] = [shape.length > 1 ? shape[shape.length - 2] : 1, shape.length ? shape[shape.length - 1] : 1];
  const [columns, rows] = [Math.min(CELLS[0], across), Math.min(CELLS[1], all)];
  const tall = height - (hasShape ? 15 : 0);
  const [w, h] = [Math.min(18, width / columns), Math.min(18, tall / rows)];
  if (h <= 0) return;
  const before = shape.slice(0, -2).map(() => 0);
  if (isSmall(scene, array)) {
    const largest = store.largest(array);
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        const index = [...before, i, j].slice(-shape.length || before.length + 2);
        const at = shape.length ? index : [];
        pen.cell(x + j * w, y + i * h, w, h, store.value(array, at), { largest, dtype: undefined, key: `${array} ${at}`, place: { array, index: at } });
      }
    }
  } else pen.bar(x, y, width, tall, { color: "tint" });
  if (!hasShape) return;
  const part = columns < across || rows < all ? ` · ${scene.say("chapter.part")}` : "";
  pen.text(x, y + height - 1, `${shape.map((n) => n.toLocaleString("en")).join("×") || "1"}${part}`, { size: 11, color: "soft" });
}
