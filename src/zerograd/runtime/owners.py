"""The optimizers of a process, and the buckets that each of them holds."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from operator import is_
from typing import Any, NamedTuple

from torch import Tensor
from torch.nn import Module
from torch.optim.optimizer import Optimizer

from zerograd.runtime import fsdp_facts, torch_facts
from zerograd.runtime.buckets import Bucket, Partition
from zerograd.runtime.call_site import Site
from zerograd.runtime.memo import Memo

MOST_WAITING = 16  # optimizers taken up before their first step; with more, only those that step
IN_BACKWARD = "the optimizers in backward"


class Owner:
    """An optimizer, as far as we know it."""

    __slots__ = (
        *("backwards", "buckets", "display", "ends", "held", "made_at", "mask"),
        *("name", "number", "ref", "stands_for"),
    )

    def __init__(
        self, name: str, optimizer: Any, gone: Callable[[str], None], number: int = 0
    ) -> None:
        self.name = name  # what the judge calls it
        self.number = number  # in the order of their coming
        self.display = ""  # what the user's code calls it
        self.made_at: Site | None = None  # for steps that a thread pool takes, with no user's frame
        self.ref = weakref.ref(optimizer, lambda _: gone(name))
        self.buckets: tuple[Bucket, ...] = ()
        self.mask = 0
        self.backwards = 0  # that had been heard at its last step
        # Of its groups, and all in them, when they were last looked at.
        self.ends: list[weakref.ref[Tensor]] = []
        self.held: list[weakref.ref[Tensor]] = []
        self.stands_for: str | None = None  # a wrapper's step is the step of this one


class _Waiting(NamedTuple):
    """How an optimizer was made that has not been taken up yet."""

    thread: int
    site: Site
    is_empty: bool  # are there no gradients yet?


class Owners:
    """Knows optimizers by weak references and keeps partition and judge in step with them.

    Args:
        changed: called whenever the buckets, or who holds them, are no longer the same.
        ends: called with the name of an owner that is gone, before it is forgotten.
        only: which optimizers to take up; all if None.
    """

    def __init__(
        self,
        memo: Memo,
        changed: Callable[[], None],
        ends: Callable[[str], None],
        note: Callable[[str], None],
        only: Callable[[Any], bool] | None,
    ) -> None:
        self._memo = memo
        self._changed = changed
        self._ends = ends
        self._note = note
        self._only = only
        self.partition = Partition(self._split)
        self.by_name: dict[str, Owner] = {}
        self._by_id: dict[int, Owner] = {}
        self._waiting: weakref.WeakKeyDictionary[Optimizer, _Waiting] = weakref.WeakKeyDictionary()
        self._gone: list[str] = []
        self._come = 0  # how many there have been
        self.has_news = False  # an optimizer has come or gone
        self.are_sharded = False  # parameters are DTensors, and others stand in for them in graphs
        self._reach: weakref.WeakKeyDictionary[Module, tuple[int, int]]
        self._reach = weakref.WeakKeyDictionary()

    def known(self, optimizer: Any) -> Owner | None:
        """Return the owner that stands for an optimizer, if it has been taken up."""
        owner = self._by_id.get(id(optimizer))
        return owner if owner is not None and owner.ref() is optimizer else None

    def of(self, optimizer: Any, in_backward: bool = False, *, steps: bool = False) -> Owner | None:
        """Return the owner that stands for an optimizer; None if it is not to be watched.

        Args:
            steps: it is about to, which takes long enough to look at all that it holds.
        """
        owner = self.known(optimizer)
        if owner is not None:
            if not _holds_still(owner, optimizer) or (steps and not _holds_all(owner, optimizer)):
                self._claim(owner, optimizer)
            return owner
        if not hasattr(optimizer, "param_groups") or (self._only and not self._only(optimizer)):
            return None
        if in_backward:
            return self._in_backward(optimizer)
        names = (f"optimizer#{n}" for n in range(1, len(self.by_name) + 2))
        name = next(each for each in names if each not in self.by_name)
        self._come += 1
        owner = Owner(name, optimizer, self._is_gone, self._come)
        self.by_name[name] = self._by_id[id(optimizer)] = owner
        waiting = self._waiting.pop(optimizer, None)
        owner.made_at = waiting.site if waiting is not None else None
        self._claim(owner, optimizer, was_empty=waiting is not None and waiting.is_empty)
        self.let_go_of_the_dead()  # after that: it may be the heir of one of them
        return owner

    def meet(self, optimizer: Optimizer, site: Site) -> None:
        """Take note of an optimizer that has been made, or has been given more parameters."""
        owner = self.known(optimizer)
        if owner is not None:
            self._claim(owner, optimizer)
        else:
            is_empty = all(each.grad is None for each in _ends_of(optimizer))
            self._waiting[optimizer] = _Waiting(threading.get_ident(), site, is_empty)
            self.has_news = True

    def _is_gone(self, name: str) -> None:
        # Called by the garbage collector, at any time: nothing may be changed here.
        self._gone.append(name)
        self.has_news = True

    def renew(self) -> None:
        """Take up the optimizers that wait, and let go of those that are gone."""
        self.has_news = False
        me = threading.get_ident()
        mine = [each for each, waiting in list(self._waiting.items()) if waiting.thread == me]
        if len(mine) <= MOST_WAITING:
            for optimizer in mine:
                if optimizer.param_groups:
                    self.of(optimizer)
                self._waiting.pop(optimizer, None)
        for optimizer, waiting in list(self._waiting.items()):
            self._waiting[optimizer] = waiting._replace(is_empty=False)  # a backward comes
        if self._gone:
            self.let_go_of_the_dead()

    def let_go_of_the_dead(self) -> None:
        """Forget optimizers that are gone, and what nobody else holds."""
        while self._gone:
            name = self._gone.pop()
            if name not in self.by_name:
                continue
            self._ends(name)
            owner = self.by_name.pop(name)
            self._by_id = {key: each for key, each in self._by_id.items() if each is not owner}
            gone = [bucket for bucket in owner.buckets if bucket.owners == (owner.name,)]
            for bucket in owner.buckets:
                bucket.owners = tuple(each for each in bucket.owners if each != owner.name)
                for heir in bucket.owners:
                    if self.by_name[heir].number > owner.number:
                        self._memo.inherit(owner.name, heir, bucket.name)
            self._memo.forget(owner.name, tuple(bucket.name for bucket in gone))
            self.partition.drop(gone)
            self._changed()

    def stand_for(self, inner: Owner, outer: Owner) -> None:
        """A wrapper steps the optimizer that it is made of: that is one step, the wrapper's."""
        if inner.stands_for is None:
            inner.stands_for = outer.name
            self._memo.hold(inner.name, ())
            self._changed()

    def mask_of(self, holder: Any, in_backward: bool) -> int:
        """Return the buckets that a clear of this optimizer or module reaches."""
        if isinstance(holder, Module):
            return self._mask_of_module(holder)
        owner = self.of(holder, in_backward)
        if owner is None or (owner.name == IN_BACKWARD and not holds_canary(owner, holder)):
            return 0
        return owner.mask

    def _mask_of_module(self, module: Module) -> int:
        known = self._reach.get(module)
        if known is not None and known[1] == self.partition.generation:
            return known[0]
        met = [p for p in module.parameters() if self.partition.knows(p)]
        mask = 0
        for bucket in self.partition.gather(met):
            mask |= bucket.bit
        self._reach[module] = (mask, self.partition.generation)
        return mask

    def _in_backward(self, optimizer: Any) -> Owner:
        # One optimizer a parameter is usual here, thousands of them; they are one owner to us.
        owner = self.by_name.get(IN_BACKWARD)
        if owner is None:
            owner = self.by_name[IN_BACKWARD] = Owner(IN_BACKWARD, self, lambda _: None)
            owner.display = IN_BACKWARD
        held = [self.partition.bucket_of(parameter) for parameter in parameters_of(optimizer)]
        new = tuple(dict.fromkeys((*owner.buckets, *(each for each in held if each is not None))))
        if new != owner.buckets:
            self._set_buckets(owner, new)
        return owner

    def _claim(self, owner: Owner, optimizer: Any, *, was_empty: bool = False) -> None:
        """Take up what an optimizer holds.

        Args:
            was_empty: it had no gradients when it was made, and no backward has come since.
        """
        parameters = [
            each
            for each in parameters_of(optimizer)
            if isinstance(each, Tensor) and not fsdp_facts.is_elsewhere(each)
        ]
        owner.ends = [weakref.ref(each) for each in _ends_of(optimizer)]
        owner.held = [weakref.ref(each) for each in parameters]
        buckets = self.partition.gather(parameters)
        unmet = [bucket for bucket in buckets if not self._memo.knows(bucket.name)]
        left = [bucket for bucket in owner.buckets if bucket not in buckets]
        self._set_buckets(owner, buckets)
        self._leave(owner, left)
        filled = [bucket.name for bucket in unmet if bucket.ref is not None]
        if was_empty:
            for bucket in unmet:
                bucket.ref = None  # somebody else's code has put them there, for all to see
        elif filled:
            self._memo.lose_sight(filled)  # filled before we came
        if parameters and torch_facts.is_sharded(parameters[0]):
            self.are_sharded = True
            if fsdp_facts.has_second():
                self._note("gradients that FSDP2 holds back while gradient sync is off")

    def _leave(self, owner: Owner, left: list[Bucket]) -> None:
        """Say that an owner holds these no longer, and forget what nobody else holds."""
        for bucket in left:
            bucket.owners = tuple(each for each in bucket.owners if each != owner.name)
            if not bucket.owners:
                self._memo.forget(bucket.name, (bucket.name,))
                self.partition.drop((bucket,))

    def _set_buckets(self, owner: Owner, buckets: tuple[Bucket, ...]) -> None:
        owner.buckets = buckets
        owner.mask = 0
        for bucket in buckets:
            owner.mask |= bucket.bit
            bucket.owners = tuple(dict.fromkeys((*bucket.owners, owner.name)))
        if owner.stands_for is None:
            self._memo.hold(owner.name, tuple(bucket.name for bucket in buckets))
        self._changed()

    def _split(self, name: str, part: str) -> None:
        self._memo.split(name, part)
        for owner in self.by_name.values():
            if any(bucket.name == name for bucket in owner.buckets):
                self._set_buckets(owner, (*owner.buckets, self.partition.by_name[part]))
        self._changed()


def parameters_of(optimizer: Any) -> list[Tensor]:
    """Return all that an optimizer holds."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _ends_of(optimizer: Any) -> list[Tensor]:
    """Return the first and the last parameter of each group."""
    groups = [group["params"] for group in optimizer.param_groups]
    ends = [each for held in groups for each in (*held[:1], *held[-1:])]
    return [each for each in ends if isinstance(each, Tensor)]


def _holds_still(owner: Owner, optimizer: Any) -> bool:
    """Does an optimizer hold what it held? To put others into its groups takes no call."""
    ends = _ends_of(optimizer)
    return len(ends) == len(owner.ends) and all(
        ref() is each for ref, each in zip(owner.ends, ends, strict=True)
    )


def _holds_all(owner: Owner, optimizer: Any) -> bool:
    """Is nothing else in the midst of its groups either?"""
    now = parameters_of(optimizer)
    before = [ref() for ref in owner.held]
    # A tensor held elsewhere was left out of them.
    return len(now) != len(before) or all(map(is_, now, before))


def holds_canary(owner: Owner, optimizer: Any) -> bool:
    """Is a canary of `owner` among the parameters of this optimizer?"""
    held = {id(parameter) for parameter in parameters_of(optimizer)}
    return any(id(bucket.canary()) in held for bucket in owner.buckets)
