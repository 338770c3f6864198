"""Damaged checkpoints: one line from every command, whatever was done to the file; a wrong one is never accepted.

Three kinds of damage.  Bytes: flipped, cut off, doubled.  Parts, saved again by torch: removed, of another type, of
another shape, not finite, so that the file is a whole archive.  And the same under a new seal, as somebody who means
harm would do it: then no hash tells, and types, shapes and sizes must.
"""

import copy
import hashlib
import io
import math
import os
import resource
import shutil
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import ALONE, SMALL, TRIALS, generator
from shared import files

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.optimizer import TrainingSettings, make_optimizer, train
from tracer.recording.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from tracer.trainer import checkpoints as run_checkpoint
from tracer.trainer.fit import Fit
from tracer.trainer.settings import make_settings

ALLOWED_BYTES, ALLOWED_SECONDS = 1e9, 20


@pytest.fixture(scope="module")
def run_folder(prepared, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "run"
    Fit(make_settings({**SMALL, "updates": 2, "data": str(prepared), "output": str(folder)}), ALONE).run()
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A checkpoint of the recorder's kind, with GPT-2's vocabulary and a width of 4."""
    path = tmp_path_factory.mktemp("recorded") / "checkpoint.pt"
    torch.manual_seed(5)
    model, settings = GPT(Config(width=4, heads=1, blocks=1, context=8)), TrainingSettings(updates=2)
    optimizer = make_optimizer(model, settings)
    train(model, optimizer, torch.tensor([[1, 2, 3]]), torch.tensor([[2, 3, 4]]), 2)
    save_checkpoint(Checkpoint(model, settings, 2, "Hi", optimizer, torch.get_rng_state()), path)
    return path


def sealed(content: bytes, format: str) -> bytes:
    """The seal by hand: the archive's comment, 16 bits of length before it, ends with the hash of all before."""
    label = f"{format} sha256 ".encode()
    whole = content[:-2] + (len(label) + 64).to_bytes(2, "little") + label
    return whole + hashlib.sha256(whole).hexdigest().encode()


def test_the_seal_is_over_every_byte(run_folder, recorded):
    for path, format in ((run_folder / "last.pt", "two-routes/run/3"), (recorded, "two-routes/checkpoint/2")):
        buffer = io.BytesIO()
        torch.save(torch.load(path, weights_only=True), buffer)  # it is a file of torch's like any other
        assert sealed(path.read_bytes()[: -64 - len(f"{format} sha256 ") - 2] + b"\0\0", format) == path.read_bytes()
        assert torch.load(path, weights_only=True)["format"] == format
        assert zipfile.ZipFile(path).testzip() is None


# Damage --------------------------------------------------------------------------------------------------

def flipped(content: bytes, random) -> bytes:
    damaged = bytearray(content)
    for place in random.sample(range(len(content)), random.choice([1, 1, 1, 2, 50])):
        damaged[place] ^= 1 << random.randrange(8)
    return bytes(damaged)


def cut_off(content: bytes, random) -> bytes:
    return content[: random.choice([0, 1, len(content) - 1, len(content) - 64, random.randrange(len(content))])]


def doubled(content: bytes, random) -> bytes:
    place, length = random.randrange(len(content)), random.randint(1, 500)
    return content[:place] + content[place:][:length] + content[place:]


def zeroed(content: bytes, random) -> bytes:
    """As of a page of the disk that was never written."""
    place = random.randrange(len(content) - 500)
    return content[:place] + bytes(500) + content[place + 500:]


def paths_of(part: object, path: tuple = ()) -> list[tuple]:
    below = [found for key, value in (part.items() if isinstance(part, dict) else enumerate(part))
             for found in paths_of(value, (*path, key))] if isinstance(part, dict | list) else []
    return ([path] if path else []) + below


def other_value(value: object, random) -> object:
    """Something of another type, or far from what it was."""
    if isinstance(value, torch.Tensor):
        return random.choice([
            lambda: value.flatten()[:-1].clone(), lambda: value.unsqueeze(0), lambda: value.double(),
            lambda: value.long(), lambda: value.to(torch.complex64), lambda: torch.full_like(value.float(), math.nan),
            lambda: torch.cat([value.flatten(), torch.zeros(1, dtype=value.dtype)]), lambda: value.tolist(),
            lambda: torch.zeros(1).expand(10**10), lambda: value.to_sparse(), lambda: torch.empty(0),
            lambda: torch.zeros(2, 3).t(), lambda: torch.nn.Parameter(value.float()), lambda: None])()
    others = [None, "x", "", -1, 0, 2**31 - 1, 10**30, 1.5, math.nan, math.inf, -0.5, True, [], {}, [1], {"a": 1},
              {1: {}}, torch.zeros(2), b"ab", (1, 2), "1" * 1000]
    return random.choice([each for each in others if type(each) is not type(value) or each != value])


def mutated(body: dict, random) -> tuple[dict, str]:
    body = copy.deepcopy(body)
    *above, key = random.choice(paths_of(body))
    place = body
    for step in above:
        place = place[step]
    how = random.choice(["removed", "changed", "changed", "changed", "added"])
    if how == "removed":
        del place[key]
    elif how == "added" and isinstance(place, dict):
        place[random.choice(["extra", 999, (1,)])] = place[key]
    else:
        place[key] = other_value(place[key], random)
    now = place.get(key) if isinstance(place, dict) else place
    return body, f"{how} {'/'.join(map(str, (*above, key)))}: {str(now)[:60]}"


def damaged(path: Path, random) -> tuple[bytes, str, bool]:
    """The content, what was done, and whether it is under a good seal, so that it may be accepted."""
    content = path.read_bytes()
    kind = random.choice([flipped, cut_off, doubled, zeroed, "parts", "parts", "sealed", "sealed", "sealed"])
    if callable(kind):
        changed = kind(content, random)
        while changed == content:
            changed = kind(content, random)
        return changed, kind.__name__, False
    body = torch.load(path, weights_only=True)
    format = body["format"]
    changed, what = mutated(body, random)
    buffer = io.BytesIO()
    torch.save(changed, buffer)
    if kind == "sealed":
        return sealed(buffer.getvalue(), format), f"sealed, {what}", True
    return buffer.getvalue(), what, False


class Watched:
    """Asserts that what happens inside takes little time and memory."""

    def __init__(self, case: object):
        self.case = case

    def __enter__(self):
        self.start, self.before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __exit__(self, *_):
        assert time.monotonic() - self.start < ALLOWED_SECONDS, self.case
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self.before
        assert kilobytes * 1024 < ALLOWED_BYTES, self.case


def one_line(result: tuple[int, str, str], may_succeed: bool, case: object) -> bool:
    status, _, err = result
    if may_succeed and status == 0:
        return True
    assert status == 2 and err.count("\n") == 1 and err.startswith("error: "), (case, result)
    return False


def test_a_damaged_checkpoint_of_a_run_is_one_line(run_folder, tmp_path, command, capsys):
    seed, random = generator()
    accepted = 0
    for trial in range(20 * TRIALS):
        folder = tmp_path / "run"
        shutil.copytree(run_folder, folder)
        name = random.choice(["last.pt", "best.pt"])
        content, what, sealed_again = damaged(folder / name, random)
        (folder / name).write_bytes(content)
        before, case = files(folder), (seed, trial, name, what)
        with Watched(case):
            good = one_line(command("sample", folder / name, "--max-new-tokens", 1), sealed_again, case)
            if name == "last.pt":
                resumed = one_line(command("fit", "--resume", "--output", folder, "--updates", 3), sealed_again, case)
                assert resumed <= good, case
                assert resumed or files(folder) == before, case
            else:
                one_line(command("heads", folder, "--top", 1), sealed_again, case)
        if good:
            accepted += 1
            saved = run_checkpoint.load_run(folder / name)
            assert saved.config.width == 16 and all(bool(p.isfinite().all()) for p in saved.parameters.values()), case
        shutil.rmtree(folder)
    assert accepted < 5 * TRIALS, (seed, accepted)  # a file name of the data, a text: nothing that could be told


def test_a_damaged_checkpoint_of_the_recorder_is_one_line(recorded, tmp_path, command):
    seed, random = generator()
    path = tmp_path / "checkpoint.pt"
    for trial in range(12 * TRIALS):
        content, what, sealed_again = damaged(recorded, random)
        path.write_bytes(content)
        case = (seed, trial, what)
        with Watched(case):
            for arguments in random.sample([("evaluate", "--checkpoint", path, "Hi"),
                                            ("generate", "--max-new-tokens", 1, "-o", tmp_path),
                                            ("sample", path, "--max-new-tokens", 1)], 2 if not sealed_again else 1):
                one_line(command(*arguments), sealed_again, case)
        if not sealed_again:
            assert set(files(tmp_path)) == {"checkpoint.pt"}, case
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()


# What somebody would do who means harm ---------------------------------------------------------------------

def resealed(path: Path, change: Callable[[dict], None]) -> None:
    body = torch.load(path, weights_only=True)
    change(body)
    buffer = io.BytesIO()
    torch.save(body, buffer)
    path.write_bytes(sealed(buffer.getvalue(), body["format"]))


HUGE = {"blocks": 10**9, "width": 2**31 - 2, "context": 2**31 - 1, "vocabulary": 2**31 - 1}


@pytest.mark.parametrize(("change", "says"), [
    *((lambda body, name=name, size=size: (body["config"].update({name: size}), name in body["settings"] and
                                           body["settings"].update({name: size})),
       "different vocabularies" if name == "vocabulary" else "parameters, its config says")
      for name, size in HUGE.items()),
    (lambda body: body["parameters"].update({"final_norm.bias": torch.zeros(1).expand(10**12)}), "of another kind"),
    (lambda body: body["parameters"].update({"final_norm.bias": torch.zeros(17)}), "parameters, its config says"),
    (lambda body: body["parameters"].update({"final_norm.bias": body["parameters"].pop("final_norm.weight"),
                                             "other": torch.zeros(16)}), "parameters are not those"),
    (lambda body: body["parameters"]["final_norm.bias"].fill_(math.nan), r"not finite, in parameters/final_norm\.bias"),
    (lambda body: body["optimizer"][3]["exp_avg_sq"].fill_(math.inf), "not finite, in optimizer/3/exp_avg_sq"),
    (lambda body: body["optimizer"][3]["exp_avg_sq"].fill_(-1.0), "none that updates lead to"),
    (lambda body: body["optimizer"][3]["step"].fill_(9.0), "none that updates lead to"),
    (lambda body: body["optimizer"].pop(3), "its optimizer is not one of its model"),
    (lambda body: body.update(best=math.nan), "not finite, in best"),
    (lambda body: body.update(best_update=3), "its updates are not in order"),
    (lambda body: body["settings"].update(lr="fast"), "lr of settings is no float"),
    (lambda body: body["settings"].pop("seed"), "settings must hold"),
    (lambda body: body["tokenizer"]["characters"].reverse(), "not in order"),
    (lambda body: body["config"].update(heads=3), "cannot be cut into 3 heads"),
    (lambda body: body.update(format="two-routes/run/2"), "no checkpoint"),
])
def test_a_seal_is_no_proof_of_good_will(run_folder, tmp_path, change, says):
    path = Path(shutil.copy(run_folder / "last.pt", tmp_path))
    resealed(path, change)
    with Watched(says), pytest.raises(UserError, match=says) as refusal:
        run_checkpoint.load_run(path)
    assert "\n" not in str(refusal.value)


def test_an_archive_that_unpacks_to_more_than_it_is_is_refused(run_folder, tmp_path):
    buffer = io.BytesIO()
    packed = zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(run_folder / "last.pt") as source, packed as target:
        for record in source.infolist():
            target.writestr(record.filename, source.read(record) + bytes(10**7) * (record.filename.endswith("/0")))
    path = tmp_path / "last.pt"
    path.write_bytes(sealed(buffer.getvalue(), "two-routes/run/3"))
    with pytest.raises(UserError, match="its records are larger than the file"):
        run_checkpoint.load_run(path)


# What is still good ----------------------------------------------------------------------------------------

def test_the_best_update_is_gone_on_from_when_the_last_is_damaged(run_folder, tmp_path, command):
    """As the refusal says."""
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    (folder / "last.pt").write_bytes(b"damaged")
    status, _, err = command("fit", "--resume", "--output", folder, "--updates", 3)
    assert status == 2 and f"go on from the best update with a copy of {folder / 'best.pt'} in its place" in err
    shutil.copy(folder / "best.pt", folder / "last.pt")
    assert command("fit", "--resume", "--output", folder, "--updates", 3)[0] == 0
    assert run_checkpoint.load_run(folder / "last.pt").update == 3


def test_a_run_in_float16_goes_on_in_float32_and_back(run_folder, tmp_path, float16, monkeypatch):
    """The state of the scaler is there or not."""
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for updates in (3, 4):
        settings = replace(run_checkpoint.load_run(folder / "last.pt").settings, updates=updates)
        Fit(settings, ALONE, resume=True).run()
        assert bool(run_checkpoint.load_run(folder / "last.pt").scaler) == (updates == 3)
        monkeypatch.undo()


def test_loading_draws_no_random_number(run_folder, recorded):
    state = torch.get_rng_state()
    run_checkpoint.load_run(run_folder / "last.pt")
    load_checkpoint(recorded)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_state_that_is_not_finite_is_not_saved_over_a_good_one(recorded, tmp_path):
    checkpoint = load_checkpoint(recorded)
    (tmp_path / "checkpoint.pt").write_bytes(b"good")
    checkpoint.model.final_norm.bias.data[0] = math.inf
    with pytest.raises(UserError, match=r"parameters/final_norm\.bias is not finite after update 2: choose a smaller"):
        save_checkpoint(checkpoint, tmp_path / "checkpoint.pt")
    assert files(tmp_path) == {"checkpoint.pt": b"good"}


def test_what_has_no_end_is_not_read(tmp_path):
    """A pipe that nobody writes into would be waited for, and a device read until the memory is full."""
    os.mkfifo(tmp_path / "pipe")
    for source in (tmp_path / "pipe", Path("/dev/zero")):
        assert run_checkpoint.find_run(source) is None
