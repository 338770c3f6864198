// What a page with pictures starts with: a route's player, or the two routes of the home page.

import { byId } from "dom";
import { startHome } from "home";
import { Player } from "player";
import { Store } from "store";

/** @type {PageData} */
const page = JSON.parse(byId("page", HTMLScriptElement).text);
if (page.route) {
  const store = await Store.open(page.route, page.root);
  window.twoRoutes.start(() => new Player(store, page.words, page.tour).start());
} else {
  window.twoRoutes.start(() => { startHome(page.words, page.root); });
}
