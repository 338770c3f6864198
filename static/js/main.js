// What a route's page starts with.

import { byId } from "dom";
import { Player } from "player";
import { Store } from "store";

/** @type {PageData} */
const page = JSON.parse(byId("page", HTMLScriptElement).text);
const store = await Store.open(page.route, page.root);
window.twoRoutes.start(() => new Player(store, page.words).start());
