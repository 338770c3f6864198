// The glossary: the picture of a term is there while it is open.

import { all, h } from "dom";

/** On the page of the glossary. */
export function pictures() {
  for (const place of all(document, ".glossary details")) place.addEventListener("toggle", () => {
    place.querySelector("iframe")?.remove(); // a picture is a whole page: those that are closed take no memory
    const link = place.querySelector("a");
    const title = place.querySelector("summary")?.textContent ?? "";
    if (link && place.hasAttribute("open")) place.append(h("iframe", { src: `${link.getAttribute("href")}&embed`, title, height: 520 }));
  });
}
