"""Findings of a live run: confirmed, put into the user's words, told once, counted."""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch

from zerograd.lifecycle.allow import Allowance, read_allowances
from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding, Live, TrailStep, in_order
from zerograd.lifecycle.rule import Severity
from zerograd.rules.clip_before_unscale import moved
from zerograd.rules.leaked_gradient import left_by_hand
from zerograd.rules.lost_gradient import is_unplaced, too_soon, unplaced
from zerograd.rules.stale_gradient import by_hand, in_closure, shared
from zerograd.rules.step_without_gradient import filled_elsewhere
from zerograd.rules.window_cleared_early import once
from zerograd.runtime import near
from zerograd.runtime.buckets import Bucket
from zerograd.runtime.call_site import code_at
from zerograd.runtime.callers import is_in_every_turn, unscaled_below
from zerograd.runtime.hand_work import BY_HAND
from zerograd.runtime.names import MOST_NAMES
from zerograd.runtime.owners import IN_BACKWARD
from zerograd.runtime.wording import names_of, word_of

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder

MOST_FOUND = 1_000  # findings; those past that are neither told nor counted
MOST_PLACES = 4_096  # at which something did not hold up, or is hidden
MOST_NAMED = 64  # optimizers, beside the first of each fault; to look for names takes a moment
MOST_TRIES = 64  # of a fault that does not hold up; after that ever fewer
SURE_OF_A_WINDOW = 3  # times that windows agree, where no counter tells when they end
_ON_NOTHING = frozenset({"ZG102", "ZG401"})
_ON_WHAT_IS_THERE = frozenset({"ZG101", "ZG301", "ZG303", "ZG304", "ZG402"})
# Of an older contribution, which may have been cleared unseen before a newer one came.
_ON_WHAT_WAS_THERE = frozenset({"ZG101", "ZG201", "ZG202", "ZG305", "ZG503"})
_OVER_THE_RUN = frozenset({"ZG105", "ZG203"})
_MORE_OF = re.compile(r"(\S+ and \d+ more|\d+ parameters)\.grad\b")
_TOKEN = re.compile(rf"(?:optimizer|bucket|scaler)#\d+|{IN_BACKWARD}")
_NOBODY: Mapping[str, str] = MappingProxyType({})


class Ledger:
    """Takes findings from the recorder and tells each fault once.

    Args:
        shown: codes of the rules that are selected.
        tell: what to do with a finding that is new.
    """

    def __init__(
        self, shown: frozenset[str], tell: Callable[[Finding], None], models: tuple[Any, ...] = ()
    ) -> None:
        self._shown = shown
        self._tell = tell
        self._models = models
        self._found: dict[tuple[str, Spot], Finding] = {}
        self._counts: dict[tuple[str, Spot], int] = {}
        self._owners: dict[tuple[str, Spot], str] = {}  # of what was found, by our own names
        self._named: set[tuple[tuple[str, Spot], str]] = set()  # others of whom it is told
        self._tries: dict[tuple[str, Spot], int] = {}  # to tell what did not hold up
        self._dropped: set[tuple[str, Spot]] = set()  # hidden or allowed
        # the clips that may come between two steps of an owner on the same gradients
        self._clipped_for: set[tuple[str, Spot]] = set()
        self._allowances: dict[str, tuple[Allowance, ...]] = {}
        self.recorder: Recorder | None = None

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, by place, each with its count."""
        return in_order(
            replace(each, live=replace(each.live or Live(), count=self._counts[key]))
            for key, each in self._found.items()
        )

    def take(self, finding: Finding, event: Event | None) -> None:
        """Count a finding, and tell it if it is new and holds up."""
        key = finding.key
        if key in self._counts:
            self._counts[key] += 1
            if finding.owner != self._owners[key]:
                self._name_more(finding, event)
            return
        if key in self._dropped or len(self._found) >= MOST_FOUND:
            return
        if len(self._dropped) >= MOST_PLACES or len(self._tries) >= MOST_PLACES:
            self._dropped.clear()
            self._tries.clear()
            self._clipped_for.clear()
        if finding.rule.code not in self._shown and finding.rule.severity is Severity.NOTE:
            self._dropped.add(key)
            return
        if finding.rule.severity is Severity.NOTE and self._is_beside_an_error(finding):
            return
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        if tries > MOST_TRIES and tries & (tries - 1):
            return
        if event is not None and self._is_meant(finding, event):
            self._dropped.add(key)
            return
        if finding.rule.code == "ZG302" and self._is_owed_already(finding, event):
            return
        if event is None and finding.rule.code == "ZG102" and self._has_another(finding):
            return
        buckets = self._buckets(finding, event)
        if finding.rule.code == "ZG203" and any(each.by_hand for each in buckets):
            return  # the optimizer is there to clear them
        if event is not None and not self._holds_up(finding, event, buckets):
            return
        self._enter(self._in_words(finding, buckets, event), finding.owner)

    def _is_meant(self, finding: Finding, event: Event) -> bool:
        """Are the backwards of the window no micro-batches that nobody divides?"""
        recorder, code = self.recorder, finding.rule.code
        window = recorder.memo.edge.closed if recorder is not None else None
        if recorder is None or window is None:
            return False
        if code == "ZG503":
            spot = max(window.used, key=lambda each: each[1])[0]
            is_divided = near.scales_near(finding.spot)  # the gradients, by hand
            return is_divided or not recorder.callers.are_micro_batches(spot)
        # A sum kept elsewhere (ZeRO's partitions, buffers of one's own) is not seen where no
        # optimizer's gradients are assigned from it: an update by hand may well use it.
        return code == "ZG501" and (
            finding.owner.startswith("bucket#")
            or any(map(near.is_kept_near, (finding.spot, event.spot)))
            or all(recorder.callers.are_several(spot) for spot, _ in window.lost)
        )

    def _is_beside_an_error(self, finding: Finding) -> bool:
        """Is a graver fault told of the same line? A note of its windows can wait for that."""
        return any(
            spot == finding.spot and each.rule.severity is Severity.ERROR
            for (_, spot), each in self._found.items()
        )

    def _is_owed_already(self, finding: Finding, event: Event | None) -> bool:
        """Is it told already that this update is missing, or that it came too early?

        One is for all optimizers of a scaler.
        """
        owner, advice = map(self._in_words_of, (finding.owner, finding.advice))
        return any(
            (each.rule.code == finding.rule.code and each.advice == advice)
            or (each.rule.code == finding.rule.code and event is None and each.owner == owner)
            or (each.rule.code == "ZG305" and each.owner == owner)
            for each in self._found.values()
        )

    def _enter(self, finding: Finding, owner: str) -> None:
        key = finding.key
        stale = self._found.get(("ZG101", finding.spot))
        is_told = (
            finding.rule.code == "ZG201" and stale is not None and stale.owner == finding.owner
        )
        if is_told or finding.rule.code not in self._shown or self._is_allowed(finding):
            self._dropped.add(key)
            return
        self._found[key] = finding
        self._counts[key] = 1
        self._owners[key] = owner
        if finding.rule.code == "ZG101":
            self._explain(("ZG201", finding.spot), owner)
        self._tell(finding)

    def _name_more(self, finding: Finding, event: Event | None) -> None:
        """Name what other optimizers hold, of which the same is true at the same line."""
        named, found = (finding.key, finding.owner), self._found[finding.key]
        if named in self._named or len(self._named) >= MOST_NAMED or found.live is None:
            return
        self._named.add(named)
        others = names_of(self._buckets(finding, event), self._models)
        names = (*found.live.parameters, *others)
        live = replace(found.live, parameters=tuple(dict.fromkeys(names))[:MOST_NAMES])
        self._found[finding.key] = replace(found, live=live)

    def owner_of(self, finding: Finding) -> str:
        """Return whose fault it is, by our own name; "" once another finding explains it."""
        return self._owners[finding.key] if finding.key in self._found else ""

    def _explain(self, key: tuple[str, Spot], owner: str) -> None:
        """Take back a finding that the clear which is missing there explains as well."""
        if self._is_found_of(key, owner):
            del self._found[key], self._counts[key]
            self._dropped.add(key)

    def _is_found_of(self, key: tuple[str, Spot], owner: str) -> bool:
        """Is it found, of this owner or of one that steps there on the same parameters?"""
        if key not in self._found or self.recorder is None:
            return False
        known = self.recorder.owners.by_name
        one, other = known.get(owner), known.get(self._owners[key])
        return self._owners[key] == owner or bool(one and other and one.mask & other.mask)

    def _holds_up(self, finding: Finding, event: Event, buckets: list[Bucket]) -> bool:
        """Look once more before speaking: a wrong word costs more than a late one."""
        recorder = self.recorder
        if recorder is None or not buckets:
            return True
        code, looks = finding.rule.code, recorder.looks
        if code == "ZG402":
            spots = [each.clipped for each in buckets if each.clipped is not None]
            self._clipped_for.update((finding.owner, spot) for spot in spots)
        if code == "ZG304" and event.kind is EventKind.CLIP and self._may_be_in_time(finding):
            return False
        if code in _ON_NOTHING:
            if any(bucket.goes_by_itself for bucket in buckets):
                return False
            # Values may have come by a way that moves no counter.
            return not any(bucket.gradients(1) and looks.norm(bucket) > 0 for bucket in buckets)
        if code == "ZG501":
            # A guard that throws away what it dislikes may do so a few times in a row, and one
            # that asks at the end of each window whole windows, each as large as the next.
            window = recorder.memo.edge.closed
            lost = window.lost if window is not None else ()
            is_unguarded = bool(lost) and all(
                is_in_every_turn(finding.spot, spot) for spot, _ in lost
            )
            if is_unguarded or (window is not None and window.size > 1):
                return is_unguarded
            return bool(event.counted) or self._tries[finding.key] > SURE_OF_A_WINDOW
        if code == "ZG402" and all(each.is_moved() for each in buckets):
            return False  # back to where the first step began: a search for a length of step
        if code == "ZG402" and BY_HAND in (recorder.memo.last_fill(each.name) for each in buckets):
            return False
        if code == "ZG402" and not looks.all_stay([each for each in buckets if each.owners]):
            return False
        if code in _ON_WHAT_IS_THERE:
            # Zeros are nothing: somebody has cleared them by a way that moves no counter.
            # An update by hand is known only later, when they may well be gone again.
            held = [each for each in buckets if finding.owner == each.name or looks.norm(each)]
        else:
            held = buckets
        if code in _ON_WHAT_WAS_THERE:
            held = [bucket for bucket in held if not bucket.doubt]
        if held:
            return True
        for bucket in buckets:
            looks.suspect(bucket)
        return False

    def _has_another(self, finding: Finding) -> bool:
        """Has its optimizer another fault, or waits one for its proof, of which this is a view?"""
        pending = self._tries.keys() - self._counts.keys() - self._dropped - {finding.key}
        return bool(pending) or finding.owner in self._owners.values()

    def _may_be_in_time(self, clip: Finding) -> bool:
        """Does a second step come, for which the clip is in time? One round tells."""
        return self._tries[clip.key] == 1 or (clip.owner, clip.spot) in self._clipped_for

    def _buckets(self, finding: Finding, event: Event | None) -> list[Bucket]:
        if self.recorder is None:
            return []
        by_name = self.recorder.partition.by_name
        if event is not None and event.buckets and finding.rule.code != "ZG201":
            names: tuple[str, ...] = event.buckets
        elif finding.owner in by_name:
            names = (finding.owner,)
        else:
            owner = self.recorder.owners.by_name.get(finding.owner)
            names = tuple(bucket.name for bucket in owner.buckets) if owner else ()
        found = [by_name[name] for name in names if name in by_name]
        if event is None:
            return found
        memo = self.recorder.memo
        broken = [
            bucket
            for bucket in found
            if finding.rule.broken_by(memo.state(bucket.name, memo.before), event)
        ]
        return broken or found

    def _in_words(self, finding: Finding, buckets: list[Bucket], event: Event | None) -> Finding:
        """Return the finding with the user's own names in it, and what a live run knows."""
        here = self.recorder.called_by(event) if self.recorder is not None and event else _NOBODY
        if self.recorder is not None and finding.trail:
            held = [bucket.name for bucket in buckets]
            finding = self.recorder.ways.told(finding, event, held)
        word = partial(self._in_words_of, here=here)
        if finding.owner.startswith("bucket#"):
            holder = self.recorder.leaves.stepped_by.get(finding.owner) if self.recorder else None
            finding = shared(finding, holder) if holder else by_hand(finding)
        elif event is not None:
            finding = self._as_it_stands(finding, event, buckets)
        trail = tuple(
            TrailStep(step.spot, word(step.text), step.code or code_at(step.spot))
            for step in finding.trail
        )
        names = names_of(buckets, self._models)
        late = unscaled_below(finding.spot) if finding.rule.code == "ZG301" else ""
        if late and late in word(finding.advice):
            finding = moved(finding, late)
        return replace(
            finding,
            message=word(finding.message),
            advice=_MORE_OF.sub(r"the gradients of \1", word(finding.advice)),
            owner=self._in_words_of(finding.owner),  # as in a trace, whoever calls it there
            trail=trail,
            live=Live(
                step=self._round_of(finding, event, buckets),
                ranks=_ranks(),
                parameters=tuple(names),
                share=self._share(finding, buckets),
            ),
        )

    def _as_it_stands(self, finding: Finding, event: Event, buckets: list[Bucket]) -> Finding:
        """Return the finding in words of its own where the usual ones would lead astray."""
        code, recorder = finding.rule.code, self.recorder
        if code == "ZG102" and finding.spot == event.spot:
            return unplaced(finding) if is_unplaced(finding, event.spot) else too_soon(finding)
        if code == "ZG501" and recorder is not None and recorder.memo.edge.closed is not None:
            return once(finding, recorder.memo.edge.closed)
        if code == "ZG101" and event.inside:
            return in_closure(finding)
        if code == "ZG201" and recorder is not None:
            left = {each for bucket in buckets for each in recorder.left_in(bucket)}
            if len(left) == 1 and left <= recorder.partition.by_name.keys():
                return left_by_hand(finding, *left)
        if code == "ZG401" and recorder is not None and recorder.went_backward_for(finding.owner):
            return filled_elsewhere(finding, recorder.filled_for_nobody())
        return finding

    def _round_of(self, finding: Finding, event: Event | None, buckets: list[Bucket]) -> int | None:
        """Return the round in which it happened: a leak is told by what comes after the step.

        What is judged over the whole run has happened since the first backward that filled these.
        """
        if self.recorder is None:
            return None
        if event is None and finding.rule.code in _OVER_THE_RUN:
            return min((each.since for each in buckets if each.since is not None), default=None)
        memo = self.recorder.memo
        is_later = event is not None and finding.rule.code == "ZG201" and not memo.was_stepped
        return memo.rounds - 1 if is_later else memo.rounds

    def in_users_names(self, event: Event) -> Event:
        """Return the event with the user's names for optimizers and scalers in it."""
        return replace(
            event,
            owner=self._in_words_of(event.owner),
            scaler=self._in_words_of(event.scaler),
            fills=frozenset(map(self._in_words_of, event.fills)),
        )

    def _in_words_of(self, text: str, here: Mapping[str, str] = _NOBODY) -> str:
        return _TOKEN.sub(lambda token: here.get(token.group()) or self.word(token.group()), text)

    def _share(self, finding: Finding, buckets: list[Bucket]) -> float | None:
        if finding.rule.code != "ZG101" or self.recorder is None:
            return None
        known = [bucket for bucket in buckets if bucket.stale_norm is not None]
        stale = math.hypot(*(bucket.stale_norm or 0.0 for bucket in known))
        whole = math.hypot(*(self.recorder.looks.norm(bucket) for bucket in known))
        if not known or not whole or not math.isfinite(whole) or not math.isfinite(stale):
            return None
        return stale / whole

    def word(self, token: str) -> str:
        """Return the user's name for an optimizer, scaler or bucket of ours."""
        return word_of(token, self.recorder, self._models) if self.recorder is not None else token

    def _is_allowed(self, finding: Finding) -> bool:
        rule, spot = finding.rule, finding.spot
        if spot.path not in self._allowances:
            if len(self._allowances) >= MOST_PLACES:
                self._allowances.clear()
            text = "".join(linecache.getlines(spot.path))
            self._allowances[spot.path] = read_allowances(text)
        return any(
            each.covers(rule.code, rule.name, spot.line, spot.end_line)
            for each in self._allowances[spot.path]
        )

    def metrics(self) -> dict[str, float]:
        """Return the counts per rule."""
        found: dict[str, float] = {"zerograd/findings": float(len(self._found))}
        for (code, _), count in self._counts.items():
            found[f"zerograd/{code}"] = found.get(f"zerograd/{code}", 0.0) + count
        return found


def _ranks() -> tuple[int, ...]:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return (torch.distributed.get_rank(),)
    return ()
