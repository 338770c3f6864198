// GELU as GPT-2 approximates it.

import { drawActivation, moves } from "activation";

export { moves };

/** @param {import("pen").Pen} pen @param {import("scene").Scene} scene */
export function draw(pen, scene) {
  drawActivation(pen, scene, (x) => x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))) / 2);
}
