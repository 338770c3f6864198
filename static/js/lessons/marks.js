// Which lessons were read to their end and how many exercises were answered, kept in this browser alone.

import { all, fill } from "dom";
import { keep, kept } from "kept";

const NAME = "course";

/** @typedef {{ read: string[], right: string[] }} Marks */

/** @returns {Marks} */
function marked() {
  try {
    const { read = [], right = [] } = JSON.parse(kept(NAME) ?? "{}");
    return { read: [...read].map(String), right: [...right].map(String) };
  } catch {
    return { read: [], right: [] }; // something else was kept there
  }
}

/** @param {"read" | "right"} what @param {string} name */
export function mark(what, name) {
  const marks = marked();
  if (!marks[what].includes(name)) keep(NAME, JSON.stringify({ ...marks, [what]: [...marks[what], name] }));
}

/** On a lesson, notice its end; on the course, show what was noticed. @param {Words} words */
export function marks(words) {
  for (const end of all(document, "[data-end]")) {
    new IntersectionObserver(([{ isIntersecting }]) => { if (isIntersecting) mark("read", end.dataset.end ?? ""); }).observe(end);
  }
  const forget = document.getElementById("forget");
  show(words);
  if (!forget) return;
  forget.hidden = false;
  forget.addEventListener("click", () => {
    keep(NAME, "{}");
    show(words);
  });
}

/** @param {Words} words */
function show(words) {
  const { read, right } = marked();
  for (const lesson of all(document, "[data-lesson]")) {
    const name = lesson.dataset.lesson ?? "";
    lesson.classList.toggle("was-read", read.includes(name));
    const told = lesson.querySelector(".kept");
    if (!(told instanceof HTMLElement)) continue;
    const total = Number(told.dataset.exercises);
    const answered = right.filter((one) => one.startsWith(`${name}-`)).length;
    const parts = [...(read.includes(name) ? [words["lesson.read"]] : []), ...(answered ? [fill(words["lesson.answered"], { right: answered, total })] : [])];
    told.textContent = parts.length ? ` · ${parts.join(" · ")}` : "";
  }
}
