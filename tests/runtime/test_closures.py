"""Closures in unusual forms: called as the optimizer calls them, and judged by what they do."""

from __future__ import annotations

import functools
import inspect

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.functional import mse_loss  # noqa: E402

from zerograd import watch  # noqa: E402
from zerograd.runtime.closures import heard, takes_nothing  # noqa: E402


class Mine(torch.optim.Optimizer):
    """An optimizer of one's own, whose subclasses say how it steps."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.01})
        self.held = self.param_groups[0]["params"]

    @torch.no_grad()
    def descend(self, gradients=None, scale=1.0):
        for p, g in zip(self.held, gradients or [p.grad for p in self.held], strict=True):
            p.sub_(g, alpha=scale * 0.01)


class LineSearch(Mine):
    def step(self, closure):
        before = closure(True)
        kept = [p.grad.clone() for p in self.held]
        for scale in (8.0, 4.0, 2.0):
            self.descend(kept, scale)
            with torch.no_grad():
                if closure(backward=False) < before:
                    break
            self.descend(kept, -scale)


class AsksForLess(Mine):
    """Calls with a flag first, as one does who cannot know what the closure takes."""

    def step(self, closure):
        try:
            closure(False)
        except TypeError:
            closure()
            self.descend()


class GoesBackwardItself(Mine):
    def step(self, closure):
        for _ in range(2):
            closure().backward()
            self.descend()


class Curvature(Mine):
    """Adds a second backward onto the first, and takes what came by it."""

    def step(self, closure):
        closure().backward(create_graph=True)
        flat = torch.cat([p.grad.reshape(-1) for p in self.held])
        before = flat.detach().clone()
        flat.backward(gradient=torch.ones_like(before))
        self.descend([p.grad.detach() for p in self.held])
        for p in self.held:
            p.grad = None  # what is left of it holds on to the graph


class ClearsWhatItUsed(Mine):
    def step(self, closure):
        closure().backward()
        self.descend()
        self.zero_grad()


class Ignores(Mine):
    def step(self, closure=None):
        self.descend()


class ComparesLosses(Mine):
    @torch.no_grad()
    def step(self, closure):
        for p in self.held:
            p.data.add_(0.001)
        more = closure()
        for p in self.held:
            p.data.sub_(0.002)
        slope = (more - closure()) / 0.002
        for p in self.held:
            p.data.add_(0.001 - 0.001 * slope)


class Differentiates(Mine):
    def step(self, closure):
        self.descend(torch.autograd.grad(closure(), self.held))


def train(optimizer_of, clear=None, *, backward=False, flag=False, rounds=6):
    """Train; where `clear` is first or last, the loop or the closure clears there."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = optimizer_of(model.parameters())
    for _ in range(rounds):
        x, y = torch.randn(4, 3), torch.randn(4, 1)
        if backward:
            loss = mse_loss(model(x), y)
            loss.backward()

        def plain(x=x, y=y):
            if clear == "first":
                optimizer.zero_grad()
            return mse_loss(model(x), y)

        def closure():
            return plain()

        def flagged(backward=True):
            if not backward:
                return mse_loss(model(x), y)  # noqa: B023
            loss = plain()
            loss.backward()
            return loss

        optimizer.step(flagged if flag else closure)
        if clear == "last":
            optimizer.zero_grad()
    return [p.detach().clone() for p in model.parameters()]


RIGHT = {
    "a search that calls with a flag": (LineSearch, {"clear": "first", "flag": True}),
    "one that tries a flag": (AsksForLess, {"clear": "first", "flag": True}),
    "an optimizer that goes backward": (GoesBackwardItself, {"clear": "first"}),
    "one that goes backward twice": (Curvature, {}),
    "one that clears what it used": (ClearsWhatItUsed, {}),
    "one that ignores it": (Ignores, {"clear": "last", "backward": True}),
    "a loss that was sent back before": (torch.optim.Adam, {"clear": "last", "backward": True}),
    "one that compares losses": (ComparesLosses, {"clear": "first"}),
    "one that differentiates": (Differentiates, {"clear": "first"}),
}


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_closure_trains_the_same_in_silence(name):
    optimizer_of, options = RIGHT[name]
    alone = train(optimizer_of, **options)
    with watch(policy="collect", show_notes=True) as watching:
        watched = train(optimizer_of, **options)
    assert not watching.findings
    assert not watching.not_checked
    assert all(map(torch.equal, alone, watched))


FAULTY = {
    "an optimizer that goes backward": (GoesBackwardItself, {}, "ZG101"),
    "one that ignores it": (Ignores, {"backward": True}, "ZG101"),
    "a loss that was sent back before": (torch.optim.Adam, {"backward": True}, "ZG101"),
    "a search that calls with a flag": (LineSearch, {"flag": True}, "ZG101"),
    "nobody goes backward": (torch.optim.SGD, {"clear": "first"}, "ZG401"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_about_a_closure_is_found_at_the_step(name):
    optimizer_of, options, code = FAULTY[name]
    with watch(policy="collect") as watching:
        train(optimizer_of, **options)
    (finding,) = watching.findings
    text = inspect.getsource(train).splitlines()
    line = next(n for n, each in enumerate(text) if "optimizer.step(" in each)
    assert finding.rule.code == code
    assert finding.spot.line == inspect.getsourcelines(train)[1] + line
    assert finding.live.step <= 2


@pytest.mark.parametrize(
    ("optimizer_of", "closure"),
    [
        (torch.optim.SGD, lambda: None),  # Lightning hands this on where it is given no closure
        (torch.optim.SGD, lambda: torch.zeros(())),
        (AsksForLess, lambda: None),
    ],
)
def test_a_second_step_whose_closure_does_nothing_is_told(optimizer_of, closure):
    model = nn.Linear(3, 1)
    optimizer = optimizer_of(model.parameters())
    with watch(policy="collect") as watching:
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(2, 3)).sum().backward()
            optimizer.step(closure)
            optimizer.step(closure)
    (finding,) = watching.findings
    assert finding.rule.code == "ZG402"
    assert finding.live.step <= 2


def test_an_optimizer_that_compares_losses_uses_no_gradients_again():
    model = nn.Linear(3, 1)
    first, then = torch.optim.SGD(model.parameters(), lr=0.01), ComparesLosses(model.parameters())
    with watch(policy="collect") as watching:
        for _ in range(4):
            x, y = torch.randn(4, 3), torch.randn(4, 1)
            first.zero_grad()
            mse_loss(model(x), y).backward()
            first.step()
            then.step(lambda x=x, y=y: mse_loss(model(x), y))
    assert not watching.findings


def test_an_optimizer_of_ones_own_that_finds_nothing_is_told():
    model = nn.Linear(3, 1)
    optimizer = ClearsWhatItUsed(model.parameters())
    optimizer.descend = lambda: None  # it moves nothing without gradients
    with watch(policy="collect") as watching:
        for _ in range(4):
            optimizer.zero_grad()
            optimizer.step(lambda: torch.zeros((), requires_grad=True))
    assert [each.rule.code for each in watching.findings] == ["ZG401"]


def test_an_optimizer_that_asks_for_the_model_gets_it():
    class Asks(Mine):
        def step(self, model):
            assert model is mine
            self.descend()

    mine = nn.Linear(3, 1)
    optimizer = Asks(mine.parameters())
    with watch(policy="collect") as watching:
        for _ in range(4):
            mine(torch.randn(2, 3)).sum().backward()
            optimizer.step(mine)
    assert [each.rule.code for each in watching.findings] == ["ZG101"]


class Object:
    calls = 0

    def __call__(self, scale=1):
        self.calls += scale
        return self.calls


def nothing():
    return 7


def stand_in(closure):
    said = []
    return heard(closure, lambda: said.append("begins"), lambda _: said.append("returns")), said


def test_a_closure_keeps_its_class_its_attributes_and_its_arguments():
    mine = Object()
    closure, said = stand_in(mine)
    assert isinstance(closure, Object)
    assert closure(3) == closure.calls == 3
    closure.calls = 10
    assert closure(scale=1) == mine.calls == 11
    assert said == ["begins", "returns"] * 2
    del closure.calls
    assert mine.calls == 0


def test_a_closure_without_arguments_takes_none():
    closure, said = stand_in(nothing)
    assert closure() == 7
    assert inspect.signature(closure) == inspect.signature(nothing)
    assert closure.__name__ == "nothing"
    with pytest.raises(TypeError):
        closure(False)
    assert said == ["begins", "returns"]


def test_what_a_closure_raises_passes_and_it_can_be_called_again():
    fails = iter([True, False])

    def closure():
        if next(fails):
            raise StopIteration("mine")
        return 1

    called, said = stand_in(closure)
    with pytest.raises(StopIteration, match="mine"):
        called()
    assert called() == 1
    assert said == ["begins", "begins", "returns"]


@pytest.mark.parametrize(
    ("closure", "expected"),
    [
        (nothing, True),
        (functools.partial(lambda a: a, 1), True),
        (functools.partial(lambda a: a, a=1), False),
        (Object().__call__, False),
        (Object(), False),
        (lambda *args: args, False),
        (lambda *, flag=1: flag, False),
        (functools.wraps(nothing)(lambda *args: nothing(*args)), False),
        (torch.ones(1).sum, False),
    ],
)
def test_who_can_be_called_without_arguments_only(closure, expected):
    assert takes_nothing(closure) is expected
