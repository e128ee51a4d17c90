"""Which buckets a skeleton has, and which of them each event reaches.

This is settled when the whole of a root has been read, since an optimizer made
late may hold what an early line clears.
"""

from __future__ import annotations

from collections.abc import Iterable

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.static.engine.flow.marks import are_alternatives
from zerograd.static.engine.flow.meant import meant_for, must_fill
from zerograd.static.engine.flow.steppers import items_by_turn
from zerograd.static.engine.identity.ir import FILLS, Block, Happening, Haze, Reset, walk
from zerograd.static.engine.identity.keys import (
    covers,
    frame_of,
    is_named_only,
    is_within,
    spelled,
    stem,
    touches,
)
from zerograd.static.engine.identity.picks import parted
from zerograd.static.engine.identity.shown import code_of
from zerograd.static.engine.identity.values import Optimizer
from zerograd.static.engine.reading.lending import add_up
from zerograd.static.engine.reading.spared import leave_the_rest
from zerograd.static.engine.text.whose import are_others, matches
from zerograd.static.engine.text.words import is_loss_name

NO_BUCKET = "nothing"  # what an event reaches that concerns nobody who steps


class Buckets:
    """The buckets of one root and who holds them."""

    def __init__(self, block: Block, networks: set[str], made: set[str]) -> None:
        self.networks = networks  # keys that are called as networks
        self._made = made  # keys of networks that the program is seen to make
        nodes = walk(block)
        self.happenings = [node for node in nodes if isinstance(node, Happening)]
        self.optimizers: dict[str, Optimizer] = {}
        for each in self.happenings:
            if each.optimizer is not None:
                self.optimizers.setdefault(each.optimizer.key, each.optimizer)
        self._lenders = add_up(self.happenings)
        self._locals: dict[tuple[str, int], bool] = {}
        self._assumed = self._assume(items_by_turn(nodes))
        self._parted = parted(self.optimizers.values())
        self.parts = frozenset(self._parted.values())  # of networks that optimizers share out
        self._unheld: set[str] = set()  # whose gradients are used, but by no optimizer
        self.tracked = self._tracked()
        self._stems = {stem(bucket) for bucket in self.tracked}
        self.holdings = {key: self._held(each) for key, each in self.optimizers.items()}
        self._owners: dict[str, list[str]] = {}
        for owner, held in self.holdings.items():
            for bucket in held:
                self._owners.setdefault(bucket, []).append(owner)
        self._leaves = {
            bucket
            for each in self.happenings
            if each.leaf and each.optimizer is not None
            for bucket in each.optimizer.keys or ()
        }
        self._meant = meant_for(self.happenings)
        for each in self.happenings:
            each.event = self._event(each)
        leave_the_rest(self.happenings)
        parts = {id(node.part) for node in nodes if isinstance(node, Haze) and node.part}
        for node in nodes:
            if isinstance(node, Haze):
                # The only one that clears a part: the rest is as if it were not there.
                rest = node.lacks and len(parts) == 1
                node.buckets, node.holders = () if rest else self._hazed(node), self._owners
            elif isinstance(node, Reset):
                node.buckets = self._renewed(node)

    def _is_unknown(self, bucket: str) -> bool:
        """Are the parameters of some network that cannot be told?"""
        if bucket.startswith("?"):
            return True
        known = bucket in self.networks or bucket in self._made
        return not known and is_named_only(bucket)

    def owners_of(self, bucket: str) -> list[str]:
        return self._owners.get(bucket, [])

    def backward_at(self, spot: Spot) -> Happening | None:
        """Return the backward that stands there."""
        losses = (each for each in self.happenings if each.kind is EventKind.BACKWARD)
        return next((each for each in losses if each.spot == spot), None)

    def _assume(self, items: frozenset[str]) -> dict[str, str]:
        """Match optimizers of unknown parameters with networks by name: optimizer_D, netD."""
        modules = {
            key
            for each in self.happenings
            if each.optimizer is None and each.keys
            for key in each.keys - items - self._lenders  # an optimizer holds whom they lend to
            if not key.startswith("?") and not any(map(is_loss_name, key.split(".")))
        }
        # What an optimizer is seen to hold is its own, whatever another is called.
        held = {key for each in self.optimizers.values() for key in each.keys or ()}
        found: dict[str, str] = {}
        for key, optimizer in self.optimizers.items():
            if optimizer.keys is None and not self._is_of_several(key):
                alike = [module for module in modules if matches(key, module)]
                if len(alike) == 1 and not any(touches(each, alike[0]) for each in held):
                    found[key] = alike[0]
        # A name alone is not believed where that network is never cleared, and others are.
        cleared = {
            key
            for each in self.happenings
            if each.kind is EventKind.CLEAR and each.optimizer is None
            for key in each.keys or ()
        }
        if not cleared <= set(found.values()):
            by_itself = {
                each.optimizer.key
                for each in self.happenings
                if each.kind is EventKind.CLEAR and each.optimizer is not None
            }
            found = {
                key: module
                for key, module in found.items()
                if module in cleared or key in by_itself
            }
        # one network cannot belong to two optimizers by name alone
        taken = list(found.values())
        return {key: module for key, module in found.items() if taken.count(module) == 1}

    def _is_of_several(self, key: str) -> bool:
        """Does it keep others, which are told by their names, or is it one of these?"""
        return any(
            covers(key, each) or covers(each, key) for each in self.optimizers if each != key
        )

    def _keys(self, optimizer: Optimizer) -> frozenset[str]:
        if optimizer.keys is not None:
            return frozenset(self._parted.get((optimizer.key, key), key) for key in optimizer.keys)
        return frozenset((self._assumed.get(optimizer.key, f"?{optimizer.key}"),))

    def _tracked(self) -> list[str]:
        found: dict[str, None] = {}
        for optimizer in self.optimizers.values():
            for key in sorted(self._keys(optimizer)):
                found[key] = None
        for each in self.happenings:
            if each.kind is EventKind.TOUCH:
                self._unheld |= self._untracked(each, [*found, *self._unheld])
        return [*found, *sorted(self._unheld)]

    def _untracked(self, node: Happening, tracked: list[str]) -> set[str]:
        """Return what a gradient is used of that no optimizer here holds."""
        return {
            key for key in node.keys or () if not any(touches(key, bucket) for bucket in tracked)
        }

    def _held(self, optimizer: Optimizer) -> tuple[str, ...]:
        keys = self._keys(optimizer)
        return tuple(b for b in self.tracked if any(covers(key, b) for key in keys))

    def _alone(self, bucket: str, node: Happening) -> bool:
        """Is it the bucket of the only optimizer in sight, so that whatever is meant is this?"""
        real = [
            key
            for key, each in self.optimizers.items()
            if not each.is_by_hand and self._is_owner_in_sight(key, node)
        ]
        return len(real) == 1 and bucket in self.holdings[real[0]]

    def _renewed(self, node: Reset) -> tuple[str, ...]:
        keys = {self._assumed.get(key.lstrip("?"), key) for key in node.keys} | node.keys
        if not any(stem(key) in self._stems for key in keys):
            return ()  # most things that are made hold no gradients
        return tuple(b for b in self.tracked if self._covered(frozenset(keys), b))

    def _covered(self, keys: frozenset[str], bucket: str) -> bool:
        return any(covers(key, bucket) for key in keys)

    def _event(self, node: Happening) -> Event | None:
        kind = node.kind
        if node.optimizer is not None:
            owner = node.optimizer.key
            reach = self.holdings[owner]
        else:
            owner = ""
            if node.keys is not None:  # the parameters of an optimizer matched by its name
                node.keys = frozenset(
                    self._assumed.get(key[1:], key) if key[:1] == "?" else key for key in node.keys
                )
            reach, node.partial = self._reach(node)
            node.doubted = self._doubted(node, reach)
        leaf = node.leaf and self._feeds_network(reach)
        if node.leaf and not leaf and not node.sure:
            return None  # weights that only look like an input: reading is not updating
        if leaf and not node.sure and self._is_stepped_beside(node, reach):
            return None  # it is measured, or made smaller, for the step to use
        if not reach and kind is not EventKind.STEP:
            # A loss that fills none of these still tells what the next step is about.
            if not node.partial and not node.doubted and kind is not EventKind.BACKWARD:
                return None
            reach = (NO_BUCKET,)
        fills = self._fills(node, reach) if kind in FILLS else frozenset[str]()
        empties: frozenset[str] = frozenset()
        if kind is EventKind.CLEAR:
            empties = frozenset(
                key for key, held in self.holdings.items() if held and set(held) <= set(reach)
            )
        return Event(
            kind,
            owner,
            node.spot,
            buckets=reach,
            text=code_of(node),
            fills=fills,
            empties=empties,
            scaler=node.scaler,
            to_none=node.to_none,
            inside=node.inside,
            leaf=leaf,
            scope=node.scope,
        )

    def _reach(self, node: Happening) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the buckets reached whole, and those reached in part."""
        if node.kind is EventKind.CLIP and node.keys is None:
            # whose gradients cannot be told: the only optimizer's, or nobody's
            return tuple(b for b in self.tracked if self._alone(b, node)), ()
        if node.kind is EventKind.SCALER_UPDATE or node.keys is None:
            return tuple(self.tracked), ()
        if node.kind is EventKind.BACKWARD:
            filled = self._filled(node)
            # A loss that cannot be told may or may not come from a leaf.
            doubtful = tuple(
                b
                for b in self.tracked
                if not node.sure and b not in filled and self._is_in_sight(b, node)
            )
            told = node.sure and bool(node.keys) and (node.keys or frozenset()) <= self._made
            others = [b for b in self.tracked if b not in filled]
            node.maybe = tuple(b for b in others if not told or self._is_leaf(b))
            return filled, doubtful
        if node.kind in (EventKind.CLIP, EventKind.TOUCH):
            clips = node.kind is EventKind.CLIP
            return tuple(
                b
                for b in self.tracked
                if (any(touches(key, b) for key in node.keys) and not (clips and b in self._unheld))
                or (self._is_unknown(b) and self._alone(b, node) and clips)
            ), ()
        whole = [b for b in self.tracked if self._covered(node.keys, b)]
        names = {spelled(key) for key in node.keys}
        part = [
            b
            for b in self.tracked
            if b not in whole and (any(touches(key, b) for key in node.keys) or spelled(b) in names)
        ]
        # An input that is moved by hand is nobody's parameter.
        inputs = bool(node.keys) and all(map(self._is_leaf, node.keys))
        for bucket in self.tracked if not inputs else ():
            if self._is_unknown(bucket) and bucket not in whole:
                # Clearing a network clears what the only optimizer holds, one would think, and
                # what an optimizer of its own holds; else nobody knows whose it is.
                own = self._covered(node.keys, bucket.removeprefix("?"))
                (whole if own or self._alone(bucket, node) else part).append(bucket)
        return tuple(whole), tuple(part)

    def _doubted(self, node: Happening, reach: tuple[str, ...]) -> tuple[str, ...]:
        """Return the buckets not reached that may be so by other names.

        Only networks that are both made here, of nothing else, are surely apart.
        """
        if node.kind is EventKind.ASSIGN:
            return () if reach else tuple(self.tracked)
        if node.kind is not EventKind.BACKWARD:
            return ()
        keys = node.keys or frozenset()
        apart = node.sure and bool(keys) and all(self._is_made(key) for key in keys)
        return tuple(b for b in self.tracked if b not in reach and not (apart and self._is_made(b)))

    def _filled(self, node: Happening) -> tuple[str, ...]:
        keys = node.keys or frozenset()
        tracked = [b for b in self.tracked if self._is_in_sight(b, node)]
        hit = [b for b in tracked if any(touches(key, b) for key in keys)]
        if hit and node.sure:
            unknown = [b for b in tracked if self._is_unknown(b) and b not in hit]
            return (*hit, *unknown)
        if node.sure and keys and keys <= self._made:
            # The loss comes from networks made here, and these buckets are others made here.
            return tuple(b for b in tracked if b in hit or not self._is_made(b))
        # Nothing proves that it does not fill them. Leaves are filled by what is seen only.
        return tuple(
            b
            for b in tracked
            if b in hit or not self._is_leaf(b) or must_fill(self.happenings, node, b)
        )

    def _is_in_sight(self, bucket: str, node: Happening) -> bool:
        """May a loss there come from this bucket? What is local to another function may not."""
        number = frame_of(bucket)
        if not number or number in node.frames:
            return True
        return any(not self._is_local(owner, number) for owner in self.owners_of(bucket))

    def _owners_in_sight(self, buckets: Iterable[str], node: Happening) -> set[str]:
        """Return who holds these buckets, but for the optimizers of other functions."""
        return {
            owner
            for bucket in buckets
            for owner in self.owners_of(bucket)
            if self._is_owner_in_sight(owner, node)
        }

    def _is_owner_in_sight(self, owner: str, node: Happening) -> bool:
        number = frame_of(owner)
        return number == 0 or number in node.frames or not self._is_local(owner, number)

    def _is_local(self, owner: str, number: int) -> bool:
        """Is an optimizer stepped and cleared within one function only?"""
        key = (owner, number)
        if key not in self._locals:
            self._locals[key] = all(
                number in each.frames
                for each in self.happenings
                if each.optimizer is not None and each.optimizer.key == owner
            )
        return self._locals[key]

    def _is_made(self, bucket: str) -> bool:
        return bucket in self._made or any(covers(key, bucket) for key in self._made)

    def _is_leaf(self, bucket: str) -> bool:
        return bucket in self._leaves

    def _is_stepped_beside(self, node: Happening, reach: tuple[str, ...]) -> bool:
        """Does an optimizer step on these gradients in the same loop, and not in their stead?"""
        return any(
            each.kind is EventKind.STEP
            and each.loop is node.loop
            and each.optimizer is not None
            and not each.optimizer.is_by_hand
            and not set(reach).isdisjoint(self.holdings[each.optimizer.key])
            and not (each.unit is node.unit and are_alternatives(node, each))
            for each in self.happenings
        )

    def _feeds_network(self, reach: tuple[str, ...]) -> bool:
        """Is it an input of some network, and not a weight of a home-made one?"""
        return any(
            each.kind is EventKind.BACKWARD
            and any(bucket in each.through for bucket in reach)
            and self._comes_through_a_network(each.through)
            for each in self.happenings
        )

    def _comes_through_a_network(self, through: frozenset[str]) -> bool:
        """Has something else computed with it: a network, or an object that holds one?"""
        return not self.networks.isdisjoint(through) or any(
            not self._is_leaf(key) and not is_loss_name(key) for key in through
        )

    def _fills(self, node: Happening, reach: tuple[str, ...]) -> frozenset[str]:
        """Return the owners that a backward is proved to fill."""
        keys = node.keys or frozenset()
        # An unseen method of an object may use any part of it: that proves none, nor does it fill
        # an optimizer that holds the object by its name alone.
        proves = touches if node.sure else is_within
        guessed = () if node.sure else self._assumed.values()
        # Nor does a method of the object that holds all of them; and a loss that trains a
        # network of its own, a discriminator, may cut off what it is handed.
        own = {
            key
            for key in keys
            if is_loss_name(key) and any(covers(key, bucket) for bucket in self.tracked)
        }
        seen = own or keys - {"self"}
        proved = [b for b in reach if b not in guessed and any(proves(key, b) for key in seen)]
        holders = self._owners_in_sight(reach, node)
        if len([key for key in holders if not self.optimizers[key].is_by_hand]) == 1:
            proved = list(reach)  # there is no other that it could be meant for
        return frozenset(self._owners_in_sight(proved, node) | self._meant.get(id(node), set()))

    def _hazed(self, node: Haze) -> tuple[str, ...]:
        if node.keys is None:
            return tuple(self.tracked)
        # An optimizer whose parameters nobody saw is named by itself: all that it holds is meant.
        held = {b for key in node.keys for b in self.holdings.get(key.removeprefix("?"), ())}
        # Who lends its gradients is put where the other is, and not back. And what is changed by
        # hand, and has an optimizer of its own, is nothing to others.
        told = node.spent and (node.keys <= self._lenders or node.keys <= self._owners.keys())
        return tuple(
            b
            for b in self.tracked
            if b in held
            or (self._is_unknown(b) and not told and not are_others(node.keys, b))
            or any(touches(key, b) for key in node.keys)
        )
