"""Which parameters have one history, and what became of their gradients.

A bucket begins as all that one optimizer holds and is split where histories part.
One parameter of each bucket, its canary, is looked at around every event; the rest
is scanned now and then. Everything is held by weak references.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from torch import Tensor

from zerograd.lifecycle.events import Spot
from zerograd.runtime import torch_facts
from zerograd.runtime.call_site import Site
from zerograd.runtime.fsdp_facts import Keepers
from zerograd.runtime.marks import Mark, is_same, marks_of

MOST_BUCKETS = 64  # past that, parameters whose histories part are left alone

# What a look at a canary's gradient tells, compared with the look before.
SAME, GONE, NEW, TOUCHED = range(4)


class Bucket:
    """Parameters with one history."""

    __slots__ = (
        "__weakref__",
        "bit",
        "by_hand",
        "canary",
        "clipped",
        "doubt",
        "doubts",
        "filled_at",
        "goes_back",
        "goes_by_itself",
        "grew",
        "keepers",
        "leaf",
        "left_as",
        "left_at",
        "marks",
        "members",
        "moved_at",
        "name",
        "names",
        "owners",
        "print_before",
        "put",
        "ref",
        "sharded",
        "sighted",
        "since",
        "stale_norm",
        "suspect",
        "thread",
        "version",
    )

    def __init__(self, name: str, bit: int, members: list[weakref.ref[Tensor]]) -> None:
        self.name = name
        self.bit = bit
        self.members = members
        self.owners: tuple[str, ...] = ()
        self.since: int | None = None  # the round of the first backward that filled it
        self.names: tuple[str, ...] = ()  # the user's for its parameters, where they are kept
        self.leaf = False  # one tensor that is no Parameter
        self.canary: weakref.ref[Tensor] = _dead
        self.sharded = False
        self.keepers: Keepers | None = None  # of gradients that are parts of others
        self.ref: weakref.ref[Tensor] | None = None  # the canary's gradient at the last look
        self.version = 0
        self.clipped: Spot | None = None  # where, since the last backward
        self.doubt = False  # something was added to what may have been cleared unseen
        self.doubts = 0  # how often that kept a rule from speaking
        self.suspect = 0  # this many looks at its values are not put off
        self.grew: bool | None = None  # did the last backward leave anything but zeros?
        self.stale_norm: float | None = None
        self.moved_at: int | None = None  # version of the canary itself: is it changed by hand?
        self.print_before: float | None = None  # of the canary's values, where they are compared
        self.goes_back = False  # is somebody suspected to restore it after a step?
        # The canary's version and values as a step began that found no gradient of it.
        self.left_at: int | None = None
        self.left_as: float | None = None
        self.goes_by_itself = False  # has such a step moved it all the same?
        # The canary's version and values when gradients that no step has used were first cleared.
        self.sighted: tuple[int, float | None] | None = None
        self.by_hand = False  # has it changed since?
        self.filled_at: Site | None = None  # of one that no optimizer holds: the last backward
        self.put = False  # has somebody put another gradient in the canary's place?
        # of what the backward after that has left
        self.marks: list[tuple[weakref.ref[Tensor], Mark]] | None = None
        self.thread = threading.get_ident()  # the one that last filled, cleared or stepped it
        self.elect()

    def elect(self) -> Tensor | None:
        """Choose the canary: the first parameter that can have a gradient."""
        chosen = None
        for member in self.members:
            parameter = member()
            if parameter is not None and (chosen is None or parameter.requires_grad):
                chosen, self.canary = parameter, member
                if parameter.requires_grad:
                    break
        if chosen is not None:
            self.sharded = torch_facts.is_sharded(chosen)
        return chosen

    def look(self) -> int:
        """Compare the canary's gradient with the last look, and remember this one."""
        parameter = self.canary()
        if parameter is None:
            parameter = self.elect()
            if parameter is None:
                return SAME
        grad = parameter.grad
        ref = self.ref
        if grad is None:
            if ref is None:
                return SAME
            self.ref = None
            return GONE
        if self.keepers is not None:
            grad = self.keepers.shown(parameter, grad)
        version = torch_facts.version_of(grad) if self.sharded else grad._version
        if ref is not None and ref() is grad:
            if version == self.version:
                return SAME
            self.version = version
            if self.keepers is not None and self.keepers.is_touched_for_others(parameter):
                return SAME
            return TOUCHED
        self.ref = weakref.ref(grad)
        self.version = version
        return NEW

    def has_come(self) -> bool:
        """Has the canary a gradient now? Asked where it had none, and not remembered."""
        parameter = self.canary()
        return parameter is not None and parameter.grad is not None

    def settle(self) -> None:
        """Take what was done in place since the last look, and to the canary itself, as seen."""
        parameter = self.canary()
        if parameter is None:
            return
        self.moved_at = parameter._version
        grad = parameter.grad
        if grad is not None and self.keepers is not None:
            grad = self.keepers.shown(parameter, grad)
        if grad is not None and self.ref is not None and self.ref() is grad:
            self.version = torch_facts.version_of(grad)

    def is_moved(self) -> bool:
        """Has anything but a step changed the canary itself since the last step ended?"""
        parameter = self.canary()
        return (
            parameter is not None
            and self.moved_at is not None
            and parameter._version != self.moved_at
        )

    def gradients(self, most: int) -> list[Tensor]:
        """Return at most `most` gradients that are there, the canary's first."""
        found = []
        for member in chain((self.canary,), self.members):
            parameter = member()
            grad = parameter.grad if parameter is not None else None
            if grad is not None:
                found.append(grad)
                if len(found) == most:
                    break
        return found

    def still_filled(self, most: int) -> list[weakref.ref[Tensor]]:
        """Return those of the first `most` members that have a gradient."""
        alive = ((member, member()) for member in self.members[:most])
        return [ref for ref, each in alive if each is not None and each.grad is not None]

    def mark(self, most: int) -> None:
        """Remember what the first `most` members hold, to know it again."""
        members = self.members[:most]
        marks = marks_of(self, members) or ()
        self.put, self.marks = False, list(zip(members, marks, strict=False))

    def kept(self) -> list[weakref.ref[Tensor]]:
        """Return the members that hold what was marked, untouched, and forget the marks."""
        marks, self.marks = self.marks or [], None
        alive = [(ref, ref(), mark) for ref, mark in marks if mark is not None]
        return [ref for ref, each, mark in alive if each is not None and is_same(each, mark, self)]

    def parameters(self) -> list[Tensor]:
        """Return the members that are still alive."""
        return [each for each in (member() for member in self.members) if each is not None]


def _nothing() -> None:
    return None


_dead: Any = _nothing


class Partition:
    """All parameters met, in buckets.

    Args:
        on_split: called with the names of a bucket and of the part taken from it.
    """

    def __init__(self, on_split: Callable[[str, str], None]) -> None:
        self._on_split = on_split
        self._home: dict[int, tuple[weakref.ref[Tensor], Bucket | None]] = {}
        self._serial = 0
        self.keepers = Keepers()
        self.buckets: tuple[Bucket, ...] = ()
        self.by_name: dict[str, Bucket] = {}
        self.generation = 0  # rises with every change
        self.overflowed = False

    def bucket_of(self, parameter: Tensor) -> Bucket | None:
        """Return the bucket of a parameter, None if it has none."""
        entry = self._home.get(id(parameter))
        if entry is None or entry[0]() is not parameter:
            return None
        return entry[1]

    def knows(self, parameter: Tensor) -> bool:
        """Has it been met, in a bucket or not?"""
        entry = self._home.get(id(parameter))
        return entry is not None and entry[0]() is parameter

    def homes_of(self, parameters: Iterable[Tensor]) -> tuple[set[Bucket], list[Tensor]]:
        """Return the buckets that any of these are in, and those that have not been met."""
        home, homes, unmet = self._home, set(), []
        for parameter in parameters:
            entry = home.get(id(parameter))
            if entry is None or entry[0]() is not parameter:
                unmet.append(parameter)
            elif entry[1] is not None:
                homes.add(entry[1])
        return homes, unmet

    def gather(self, parameters: Iterable[Tensor]) -> tuple[Bucket, ...]:
        """Return buckets that hold exactly these parameters, splitting and making some."""
        whole: dict[Bucket, list[weakref.ref[Tensor]]] = {}
        unmet: list[weakref.ref[Tensor]] = []
        for parameter in parameters:
            entry = self._home.get(id(parameter))
            if entry is None or entry[0]() is not parameter:
                ref = weakref.ref(parameter)
                unmet.append(ref)
            elif entry[1] is not None:
                whole.setdefault(entry[1], []).append(entry[0])
        found = [self.part(bucket, members) for bucket, members in whole.items()]
        if unmet:
            found.append(self.make(unmet))
        return tuple(dict.fromkeys(bucket for bucket in found if bucket is not None))

    def make(self, members: list[weakref.ref[Tensor]]) -> Bucket | None:
        """Put parameters not met before into a bucket of their own."""
        bucket = self._new(members)
        for member in members:
            parameter = member()
            if parameter is not None:
                self._home[id(parameter)] = (member, bucket)
        return bucket

    def part(self, bucket: Bucket, members: Sequence[weakref.ref[Tensor]]) -> Bucket | None:
        """Return a bucket of exactly these members of `bucket`, split off if need be."""
        inside = {id(member) for member in members}
        rest = [member for member in bucket.members if id(member) not in inside]
        if not any(member() is not None for member in rest):
            return bucket
        taken = [member for member in bucket.members if id(member) in inside]
        new = self._new(taken)
        for member in taken:
            parameter = member()
            if parameter is not None:
                self._home[id(parameter)] = (member, new)
        bucket.members, bucket.names = rest, ()
        if bucket.canary() is None or id(bucket.canary) in inside:
            bucket.elect()
            _forget_look(bucket)
        if new is not None:
            new.owners, new.leaf, new.since = bucket.owners, bucket.leaf, bucket.since
            new.doubt, new.suspect = bucket.doubt, bucket.suspect
            new.grew, new.stale_norm = bucket.grew, bucket.stale_norm
            self._on_split(bucket.name, new.name)
        self.generation += 1
        return new

    def keep(self, flat: Tensor) -> None:
        """Take note of a flat parameter, and look at its parts through it from now on."""
        if self.keepers.take_up(flat):
            for bucket in self.buckets:
                bucket.keepers = self.keepers
                _forget_look(bucket)

    def drop(self, buckets: Iterable[Bucket]) -> None:
        """Forget buckets, and their parameters, most of which are gone."""
        dropped = frozenset(buckets)
        for bucket in dropped:
            self.by_name.pop(bucket.name, None)
        self._home = {
            key: (member, bucket)
            for key, (member, bucket) in self._home.items()
            if bucket not in dropped and member() is not None
        }
        self._renew()

    @property
    def is_full(self) -> bool:
        """Is there no room for a bucket more?"""
        return len(self.by_name) >= MOST_BUCKETS

    def __len__(self) -> int:
        return len(self._home)

    def _new(self, members: list[weakref.ref[Tensor]]) -> Bucket | None:
        if len(self.by_name) >= MOST_BUCKETS:
            self.overflowed = True
            return None
        taken = set(self.by_name)
        number = next(n for n in range(MOST_BUCKETS + 1) if f"bucket#{n}" not in taken)
        name = f"bucket#{number}"
        bucket = Bucket(name, 1 << number, members)
        bucket.keepers = self.keepers or None
        _forget_look(bucket)
        self.by_name[name] = bucket
        self._renew()
        return bucket

    def _renew(self) -> None:
        self.buckets = tuple(self.by_name.values())
        self.generation += 1


def _forget_look(bucket: Bucket) -> None:
    """Take the present as what was last seen: it is not known what was before."""
    bucket.ref = None
    bucket.look()
