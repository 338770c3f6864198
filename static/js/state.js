// Where the learner is: one object, which is also the part of the address behind the #.

/** Significant digits where the reader has chosen none: two where there is little room. */
export const USUAL_DIGITS = matchMedia("(max-width: 699px)").matches ? 2 : 4;

/**
 * "#step=…&of=…&h=0&i=2" → {step, of, at: {h: 0, i: 2}, digits}; digits null where the address does not say.
 * @param {string} hash
 * @returns {State}
 */
export function parse(hash) {
  /** @type {State} */
  const state = { step: null, of: null, at: {}, digits: null, tour: null, view: null };
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (key === "step" || key === "of" || key === "tour") state[key] = value;
    else if (key === "view") state.view = value === "route" || value === "chapter" ? value : null;
    else if (key === "digits") state.digits = value === "all" ? "all" : [2, 4, 6].includes(Number(value)) ? Number(value) : null;
    else if (/^\d+$/.test(value)) state.at[key] = Number(value);
  }
  return state;
}

/**
 * The address for a state; indices stand under the letters of the array's axes (or of a choice without a number).
 * @param {Partial<State> & { step: string }} state
 * @param {string[]} letters
 */
export function write({ step, of, at = {}, digits, tour, view }, letters = []) {
  const parts = [`step=${encodeURIComponent(step)}`];
  if (of) parts.push(`of=${encodeURIComponent(of)}`);
  for (const letter of letters) if (letter in at) parts.push(`${letter}=${at[letter]}`);
  if ((digits ?? USUAL_DIGITS) !== USUAL_DIGITS) parts.push(`digits=${digits}`);
  if (view) parts.push(`view=${view}`);
  if (tour) parts.push(`tour=${encodeURIComponent(tour)}`);
  return `#${parts.join("&")}`;
}
