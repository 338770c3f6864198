// Work that is put off: to the next frame, or until nothing else is to do.

/**
 * Call `run` at most once a frame, with the latest arguments: held keys must not queue up.
 * @template {unknown[]} A
 * @param {(...args: A) => void} run
 * @returns {(...args: A) => void}
 */
export function oncePerFrame(run) {
  /** @type {A | null} */
  let pending = null;
  return (...args) => {
    if (pending === null) {
      requestAnimationFrame(() => {
        const latest = /** @type {A} */ (pending);
        pending = null;
        run(...latest);
      });
    }
    pending = args;
  };
}

/** @typedef {Pick<IdleDeadline, "timeRemaining"> & Partial<IdleDeadline>} Deadline */

/** @type {(run: (deadline: Deadline) => void, options: IdleRequestOptions) => void} */
const idle = window.requestIdleCallback ?? ((run) => setTimeout(() => run({ timeRemaining: () => 0 }), 50));
const PATIENCE = { timeout: 300 }; // ms: a browser that has nothing to paint may see no idle time at all
const SLICE = 8; // ms of work then

/** Work that waits until what is in view has been painted and nothing else is to do, one piece after the other. */
export class Later {
  constructor() {
    /** @type {(() => void)[]} */
    this.pieces = [];
    this.waiting = this.paused = false;
    /** @type {(() => void) | null} */
    this.done = null;
  }

  /** @param {() => void} run */
  add(run) {
    this.pieces.push(run);
    this.wait();
  }

  /** @param {() => void} run */
  addFirst(run) {
    this.pieces.unshift(run);
    this.wait();
  }

  /** Drop what has not been done. */
  clear() {
    this.pieces.length = 0;
    this.done = null;
  }

  /** Do all of it now. */
  finish() {
    while (this.pieces.length) this.pieces.shift()?.();
  }

  /**
   * Call `run` when nothing is left to do, once.
   * @param {() => void} run
   */
  whenDone(run) {
    this.done = run;
    this.resume();
  }

  pause() {
    this.paused = true;
    this.done = null;
  }

  resume() {
    this.paused = false;
    this.wait();
  }

  end() {
    const { done } = this;
    this.done = null;
    done?.();
  }

  wait() {
    if (this.waiting || this.paused || !(this.pieces.length || this.done)) return;
    this.waiting = true;
    idle((deadline) => {
      this.waiting = false;
      if (this.paused) return;
      const start = performance.now();
      const more = () => (deadline.didTimeout ? performance.now() - start < SLICE : deadline.timeRemaining() > 10);
      do this.pieces.shift()?.(); while (this.pieces.length && more());
      if (!this.pieces.length) this.end();
      this.wait();
    }, PATIENCE);
  }
}
