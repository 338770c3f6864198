"""A model and its tokenizer from wherever they are: our checkpoints, or a GPT-2 of the Hugging Face kind."""

from pathlib import Path

from tracer.errors import UserError
from tracer.model.gpt import GPT
from tracer.model.gpt2_files import VOCABULARY_SIZE
from tracer.model.pretrained import drop_padding, from_pretrained
from tracer.model.text_tokenizer import TextTokenizer
from tracer.model.tokenizer import gpt2
from tracer.recording.checkpoint import load_checkpoint
from tracer.trainer.checkpoints import find_run, load_run


def load_model(source: str) -> GPT:
    """The model of `source`, in eval mode and not explicit.

    `source`: a checkpoint file of ours, the folder of a run (its best checkpoint), the folder of a GPT-2
    checkpoint, or its name in the local Hugging Face cache; of its vocabulary the part that has a text
    (`drop_padding`).  Raises `UserError` when it cannot be read.
    """
    if (run := find_run(Path(source))) is not None:
        return load_run(run).model()
    if not Path(source).is_file():
        return drop_padding(from_pretrained(source))
    model = load_checkpoint(Path(source)).model
    model.explicit = False
    return model.eval()


def tokenizer_of(source: str, model: GPT) -> TextTokenizer:
    """The tokenizer that `source` was trained with.  Raises `UserError` when it is not known."""
    if (run := find_run(Path(source))) is not None:
        return load_run(run).tokenizer
    if model.config.vocabulary != VOCABULARY_SIZE:
        raise UserError(f"{source} has a vocabulary of {model.config.vocabulary}, GPT-2's tokenizer has "
                        f"{VOCABULARY_SIZE}: only a model of that vocabulary can read a text")
    return gpt2()
