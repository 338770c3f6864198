// What the heads found is laid side by side again.

export { arrays, draw, moves, suits } from "heads";
