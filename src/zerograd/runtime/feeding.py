"""Events on their way to the judge, and the rides on which they need not go there."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, Protocol

from zerograd.lifecycle.events import Event
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Rule
from zerograd.runtime import hooks, ride, torch_facts, traced_calls
from zerograd.runtime.call_site import Sites
from zerograd.runtime.curves import Curves, Number, local_near
from zerograd.runtime.laps import Laps
from zerograd.runtime.memo import Memo, Symbol
from zerograd.runtime.ride import Call, Leg, Ride, Ring, Traced
from zerograd.runtime.rounds import Rounds
from zerograd.runtime.ways import Ways

MOST_SYMBOLS = 2048

Speak = Callable[[Finding, Event | None], None]


class TraceSink(Protocol):
    """Whatever takes events down: `zerograd.trace.writer.TraceWriter` does."""

    def write(
        self, event: Event, *, iteration: int, extra: Mapping[str, Any] | None = None
    ) -> None: ...


class Feeding:
    """Knows each event again, feeds it, and rides where the loop repeats itself.

    Args:
        speak: takes each finding as it comes, with the event that gave rise to it.
        trace: takes down each event, with the number of its round.
        word: puts an event into the user's names.
        come_back: called with the threads concerned when a ride has ended.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        speak: Speak,
        trace: TraceSink | None,
        word: Callable[[Event], Event],
        come_back: Callable[[set[int]], None],
    ) -> None:
        self.memo = Memo(rules)
        self.sites = Sites()
        self.symbols: dict[Any, Symbol] = {}
        self.rounds = Rounds()
        self.ways = Ways()
        self.ride: Ride | None = None
        self.counts = [0, 0, 0, 0]  # backwards, clears, steps, clips
        self._rounds_of_care = 0  # to come, after a ride
        self.may_ride: Callable[[], bool] = lambda: True
        self.set_canary: Callable[[Leg, Ring], None] = lambda leg, ring: None
        self.lose_what_varies: Callable[[Ring], None] = lambda ring: None
        self.protect: Callable[[Callable[..., None]], Callable[..., None]] = lambda act: act
        self._speak = speak
        self._trace = trace
        self.curves = Curves(trace)
        self.laps = Laps.of(trace)
        self._word = word
        self._come_back = come_back

    def forget(self) -> None:
        """Know no event any more: the buckets, or who holds them, have changed."""
        self.symbols.clear()
        self.rounds.forget()

    def new(self, key: Any, event: Event, call: Call | None = None) -> Symbol:
        """Return the symbol of an event met for the first time, known under `key`."""
        if len(self.symbols) >= MOST_SYMBOLS:
            self.forget()
        symbol = self.symbols[key] = Symbol(self.memo.complete(event), call)
        self.ways.note(symbol.event)
        return symbol

    def call_here(self, kind: int, holder: Any) -> Call | None:
        """Return how the hooks will know the call at hand again, once its site is found."""
        sites = self.sites
        if sites.code is None:
            return None
        call = Call(kind, ride.key_of(kind, holder), sites.hops + 1, sites.code, sites.at)
        if holder is not None:
            call.holder = weakref.ref(holder)
        return call

    def feed_by_hand(self, key: Any, event: Callable[[], Event]) -> None:
        """Feed something done by hand, known under `key`, made by `event` when it is new."""
        symbol = self.symbols.get(key)
        if symbol is None:
            symbol = self.new(key, event())
            symbol.is_by_hand = True
        self.feed(symbol)

    def feed(self, symbol: Symbol, name: str = "", number: Number | None = None) -> None:
        """Judge one event, and begin a ride if the loop has come round as ever.

        Args:
            name: what was measured with it, for a trace, and `number` how much.
        """
        memo = self.memo
        node = memo.node
        findings = memo.feed(symbol)
        edge = memo.edge
        if self._trace is not None:
            shown = self._shown(symbol)
            extra = self.curves.told(name, number, shown, memo.rounds) if name else None
            self._trace.write(shown, iteration=memo.rounds, extra=extra)
        if findings or (symbol.call is None and not symbol.is_by_hand):
            self.rounds.spoil()
        else:
            ring = self.rounds.passed(symbol, node, symbol.call, edge.window, edge.new_round)
            if edge.new_round:
                self._rounds_of_care = max(self._rounds_of_care - 1, 0)
            # A trace takes one round at a time, and is told what each of them fills.
            is_told = (
                ring is not None
                and (ring.together > 1 or bool(ring.varying))
                and self._trace is not None
            )
            if ring is not None and not is_told and self.may_ride():
                self._begin_ride(ring)
        for finding in findings:
            self._speak(finding, symbol.event)

    def _begin_ride(self, ring: Ring) -> None:
        trace = None
        for leg in ring.legs:
            self.set_canary(leg, ring)
            leg.simplify()
        if self._trace is not None:
            for symbol in ring.symbols:
                self._shown(symbol)
            trace = self._traced
        going = Ride(ring, self.protect(self.end_ride), self.protect(self._count_lap), trace)
        if hooks.set_ride(going):
            self.ride = going
            if self.laps is not None:
                going.has_norm = self.curves.has_norm
                self.laps.begin(going, self.memo.rounds)

    @property
    def _traced(self) -> Traced:
        laps, protect = self.laps, self.protect
        if laps is None:
            return Traced(protect(self._write_leg), _nothing, waits=False)
        return Traced(protect(self._note_number), protect(laps.ask), waits=True)

    def _shown(self, symbol: Symbol) -> Event:
        shown = symbol.shown
        if shown is None:
            shown = symbol.shown = self._word(symbol.event)
        return shown

    def _write_leg(self, leg: Leg, where: FrameType) -> None:
        """Tell a trace that does not wait of one call."""
        going, trace = self.ride, self._trace
        if going is None or trace is None:
            return
        rounds = self.memo.rounds + going.laps
        *before, last = leg.symbols
        extra = None
        has_number = leg.is_measured or self.curves.has_norm
        if has_number and self.curves.are_wanted_in(rounds):
            name, number = self._measure(leg.kind, where)
            extra = self.curves.told(name, number, last.shown or last.event, rounds)
        for symbol in before:
            trace.write(symbol.shown or symbol.event, iteration=rounds)
        trace.write(last.shown or last.event, iteration=rounds, extra=extra)

    def _note_number(self, leg: Leg, where: FrameType) -> None:
        """Measure what belongs to one call, for a trace that waits."""
        going, laps = self.ride, self.laps
        if going is None or laps is None:
            return
        going.has_norm = going.has_norm and leg.kind != ride.STEP
        if self.curves.are_under_way:
            laps.hand_over()  # a number that arrives stands after its event
        name, number = self._measure(leg.kind, where)
        if number is not None:
            event = leg.symbols[-1].shown or leg.symbols[-1].event
            extra = self.curves.told(name, number, event, self.memo.rounds + going.laps)
            if extra is not None:
                going.extras[going.number_of(leg)] = extra

    def _measure(self, kind: int, where: FrameType) -> tuple[str, Number | None]:
        """Measure what belongs to a call that is ticked off: no hook has its arguments at hand."""
        curves = self.curves
        if kind == ride.BACKWARD:
            roots = local_near(where, torch_facts.ENGINE_CODE, torch_facts.ENGINE_ROOTS)
            return "loss", curves.loss(roots or ())
        if kind == ride.CLIP:
            norm = local_near(where, traced_calls.CLIP_CODE, "norm")
            return "grad_norm", curves.take("norm", norm)
        return "grad_norm", curves.held_norm() if kind == ride.STEP else None

    def _count_lap(self) -> None:
        if self.ride is None:
            return
        for event, window in self.ride.ring.windows:
            for finding in self.memo.count(event, window):
                if self.laps is not None:
                    self.laps.hand_over()  # what led to it stands before it
                self._speak(finding, event)

    def end_ride(self) -> None:
        """Come back to the loop as it is now."""
        going, self.ride = self.ride, None
        hooks.set_ride(None)
        if going is None:
            return
        going.is_going = False
        if self.laps is not None:
            self.laps.end()
        for kind, count in enumerate(going.ring.ticked(going.laps, going.leg)):
            self.counts[kind] += count
        if going.leg is not going.ring.legs[0]:
            for event, window in going.ring.closed_before(going.leg):
                for finding in self.memo.count(event, window):
                    self._speak(finding, event)
        self.memo.rounds += going.rounds
        self.memo.node = self.memo.before = going.node
        if going.ring.varying:
            self.lose_what_varies(going.ring)
        self._rounds_of_care = going.ring.together
        if going.leg is going.ring.legs[0]:
            self.rounds.resume(going.ring)
        else:
            self.rounds.leave(going.ring, going.laps)
        self._come_back({going.thread, threading.get_ident()})

    @property
    def is_lap_of_care(self) -> bool:
        """Is it time to look closely at what the ride before did not see?"""
        return self._rounds_of_care > 0

    @property
    def totals(self) -> tuple[int, int, int, int]:
        """How many backwards, clears, steps and rounds there were, the one under way included."""
        counts, rounds, going = list(self.counts), self.memo.rounds, self.ride
        if going is not None:
            ticked = going.ring.ticked(going.laps, going.leg)
            counts = [a + b for a, b in zip(counts, ticked, strict=True)]
            rounds += going.rounds
        return counts[ride.BACKWARD], counts[ride.CLEAR], counts[ride.STEP], rounds + any(counts)


def _nothing() -> None:
    return None
