// One step within another page: the picture with its title and sentence; the page around is told how high it is.

/** Whether the address asks for it: `&embed` for another page, `&present` for a projector. */
export function asked(/** @type {string} */ what) {
  return new URLSearchParams(location.hash.slice(1)).has(what);
}

/** Show the step alone, and tell the parent its height whenever that changes. */
export function embed() {
  document.documentElement.classList.add("embedded");
  const tell = () => parent.postMessage({ twoRoutes: { height: document.documentElement.scrollHeight } }, "*");
  new ResizeObserver(tell).observe(document.body);
  tell();
}

/** On a page that embeds steps: each frame gets the height that its step tells. */
export function follow() {
  addEventListener("message", ({ data, source }) => {
    const height = Number(data?.twoRoutes?.height);
    if (!(height > 0)) return;
    for (const frame of document.querySelectorAll("iframe")) if (frame.contentWindow === source) frame.height = String(Math.min(height, 2000));
  });
}
