// What a lesson starts with: its tools, its exercises, and what was read.

import { all, byId } from "dom";
import { follow } from "embed";
import { exercises } from "lessons/exercise";
import { marks } from "lessons/marks";

/** @type {PageData} */
const page = JSON.parse(byId("page", HTMLScriptElement).text);
/** @type {Map<string, import("lessons/tool").Mount>} */
const tools = new Map();
for (const { dataset: { tool = "" } } of all(document, "[data-tool]")) tools.set(tool, (await import(`tools/${tool}`)).mount);
window.twoRoutes.start(() => {
  follow();
  exercises(page.words);
  marks(page.words);
  for (const place of all(document, "[data-tool]")) {
    const { tool = "", start = "{}" } = place.dataset;
    const prefix = `tool.${tool}.`;
    const words = Object.fromEntries(Object.entries(page.words).filter(([name]) => name.startsWith(prefix)).map(([name, word]) => [name.slice(prefix.length), word]));
    tools.get(tool)?.(place, JSON.parse(start), { words, kinds: page.kinds ?? {} });
  }
});
