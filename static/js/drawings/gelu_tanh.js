// GELU as GPT-2 approximates it: the same picture with its own curve.

import { curve } from "curve-shape";

const of = curve("gelu");
export const { moves, draw } = of;
