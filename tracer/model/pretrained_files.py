"""The files of a GPT-2 checkpoint, read so that whatever they hold is tensors by name, or an error of one line."""

import importlib
import json
import re
import warnings
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tracer.errors import UserError
from tracer.resources import install_command

WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # each also in parts, with an index of them
LARGEST_JSON = 2**26  # bytes; an index of a hundred thousand names has a tenth of it
_PART = re.compile(r"\w[\w.-]{0,200}")  # the name of a file beside the index, and nowhere else
_AGAIN = "download the checkpoint again"
_FOLDER = 0x10  # in the attributes of a record of a zip archive, as MS-DOS had it


def installed(package: str, purpose: str) -> ModuleType:
    """The imported package.  Raises `UserError` that says how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise UserError(f"{purpose} needs {package.partition('.')[0]}, which is not installed: run "
                        f"{install_command('pretrained')}") from None


def weight_files(folder: Path) -> list[Path]:
    """The files with the parameters, one or the parts that an index names.  Raises `UserError` when there are none."""
    for name in WEIGHTS:
        index = folder / f"{name}.index.json"
        if (folder / name).is_file():
            return [folder / name]
        if index.is_file():
            parts = read_json(index).get("weight_map")
            names = [part for part in parts.values() if isinstance(part, str)] if isinstance(parts, dict) else []
            if not isinstance(parts, dict) or len(names) < len(parts):
                raise UserError(f"{index}: weight_map must name a file for each parameter: {_AGAIN}")
            if outside := [part for part in names if not _PART.fullmatch(part)]:
                raise UserError(f"{index}: weight_map names {outside[0][:80]!r}, which is no file of this folder: "
                                f"{_AGAIN}")
            return [folder / part for part in dict.fromkeys(names)]
    raise UserError(f"{folder} holds neither {WEIGHTS[0]} nor {WEIGHTS[1]}: name the folder of a GPT-2 checkpoint")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of one file by name.  Raises `UserError` for a file that is damaged or holds something else.

    A damaged file makes the readers raise nearly every kind of error there is.
    """
    if not path.is_file():
        raise UserError(f"{path} is missing: {_AGAIN}")
    reader = installed("safetensors.torch", f"reading {path}").load_file if path.suffix == ".safetensors" else _load
    try:
        path.open("rb").close()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check its permissions") from None
    try:
        with warnings.catch_warnings(action="ignore"):
            found = reader(path)
    except MemoryError:
        raise
    except Exception as error:
        raise UserError(f"{path} is damaged ({type(error).__name__}): {_AGAIN}") from None
    if not isinstance(found, dict) or not all(map(_is_entry, found, found.values())):
        raise UserError(f"{path} holds something else than tensors by name: name a checkpoint of weights alone")
    return found


def _load(path: Path) -> object:
    """What `torch.load` reads, which by itself does not compare the checksums of the archive with its content."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                raise ValueError("torch compresses nothing: unpacked it could be of any size")
            if any(part.external_attr & _FOLDER for part in archive.infolist()):
                raise ValueError("torch takes such a record for a folder, and leaves memory as it is for its numbers")
            if (wrong := archive.testzip()) is not None:
                raise ValueError(f"{wrong} has another checksum")
    return torch.load(path, map_location="cpu", weights_only=True)


def _is_entry(name: object, value: object) -> bool:
    """Whether both are what a file of weights holds: a name, and a tensor with all its numbers."""
    return (isinstance(name, str) and isinstance(value, Tensor) and value.layout == torch.strided
            and not value.is_nested and value.device.type == "cpu")


def read_json(path: Path) -> dict[str, Any]:
    """Raises `UserError` for a file that is missing or holds something else than an object."""
    if not path.is_file():
        raise UserError(f"{path} is missing: name the folder of a GPT-2 checkpoint")
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise ValueError("far more than any config has")
        said = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name the folder of a GPT-2 checkpoint") from None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise UserError(f"{path} is no JSON object: {_AGAIN}")
    return said
