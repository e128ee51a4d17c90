"""Hook callbacks -> events: tells apart what happened, and hands it to the judge.

Calls are believed first, then the version counters of a few canaries, and values
only where these two leave a doubt that matters.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from torch import Tensor
from torch.nn import Module
from torch.optim.optimizer import Optimizer

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Rule
from zerograd.lifecycle.state import BucketState
from zerograd.runtime import hand_work, ride, torch_facts
from zerograd.runtime.buckets import GONE, MOST_BUCKETS, NEW, SAME, TOUCHED, Bucket, Owner
from zerograd.runtime.call_site import Site, argument_of
from zerograd.runtime.care import Care
from zerograd.runtime.confirm import Looks
from zerograd.runtime.feeding import Feeding, Speak, TraceSink
from zerograd.runtime.leaves import Leaves
from zerograd.runtime.owners import IN_BACKWARD, Owners, holds_canary
from zerograd.runtime.replicas import Replicas
from zerograd.runtime.ride import Call
from zerograd.runtime.scaling import Scaling

BY_HAND = "by hand"
_K = EventKind


class OpenBackward:
    """A backward that is under way in one thread."""

    __slots__ = (
        *("call", "depth", "error", "filled_inside"),
        *("scaler", "scan", "site", "synchronised"),
    )

    def __init__(
        self, site: Site, scaler: str, call: tuple[int, CodeType | None, int] = (0, None, 0)
    ) -> None:
        self.site = site
        self.call = call
        self.scaler = scaler
        self.depth = 0
        self.error = sys.exc_info()[1]
        self.scan: Any = None
        self.synchronised = False
        self.filled_inside = 0  # buckets that an optimizer stepped on while it ran


class Recorder(Feeding):
    """Hears every call and feeds the judge. Not thread-safe: the guard before it is.

    Args:
        only: which optimizers to watch; all if None.
        wants: which parameters of no optimizer to watch.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        speak: Speak,
        *,
        only: Callable[[Any], bool] | None = None,
        wants: Callable[[Tensor], bool] | None = None,
        trace: TraceSink | None = None,
        word: Callable[[Event], Event] = lambda event: event,
    ) -> None:
        super().__init__(rules, speak, trace, word, self._come_back_to)
        self.looks = Looks()
        self.owners = Owners(self.memo, self.forget, self._owner_ends, self.note, only)
        self.partition = self.owners.partition
        self.care = Care(self.partition)
        self.leaves = Leaves(self)
        self.replicas = Replicas(self)
        self.scaling = Scaling(self)
        self.not_checked: dict[str, None] = {}
        self.names: dict[str, str] = {}  # of owners and scalers, as the user's code calls them
        self.may_ride = lambda: not self.replicas and not self.owners.has_news
        self.scales, self.unscaled = self.scaling.scales, self.scaling.unscaled
        self.scaler_step_begins = self.scaling.step_begins
        self.scaler_step_ends = self.scaling.step_ends
        self.scaler_updates = self.scaling.updates
        self._wants = wants
        self._open: dict[int, OpenBackward] = {}
        self._open_steps: dict[int, list[tuple[int, Owner, Site]]] = {}
        self._finite = True
        self._threads: set[int] = set()  # that train

    # Backward.

    def backward_begins(self, roots: Any) -> None:
        thread = threading.get_ident()
        opened = self._open.get(thread)
        if opened is not None:
            opened.depth += 1
            self.rounds.spoil()
            return
        if self._open and _is_engine_thread(thread):
            return  # the inner half of a reentrant checkpoint, on a device's thread
        site = self.sites.here(3)
        self._threads.add(thread)
        sites = self.sites
        call = (sites.hops, sites.code, sites.at)
        if self.owners.has_news:
            self.owners.renew()
        scaler = torch_facts.scaler_of(roots) if self.scaling else ""
        opened = OpenBackward(site, scaler, call)
        times = self.care.count(site, thread)
        if self.care.is_walk_due(times):
            self.leaves.discover(roots, site, bool(scaler))
            self.replicas.search_once()
        self._look_before_backward(site)
        if self.is_lap_of_care or self.care.is_due(times):
            opened.scan = self.care.scan(times, self._in_sight())
        if self.replicas:
            opened.synchronised = self.replicas.before_backward()
        self._open[thread] = opened

    def backward_ends(self) -> None:
        thread = threading.get_ident()
        opened = self._open.get(thread)
        if opened is None:
            return
        if opened.depth:
            opened.depth -= 1
            return
        del self._open[thread]
        if sys.exc_info()[1] is not opened.error:  # the backward raised
            self.rounds.spoil()
            self._look_again()
            self.memo.lose_sight([bucket.name for bucket in self._in_sight()])
            return
        mask = 0
        for bucket in self._in_sight():
            if bucket.look():
                mask |= bucket.bit
                bucket.thread = thread
        if opened.scan is not None:
            mask = self.care.learn(opened.scan, mask)
            if self.partition.overflowed:
                self.note(f"parameters whose histories differ in more than {MOST_BUCKETS} ways")
        self.leaves.after_backward(opened.site, mask)
        if self.replicas:
            self.replicas.after_backward(opened.site, mask)
        self.counts[ride.BACKWARD] += 1
        self.feed_backward(opened, mask & ~opened.filled_inside)

    def feed_backward(self, opened: OpenBackward, mask: int) -> None:
        """Feed what a backward has filled."""
        if not mask:
            return
        site = opened.site
        averaged = self.leaves.averaged.get(site)
        key = (_K.BACKWARD, site, mask, opened.scaler, averaged, opened.synchronised)
        symbol = self.symbols.get(key)
        if symbol is None:
            event = Event(
                _K.BACKWARD,
                "",
                site.spot,
                self.names_of(mask),
                site.text,
                scaler=opened.scaler,
                averaged=averaged,
                synchronised=opened.synchronised,
            )
            hops, code, at = opened.call
            # The hook of a backward sits two frames nearer to the user when it rides.
            call = Call(ride.BACKWARD, ride.BACKWARD, hops, code, at) if code else None
            symbol = self.new(key, event, call)
        self.feed(symbol)

    def _look_before_backward(self, site: Site) -> None:
        node = self.memo.node
        cleared: list[Bucket] = []
        zeroed: list[Bucket] = []
        assigned: list[Bucket] = []
        for bucket in self._in_sight():
            change = bucket.look()
            name = bucket.name
            if not bucket.owners and name in node.filled and self.leaves.was_updated(bucket, site):
                node = self.memo.node
            if change == SAME and name not in node.spent:
                continue
            if change == GONE:
                if name in node.filled:
                    cleared.append(bucket)
            elif change == NEW:
                assigned.append(bucket)
            elif name in node.spent or name in node.filled:
                zero = self.looks.is_zero(bucket, site)
                if zero is None:
                    self._cannot_look(bucket)
                elif zero:
                    zeroed.append(bucket)
                elif change == TOUCHED and name in node.spent:
                    assigned.append(bucket)
        if cleared or zeroed or assigned:
            self._by_hand(site, cleared, zeroed, assigned)

    # Clear.

    def clear_begins(self, holder: Any, to_none: bool) -> None:
        self._threads.add(self._thread())
        unused = self.memo.node.unused
        if not unused:
            return
        mask = self.owners.mask_of(holder, self._backward_around() is not None)
        dropped = [each for each in self.partition.buckets if each.bit & mask]
        dropped = [each for each in dropped if each.name in unused]
        if dropped:
            self._finite = self.looks.is_finite(dropped, self.sites.here(3))

    def clear_ends(self, holder: Any, to_none: bool) -> None:
        finite, self._finite = self._finite, True
        mask = self.owners.mask_of(holder, self._backward_around() is not None)
        thread = self._thread()
        for bucket in self.partition.buckets:
            if bucket.bit & mask:
                bucket.thread = thread
                bucket.look()
        if not mask:
            return
        self.counts[ride.CLEAR] += 1
        site = self.sites.here(3)
        owner = self.owners.known(holder)
        if owner is not None and not owner.display:
            self.call(owner, site.receiver)
        name = owner.name if owner is not None else site.receiver
        key = (_K.CLEAR, site, name, mask, to_none, finite)
        symbol = self.symbols.get(key)
        if symbol is None:
            event = Event(
                _K.CLEAR,
                name,
                site.spot,
                self.names_of(mask),
                site.text,
                to_none=to_none,
                inside=is_inside(holder),
                finite=finite,
            )
            symbol = self.new(key, event, self.call_here(ride.CLEAR, holder))
        self.feed(symbol)

    # Step.

    def step_begins(self, optimizer: Optimizer, has_closure: bool) -> None:
        self._threads.add(self._thread())
        stack = self._open_steps.setdefault(threading.get_ident(), [])
        while any(number == id(optimizer) for number, _, _ in stack):
            stack.pop()  # a step that raised never said that it ended
        owner = self.owners.of(optimizer, self._backward_around() is not None)
        if owner is None:
            return
        site = self.sites.here(3)
        if not owner.display:
            self.call(
                owner, argument_of(site.text) if self.scaling.is_stepping() else site.receiver
            )
        outer = next((each for _, each, _ in stack if each.mask & owner.mask), None)
        stack.append((id(optimizer), owner, site))
        if outer is not None and outer is not owner:
            self.owners.stand_for(owner, outer)
        elif outer is None and not has_closure:
            self._step(owner, optimizer, site, is_plain=True)

    def closure_returns(self, optimizer: Optimizer) -> None:
        stack = self._open_steps.get(threading.get_ident(), ())
        owner = self.owners.known(optimizer)
        if owner is None:
            return
        for number, outer, site in stack:
            if number == id(optimizer):
                self._step(owner, optimizer, site)
                return
            if outer.mask & owner.mask:
                return  # the inner of two nested steps

    def step_ends(self, optimizer: Optimizer) -> None:
        stack = self._open_steps.get(threading.get_ident())
        if stack and stack[-1][0] == id(optimizer):
            stack.pop()

    def _step(
        self, owner: Owner, optimizer: Optimizer, site: Site, *, is_plain: bool = False
    ) -> None:
        self.counts[ride.STEP] += 1
        opened = self._backward_around()
        if opened is None:
            self._look_before_step(owner, site)
        elif owner.name != IN_BACKWARD or holds_canary(owner, optimizer):
            self.rounds.spoil()
            self._fill_inside(opened, owner)
        else:
            return
        scaler = self.scaling.around(optimizer) if self.scaling else ""
        plain = optimizer if is_plain and not scaler else None
        self.feed_step(_K.STEP, owner, site, scaler, plain)
        if self.replicas:
            self.replicas.at_step(owner.mask)

    def feed_step(
        self, kind: EventKind, owner: Owner, site: Site, scaler: str, plain: Any = None
    ) -> None:
        """Feed a step; `plain` is the optimizer if the call can be known again by it."""
        key = (kind, site, owner.name, owner.mask, scaler)
        symbol = self.symbols.get(key)
        if symbol is None:
            names = self.names_of(owner.mask)
            event = Event(kind, owner.name, site.spot, names, site.text, scaler=scaler)
            call = self.call_here(ride.STEP, plain) if plain is not None else None
            symbol = self.new(key, event, call)
        self.feed(symbol)

    def _look_before_step(self, owner: Owner, site: Site) -> None:
        cleared: list[Bucket] = []
        zeroed: list[Bucket] = []
        assigned: list[Bucket] = []
        thread = threading.get_ident()
        for bucket in owner.buckets:
            bucket.thread = thread
            change = bucket.look()
            if change == SAME:
                continue
            node, name = self.memo.node, bucket.name
            if change == GONE:
                if name in node.filled:
                    cleared.append(bucket)
            elif change == NEW or name in node.spent:
                assigned.append(bucket)
            elif name in node.filled and self.looks.is_zero(bucket, site):
                zeroed.append(bucket)
        if cleared or zeroed or assigned:
            self._by_hand(site, cleared, zeroed, assigned)

    def _fill_inside(self, opened: OpenBackward, owner: Owner) -> None:
        """The optimizer steps while a backward runs: what that has filled comes first."""
        mask = 0
        for bucket in owner.buckets:
            if bucket.look() and not bucket.bit & opened.filled_inside:
                mask |= bucket.bit
        opened.filled_inside |= mask
        self.feed_backward(opened, mask)

    def _thread(self) -> int:
        """Return the thread at work; the engine's own work for the one whose backward it runs."""
        thread = threading.get_ident()
        if self._open and thread not in self._threads and _is_engine_thread(thread):
            return next(iter(self._open))
        return thread

    def _backward_around(self) -> OpenBackward | None:
        if not self._open:
            return None
        thread = threading.get_ident()
        opened = self._open.get(thread)
        if opened is None and _is_engine_thread(thread):
            return next(iter(self._open.values()))
        return opened

    # Clip and scaler.

    def clips(self, parameters: Any) -> None:
        mask = 0
        for parameter in [parameters] if isinstance(parameters, Tensor) else parameters:
            bucket = self.partition.bucket_of(parameter)
            mask |= bucket.bit if bucket is not None else 0
        if not mask:
            return
        site = self.sites.here(3)
        name = next((each.name for each in self.owners.by_name.values() if each.mask & mask), "")

        key = (_K.CLIP, site, name, mask)
        symbol = self.symbols.get(key)
        if symbol is None:
            event = Event(_K.CLIP, name, site.spot, self.names_of(mask), site.text)
            symbol = self.new(key, event, self.call_here(ride.CLIP, None))
        self.feed(symbol)

    def clipped(self, parameters: Any) -> None:
        self._look_again()

    # What else is heard of.

    def holds(self, optimizer: Optimizer) -> None:
        self.owners.meet(optimizer)

    def registers(self, module: Module, name: str, part: Any) -> None:
        self.replicas.register(module)

    def forwarded(self, model: Module, synchronised: bool) -> None:
        self.replicas.forwarded(model, synchronised)

    # For the parts of the recorder.

    def is_wanted(self, leaf: Tensor) -> bool:
        """Is a parameter that no optimizer holds to be watched?"""
        if self.owners.are_sharded:
            return False
        return self._wants is None or self._wants(leaf)

    def take_up(self, bucket: Bucket, *, known: bool = False) -> None:
        """Begin to watch a bucket that no optimizer holds."""
        self.forget()
        if not known and bucket.ref is not None:
            self.memo.lose_sight((bucket.name,))

    def hold_by_hand(self, bucket: Bucket) -> None:
        """Say that a bucket which no optimizer holds is updated by hand."""
        if not self.memo.holds(bucket.name):
            self.memo.hold(bucket.name, (bucket.name,))
            self.forget()

    def feed_fill(self, site: Site, bucket: Bucket) -> None:
        """Feed a backward that filled this bucket before it was watched."""
        self.feed_backward(OpenBackward(site, ""), bucket.bit)

    def tell(self, finding: Finding) -> None:
        """Speak of a finding that the judge knows nothing of."""
        self._speak(finding, None)

    def note(self, what: str) -> None:
        """Say once what is not checked."""
        self.not_checked.setdefault(what)

    def finish(self) -> None:
        """Speak of what is known only at the end."""
        self.end_ride()
        self.owners.renew()
        self.leaves.last_updates()
        for finding in self.memo.finish():
            self._speak(finding, None)

    def _owner_ends(self, name: str) -> None:
        for finding in self.memo.finish():
            if finding.owner == name:
                self._speak(finding, None)

    def _by_hand(
        self, site: Site, cleared: list[Bucket], zeroed: list[Bucket], assigned: list[Bucket]
    ) -> None:
        """Feed what was done to `.grad` itself since the last event, in no call that we saw."""
        if cleared:
            self._feed_by_hand(_K.CLEAR, site, cleared, to_none=True)
        if zeroed:
            self._feed_by_hand(_K.CLEAR, site, zeroed, to_none=False)
        if assigned:
            self._feed_by_hand(_K.ASSIGN, site, assigned, to_none=False)

    def _feed_by_hand(
        self, kind: EventKind, site: Site, buckets: list[Bucket], *, to_none: bool
    ) -> None:
        mask = 0
        for bucket in buckets:
            mask |= bucket.bit

        def event() -> Event:
            clears = kind is _K.CLEAR
            spot, text = hand_work.find(site, "clear" if clears else "assign")
            names = self.names_of(mask)
            return Event(
                kind, "", spot, names, text, backward="" if clears else BY_HAND, to_none=to_none
            )

        self.feed_by_hand((BY_HAND, kind, site, mask, to_none), event)

    def names_of(self, mask: int) -> tuple[str, ...]:
        """Return the names of the buckets in a mask."""
        return tuple(bucket.name for bucket in self.partition.buckets if bucket.bit & mask)

    def state_now(self, bucket: Bucket) -> BucketState:
        """Return what a bucket holds, without ending a ride."""
        node = self.ride.node if self.ride is not None else self.memo.node
        return self.memo.state(bucket.name, node)

    def _come_back_to(self, threads: set[int]) -> None:
        self._threads |= threads
        self._look_again()

    def _look_again(self) -> None:
        for bucket in self._in_sight():
            bucket.look()

    def _in_sight(self) -> tuple[Bucket, ...]:
        """Return the buckets whose gradients may be read now.

        torch lets go of Python's lock while it fills or drops a gradient. To read one
        that another thread works on would crash, so each thread looks at its own only.
        """
        if len(self._threads) < 2:
            return self.partition.buckets
        me = threading.get_ident()
        return tuple(bucket for bucket in self.partition.buckets if bucket.thread == me)

    def _cannot_look(self, bucket: Bucket) -> None:
        self.memo.lose_sight((bucket.name,))
        self.note("gradients inside a CUDA graph: its replays are not seen")

    def call(self, owner: Owner, name: str) -> None:
        """Take note of the user's name for an owner."""
        owner.display = self.names[owner.name] = name


def _is_engine_thread(thread: int) -> bool:
    """Is it one of the autograd engine's own threads, which Python did not start?"""
    return all(each.ident != thread for each in threading.enumerate())


def is_inside(holder: Any) -> bool:
    """Is the clear that goes on called by a method of the optimizer itself, as SAM's is?"""
    if isinstance(holder, Module):
        return False
    # Wrappers share their code among many functions; only the innermost tells who is running.
    codes = {
        getattr(inspect.unwrap(value), "__code__", None)
        for kind in type(holder).__mro__
        for name, value in vars(kind).items()
        if name != "zero_grad" and callable(value)
    }
    codes.discard(None)
    frame = sys._getframe(2).f_back
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False
