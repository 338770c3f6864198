"""A file of torch's under a seal: a SHA-256 over all of its bytes, in the comment that ends the zip archive.

The seal is checked before anything else is read, for torch's reader does not look at the checksums of the archive:
a flipped bit would be trained on.  `torch.load` opens such a file as any other.
"""

import hashlib
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import torch

from tracer.errors import UserError
from tracer.model.finite import first_not_finite

_SEAL = re.compile(rb"(two-routes/[a-z]+/[0-9]+) sha256 ([0-9a-f]{64})\Z")
_LONGEST = 128  # bytes of a seal
_DIGEST = 64
_NO_COMMENT = 22  # bytes of the end of an archive without one
_CHUNK = 1 << 20


def sealed_bytes(body: dict[str, Any], format: str) -> bytes:
    """The file of `body`, which `format` is added to."""
    buffer = io.BytesIO()
    torch.save({"format": format, **body}, buffer)
    label = f"{format} sha256 ".encode()
    if not buffer.getvalue()[-_NO_COMMENT:].startswith(b"PK\5\6"):
        raise AssertionError("torch.save no longer ends with the record that ends a zip archive")
    buffer.seek(-2, io.SEEK_END)  # the length of the comment
    buffer.write((len(label) + _DIGEST).to_bytes(2, "little") + label)
    buffer.write(hashlib.sha256(buffer.getbuffer()).hexdigest().encode())
    return buffer.getvalue()


def seal_of(path: Path) -> str | None:
    """The format that the seal of a file names, None when there is none."""
    try:
        with open(path, "rb") as file:
            found = _find_seal(file)
    except OSError:
        return None
    return found[0] if found else None


def load_sealed(path: Path, format: str) -> dict[str, Any]:
    """The body of a file that `sealed_bytes` made, its tensors on the CPU.

    Raises `Damaged` when the seal is missing, broken or of another format, when the file claims more than it has
    room for, and for numbers that are not finite.
    """
    with open(path, "rb") as file:
        found = _find_seal(file)
        if found is None:
            raise Damaged("without the seal of this version at its end")
        if found[0] != format:
            raise OfAnotherFormat(found[0], format)
        size = file.seek(0, io.SEEK_END)
        if _digest(file, size - _DIGEST) != found[1]:
            raise Damaged("its SHA-256 is another than when it was written")
        body = _load(file, size)
    if type(body) is not dict or body.pop("format", None) != format:
        raise Damaged("it does not hold what its seal says")
    if (name := first_not_finite(body)) is not None:
        raise Damaged(f"it holds a number that is not finite, in {name}")
    return body


class Damaged(Exception):
    """Why a checkpoint cannot be what was written."""


class OfAnotherFormat(Damaged):
    """A checkpoint that is whole: `kind` of it is "run", "checkpoint" or what else its seal names."""

    def __init__(self, found: str, wanted: str):
        super().__init__(f"it has the format {found!r}, not {wanted!r}")
        self.kind = found.split("/")[1]


def refused(path: Path, reason: object, advice: str) -> UserError:
    """The one line on a checkpoint that cannot be read: why, and what to do."""
    return UserError(f"{path} is damaged or no checkpoint ({' '.join(str(reason).split())[:200]}): {advice}")


def tensors(part: object) -> Iterator[torch.Tensor]:
    """All tensors in nested dicts and lists."""
    if isinstance(part, torch.Tensor):
        yield part
    elif isinstance(part, dict | list | tuple):
        for below in part.values() if isinstance(part, dict) else part:
            yield from tensors(below)


def _find_seal(file: BinaryIO) -> tuple[str, str] | None:
    file.seek(max(file.seek(0, io.SEEK_END) - _LONGEST, 0))
    found = _SEAL.search(file.read())
    return (found[1].decode(), found[2].decode()) if found else None


def _digest(file: BinaryIO, count: int) -> str:
    """Of the first `count` bytes."""
    digest = hashlib.sha256()
    file.seek(0)
    while count > 0 and (part := file.read(min(count, _CHUNK))):
        digest.update(part)
        count -= len(part)
    return digest.hexdigest()


def _load(file: BinaryIO, size: int) -> object:
    """What torch reads, as long as it is no more than the file has room for: a seal is no proof of good will."""
    with zipfile.ZipFile(file) as archive:
        records = archive.infolist()
    if any(record.compress_type != zipfile.ZIP_STORED for record in records) or sum(
            record.file_size for record in records) > size:
        raise Damaged("its records are larger than the file")
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old kinds of storage: what is loaded is checked anyway
        body = torch.load(file, weights_only=True, map_location="cpu")
    found = list(tensors(body))
    if not all(type(each) is torch.Tensor and each.layout == torch.strided and each.device.type == "cpu"
               and each.is_contiguous() for each in found):
        raise Damaged("it has tensors of another kind than were written")
    if sum(each.numel() * each.element_size() for each in found) > size:
        raise Damaged("its tensors are larger than the file")
    return body
