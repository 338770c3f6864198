// The gradient of the joined rows is cut into heads.

export { arrays, draw, moves, suits } from "heads";
