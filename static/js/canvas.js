// A list of shapes on a canvas: drawn, found under a pointer, and between two lists.

import { FACES, fontOf } from "pen";

/** @typedef {import("pen").Shape} Shape @typedef {import("pen").Color} Color */

const STEPS = 48; // of strength
const ROUND = 13; // px: smaller cells have no rounded corners and no line round them, which thousands of them would pay for
let lastFont = ""; // a font that is set again is read again
const FADE = 0.62; // the strongest colour of a cell: its number must stay readable

/** The colours of the page as it is shown now. */
export class Theme {
  /** @param {Element} element */
  constructor(element) {
    const style = getComputedStyle(element);
    this.style = style;
    /** @type {Map<string, string>} */
    this.known = new Map();
    for (const face of Object.keys(FACES)) FACES[face] = style.getPropertyValue(`--${face}`).trim() || FACES[face];
    this.cells = this.palette();
  }

  /** @param {Color} name */
  color(name) {
    const known = this.known.get(name) ?? this.style.getPropertyValue(`--picture-${name}`).trim();
    this.known.set(name, known);
    return known;
  }

  /** Cool to warm, through the paper of a cell. */
  palette() {
    const [cell, warm, cool] = /** @type {Color[]} */ (["cell", "warm", "cool"]).map((name) => rgb(this.color(name)));
    const inks = [this.color("ink"), this.color("paper")];
    return Array.from({ length: 2 * STEPS + 1 }, (_, i) => {
      const part = Math.abs(i - STEPS) / STEPS * FADE;
      const mixed = cell.map((c, k) => Math.round(c + ((i < STEPS ? cool : warm)[k] - c) * part));
      const ink = contrast(mixed, rgb(inks[0])) >= contrast(mixed, rgb(inks[1])) ? inks[0] : inks[1];
      return { fill: `rgb(${mixed})`, ink };
    });
  }

  /** @param {number} strength */
  cell(strength) {
    return this.cells[Math.round(strength * STEPS) + STEPS];
  }
}

/** @param {string} color "#rrggbb" or "#rgb" */
function rgb(color) {
  const hex = color.length === 4 ? [...color.slice(1)].map((c) => c + c).join("") : color.slice(1);
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/**
 * WCAG 2.2, relative luminance and contrast ratio.
 * @param {number[]} a
 * @param {number[]} b
 */
function contrast(a, b) {
  const light = (/** @type {number[]} */ color) => {
    const [r, g, blue] = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * blue;
  };
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Shape[]} shapes
 * @param {Theme} theme
 */
export function render(context, shapes, theme) {
  context.textBaseline = "alphabetic";
  lastFont = "";
  for (const shape of shapes) {
    context.globalAlpha = shape.alpha;
    if (shape.kind === "cell") drawCell(context, shape, theme);
    else if (shape.kind === "text") drawText(context, shape, shape.x, shape.y, theme.color(shape.color ?? "ink"));
    else if (shape.kind === "dot") drawDot(context, shape, theme);
    else drawPath(context, shape, theme);
  }
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Shape} shape
 * @param {Theme} theme
 */
function drawCell(context, shape, theme) {
  const { x, y, w, h, strength, radius = 3 } = shape;
  if (w <= 0 || h <= 0) return;
  const masked = strength !== undefined && Number.isNaN(strength);
  const colors = strength === undefined || masked ? null : theme.cell(strength);
  context.fillStyle = colors ? colors.fill : theme.color(masked ? "tint" : shape.color ?? "cell");
  if (shape.frame) context.fillStyle = "transparent";
  const isSmall = w < ROUND || h < ROUND;
  if (isSmall) context.fillRect(x, y, w, h);
  else {
    context.beginPath();
    context.roundRect(x, y, w, h, Math.min(radius, w / 2, h / 2));
    context.fill();
  }
  if (shape.stroke || (colors && !isSmall)) {
    context.strokeStyle = theme.color(shape.stroke ?? "line");
    context.lineWidth = shape.stroke ? shape.stroke_width ?? 1 : 0.6;
    context.beginPath();
    context.roundRect(x, y, w, h, Math.min(radius, w / 2, h / 2));
    context.stroke();
  }
  if (shape.text) drawText(context, shape, x + w / 2, y + h / 2 + (shape.size ?? 11) * 0.36, colors ? colors.ink : theme.color("ink"));
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Shape} shape
 * @param {number} x
 * @param {number} y
 * @param {string} color
 */
function drawText(context, shape, x, y, color) {
  const font = fontOf(shape);
  if (font !== lastFont) { context.font = font; lastFont = font; }
  context.textAlign = shape.align ?? "left";
  context.fillStyle = color;
  context.fillText(shape.text ?? "", x, y);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Shape} shape
 * @param {Theme} theme
 */
function drawDot(context, { x, y, w, strength, color, stroke }, theme) {
  context.beginPath();
  context.arc(x, y, Math.max(w, 0), 0, 2 * Math.PI);
  context.fillStyle = strength === undefined ? theme.color(color ?? "accent") : theme.color(strength < 0 ? "cool" : "warm");
  context.fill();
  if (!stroke) return;
  context.strokeStyle = theme.color(stroke);
  context.lineWidth = 1.2;
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Shape} shape
 * @param {Theme} theme
 */
function drawPath(context, { kind, points = [], color, stroke, stroke_width: width, dash }, theme) {
  context.beginPath();
  for (let i = 0; i < points.length; i += 2) context.lineTo(points[i], points[i + 1]);
  if (kind === "area") {
    context.closePath();
    context.fillStyle = theme.color(color ?? "tint");
    context.fill();
    if (!stroke) return;
  }
  context.strokeStyle = theme.color(stroke ?? "line");
  context.lineWidth = width ?? 1.5;
  context.setLineDash(dash ?? []);
  context.stroke();
  context.setLineDash([]);
}

/**
 * The shapes between two lists: what has the same key travels, the rest fades.
 * @param {Shape[]} from
 * @param {Shape[]} to
 * @param {number} part of the way, from 0 to 1
 */
export function between(from, to, part) {
  if (part >= 1) return to;
  const old = keyed(from);
  const fresh = keyed(to);
  const leaving = from.filter((shape) => !shape.key || !fresh.has(shape.key))
    .map((shape) => ({ ...shape, alpha: shape.alpha * Math.max(0, 1 - 2.5 * part) }));
  const coming = to.map((shape) => {
    const was = shape.key ? old.get(shape.key) : undefined;
    if (!was) return { ...shape, alpha: shape.alpha * part };
    const mix = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * part;
    return { ...shape, x: mix(was.x, shape.x), y: mix(was.y, shape.y), w: mix(was.w, shape.w), h: mix(was.h, shape.h), alpha: mix(was.alpha, shape.alpha) };
  });
  return [...leaving, ...coming];
}

/** @param {Shape[]} shapes */
function keyed(shapes) {
  /** @type {Map<string, Shape>} */
  const known = new Map();
  for (const shape of shapes) if (shape.key) known.set(shape.key, shape);
  return known;
}

/**
 * The number or the way on under a point: the last one drawn there, else the next one within `reach` px.
 * @param {Shape[]} shapes
 * @param {number} x
 * @param {number} y
 */
export function find(shapes, x, y, reach = 0) {
  let best = null;
  let least = reach + 0.001;
  for (const shape of shapes) {
    if (!shape.place && !shape.link) continue;
    const round = shape.kind === "dot";
    const [left, top, w, h] = shape.kind === "text" ? [shape.x - (shape.align === "right" ? shape.w : 0), shape.y - shape.h, shape.w, shape.h + 4] : round ? [shape.x - shape.w, shape.y - shape.w, 2 * shape.w, 2 * shape.w] : [shape.x, shape.y, shape.w, shape.h];
    const distance = Math.hypot(Math.max(left - x, 0, x - left - w), Math.max(top - y, 0, y - top - h));
    if (distance <= least) { least = distance; best = shape; }
  }
  return best;
}
