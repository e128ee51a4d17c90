"""Steps: plain, with a closure, nested, and those taken while a backward runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from torch.optim.optimizer import Optimizer

from zerograd.lifecycle.events import Event, EventKind
from zerograd.runtime import ride, torch_facts
from zerograd.runtime.aside import Aside
from zerograd.runtime.call_site import MOST_SITES, NOWHERE, Site, argument_of
from zerograd.runtime.callers import is_counted
from zerograd.runtime.chosen import is_chosen
from zerograd.runtime.clears import code_of
from zerograd.runtime.owners import IN_BACKWARD, Owner, holds_canary

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder


@dataclass(slots=True)
class _Open:
    """A step that is under way."""

    number: int  # the optimizer's id
    owner: Owner
    site: Site
    waits: bool = False  # hooks of the user's come before it, which may clear what it would use
    has_closure: bool = False
    closure: CodeType | None = None
    backwards: int = 0  # heard when its closure was last called, or has last returned
    runs: bool = False  # is its closure under way?
    taken: int = 0  # how often it has used gradients by now
    is_due: bool = False  # has its closure left it to the step to use what there is?


class Steps:
    """Hears the steps, for the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[int, list[_Open]] = {}  # by thread
        self._for_others: dict[Site, bool] = {}
        self._aside = Aside(recorder)
        self.are_overheard = False  # by a mode of the user's, which would hear the ride's looks

    def begins(self, optimizer: Optimizer, closure: Any) -> None:
        recorder = self._recorder
        backwards = recorder.backwards
        backwards.threads.add(backwards.thread())
        stack = self._open.setdefault(threading.get_ident(), [])
        if stack and stack[-1].number != id(optimizer):
            self.go_on()
        own = max(torch_facts.steps_around(id(optimizer)) - 1, 0)
        while sum(each.number == id(optimizer) for each in stack) > own:
            stack.pop()  # a step that raised never said that it ended
        in_backward = backwards.around() is not None
        owner = recorder.owners.of(optimizer, in_backward, steps=True)
        if owner is None:
            return
        self.are_overheard = torch_facts.is_overheard()  # in a backward the mode itself steps aside
        recorder.before_step(owner.name)
        site = recorder.sites.here(3)
        if self._is_for_others(site):
            return
        if site is NOWHERE and owner.made_at is not None:
            site = owner.made_at
        if not owner.display:
            through = recorder.scaling.is_stepping()
            recorder.call(owner, argument_of(site.text) if through else site.receiver)
        outer = next((each.owner for each in stack if each.owner.mask & owner.mask), None)
        opened = _Open(id(optimizer), owner, site)
        if closure is not None:
            opened.closure = code_of(closure)
            opened.backwards = recorder.counts[ride.BACKWARD]
            opened.has_closure = opened.is_due = not own and outer is None
        stack.append(opened)
        if outer is None and not in_backward:
            filled = recorder.memo.node.filled
            for bucket in owner.buckets:
                if bucket.name not in filled:
                    recorder.looks.before_step(bucket, site, of_torch=_is_of_torch(optimizer))
            if recorder.leaves.watched:
                recorder.leaves.before_step()
        if own:
            # It is what the step around it calls of its base class, and has the same hooks.
            self._go_inside(stack, opened)
            return
        if outer is not None and outer is not owner:
            recorder.owners.stand_for(owner, outer)
        elif outer is None and closure is None:
            opened.waits = torch_facts.has_step_hooks(optimizer)
            if not opened.waits:
                self._take(owner, optimizer, site, is_plain=True)

    def _go_inside(self, stack: list[_Open], inner: _Open) -> None:
        """Let the inner step wait for the user's hooks in the place of the one around it."""
        for each in stack:
            if each.number == inner.number and each.waits:
                each.waits = False
                inner.waits, inner.site = True, each.site

    def _is_for_others(self, site: Site) -> bool:
        """Is it a step that `Join` takes, with nothing in it, for ranks that still have data?

        The place of such a step is the end of the `with`, where no other one is taken.
        """
        found = self._for_others.get(site)
        if found is None:
            if len(self._for_others) >= MOST_SITES:
                self._for_others.clear()
            found = self._for_others[site] = torch_facts.is_joining()
        return found

    def go_on(self, *, has_ended: bool = False) -> None:
        """Take the step that waits for the user's hooks, unless one of them is running.

        Args:
            has_ended: the step is over, whatever it has done.
        """
        stack = self._open.get(threading.get_ident())
        if not stack or not stack[-1].waits:
            return
        opened = stack[-1]
        optimizer = opened.owner.ref()
        if optimizer is None:
            return
        if has_ended or not torch_facts.is_in_step_hook(optimizer):
            opened.waits = False
            self._recorder.rounds.spoil()  # a ride hears the step before the hooks
            self._take(opened.owner, optimizer, opened.site)

    def closure_begins(self, optimizer: Optimizer) -> None:
        opened = self._heard(optimizer)
        if opened is not None:
            self._take_own(opened, optimizer)
            opened.runs = True
            opened.backwards = self._recorder.counts[ride.BACKWARD]

    def closure_returns(self, optimizer: Optimizer, loss: Any) -> None:
        """A closure that has gone backward leaves gradients to be used, and no other does.

        One that only computes a loss does so for an optimizer that goes backward itself, or
        searches for a length of step. What was there before it is used all the same. Without a
        loss nothing can be done but to use what is there, again if need be, and torch's
        optimizers do nothing else.
        """
        opened = self._heard(optimizer)
        if opened is None:
            return
        opened.runs = False
        backwards = self._recorder.counts[ride.BACKWARD]
        is_filled, opened.backwards = backwards > opened.backwards, backwards
        holds = self._holds_unused
        if loss is None or _is_of_torch(optimizer):
            holds = self._holds_any
        if is_filled or (opened.is_due and holds(opened.owner)):
            self._take_again(opened, optimizer)

    def before_clear(self, holder: Any) -> None:
        """What an optimizer has made of a loss itself is used before it clears that."""
        stack = self._open.get(threading.get_ident())
        if not stack:
            return
        self.go_on()
        opened = stack[-1]
        if not opened.has_closure or opened.runs:
            return
        optimizer = opened.owner.ref()
        if (
            optimizer is None
            or not self._recorder.owners.mask_of(holder, False) & opened.owner.mask
        ):
            return
        self._take_own(opened, optimizer)
        if opened.is_due and self._holds_unused(opened.owner):
            self._take_again(opened, optimizer)
        opened.is_due = False

    def _heard(self, optimizer: Optimizer) -> _Open | None:
        """Return the step under way whose closure it is: of nested ones, the outermost."""
        stack = self._open.get(threading.get_ident(), ())
        owner = self._recorder.owners.known(optimizer)
        for each in stack:
            if each.number == id(optimizer):
                return each
            if owner is None or each.owner.mask & owner.mask:
                return None
        return None

    def _take_own(self, opened: _Open, optimizer: Optimizer) -> None:
        """Take a step on what was filled since the closure returned: by the optimizer itself."""
        backwards = self._recorder.counts[ride.BACKWARD]
        if backwards > opened.backwards:
            opened.backwards = backwards
            self._take_again(opened, optimizer)

    def _take_again(self, opened: _Open, optimizer: Any) -> None:
        opened.is_due = False
        is_again = opened.taken > 0
        self._take(opened.owner, optimizer, opened.site, is_again=is_again, in_closure=True)
        opened.taken += 1

    def _holds_any(self, owner: Owner) -> bool:
        return any(bucket.name in self._recorder.memo.node.filled for bucket in owner.buckets)

    def _holds_unused(self, owner: Owner) -> bool:
        """Is there something in its buckets that no step has used, and nothing else?"""
        node = self._recorder.memo.node
        names = {bucket.name for bucket in owner.buckets}
        return not names.isdisjoint(node.unused) and names.isdisjoint(node.used)

    def filling_closure(self) -> CodeType | None:
        """Return the closure under way, once it has gone backward: what it clears then is lost."""
        stack = self._open.get(threading.get_ident())
        if not stack or stack[-1].closure is None:
            return None
        has_filled = self._recorder.counts[ride.BACKWARD] > stack[-1].backwards
        return stack[-1].closure if has_filled else None

    def ends(self, optimizer: Optimizer) -> None:
        stack = self._open.get(threading.get_ident())
        if stack and stack[-1].number == id(optimizer):
            self.go_on(has_ended=True)
            opened = stack.pop()
            owner = opened.owner
            for bucket in owner.buckets:
                if bucket.left_at is not None and not stack:
                    self._recorder.looks.after_step(bucket)
            if self._recorder.leaves.watched and not stack:
                self._recorder.leaves.after_step()
            if opened.has_closure:
                self._take_own(opened, optimizer)
                if opened.is_due:
                    self._take_again(opened, optimizer)
            if self._recorder.backwards.around() is None:
                # An optimizer may use the gradient's memory for its arithmetic. What is left is
                # spent all the same, and no gradient that the user has put there.
                for bucket in owner.buckets:
                    bucket.settle()
                    if bucket.goes_back:
                        self._recorder.looks.remember(bucket)

    def feed(
        self,
        kind: EventKind,
        owner: Owner,
        site: Site,
        scaler: str,
        plain: Any = None,
        is_again: bool = False,
    ) -> None:
        """Feed a step; `plain` is the optimizer if the call can be known again by it."""
        recorder = self._recorder
        key = (kind, site, owner.name, owner.mask, scaler, is_again)
        symbol = recorder.symbols.get(key)
        if symbol is None:
            names = recorder.names_of(owner.mask)
            event = Event(
                kind,
                owner.name,
                site.spot,
                names,
                site.text,
                scaler=scaler,
                inside=is_again,
                counted=is_counted(),
                chosen=is_chosen(may_leave=True),
                scope=site.scope,
            )
            call = recorder.call_here(ride.STEP, plain) if plain is not None else None
            symbol = recorder.new(key, event, call)
        if recorder.curves:
            recorder.feed(symbol, "grad_norm", recorder.curves.held_norm())
        else:
            recorder.feed(symbol)
        self._aside.stepped(owner, symbol.event)

    def _take(
        self,
        owner: Owner,
        optimizer: Optimizer,
        site: Site,
        *,
        is_plain: bool = False,
        is_again: bool = False,
        in_closure: bool = False,
    ) -> None:
        """Take a step, or what a further call of its closure makes of it (`is_again`)."""
        recorder = self._recorder
        recorder.counts[ride.STEP] += not is_again
        opened = recorder.backwards.around()
        if opened is None:
            thread = threading.get_ident()
            for bucket in owner.buckets:
                bucket.thread = thread
            recorder.unseen.before_use(owner.buckets, site)
            if recorder.leaves.watched:
                recorder.leaves.stepped(owner, site)
        elif owner.name != IN_BACKWARD or holds_canary(owner, optimizer):
            recorder.rounds.spoil()
            recorder.backwards.fill_inside(opened, owner.buckets)
        else:
            return
        scaler = recorder.scaling.around(optimizer) if recorder.scaling else ""
        plain = optimizer if is_plain and not scaler else None
        self.feed(EventKind.STEP, owner, site, scaler, plain, is_again)
        owner.backwards = recorder.counts[ride.BACKWARD]
        if recorder.replicas:
            recorder.replicas.at_step(owner.mask, in_closure=in_closure)


def _is_of_torch(optimizer: Optimizer) -> bool:
    return type(optimizer).__module__.startswith("torch.")
