"""Recordings that are damaged on purpose, and a tiny recording to damage.

The damage is generated: bytes and values, keys, shapes, arrays that change places.  With `resealed` all hashes are
made to fit again, by the library's own functions, as one would do who wants a wrong recording to pass.
"""

import copy
import hashlib
import json
import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
from passes import tiny_pass

from tracer.format import decode as trace_json
from tracer.format.files import save
from tracer.format.origin import KEY, recomputed_hash
from tracer.format.summary import summarise
from tracer.format.trace import content_hash, outline_hash
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.model.tokenizer import MergeStep
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.training import TrainingJob, record_training

DEEP = [1]
for _ in range(18):
    DEEP = [DEEP]
JUNK = [None, "", "x", [], {}, 0, 1, -1, 7, 2**31, 2**53, 2**63, 2**64, -(2**63), 0.5, 1e300, -1e-300, True, False,
        [[]], [None], {"a": 1}, ["position"], "text.ids", "loss", "head", "arrays/0123456789abcdef.json", "../x.json",
        [1, 2], [10**9, 10**9], [0, 2**62], [2**62], "line\nbreak", "\u2028", "inf", "nan", "float32", "int64", 3.5e38,
        "9" * 5000, "你" * 300, DEEP, {"a": {"b": {"c": {"d": {"e": [1]}}}}}, "<script>", "rest", "../up", math.nan,
        math.inf]


class TwoLetters:
    """A tokenizer of 258 ids: the bytes, "ab" as one token, and an end."""

    name, vocabulary_size, eos = "two letters", 258, 257
    byte_to_id = [*range(256)]

    def byte_ids(self, text: str) -> list[list[int]]:
        return [[*text.encode()]]

    def merge_steps(self, text: str) -> list[MergeStep]:
        (ids,), steps = self.byte_ids(text), []
        while (at := next((i for i in range(len(ids) - 1) if ids[i:i + 2] == [97, 98]), None)) is not None:
            after = [*ids[:at], 256, *ids[at + 2:]]
            steps.append(MergeStep(0, ids, at, 97, 98, 256, after))
            ids = after
        return steps

    def encode(self, text: str) -> list[int]:
        steps = self.merge_steps(text)
        return steps[-1].after if steps else [*text.encode()]

    def token_bytes(self, number: int) -> bytes:
        return b"ab" if number == 256 else b"<end>" if number == 257 else bytes([number])

    def label(self, number: int) -> str:
        return "<EOS>" if number == 257 else "ab" if number == 256 else f"{number:02X}"


def record_tiny(folder: Path) -> None:
    """Both recordings of a model of one block, width 8 and 258 ids, in `folder`, and one pass of another model."""
    tokenizer = TwoLetters()
    config = Config(vocabulary=258, context=6, width=8, heads=2, blocks=1)
    training, checkpoint = record_training(
        TrainingJob("ab你", "cab", config, TrainingSettings(updates=12)), tokenizer)
    generation = record_generation(GenerationJob("ab", max_new_tokens=4), checkpoint, tokenizer)
    save(training, folder / "training.json")
    save(generation, folder / "generation.json")
    save(tiny_pass(), folder / "pass.json")


# Damage ----------------------------------------------------------------------------------------------

@dataclass
class Damage:
    """What was done, the file that it was done to, and the file's new content."""

    what: str
    file: Path
    content: bytes


def as_json(body) -> bytes:
    """Python's own JSON: with NaN and with numbers of any length."""
    return json.dumps(body, ensure_ascii=False).encode()


def places(node, path=()):
    """The path of every key and item of nested JSON; of a long list of numbers only a few."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for number, (key, item) in enumerate(items):
        if number >= 20 and isinstance(item, int | float | str) and isinstance(node, list):
            return
        yield (*path, key)
        yield from places(item, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


class Damager:
    """Damages one recording in random ways; the same seed gives the same damage."""

    def __init__(self, path: Path, seed: int):
        self.path, self.draw = path, random.Random(seed)
        self.body = orjson.loads(path.read_bytes())
        self.places = [*places(self.body)]
        # Most places are arrays' numbers: the few that say something else get their share.
        self.groups: dict[tuple, list[tuple]] = {}
        for place in self.places:
            key = (place[0], next((part for part in reversed(place) if isinstance(part, str)), ""), len(place))
            self.groups.setdefault(key, []).append(place)

    def __call__(self) -> Damage:
        draw = self.draw.random()
        if draw < 0.1:
            return self.bytes_of(self.path)
        if draw < 0.2 and (files := sorted((self.path.parent / "arrays").glob("*.json"))):
            return self.file_beside(self.draw.choice(files))
        body, what = self.tree()
        for _ in range(self.draw.choice([0, 0, 0, 1])):
            body, more = self.tree(body)
            what += f"; {more}"
        content = as_json(body)
        if self.draw.random() < 0.05:
            key = as_json(str(self.draw.choice(self.places)[-1])) + b": "
            content = content.replace(key, key + as_json(self.draw.choice(JUNK)) + b", " + key, 1)
            what += f"; {key} twice"
        return Damage(what, self.path, content)

    def bytes_of(self, file: Path) -> Damage:
        content = bytearray(file.read_bytes())
        way = self.draw.choice(["cut", "flip", "insert", "remove", "twice"])
        place = self.draw.randrange(len(content))
        if way == "cut":
            del content[place:]
        elif way == "flip":
            content[place] ^= 1 << self.draw.randrange(8)
        elif way == "insert":
            junk = [b"\xff", b"[" * 3000, b'"', b'{"a":', b"1e999", b"\x00", b"9" * 999]
            content[place:place] = self.draw.choice(junk)
        elif way == "remove":
            del content[place:place + self.draw.randrange(1, 40)]
        else:
            end = place + self.draw.randrange(1, 4000)
            content[end:end] = content[place:end]
        return Damage(f"{way} at byte {place} of {file.name}", file, bytes(content))

    def file_beside(self, file: Path) -> Damage:
        if self.draw.random() < 0.3:
            return self.bytes_of(file)
        body = orjson.loads(file.read_bytes())
        key = self.draw.choice([*body])
        body[key] = self.draw.choice(JUNK)
        return Damage(f"{key} of {file.name} is {str(body[key])[:40]!r}", file, as_json(body))

    def tree(self, body=None) -> tuple[dict, str]:
        """The recording with one node of its JSON changed."""
        body = copy.deepcopy(self.body) if body is None else body
        for _ in range(100):
            place = self.draw.choice(self.groups[self.draw.choice([*self.groups])])
            try:
                parent = at(body, place[:-1])
                parent[place[-1]]  # an earlier change may have taken it away
                return body, self.change(body, parent, place)
            except (LookupError, TypeError):
                continue
        raise AssertionError("nothing is left to damage")

    def change(self, body, parent, place) -> str:
        key = place[-1]
        way = self.draw.choice(["junk", "junk", "junk", "other", "remove", "rename", "swap", "nudge", "kind"])
        if way == "remove":
            del parent[key]
        elif way == "rename" and isinstance(parent, dict):
            parent[self.draw.choice(["x", "", key + " ", str(self.draw.choice(self.places)[-1])])] = parent.pop(key)
        elif way == "swap":
            self.swap(body, place)
        elif way == "nudge" and type(parent[key]) in (int, float):
            parent[key] = self.draw.choice([parent[key] + 1, -parent[key], parent[key] * 1.01, parent[key] * 2**20])
        elif way == "kind":
            one = self.draw.choice(body["operations"])
            one["kind"], one["target"] = self.draw.choice([(o["kind"], o["target"]) for o in self.body["operations"]])
            return f"kind of operation {one.get('id')} is {one['kind']}.{one['target']}"
        elif way == "other":
            parent[key] = copy.deepcopy(at(self.body, self.draw.choice(self.places)))
        else:
            way = "junk"
            parent[key] = copy.deepcopy(self.draw.choice(JUNK))
        return f"{way} {'.'.join(map(str, place))}"

    def swap(self, body, place) -> None:
        other = self.draw.choice([p for p in self.places if len(p) == len(place) and p[0] == place[0]])
        one, two = at(body, place[:-1]), at(body, other[:-1])
        one[place[-1]], two[other[-1]] = two[other[-1]], one[place[-1]]


# Hashes that fit again -------------------------------------------------------------------------------

def reseal(damage: Damage, path: Path) -> None:
    """After the damage was written: give every file the name of its content, and make every hash fit.

    Does what it can: a recording that cannot be taken apart keeps its old hashes.
    """
    try:
        body = orjson.loads(path.read_bytes())
        renamed = _name_files(damage, body, path.parent)
        for name, array in body["arrays"].items():
            array["file"] = renamed.get(array["file"], array["file"]) if "file" in array else None
            if array["file"] is None:
                del array["file"]
            if "sha256" in array:
                array["sha256"] = _content_hash(name, array, body, path.parent)
        path.write_bytes(orjson.dumps(body))
        trace = trace_json.from_json(body, path.parent)
        body["summary"] = summarise(trace)
        trace.make[KEY] = recomputed_hash(trace)  # the same object as in `body`
        body["outline_sha256"] = outline_hash(trace)
        path.write_bytes(orjson.dumps(body))
    except Exception:
        return


def _name_files(damage: Damage, body: dict, folder: Path) -> dict[str, str]:
    if damage.file.parent == folder:
        return {}
    old = f"arrays/{damage.file.name}"
    for name, array in body["arrays"].items():
        if array.get("file") == old:
            loaded = trace_json._array_from_json(name, {**array, "sha256": "0" * 64})
            new = f"arrays/{content_hash(trace_json._load_file(folder, loaded))[:16]}.json"
            break
    else:
        new = f"arrays/{hashlib.sha256(damage.content).hexdigest()[:16]}.json"
        for labels in body["labels"].values():
            if isinstance(labels, dict):
                labels["file"] = new
    (folder / new).write_bytes(damage.content)
    return {old: new}


def _content_hash(name: str, array: dict, body: dict, folder: Path) -> str:
    while "same_as" in array:
        array = body["arrays"][array["same_as"]]
    loaded = trace_json._array_from_json(name, {**array, "sha256": "0" * 64})
    return content_hash(np.asarray(
        loaded.data if loaded.data is not None else trace_json._load_file(folder, loaded)))
