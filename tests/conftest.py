"""What the tests share: pinned kernels, the committed recordings, and one recording made afresh."""

from tracer.kernels import pin_kernels

pin_kernels()  # before anything imports torch

from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402

from tracer import schema  # noqa: E402
from tracer.checkpoint import Checkpoint  # noqa: E402
from tracer.record_generation import GenerationJob, record_generation  # noqa: E402
from tracer.record_training import TrainingJob, record_training  # noqa: E402
from tracer.schema import Trace  # noqa: E402
from tracer.tokenizer import Tokenizer, gpt2  # noqa: E402

torch.set_num_threads(1)

TRACES = Path(__file__).resolve().parent.parent / "traces"


@dataclass(frozen=True)
class Recording:
    """Both recordings, made in this process as `python -m tracer record` makes them."""

    training: Trace
    checkpoint: Checkpoint
    generation: Trace


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return gpt2()


@pytest.fixture(scope="session")
def training_trace() -> Trace:
    """The committed recording.  Tests share it: copy before changing anything."""
    return schema.load(TRACES / "training.json")


@pytest.fixture(scope="session")
def generation_trace() -> Trace:
    """The committed recording.  Tests share it: copy before changing anything."""
    return schema.load(TRACES / "generation.json")


@pytest.fixture(scope="session")
def fresh(tokenizer) -> Recording:
    """Recorded once for all tests, which share it: copy before changing anything."""
    training, checkpoint = record_training(TrainingJob(), tokenizer)
    return Recording(training, checkpoint, record_generation(GenerationJob(), checkpoint, tokenizer))
