"""The READMEs' pictures: each shows a page in the README's own language, small; colours are kept."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from pictures import FOLDER, LANGUAGES, PICTURES, SIZE, with_palette
from test_readme import LINK, READMES, text

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 200_000  # bytes: a clone holds every version of a picture for ever


def decoded(png: bytes) -> np.ndarray:
    """(height, width, 3) of a PNG with a palette and unfiltered rows."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at: at + 8])
        parts[name] = png[at + 8: at + 8 + length]
        assert zlib.crc32(name + parts[name]) == struct.unpack(">I", png[at + 8 + length: at + 12 + length])[0]
        at += 12 + length
    width, height, *how = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert how == [8, 3, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)[rows[:, 1:]]


def test_few_colours_are_kept_as_they_are():
    picture = np.random.default_rng(1).integers(0, 4, (9, 7, 3)).astype(np.uint8) * 80
    assert (decoded(with_palette(picture)) == picture).all()


def test_of_many_colours_a_rare_one_is_not_lost():
    grey = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    picture = np.concatenate([np.tile(grey, (40, 1)), [[128, 0, 128]]]).reshape(1, -1, 3).astype(np.uint8)
    picture = np.concatenate([picture, np.minimum(picture, 251)])  # a colour more than a palette holds
    shown = decoded(with_palette(picture))
    assert (shown[:, -1] == [128, 0, 128]).all()
    assert np.abs(shown.astype(int) - picture).max() <= 2


@pytest.mark.parametrize("name", READMES)
def test_a_readme_shows_every_picture_in_its_language(name):
    language = LANGUAGES[READMES.index(name)]
    shown = [link for link in LINK.findall(text(name)) if link.endswith(".png")]
    assert shown == [f"{FOLDER.name}/{picture}.{language}.png" for picture in PICTURES]
    for link in shown:
        content = (ROOT / link).read_bytes()
        assert len(content) < LARGEST
        assert decoded(content).shape == (SIZE["height"], SIZE["width"], 3)


def test_no_other_picture_is_kept():
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.{code}.png" for name in PICTURES for code in LANGUAGES}
