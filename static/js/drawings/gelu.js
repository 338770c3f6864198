// GELU, x·Φ(x): every number falls onto the curve by itself.

import { drawActivation, moves } from "activation";
import { FUNCTIONS } from "functions";

export { moves };

/** @param {import("pen").Pen} pen @param {import("scene").Scene} scene */
export function draw(pen, scene) {
  drawActivation(pen, scene, (x) => x * (1 + FUNCTIONS.erf.value(x / Math.SQRT2)) / 2);
}
