"""A set of recordings is one set: of one training, written at one moment, whole after a kill anywhere."""

import itertools
import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from shared import files
from trials import TRIALS

from site_builder import build as build_module
from tracer.cli import record as cli_record
from tracer.errors import UserError
from tracer.format import origin
from tracer.format.load import load, load_all
from tracer.format.roles import ROUTES
from tracer.format.trace import Trace
from tracer.format.verify_folder import checks_of_all
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.recording import checkpoint
from tracer.recording.checkpoint import Checkpoint, load_checkpoint
from tracer.recording.generation import GenerationJob, past_context_job, record_generation
from tracer.recording.training import TrainingJob, record_training
from tracer.storage.together import NEW, paths_in, read_newest, replace_together

TINY = Config(context=4, width=4, heads=1, blocks=1)
KILLED = 9


@dataclass(frozen=True)
class Set:
    """All recordings of one training, in memory and in a folder, as `record` writes them."""

    traces: dict[str, Trace]
    checkpoint: Checkpoint
    folder: Path


def record(tokenizer, folder: Path, seed: int) -> Set:
    training, ended = record_training(TrainingJob("Hi", "Hi", TINY, TrainingSettings(seed=seed, updates=2)), tokenizer)
    job = GenerationJob(max_new_tokens=1)
    long = past_context_job(job, "Hi", tokenizer, TINY)
    traces = {"training": training, "generation": record_generation(job, ended, tokenizer),
              "long": record_generation(long, ended, tokenizer, route="long"),
              "early": record_generation(job, ended.early, tokenizer, route="early")}
    cli_record._write(folder, traces, ended)
    return Set(traces, ended, folder)


@pytest.fixture(scope="module")
def sets(tokenizer, tmp_path_factory) -> tuple[Set, Set]:
    """Two sets that differ in the seed alone."""
    return tuple(record(tokenizer, tmp_path_factory.mktemp(f"set{seed}"), seed) for seed in (1, 2))


def copied(one: Set, folder: Path) -> Path:
    return Path(shutil.copytree(one.folder, folder))


# Of one training -------------------------------------------------------------------------------------

def test_recordings_and_checkpoint_name_the_same_hash_and_each_gives_it_again(sets, tmp_path):
    names = set()
    for one in sets:
        known = {route: trace.make[origin.KEY] for route, trace in one.traces.items()}
        loaded = {route: origin.recomputed_hash(load(one.folder / f"{route}.json")) for route in ROUTES}
        again = load_checkpoint(one.folder / "checkpoint.pt")
        early = known.pop("early")
        assert early == loaded.pop("early") == again.early.sha256() == one.traces["training"].make[origin.EARLY_KEY]
        assert {*known.values()} == {*loaded.values()} == {again.sha256()}
        names |= {early, again.sha256()}
    assert len(names) == 4


@pytest.mark.parametrize("what", ["config", "settings", "text", "updates", "parameter", "name"])
def test_the_hash_is_over_all_that_a_generation_follows_from(what):
    given = {"config": {"width": 4}, "settings": {"lr": 0.1}, "text": "a", "updates": 1,
             "parameters": {"w": "0", "b": "1"}}
    other = given | {"config": {"config": {"width": 5}}, "settings": {"settings": {"lr": 0.2}},
                     "text": {"text": "b"}, "updates": {"updates": 2},
                     "parameter": {"parameters": {"w": "0", "b": "2"}},
                     "name": {"parameters": {"v": "0", "b": "1"}}}[what]
    assert origin.checkpoint_hash(**given) != origin.checkpoint_hash(**other)
    assert origin.checkpoint_hash(**given) == origin.checkpoint_hash(**dict(reversed(given.items())))


@pytest.mark.parametrize("mixed", [(0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 0), (0, 0, 0, 1)])
def test_a_mixture_is_refused_by_both_commands(sets, tmp_path, run, mixed):
    folder = copied(sets[0], tmp_path / "traces")
    for route, number in zip(ROUTES, mixed, strict=True):
        shutil.copytree(sets[number].folder / "arrays", folder / "arrays", dirs_exist_ok=True)
        shutil.copy(sets[number].folder / f"{route}.json", folder)
    wrong = next(route for route, number in zip(ROUTES, mixed, strict=True) if number != mixed[0])
    refused = run("verify", folder)
    status, error = refused.status, refused.err
    assert status == 2 and error.count("\n") == 1
    assert f"{folder / wrong}.json was made from another training than training.json: run `python -m tracer " in error
    with pytest.raises(UserError) as refusal:
        build_module.build(folder, tmp_path / "site")
    assert f"error: {refusal.value}\n" == error
    assert not (tmp_path / "site").exists()


def test_a_mixture_without_the_training_is_refused_and_a_set_is_not(sets, tmp_path, run):
    folder = copied(sets[0], tmp_path / "traces")
    assert run("verify", "--brief", folder).status == 0
    (folder / "training.json").unlink()
    assert run("verify", "--brief", folder).status == 0  # one generation, with a checkpoint elsewhere
    shutil.copytree(sets[1].folder / "arrays", folder / "arrays", dirs_exist_ok=True)
    shutil.copy(sets[1].folder / "long.json", folder)
    assert "long.json was made from another training than generation.json" in run("verify", folder).err
    assert run("verify", "--brief", folder / "long.json").status == 0  # by itself it is what it was


def test_other_initial_values_are_no_part_of_the_set(sets):
    """The same checkpoint, but what the generation calls the first values is not what training started from."""
    found = {route: origin.origin_of(trace) for route, trace in sets[0].traces.items()}
    origin.check_set(Path("traces"), found)
    name = next(iter(found["generation"].initial))
    assert found["training"].initial.keys() == found["generation"].initial.keys() and not found["long"].initial
    found["generation"].initial[name] = "0" * 64
    with pytest.raises(UserError, match=rf"generation\.json holds other initial values of {name} than training\.json"):
        origin.check_set(Path("traces"), found)


def test_a_hash_that_is_missing_or_another_fails(sets):
    for route in ROUTES:
        trace = load(sets[0].folder / f"{route}.json")
        assert origin.origin_problem(trace) == ""
        for change in (lambda make: make.pop(origin.KEY), lambda make: make.update({origin.KEY: "0" * 64}),
                       lambda make: make["config"].update(dropout=0.5), lambda make: make["settings"].update(lr=1.0)):
            spoiled = load(sets[0].folder / f"{route}.json")
            change(spoiled.make)
            assert origin.origin_problem(spoiled)


def test_generate_does_not_write_beside_another_training(sets, tmp_path, run):
    folder = copied(sets[0], tmp_path / "traces")
    before = files(folder)
    foreign = sets[1].folder / "checkpoint.pt"
    refused = run("generate", "--checkpoint", foreign, "--max-new-tokens", 1, "-o", folder)
    status, error = refused.status, refused.err
    assert (status, error.count("\n")) == (2, 1)
    assert f"{foreign} is not the checkpoint that {folder / 'training.json'} ended in: choose another --output" in error
    assert files(folder) == before
    assert run("generate", "--max-new-tokens", 1, "--temperature", 2, "-o", folder).status == 0  # its own
    assert run("generate", "--checkpoint", foreign, "--max-new-tokens", 1, "-o", tmp_path / "other").status == 0
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [
        "arrays", "early.json", "generation.json", "long.json"]


def test_a_new_training_says_that_the_generation_is_of_the_old_one(sets, tmp_path, capsys):
    folder = copied(sets[0], tmp_path / "traces")
    cli_record._write(folder, {"training": sets[1].traces["training"]}, sets[1].checkpoint)
    error = capsys.readouterr().err
    assert "not yet a set: " in error and "another training than training.json: run `python -m tracer generate" in (
        " ".join(error.split()))
    assert all(path.exists() for path in paths_in(folder, "*.json")) and len(paths_in(folder, "*.json")) == len(ROUTES)


def test_a_checkpoint_that_was_changed_is_refused(sets, tmp_path, monkeypatch):
    one = sets[0].checkpoint
    monkeypatch.setattr(Checkpoint, "sha256", lambda self: "0" * 64)
    checkpoint.save_checkpoint(one, tmp_path / "checkpoint.pt")
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"checkpoint\.pt was changed after it was written \(sha256 differs\)"):
        load_checkpoint(tmp_path / "checkpoint.pt")


# At one moment ---------------------------------------------------------------------------------------

class Killer:
    """Ends this process, as SIGKILL would, at the n-th call of the system that changes a file."""

    CALLS = ("replace", "rename", "rmdir", "unlink", "chmod", "fsync", "mkdir")

    def __init__(self, at: int):
        self.at, self.count = at, 0

    def next(self) -> None:
        self.count += 1
        if self.count == self.at:
            os._exit(KILLED)

    def install(self) -> None:
        for name in self.CALLS:
            setattr(os, name, self._counted(getattr(os, name)))
        opened = os.fdopen

        def fdopen(handle, mode):
            file = opened(handle, mode)
            write = file.write

            class Halves:
                def __getattr__(_, name):
                    return getattr(file, name)

                def __enter__(self):
                    return self

                def __exit__(self, *exception):
                    file.close()

                def write(_, content):
                    write(content[: len(content) // 2])
                    file.flush()
                    self.next()
                    write(content[len(content) // 2:])

            return Halves()

        os.fdopen = fdopen

    def _counted(self, real):
        def call(*arguments, **named):
            self.next()
            return real(*arguments, **named)

        return call


def killed_at(number: int, work) -> bool:
    """Whether `work`, in a process of its own, was ended at its n-th change of a file; False when it had fewer."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            Killer(number).install()
            work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED), f"the work itself failed when it was to be killed at {number}"
    return status == KILLED


@pytest.fixture
def quick(monkeypatch) -> None:
    """No waiting for the disk: what is lost here is what a killed process leaves, not what a power cut does."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def newest_files(folder: Path, names) -> dict[str, bytes]:
    return {name: read_newest(folder / name) for name in names if (folder / NEW / name).exists()
            or (folder / name).exists()}


OLD = {"a.json": b"old a", "b.json": b"old b", "arrays/0000000000000000.json": b"old"}
FRESH = {"a.json": b"new a", "b.json": b"new b", "c.pt": b"new c", "arrays/1111111111111111.json": b"new"}


@pytest.mark.parametrize("left", ["staged", "half in place"])
def test_a_kill_at_any_moment_leaves_all_old_files_or_all_new_ones(tmp_path, quick, left):
    """Every moment there is; also where a kill before has left something."""
    fixed = {name for name in {*OLD, *FRESH} if "/" not in name}
    whole = [{name: content for name, content in one.items() if name in fixed} for one in (OLD, FRESH)]
    seen = []
    for number in itertools.count(1):
        folder = tmp_path / str(number)
        replace_together(folder, OLD)
        if left == "staged":
            (folder / f"{NEW}-abc").mkdir()
            (folder / f"{NEW}-abc" / "a.json").write_bytes(b"never counted")
            (folder / ".a.json.xyz.tmp").write_bytes(b"nor this")
            (folder / "arrays" / ".1111111111111111.json.xyz.tmp").write_bytes(b"n")
        else:
            (folder / NEW).mkdir()
            (folder / "b.json").rename(folder / NEW / "b.json")  # a.json is in its place already
        killed = killed_at(number, lambda folder=folder: replace_together(folder, FRESH))
        found = newest_files(folder, fixed)
        assert found in whole, (number, found)
        seen.append(whole.index(found))
        assert (folder / "arrays/0000000000000000.json").read_bytes() == b"old"  # the old set needs it still
        assert seen[-1] == 0 or (folder / "arrays/1111111111111111.json").read_bytes() == b"new"
        replace_together(folder, FRESH)
        assert files(folder) == OLD | FRESH
        assert not [path for path in folder.rglob(".*")], "something is left over"
        if not killed:
            break
    assert seen == sorted(seen) and len({*seen}) == 2 and len(seen) > 20


def test_a_failure_before_the_moment_changes_nothing(tmp_path, monkeypatch):
    replace_together(tmp_path, OLD)
    real = os.fsync
    for writes in range(len(FRESH)):  # that succeed
        left = iter(range(writes))

        def full(handle, left=left):
            if next(left, None) is None:
                raise OSError(28, "No space left on device")
            real(handle)

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            replace_together(tmp_path, FRESH)
        assert files(tmp_path) == OLD


def test_files_that_are_about_to_take_their_place_are_what_is_read(sets, tmp_path):
    """Also where nothing may be written: reading finishes nothing, and sees the new set all the same."""
    folder = copied(sets[0], tmp_path / "traces")
    shutil.copytree(sets[1].folder / "arrays", folder / "arrays", dirs_exist_ok=True)
    (folder / NEW).mkdir()
    for route in ("generation", "long", "early"):
        shutil.copy(sets[1].folder / f"{route}.json", folder / NEW)
    shutil.copy(sets[1].folder / "training.json", folder)  # in its place already
    shutil.copy(sets[1].folder / "checkpoint.pt", folder / NEW)
    before = files(folder)
    traces = load_all(folder)
    assert {trace.make[origin.KEY] for trace in traces.values()} == {
        sets[1].checkpoint.sha256(), sets[1].checkpoint.early.sha256()}
    assert load_checkpoint(folder / "checkpoint.pt").sha256() == sets[1].checkpoint.sha256()
    assert not [check for _, checks in checks_of_all(folder) for check in checks if check.problem]
    assert files(folder) == before


def moments(work, folder: Path) -> int:
    """How many changes of files `work` makes."""
    return next(number for number in itertools.count(20, 20) if not killed_at(number, lambda: work(folder)))


def test_a_kill_while_record_writes_leaves_a_whole_set(sets, tmp_path, quick):
    """The recordings themselves: what is there after the kill verifies as one set, and a rerun completes."""
    old, new = sets

    def write(folder: Path) -> None:
        cli_record._write(folder, new.traces, new.checkpoint)

    last = moments(write, copied(old, tmp_path / "all"))
    hashes = {one.checkpoint.sha256(): number for number, one in enumerate(sets)}
    chosen = random.Random(7).sample(range(1, last + 1), min(last, 5)) if TRIALS == 1 else (
        [1 + n % last for n in range(5 * TRIALS)])
    for number in chosen:
        folder = copied(old, tmp_path / "traces")
        killed_at(number, lambda folder=folder: write(folder))
        found = {route: load(folder / f"{route}.json").make[origin.KEY] for route in ROUTES}
        source = sets[hashes[found["training"]]]
        assert found.pop("early") == source.checkpoint.early.sha256() and len({*found.values()}) == 1, (number, found)
        assert load_checkpoint(folder / "checkpoint.pt").sha256() == found["training"], number
        assert all(read_newest(folder / name) == content for name, content in files(source.folder).items()), number
        write(folder)
        assert files(folder) == files(new.folder), number
        shutil.rmtree(folder)
