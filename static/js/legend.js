// What the colours of a placed picture mean, what is folded, and that numbers are rounded: one line below it.

import { foldsIn } from "box-labels";
import { widthOf } from "pen";

export const LEGEND = 20; // px
const STRENGTHS = [-1, -0.5, 0, 0.5, 1];

/**
 * @param {import("pen").Pen} pen
 * @param {import("arrange").Placed[]} boxes
 * @param {import("scene").Scene} scene
 */
export function drawLegend(pen, boxes, scene) {
  const style = { size: 11, color: /** @type {const} */ ("soft") };
  const y = scene.height - 6;
  const room = scene.width - (scene.narrow ? 12 : 40);
  const parts = scene.once("folds", () => foldsIn(boxes, scene));
  const [low, high] = [scene.say("legend.low"), scene.say("legend.high")];
  const scale = widthOf(low, style) + widthOf(high, style) + STRENGTHS.length * 12 + 12;
  let x = scene.narrow ? 6 : 20;
  if (!scene.narrow || !parts.length) {
    pen.text(x, y, low, style);
    x += widthOf(low, style) + 6;
    for (const strength of STRENGTHS) { pen.add({ kind: "cell", x, y: y - 9, w: 11, h: 10, strength, radius: 2 }); x += 12; }
    pen.text(x + 5, y, high, style);
    x += 5 + widthOf(high, style);
  }
  const left = room - (x > scale ? scale : 0) - 20;
  const said = [...parts, scene.say("legend.rounded")];
  while (said.length > 1 && widthOf(said.join(" · "), style) > left) said.pop();
  const text = said.join(" · ");
  if (widthOf(text, style) <= left) pen.text(scene.width - (scene.narrow ? 6 : 20), y, text, { ...style, align: "right" });
}
