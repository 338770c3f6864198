// What a page with pictures starts with: a route's player, the two routes of the home page, steps within a page, or
// what moves on the page of experiments.

import { byId } from "dom";
import { asked, embed, follow } from "embed";
import { showAsked, startExperiments } from "experiments";
import { startHome } from "home";
import { Player } from "player";
import { Store } from "store";

/** @type {PageData} */
const page = JSON.parse(byId("page", HTMLScriptElement).text);
if (page.route) {
  const store = await Store.open(page.route, page.root);
  window.twoRoutes.start(() => {
    new Player(store, page.words, page.tour).start(); // once boot.js has put the texts back
    if (asked("embed")) embed();
    document.documentElement.classList.toggle("presenting", asked("present"));
  });
} else if (page.experiments) {
  window.twoRoutes.start(() => {
    startExperiments();
    showAsked();
    if (asked("embed")) embed();
  });
} else {
  window.twoRoutes.start(() => {
    follow();
    startHome(page.words, page.root);
  });
}
