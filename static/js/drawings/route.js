// A whole route: the stream of every position through the network, from token to outcome; in training back again.
// What is drawn between two stations is what added to the stream: attention, weighted as recorded, or the MLP.

import { bare } from "dom";
import { drawBranch, drawStation, NAME, nameOf } from "route-parts";
import { widthOf } from "pen";
import { ease } from "scene";

/** @typedef {import("scene").Scene} Scene @typedef {import("pen").Pen} Pen @typedef {import("route-parts").Layout} Layout */

/** @param {Scene} scene */
export function suits(scene) {
  return scene.store.outline.stations.length > 0;
}

/**
 * @param {Scene} scene
 * @returns {import("scene").Move[]}
 */
export function moves(scene) {
  const { stations } = scene.store.outline;
  const say = (/** @type {string} */ key, values = {}) => scene.say(`route.${key}`, values);
  if (stations[0].round === null) {
    return [{ name: "forward", ms: 3000, say: say("forward") }, { name: "end", ms: 900, say: say("loss") },
      { name: "backward", ms: 3000, say: say("backward") },
      ...(stations[0].updates ? [{ name: "update", ms: 1200, say: say("update") }] : [])];
  }
  return stations.flatMap(({ round }) => [{ name: `forward ${round}`, ms: 1500, say: say("round", { n: round }) },
    { name: `end ${round}`, ms: 1000, say: say("draw", { n: round }) }]);
}

/** @param {Scene} scene */
export function arrays(scene) {
  return scene.store.outline.stations.flatMap(({ stops, attention, outcome }) => [
    ...stops.flatMap(({ array, gradient }) => (gradient ? [array, gradient] : [array])), ...attention.map(({ array }) => array), ...Object.values(outcome)]);
}

/**
 * The pass that is under way: the last one that has begun.
 * @param {Scene} scene
 */
function passOf(scene) {
  const { stations } = scene.store.outline;
  if (stations[0].round === null) return { pass: stations[0], forward: scene.part("forward"), end: scene.part("end") };
  const at = Math.max(0, stations.findLastIndex(({ round }) => scene.part(`forward ${round}`) > 0));
  const { round } = stations[at];
  return { pass: stations[at], forward: scene.part(`forward ${round}`), end: scene.part(`end ${round}`) };
}

/**
 * Where everything stands.  Where there are more stations than room, the first and the last blocks are shown.
 * @param {Scene} scene
 * @param {Stations} pass
 */
function layout(scene, pass) {
  const { store, width, height, narrow } = scene;
  const most = Math.max(...store.outline.stations.map(({ stops }) => store.shape(stops[0].array)[0]));
  const small = width < 760;
  const [top, bottom, left, right] = narrow ? [42, 50, 54, 60] : small ? [46, 60, 66, 104] : [52, 66, 78, 150];
  const shown = Math.min(most, Math.max(1, Math.floor((height - top - bottom) / 15)));
  const row = Math.min(74, (height - top - bottom) / shown);
  const fits = Math.max(2, Math.floor((width - left - right) / (narrow ? 34 : 64)));
  const { length } = pass.stops;
  const stops = length <= fits ? pass.stops : pass.stops.filter((_, i) => i < fits / 2 || i >= length - Math.floor(fits / 2));
  const each = (width - left - right) / stops.length;
  const isShort = stops.some((stop) => widthOf(nameOf(scene, stop, ""), NAME) > each - 6);
  return { short: isShort ? "short." : "", top, row, left, right, stops, each, strip: Math.min(each * 0.62, 120), rows: Math.min(shown, store.shape(pass.stops[0].array)[0]) };
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 */
export function draw(pen, scene) {
  const { pass, forward, end } = passOf(scene);
  const place = layout(scene, pass);
  place.stops.forEach((stop, s) => {
    const come = Math.max(0, Math.min(1, forward * (place.stops.length + 0.5) - s));
    if (s) drawBranch(pen, scene, pass, place, s, come);
    drawStation(pen, scene, place, stop, s, ease(come));
  });
  drawTokens(pen, scene, pass, place);
  heading(pen, scene, place, ease(end));
  if (pass.round === null) drawTraining(pen, scene, pass, place, ease(end));
  else drawChoice(pen, scene, pass, place, ease(end));
  if (place.stops.length < pass.stops.length) {
    pen.text(place.left, 14, scene.say("route.folded", { n: place.stops.length, all: pass.stops.length }), { size: 11, color: "soft" });
  }
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Stations} pass
 * @param {Layout} place
 */
function drawTokens(pen, scene, pass, { rows, left, top, row }) {
  const size = scene.narrow ? 11 : 13;
  for (let t = 0; t < rows; t++) {
    const text = bare(scene.label(pass.stops[0].array, 0, t));
    const w = Math.min(left - 14, Math.max(26, widthOf(text, { size, mono: true }) + 12));
    pen.bar(left - 10 - w, top + (t + 0.5) * row - 11, w, 22, { color: "cell", stroke: "line", radius: 6, key: `token ${t}`, text, size, mono: true, align: "center" });
  }
}

/**
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Layout} place
 * @param {number} end
 */
function heading(pen, scene, { right, top }, end) {
  const { narrow, width } = scene;
  pen.text(width - right + (narrow ? 0 : 14), top - 12, scene.say(narrow ? "route.short.next" : "route.next"), { size: narrow ? 11 : 12.5, bold: true, alpha: 0.35 + 0.65 * end });
}

/**
 * The end of a training pass: how likely each right token was, the loss, and what the gradient is for.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Stations} pass
 * @param {Layout} place
 * @param {number} end
 */
function drawTraining(pen, scene, { outcome, names, updates, end: link }, place, end) {
  const { store, width, height, narrow } = scene;
  const x = width - place.right + (narrow ? 0 : 14);
  const probability = outcome.target_probability;
  names.slice(0, place.rows).forEach((name, t) => {
    const y = place.top + (t + 0.5) * place.row;
    const p = store.value(probability, [t]);
    pen.text(x, y, bare(name), { size: narrow ? 11 : 13, mono: true, alpha: end });
    if (!narrow) pen.bar(x, y + 5, Math.max(1, (place.right - 30) * p), 6, { color: "accent", alpha: end, place: { array: probability, index: [t] }, key: `${probability} ${t}` });
    if (place.row > 30) pen.text(x, y + (narrow ? 13 : 24), `${narrow ? "" : "p = "}${scene.number(p, 2)}`, { size: 11, color: "soft", alpha: end });
  });
  const loss = scene.say("route.lossis", { loss: scene.number(store.value(outcome.loss, []), 4) });
  pen.text(width - 12, height - (narrow ? 32 : 36), loss, { size: narrow ? 12 : 15, bold: true, align: "right", color: "wrong", alpha: end, link: stepLink(link), w: 90, h: 18 });
  const back = scene.part("backward");
  const update = updates ? ease(scene.part("update")) : 0;
  const low = height - (narrow ? 24 : 28);
  if (back > 0) pen.line([width - 12, low, width - 12 - (width - place.left - 12) * back, low], { stroke: "gradient", stroke_width: 3, alpha: 0.8 });
  if (update <= 0) return;
  pen.area([place.left - 2, low, place.left + 10, low - 6, place.left + 10, low + 6], { color: "gradient", alpha: update });
  pen.text(place.left + 2, height - 6, scene.say(narrow ? "route.short.moved" : "route.moved"), { size: narrow ? 11 : 12.5, color: "gradient", bold: true, alpha: update });
}

/**
 * The end of a round: the candidates of the last position, the one that is drawn, the text so far.
 * @param {Pen} pen
 * @param {Scene} scene
 * @param {Stations} pass
 * @param {Layout} place
 * @param {number} end
 */
function drawChoice(pen, scene, { outcome, names, before, text, end: link }, place, end) {
  const { store, width, height, narrow } = scene;
  const x = width - place.right + (narrow ? 0 : 14);
  const chosen = store.value(outcome.choice, []);
  const size = narrow ? 11 : 12;
  const fits = Math.max(1, Math.floor((height - place.top - 60) / 26));
  const shown = names.length <= fits ? names.length : fits;
  const step = Math.min(36, (height - place.top - 60) / shown);
  names.slice(0, shown).forEach((name, c) => {
    const y = place.top + c * step;
    const p = store.value(outcome.probabilities, [c]);
    const color = c === chosen ? "accent" : "soft";
    pen.bar(x, y + 12, Math.max(1, (place.right - (narrow ? 6 : 30)) * p * end), 8, { color, alpha: end, place: { array: outcome.probabilities, index: [c] }, key: `candidate ${c}` });
    pen.text(x, y + 8, narrow ? bare(name) : `${bare(name)} ${scene.number(p, 4)}`, { size, mono: true, bold: c === chosen, alpha: end, color: c === chosen ? "accent" : "ink" });
  });
  pen.text(12, height - 10, end > 0.5 ? text : before, { size: narrow ? 15 : 20, serif: true, bold: true });
  if (end <= 0) return;
  const goal = Math.min(place.top + (place.rows + 0.5) * place.row, height - 46);
  const go = Math.max(0, end * 2 - 1);
  const name = bare(names[chosen]);
  const w = Math.max(26, widthOf(name, { size: 13, mono: true }) + 12);
  const [fromX, fromY] = [x, place.top + Math.min(chosen, shown - 1) * step + 4];
  pen.bar(fromX + (place.left - 10 - w - fromX) * go, fromY + (goal - fromY) * go - 11, w, 22,
    { color: "glow", stroke: "accent", radius: 6, text: name, size, mono: true, align: "center", alpha: end * 0.6 + 0.4 * go, key: `token ${place.rows}`, link: stepLink(link) });
}

/** @param {string} step */
function stepLink(step) {
  return `#step=${encodeURIComponent(step)}`;
}
