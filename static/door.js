// The door of the site: it opens in the reader's language, where the site has it; else the reader chooses.
{
  const links = [...document.querySelectorAll("a[hreflang]")].map((link) => /** @type {HTMLAnchorElement} */ (link));
  const primary = (/** @type {string} */ tag) => tag.toLowerCase().split("-")[0];
  const link = navigator.languages.map((tag) => links.find(({ hreflang }) => primary(hreflang) === primary(tag))).find(Boolean);
  if (link) location.replace(link.href);
}
