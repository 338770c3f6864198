// What opens beside the picture: words, formula, tables, the opened number. It stays as the reader left it.

import { all, byId } from "dom";

const KEPT = "two-routes.panel";

export class Panel {
  /** @param {(tab: string) => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.element = byId("ledger", HTMLElement);
    this.opener = byId("panel-open", HTMLButtonElement);
    this.buttons = all(this.element, "[data-tab]");
    this.tab = "";
    this.before = kept(); // the tab that was open before a number was
    for (const button of this.buttons) button.addEventListener("click", () => this.choose(button.dataset.tab ?? ""));
    this.opener.addEventListener("click", () => this.choose(this.tab ? "" : this.last || "words"));
    this.last = this.before;
    this.show(this.before);
  }

  /** Whether tables are in view, so that they have to be drawn. */
  get hasTables() {
    return this.tab === "tables";
  }

  /**
   * The reader's choice, which is kept.
   * @param {string} tab
   */
  choose(tab) {
    this.show(tab);
    this.before = tab === "number" ? this.before : tab;
    keep(this.before);
  }

  /** @param {string} tab */
  show(tab) {
    if (tab === this.tab && this.element.hidden === !tab) return;
    this.tab = tab;
    if (tab) this.last = tab;
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
    if (shown && !this.hasTables) this.show("number");
    else if (this.tab === "number") this.show(this.before);
  }
}

function kept() {
  try {
    return localStorage.getItem(KEPT) ?? (innerWidth >= 1440 ? "words" : "");
  } catch {
    return "";
  }
}

/** @param {string} tab */
function keep(tab) {
  try {
    localStorage.setItem(KEPT, tab);
  } catch {
    // A browser that keeps nothing opens the page as it is.
  }
}
