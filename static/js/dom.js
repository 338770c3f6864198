// Small helpers for making elements. Text is always text: nothing from a recording becomes markup.

/** h("td", {class: "sel", onclick: f}, "text", child, …) */
export function h(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function svg(tag, attributes = {}, ...children) {
  return dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Give an element attributes and further children. */
export function dress(element, attributes, children = []) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Buttons under a name, of which one is pressed. */
export function choices(name, labels, chosen, choose) {
  const press = (i) => {
    buttons.forEach((button, j) => button.setAttribute("aria-pressed", String(i === j)));
    choose(i);
  };
  const buttons = labels.map((label, i) => h("button",
    { type: "button", class: "chip", "aria-pressed": String(i === chosen), onclick: () => press(i) }, label));
  return h("div", { class: "pick", role: "group", "aria-label": name }, h("span", {}, name), buttons);
}

/** Call `draw` with the width of `box` now and whenever it changes. */
export function onWidth(box, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) draw(width = box.clientWidth);
  }).observe(box);
}

/** Keys that `press` takes are not the page's. */
export function onKeys(element, press) {
  element.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !press(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** Put text on the clipboard; false when the browser does not let a page do that. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Text with {names} filled in; {n:number|numbers} is the form that goes with n. */
export function fill(text, values) {
  return text.replace(/\{(\w+)(?::([^|{}]*)\|([^{}]*))?\}/g, (_, name, one, more) => (
    one === undefined ? values[name] : String(values[name]) === "1" ? one : more));
}

/** A label without the signs that keep it apart from its neighbours. */
export function bare(label) {
  return label.replace(/[\u2068\u2069]/g, "");
}

/** Call `run` at most once a frame, with the latest arguments: held keys must not queue up. */
export function oncePerFrame(run) {
  let pending = null;
  return (...args) => {
    if (pending === null) requestAnimationFrame(() => { const latest = pending; pending = null; run(...latest); });
    pending = args;
  };
}

const idle = window.requestIdleCallback ?? ((run) => setTimeout(() => run({ timeRemaining: () => 0 }), 50));
const PATIENCE = { timeout: 300 }; // ms: a browser that has nothing to paint may see no idle time at all
const SLICE = 8; // ms of work then

/** Work that waits until what is in view has been painted and nothing else is to do, one piece after the other. */
export class Later {
  constructor() {
    this.pieces = [];
    this.waiting = this.paused = false;
    this.done = null;
  }

  add(run) {
    this.pieces.push(run);
    this.wait();
  }

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
    while (this.pieces.length) this.pieces.shift()();
  }

  /** Call `run` when nothing is left to do, once. */
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
