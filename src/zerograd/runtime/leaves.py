"""Leaves that no optimizer holds: found in the graph, and watched for updates by hand.

Nobody tells us of `w -= lr * w.grad` or `x.data += step * x.grad.sign()`. What can
be seen is that the leaf has changed between two backwards while its gradient was
there. A use that changes nothing in the leaf (saliency maps) cannot be seen.

A plain tensor is an input or a perturbation where there is a network that it could be put
into; where there is none, it is a weight.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.summary import OFTEN
from zerograd.runtime import called_code, hand_work, torch_facts
from zerograd.runtime.buckets import Bucket
from zerograd.runtime.call_site import Site
from zerograd.runtime.in_sight import uses_gradients
from zerograd.runtime.names import has_networks, name_in_frames, parameter_names
from zerograd.runtime.on_the_way import is_moved_otherwise

if TYPE_CHECKING:
    from zerograd.runtime.owners import Owner
    from zerograd.runtime.recorder import Recorder

MOST_NAME_LOOKS = 8  # each at all objects alive, which takes a moment
MOST_LEAVES = 8  # plain tensors watched at a time
MOST_CANDIDATES = 256
MOST_SITES = 2048
MOST_HANDY = 1 << 16  # values


@dataclass(slots=True)
class _Candidate:
    """A plain leaf met once: most are new in each iteration and never met again."""

    ref: weakref.ref[Tensor]
    version: int
    fingerprint: float | None


class Leaves:
    """Finds leaves in graphs and infers what was done to them by hand."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._candidates: dict[int, _Candidate] = {}
        self.watched: list[Bucket] = []
        self._name_looks = 0
        self._last_site: Site | None = None
        self.averaged: dict[Site, bool | None] = {}
        self.stepped_by: dict[str, str] = {}  # buckets whose gradients an optimizer was given
        self._given: dict[
            str, Callable[[], Tensor | None]
        ] = {}  # and the parameter that has the canary's
        self._used: dict[tuple[Site, Site | None], bool] = {}

    def discover(self, roots: Any, site: Site) -> int:
        """Walk the graph under `roots`, take up the leaves that are new; return its size."""
        partition = self._recorder.partition
        new: list[weakref.ref[Tensor]] = []
        leaves, size = torch_facts.leaves_of(roots)
        homes, unmet = partition.homes_of(leaves)
        thread = threading.get_ident()
        for home in homes:
            home.thread = thread
        if unmet and partition.is_full:
            self._let_go_of_the_dead()
        for leaf in unmet:
            if not self._recorder.is_wanted(leaf):
                continue
            if isinstance(leaf, torch.nn.Parameter):
                new.append(weakref.ref(leaf))
            else:
                self._meet(leaf, site)
        for members in _apart(new):
            bucket = partition.make(members)
            if bucket is not None:
                self.watched.append(bucket)
                self._recorder.take_up(bucket)
        return size

    def keep_names(self, times: int) -> None:
        """Ask for the names of what grows: at the end of the run its module may be gone."""
        if times < OFTEN or self._name_looks >= MOST_NAME_LOOKS:
            return
        filled = self._recorder.memo.node.filled
        growing = [
            each
            for each in self.watched
            if each.name in filled and not each.owners and not each.names and not each.leaf
        ]
        for bucket in growing[: MOST_NAME_LOOKS - self._name_looks]:
            self._name_looks += 1
            parameters = bucket.parameters()
            bucket.names = tuple(parameter_names(parameters))
            if len(parameters) == 1 and not bucket.names:
                name = name_in_frames(parameters[0], within=True)
                bucket.names = (name,) if name else ()

    def judge_weight(self, roots: Any, site: Site, scaled: bool) -> None:
        """Take note of whether the loss of this backward is divided or weighted."""
        if len(self.averaged) >= MOST_SITES:
            self.averaged.clear()
        given = False
        frame = sys._getframe(5)
        while frame is not None:
            if frame.f_code is torch.autograd.backward.__code__:
                given = frame.f_locals.get("grad_tensors") is not None
                break
            frame = frame.f_back  # type: ignore[assignment]
        weighted = torch_facts.is_weighted(roots, given, scaled)
        self.averaged[site] = bool(self.averaged.get(site)) or weighted

    def _meet(self, leaf: Tensor, site: Site) -> None:
        known = self._candidates.get(id(leaf))
        if known is None or known.ref() is not leaf:
            if len(self._candidates) >= MOST_CANDIDATES:
                self._candidates.clear()
            fingerprint = self._recorder.looks.fingerprint(leaf)
            self._candidates[id(leaf)] = _Candidate(weakref.ref(leaf), leaf._version, fingerprint)
            return
        alive = [bucket for bucket in self.watched if bucket.leaf and bucket.parameters()]
        if len(alive) >= MOST_LEAVES:
            return
        del self._candidates[id(leaf)]
        bucket = self._recorder.partition.make([weakref.ref(leaf)])
        if bucket is None:
            return
        bucket.leaf = True
        bucket.moved_at, bucket.print_before = known.version, known.fingerprint
        self.watched.append(bucket)
        self._recorder.take_up(bucket, known=True)
        if leaf.grad is not None:  # what the first backward left
            self._recorder.feed_fill(site, bucket)

    def before_backward(self, bucket: Bucket, site: Site, filled: bool) -> None:
        """Find out what was done to a leaf, and remember how it looks before a backward."""
        is_same = filled and self.was_updated(bucket, site) is False
        leaf = bucket.canary()
        if leaf is not None:
            bucket.moved_at = leaf._version
            bucket.print_before = bucket.print_before if is_same else None

    def before_clear(self, mask: int, site: Site) -> None:
        """Find out which leaves were updated before a call clears them."""
        filled = self._recorder.memo.node.filled
        for bucket in self.watched:
            if bucket.bit & mask and not bucket.owners and bucket.name in filled:
                self.was_updated(bucket, site)

    def was_updated(self, bucket: Bucket, site: Site) -> bool:
        """Has the leaf changed since the last backward? Then feed that as its step."""
        leaf = bucket.canary()
        if leaf is None or bucket.moved_at is None:
            return False
        moved = leaf._version != bucket.moved_at
        if not moved and bucket.print_before is not None:
            moved = _differ(bucket.print_before, self._recorder.looks.fingerprint(leaf))
        if moved and not self._is_lent(bucket):
            self._feed_update(bucket, site)
        return moved

    def _is_used(self, site: Site, since: Site | None) -> bool:
        """Is there any code that may use a gradient, and none that explains a change without it?

        Asked once for each way from one place to the next.
        """
        found = self._used.get((site, since))
        if found is None:
            if len(self._used) >= MOST_SITES:
                self._used.clear()
            found = uses_gradients() or called_code.reads(site)
            found = self._used[site, since] = found and not is_moved_otherwise(site, since)
        return found

    def _is_lent(self, bucket: Bucket) -> bool:
        """Is its gradient the one that an optimizer's parameter has too, and steps on?

        A copy of the model that is filled, and then takes the weights of the one that is stepped.
        """
        grad = bucket.ref() if bucket.ref is not None else None
        others = self._recorder.partition.buckets
        return grad is not None and any(
            each.owners and each.ref is not None and each.ref() is grad for each in others
        )

    def after_backward(self, site: Site, mask: int) -> tuple[Bucket, ...]:
        """Remember how the leaves that were filled look now; return those that it has changed.

        A hook that runs once a gradient is there may update its parameter on the spot.
        """
        if not self.watched:
            return ()
        self._last_site = site
        changed: tuple[Bucket, ...] = ()
        for bucket in self.watched:
            leaf = bucket.canary()
            if leaf is None or bucket.owners or not bucket.bit & mask:
                continue
            # Values of the host are read each time; those of a device rarely, as that waits.
            due = self._recorder.looks.is_due_at(bucket, site) or _is_handy(leaf)
            now = self._recorder.looks.fingerprint(leaf) if due else None
            if leaf._version != bucket.moved_at or _differ(bucket.print_before, now):
                changed = (*changed, bucket)
            bucket.moved_at, bucket.print_before = leaf._version, now
            bucket.filled_at = site
        return changed

    def updated_inside(self, buckets: tuple[Bucket, ...], site: Site) -> None:
        """Feed the updates that were made while the backward at `site` ran."""
        for bucket in buckets:
            self._recorder.rounds.spoil()
            self._feed_update(bucket, site)

    def before_step(self) -> None:
        """Remember how they look as an optimizer steps, which may change more than it holds."""
        for bucket in self.watched:
            leaf = bucket.canary()
            if leaf is not None and not bucket.owners:
                bucket.left_at = leaf._version
                bucket.left_as = self._recorder.looks.fingerprint(leaf) if _is_handy(leaf) else None

    def after_step(self) -> None:
        """Take what the optimizer has made of them for its own doing, and for no update by hand."""
        for bucket in self.watched:
            leaf, left_at = bucket.canary(), bucket.left_at
            if leaf is None or left_at is None or bucket.owners:
                continue
            bucket.left_at = None
            if left_at != bucket.moved_at or _differ(bucket.print_before, bucket.left_as):
                continue  # by hand, before the step
            bucket.moved_at = leaf._version
            if bucket.left_as is not None:
                bucket.print_before = self._recorder.looks.fingerprint(leaf)

    def stepped(self, owner: Owner, site: Site) -> None:
        """Feed the step of an optimizer that was given the gradients of leaves, for these too.

        `shared._grad = local.grad` hands on the tensor itself: what the next backward of the copy
        adds onto is what the optimizer has used.
        """
        unused = self._recorder.memo.node.unused
        for bucket in self.watched:
            if (
                bucket.owners
                or bucket.name not in unused
                or not self._is_given(bucket, owner, site)
            ):
                continue
            self._recorder.hold_by_hand(bucket)
            self.stepped_by[bucket.name] = owner.name
            event = Event(EventKind.STEP, bucket.name, site.spot, (bucket.name,), site.text)
            key = ("step for another", site, bucket.name)
            self._recorder.feed_by_hand(key, lambda event=event: event)  # type: ignore[misc]

    def _is_given(self, bucket: Bucket, owner: Owner, site: Site) -> bool:
        """Has one of the optimizer's parameters the gradient of the leaf's canary?"""
        grad = bucket.ref() if bucket.ref is not None else None
        if grad is None:
            return False
        known = self._given.get(bucket.name, _nobody)()
        if known is not None and known.grad is grad:
            return True
        if not self._recorder.looks.is_search_due(bucket, site):
            return False
        members = (ref for each in owner.buckets for ref in each.members)
        found = next((ref for ref in members if getattr(ref(), "grad", None) is grad), None)
        if found is not None:
            self._given[bucket.name] = found
        return found is not None

    def last_updates(self) -> None:
        """Look once more at the end: the last update has no backward after it."""
        node = self._recorder.memo.node
        for bucket in self.watched:
            if self._last_site is not None and not bucket.owners and bucket.name in node.filled:
                self.was_updated(bucket, self._last_site)

    def sight(self, bucket: Bucket, site: Site) -> None:
        """Look whether parameters change whose gradients are cleared with no step on them."""
        leaf, looks = bucket.canary(), self._recorder.looks
        if leaf is None or bucket.by_hand:
            return
        if bucket.sighted is None:
            bucket.sighted = (leaf._version, looks.fingerprint(leaf))
            return
        version, values = bucket.sighted
        bucket.by_hand = version != leaf._version or (
            looks.is_due_at(bucket, site) and values != looks.fingerprint(leaf)
        )

    def _let_go_of_the_dead(self) -> None:
        """Make room: judge the buckets whose leaves are all gone, and watch them no more."""
        dead = [each for each in self.watched if not each.parameters() and not each.owners]
        self.watched = [bucket for bucket in self.watched if bucket not in dead]
        for bucket in dead:
            self.stepped_by.pop(bucket.name, None)
            self._given.pop(bucket.name, None)
        self._recorder.let_go_of(dead)

    def _is_input(self, bucket: Bucket) -> bool:
        """Is it a plain tensor, and is there a network that it may be put into?"""
        others = self._recorder.partition.buckets
        return bucket.leaf and (any(not each.leaf for each in others) or has_networks())

    def _feed_update(self, bucket: Bucket, site: Site) -> None:
        if not self._is_used(site, bucket.filled_at):
            return
        recorder = self._recorder
        recorder.hold_by_hand(bucket)
        self.stepped_by.pop(bucket.name, None)
        key = ("update by hand", site, bucket.name)

        def event() -> Event:
            members = bucket.parameters()
            called = name_in_frames(members[0], within=True) if len(members) == 1 else ""
            spot, text = hand_work.find(site, "update", of=called)
            name = bucket.name
            return Event(EventKind.STEP, name, spot, (name,), text, leaf=self._is_input(bucket))

        recorder.feed_by_hand(key, event)


def _apart(parameters: list[weakref.ref[Tensor]]) -> list[list[weakref.ref[Tensor]]]:
    """Return those that a variable each holds one by one: each may have an update of its own."""
    held = [each() for each in parameters]
    if 1 < len(held) <= MOST_LEAVES and all(name_in_frames(each) for each in held):
        return [[each] for each in parameters]
    return [parameters] if parameters else []


def _nobody() -> None:
    return None


def _differ(before: float | None, now: float | None) -> bool:
    return before is not None and now is not None and before != now


def _is_handy(leaf: Tensor) -> bool:
    return leaf.device.type == "cpu" and leaf.numel() <= MOST_HANDY
