// Shares added up: the ruler on which the draw will fall.

export { arrays, draw, moves, suits } from "drawings/draw";
