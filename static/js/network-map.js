// The map beside the steps: lights the node that the current step belongs to, and keeps it in sight.

const narrow = matchMedia("(max-width: 820px)");
const side = document.querySelector(".side");
const fold = side?.querySelector(".map-fold");
const map = fold?.querySelector(".map");
const nodes = [...(side?.querySelectorAll(".node") ?? [])];
const views = nodes.filter((node) => node.classList.contains("view")).map((node) => node.dataset.key);
const steps = new Set([...document.querySelectorAll("section.step")].map((section) => section.dataset.step));
const inThousands = new Intl.NumberFormat("en-US");
const modes = [...(side?.querySelectorAll("[data-mode]") ?? [])];
let round = map?.dataset.pass ?? "";
let pass = null; // what the map shows: the pass, and the nodes that are lit
let lit = new Set();

/** What the map shows for a step: which nodes (a test), in which direction, and the pass that it is in. */
function read(id) {
  if (id.startsWith("adamw.")) {
    const parameter = id.slice("adamw.".length);
    return { mode: "update", pass: "", parameter, lights: (node) => has(node.dataset.parameters, parameter) };
  }
  const mode = id.startsWith("grad.") ? "backward" : "forward";
  const key = keyOf(id);
  return { mode, pass: mode === "forward" ? passOf(id, key) : "", lights: (node) => node.dataset.key === key || has(node.dataset.before, id) };
}

/** The node's name in a step's name: the longest one that it ends in. */
function keyOf(id) {
  const parts = id.split(".");
  return parts.map((_, i) => parts.slice(i).join(".")).find((name) => views.includes(name));
}

/** What stands before the node's name, if a whole pass has it there; else the pass in which generation was. */
function passOf(id, key) {
  const before = id.slice(0, id.length - (key?.length ?? 0));
  if (!key || !steps.has(before + views[0]) || !steps.has(before + views.at(-1))) return round;
  if (round) round = before;
  return before;
}

function has(list, word) {
  return Boolean(list) && list.split(" ").includes(word);
}

/** Light the node of a step; links and shapes of all nodes become those of the step's pass. */
export function lightMap(id, store) {
  const shown = read(id);
  const before = lit;
  lit = new Set(nodes.filter(shown.lights));
  const changed = shown.pass === pass ? nodes.filter((node) => lit.has(node) || before.has(node)) : nodes;
  pass = shown.pass;
  for (const node of changed) {
    if (node.classList.contains("view")) enterPass(node);
    if (lit.has(node)) node.dataset.lit = shown.mode;
    else delete node.dataset.lit;
    setCurrent(node, lit.has(node) && (node.dataset.step === id ? "step" : "true"));
    writeShape(node, shown, store);
  }
  for (const word of modes) word.toggleAttribute("data-here", lit.size > 0 && word.dataset.mode === shown.mode);
}

function setCurrent(node, value) {
  if (value) node.setAttribute("aria-current", value);
  else node.removeAttribute("aria-current");
}

/** A node leads to its step in this pass. Where the pass has none (no dropout in evaluation) it is pale. */
function enterPass(node) {
  const there = steps.has(pass + node.dataset.key);
  node.classList.toggle("absent", !there);
  if (!there || node.dataset.step === pass + node.dataset.key) return;
  node.dataset.step = pass + node.dataset.key;
  node.setAttribute("href", `#step=${node.dataset.step}`);
}

/** The shape of what the node makes in this pass; on the way back of its gradient, at an update of the parameter. */
function writeShape(node, { mode, parameter }, store) {
  const text = node.querySelector(".shape");
  const array = mode === "update" && node.dataset.lit ? parameter : pass + node.dataset.array;
  if (!text || !store) return;
  const lengths = store.has(array) ? store.shape(array) : [];
  const shape = lengths.map((length) => inThousands.format(length)).join("×");
  const said = mode === "backward" && node.dataset.lit ? `↑ ${shape}` : shape;
  if (text.textContent !== said) text.textContent = said;
}

/** Scroll the box around the map or the list, and nothing else, until the current place is in sight. */
export function revealOnMap() {
  const list = side?.dataset.show === "steps" && !narrow.matches;
  const boxes = list ? [side.querySelector(".contents")] : [map, fold];
  const place = list ? boxes[0].querySelector("a[aria-current]") : lit.values().next().value;
  const box = boxes.find((one) => one && one.scrollHeight > one.clientHeight + 1);
  if (!place || !box) return;
  const outer = box.getBoundingClientRect();
  const height = Math.min(outer.bottom, innerHeight - 60) - outer.top;
  const top = place.getBoundingClientRect().top - outer.top;
  if (top < 40 || top > height - 60) box.scrollTop += top - height / 3;
}

/** Map or list of steps, in a wide window; in a narrow one the map is folded. */
function show(what) {
  side.dataset.show = what;
  for (const button of side.querySelectorAll("button[data-show]")) {
    button.setAttribute("aria-pressed", String(button.dataset.show === what));
  }
  revealOnMap();
}

if (fold) {
  for (const button of side.querySelectorAll("button[data-show]")) {
    button.addEventListener("click", () => show(button.dataset.show));
  }
  fold.open = !narrow.matches;
  narrow.addEventListener("change", () => { fold.open = !narrow.matches; });
  fold.addEventListener("toggle", revealOnMap);
  fold.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest(".node")) fold.open = false;
  });
  show("map");
}
