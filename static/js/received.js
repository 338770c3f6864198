// Data scripts: a page opened by double-click may not fetch files, but it may add scripts.

const TYPES = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array };

/** @type {Map<string, Promise<any>>} */
const asked = new Map(); // name → promise of its content: two tables may ask for one script

/**
 * Add a data script to the page and wait for what it hands over.
 * @param {string} name
 * @param {string} root the way from the page to the folder of the site
 * @returns {Promise<any>}
 */
export function receive(name, root) {
  const { received, waiting } = window.twoRoutes;
  if (received.has(name)) return Promise.resolve(received.get(name));
  const promise = asked.get(name) ?? new Promise((resolve, reject) => {
    waiting.set(name, resolve);
    const script = document.createElement("script");
    script.src = `${root}data/${name}.js`;
    script.addEventListener("error", () => {
      asked.delete(name); // a later try may find it
      reject(new Error(`data/${name}.js`));
    });
    document.head.append(script);
  });
  asked.set(name, promise);
  return promise;
}

/**
 * Numbers from base64: little-endian, exact; integers as doubles.
 * @param {string} text
 * @param {keyof typeof TYPES} dtype
 */
export function decode(text, dtype) {
  const { buffer } = bytesOf(text);
  const values = new TYPES[dtype](buffer);
  return values instanceof BigInt64Array ? Float64Array.from(values, Number) : values;
}

/** @param {string} text */
function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
