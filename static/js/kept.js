// What this browser alone keeps of a reader's choices. One that keeps nothing shows every page as it is at first.

/**
 * @param {string} name
 * @returns {string | null}
 */
export function kept(name) {
  try {
    return localStorage.getItem(`two-routes.${name}`);
  } catch {
    return null;
  }
}

/**
 * @param {string} name
 * @param {string} text
 */
export function keep(name, text) {
  try {
    localStorage.setItem(`two-routes.${name}`, text);
  } catch {
    // It is forgotten with the page.
  }
}
