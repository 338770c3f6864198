// What opens beside the picture: words, formula, tables, the opened number. It stays as the reader left it.

import { all, byId } from "dom";
import { keep, kept } from "kept";

const NAME = "panel"; // in what is kept
const OF_A_NUMBER = ["number", "code"]; // tabs that show one number: it has to be open

export class Panel {
  /** @param {(tab: string) => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.element = byId("ledger", HTMLElement);
    this.opener = byId("panel-open", HTMLButtonElement);
    this.buttons = all(this.element, "[data-tab]");
    this.tab = "";
    this.before = kept(NAME) ?? (innerWidth >= 1440 ? "words" : ""); // the tab that was open before a number was
    for (const button of this.buttons) button.addEventListener("click", () => this.choose(button.dataset.tab ?? ""));
    this.opener.addEventListener("click", () => this.choose(this.tab ? "" : this.last || "words"));
    this.last = this.before;
    this.show(this.before);
  }

  /** Whether tables are in view, so that they have to be drawn. */
  get hasTables() {
    return this.tab === "tables";
  }

  get isOfNumber() {
    return OF_A_NUMBER.includes(this.tab);
  }

  /**
   * The reader's choice, which is kept.
   * @param {string} tab
   */
  choose(tab) {
    this.show(tab);
    this.before = this.isOfNumber ? this.before : tab;
    keep(NAME, this.before);
  }

  /** @param {string} tab */
  show(tab) {
    if (tab === this.tab && this.element.hidden === !tab) return;
    this.tab = tab;
    if (tab && !this.isOfNumber) this.last = tab;
    this.element.hidden = !tab;
    document.documentElement.dataset.panel = tab;
    this.opener.setAttribute("aria-expanded", String(Boolean(tab)));
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.tab === tab));
    this.changed(tab);
  }

  /**
   * A number is opened or closed: it takes the panel, and gives it back; beside tables it stands over them.
   * @param {boolean} shown
   */
  number(shown) {
    if (shown && !this.hasTables && !this.isOfNumber) this.show("number");
    else if (!shown && this.isOfNumber) this.show(this.before);
  }
}
