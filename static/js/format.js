// Numbers as text. Tables round and say so; an opened number is shown whole.

const MINUS = "\u2212";

/**
 * `value` to `digits` significant digits ("all": in full), with a true minus sign.
 * @param {number} value
 * @param {Digits} digits
 * @param {string} dtype
 */
export function format(value, digits, dtype = "float32") {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : `${MINUS}∞`;
  if (dtype === "int64" || value === 0) return String(value).replace("-", MINUS);
  return (digits === "all" ? exact(value, dtype) : significant(value, digits)).replace("-", MINUS).replace("e-", `e${MINUS}`);
}

/**
 * The same for pictures, where room is scarce: what is very small or large is written with a power of ten.
 * @param {number} value
 * @param {number} digits
 * @param {string} dtype
 */
export function compact(value, digits, dtype = "float32") {
  const size = Math.abs(value);
  if (dtype === "int64" || !Number.isFinite(value) || size === 0 || (size >= 1e-3 && size < 1e5)) return format(value, digits, dtype);
  return value.toExponential(Math.min(digits, 2) - 1).replace("e+", "e").replaceAll("-", MINUS);
}

/**
 * @param {number} value
 * @param {number} digits
 */
function significant(value, digits) {
  const scientific = value.toExponential(digits - 1);
  const exponent = Number(scientific.split("e")[1]); // after rounding: 9.9996 to four digits is 10.00
  return exponent >= -5 && exponent < 7 ? value.toFixed(Math.max(digits - 1 - exponent, 0)) : scientific.replace("e+", "e");
}

/**
 * The shortest decimal that reads back as the same number: the form that the recording has.
 * @param {number} value
 * @param {string} dtype
 */
export function exact(value, dtype = "float32") {
  if (dtype !== "float32") return tidy(value);
  for (let digits = 1; digits <= 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return tidy(Number(text));
  }
  return String(value);
}

/** @param {number} value */
function tidy(value) {
  return String(value).replace("e+", "e");
}

/**
 * How many float32 numbers two of them are apart: 0 when they are the same, 1 for neighbours.
 * @param {number} a
 * @param {number} b
 */
export function ulpsApart(a, b) {
  if (Object.is(a, b) || a === b) return 0;
  if (!Number.isFinite(a) || !Number.isFinite(b)) return Infinity;
  return Math.abs(ordered(a) - ordered(b));
}

/** @param {number} value */
function ordered(value) {
  const bits = new Int32Array(new Float32Array([value]).buffer)[0];
  return bits < 0 ? -(bits & 0x7fffffff) : bits;
}

/**
 * The distance of neighbouring float32 numbers at this size.
 * @param {number} value
 */
export function ulpAt(value) {
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(value) || 1e-45)), -126);
  return 2 ** (exponent - 23);
}
