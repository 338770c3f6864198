// Which drawing shows a step: one of its own, named after its kind, else the placed picture.

import { DRAWINGS } from "drawings";
import { drawGiven } from "given";
import * as placed from "placed";

/** @typedef {import("scene").Scene} Scene */

/**
 * One file in static/js/drawings, named after the kind of the operation (with `_backward` for its gradient) or of the
 * step, or after the step's role where it has no kind.
 * `suits`: whether it can show this one; `arrays`: what it reads beside the operation's own; `later`: what
 * takes longer, worked out when the reader stays: whether there is more to draw then; `draw` is a function of the
 * scene and of how far each of the `moves` has come.
 * @typedef {object} Drawing
 * @property {(scene: Scene) => boolean} [suits]
 * @property {(scene: Scene) => string[]} [arrays]
 * @property {(scene: Scene) => Promise<boolean>} [later]
 * @property {(scene: Scene) => import("scene").Move[]} moves
 * @property {(pen: import("pen").Pen, scene: Scene) => void} draw
 */

/**
 * @param {Scene} scene
 * @returns {Drawing}
 */
export function drawingFor(scene) {
  const { operation, step } = scene;
  // What shows an operation does not show its gradient: that is another picture, by another name.
  const back = operation?.is_gradient ? "_backward" : "";
  const names = [nameOf(step), operation ? operation.kind + back : ""];
  const own = names.map((name) => (Object.hasOwn(DRAWINGS, name) ? DRAWINGS[name] : null)).find((drawing) => drawing && (drawing.suits?.(scene) ?? true));
  return own ?? (operation ? placed : given);
}

/**
 * What a drawing for a step is called: its kind, or its role where its operations are of several kinds. A step back has
 * one of its own; with a cache roles are whole parts of the model, some of them called as a kind is.
 * @param {StepOutline} step
 */
function nameOf({ kind, role, direction, pass }) {
  const name = kind ?? (pass === "cached" ? "" : role) ?? "";
  return direction === "backward" ? `${name}_backward` : name;
}

/**
 * Whether a step's own drawing, if it has one, can show this scene.
 * @param {Scene} scene
 */
export function hasOwn(scene) {
  const drawing = DRAWINGS[nameOf(scene.step)];
  return Boolean(drawing && (drawing.suits?.(scene) ?? true));
}

/**
 * The arrays that have to be here.
 * @param {Scene} scene
 * @param {Drawing} drawing
 */
export function namesFor(scene, drawing) {
  const own = scene.operation ? [scene.array, ...Object.values(scene.operation.operands)] : scene.array ? [scene.array] : [];
  return [...new Set([...own, ...drawing.arrays?.(scene) ?? []])];
}

/** What was given, and not made: its cells alone. @type {Drawing} */
const given = {
  moves: () => [],
  draw: drawGiven,
};
