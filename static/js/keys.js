// The keys of a route's page.

import { around, byId } from "dom";
import { asked } from "embed";
import { togglesPlay } from "autoplay";
import { oncePerFrame } from "later";

/** @type {Record<string, number>} */
const STEPS = { ArrowRight: 1, n: 1, ArrowLeft: -1, b: -1 };
/** @type {Record<string, number>} */
const CHAPTERS = { "]": 1, "[": -1 };

/** @param {import("player").Player} player */
export function wireKeys(player) {
  const help = byId("help", HTMLDialogElement);
  byId("help-open", HTMLButtonElement).addEventListener("click", () => help.showModal());
  byId("present", HTMLButtonElement).addEventListener("click", () => present(!isPresenting()));
  const move = heldMove(player);
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || around(event, "input, select, dialog")) return;
    const { key } = event;
    if (key === "p" || key === "P" || (key === "Escape" && isPresenting())) present(key !== "Escape" && !isPresenting());
    else if (key === "t") player.trail.toggle();
    else if (key === "," || key === ".") player.trail.walk(key === "," ? -1 : 1);
    else if (key === "Escape" && player.opened.shown) player.closeNumber();
    else if (key === "Escape" && player.distances.go(1)) event.preventDefault();
    else if (key === "Enter" && !around(event, "a, button, summary, table, canvas") && player.distances.go(-1)) event.preventDefault();
    else if (key === "?") help.showModal();
    else if (togglesPlay(event)) {
      player.autoplay.toggle();
      event.preventDefault();
    } else if (goes(key, event.repeat, player, move)) event.preventDefault();
  });
}

function isPresenting() {
  return document.documentElement.classList.contains("presenting");
}

/**
 * For a class: picture, title and sentence alone, larger.
 * @param {boolean} on
 */
function present(on) {
  document.documentElement.classList.toggle("presenting", on);
  if (!on && asked("present")) history.replaceState(null, "", location.hash.replace(/&present\b(=[^&]*)?/, ""));
}

/**
 * Follow a key that leads to another step; false when it does not.
 * @param {string} key
 * @param {boolean} repeated
 * @param {import("player").Player} player
 * @param {(by: number) => void} move
 */
function goes(key, repeated, player, move) {
  const by = STEPS[key];
  if (by && repeated) move(by);
  else if (by) player.walk(by);
  else if (key === "Home") player.navigate(player.line.at(0));
  else if (key === "End") player.navigate(player.line.at(player.line.stops.length - 1));
  else if (CHAPTERS[key]) player.navigate(player.chapterStart(CHAPTERS[key]));
  else return false;
  return true;
}

/**
 * Repeats of a held key must not queue up: all that came since the last frame are one move.
 * @param {import("player").Player} player
 */
function heldMove(player) {
  let pending = 0;
  const go = oncePerFrame(() => {
    const by = pending;
    pending = 0;
    player.walk(by, { held: true });
  });
  return (/** @type {number} */ by) => {
    pending += by;
    go();
  };
}
