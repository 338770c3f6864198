// A finger that goes sideways over the picture goes to the step before or after.

const FAR = 60; // px
const EDGE = 28; // px: what begins there belongs to the browser

/**
 * @param {HTMLElement} element
 * @param {(by: number) => void} walk
 */
export function swipes(element, walk) {
  let x = 0;
  let y = 0;
  element.addEventListener("touchstart", (event) => {
    const [touch] = event.touches;
    x = event.touches.length === 1 && touch.clientX > EDGE && touch.clientX < innerWidth - EDGE ? touch.clientX : NaN;
    y = touch.clientY;
  }, { passive: true });
  element.addEventListener("touchend", (event) => {
    const [touch] = event.changedTouches;
    const [dx, dy] = [touch.clientX - x, touch.clientY - y];
    if (Math.abs(dx) > FAR && Math.abs(dx) > 2 * Math.abs(dy)) walk(dx < 0 ? 1 : -1);
  }, { passive: true });
}
