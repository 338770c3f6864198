"""The recordings made again: the same bits with the same kernels, as near as rounding allows with others."""

import copy
from pathlib import Path

import torch
from made_again import differences, first_update_arrays, pinned, same_bits
from shared import files

from tracer.format.files import save
from tracer.format.origin import EARLY_KEY, KEY
from tracer.format.trace import Trace
from tracer.recording.generation import GenerationJob, past_context_job, record_generation
from tracer.recording.training import TrainingJob, record_training


def test_the_committed_recordings_are_pinned(recordings):
    """Made with the kernels that every machine is asked for, or nobody could make them again."""
    assert all(map(pinned, recordings.values()))
    assert {trace.make["torch"] for trace in recordings.values()} == {torch.__version__.split("+")[0]}


def test_the_recordings_made_again_are_the_committed_ones(fresh, recordings, tokenizer):
    """All 120 updates and what follows from them, bit for bit where the kernels are the pinned ones.

    Others make other bits, or the measurement of the kernels (`tracer.model.kernel_probe`) would be wrong.
    """
    job = past_context_job(GenerationJob(), fresh.checkpoint.text, tokenizer, fresh.checkpoint.model.config)
    long = record_generation(job, fresh.checkpoint, tokenizer, route="long")
    early = record_generation(GenerationJob(seed=24), fresh.checkpoint.early, tokenizer, route="early")
    different = []
    made = {"training": fresh.training, "generation": fresh.generation, "long": long, "early": early}
    assert made.keys() == recordings.keys()
    for route, ours in made.items():
        theirs = recordings[route]
        differs = {"kernels", KEY, EARLY_KEY}
        assert {key: value for key, value in ours.make.items() if key not in differs} == {
            key: value for key, value in theirs.make.items() if key not in differs}
        different += [(route, key) for key in (KEY, EARLY_KEY) if ours.make.get(key) != theirs.make.get(key)]
        different += [(route, name) for name in {*ours.arrays, *theirs.arrays} if not same_bits(ours, theirs, name)]
    assert bool(different) != pinned(fresh.training), different[:5]


def test_the_first_update_made_again_is_as_near_as_rounding_allows(fresh, training_trace, spread):
    """With whatever kernels.  And the comparison can fail: what hangs on no step of AdamW, by a two-hundredth."""
    assert differences(fresh.training, training_trace, spread) == {}
    names = {name for name in first_update_arrays(training_trace) if training_trace.values(name).any()
             and training_trace.values(name).dtype.kind == "f"
             and not name.startswith(("again.", "receipt.")) and ".after" not in name}
    assert names <= differences(fresh.training, training_trace, spread, off=5e-3).keys()


def test_the_recordings_made_again_have_the_committed_steps(fresh, training_trace, generation_trace):
    for ours, theirs in ((fresh.training, training_trace), (fresh.generation, generation_trace)):
        assert [(s.id, s.kind, s.target, s.operands, s.settings) for s in ours.operations.values()] == [
            (s.id, s.kind, s.target, s.operands, s.settings) for s in theirs.operations.values()]
        assert [(a.name, a.shape, a.axes) for a in ours.arrays.values()] == [
            (a.name, a.shape, a.axes) for a in theirs.arrays.values()]


def test_recording_twice_gives_the_same_bytes(fresh, tokenizer, tmp_path):
    training, checkpoint = record_training(TrainingJob(), tokenizer)
    generation = record_generation(GenerationJob(), checkpoint, tokenizer)
    save_both(tmp_path / "second", training, generation)
    save_both(tmp_path / "first", copy.deepcopy(fresh.training), copy.deepcopy(fresh.generation))
    first, second = files(tmp_path / "first"), files(tmp_path / "second")
    assert {"training.json", "generation.json"} < first.keys()
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def save_both(folder: Path, training: Trace, generation: Trace) -> None:
    save(training, folder / "training.json")
    save(generation, folder / "generation.json")
