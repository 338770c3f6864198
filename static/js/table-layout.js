// How an array lies in a table: which axis runs down, which across, and which number each cell stands for.

const WIDE = 96; // a longer last axis goes down the page instead of across it
const LONG = 200; // of more rows than this only those in view are drawn

/** A function that says what is chosen on an axis. @typedef {(axis: string) => number | undefined} Choose */

/** Cells are known by their place in the flat array: row × stride down + column × stride across + what is chosen. */
export class TableLayout {
  /**
   * @param {ArrayOutline} array
   * @param {string | undefined} shared the axis that has one slider for the whole step
   * @param {Choose} choice
   */
  constructor({ shape, axes }, shared, choice) {
    this.shape = shape;
    this.axes = axes;
    this.shared = shared;
    this.choice = choice;
    // Which axis runs down, which across; the others are chosen. Without two axes, one is missing (−1).
    this.across = shape.length - 1;
    this.down = shape.length - 2;
    this.exchanged = this.across >= 0 && (shape[this.across] > WIDE || this.isShared(this.across));
    if (this.exchanged) [this.down, this.across] = [this.across, this.down];
    this.others = shape.map((_, axis) => axis).filter((axis) => axis !== this.down && axis !== this.across);
    this.rows = this.down < 0 ? 1 : shape[this.down];
    this.columns = this.across < 0 ? 1 : shape[this.across];
    this.long = this.rows > LONG;
    this.strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
    /** @type {Uint32Array | null} */
    this.order = null; // rows of the array as they stand in a sorted table
  }

  /** @param {number} axis */
  isShared(axis) {
    return axis >= 0 && this.axes[axis] === this.shared;
  }

  /** @param {number} axis */
  chosenOn(axis) {
    return Math.min(this.choice(this.axes[axis]) ?? 0, this.shape[axis] - 1);
  }

  /** Where in the flat array the shown slice begins. */
  base() {
    return this.others.reduce((flat, axis) => flat + this.chosenOn(axis) * this.strides[axis], 0);
  }

  /**
   * The place in the flat array of row `r` and column `c` of the slice that begins at `base`.
   * @param {number} base
   * @param {number} r
   * @param {number} c
   */
  flatAt(base, r, c) {
    return base + (this.down < 0 ? 0 : this.rowAt(r) * this.strides[this.down]) + (this.across < 0 ? 0 : c * this.strides[this.across]);
  }

  /** @param {number[]} index */
  flat(index) {
    return index.reduce((flat, i, axis) => flat + i * this.strides[axis], 0);
  }

  /**
   * The index of the number in row `r` and column `c`.
   * @param {number} r
   * @param {number} c
   */
  indexAt(r, c) {
    return this.shape.map((_, axis) => (axis === this.down ? this.rowAt(r) : axis === this.across ? c : this.chosenOn(axis)));
  }

  /**
   * The row and column of a number, or null when it is not in the shown slice.
   * @param {number[]} index
   */
  cellOf(index) {
    if (this.others.some((axis) => index[axis] !== this.chosenOn(axis))) return null;
    return { r: this.down >= 0 ? this.placeOf(index[this.down]) : 0, c: this.across >= 0 ? index[this.across] : 0 };
  }

  /**
   * The row of the array that stands in row `r` of the table: another one when the table is sorted.
   * @param {number} r
   */
  rowAt(r) {
    return this.order ? this.order[r] : r;
  }

  /**
   * The row of the table in which row `r` of the array stands.
   * @param {number} r
   */
  placeOf(r) {
    return this.order ? this.order.indexOf(r) : r;
  }

  /**
   * Rows by value, largest first; `value` is asked once a row.
   * @param {(r: number) => number} value
   */
  sort(value) {
    const keys = Float64Array.from({ length: this.rows }, (_, r) => value(r));
    this.order = Uint32Array.from(keys.keys()).sort((a, b) => keys[b] - keys[a] || a - b);
  }
}
