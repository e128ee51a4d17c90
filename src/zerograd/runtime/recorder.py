"""Hook callbacks -> events: tells apart what happened, and hands it to the judge.

Calls are believed first, then the version counters of a few canaries, and values
only where these two leave a doubt that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from torch import Tensor
from torch.nn import Module
from torch.optim.optimizer import Optimizer

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import STEPS, Rule
from zerograd.lifecycle.state import UNKNOWN, BucketState
from zerograd.runtime import fsdp_facts, ride
from zerograd.runtime.backwards import Backwards, OpenBackward
from zerograd.runtime.buckets import Bucket
from zerograd.runtime.call_site import Site, argument_of, receiver_of
from zerograd.runtime.callers import Callers
from zerograd.runtime.clears import Clears
from zerograd.runtime.confirm import Looks
from zerograd.runtime.feeding import Feeding, Speak, TraceSink
from zerograd.runtime.graphs import Graphs
from zerograd.runtime.leaves import Leaves
from zerograd.runtime.names import name_in_frames
from zerograd.runtime.owners import Owner, Owners
from zerograd.runtime.replicas import Replicas
from zerograd.runtime.ride import Leg, Ring
from zerograd.runtime.scaling import Scaling
from zerograd.runtime.steps import Steps
from zerograd.runtime.unseen import Unseen
from zerograd.runtime.vacant import Vacant


@runtime_checkable
class Others(Protocol):
    """A trace that is compared with those of other ranks, update by update."""

    def owner_begins(self, owner: str) -> None: ...

    def be_uneven(self, is_uneven: bool) -> None: ...


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
        self.unseen = Unseen(self)
        self.callers = Callers()
        self.leaves = Leaves(self)
        self.replicas = Replicas(self)
        self.backwards, self.clears, self.steps = Backwards(self), Clears(self), Steps(self)
        self.scaling = Scaling(self)
        self.vacant = Vacant(self)
        graphs = Graphs(self)
        self.not_checked: dict[str, None] = {}
        self.names: dict[str, str] = {}  # of owners and scalers, as the user's code calls them
        self.held_as: dict[str, str] = {}  # owners by the variables that held them early on
        self.may_ride = self._may_ride
        self.set_canary = self._set_canary
        self.lose_what_varies = self._lose_what_varies
        self.before_step: Callable[[str], None] = lambda owner: None
        self._wants = wants
        self.others: Others | None = trace if isinstance(trace, Others) else None
        # The guard hands each call to the part that hears it, with no frame in between.
        self.backward_begins, self.backward_ends = self.backwards.begins, self.backwards.ends
        self.clear_begins, self.clear_ends = self.clears.begins, self.clears.ends
        self.step_begins, self.step_ends = self.steps.begins, self.steps.ends
        self.closure_begins = self.steps.closure_begins
        self.closure_returns = self.steps.closure_returns
        self.scales, self.unscaled = self.scaling.scales, self.scaling.unscaled
        self.scaler_step_begins = self.scaling.step_begins
        self.scaler_step_ends = self.scaling.step_ends
        self.scaler_updates = self.scaling.updates
        self.capture_begins, self.capture_ends = graphs.capture_begins, graphs.capture_ends
        self.replayed = graphs.replayed

    # What the parts do not hear.

    def measured(self, parameters: Any, norm: Any) -> None:
        if self.curves:
            self.curves.hold_norm(norm)
            if self.ride is not None and self.curves.has_norm:
                self.ride.expect_norm()
        if self.ride is None:
            mask = self._mask_of(parameters)
            held = [each for each in self.backwards.in_sight() if each.bit & mask]
            self.unseen.before_use(held, self.sites.here(3))

    def clips(self, parameters: Any, norm: Any) -> None:
        number = None
        if self.curves and self.curves.are_wanted(self.memo.rounds):
            number = self.curves.take("norm", norm)
        mask = self._mask_of(parameters)
        site = self.sites.here(3)
        if not mask:
            if isinstance(parameters, list) and not parameters:
                self.vacant.clipped(site)
            return
        sighted = self.backwards.in_sight()
        clipped = [each for each in sighted if each.bit & mask]
        self.unseen.before_use(clipped, site)
        for bucket in clipped:
            bucket.clipped = site.spot
        name = next((each.name for each in self.owners.by_name.values() if each.mask & mask), "")
        key = (EventKind.CLIP, site, name, mask)
        symbol = self.symbols.get(key)
        if symbol is None:
            event = Event(EventKind.CLIP, name, site.spot, self.names_of(mask), site.text)
            symbol = self.new(key, event, self.call_here(ride.CLIP, None))
        self.feed(symbol, "grad_norm", number)

    def _mask_of(self, parameters: Any) -> int:
        if isinstance(parameters, Module):
            return self.owners.mask_of(parameters, False)
        mask = 0
        for parameter in [parameters] if isinstance(parameters, Tensor) else parameters:
            bucket = self.partition.bucket_of(parameter)
            mask |= bucket.bit if bucket is not None else 0
        return mask

    def clipped(self, parameters: Any) -> None:
        self.backwards.look_again()

    def holds(self, optimizer: Optimizer) -> None:
        self.owners.meet(optimizer, self.sites.here(3))

    def registers(self, module: Module, name: str, part: Any) -> None:
        self.replicas.register(module)

    def forwarded(self, model: Module, synchronised: bool) -> None:
        self.replicas.forwarded(model, synchronised)

    # For the parts of the recorder.

    def is_wanted(self, leaf: Tensor) -> bool:
        """Is a parameter that no optimizer holds to be watched?"""
        if fsdp_facts.is_flat(leaf):
            self.partition.keep(leaf)
            return False
        if self.owners.are_sharded:
            return False
        return self._wants is None or self._wants(leaf)

    def take_up(self, bucket: Bucket, *, known: bool = False) -> None:
        """Begin to watch a bucket that no optimizer holds."""
        self.forget()
        if not known and bucket.ref is not None:
            self.memo.lose_sight((bucket.name,))

    def let_go_of(self, buckets: list[Bucket]) -> None:
        """Judge buckets that no optimizer holds and whose leaves are gone, and forget them."""
        for bucket in buckets:
            self._owner_ends(bucket.name)
            self.memo.forget(bucket.name, (bucket.name,))
        if buckets:
            self.partition.drop(buckets)
            self.forget()

    def hold_by_hand(self, bucket: Bucket) -> None:
        """Say that a bucket which no optimizer holds is updated by hand."""
        if not self.memo.holds(bucket.name):
            self.memo.hold(bucket.name, (bucket.name,))
            self.forget()

    def feed_fill(self, site: Site, bucket: Bucket) -> None:
        """Feed a backward that filled this bucket before it was watched."""
        self.backwards.feed(OpenBackward(site, ""), bucket.bit)

    def tell(self, finding: Finding) -> None:
        """Speak of a finding that the judge knows nothing of."""
        self._speak(finding, None)

    def note(self, what: str) -> None:
        """Say once what is not checked."""
        self.not_checked.setdefault(what)

    def finish(self, *, not_due: frozenset[str] = frozenset()) -> None:
        """Speak of what is known only at the end.

        Args:
            not_due: rules about what an exception has kept the program from doing.
        """
        self.end_ride()
        self.curves.tell_arrived()
        self.owners.renew()
        self.leaves.last_updates()
        for finding in self.memo.finish(not_due):
            self._speak(finding, None)

    def lose_track(self) -> None:
        """Something broke in while a call was heard: begin anew, with nothing known."""
        self.end_ride()
        self.forget()
        self.backwards.give_up()
        self.memo.lose_sight([bucket.name for bucket in self.partition.buckets])

    def names_of(self, mask: int) -> tuple[str, ...]:
        """Return the names of the buckets in a mask."""
        return tuple(bucket.name for bucket in self.partition.buckets if bucket.bit & mask)

    def state_now(self, bucket: Bucket) -> BucketState:
        """Return what a bucket holds, without ending a ride."""
        going = self.ride
        if going is not None and bucket.name in going.ring.varying:
            return UNKNOWN
        return self.memo.state(bucket.name, going.node if going is not None else self.memo.node)

    def left_in(self, bucket: Bucket) -> frozenset[str]:
        """Return who has used what is suspected to be left in a bucket, before its own loss."""
        found = self.memo.state(bucket.name, self.memo.before).suspicion
        return found.left.before - {found.owner} if found is not None else frozenset()

    def went_backward_for(self, owner: str) -> bool:
        """Has any backward come since the step before, filled or not what the owner holds?"""
        known = self.owners.by_name.get(owner)
        return known is not None and self.counts[ride.BACKWARD] > known.backwards

    def filled_for_nobody(self) -> str:
        """Return a bucket that is filled and that no optimizer holds, "" if there is none."""
        filled = (self.partition.by_name[name] for name in self.memo.node.filled)
        return next((each.name for each in filled if not each.owners and not each.leaf), "")

    def cannot_look(self, bucket: Bucket) -> None:
        """Say that nothing is known of a bucket whose values cannot be read."""
        self.lose_sight_in_graphs((bucket.name,))

    def lose_sight_in_graphs(self, names: tuple[str, ...]) -> None:
        """Say that nothing is known of buckets which a CUDA graph changes."""
        self.memo.lose_sight(names)
        self.note("gradients inside a CUDA graph: its replays are not seen")

    def call(self, owner: Owner, name: str) -> None:
        """Take note of the user's name for an owner."""
        owner.display = self.names[owner.name] = name = _first_name(owner, name)
        if self.others is not None:
            self.others.owner_begins(name)

    def called_by(self, event: Event) -> dict[str, str]:
        """Return what a step calls its owner: a helper that clears may call it otherwise."""
        name = argument_of(event.text) if event.scaler else receiver_of(event.text)
        owner = self.owners.by_name.get(event.owner)
        is_said = bool(event.scaler) or f"{name}.step" in event.text
        if event.kind not in STEPS or owner is None or not name or not is_said:
            return {}
        return {event.owner: _first_name(owner, name)}

    def look_for_names(self) -> None:
        """Look for variables that hold the optimizers nobody has called yet: some nobody will."""
        for name, owner in self.owners.by_name.items():
            optimizer = owner.ref()
            if not owner.display and optimizer is not None and name not in self.held_as:
                self.held_as[name] = name_in_frames(optimizer, within=True)

    def _may_ride(self) -> bool:
        return not (self.replicas or self.owners.has_news or self.steps.are_overheard)

    def _set_canary(self, leg: Leg, ring: Ring) -> None:
        """Say what a ride shall look at before this call: one gradient, there or not.

        Where all is done in calls, only one that has to be there could be cleared by hand.
        """
        has_hand_work = ring.has_hand_work
        event = leg.symbols[-1].event
        name = event.reach[0]
        if ring.varying:  # more than when it was ridden last, perhaps
            leg.canary = None
            name = next((each for each in event.reach if each not in ring.varying), "")
        bucket = self.partition.by_name.get(name)
        if bucket is None:
            return
        state = self.memo.state(bucket.name, leg.node)
        if state.unknown or not state.seen:
            return
        leg.is_present = not state.absent
        if not has_hand_work and (leg.kind == ride.CLEAR or not leg.is_present):
            return
        leg.canary = bucket.canary
        by_hand = (each.event for each in leg.symbols[:-1])
        leg.is_zeroed = leg.is_present and any(
            each.kind is EventKind.CLEAR and bucket.name in each.reach for each in by_hand
        )

    def _lose_what_varies(self, ring: Ring) -> None:
        """After a ride on which nobody looked what was filled: say what is not known of it.

        Known is what holds nothing, neither here nor in the round that the ring was made of.
        """
        filled, sighted = self.memo.node.filled, set(self.backwards.in_sight())
        lost = []
        for name in ring.varying:
            bucket = self.partition.by_name.get(name)
            if bucket is None:
                continue
            if name in filled or bucket not in sighted or bucket.gradients(1):
                lost.append(name)
        if lost:
            self.memo.lose_sight(lost)

    def _owner_ends(self, name: str) -> None:
        for finding in self.memo.finish():
            if finding.owner == name:
                self._speak(finding, None)
        self.held_as.pop(name, None)

    def _come_back_to(self, threads: set[int]) -> None:
        self.backwards.threads |= threads
        unused = self.memo.node.unused
        for bucket in self.backwards.in_sight():
            bucket.look()
            if bucket.owners:
                bucket.moved_at = bucket.print_before = None  # the ride's steps have changed it
            # What the ride has added to was not looked at.
            bucket.doubt = bucket.doubt or bucket.name in unused


def _first_name(owner: Owner, name: str) -> str:
    """Return the first of the names that it has where it goes by this one.

    `for opt in (opt_g, opt_d)` has one name for both of them.
    """
    optimizer = owner.ref()
    if optimizer is None or not name.isidentifier():
        return name
    return name_in_frames(optimizer, known_as=name) or name
