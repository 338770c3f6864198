// What a working says of a node: tokens, and how tightly they hold together.

import { format } from "format";

export const LEVEL = { sum: 1, product: 2, atom: 3 };

/** A value in between, by its name. @typedef {{ text: string, value: number }} Local */
/** An operand, which can be opened in turn. @typedef {Local & Place} Operand */
/** @typedef {string | Local | Operand} Token */
/** What is said of a node: with names, with numbers, and how tightly each holds together. @typedef {{ value: number, names: Token[], numbers: Token[], level: number, numberLevel?: number }} Said */

/**
 * @param {string} symbol
 * @param {number[]} index
 */
export function indexed(symbol, index) {
  return index.length ? `${symbol}[${index.join(",")}]` : symbol;
}

/**
 * @param {number} value
 * @param {string} [name]
 * @returns {Said}
 */
export function leaf(value, name) {
  const shown = number(value, Number.isInteger(value) ? "int64" : "float64");
  return { value, names: [name ?? shown], numbers: [shown], level: LEVEL.atom, numberLevel: signLevel(value) };
}

/**
 * A negative number needs brackets behind an operator; its name does not.
 * @param {number} value
 */
export function signLevel(value) {
  return value < 0 ? LEVEL.sum : LEVEL.atom;
}

/**
 * @param {Token[]} tokens
 * @param {number} level
 * @param {number} wanted
 */
export function wrap(tokens, level, wanted) {
  return level < wanted ? ["(", ...tokens, ")"] : tokens;
}

/**
 * Operands and settings in full; values in between, which have no short exact form, to ten digits.
 * @param {number} value
 */
export function number(value, dtype = "float64") {
  if (dtype === "float64" && Number.isFinite(value) && String(value).length > 12) return format(value, 10, dtype);
  return format(value, "all", dtype);
}
