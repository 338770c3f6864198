// What a step draws into its parts: a table for every array that it reads and makes, pictures, an exercise.

import { drawSeries } from "charts";
import { all, first, h } from "dom";
import { exercise } from "exercise";
import { playground } from "playground";
import { ArrayTable } from "table";

const SMALL = 1200; // operands of more numbers than this are folded until asked for

export class StepParts {
  /**
   * @param {HTMLElement} section
   * @param {import("player").Player} player
   * @param {import("step").Step} step
   */
  constructor(section, player, step) {
    this.section = section;
    this.player = player;
    this.step = step;
    /** @type {Map<string, ArrayTable[]>} */
    this.tables = new Map(); // array → its tables
    /** @type {import("charts").Series | null} */
    this.series = null;
    this.small = SMALL;
  }

  /** Tables for every array of the step: what is given, what each part reads, what it makes. */
  draw() {
    this.tables.clear();
    const parts = all(this.section, ".part").map((part) => ({ part, name: part.dataset.array ?? "" }));
    this.drawCharts(parts.map(({ name }) => name));
    for (const box of all(this.section, ".playground")) this.step.later.add(() => { playground(box, this.player); });
    this.small = SMALL * Math.min(1, 4 / parts.length); // a step with very many parts must not show thousands of numbers
    for (const { part, name } of parts) this.drawPart(part, name);
  }

  pause() {
    this.series?.pause();
  }

  stop() {
    this.series?.stop();
  }

  allTables() {
    return [...this.tables.values()].flat();
  }

  /** @param {string} array */
  tablesOf(array) {
    return this.tables.get(array) ?? [];
  }

  /**
   * @param {HTMLElement} part
   * @param {string} name
   */
  drawPart(part, name) {
    first(part, ".made .numbers").replaceWith(this.newTable(name));
    const box = part.querySelector(".operands");
    if (!box) return;
    box.replaceChildren(...this.operandTables(name));
    part.querySelector(".exercise")?.remove();
    part.append(this.exerciseFor(name));
  }

  /** @param {string[]} names */
  drawCharts(names) {
    this.series?.stop();
    this.series = null;
    const { player } = this;
    this.series = drawSeries(this.section, names, { ...this.tableContext(),
      opened: (array) => player.opened.indexIn(array), settled: (axis, i) => player.settled(axis, i) });
  }

  /**
   * A table that is drawn when the page is idle, unless it is in view first.
   * @param {string} name
   */
  newTable(name) {
    const table = new ArrayTable(name, this.tableContext());
    this.tables.set(name, [...this.tablesOf(name), table]);
    this.player.opened.markTable(table);
    table.keepRoom();
    this.step.later.add(() => table.showOnce());
    return table.element;
  }

  /** @param {string} name */
  operandTables(name) {
    const { store, words, home } = this.player;
    const operands = Object.values(store.operation(name)?.operands ?? {});
    return [...new Set(operands)].map((operand) => {
      const open = store.size(operand) <= this.small && !store.isDerived(operand);
      const step = home.get(operand);
      const details = h("details", { open }, h("summary", {}, h("code", {}, operand), ` ${store.shape(operand).join(" × ")}`),
        step ? h("p", { class: "soft" }, `${words.came_from} `, h("a", { href: `#step=${step}` }, this.player.title(step))) : null);
      const fillIn = () => { if (!details.querySelector(".numbers")) details.append(this.newTable(operand)); };
      if (open) fillIn();
      details.addEventListener("toggle", () => { if (details.open) fillIn(); });
      return details;
    });
  }

  /** @returns {import("table").TableContext} */
  tableContext() {
    const { player } = this;
    return {
      store: player.store, words: player.words, digits: player.digits, shared: this.series?.axis,
      choice: (axis) => player.choice.get(axis),
      choose: (axis, i) => player.choose(axis, i),
      open: (place) => player.open(place),
      later: (run) => this.step.later.add(run),
    };
  }

  /**
   * The number that an exercise asks for is hidden wherever it is shown.
   * @param {string} array
   */
  exerciseFor(array) {
    const { player } = this;
    return exercise(array, {
      store: player.store, words: player.words, shown: () => this.step.shown,
      hide: (index) => {
        player.lookAt({ array, index });
        for (const table of this.tablesOf(array)) table.keepSecret(index);
      },
      show: () => { for (const table of this.tablesOf(array)) table.keepSecret(null); },
      open: (place) => player.open(place),
    });
  }
}
