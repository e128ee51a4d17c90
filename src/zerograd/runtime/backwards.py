"""Backwards: when each begins and ends, which buckets it fills, and which thread may look."""

from __future__ import annotations

import sys
import threading
from types import CodeType
from typing import TYPE_CHECKING, Any

from zerograd.lifecycle.events import Event, EventKind
from zerograd.runtime import ride
from zerograd.runtime.buckets import MOST_BUCKETS, Bucket
from zerograd.runtime.call_site import Site
from zerograd.runtime.care import MOST_WHOLE, Care
from zerograd.runtime.curves import Number
from zerograd.runtime.ride import Call

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder


class OpenBackward:
    """A backward that is under way in one thread."""

    __slots__ = (
        *("call", "depth", "error", "filled_inside", "loss"),
        *("scaler", "scan", "site", "synchronised", "was_fed"),
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
        self.loss: Number | None = None  # for a trace
        self.filled_inside = 0  # buckets that an optimizer stepped on while it ran
        self.was_fed = False  # for some of them


class Backwards:
    """Hears the backwards of all threads, for the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._care = Care(recorder.partition)
        self._open: dict[int, OpenBackward] = {}
        self.under_way = self._open  # by thread; empty outside of them all
        self.threads: set[int] = set()  # that train

    def begins(self, roots: Any) -> None:
        thread = threading.get_ident()
        opened = self._open.get(thread)
        recorder = self._recorder
        if opened is not None:
            opened.depth += 1
            recorder.rounds.spoil()
            return
        if self._open and _is_engine_thread(thread):
            return  # the inner half of a reentrant checkpoint, on a device's thread
        sites = recorder.sites
        site = sites.here(3)
        self.threads.add(thread)
        call = (sites.hops, sites.code, sites.at)
        if recorder.owners.has_news:
            recorder.owners.renew()
            recorder.look_for_names()
        scaler = recorder.scaling.factor_in(roots, site) if recorder.scaling else ""
        opened = OpenBackward(site, scaler, call)
        if recorder.curves and recorder.curves.are_wanted(recorder.memo.rounds):
            scale = recorder.scaling.factor_of(scaler) if scaler else None
            opened.loss = recorder.curves.loss(roots, scale)
        times = self._care.count(site, thread)
        if self._care.is_walk_due(site, times):
            self._care.walked(site, recorder.leaves.discover(roots, site))
        if self._care.is_note_due(times):
            recorder.leaves.judge_weight(roots, site, bool(scaler))
            recorder.callers.note(site.spot)
            recorder.replicas.search_once()
            if recorder.leaves.watched:
                recorder.leaves.keep_names(times)
        buckets = self.in_sight()
        recorder.unseen.before_backward(buckets, site)
        if recorder.is_lap_of_care or self._care.is_due(times):
            opened.scan = self._care.scan(times, buckets)
        if recorder.replicas:
            opened.synchronised = recorder.replicas.before_backward()
        self._open[thread] = opened

    def ends(self) -> None:
        thread = threading.get_ident()
        opened = self._open.get(thread)
        if opened is None:
            return
        if opened.depth:
            opened.depth -= 1
            return
        del self._open[thread]
        recorder = self._recorder
        if sys.exc_info()[1] is not opened.error:  # the backward raised
            recorder.rounds.spoil()
            self.look_again()
            recorder.memo.lose_sight([bucket.name for bucket in self.in_sight()])
            return
        mask = 0
        for bucket in self.in_sight():
            if bucket.look():
                mask |= bucket.bit
                bucket.thread = thread
                bucket.clipped = None
                if bucket.put:
                    bucket.mark(MOST_WHOLE)
                if bucket.suspect or bucket.grew is not None:
                    bucket.grew = recorder.looks.has_grown(bucket)
        if opened.scan is not None:
            mask = self._care.learn(opened.scan, mask)
            if recorder.partition.overflowed:
                recorder.note(f"parameters whose histories differ in more than {MOST_BUCKETS} ways")
        changed = recorder.leaves.after_backward(opened.site, mask)
        if recorder.replicas:
            recorder.replicas.after_backward(opened.site, mask)
        recorder.counts[ride.BACKWARD] += 1
        self.feed(opened, mask & ~opened.filled_inside)
        recorder.leaves.updated_inside(changed, opened.site)

    def give_up(self) -> None:
        """Take the backward of this thread as over, whether or not it was heard to end."""
        self._open.pop(threading.get_ident(), None)

    def feed(self, opened: OpenBackward, mask: int) -> None:
        """Feed what a backward has filled."""
        if not mask:
            return
        site, recorder = opened.site, self._recorder
        averaged = recorder.leaves.averaged.get(site)
        goes_on, opened.was_fed = opened.was_fed, True
        key = (
            EventKind.BACKWARD,
            site,
            mask,
            opened.scaler,
            averaged,
            opened.synchronised,
            goes_on,
        )
        symbol = recorder.symbols.get(key)
        if symbol is None:
            event = Event(
                EventKind.BACKWARD,
                "",
                site.spot,
                recorder.names_of(mask),
                site.text,
                scaler=opened.scaler,
                averaged=averaged,
                synchronised=opened.synchronised,
            )
            hops, code, at = opened.call
            # The hook of a backward sits two frames nearer to the user when it rides.
            call = Call(ride.BACKWARD, ride.BACKWARD, hops, code, at) if code else None
            symbol = recorder.new(key, event, call)
            symbol.goes_on = goes_on
        recorder.feed(symbol, "loss", opened.loss)
        if symbol.count == 1:
            for bucket in recorder.partition.buckets:
                if bucket.bit & mask and bucket.since is None:
                    bucket.since = recorder.memo.rounds

    def fill_inside(self, opened: OpenBackward, buckets: tuple[Bucket, ...]) -> None:
        """An optimizer steps while a backward runs: what that has filled comes first."""
        mask = 0
        for bucket in buckets:
            if bucket.look() and not bucket.bit & opened.filled_inside:
                mask |= bucket.bit
        opened.filled_inside |= mask
        self.feed(opened, mask)

    def around(self) -> OpenBackward | None:
        """Return the backward within which something happens now, if any."""
        if not self._open:
            return None
        thread = threading.get_ident()
        opened = self._open.get(thread)
        if opened is None and _is_engine_thread(thread):
            return next(iter(self._open.values()))
        return opened

    def thread(self) -> int:
        """Return the thread at work; the engine's own work for the one whose backward it runs."""
        thread = threading.get_ident()
        if self._open and thread not in self.threads and _is_engine_thread(thread):
            return next(iter(self._open))
        return thread

    def in_sight(self) -> tuple[Bucket, ...]:
        """Return the buckets whose gradients may be read now.

        torch lets go of Python's lock while it fills or drops a gradient. To read one
        that another thread works on would crash, so each thread looks at its own only.
        """
        buckets = self._recorder.partition.buckets
        if len(self.threads) < 2:
            return buckets
        me = threading.get_ident()
        return tuple(bucket for bucket in buckets if bucket.thread == me)

    def look_again(self) -> None:
        """Take the present as what was last seen."""
        for bucket in self.in_sight():
            bucket.look()


def _is_engine_thread(thread: int) -> bool:
    """Is it one of the autograd engine's own threads, which Python did not start?"""
    return all(each.ident != thread for each in threading.enumerate())
