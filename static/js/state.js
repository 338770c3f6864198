// Where the learner is: one object, which is also the part of the address behind the #.

/** "#step=…&of=…&h=0&i=2" → {step, of, at: {h: 0, i: 2}, digits}; digits null where the address does not say. */
export function parse(hash) {
  const state = { step: null, of: null, at: {}, digits: null };
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (key === "step" || key === "of") state[key] = value;
    else if (key === "digits") state.digits = value === "all" ? "all" : [2, 4, 6].includes(Number(value)) ? Number(value) : null;
    else if (/^\d+$/.test(value)) state.at[key] = Number(value);
  }
  return state;
}

/** The address for a state; indices stand under the letters of the array's axes (or of a choice without a number). */
export function write(state, letters) {
  const parts = [`step=${encodeURIComponent(state.step)}`];
  if (state.of) {
    parts.push(`of=${encodeURIComponent(state.of)}`);
  }
  letters.forEach((letter) => { if (letter in state.at) parts.push(`${letter}=${state.at[letter]}`); });
  if ((state.digits ?? 4) !== 4) parts.push(`digits=${state.digits}`);
  return `#${parts.join("&")}`;
}
