// The map beside the steps: lights the node that the current step belongs to, and keeps it in sight.

const narrow = matchMedia("(max-width: 820px)");
const side = document.querySelector(".side");
const fold = side?.querySelector(".map-fold");
const map = fold?.querySelector(".map");
const nodes = [...(side?.querySelectorAll(".node") ?? [])];
const views = nodes.filter((node) => node.classList.contains("view"));
// What every step says of its place, by its name; of those of a pass forward, by pass and place.
const steps = new Map([...document.querySelectorAll("section.step")].map(({ dataset }) => [dataset.step, dataset]));
const places = new Map([...steps.values()].filter((step) => step.mode === "forward" && step.pass)
  .map((step) => [key(step.pass, step.place), step]).reverse()); // the first of a place counts
const inThousands = new Intl.NumberFormat("en-US");
const modes = [...(side?.querySelectorAll("[data-mode]") ?? [])];
const first = map?.dataset.pass ?? "";
const rounds = map?.dataset.kind === "round"; // a generation: the map stays in the round that was shown last
let whole = first; // the pass that is shown while a step is of none
let pass = null; // what the map shows: the pass, and the nodes that are lit
let lit = new Set();

function key(pass, place) {
  return `${pass} ${place}`;
}

/** What the map shows for a step: which nodes (a test), in which direction, and the pass that it is in. */
function read(id) {
  const step = steps.get(id);
  const { mode, place, of } = step;
  if (of) return { mode, pass: first, array: step.array, lights: (node) => has(node.dataset.parameters, of) };
  const at = (node) => Boolean(place) && node.dataset.place === place;
  return { mode, pass: mode === "forward" ? passOf(step) : first, lights: (node) => at(node) || has(node.dataset.before, id) };
}

/** The step's pass, if it is a whole one; else the pass in which generation was. */
function passOf(step) {
  const ends = [views[0], views.at(-1)];
  if (!step.pass || !step.place || ends.some((node) => !places.has(key(step.pass, node.dataset.place)))) return whole;
  if (rounds) whole = step.pass;
  return step.pass;
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
  const there = places.get(key(pass, node.dataset.place));
  node.classList.toggle("absent", !there);
  if (!there || node.dataset.step === there.step) return;
  node.dataset.step = there.step;
  node.setAttribute("href", `#step=${node.dataset.step}`);
}

/** The shape of what the node makes in this pass; on the way back of its gradient, at an update of the parameter. */
function writeShape(node, shown, store) {
  const text = node.querySelector(".shape");
  const given = pass === first && !rounds ? node.dataset.array : ""; // inputs and tables are the first pass's
  const own = node.dataset.place ? places.get(key(pass, node.dataset.place))?.array : given;
  const array = node.dataset.lit && shown.array ? shown.array : own;
  if (!text || !store) return;
  const lengths = array && store.has(array) ? store.shape(array) : [];
  const shape = lengths.map((length) => inThousands.format(length)).join("×");
  const said = shown.mode === "backward" && node.dataset.lit ? `↑ ${shape}` : shape;
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
