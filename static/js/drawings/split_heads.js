// One product's columns are cut into queries, keys and values, head by head.

export { arrays, draw, moves, suits } from "heads";
