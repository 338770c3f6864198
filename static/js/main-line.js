// The main line: the steps that a reader walks. What repeats with other numbers is one of them, with variants.

/** @typedef {StepOutline & { family: FamilyOutline }} Member */

export class MainLine {
  /** @param {Outline} outline */
  constructor({ line, families, chapters }) {
    this.stops = line;
    const familyOf = new Map(families.flatMap((family) => family.steps.map((step) => [step, family])));
    const steps = chapters.flatMap((chapter) => chapter.steps);
    this.members = new Map(steps.map((step) => [step.id, { ...step, family: /** @type {FamilyOutline} */ (familyOf.get(step.id)) }]));
    /** @type {Coordinates} */
    this.kept = {}; // what the reader chose along each axis, where it is not what the line shows
  }

  /** @param {string} id */
  member(id) {
    return /** @type {Member} */ (this.members.get(id));
  }

  /** The step's number on the line, from 0; of one beside the line that of the step before it. @param {string} id */
  number(id) {
    return Math.floor(this.member(id).place);
  }

  /** Every step that does the same, itself included. @param {string} id */
  variants(id) {
    return this.member(id).family.steps;
  }

  /** The reader is here: what is chosen here holds from now on. @param {string} id */
  enter(id) {
    const { at, place } = this.member(id);
    const usual = this.variants(id).find((one) => this.member(one).place === place) ?? id;
    for (const [axis, value] of Object.entries(at)) {
      if (value === this.member(usual).at[axis]) delete this.kept[axis];
      else this.kept[axis] = value;
    }
  }

  /**
   * The step of a number, in the variant that the reader keeps. `onward`: also one that has a number of its own
   * farther on, because its pass ends there.
   * @param {number} number
   */
  at(number, onward = false) {
    const stop = this.stops[Math.max(0, Math.min(this.stops.length - 1, number))];
    const { place } = this.member(stop);
    const isFirst = this.variants(stop)[0] === stop;
    const possible = this.variants(stop).map((id) => this.member(id)).filter((one) => (
      one.place === place || (onward && isFirst && Number.isInteger(one.place))));
    return nearest(possible, this.kept);
  }

  /**
   * The step that is so many farther on the line; at its ends the same one.
   * @param {string} id
   * @param {number} by
   */
  from(id, by) {
    const { place } = this.member(id);
    return by > 0 ? this.at(Math.floor(place) + by, true) : this.at(Math.ceil(place) + by);
  }

  /**
   * The same step at another place along an axis; along the others it stays as near as there is one.
   * @param {string} id
   * @param {string} axis
   * @param {string} value
   */
  pick(id, axis, value) {
    const there = this.variants(id).map((one) => this.member(one)).filter(({ at }) => String(at[axis]) === value);
    return nearest(there, this.member(id).at);
  }
}

/**
 * Of several steps the first that agrees with most of what is wanted.
 * @param {Member[]} members
 * @param {Coordinates} wanted
 */
function nearest(members, wanted) {
  const agreeing = members.map(({ at }) => Object.keys(wanted).filter((axis) => at[axis] === wanted[axis]).length);
  return members[agreeing.indexOf(Math.max(...agreeing))].id;
}
