"""Riding along: in a loop that has come round the same way often enough, calls are only ticked off.

The hooks then compare each call with the one that is due, by the object called or, where
that does not tell, by the user's frame, and nothing else happens. A call that is not the
one due ends the ride, and so does every fourth lap, which is watched with full care, later
every sixteenth; where all is done in calls, nothing to `.grad` by hand, and every round fills
the same gradients, every 256th. So a new order of calls is seen at once, and work by hand soon
after it begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from sys import _getframe
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType
from typing import Any
from weakref import ref

from zerograd.lifecycle.events import Event
from zerograd.lifecycle.window import Window
from zerograd.runtime import torch_facts
from zerograd.runtime.memo import Node, Symbol

LAPS = 3  # between two rounds of full care, at first; each ride then takes twice as long
MOST_LAPS = 255  # where nothing is done by hand, and all rounds fill the same
MOST_UNCERTAIN = 15
AT_ONCE = 32  # laps, all but the last counted with no call of ours

BACKWARD, CLEAR, STEP, CLIP = range(4)


class _Gone:
    pass


GONE: Callable[[], Any] = ref(_Gone())  # refers to nothing any more


def key_of(kind: int, holder: Any) -> int:
    """Return one number for a call: a backward and a clip have no holder that could be told."""
    return kind if holder is None else id(holder) * 4 + kind


@dataclass(slots=True, eq=False)
class Call:
    """What the hooks can tell of a call at a glance."""

    kind: int
    key: int
    depth: int  # of the user's frame, seen from `Ride.ticks`
    code: CodeType
    at: int  # the instruction in that frame
    holder: Callable[[], Any] = GONE  # a weak reference: whose method it is


class _AtHand:
    """What the hooks read at each call: side by side in memory, before all else."""

    __slots__ = ("at", "canary", "cleared", "code", "near", "next", "note", "stepped", "turn")


@dataclass(slots=True, eq=False)
class Leg(_AtHand):
    """One call that is due, and what follows it."""

    key: int
    depth: int
    code: CodeType
    at: int
    kind: int
    node: Node  # of the judge, before it
    looks: bool  # at the user's frame
    symbols: tuple[Symbol, ...] = ()  # it, after what was done by hand before it
    window: tuple[Event, Window] | None = None  # closed by it, to be counted
    next: Leg = field(init=False)
    is_measured: bool = False  # a trace has a number with it: the loss, a norm
    number: int = 0  # in the ring
    is_last: bool = False
    canary: Any = None  # a weak reference: whose gradient is there now, or is not
    is_present: bool = False
    is_zeroed: bool = False  # by hand, to zeros, in a way that moves no counter perhaps
    holder: Callable[[], Any] = GONE
    # What the hooks compare themselves, where that is all; else nothing, and they ask the ride.
    cleared: Callable[[], Any] = GONE  # whose clear it is
    stepped: Callable[[], Any] = GONE  # whose step, once the canary's gradient is there
    near: int = 0  # how far the user's frame is from the hook of a backward
    note: Callable[[], object] | None = None  # for a trace: takes the time of the call, or more
    # Goes on to what follows, where the ride hears of it: laps have ended, or each call is told.
    turn: Callable[[], None] | None = None

    def simplify(self) -> None:
        """Let the hooks tick it off with no call of the ride, if they can."""
        self.cleared = self.stepped = GONE
        self.near = 0
        if self.kind == BACKWARD:
            self.near = self.depth - 1 if self.canary is None else 0
        elif self.kind == CLEAR and not self.looks and self.canary is None:
            self.cleared = self.holder
        elif self.kind == STEP and not self.looks and self.canary is not None:
            self.stepped = self.holder if self.is_present and not self.is_zeroed else GONE


def _nowhere() -> Leg:
    leg = Leg(-1, 0, _nowhere.__code__, -1, -1, Node(None), looks=False)
    leg.next = leg
    return leg


class Standstill:
    """No ride: what the hooks then see in the place of one. No call is ever due."""

    __slots__ = ()
    is_going = False
    left = 0

    @property
    def leg(self) -> Leg:
        return _NOWHERE

    @leg.setter
    def leg(self, leg: Leg) -> None:
        raise AssertionError("no call is due")


_NOWHERE = _nowhere()
STANDSTILL = Standstill()


@dataclass(slots=True, eq=False)
class Ring:
    """A round of the training loop that always comes the same way, or some that do together."""

    legs: tuple[Leg, ...]
    symbols: tuple[Symbol, ...]
    end: Node  # of the judge, after the last call
    firsts: tuple[int, ...] = (0,)  # the calls that its rounds begin with, by their numbers
    laps: int = LAPS  # of the next ride
    short: int = 0  # rides in a row that ended soon
    windows: tuple[tuple[Event, Window], ...] = ()  # closed in each lap, to be counted
    varying: frozenset[str] = frozenset()  # buckets that are filled in some of its rounds only

    def __post_init__(self) -> None:
        self.windows = tuple(leg.window for leg in self.legs if leg.window is not None)

    def closed_before(self, leg: Leg) -> list[tuple[Event, Window]]:
        """Return the windows closed in the lap under way, before `leg`."""
        passed = takewhile(lambda each: each is not leg, self.legs)
        return [each.window for each in passed if each.window is not None]

    @property
    def together(self) -> int:
        """How many rounds it is."""
        return len(self.firsts)

    def begun(self, laps: int, leg: Leg) -> int:
        """Return how many rounds have begun in so many laps and the one now at `leg`.

        The first of them began before the ride.
        """
        return laps * len(self.firsts) + sum(n < leg.number for n in self.firsts) - 1

    @property
    def has_hand_work(self) -> bool:
        """Is anything done to `.grad` that no call tells of?"""
        return len(self.legs) < len(self.symbols)

    def ticked(self, laps: int, leg: Leg) -> list[int]:
        """Return how many calls of each kind a ride of so many laps, now at `leg`, has seen.

        It began after the first leg.
        """
        counts = [0, 0, 0, 0]
        for each in self.legs:
            counts[each.kind] += laps
        counts[self.legs[0].kind] -= 1
        for each in self.legs:
            if each is leg:
                break
            counts[each.kind] += 1
        return counts


@dataclass(slots=True, eq=False)
class Traced:
    """What a ride tells a trace.

    A trace that takes rounds later has the times of the calls gathered for it, and numbers
    measured in those laps alone that it writes down; any other takes each call.
    """

    leg: Callable[[Leg, FrameType], None]  # one call, or what is to be measured with it, where
    laps: Callable[[], None]  # laps have ended
    waits: bool  # it takes rounds later


class _UnderWay:
    """What the hooks read of a ride at each call, before all else in memory."""

    __slots__ = ("is_going", "left", "leg")


class Ride(_UnderWay):
    """A ring being ridden, seen from the hooks."""

    __slots__ = (
        *("_counted", "_end", "_is_measuring", "_lap", "_most", "_stamp", "_stop", "_trace"),
        *("due", "extras", "has_norm", "ring", "stamps", "thread", "told", "wanted"),
    )

    is_going: bool
    left: int
    leg: Leg

    def __init__(
        self,
        ring: Ring,
        end: Callable[[], None],
        lap: Callable[[], None],
        trace: Traced | None = None,
    ) -> None:
        self._trace = trace
        # When the calls came, for a trace that waits, with what was measured by the number of
        # the call; `told` of them the trace has had.
        self.stamps: list[float] = []
        self.extras: dict[int, Any] = {}
        self.told = 0
        self.wanted = range(0)  # the next laps whose numbers are wanted
        self.due = 0  # the lap after which that is asked again
        self.has_norm = False  # one that was measured is to be told with the next step
        self._is_measuring = False
        # In C throughout: a function of ours would take four times as long.
        self._stamp = map(self.stamps.append, iter(perf_counter, None)).__next__
        self.is_going = True
        self.ring = ring
        self.leg = ring.legs[0].next
        self.thread = get_ident()
        self._most = ring.laps
        self._stop = 0 if ring.windows else ring.laps  # the lap from which on each is looked at
        self._end = end
        self._lap = lap
        self._counted = 0
        self.left = 0  # laps to come that nobody hears of: the hooks count them down
        for leg in ring.legs:
            leg.note = self._stamp if trace is not None and trace.waits else None
            leg.turn = partial(self._tell, leg) if trace is not None and not trace.waits else None
        ring.legs[-1].turn = ring.legs[-1].turn or self._turn
        self.count_on()

    @property
    def laps(self) -> int:
        """How many laps are complete."""
        return self._counted - self.left

    def count_on(self) -> None:
        """Let the next laps be counted with no call of ours; the one after them calls `_turn`."""
        until = self._stop
        if self._trace is not None:
            until = min(until, self.due)
            if self._trace.waits:
                until = min(until, self._measure_or_not())
        self.left = max(min(until - self._counted, AT_ONCE) - 1, 0)
        self._counted += self.left

    def _measure_or_not(self) -> int:
        """Measure what comes in the lap under way if that is wanted; return until which lap."""
        wanted, now = self.wanted, self._counted
        is_wanted = now in wanted
        if is_wanted is not self._is_measuring:
            self._measure_on(is_wanted)
        if is_wanted:
            return wanted.stop if wanted.step == 1 else now + 1
        return max(wanted.start, now + (wanted.start - now) % wanted.step)

    def _measure_on(self, is_wanted: bool) -> None:
        """Measure what comes with the calls from now on, or take no more than their times."""
        self._is_measuring = is_wanted
        for leg in self.ring.legs:
            if leg.is_measured or (leg.kind == STEP and self.has_norm):
                leg.note = partial(self._measure, leg) if is_wanted else self._stamp

    def expect_norm(self) -> None:
        """Tell the norm that was just measured with the next step."""
        self.has_norm = True
        if self._is_measuring:
            self._measure_on(True)

    def _measure(self, leg: Leg) -> None:
        self._stamp()
        self._trace.leg(leg, _getframe(2))  # type: ignore[union-attr]  # else nothing is measured

    def ticks(self, key: int) -> bool:
        """Is the call at hand the one that is due? Else the ride has ended.

        To be called by the hook itself: the user's frame is found by counting from here.
        """
        leg = self.leg
        if leg.key == key:
            if leg.looks:
                try:
                    frame = _getframe(leg.depth)
                except ValueError:
                    return self._ends(key)
                if frame.f_lasti != leg.at or frame.f_code is not leg.code:
                    return self._ends(key)
            canary = leg.canary
            if canary is not None:
                # Is the gradient that the call is about there, or not, as in every lap?
                parameter = canary()
                if parameter is None or (parameter.grad is None) is leg.is_present:
                    return self._ends(key)
                if leg.is_zeroed and self.laps & 1 and torch_facts.peek(parameter.grad):
                    return self._ends(key)
            note = leg.note
            if note is not None:
                note()
            turn = leg.turn
            if turn is None:
                self.leg = leg.next
            elif self.left:
                self.left -= 1
                self.leg = leg.next
            else:
                turn()
            return True
        return self._ends(key)

    def _tell(self, leg: Leg) -> None:
        """Tell a trace that does not wait of a call, and go on to the next one."""
        trace: Any = self._trace
        self.leg = leg.next
        trace.leg(leg, _getframe(2))
        if leg.is_last:
            self._turn()

    def _turn(self) -> None:
        """Begin another lap, if it is not time to look with care."""
        self._counted += 1
        self.leg = self.ring.legs[0]
        if self._trace is not None and self._counted >= self.due:
            self._trace.laps()
        if self._counted >= self._stop or get_ident() != self.thread:
            self._end_lap()
        if self.is_going:
            self.count_on()

    def _ends(self, key: int) -> bool:
        """End the ride at a call that is not due, unless it is no call that could be."""
        if key == BACKWARD and not torch_facts.is_filling(_getframe(4)):
            return True  # `autograd.grad`
        if key & 3 == STEP and torch_facts.steps_around(key >> 2) > 1:
            return True  # what a step that was ticked off calls of its base class
        self._end()
        return False

    def _end_lap(self) -> None:
        ring = self.ring
        if ring.windows:
            self._lap()
        if self.laps >= self._most or self.thread != get_ident():
            is_certain = not ring.has_hand_work and not ring.varying
            most = MOST_LAPS if is_certain else MOST_UNCERTAIN
            ring.laps = min(2 * ring.laps + 1, max(most // ring.together, 1))
            self._end()

    @property
    def node(self) -> Node:
        """Where the judge would be now. What is done by hand after the last call is yet to come."""
        return self.ring.end if self.leg is self.ring.legs[0] else self.leg.node

    def number_of(self, leg: Leg) -> int:
        """Return which call of the ride one is that comes in this lap; the first was before it."""
        return self.laps * len(self.ring.legs) + leg.number

    @property
    def rounds(self) -> int:
        """How many rounds have begun since the ride did."""
        return self.ring.begun(self.laps, self.leg)

    def end(self) -> None:
        """End the ride for a reason of the caller's."""
        self._end()
