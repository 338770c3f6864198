// Steps that follow each other by themselves, until the end or until the reader touches anything.

import { around, byId, first } from "dom";

/** @type {Record<string, number>} */
const PACES = { slow: 9000, normal: 4500, fast: 1500 }; // ms a step
const TOUCHES = ["pointerdown", "click", "keydown", "input", "wheel"];
const UNFELT = new Set(["Tab", "Shift", "Control", "Alt", "Meta"]); // keys that touch nothing

export class Autoplay {
  /**
   * @param {Words} words
   * @param {{ left: () => boolean, next: () => void }} steps whether there are any left; show the next one
   */
  constructor(words, steps) {
    this.words = words;
    this.steps = steps;
    this.timer = 0;
    this.button = byId("play", HTMLButtonElement);
    this.speed = byId("speed", HTMLSelectElement);
    this.sign = first(this.button, "[aria-hidden]");
    this.word = first(this.button, ".word");
  }

  get playing() {
    return this.timer !== 0;
  }

  wire() {
    this.button.addEventListener("click", () => this.toggle());
    for (const touch of TOUCHES) {
      document.addEventListener(touch, (event) => this.touched(event), { capture: true, passive: true });
    }
  }

  /** The reader has something in hand: whatever it is, the steps stay where they are. */
  touched(/** @type {Event} */ event) {
    if (this.playing && !isOwn(event)) this.stop();
  }

  toggle() {
    if (this.playing) this.stop();
    else this.play();
  }

  play() {
    if (!this.steps.left()) {
      this.stop();
      return;
    }
    this.timer = setTimeout(() => {
      this.steps.next();
      this.play();
    }, PACES[this.speed.value]);
    this.show();
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.show();
  }

  show() {
    this.button.setAttribute("aria-pressed", String(this.playing));
    this.sign.textContent = this.playing ? "❚❚" : "▶";
    this.word.textContent = this.playing ? this.words.pause : this.words.play;
  }
}

/** Whether an event is for the controls of playing themselves, or touches nothing. */
function isOwn(/** @type {Event} */ event) {
  if (event.type === "wheel") return false;
  const key = event instanceof KeyboardEvent ? event.key : "";
  if (event instanceof KeyboardEvent && (UNFELT.has(key) || togglesPlay(event))) return true;
  const pressesPlay = event.type !== "keydown" || key === "Enter" || key === " ";
  return Boolean(around(event, pressesPlay ? "#play, #speed" : "#speed"));
}

/**
 * Space, where it presses nothing else.
 * @param {KeyboardEvent} event
 */
export function togglesPlay(event) {
  return event.key === " " && !around(event, "input, button, a, select, summary, dialog, [tabindex='0']");
}
