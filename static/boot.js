// Data arrives as classic scripts, because a page opened by double-click may not fetch files.
// Each calls twoRoutes.receive(name, content); whoever waits for that name gets it.
//
// The page is laid out for scripts from the first, so that nothing moves when the player starts. When it cannot
// start, the page says why, and shows all its text, as without scripts.
{
  const root = document.documentElement;
  const PATIENCE = 10000; // ms after the page is read; what comes later still starts
  let started = false;
  let timer = 0;
  /** @type {[Element, Element][] | null} */
  let steps = null; // when they are shown as text: [section, its text]
  /** @type {{ kind: string, detail: string } | null} */
  let why = null; // the first thing that went wrong: what the notice tells, and a detail

  const note = (/** @type {string} */ kind, detail = "") => { why ??= { kind, detail }; };
  const unknown = () => (HTMLScriptElement.supports?.("importmap") ? "failed" : "old");

  /** All steps as text, with a sentence on what went wrong. */
  const showText = () => {
    if (started || steps) return;
    steps = [...document.querySelectorAll("section.step > noscript")].map((text) => [/** @type {Element} */ (text.parentElement), text]);
    for (const [section, text] of steps) {
      const template = document.createElement("template");
      template.innerHTML = text.textContent;
      section.replaceChildren(template.content);
    }
    root.classList.remove("scripts");
    const { kind, detail } = why ?? { kind: unknown(), detail: "" };
    const notice = document.getElementById("not-started");
    if (notice) notice.textContent = (notice.dataset[kind] ?? "").replace("{what}", detail);
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  };

  const showPlayer = () => {
    for (const [section, text] of steps ?? []) section.replaceChildren(text);
    steps = null;
    root.classList.add("scripts");
  };

  window.twoRoutes = {
    received: new Map(),
    waiting: new Map(),
    receive(name, content) {
      this.received.set(name, content);
      this.waiting.get(name)?.(content);
    },

    /** Put the import map on the page: modules are [name, URL]. The policy knows the hash of this very text, and ends with theirs. */
    map(modules) {
      const policy = document.querySelector("meta[http-equiv]")?.getAttribute("content") ?? "";
      const hashes = [...policy.matchAll(/'(sha256-[^']+)'/g)].slice(-modules.length);
      const map = document.createElement("script");
      map.type = "importmap";
      map.textContent = JSON.stringify({
        imports: Object.fromEntries(modules.map(([name, url]) => [name, url])),
        integrity: Object.fromEntries(modules.map(([, url], i) => [url, hashes[i]?.[1] ?? ""])),
      });
      document.head.append(map);
    },

    /** Start the player. */
    start(run) {
      showPlayer();
      run();
      started = true;
      clearTimeout(timer);
    },
  };

  // On every page "/" leads to the search, unless something is typed, asked or shown within another page.
  addEventListener("keydown", (event) => {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    if (key !== "/" || altKey || ctrlKey || metaKey || root.classList.contains("embedded")) return;
    if (target instanceof Element && target.closest("input, select, textarea, dialog")) return;
    const link = document.querySelector('.top a[href="search.html"]:not([aria-current])');
    if (!(link instanceof HTMLElement)) return;
    event.preventDefault(); // some browsers look for text in the page
    link.click();
  });

  addEventListener("securitypolicyviolation", ({ blockedURI, effectiveDirective }) => {
    // The page's own policy lets its modules pass by their hashes, which old browsers do not find in an import map.
    if (effectiveDirective.startsWith("script-src")) note(blockedURI.startsWith("data") ? "old" : "blocked");
  });
  addEventListener("error", ({ target, message }) => {
    if (target instanceof HTMLScriptElement) note("missing", target.getAttribute("src")?.replace(/^(\.\.\/)+/, ""));
    else if (message) note(unknown(), message);
  }, true);
  addEventListener("unhandledrejection", ({ reason }) => note("failed", reason?.message ?? String(reason)));
  addEventListener("load", () => setTimeout(showText));
  document.addEventListener("readystatechange", () => { timer = setTimeout(showText, PATIENCE); }, { once: true }); // all is read
  root.classList.add("scripts");
}
