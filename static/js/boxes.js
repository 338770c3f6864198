// The boxes of a placed picture: their shapes, what has to be seen of them, and which cells the chosen element reads.

import { place } from "placement";

/** @typedef {import("scene").Scene} Scene @typedef {import("arrange").Placed} Placed @typedef {import("placement").Box} Box */

const SHOWN = 6; // of the largest, where an axis is folded

/** @type {WeakMap<Equation[], import("placement").Placement>} */
const placements = new WeakMap();

/** @param {Scene} scene */
export function placementOf(scene) {
  const equations = scene.operation?.equations ?? [];
  const known = placements.get(equations) ?? place(equations);
  placements.set(equations, known);
  return known;
}

/**
 * The shape of an array, or of a value in between.
 * @param {Scene} scene
 * @param {Box} box
 */
export function shapeOf(scene, box) {
  const array = scene.operand(box.name);
  if (array) return scene.store.shape(array);
  const sizes = scene.computation?.sizes ?? {};
  return box.axes.map(({ letter }) => (letter ? sizes[letter] : 1));
}

/**
 * Where an axis is folded, these places are seen: the chosen one, those that a lookup takes, and the largest.
 * @param {Scene} scene
 * @param {Box} box
 * @param {number} axis
 */
export function wantedOn(scene, box, axis) {
  const { at, lookup, letter } = box.axes[axis];
  const letters = scene.letters;
  /** @type {number[]} */
  const found = [];
  const evaluate = (/** @type {Letters} */ bound) => {
    const i = scene.computation?.evaluate(at, { ...letters, ...bound });
    if (i !== undefined && Number.isInteger(i)) found.push(i);
  };
  if (letter && letter in letters) found.push(letters[letter]);
  else if (!letter) evaluate({});
  if (lookup) {
    const over = placementOf(scene);
    for (const name of [over.rows, over.columns]) {
      if (name) for (let i = 0; i < Math.min(40, scene.computation?.sizes[name] ?? 0); i++) evaluate({ [name]: i });
    }
  }
  const out = scene.store.values(scene.array);
  const target = placementOf(scene).boxes.at(-1);
  if (out && letter && target) found.push(...largestPlaces(out, scene, target.axes.findIndex((other) => other.letter === letter)));
  return [...new Set(found)];
}

/**
 * Where along an axis what is made is largest: the strongest places of the first numbers.
 * @param {ArrayLike<number>} values
 * @param {Scene} scene
 * @param {number} axis
 */
function largestPlaces(values, scene, axis) {
  const shape = scene.store.shape(scene.array);
  if (axis < 0 || shape[axis] < 200) return [];
  const after = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  return scene.once(`largest places ${axis}`, () => {
    const best = new Float64Array(shape[axis]);
    let flat = 0;
    while (flat < values.length) {
      for (let i = 0; i < shape[axis]; i++) {
        for (let k = 0; k < after; k++) best[i] = Math.max(best[i], Math.abs(values[flat++]));
      }
    }
    return highest(best);
  });
}

/**
 * The places of the six largest numbers above zero, largest first.
 * @param {Float64Array} sizes
 */
function highest(sizes) {
  /** @type {number[]} */
  const found = [];
  sizes.forEach((size, i) => {
    if (!(size > 0) || (found.length === SHOWN && size <= sizes[found[SHOWN - 1]])) return;
    const at = found.findIndex((other) => sizes[other] < size);
    found.splice(at < 0 ? found.length : at, 0, i);
    if (found.length > SHOWN) found.pop();
  });
  return found;
}

/**
 * Which cells the chosen element reads: place of the row and of the column, or null for all of them.
 * @param {Placed} placed
 * @param {Scene} scene
 */
export function litIn({ box }, scene) {
  const { computation } = scene;
  const bound = scene.letters;
  return box.axes.map(({ at, letter }) => {
    if (letter) return letter in bound ? bound[letter] : null;
    if (!computation) return null;
    const i = computation.evaluate(at, bound);
    return Number.isFinite(i) ? i : null;
  });
}

/**
 * The index in its array of the cell at a row and a column; on other axes the chosen element says the place.
 * @param {Placed} placed
 * @param {(number | null)[]} lit
 * @param {number} row
 * @param {number} column
 */
export function indexAt({ box }, lit, row, column) {
  return box.axes.map((_, axis) => (axis === box.down ? row : axis === box.across ? column : lit[axis] ?? 0));
}
