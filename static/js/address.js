// The address of the page, kept with what is shown.

import { parse } from "state";

const PAUSE = 150; // ms between addresses while a key is held: browsers take some 20 a second

export class Address {
  /** @param {(address: string) => void} noted is told of every address */
  constructor(noted) {
    this.noted = noted;
    this.text = "";
    this.timer = 0;
    this.written = -Infinity; // when: ms
  }

  /** What the address says. */
  get state() {
    return parse(this.text);
  }

  /**
   * The address is this one now, whoever wrote it.
   * @param {string} text
   */
  note(text) {
    clearTimeout(this.timer);
    this.text = text;
    this.noted(text);
  }

  /**
   * Write the address; while a key is held, now and then: browsers refuse a page that does it too often.
   * @param {string} text
   * @param {{ replace?: boolean, held?: boolean }} how
   */
  set(text, { replace = false, held = false } = {}) {
    this.note(text);
    const write = () => {
      this.written = performance.now();
      history[replace ? "replaceState" : "pushState"](null, "", text);
    };
    if (held && performance.now() - this.written < PAUSE) this.timer = setTimeout(write, PAUSE);
    else write();
  }
}
