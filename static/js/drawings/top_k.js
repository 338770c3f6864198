// Top-k: the same columns; what is not kept has no row.

export { arrays, draw, moves, suits } from "drawings/temperature";
