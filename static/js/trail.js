// From a number back to where the computation starts, and on to where it ends: one number of each array on the way.

import { Computation, walk as parts } from "evaluate";
import { indexOperands, usesOf } from "uses";
import { Working } from "working";

/** @typedef {import("store").Store} Store */

const MOST = 150; // numbers of a way
const COMPARED = 24; // operands whose effect is measured; of more, those with the largest values
/** @type {WeakMap<Store, Map<string, boolean>>} */
const ids = new WeakMap();
const LONG = 4096; // numbers of a row among which the largest is looked for

/**
 * The way through a number. Back: at each operation along the operand that matters most, its value times the slope of
 * the result, among those that lead on to the ids. On: the shortest way to the loss or to a drawn token; of several
 * numbers the largest.
 * @param {Store} store
 * @param {Place} place
 * @returns {Promise<{ places: Place[], at: number }>} `at`: which of them is the number itself
 */
export async function trailOf(store, place) {
  const back = await walk(place, (one) => before(store, one));
  const distances = distancesTo(store, goals(store));
  const on = await walk(place, (one) => after(store, one, distances));
  return { places: [...back.reverse(), place, ...on], at: back.length };
}

/**
 * @param {Place} from
 * @param {(place: Place) => Promise<Place | null>} next
 */
async function walk(from, next) {
  /** @type {Place[]} */
  const way = [];
  const seen = new Set([from.array]);
  for (let place = await next(from); place && !seen.has(place.array) && way.length < MOST; place = await next(place)) {
    seen.add(place.array);
    way.push(place);
  }
  return way;
}

/**
 * The operand that matters most; null for what starts the computation.
 * @param {Store} store
 * @param {Place} place
 */
async function before(store, { array, index }) {
  const operation = store.operation(array);
  if (!operation) return null;
  await Promise.all([array, ...Object.values(operation.operands)].map((name) => store.ready(name)));
  const reads = readsOfLargest(store.computation(array), index) ?? new Working(store.computation(array), store, {}).explain(index).reads;
  const all = [...new Map(reads.map((read) => [`${read.array} ${read.index}`, { array: read.array, index: read.index }])).values()];
  const leading = [(/** @type {string} */ name) => comesFromIds(store, name), (/** @type {string} */ name) => Boolean(store.operation(name))]
    .map((leads) => all.filter((read) => leads(read.array))).find((list) => list.length);
  const some = leading ?? all;
  const size = (/** @type {Place} */ read) => Math.abs(store.value(read.array, read.index));
  const compared = some.length > COMPARED ? some.sort((a, b) => size(b) - size(a)).slice(0, COMPARED) : some;
  return best(compared, (read) => effect(store, operation, index, read));
}

/**
 * Of a very long sum, what its largest term reads; null for a sum that is not.
 * @param {Computation} computation
 * @param {number[]} index
 */
function readsOfLargest(computation, index) {
  const { target, operation } = computation;
  const sum = [...parts(target[2])].find((node) => node[0] === "reduce" && node.length === 4);
  if (!sum || sum[0] !== "reduce" || computation.count(sum[2]) <= LONG / 8) return null;
  const [, , over, body] = sum;
  /** @type {Letters} */
  let found = {};
  let most = -1;
  computation.each(over, computation.bind(target, index), (letters) => {
    const size = Math.abs(computation.evaluate(body, letters));
    if (size > most && size < Infinity) { most = size; found = { ...letters }; }
  });
  return [...parts(body)].flatMap((node) => (node[0] === "read" && computation.isOperand(node[1])
    ? [{ array: operation.operands[node[1]], index: node[2].map((item) => computation.evaluate(item, found)) }] : []));
}

/**
 * Whether an array follows from ids or bytes that were given.
 * @param {Store} store
 * @param {string} array
 * @returns {boolean}
 */
function comesFromIds(store, array) {
  const known = ids.get(store) ?? new Map();
  ids.set(store, known);
  if (!known.has(array)) {
    known.set(array, false); // until its operands say otherwise
    const operation = store.operation(array);
    known.set(array, operation ? Object.values(operation.operands).some((name) => comesFromIds(store, name)) : store.array(array).dtype === "int64" && store.shape(array).length > 0);
  }
  return known.get(array);
}

/**
 * A value times the slope of the result along it; nothing for ids and for what is not finite.
 * @param {Store} store
 * @param {Operation} operation
 * @param {number[]} index
 * @param {Place} read
 */
function effect(store, operation, index, read) {
  const value = store.value(read.array, read.index);
  if (store.array(read.array).dtype === "int64" || !Number.isFinite(value)) return 0;
  const step = Math.max(Math.abs(value), 1e-3) * 1e-4;
  const wanted = String(read.index);
  const at = (/** @type {number} */ shift) => new Computation(operation, {
    shape: (name) => store.shape(name),
    value: (name, where) => store.value(name, where) + (name === read.array && String(where) === wanted ? shift : 0),
  }).value(index);
  const slope = (at(step) - at(-step)) / (2 * step);
  return Number.isFinite(slope) ? Math.abs(value * slope) : 0;
}

/**
 * @template {object} T
 * @param {T[]} list
 * @param {(one: T) => number} measure
 */
function best(list, measure) {
  let found = list[0] ?? null;
  let most = -1;
  for (const one of list) {
    const size = measure(one);
    if (size > most) { most = size; found = one; }
  }
  return found;
}

/**
 * Where a route leads: the loss of the training's first pass, the tokens that a generation draws.
 * @param {Store} store
 */
function goals(store) {
  return store.outline.stations.map(({ outcome }) => outcome.loss ?? outcome.token);
}

/**
 * Array → how many operations it is away from a goal.
 * @param {Store} store
 * @param {string[]} ends
 */
function distancesTo(store, ends) {
  const found = new Map(ends.map((name) => [name, 0]));
  const queue = [...ends];
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    for (const operand of Object.values(store.operation(name)?.operands ?? {})) {
      if (found.has(operand)) continue;
      found.set(operand, (found.get(name) ?? 0) + 1);
      queue.push(operand);
    }
  }
  return found;
}

/**
 * The use that is nearest to the end.
 * @param {Store} store
 * @param {Place} place
 * @param {Map<string, number>} distances
 */
async function after(store, { array, index }, distances) {
  if (distances.get(array) === 0) return null;
  await Promise.all(indexOperands(store, array).map((name) => store.ready(name)));
  const uses = usesOf(store, array, index);
  const near = best(uses, ({ id }) => 1 / (1 + (distances.get(id) ?? 1e6)));
  if (!near) return null;
  await store.ready(near.id);
  return { array: near.id, index: filled(store, near.id, near.pattern) };
}

/**
 * A whole index for one with gaps: along the last gap the largest number, at the start of the others.
 * @param {Store} store
 * @param {string} array
 * @param {(number | null)[]} pattern
 */
function filled(store, array, pattern) {
  const start = pattern.map((i) => i ?? 0);
  const gap = pattern.lastIndexOf(null);
  if (gap < 0) return start;
  const length = Math.min(store.shape(array)[gap], LONG);
  const places = Array.from({ length }, (_, i) => start.with(gap, i));
  return best(places, (one) => { const size = Math.abs(store.value(array, one)); return Number.isFinite(size) ? size : 0; }) ?? start;
}
