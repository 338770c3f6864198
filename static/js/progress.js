// How many answers were right, kept in this browser alone.

import { keep, kept } from "kept";

const NAME = "exercises";

/** @returns {{ right: number, asked: number }} */
export function progress() {
  try {
    const { right = 0, asked = 0 } = JSON.parse(kept(NAME) ?? "{}");
    return { right: Number(right) || 0, asked: Number(asked) || 0 };
  } catch {
    return { right: 0, asked: 0 }; // something else was kept there
  }
}

/** @param {boolean} isRight */
export function note(isRight) {
  const { right, asked } = progress();
  keep(NAME, JSON.stringify({ right: right + Number(isRight), asked: asked + 1 }));
}

export function clear() {
  keep(NAME, "{}");
}
