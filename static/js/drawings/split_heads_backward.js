// The gradients of queries, keys and values are laid side by side.

export { arrays, draw, moves, suits } from "heads";
