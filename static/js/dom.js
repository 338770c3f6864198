// Small helpers for making elements. Text is always text: nothing from a recording becomes markup.

/** h("td", {class: "sel", onclick: f}, "text", child, …) */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Text with {names} filled in. */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Call `run` at most once a frame, with the latest arguments: held keys must not queue up. */
export function oncePerFrame(run) {
  let pending = null;
  return (...args) => {
    if (pending === null) requestAnimationFrame(() => { const latest = pending; pending = null; run(...latest); });
    pending = args;
  };
}
