// The gradient of turned arrows: turned back by the same angles.

export { draw, moves, suits } from "drawings/rotary";
