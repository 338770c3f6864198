// What is chosen on each axis: position, head, dimension. A choice holds from step to step.

export const TIMES = ["update", "moment"]; // axes of a training, along which a slider runs

/** @type {Record<string, string[]>} */
const SAME_CHOICE = { position: ["query_position"], query_position: ["position"] };

export class Choice {
  /** @param {Record<string, number>} start axis → what is chosen at first */
  constructor(start) {
    this.chosen = new Map(Object.entries(start));
  }

  /** @param {string} axis */
  get(axis) {
    return this.chosen.get(axis);
  }

  /**
   * @param {string} axis
   * @param {number} i
   */
  set(axis, i) {
    this.chosen.set(axis, i);
  }

  /**
   * The place of a number is chosen, axis by axis.
   * @param {string[]} axes
   * @param {number[]} index
   */
  keep(axes, index) {
    axes.forEach((axis, i) => {
      for (const name of [axis, ...(SAME_CHOICE[axis] ?? [])]) this.chosen.set(name, index[i]);
    });
  }

  /**
   * The chosen place in an array, as far as the array goes.
   * @param {ArrayOutline} array
   */
  within({ axes, shape }) {
    return axes.map((axis, i) => Math.min(this.chosen.get(axis) ?? 0, shape[i] - 1));
  }
}
