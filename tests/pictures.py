"""Take the pictures of the READMEs from a built site: ``make pictures``.  The fonts are those of this machine."""

import argparse
import base64
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from browser import ARGUMENTS, find_browser
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs"
SIZE = {"width": 1280, "height": 800}
# Name of a picture → the page, the step on it with the number that is opened, and what is in view.
PICTURES = {
    "softmax": ("training.html#step=blocks.0.attention.softmax&of=blocks.0.attention.softmax&h=0&i=3&j=1",
                "figure.stage canvas"),
}
LANGUAGES = ("en", "zh")
# In the browser: the pixels of a PNG, row by row, red, green, blue and alpha, as base64.
PIXELS = """async (png) => {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  const bytes = canvas.getImageData(0, 0, picture.width, picture.height).data;
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}"""


def take(browser: Browser, site: Path, language: str, address: str, top: str) -> bytes:
    """A step with an opened number, light, as a PNG of at most 256 colours."""
    context = browser.new_context(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{(site / language).as_uri()}/{address}")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    page.locator(top).locator("visible=true").first.evaluate("part => part.scrollIntoView()")
    page.wait_for_timeout(500)  # neighbours are laid out, and what moves has come to rest
    picture = page.screenshot(animations="disabled")
    page.goto("about:blank")
    small = with_palette(pixels(page, picture))
    context.close()
    return small


def pixels(page: Page, png: bytes) -> np.ndarray:
    """(height, width, 3) uint8."""
    raw = base64.b64decode(page.evaluate(PIXELS, base64.b64encode(png).decode()))
    return np.frombuffer(raw, np.uint8).reshape(SIZE["height"], SIZE["width"], 4)[..., :3]


def with_palette(picture: np.ndarray) -> bytes:
    """A PNG of 256 colours, a third of the size: of (height, width, 3) pixels each takes the nearest of them.

    The most frequent ones, but first of all the most frequent of each of 8 × 8 × 8 hues, so that none is lost.
    """
    colours, place, count = np.unique(picture.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-count, kind="stable")
    first = np.sort(np.unique(colours[order] >> 5, axis=0, return_index=True)[1])
    kept = colours[order[[*first, *np.setdiff1d(np.arange(len(order)), first)][:256]]].astype(int)
    nearest = np.array([((kept - colour) ** 2).sum(axis=1).argmin() for colour in colours.astype(int)], np.uint8)
    height, width = picture.shape[:2]
    rows = nearest[place.reshape(height, width)]
    data = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()  # 0: a row is not filtered
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits a pixel, each a place in the palette
    parts = ((b"IHDR", header), (b"PLTE", kept.astype(np.uint8).tobytes()), (b"IDAT", zlib.compress(data, 9)),
             (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=ROOT / "site")
    parser.add_argument("--output", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        for name, (address, top) in PICTURES.items():
            for language in LANGUAGES:
                path = options.output / f"{name}.{language}.png"
                path.write_bytes(take(browser, options.site.resolve(), language, address, top))
                print(f"wrote {os.path.relpath(path)}: {path.stat().st_size:,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
