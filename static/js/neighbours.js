// The steps that are on the page: the current one, and its neighbours, laid out unseen so that going there is quick.

import { Later } from "later";
import { Step } from "step";

export class Neighbours {
  /**
   * @param {HTMLElement[]} sections one for each step
   * @param {import("player").Player} player
   */
  constructor(sections, player) {
    this.sections = sections;
    this.player = player;
    /** @type {Map<number, Step>} */
    this.steps = new Map(); // by number
    this.current = -1;
    /** @type {Step | null} */
    this.shown = null;
    this.way = 1; // the direction that the learner goes
    this.later = new Later();
  }

  /** The current step. */
  get step() {
    return /** @type {Step} */ (this.shown);
  }

  /**
   * @param {number} index
   * @param {boolean} held a key is held: the next step comes at once
   */
  enter(index, held) {
    this.later.clear();
    for (const step of this.steps.values()) step.later.pause();
    const left = this.shown;
    const near = Math.abs(index - this.current) === 1 && !held && left?.drawn;
    left?.leave();
    this.way = index < this.current ? -1 : 1;
    this.current = index;
    this.shown = this.at(index);
    if (held) this.dropOthers();
    this.shown.enter(held);
    if (left && near) this.shown.later.addFirst(() => left.makeReady()); // as soon as the new step is painted
  }

  /** @param {number} index */
  at(index) {
    const step = this.steps.get(index) ?? new Step(this.sections[index], this.player);
    this.steps.set(index, step);
    return step;
  }

  /** The steps on both sides are made ready while nothing else is to do; those farther away become text again. */
  prepare() {
    const around = [this.current + this.way, this.current - this.way].filter((index) => this.sections[index]);
    const prepareNext = () => {
      const index = around.shift();
      if (index !== undefined) this.at(index).prepare(prepareNext);
    };
    this.step.later.whenDone(() => {
      this.later.add(() => this.dropOthers(around));
      this.later.whenDone(prepareNext);
    });
  }

  /** @param {number[]} kept */
  dropOthers(kept = []) {
    for (const [index, step] of this.steps) {
      if (index === this.current || kept.includes(index)) continue;
      step.drop();
      this.steps.delete(index);
    }
  }

  /** The width of the steps changes. */
  rest() {
    for (const step of this.steps.values()) step.rest();
  }
}
