"""A kind is enough to train with: what a norm or an activation states in its file is all that a model needs of it."""

import ast
import html
import inspect
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from runs import ALONE
from test_derive import derived
from variants import NEW_NORM, a_new_norm, recorded, small

from site_builder.build import build
from site_builder.language import languages
from site_builder.notation import source
from site_builder.source import torch_sources
from tracer.errors import UserError
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.sizes import parameter_count
from tracer.format.verify import SAFETY, verify
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.layers import make_activation, make_norm
from tracer.model.pretrained import save_pretrained
from tracer.ops import KINDS, Computation, evaluate, expand_ellipsis
from tracer.ops.language import ELLIPSIS
from tracer.ops.registry import kinds_for
from tracer.trainer.checkpoints import load_run, save_run
from tracer.trainer.fit import Fit
from tracer.trainer.settings import LAST

ROOT = Path(__file__).resolve().parent.parent
CONFIG = Config(vocabulary=31, context=12, width=24, heads=3, blocks=2, dropout=0.0)
PLACES = [(place, kind) for place in ("activation", "norm") for kind in (*kinds_for(place), NEW_NORM)
          if kind != NEW_NORM or place == "norm"]


@pytest.fixture(params=PLACES, ids=lambda pair: pair[1])
def config(request):
    """A shape for every kind that a setting names, and for one that is written for the length of the test."""
    place, kind = request.param
    with a_new_norm():
        yield replace(CONFIG, **{place: kind})


@pytest.fixture
def module(request, config) -> torch.nn.Module:
    """The module of that kind in such a model."""
    place, _ = request.node.callspec.params["config"]
    return {"norm": make_norm, "activation": make_activation}[place](config)


def operands_of(module: torch.nn.Module, x: torch.Tensor, **other: torch.Tensor) -> dict[str, np.ndarray]:
    """What the equations of the module's kind read, with the statistics that the kind makes too."""
    known = {**{name: one.detach().double().numpy() for name, one in {"x": x, **other}.items()},
             **{name: parameter.detach().double().numpy() for name, parameter in module.named_parameters()}}
    for name, equations in KINDS[module.kind].targets.items():
        if not name.startswith("d_"):
            shape = x.shape[:1] if equations[-1].index == [ELLIPSIS] and KINDS[module.kind].parameters else x.shape
            known[name] = run(equations, known, module, shape).value
    return known


def run(equations, known, module, shape):
    equations = expand_ellipsis(equations, ["i"] if KINDS[module.kind].parameters else ["i", "j"])
    made = {equation.name for equation in equations}
    needed = {name: known[name] for equation in equations for name, _ in equation.reads if name not in made}
    return evaluate(Computation(equations, needed, getattr(module, "settings", {}), tuple(shape)))


def test_a_module_computes_what_its_equations_say(module):
    """Forward and backward: the PyTorch form against the equations and against the gradients, stated or derived."""
    torch.manual_seed(1)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    read = {name: torch.randn(5, 24, requires_grad=True) for name in KINDS[module.kind].operands("out")
            if name not in (*KINDS[module.kind].parameters, *KINDS[module.kind].targets)}
    d_out = torch.randn(5, 24)
    out = module(**read)
    out.backward(d_out)
    known = operands_of(module, **read) | {"d_out": d_out.double().numpy()}
    made = {"out": out} | {f"d_{name}": p.grad for name, p in (*read.items(), *module.named_parameters())}
    for target, found in made.items():
        for equations in (KINDS[module.kind].targets[target],
                          *(derived(module.kind, target[2:]).values() if target != "out" else ())):
            wanted = run(equations, known, module, found.shape)
            error = np.abs(found.detach().numpy() - wanted.value)
            assert (error <= SAFETY * wanted.error + 1e-7).all(), target


def test_both_forms_of_a_model_agree_and_its_parameters_are_counted(config):
    torch.manual_seed(3)
    explicit, fused = GPT(config).double(), GPT(config, explicit=False).double()
    with torch.no_grad():
        for parameter in explicit.parameters():
            parameter.mul_(5).add_(0.1 * torch.randn_like(parameter))
    fused.load_state_dict(explicit.state_dict())
    ids = torch.randint(31, (2, 12), generator=torch.Generator().manual_seed(1))
    losses = [model(ids, ids)[1] for model in (explicit, fused)]
    for loss in losses:
        loss.backward()
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-12, atol=0)
    for ours, theirs in zip(fused.parameters(), explicit.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-9, atol=1e-12)
    assert explicit.parameter_count() == parameter_count(config)


def test_parameters_start_as_they_should(module):
    for name, parameter in module.named_parameters():
        assert parameter.shape == (24,) and bool((parameter == (1 if name == "weight" else 0)).all())


def test_the_config_says_a_kind_where_it_differs(config):
    said = config.to_json()
    assert set(said) - set(CONFIG.to_json()) == {place for place in ("norm", "activation")
                                                 if getattr(config, place) != getattr(Config, place)}
    assert Config(**said) == config


def test_a_page_shows_the_lines_of_pytorch(module):
    kind = module.kind
    torch_sources.cache_clear()
    shown = torch_sources()[kind]
    torch_sources.cache_clear()
    ast.parse(shown)
    assert "def " in shown and (KINDS[kind].torch is None or shown == inspect.getsource(KINDS[kind].torch).rstrip())


@pytest.mark.parametrize(("place", "known"), [("norm", "layer_norm"), ("activation", "gelu, gelu_tanh")])
def test_an_unknown_kind_is_refused_in_one_line(place, known):
    for kind in ("relu", "softmax", "linear", ""):
        with pytest.raises(UserError, match=rf"^{place} must be one of .*{known}.*, not '{kind}'$"):
            replace(CONFIG, **{place: kind})


def test_what_gpt2_has_no_word_for_is_not_exported(tmp_path):
    wrong = "norm length_norm cannot be said in the format of GPT-2"
    with a_new_norm() as config, pytest.raises(UserError, match=wrong):
        save_pretrained(GPT(config, explicit=False), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_is_trained_with_another_norm_and_resumed(settings):
    with a_new_norm():
        settings = replace(settings, norm=NEW_NORM, activation="gelu_tanh")
        run = Fit(settings, ALONE)
        losses = []
        run.run(lambda update: losses.append(update.loss))
        assert run.model.config.norm == NEW_NORM and losses[-1] < losses[0]
        assert 'norm = "length_norm"' in settings.to_toml()
        with pytest.raises(UserError, match="has norm length_norm, the settings say layer_norm: resume with norm"):
            Fit(replace(settings, norm="layer_norm"), ALONE, resume=True)
        assert Fit(settings, ALONE, resume=True).done == settings.updates


def test_a_run_that_was_saved_before_kinds_were_settings_is_gone_on_with(settings):
    Fit(settings, ALONE).run()
    path = Path(settings.output) / LAST
    saved = load_run(path)
    said = saved.settings.without_place()
    older = {name: value for name, value in said.items() if name not in ("activation", "norm")}
    saved.settings = SimpleNamespace(without_place=lambda: older)
    save_run(saved, [path])
    assert load_run(path).settings == settings
    assert Fit(settings, ALONE, resume=True).done == settings.updates


@pytest.mark.parametrize("change", [{"activation": "gelu_tanh"}, {"norm": "rms_norm"}], ids=str)
def test_a_kind_is_recorded_verified_and_shown(change, tokenizer, tmp_path):
    traces = recorded(small(**change), tokenizer)
    kind = next(iter(change.values()))
    for route, trace in traces.items():
        save(trace, tmp_path / "traces" / f"{route}.json")
        assert [check for check in verify(load(tmp_path / "traces" / f"{route}.json")) if check.problem] == []
        assert any(operation.kind == kind for operation in trace.operations.values()), route
    site = build(tmp_path / "traces", tmp_path / "site").parent
    for code, language in languages().items():
        page = html.unescape((site / code / "training.html").read_text("utf-8"))
        for key in (kind, f"{kind}, backward"):
            assert language.prose[key].title in page, key
        assert source(kind, language) in page


# RMSNorm, the worked example ---------------------------------------------------------------------------

def test_rms_norm_and_its_gradients_are_those_of_torch():
    """`torch.nn.RMSNorm` with autograd, against our module and against the gradients derived from our equations."""
    torch.manual_seed(4)
    theirs, ours = torch.nn.RMSNorm(24, eps=1e-5).double(), make_norm(replace(CONFIG, norm="rms_norm")).double()
    torch.nn.init.normal_(theirs.weight)
    ours.load_state_dict(theirs.state_dict())
    x, d_out = torch.randn(5, 24).double(), torch.randn(5, 24).double()
    made = []
    for module in (theirs, ours):
        leaf = x.clone().requires_grad_()
        out = module(leaf)
        out.backward(d_out)
        made.append({"out": out.detach(), "d_x": leaf.grad, "d_weight": module.weight.grad})
    known = operands_of(ours, x) | {"d_out": d_out.numpy()}
    for target, wanted in made[0].items():
        torch.testing.assert_close(made[1][target], wanted, rtol=1e-12, atol=1e-12)
        found = run(KINDS["rms_norm"].targets[target], known, ours, wanted.shape)
        np.testing.assert_allclose(found.value, wanted.numpy(), rtol=1e-11, atol=1e-12)


def test_rms_norm_is_two_files_of_forty_lines():
    # Others' models have it; and what torch keeps of it for the way back is known where torch is not.
    named = {ROOT / file for file in ("tracer/format/shapes.py", "tracer/model/pretrained_config.py",
                                      "tracer/format/memory.py")}
    every = [path for folder in ("tracer", "site_builder", "static", "templates") for path in (ROOT / folder).rglob("*")
             if path.suffix in (".py", ".md", ".toml", ".js", ".html")]
    of_course = {path for path in every if "lessons" in path.parts or path.name == "glossary.toml"}  # of every kind
    files = [path for path in every if path not in named | of_course
             and re.search(r"(?i)rms.?norm", path.read_text("utf-8"))]
    assert files == [ROOT / "tracer/ops/rms_norm.py", ROOT / "site_builder/languages/rms_norm.md"]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= 40


def names(place: str) -> str:
    return ", ".join(sorted(kind for kind, one in KINDS.items() if one.place == place))


def test_the_command_line_takes_a_kind_and_refuses_another(command, tmp_path):
    status, _, told = command("record", "--norm", "softmax", "--output", tmp_path / "out")
    assert status == 2 and told.strip() == f"error: norm must be one of {names('norm')}, not 'softmax'"
    status, _, told = command("fit", "--activation", "dropout", "--output", tmp_path / "out")
    assert status == 2 and told.strip() == f"error: activation must be one of {names('activation')}, not 'dropout'"
    assert not (tmp_path / "out").exists()
    status, said, _ = command("record", "--norm", "rms_norm", "--activation", "gelu_tanh", "--updates", 1, "--width", 4,
                              "--blocks", 1, "--text", "a", "--validation-text", "a", "--prompt", "a",
                              "--max-new-tokens", 1, "--output", tmp_path / "out")
    assert status == 0 and "wrote" in said
    config = load(tmp_path / "out" / "generation.json").make["config"]
    assert (config["norm"], config["activation"]) == ("rms_norm", "gelu_tanh")
