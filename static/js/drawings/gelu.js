// GELU: every number falls from the axis onto the curve, by itself.

import { curve } from "curve-shape";

const of = curve("gelu");
export const { moves, draw } = of;
