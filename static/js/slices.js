// An array that runs over the updates, update by update.

import { format } from "format";
import { sizeOf, unflatten } from "indices";

/** The slices of one array: for each update, its numbers in order. */
export class Slices {
  /**
   * @param {string} name
   * @param {import("store").Store} store
   */
  constructor(name, store) {
    const { shape, axes, dtype } = store.array(name);
    this.name = name;
    this.store = store;
    this.dtype = dtype;
    this.count = shape[0];
    this.shape = shape.slice(1);
    this.axes = axes.slice(1);
    this.size = sizeOf(this.shape);
  }

  /**
   * @param {number} update
   * @param {number} cell the place of a number in its slice
   */
  value(update, cell) {
    return this.store.flatValue(this.name, Math.min(update, this.count - 1) * this.size + cell);
  }

  /** @param {number} cell */
  line(cell) {
    return Float64Array.from({ length: this.count }, (_, update) => this.value(update, cell));
  }

  /**
   * @param {number} update
   * @param {number} cell
   */
  index(update, cell) {
    return [Math.min(update, this.count - 1), ...unflatten(cell, this.shape)];
  }

  /**
   * @param {number} axis
   * @param {number} i
   */
  label(axis, i) {
    return this.store.label(this.name, axis + 1, i);
  }

  /**
   * @param {number} value
   * @param {Digits} digits
   */
  text(value, digits = "all") {
    return format(value, digits, this.dtype);
  }
}
