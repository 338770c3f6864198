// Where a number goes: found by solving the equations of every operation that reads its array for their output.

import { children, Computation, walk } from "evaluate";

/** An element of an array, with null for every value of an index. @typedef {(number | null)[]} Pattern */
/** A choice in an equation, and which way it has to go. @typedef {[ExpressionNode, boolean]} Guard */
/** @typedef {Extract<ExpressionNode, ["read", ...unknown[]]>} ReadNode */

/**
 * For every operation that reads a number, the elements that depend on it.
 * @param {import("store").Store} store
 * @param {string} name
 * @param {number[]} index
 */
export function usesOf(store, name, index) {
  return (store.readers.get(name) ?? []).flatMap(({ id, operand }) =>
    reached(store.made(id), operand, index, store).map((pattern) => ({ id, pattern })));
}

/**
 * Arrays that operations use as indices of an array: needed to say where its numbers go.
 * @param {import("store").Store} store
 * @param {string} array
 */
export function indexOperands(store, array) {
  return (store.readers.get(array) ?? []).flatMap(({ id }) => {
    const { equations, operands } = store.made(id);
    const items = equations.flatMap(([, , body]) => readsIn(body).flatMap((node) => node[2]));
    return items.flatMap(readsIn).map((node) => operands[node[1]]).filter(Boolean);
  });
}

/**
 * @param {ExpressionNode} node
 * @returns {ReadNode[]}
 */
function readsIn(node) {
  return [...walk(node)].filter((one) => one[0] === "read");
}

/**
 * Patterns of the target's index that depend on element `index` of an operand.
 * @param {Operation} operation
 * @param {string} operand
 * @param {number[]} index
 * @param {Source} source
 */
function reached(operation, operand, index, source) {
  const computation = new Computation(operation, source);
  /** @type {Map<string, Pattern>} */
  const found = new Map();
  const follow = (/** @type {string} */ name, /** @type {Pattern} */ at, /** @type {number} */ depth) => {
    for (const equation of operation.equations) {
      if (equation[0] === name && depth > 0) continue;
      for (const { node, guards } of readsOf(equation[2])) {
        if (node[1] !== name || (depth === 0) !== computation.isOperand(name)) continue;
        for (const letters of solve(node[2], at, computation).flatMap((solution) => past(guards, solution, computation))) {
          const pattern = equation[1].map((item) => letters[item[1]] ?? null);
          if (equation === computation.target) found.set(String(pattern), pattern);
          else follow(equation[0], pattern, depth + 1);
        }
      }
    }
  };
  follow(operand, index, 0);
  return [...found.values()];
}

/**
 * Every element read in an expression, with the choices that it stands behind.
 * @param {ExpressionNode} node
 * @param {Guard[]} guards
 * @returns {Generator<{ node: ReadNode, guards: Guard[] }>}
 */
function* readsOf(node, guards = []) {
  if (node[0] === "read") yield { node, guards };
  for (const child of children(node)) yield* readsOf(child, [...guards, ...guardOf(node, child)]);
}

/**
 * @param {ExpressionNode} node
 * @param {ExpressionNode} child
 * @returns {Guard[]}
 */
function guardOf(node, child) {
  if (node[0] !== "where" || child === node[1]) return [];
  return [[node[1], child === node[2]]];
}

/**
 * What becomes of a solution behind choices: the letters for which all go the right way, as far as letters decide it.
 * @param {Guard[]} guards
 * @param {Letters} solution
 * @param {Computation} computation
 */
function past(guards, solution, computation) {
  const isFixed = (/** @type {ReadNode} */ [, name]) => !computation.isOperand(name)
    && readsIn(computation.equation(name)[2]).length === 0;
  const decided = guards.filter(([condition]) => readsIn(condition).every(isFixed));
  const letters = new Map(decided.flatMap(([condition]) => lettersIn(condition)).map((letter) => [letter[1], letter]));
  const free = [...letters.values()].filter(([, name]) => !(name in solution));
  /** @type {Letters[]} */
  const found = [];
  computation.each(free, solution, (bound) => {
    if (decided.every(([condition, outcome]) => Boolean(computation.evaluate(condition, bound)) === outcome)) found.push({ ...bound });
  });
  return found;
}

/**
 * @param {ExpressionNode} node
 * @returns {LetterNode[]}
 */
function lettersIn(node) {
  return [...walk(node)].filter((one) => one[0] === "letter");
}

/**
 * Letters for which an index expression takes the values of `at` (null: any value).
 * @param {ExpressionNode[]} items
 * @param {Pattern} at
 * @param {Computation} computation
 */
function solve(items, at, computation) {
  /** @type {Letters[]} */
  let solutions = [{}];
  items.forEach((item, axis) => {
    const wanted = at[axis];
    if (wanted === null) return;
    if (item[0] === "letter") {
      const name = item[1];
      solutions = solutions.filter((solution) => (solution[name] ?? wanted) === wanted).map((solution) => ({ ...solution, [name]: wanted }));
      return;
    }
    const letters = [...new Map(lettersIn(item).map((letter) => [letter[1], letter])).values()];
    solutions = solutions.flatMap((solution) => {
      const free = letters.filter(([, name]) => !(name in solution));
      return matching(computation, free, solution, item, wanted);
    });
  });
  return solutions;
}

/**
 * @param {Computation} computation
 * @param {LetterNode[]} free
 * @param {Letters} solution
 * @param {ExpressionNode} item
 * @param {number} wanted
 */
function matching(computation, free, solution, item, wanted) {
  const found = [];
  for (const letters of computation.range(free, solution)) {
    if (computation.evaluate(item, letters) === wanted) found.push({ ...letters });
  }
  return found;
}
