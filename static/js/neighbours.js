// The steps that are on the page: the current one, and its neighbours, laid out unseen so that going there is quick.

import { Later } from "later";
import { Step } from "step";

export class Neighbours {
  /**
   * @param {Map<string, HTMLElement>} sections one for each step, by its id
   * @param {import("player").Player} player
   */
  constructor(sections, player) {
    this.sections = sections;
    this.player = player;
    /** @type {Map<string, Step>} */
    this.steps = new Map(); // by id
    this.current = "";
    /** @type {Step | null} */
    this.shown = null;
    /** @type {string[]} */
    this.around = []; // the steps before and after the current one; the one that the reader goes towards is first
    this.later = new Later();
  }

  /** The current step. */
  get step() {
    return /** @type {Step} */ (this.shown);
  }

  /**
   * @param {string} id
   * @param {boolean} held a key is held: the next step comes at once
   */
  enter(id, held) {
    const { line } = this.player;
    this.later.clear();
    for (const step of this.steps.values()) step.later.pause();
    const left = this.shown;
    const near = this.around.includes(id) && !held && left?.drawn;
    left?.leave();
    const way = left && line.member(id).place < line.member(this.current).place ? -1 : 1;
    this.current = id;
    this.shown = this.at(id);
    line.enter(id);
    this.around = [line.from(id, way), line.from(id, -way)].filter((one) => one !== id);
    if (held) this.dropOthers();
    this.shown.enter(held);
    if (left && near) this.shown.later.addFirst(() => left.makeReady()); // as soon as the new step is painted
  }

  /** @param {string} id */
  at(id) {
    const step = this.steps.get(id) ?? new Step(/** @type {HTMLElement} */ (this.sections.get(id)), this.player);
    this.steps.set(id, step);
    return step;
  }

  /** The steps on both sides are made ready while nothing else is to do; those farther away become text again. */
  prepare() {
    const around = [...this.around];
    const prepareNext = () => {
      const id = around.shift();
      if (id) this.at(id).prepare(prepareNext);
    };
    this.step.later.whenDone(() => {
      this.later.add(() => this.dropOthers(this.around));
      this.later.whenDone(prepareNext);
    });
  }

  /** @param {string[]} kept */
  dropOthers(kept = []) {
    for (const [id, step] of this.steps) {
      if (id === this.current || kept.includes(id)) continue;
      step.drop();
      this.steps.delete(id);
    }
  }

  /** The width of the steps changes. */
  rest() {
    for (const step of this.steps.values()) step.rest();
  }
}
