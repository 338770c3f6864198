// Lines from the rows of a table that are looked up to where they go, in the gutter beside the boxes.

import { offset } from "arrange";
import { placementOf } from "boxes";
import { ease } from "scene";

const MOST = 8; // lines
const FIRST = 4; // px from the boxes to the first one
const NEXT = 2; // and to each further one

/**
 * @param {import("pen").Pen} pen
 * @param {import("arrange").Arrangement} arrangement
 * @param {import("scene").Scene} scene
 */
export function drawTaken(pen, { boxes, main, cell: [, ch] }, scene) {
  const { rows } = placementOf(scene);
  if (!rows || main.box.down === null || scene.narrow) return;
  for (const { box, x, y, width, rows: taken } of boxes) {
    if (box.down === null || !box.axes[box.down].lookup || x !== main.x || y === main.y) continue;
    const { at } = box.axes[box.down];
    const right = Math.max(x + width, main.x + main.width);
    main.rows.list.slice(0, MOST).forEach((row, n) => {
      const i = taken.list.indexOf(scene.computation?.evaluate(at, { ...scene.letters, [rows]: row }) ?? -1);
      if (i < 0) return;
      const [from, to] = [y + (offset(taken, i) + 0.5) * ch, main.y + (offset(main.rows, n) + 0.5) * ch];
      const turn = right + FIRST + NEXT * (n + 1);
      const isChosen = row === scene.letters[rows];
      pen.line([right + 1, from, turn, from, turn, to, right + 1, to],
        { stroke: isChosen ? "accent" : "soft", stroke_width: isChosen ? 2 : 1, alpha: ease(scene.part("read")) });
    });
  }
}
