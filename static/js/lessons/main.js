// What a lesson starts with: its tools, its exercises, and what was read.

import { all, byId } from "dom";
import { follow } from "embed";
import { exercises } from "lessons/exercise";
import { pictures } from "lessons/glossary";
import { marks } from "lessons/marks";
import { search } from "lessons/search";
import { TOOLS } from "toolbox";

/** @type {PageData} */
const page = JSON.parse(byId("page", HTMLScriptElement).text);
window.twoRoutes.start(() => {
  follow();
  exercises(page.words);
  marks(page.words);
  pictures();
  search(page.words);
  for (const place of all(document, "[data-tool]")) {
    const { tool = "", start = "{}" } = place.dataset;
    TOOLS[tool]?.mount(place, JSON.parse(start), { say: (key) => page.words[`tool.${tool}.${key}`] ?? key, kinds: page.kinds ?? {} });
  }
});
