// A canvas of the page: its size in CSS pixels, its colours, and shapes painted on it.

import { render, Theme } from "canvas";
import { h } from "dom";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

export class Surface {
  /**
   * @param {HTMLElement} host whose colours it takes
   * @param {() => void} resized is told when there is another room for it
   */
  constructor(host, resized) {
    this.host = host;
    this.canvas = h("canvas", { role: "img" });
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.theme = new Theme(host);
    this.width = this.height = 0;
    /** @type {import("pen").Shape[]} */
    this.painted = [];
    new ResizeObserver(() => { if (this.measure()) resized(); }).observe(this.canvas);
    dark.addEventListener("change", () => { this.theme = new Theme(host); this.paint(this.painted); });
  }

  /** Take the size that the layout gives; false when it is the one it has. */
  measure() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height || (width === this.width && height === this.height)) return false;
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    return true;
  }

  /** @param {import("pen").Shape[]} shapes */
  paint(shapes) {
    this.painted = shapes;
    this.context.clearRect(0, 0, this.width, this.height);
    render(this.context, shapes, this.theme);
  }
}
