// Small helpers for making and finding elements. Text is always text: nothing from a recording becomes markup.

/**
 * h("td", {class: "sel", onclick: f}, "text", child, …)
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} attributes
 * @param {...Child} children
 */
export function h(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/**
 * The same for drawings.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} attributes
 * @param {...Child} children
 */
export function svg(tag, attributes = {}, ...children) {
  return dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/**
 * Give an element attributes and further children.
 * @template {Element} E
 * @param {E} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
export function dress(element, attributes, children = []) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice("on".length), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...flat(children));
  return element;
}

/**
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
function flat(children) {
  return children.flatMap((child) => {
    if (Array.isArray(child)) return flat(child);
    return child === null || child === undefined ? [] : [typeof child === "number" ? String(child) : child];
  });
}

/**
 * The element that a page has under this id.
 * @template {HTMLElement} E
 * @param {string} id
 * @param {new () => E} type
 */
export function byId(id, type) {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`the page has no #${id}`);
  return element;
}

/**
 * The first element that matches: the page has one.
 * @param {ParentNode} root
 * @param {string} selector
 */
export function first(root, selector) {
  const element = /** @type {HTMLElement | null} */ (root.querySelector(selector));
  if (!element) throw new Error(`the page has no ${selector}`);
  return element;
}

/**
 * Every element that matches, in order.
 * @param {ParentNode} root
 * @param {string} selector
 */
export function all(root, selector) {
  return [.../** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(selector))];
}

/**
 * What an event is about, or the closest element around it, that matches.
 * @param {Event} event
 * @param {string} selector
 */
export function around(event, selector) {
  const found = event.target instanceof Element ? event.target.closest(selector) : null;
  return /** @type {HTMLElement | null} */ (found);
}

/**
 * Buttons under a name, of which one is pressed.
 * @param {string} name
 * @param {string[]} labels
 * @param {number} chosen
 * @param {(i: number) => void} choose
 */
export function choices(name, labels, chosen, choose) {
  const press = (/** @type {number} */ i) => {
    buttons.forEach((button, j) => button.setAttribute("aria-pressed", String(i === j)));
    choose(i);
  };
  const buttons = labels.map((label, i) => h("button",
    { type: "button", class: "chip", "aria-pressed": String(i === chosen), onclick: () => press(i) }, label));
  return h("div", { class: "pick", role: "group", "aria-label": name }, h("span", {}, name), buttons);
}

/**
 * Call `draw` with the width of `box` now and whenever it changes.
 * @param {Element} box
 * @param {(width: number) => void} draw
 */
export function onWidth(box, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (!box.clientWidth || box.clientWidth === width) return;
    width = box.clientWidth;
    draw(width);
  }).observe(box);
}

/**
 * Keys that `press` takes are not the page's.
 * @param {Element} element
 * @param {(key: string) => unknown} press
 */
export function onKeys(element, press) {
  element.addEventListener("keydown", (event) => {
    if (!(event instanceof KeyboardEvent) || event.altKey || event.ctrlKey || event.metaKey || !press(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/**
 * Put text on the clipboard; false when the browser does not let a page do that.
 * @param {string} text
 */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Text with {names} filled in; {n:number|numbers} is the form that goes with n.
 * @param {string} text
 * @param {Record<string, unknown>} values
 */
export function fill(text, values) {
  return text.replace(/\{(\w+)(?::([^|{}]*)\|([^{}]*))?\}/g, (_, name, one, more) => (
    one === undefined ? String(values[name]) : String(values[name]) === "1" ? one : more));
}

/**
 * What a page says in place of numbers whose file did not arrive.
 * @param {Words} words
 * @param {unknown} error
 */
export function loadFailed(words, error) {
  const file = error instanceof Error ? error.message : String(error);
  return h("p", { class: "wrong", role: "alert" }, fill(words.load_failed, { file }));
}

/**
 * A label without the signs that keep it apart from its neighbours.
 * @param {string} label
 */
export function bare(label) {
  return label.replace(/[\u2068\u2069]/g, "");
}
