// Bytes that make characters: which bytes belong together, and whether they are complete.

/**
 * Groups of bytes: each a character, or what waits for the rest of one.
 * @param {number[]} bytes
 * @param {number} complete how many of them, from the front, are whole characters
 */
export function characters(bytes, complete) {
  const groups = /** @type {{ bytes: number[], from: number, text: string }[]} */ ([]);
  bytes.forEach((byte, i) => {
    const continues = (byte & 0xc0) === 0x80 && groups.length > 0;
    if (continues) groups[groups.length - 1].bytes.push(byte);
    else groups.push({ bytes: [byte], from: i, text: "" });
  });
  for (const group of groups) {
    const isWhole = group.from + group.bytes.length <= complete;
    group.text = isWhole ? shown(new TextDecoder().decode(new Uint8Array(group.bytes))) : "";
  }
  return groups;
}

/** @param {string} text */
function shown(text) {
  return text === " " ? "␣" : text;
}

/** @param {number} byte */
export function hex(byte) {
  return byte.toString(16).toUpperCase().padStart(2, "0");
}

/** @param {number} byte */
export function bits(byte) {
  return byte.toString(2).padStart(8, "0");
}
