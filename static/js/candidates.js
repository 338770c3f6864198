// The candidates of a round, for the pictures of sampling: logits, what the temperature makes of them, which are kept,
// their shares, and the draw.

import { bare } from "dom";

/** @typedef {import("scene").Scene} Scene */

/**
 * What the round of the step ended with; null where the recording tells of no such round.
 * @param {Scene} scene
 */
export function roundOf(scene) {
  return scene.store.outline.stations.find(({ round }) => round !== null && round === scene.step.round) ?? null;
}

/**
 * The arrays of sampling that are read.
 * @param {Scene} scene
 */
export function arraysOf(scene) {
  const round = roundOf(scene);
  return round ? [...Object.values(round.outcome), ...Object.values(sources(scene, round))] : [];
}

/**
 * The logits of the round before and after the temperature, found through the operations that read them.
 * @param {Scene} scene
 * @param {Stations} round
 */
function sources({ store }, { outcome }) {
  const scaled = store.made(outcome.candidates).operands.logits;
  const logits = store.operation(scaled)?.operands.logits ?? scaled;
  return { scaled, logits };
}

/**
 * Each candidate with its numbers, largest first.
 * @param {Scene} scene
 * @param {Stations} round
 */
export function candidates(scene, round) {
  const { store } = scene;
  const { outcome, names } = round;
  const { scaled, logits } = sources(scene, round);
  let before = 0;
  return names.map((name, c) => {
    const id = store.value(outcome.candidates, [c]);
    const p = store.value(outcome.probabilities, [c]);
    const from = before;
    before += p;
    return { c, id, name: bare(name), p, from, logit: store.value(logits, [0, id]), scaled: store.value(scaled, [0, id]),
      isChosen: c === store.value(outcome.choice, []), places: { logit: { array: logits, index: [0, id] }, scaled: { array: scaled, index: [0, id] }, p: { array: outcome.probabilities, index: [c] } } };
  });
}
