"""What the recorder says of random graphs, against the same graphs run with a probe at every value and use.

A probe is a leaf of zeros that is added: its gradient is that of the value, or the part through that use.
`TWO_ROUTES_TRIALS` multiplies the number of graphs.
"""

import gc
import os
import weakref

import pytest
import torch
from torch import nn

from tracer.recording.recorder import Recorder

GRAPHS = 40 * int(os.environ.get("TWO_ROUTES_TRIALS", "1"))


class Marked(nn.Module):
    """Marks what it made before it uses it itself."""

    def __init__(self):
        super().__init__()
        self.mark = lambda value, output="": value


class Scale(Marked):
    """Its result is saved by nobody, so that it may be changed in place."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.randn(()))

    def forward(self, a):
        return self.mark(a * self.factor)


class Tanh(Marked):
    def forward(self, a):
        return self.mark(a.tanh())


class Pieces(Marked):
    """Reads its argument by three operations, as a plain RMSNorm does."""

    def forward(self, a):
        return self.mark(a * (a.pow(2).mean(-1, keepdim=True) + 0.1).rsqrt() + 0.1 * a.sin())


class Two(Marked):
    def __init__(self):
        super().__init__()
        self.linear_weight = nn.Parameter(torch.randn(3, 3))

    def forward(self, a, b):
        return self.mark((a @ self.linear_weight).tanh() * b.sin() + 0.5 * b)  # stays finite in any graph


class OwnOutput(Marked):
    """Uses what it returns itself."""

    def forward(self, a):
        out = self.mark(a.cos(), ".0")
        return out, self.mark(out.abs() * 0.5, ".1")


class Penalty(Marked):
    """Keeps penalties of its argument and of its result, for the loss."""

    def forward(self, a):
        out = self.mark(a * 0.7)
        self.penalties = [(a.sin() ** 2).mean(), (out.cos() ** 3).mean()]
        return out


class InPlace(Marked):
    def forward(self, a):
        return self.mark(a.mul_(0.9).add_(0.1))


class Inner(Marked):
    """Contains a module and computes with its argument itself too."""

    def __init__(self):
        super().__init__()
        self.tanh = Tanh()

    def forward(self, a):
        return self.mark(self.tanh(a * 2) + a)


class Program(nn.Module):
    """Random modules, each on earlier values; `plan`: (module, names of what it reads, what is done beside)."""

    def __init__(self, seed: int):
        super().__init__()
        self.random = random = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.first = Scale()
        kinds = [Scale, Tanh, Pieces, Two, OwnOutput, Penalty, InPlace, Inner]
        count = self.draw(6) + 4
        self.steps = nn.ModuleList([kinds[self.draw(len(kinds))]() for _ in range(count)])
        self.order = [*range(count), *(self.draw(count) for _ in range(3))]  # some are called again
        self.hook_penalties = []
        if self.draw(2):
            self.steps[self.draw(count)].register_forward_hook(lambda module, args, out: self.hook_penalties.append(
                sum((part.sin() ** 2).sum() for part in (out if isinstance(out, tuple) else (out,)))))
        self.draws = torch.randint(0, 1 << 30, (1000,), generator=random).tolist()

    def draw(self, end: int) -> int:
        return int(torch.randint(end, (), generator=self.random))

    def forward(self, x, probe):
        draws = iter(self.draws)
        self.hook_penalties.clear()
        times, penalties = {}, []

        def call(module, path, *names):
            times[path] = times.get(path, 0) + 1
            path += f"#{times[path]}" if times[path] > 1 else ""
            arguments = dict(zip("ab", names, strict=False))
            given = [probe(("use", path, a, name), pool[name]) for a, name in arguments.items()]
            if len(names) == 2 and names[0] == names[1]:
                given[1] = given[0]
            module.mark = lambda value, output="": probe(("value", path + output), value)
            out = module(*given)
            penalties.extend(getattr(module, "penalties", ()))
            parts = out if isinstance(out, tuple) else (out,)
            made = [path + (f".{i}" if isinstance(out, tuple) else "") for i in range(len(parts))]
            pool.update(zip(made, parts, strict=True))
            return made

        pool = {"x": x}
        fresh = call(self.first, "first", "x")
        del pool["x"]
        for k in self.order:
            module, path = self.steps[k], f"steps.{k}"
            some = list(pool)
            if isinstance(module, InPlace):
                fresh = call(self.first, "first", some[next(draws) % len(some)])
                fresh = call(module, path, fresh[0])
                del pool[next(reversed([n for n in pool if n.startswith("first")]))]  # it holds another value now
                continue
            names = [some[next(draws) % len(some)] for _ in range(2 if isinstance(module, Two) else 1)]
            fresh = call(module, path, *names)
            if next(draws) % 6 == 0:
                pool[fresh[0]].register_hook(lambda gradient: gradient * 3)
            if next(draws) % 6 == 0:
                penalties.append(pool[fresh[0]].cos().exp().mean())  # outside of every step
        return sum(value.sin().sum() for value in pool.values()) + sum(penalties) + sum(self.hook_penalties)


def probed(program: Program, x: torch.Tensor):
    """Gradients by value, and parts by use, from a run without a recorder."""
    probes = {}

    def probe(key, value):
        probes[key] = torch.zeros_like(value, requires_grad=True)
        return value + probes[key]

    loss = program(x, probe)
    parts = torch.autograd.grad(loss, list(probes.values()), allow_unused=True)
    return {key: part for key, part in zip(probes, parts, strict=True) if part is not None}


@pytest.mark.parametrize("part", range(4))
def test_gradients_and_parts_of_random_graphs(part):
    seen = set()
    for seed in range(part * GRAPHS // 4, (part + 1) * GRAPHS // 4):
        program = Program(seed).double()
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
        expected = probed(program, x)
        with Recorder(program) as recorder:
            recorder.name_input(x, "x")
            program(x, lambda key, value: value).backward()
        totals = {key[1]: value for key, value in expected.items() if key[0] == "value"}
        inner = {name for name in recorder.gradients if not name or "tanh" in name}
        assert recorder.gradients.keys() - inner == totals.keys(), seed
        for name, total in totals.items():
            torch.testing.assert_close(recorder.gradients[name], total, msg=f"{seed} {name}")
        uses = {key[1:3]: value for key, value in expected.items() if key[0] == "use"}
        recorded = {use: value for use, value in recorder.use_gradients.items() if "tanh" not in use[0]}
        assert recorded.keys() == uses.keys(), seed
        for use, value in uses.items():
            torch.testing.assert_close(recorded[use], value, msg=f"{seed} {use}")
        said = {notice.about for notice in recorder.notices}
        read = {name: [v for k, v in expected.items() if k[0] == "use" and k[3] == name] for name in totals}
        for name, parts in read.items():
            whole = bool(parts) and torch.allclose(sum(parts), totals[name], rtol=1e-9, atol=1e-12)
            assert not parts or whole or name in said, (seed, name)
            seen |= {"whole" if whole else "said" if parts else "unread"}
        seen |= {"pieces"} if max(recorder.pieces.values()) > 1 else set()
    assert seen == {"whole", "said", "unread", "pieces"}  # the graphs have something to show


def test_recording_random_graphs_changes_no_bit():
    """In float32, where another order of additions would show."""
    for seed in range(GRAPHS):
        results = []
        for recorded in (False, True):
            program = Program(seed)
            x = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed), requires_grad=True)
            with Recorder(program) if recorded else torch.enable_grad():
                loss = program(x, lambda key, value: value)
                loss.backward()
            results.append([loss.detach(), x.grad, *(p.grad for p in program.parameters() if p.grad is not None)])
        assert len(results[0]) == len(results[1])
        assert all(torch.equal(a, b) for a, b in zip(*results, strict=True)), seed


def test_nothing_of_the_recorder_is_left_when_the_loss_is_kept():
    losses, watches = [], []
    for seed in range(GRAPHS // 4):
        program = Program(seed)
        hooks = [(dict(m._forward_hooks), dict(m._forward_pre_hooks)) for m in program.modules()]
        x, made = torch.randn(4, 3, requires_grad=True), []
        with Recorder(program) as recorder:
            losses.append(program(x, lambda key, value, made=made: made.append(value) or value))
        assert [(dict(m._forward_hooks), dict(m._forward_pre_hooks)) for m in program.modules()] == hooks
        losses[-1].backward(retain_graph=True)
        assert recorder.gradients == recorder.use_gradients == {}
        assert not any(value.retains_grad for value in made)
        watches += map(weakref.ref, [recorder, *recorder.values.values()])
    del recorder
    gc.collect()
    assert not any(watch() is not None for watch in watches)
