// The same picture for what was held back and what is new.

export { arrays, draw, moves, suits } from "drawings/complete_bytes";
