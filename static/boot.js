// Data arrives as classic scripts, because a page opened by double-click may not fetch files.
// Each calls twoRoutes.receive(name, content); whoever waits for that name gets it.
window.twoRoutes = {
  received: new Map(),
  waiting: new Map(),
  receive(name, content) {
    this.received.set(name, content);
    this.waiting.get(name)?.(content);
  },
};
// The page is laid out for scripts from the first: nothing moves when the player starts.
document.documentElement.classList.add("scripts");
