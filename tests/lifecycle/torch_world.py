"""A small world of real tensors in which programs of clears, backwards and steps are run.

Backward number k adds exactly 2**k to each parameter it reaches, so the number in
`.grad` says which backwards are in the bucket, and the change of a weight says
which of them a step has used. Nothing here asks the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.machine import advance
from zerograd.lifecycle.state import INITIAL, MOST_CONTRIBUTIONS, BucketState, Phase

MOST_BACKWARDS = 50  # 2**52 is still exact in float64


@dataclass(frozen=True)
class Layout:
    """How many parameters there are, and which of them each holder holds."""

    parameters: int
    optimizers: tuple[tuple[int, ...], ...]
    modules: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Move:
    """One statement of a program. `who` is taken modulo how many there are."""

    kind: str
    who: int = 0
    on: tuple[int, ...] = ()
    zero: bool = False  # clears: to zero instead of to None
    inner: tuple[Move, ...] = ()  # closures: their body


def bits(number: float) -> frozenset[int]:
    """Return the backwards that a sum of powers of two is made of."""
    whole = int(number)
    assert whole == number >= 0
    return frozenset(k for k in range(whole.bit_length()) if whole >> k & 1)


@dataclass
class Truth:
    """What was really seen of one parameter."""

    inside: frozenset[int] = frozenset()
    used: dict[str, frozenset[int]] = field(default_factory=dict)  # owner -> backwards it used

    def phase(self, owner: str) -> Phase:
        used = self.used.get(owner, frozenset()) & self.inside
        if not self.inside:
            return Phase.EMPTY
        if used == self.inside:
            return Phase.SPENT
        return Phase.STALE if used else Phase.FRESH


class World:
    """Runs a program on real tensors and tells the machine of it, event by event."""

    def __init__(self, layout: Layout) -> None:
        self.names = [f"p{n}" for n in range(layout.parameters)]
        self.parameters = [nn.Parameter(torch.zeros((), dtype=torch.float64)) for _ in self.names]
        self.held = {f"opt{n}": each for n, each in enumerate(layout.optimizers)}
        self.optimizers = {
            owner: torch.optim.SGD([self.parameters[n] for n in each], lr=1.0)
            for owner, each in self.held.items()
        }
        self.modules = [
            (each, nn.ParameterList([self.parameters[n] for n in each])) for each in layout.modules
        ]
        self.count = 0
        self.fills: dict[int, frozenset[str]] = {}  # by backward: the owners that it filled
        self.shared: set[int] = set()  # backwards on which one of these has stepped since
        self.states = dict.fromkeys(self.names, INITIAL)
        self.truth = [Truth() for _ in self.names]

    def run(self, program: Sequence[Move]) -> None:
        """Run the program, comparing machine and tensors after every event."""
        for move in program:
            for event in self._do(move):
                self.tell(event)

    def tell(self, event: Event) -> None:
        if event.kind is EventKind.STEP:
            self.shared |= {n for n, owners in self.fills.items() if event.owner in owners}
        for name, state in self.states.items():
            self.states[name] = advance(state, event, name)
        self._look()
        for name, state in self.states.items():
            self.compare(name, state)

    def _look(self) -> None:
        for parameter, truth in zip(self.parameters, self.truth, strict=True):
            truth.inside = bits(0.0 if parameter.grad is None else parameter.grad.item())

    def compare(self, name: str, state: BucketState) -> None:
        number = self.names.index(name)
        grad, truth = self.parameters[number].grad, self.truth[number]
        assert state.absent == (grad is None)
        told = [int(each.backward) for each in state.contributions]
        assert told == sorted(told), "not in order of arrival"
        owners = [owner for owner, held in self.held.items() if number in held]
        for owner in owners:
            assert state.phase(owner) is truth.phase(owner)
        if len(truth.inside) > MOST_CONTRIBUTIONS:
            assert len(told) == MOST_CONTRIBUTIONS and truth.inside.issuperset(told)
            return
        assert truth.inside == set(told)
        for each in state.contributions:
            really = {o for o in owners if int(each.backward) in truth.used.get(o, frozenset())}
            assert each.used_by & set(owners) == really

    def _do(self, move: Move) -> Iterator[Event]:
        actions: dict[str, Callable[[Move], Iterator[Event]]] = {
            "clear_optimizer": self._clear_optimizer,
            "clear_module": self._clear_module,
            "clear_parameter": self._clear_parameter,
            "backward": self._backward,
            "assign": self._assign,
            "clip": self._clip,
            "step": self._step,
            "closure": self._closure,
            "lbfgs": self._lbfgs,
        }
        return actions[move.kind](move)

    def _owner(self, move: Move) -> str:
        return list(self.held)[move.who % len(self.held)]

    def _event(self, kind: EventKind, owner: str, numbers: Sequence[int], **more: object) -> Event:
        self.line = getattr(self, "line", 0) + 1
        buckets = tuple(self.names[n] for n in numbers)
        return Event(kind, owner, Spot("program.py", self.line), buckets, **more)  # type: ignore[arg-type]

    def _reached(self, move: Move) -> list[int]:
        return sorted({n % len(self.names) for n in move.on})

    def _clear_optimizer(self, move: Move) -> Iterator[Event]:
        owner = self._owner(move)
        dropped = self._unused(self.held[owner])
        self.optimizers[owner].zero_grad(set_to_none=not move.zero)
        event = self._event(EventKind.CLEAR, owner, self.held[owner], to_none=not move.zero)
        yield event
        self._compare_lost(dropped, event)

    def _clear_module(self, move: Move) -> Iterator[Event]:
        numbers, module = self.modules[move.who % len(self.modules)]
        dropped = self._unused(numbers)
        module.zero_grad(set_to_none=not move.zero)
        event = self._event(EventKind.CLEAR, "module", numbers, to_none=not move.zero)
        yield event
        self._compare_lost(dropped, event)

    def _clear_parameter(self, move: Move) -> Iterator[Event]:
        for number in self._reached(move):
            parameter = self.parameters[number]
            if not move.zero:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.zero_()
            yield self._event(EventKind.CLEAR, "", [number], to_none=not move.zero)

    def _unused(self, numbers: Sequence[int]) -> dict[int, bool]:
        """For each of these parameters: does it hold a backward that no step at all has used?"""
        everywhere = frozenset[int]().union(*(u for t in self.truth for u in t.used.values()))
        held = frozenset[int]().union(*self.held.values())
        # What nobody holds is excused by a step of an optimizer that the same loss has filled.
        return {
            n: bool(self.truth[n].inside - everywhere - (set() if n in held else self.shared))
            for n in numbers
        }

    def _compare_lost(self, dropped: dict[int, bool], event: Event) -> None:
        for number, unused in dropped.items():
            state = self.states[self.names[number]]
            fresh = state.lost is not None and state.lost.clear == event.spot
            if fresh:
                assert unused, "said to be lost, and some step had used it"
            if len(self.held) == 1:
                assert fresh == unused  # with more, one that shares the loss may excuse it

    def _backward(self, move: Move) -> Iterator[Event]:
        numbers = self._reached(move)
        if not numbers or self.count >= MOST_BACKWARDS:
            return
        loss = sum(self.parameters[n] * 2.0**self.count for n in numbers)
        assert isinstance(loss, torch.Tensor)
        loss.backward()
        yield self._filled(EventKind.BACKWARD, numbers)

    def _assign(self, move: Move) -> Iterator[Event]:
        for number in self._reached(move):
            if self.count >= MOST_BACKWARDS:
                return
            self.parameters[number].grad = torch.tensor(2.0**self.count, dtype=torch.float64)
            yield self._filled(EventKind.ASSIGN, [number])

    def _filled(self, kind: EventKind, numbers: Sequence[int]) -> Event:
        fills = frozenset(o for o, held in self.held.items() if set(held) & set(numbers))
        event = self._event(kind, "", numbers, backward=str(self.count), fills=fills)
        self.fills[self.count] = fills
        self.count += 1
        return event

    def _clip(self, move: Move) -> Iterator[Event]:
        owner = self._owner(move)
        numbers = self.held[owner]
        torch.nn.utils.clip_grad_norm_([self.parameters[n] for n in numbers], float("inf"))
        yield self._event(EventKind.CLIP, owner, numbers)

    def _step(self, move: Move) -> Iterator[Event]:
        yield self._stepped(self._owner(move), lambda owner: self.optimizers[owner].step())

    def _closure(self, move: Move) -> Iterator[Event]:
        owner = self._owner(move)

        def body() -> float:
            self.run(move.inner)
            self._rest()  # weights to zero, so that their change is what the step used
            return 0.0

        yield self._stepped(owner, lambda owner: self.optimizers[owner].step(body))

    def _stepped(self, owner: str, step: Callable[[str], object]) -> Event:
        self._rest()
        step(owner)
        for number in self.held[owner]:
            self._use(owner, number, -self.parameters[number].item())
        return self._event(EventKind.STEP, owner, self.held[owner])

    def _rest(self) -> None:
        with torch.no_grad():
            for parameter in self.parameters:
                parameter.zero_()

    def _use(self, owner: str, number: int, amount: float) -> None:
        # `+ 0.0` turns the -0.0 of an untouched weight into 0.0
        used = self.truth[number].used
        used[owner] = used.get(owner, frozenset()) | bits(amount + 0.0)

    def _lbfgs(self, move: Move) -> Iterator[Event]:
        """LBFGS calls its closure several times; each return hands the gradients over."""
        owner = self._owner(move)
        numbers = self.held[owner]
        parameters = [self.parameters[n] for n in numbers]
        optimizer = torch.optim.LBFGS(parameters, lr=1e-9, max_iter=2)

        def body() -> torch.Tensor:
            self.run(move.inner)
            for number in numbers:
                grad = self.parameters[number].grad
                self._use(owner, number, 0.0 if grad is None else grad.item())
            self.tell(self._event(EventKind.STEP, owner, numbers))
            return torch.zeros((), dtype=torch.float64)

        optimizer.step(body)
        yield from ()
