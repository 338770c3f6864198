"""What a recording will take is said before it is made: held against recordings that were made."""

import pytest

from tracer.errors import UserError
from tracer.format import budget
from tracer.format.files import INLINE_LIMIT, files_of, save
from tracer.format.trace import AXES, Trace
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.ops.replay import Replay
from tracer.recording import forecast
from tracer.recording import training as record_training_module
from tracer.recording.forecast import (
    Forecast,
    check_generation_size,
    check_training_size,
    forecast_generation,
    forecast_set,
    forecast_training,
)
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.record_set import write_set
from tracer.recording.training import TrainingJob, record_training

LONG = " the moon rose over the still river and old men watched it in silence"
SHAPES = [(Config(blocks=1, width=8, context=8), 3, 2), (Config(blocks=2, width=32, heads=4, context=32), 15, 4)]


def within(predicted: float, real: float, factor: float = 1.8) -> bool:
    return real / factor < predicted < real * factor


def compare(made: Forecast, trace: Trace) -> None:
    real = budget.forecast(trace, Replay(trace, AXES))
    assert within(made.work, real.work)
    assert real.memory / 1.2 < made.checking < 1.8 * real.memory
    held = sum(a.size for a in trace.arrays.values() if not a.derived and a.size > INLINE_LIMIT)
    inline = sum(a.size for a in trace.arrays.values() if not a.derived and a.size <= INLINE_LIMIT)
    assert within(made.files, held * 16 / 3)
    assert within(made.operations, len(trace.operations), 2)
    assert made.json > 5 * inline


@pytest.mark.parametrize(("config", "count", "rounds"), SHAPES)
def test_the_forecast_is_what_is_then_recorded(tokenizer, tmp_path, config, count, rounds):
    text = tokenizer.decode(tokenizer.encode(LONG)[:count])
    job = TrainingJob(text, "to be", config, TrainingSettings(updates=5))
    training, checkpoint = record_training(job, tokenizer)
    compare(forecast_training(config, count, len(tokenizer.encode("to be")), 5), training)
    files = files_of(training, tmp_path / "training.json")
    made = forecast_training(config, count, len(tokenizer.encode("to be")), 5)
    assert within(made.json, len(files["training.json"]))
    generation = record_generation(GenerationJob("the", max_new_tokens=rounds), checkpoint, tokenizer)
    assert generation.make["rounds"] == rounds  # the end token would make it shorter
    compare(forecast_generation(config, 1, rounds), generation)
    long = record_generation(GenerationJob(text, max_new_tokens=1), checkpoint, tokenizer, route="long")
    early = record_generation(GenerationJob("the", max_new_tokens=rounds), checkpoint.early, tokenizer, route="early")
    traces = {"training": training, "generation": generation, "long": long, "early": early}
    write_set(tmp_path, traces, checkpoint, str, pytest.fail)
    whole = forecast_set(config, made, forecast_generation(config, 1, rounds),
                         forecast_generation(config, count, 1, "long"),
                         forecast_generation(config, 1, early.make["rounds"], "early"))
    assert within(whole.folder, sum(path.stat().st_size for path in tmp_path.rglob("*.*")), 1.2)


def test_the_committed_recordings_are_not_large(recordings):
    made = check_training_size(Config(), 5, 7, 120)
    compare(made, recordings["training"])
    assert forecast.when_large(made) == forecast.when_large(check_generation_size(Config(), 1, 10)) == ""
    assert forecast.when_large(check_generation_size(Config(), 16, 2, "long")) == ""


def test_a_large_recording_is_announced():
    made = check_training_size(Config(blocks=4, width=64, heads=4, context=64), 50, 7, 120)
    said = forecast.when_large(made)
    assert said.startswith("a large recording: up to ") and said.endswith(" MB")
    # Three tables, logits, gradients, attention of all updates; and 3.4 million parameters of 16 bytes each.
    assert " GiB of memory; it will be some 183 MB with its checkpoint" in said


@pytest.mark.parametrize(("config", "tokens", "updates", "says"), [
    (Config(width=768, heads=12), 5, 120, "GiB of memory"), (Config(width=128, context=1024), 1000, 1, "GiB of memory"),
    (Config(context=64), 60, 100_000, "GiB of memory"), (Config(blocks=97), 5, 1, "97 blocks are too many")])
def test_too_large_a_training_is_refused_with_what_to_choose(config, tokens, updates, says):
    with pytest.raises(UserError, match=says) as caught:
        check_training_size(config, tokens, 5, updates)
    assert "choose" in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_too_many_rounds_are_refused_with_how_many_may_be():
    with pytest.raises(UserError, match=r"max-new-tokens 10000 is too large to record .* choose at most") as caught:
        check_generation_size(Config(), 1, 10_000)
    most = int(str(caught.value).rpartition(" ")[2])
    check_generation_size(Config(), 1, most)
    with pytest.raises(UserError, match="choose at most"):
        check_generation_size(Config(), 1, most + 1)
    with pytest.raises(UserError, match="choose a model of a shorter context"):
        check_generation_size(Config(width=1600, heads=25), 1, 2)
    with pytest.raises(UserError, match="choose a model of a shorter context"):
        check_generation_size(Config(context=2**20), 2**20, 2, "long")


def test_nothing_is_done_for_what_is_refused(tokenizer, monkeypatch):
    monkeypatch.setattr(record_training_module, "TraceBuilder", lambda *a: pytest.fail("recording began"))
    with pytest.raises(UserError, match="too large to record"):
        record_training(TrainingJob(config=Config(width=4096, heads=2)), tokenizer)


def test_what_could_not_be_read_is_not_written(recordings, tmp_path, monkeypatch):
    monkeypatch.setattr("tracer.format.files.MOST_BYTES", 1000)
    with pytest.raises(UserError, match="of which 1,000 can be read: record less"):
        save(recordings["long"], tmp_path / "long.json")
    assert list(tmp_path.iterdir()) == []
