// What a picture is made of: a list of shapes, written by a drawing. A shape with a key is the same thing wherever it
// stands, so that it can travel from one picture to the next.

import { compact } from "format";

/**
 * Colours by what they mean; static/css/stage.css says what they look like.
 * @typedef {"ink" | "soft" | "line" | "accent" | "warm" | "cool" | "paper" | "cell" | "query" | "key" | "value" | "weight" | "gradient" | "glow" | "tint" | "ok" | "wrong"} Color
 *
 * @typedef {object} Shape
 * @property {"cell" | "text" | "line" | "dot" | "area"} kind
 * @property {number} x
 * @property {number} y
 * @property {number} w
 * @property {number} h
 * @property {number} alpha
 * @property {string} [key]
 * @property {Place} [place] the number that it shows
 * @property {string} [link] the address that it leads to
 * @property {Color} [color]
 * @property {Color} [stroke]
 * @property {number} [stroke_width]
 * @property {number} [strength] of warm (above 0) or cool, from −1 to 1; NaN: masked
 * @property {string} [text]
 * @property {number} [size] of the text
 * @property {"left" | "center" | "right"} [align]
 * @property {boolean} [bold]
 * @property {boolean} [mono]
 * @property {boolean} [serif]
 * @property {number} [radius]
 * @property {boolean} [frame] its line alone
 * @property {number[]} [points] x, y, x, y …
 * @property {number[]} [dash]
 */

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;
/** @type {Map<string, number>} */
const widths = new Map();
/** @type {Record<string, string>} */
export const FACES = { sans: "sans-serif", mono: "monospace", serif: "serif" };

/** @param {Pick<Shape, "size" | "bold" | "mono" | "serif">} style */
export function fontOf({ size = 12, bold, mono, serif }) {
  return `${bold ? "600 " : ""}${size}px ${FACES[mono ? "mono" : serif ? "serif" : "sans"]}`;
}

/**
 * The width of a text, px.
 * @param {string} text
 * @param {Pick<Shape, "size" | "bold" | "mono" | "serif">} [style]
 */
export function widthOf(text, style = {}) {
  const font = fontOf(style);
  const key = `${font} ${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text.length * 7;
  ruler.font = font;
  const width = ruler.measureText(text).width;
  if (widths.size > 20000) widths.clear();
  widths.set(key, width);
  return width;
}

/**
 * How strongly a value is coloured: small ones are still seen.
 * @param {number} value
 * @param {number} largest
 */
function strengthOf(value, largest) {
  if (!Number.isFinite(value)) return NaN;
  return largest ? Math.sign(value) * Math.min(1, Math.abs(value) / largest) ** 0.6 : 0;
}

/** Writes shapes. `alpha` holds for all that is written until it is changed. */
export class Pen {
  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.alpha = 1;
    /** @type {Shape[]} */
    this.shapes = [];
  }

  /** @param {Omit<Shape, "alpha"> & { alpha?: number }} shape */
  add(shape) {
    const alpha = this.alpha * (shape.alpha ?? 1);
    if (alpha > 0.004) this.shapes.push({ ...shape, alpha });
  }

  /**
   * A cell with a number, which is written where there is room for `digits`.
   * @param {number} x
   * @param {number} y
   * @param {number} w
   * @param {number} h
   * @param {number} value
   * @param {{ largest: number, digits?: number, dtype?: string, key?: string, place?: Place, lit?: boolean, bold?: boolean, size?: number, alpha?: number, stroke?: Color, text?: string }} how
   */
  cell(x, y, w, h, value, { largest, digits = 0, dtype, key, place, lit = false, bold = lit, size = 11, alpha, stroke, text }) {
    const gap = w < 5 || h < 5 ? 0.2 : w < 12 || h < 12 ? 0.5 : 1;
    this.add({ kind: "cell", x: x + gap, y: y + gap, w: w - 2 * gap, h: h - 2 * gap, strength: dtype === "int64" ? 0 : strengthOf(value, largest),
      text: text ?? (digits ? compact(value, digits, dtype) : undefined), size, bold, mono: true, align: "center",
      radius: w < 12 ? 1 : 3, key, place, alpha, stroke: lit ? stroke ?? "accent" : stroke, stroke_width: lit ? 2 : 1 });
  }

  /**
   * @param {number} x
   * @param {number} y the line that letters stand on
   * @param {string} text
   * @param {Partial<Shape>} style
   */
  text(x, y, text, style = {}) {
    this.add({ kind: "text", x, y, w: 0, h: 0, text, size: 12, color: "ink", align: "left", ...style });
  }

  /**
   * A line through points x, y, x, y …
   * @param {number[]} points
   * @param {Partial<Shape>} style
   */
  line(points, style = {}) {
    this.add({ kind: "line", x: points[0], y: points[1], w: 0, h: 0, points, stroke: "line", stroke_width: 1.5, ...style });
  }

  /**
   * A filled shape through points x, y, x, y …
   * @param {number[]} points
   * @param {Partial<Shape>} style
   */
  area(points, style = {}) {
    this.add({ kind: "area", x: points[0], y: points[1], w: 0, h: 0, points, color: "tint", ...style });
  }

  /**
   * @param {number} x its middle
   * @param {number} y
   * @param {number} radius
   * @param {Partial<Shape>} style
   */
  dot(x, y, radius, style = {}) {
    this.add({ kind: "dot", x, y, w: radius, h: radius, color: "accent", ...style });
  }

  /**
   * A rectangle of one colour, such as a bar; negative lengths go the other way.
   * @param {number} x
   * @param {number} y
   * @param {number} w
   * @param {number} h
   * @param {Partial<Shape>} style
   */
  bar(x, y, w, h, style = {}) {
    this.add({ kind: "cell", x: w < 0 ? x + w : x, y: h < 0 ? y + h : y, w: Math.abs(w), h: Math.abs(h), radius: 2, color: "accent", ...style });
  }

  /**
   * Text as wide as there is room for, in lines; how many there are.
   * @param {number} x
   * @param {number} y
   * @param {string} text
   * @param {number} width
   * @param {Partial<Shape>} style
   */
  lines(x, y, text, width, style = {}) {
    const rows = wrap(text, width, style);
    rows.forEach((row, i) => this.text(x, y + i * (style.size ?? 12) * 1.4, row, style));
    return rows.length;
  }
}

/**
 * Break a text into lines: between words, and between Chinese characters.
 * @param {string} text
 * @param {number} width
 * @param {Partial<Shape>} style
 */
export function wrap(text, width, style = {}) {
  /** @type {string[]} */
  const rows = [];
  let row = "";
  for (const piece of text.match(/[\u2e80-\uffef][，。；：、）」]*|[^\s\u2e80-\uffef]+\s*|\s+/g) ?? []) {
    if (row && widthOf((row + piece).trimEnd(), style) > width) { rows.push(row.trimEnd()); row = ""; }
    row += piece;
  }
  if (row.trim()) rows.push(row.trimEnd());
  return rows;
}
