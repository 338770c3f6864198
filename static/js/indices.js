// Places in arrays: an index for each axis, or one number for the place in the flat array.

/**
 * @param {number[]} index
 * @param {number[]} shape
 */
export function flatten(index, shape) {
  return index.reduce((flat, i, axis) => flat * shape[axis] + i, 0);
}

/**
 * @param {number} flat
 * @param {number[]} shape
 */
export function unflatten(flat, shape) {
  /** @type {number[]} */
  const index = new Array(shape.length);
  let rest = flat;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = rest % shape[axis];
    rest = Math.floor(rest / shape[axis]);
  }
  return index;
}

/**
 * How many numbers an array has.
 * @param {number[]} shape
 */
export function sizeOf(shape) {
  return shape.reduce((a, b) => a * b, 1);
}
