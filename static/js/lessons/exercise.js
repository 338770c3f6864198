// An exercise of a lesson: what is chosen or typed is answered at once, a wrong answer with what is wrong about it.

import { all, first } from "dom";
import { mark } from "lessons/marks";
import { typed } from "lessons/tool";

/** @param {Words} words */
export function exercises(words) {
  for (const box of all(document, "[data-exercise]")) {
    const form = box.querySelector("form");
    if (form) number(box, form, words);
    else choices(box, words);
  }
}

/**
 * @param {HTMLElement} box
 * @param {boolean | null} isRight null: no answer yet
 * @param {string} text
 */
function verdict(box, isRight, text) {
  const line = first(box, ".verdict");
  line.textContent = text;
  line.className = `verdict ${isRight === null ? "" : isRight ? "ok" : "wrong"}`;
  if (isRight) mark("right", box.dataset.exercise ?? "");
}

/** @param {HTMLElement} box @param {Words} words */
function choices(box, words) {
  for (const button of all(box, ".choices button")) {
    button.addEventListener("click", () => {
      const isRight = button.dataset.right === "true";
      for (const other of all(box, ".choices li")) {
        const isThis = other.contains(button);
        first(other, ".why").hidden = !isThis;
        first(other, "button").setAttribute("aria-pressed", String(isThis));
      }
      verdict(box, isRight, words[isRight ? "lesson.right" : "lesson.not_so"]);
    });
  }
}

/** @param {HTMLElement} box @param {HTMLFormElement} form @param {Words} words */
function number(box, form, words) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const value = typed(first(form, "input").matches("input") ? /** @type {HTMLInputElement} */ (first(form, "input")).value : "");
    const whys = all(box, ":scope > .why");
    for (const why of whys) why.hidden = true;
    if (value === null) {
      verdict(box, null, words["lesson.no_number"]);
      return;
    }
    const met = whys.find(({ dataset }) => Math.abs(value - Number(dataset.value)) <= Number(dataset.near) + 1e-9 * Math.abs(value));
    const isRight = met?.dataset.right === "true";
    verdict(box, isRight, words[isRight ? "lesson.right" : "lesson.not_so"]);
    if (met) met.hidden = false;
  });
}
