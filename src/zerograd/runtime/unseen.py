"""What was done to `.grad` itself, in no call that we saw: cleared, assigned or scaled by hand.

The version counters of the canaries tell of most of it. `.data.zero_()` and the like move
no counter, so where something may have been cleared that way and it matters, values tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import Event, EventKind
from zerograd.runtime import called_code, hand_work, near
from zerograd.runtime.buckets import GONE, NEW, SAME, TOUCHED, Bucket
from zerograd.runtime.call_site import MOST_SITES, Site
from zerograd.runtime.care import MOST_WHOLE
from zerograd.runtime.chosen import is_chosen_at
from zerograd.runtime.hand_work import BY_HAND

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder

_PHASES = {(False, True): "fresh", (True, False): "spent", (True, True): "stale"}
_CLEARED, _ZEROED, _ASSIGNED, _ADDED = range(4)
_KINDS = {
    _CLEARED: EventKind.CLEAR,
    _ZEROED: EventKind.CLEAR,
    _ASSIGNED: EventKind.ASSIGN,
    _ADDED: EventKind.BACKWARD,  # on top of what is there, as a backward does
}


class Unseen:
    """Looks at buckets before an event, and feeds what was done to them since the last one."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._answers: dict[tuple[Callable[[Site], bool], Site], bool] = {}

    def before_backward(self, buckets: Iterable[Bucket], site: Site) -> None:
        """Find out what was done before a backward adds to it."""
        recorder = self._recorder
        done: list[tuple[Bucket, int]] = []
        for bucket in buckets:
            filled = bucket.name in recorder.memo.node.filled
            change = bucket.look()
            if not bucket.owners:
                recorder.leaves.before_backward(bucket, site, filled)
            if change == SAME and not filled:
                continue
            act = self._act(bucket, change, site, adds=True)
            if act is not None:
                done.append((bucket, act))
            if act == _CLEARED:
                done += self._left_out(bucket, site, adds=True)
        if done:
            self._feed(site, done)

    def _is_zeroed_in_part(self, bucket: Bucket, site: Site) -> bool:
        """Are some gradients zeros, by a clear by hand? Then the others are parted from them."""
        looks = self._recorder.looks
        if len(bucket.members) < 2 or not self._is_so(near.only_clears_near, site):
            return False
        if not looks.finds_zeros(bucket, site) or not looks.is_part_due(bucket, site):
            return False
        left = looks.not_zero(bucket.still_filled(MOST_WHOLE))
        return bool(left) and self._recorder.partition.part(bucket, left) is not bucket

    def _left_out(self, bucket: Bucket, site: Site, *, adds: bool) -> list[tuple[Bucket, int]]:
        """Part what a clear by hand to None has left out from a bucket; return what else was done.

        `for p in some_of_them: p.grad = None` clears the canary, and the others not: a fault
        where all should be cleared, and a way to freeze some where it stands before a step.
        """
        if len(bucket.members) < 2 or not self._recorder.looks.is_part_due(bucket, site):
            return []
        left = bucket.still_filled(MOST_WHOLE)
        part = self._recorder.partition.part(bucket, left) if left else None
        act = self._act(part, SAME, site, adds=adds) if part is not None else None
        return [] if part is None or act is None else [(part, act)]

    def before_use(self, buckets: Iterable[Bucket], site: Site) -> None:
        """Find out what was done before a step or a clip uses it."""
        done: list[tuple[Bucket, int]] = []
        for bucket in buckets:
            change = bucket.look()
            act = self._act(bucket, change, site, adds=False)
            if act is not None:
                done.append((bucket, act))
            if act == _CLEARED:
                done += self._left_out(bucket, site, adds=False)
            if change == NEW and act == _ASSIGNED and len(bucket.members) > 1:
                self._part_from_kept(bucket, site)
        if done:
            self._feed(site, done)

    def _part_from_kept(self, bucket: Bucket, site: Site) -> None:
        """Part what still holds its backward's gradients from what others were put into.

        A trunk gets its own by hand (PCGrad), the heads keep theirs.
        """
        if bucket.marks is not None:
            inside = {id(member) for member in bucket.members}
            kept = [member for member in bucket.kept() if id(member) in inside]
            if kept and len(kept) < len(bucket.members):
                self._recorder.partition.part(bucket, kept)
        elif self._recorder.looks.is_part_due(bucket, site):
            bucket.put = True  # the next backward is marked

    def before_clear(self, buckets: Iterable[Bucket]) -> None:
        """Find out what was filled by other code, or given by hand, before a clear throws it away.

        Gradients that another network's loss has left are handed on: no backward tells of them.
        """
        come = [each for each in buckets if each.ref is None and each.has_come()]
        if not come:
            return
        site = self._recorder.sites.here(4)
        if self._is_so(near.gives_near, site) or self._is_filled_by_calls(site):
            for bucket in come:
                bucket.look()
            self._feed(site, [(each, _ASSIGNED) for each in come])

    def _act(self, bucket: Bucket, change: int, site: Site, *, adds: bool) -> int | None:
        """Return what was done to a bucket, None for nothing.

        Args:
            adds: whether a backward comes that may add to what is there.
        """
        recorder, name = self._recorder, bucket.name
        node, looks = recorder.memo.node, recorder.looks
        if change == NEW:
            is_stale = name in node.used and name in node.unused
            if is_stale and self._is_so(near.only_changes_near, site):
                return None
            if name not in node.filled or not self._is_so(near.only_puts_zeros_near, site):
                return _ASSIGNED
        if name not in node.filled:
            # Gradients that were there before we came, and that somebody adds to.
            adds_by_hand = change == TOUCHED and name in node.unknown and not adds
            return _ASSIGNED if adds_by_hand and self._only_adds(site) else None
        if change == GONE:
            return _CLEARED
        phase = _PHASES[name in node.used, name in node.unused]
        # What has been used should be gone before more comes, and so should what nobody uses.
        is_due = adds and (name in node.used or not bucket.owners)
        if change == SAME and not is_due and not bucket.suspect and name in node.unused:
            if not looks.knows_zeros(bucket, site, phase):
                zero = looks.finds_zeros(bucket, site)
                bucket.doubt = bucket.doubt or (adds and zero is None)
                if not zero:
                    return None
                looks.suspect(bucket)
        elif change == SAME and not is_due and not bucket.suspect:
            return None
        asked = bucket.doubt
        bucket.doubt = False
        zero = looks.is_zero(bucket, site, phase)
        if change == NEW and not zero:
            return _ASSIGNED
        if zero is None:
            recorder.cannot_look(bucket)
            return None
        if zero:
            if change == SAME and bucket.clipped:
                bucket.grew = None  # a norm that is not finite makes zeros of all the rest
            # All zeros may be what the backward has left: then nobody has cleared it.
            is_used = name in node.used if bucket.owners else self._is_used_by_hand(bucket)
            is_natural = bucket.grew is False and not is_used
            is_open = bucket.grew is None and (name in node.unused or not is_used)
            if is_open:
                looks.suspect(bucket)
            if is_open and change == SAME and not bucket.owners:
                return None  # no counter has moved, and the next backward will tell
            return None if is_natural else _ZEROED
        spent = name in node.spent
        # What is there now is what the last step has left, whatever came before that: its own
        # step, and not that of another optimizer on a loss that they share.
        bucket.doubt = bucket.doubt or (asked and not (spent and self._is_spent_by_own(bucket)))
        if not spent or change != TOUCHED:
            return None
        if adds and self._is_zeroed_in_part(bucket, site):
            return _ZEROED
        if not self._only_adds(site):
            return _ASSIGNED
        bucket.stale_norm = None  # it was read too late to tell what is left over from the rest
        return _ADDED

    def _is_spent_by_own(self, bucket: Bucket) -> bool:
        own = frozenset(bucket.owners or (bucket.name,))
        held = self._recorder.memo.state(bucket.name).contributions
        return not any(own.isdisjoint(each.used_by) for each in held)

    def _is_used_by_hand(self, bucket: Bucket) -> bool:
        """Has an update of its own used what is there? Optimizers use the loss, and not this."""
        held = self._recorder.memo.state(bucket.name).contributions
        return any(bucket.name in each.used_by for each in held)

    def _only_adds(self, site: Site) -> bool:
        return self._is_so(near.only_adds_near, site) or self._is_filled_by_calls(site)

    def _is_filled_by_calls(self, site: Site) -> bool:
        return self._is_so(near.leaves_alone, site) and self._is_so(called_code.only_adds, site)

    def _is_so(self, question: Callable[[Site], bool], site: Site) -> bool:
        """Ask the source around `site`, once."""
        found = self._answers.get((question, site))
        if found is None:
            if len(self._answers) >= MOST_SITES:
                self._answers.clear()
            found = self._answers[question, site] = question(site)
        return found

    def _feed(self, site: Site, done: list[tuple[Bucket, int]]) -> None:
        unused = self._recorder.memo.node.unused
        masks: dict[tuple[int, bool], int] = {}
        for bucket, act in done:
            bucket.doubt = False
            # Zeros where a backward may have left nothing else prove no loss.
            proved = act != _ZEROED or bucket.name not in unused or bucket.grew is True
            masks[act, proved] = masks.get((act, proved), 0) | bucket.bit
        for (act, proved), mask in sorted(masks.items()):
            self._feed_one(site, act, mask, proved)

    def _feed_one(self, site: Site, act: int, mask: int, proved: bool) -> None:
        recorder = self._recorder

        def event() -> Event:
            clears = act in (_CLEARED, _ZEROED)
            spot, text = hand_work.find(site, "clear" if clears else "assign")
            if not clears and not text:
                spot, text = called_code.filling(site)
            if act == _ZEROED and not text:
                spot, text = hand_work.find(site, "zeros")
            return Event(
                _KINDS[act],
                "",
                spot,
                recorder.names_of(mask),
                text,
                backward="" if clears else BY_HAND,
                to_none=act == _CLEARED,
                finite=proved,
                chosen=clears and all(map(is_chosen_at, hand_work.clears_before(site) or (spot,))),
            )

        recorder.feed_by_hand((BY_HAND, act, site, mask, proved), event)
