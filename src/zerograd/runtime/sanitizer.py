"""`watch`: the live witness for one stretch of a program."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar

import torch
from torch import Tensor

from zerograd.errors import GradientError, GradientWarning, UsageError
from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.state import BucketState
from zerograd.rules import ALL_RULES
from zerograd.rules.selection import select_rules
from zerograd.runtime import announce, hooks
from zerograd.runtime.aloud import say
from zerograd.runtime.decorated import within
from zerograd.runtime.feeding import TraceSink
from zerograd.runtime.forks import new_lock
from zerograd.runtime.guard import Guard
from zerograd.runtime.last_exception import (
    add_note,
    explain_absence,
    not_due_after,
    without_frames_of,
)
from zerograd.runtime.ledger import Ledger
from zerograd.runtime.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")
Policy = Literal["warn", "raise", "collect"]
_POLICIES = ("warn", "raise", "collect")
_SETTINGS = ("policy", "select", "ignore", "show_notes", "on_finding", "trace")
_OURS = (GradientError, GradientWarning)
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep

_active: list[Sanitizer] = []
_lock = new_lock()


class Sanitizer:
    """Watches gradients between `start` and `stop`; a context manager and a decorator too.

    Args:
        objects: models and optimizers to watch; all of the process if there are none.
        policy: "warn" issues a GradientWarning at the user's line, "raise" raises
            GradientError there (where a fault is known only later, at the next step of that
            optimizer), "collect" only keeps the findings.
        select: rules to tell of, by code, beginning of a code, or name.
        ignore: rules not to tell of.
        show_notes: tell of notes too.
        on_finding: called with each new finding.
        trace: takes down every event.

    >>> import torch, zerograd
    >>> model = torch.nn.Linear(2, 1)
    >>> opt = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with zerograd.watch(policy="collect") as watch:
    ...     for _ in range(3):
    ...         model(torch.ones(1, 2)).sum().backward()
    ...         opt.step()
    >>> [finding.rule.name for finding in watch.findings]
    ['stale-gradient']
    """

    def __init__(
        self,
        *objects: object,
        policy: Policy = "warn",
        select: str | Sequence[str] = (),
        ignore: str | Sequence[str] = (),
        show_notes: bool = False,
        on_finding: Callable[[Finding], object] | None = None,
        trace: TraceSink | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            raise _no_such(unknown)
        if policy not in _POLICIES:
            raise UsageError(f"policy={policy!r}: there is {', '.join(_POLICIES)}.")
        if on_finding is not None and not callable(on_finding):
            raise UsageError(
                f"on_finding={on_finding!r}: it takes a function that is called with each finding."
            )
        if trace is not None and not callable(getattr(trace, "write", None)):
            raise UsageError(
                f"trace={trace!r}: it takes a writer of events, such as zerograd.trace.writer's "
                "TraceWriter.\n  `zerograd run --trace FILE SCRIPT` records a run."
            )
        self._policy = policy
        self._on_finding = on_finding
        self._trace = trace
        self._objects = _Objects(objects)
        shown = frozenset(rule.code for rule in select_rules(select, ignore, notes=show_notes))
        self._shown = shown
        self._runs = 0  # how often it has been entered and not left
        self._user_error: BaseException | None = None
        self._not_due: frozenset[str] = frozenset()  # since an exception has ended the program
        self._failure = ""
        self._due: list[tuple[Finding, Exception]] = []  # to be raised at a line of the user's
        self._ledger = Ledger(shown, self._tell, self._objects.models)
        self._recorder: Recorder | None = None
        self._guard: Guard | None = None

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, by place, each with its count."""
        return self._ledger.findings

    @property
    def not_checked(self) -> list[str]:
        """What could not be checked, and why, each said once."""
        told = list(self._recorder.not_checked) if self._recorder is not None else []
        return [self._failure, *told] if self._failure else told

    @property
    def steps(self) -> int:
        """How many optimizer steps were seen."""
        return self._recorder.totals[2] if self._recorder is not None else 0

    @property
    def iterations(self) -> int:
        """How many turns the training loop has begun; the first has the number 0."""
        return self._recorder.totals[3] if self._recorder is not None else 0

    def metrics(self) -> dict[str, float]:
        """Return counts for an experiment tracker: findings, each rule's, steps and the like."""
        metrics = self._ledger.metrics()
        recorder = self._recorder
        if recorder is not None:
            backwards, clears, steps, rounds = recorder.totals
            metrics |= {
                "zerograd/steps": float(steps),
                "zerograd/backwards": float(backwards),
                "zerograd/clears": float(clears),
                "zerograd/iterations": float(rounds),
                "zerograd/looks": float(recorder.looks.taken),
            }
        return metrics

    def start(self) -> Sanitizer:
        """Begin to watch. Within a watch that is on already, it only counts along."""
        if os.environ.get("ZEROGRAD") == "0":
            return self
        with _lock:
            self._runs += 1
            if self._runs > 1:
                return self
            self._not_due = frozenset()
            if self._recorder is None:
                self._recorder = self._new_recorder()
            self._guard = Guard(self._recorder, self._is_on_purpose, self._fail)
            hooks.add(self._guard)
            _active.append(self)
        return self

    def stop(self) -> None:
        """Take every patch off and judge what is judged at the end. A second call does nothing."""
        with _lock:
            if self._runs == 0:
                return
            self._runs -= 1
            if self._runs:
                return
            guard, self._guard = self._guard, None
            if self in _active:
                _active.remove(self)
            if guard is None:
                return
            hooks.remove(guard)
        if self._recorder is not None:
            guard.run(functools.partial(self._recorder.finish, not_due=self._not_due))
        due, self._due = self._due, []
        if due and self._user_error is None:
            raise due[0][1]

    def abandon(self) -> None:
        """Stop without a last judgement: a forked child leaves its parent's watch behind."""
        with _lock:
            guard, self._guard, self._runs = self._guard, None, 0
            if self in _active:
                _active.remove(self)
            if guard is not None:
                hooks.remove(guard)

    def state_of(self, parameter: Tensor) -> tuple[str, BucketState | None]:
        """Return the owner of a parameter in the user's words, and what its bucket holds."""
        recorder = self._recorder
        bucket = recorder.partition.bucket_of(parameter) if recorder is not None else None
        if recorder is None or bucket is None:
            return "", None
        owners = ", ".join(self._ledger.word(each) for each in bucket.owners)
        return owners, recorder.state_now(bucket)

    def explain(self, error: BaseException) -> None:
        """Say which exception ends the program; a rule that explains it adds a note to it.

        Never raises.
        """
        self._not_due = not_due_after(error)
        try:
            without_frames_of(error, _HERE)
            finding = explain_absence(error)
            if finding is not None and "ZG104" in self._shown:
                self._user_error = error
                self._ledger.take(finding, None)
                add_note(error, finding)
        except Exception as failure:
            self._fail(failure)

    def __enter__(self) -> Sanitizer:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._runs == 0:
            return
        if error is not None:
            self.explain(error)
            self._user_error = error
        try:
            self.stop()
        finally:
            self._user_error = None

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        watched: Callable[P, R] = within(self, function)
        return watched

    def _new_recorder(self) -> Recorder:
        only = self._objects
        recorder = Recorder(
            ALL_RULES,
            self._ledger.take,
            only=only.has_optimizer if only else None,
            wants=only.has_parameter if only else None,
            trace=self._trace,
            word=self._ledger.in_users_names,
        )
        recorder.before_step = self._raise_due
        self._ledger.recorder = recorder
        return recorder

    def _tell(self, finding: Finding) -> None:
        try:
            if self._on_finding is not None:
                self._on_finding(finding)
            # Where the program is ending with an exception of its own, that comes first.
            if self._user_error is None:
                self._follow_policy(finding)
        except Exception as error:
            # After a backward torch cleans up, and at the end there is more to be told.
            if EventKind.BACKWARD in finding.rule.on or not self._runs:
                error.__traceback__ = None  # which would keep the frames of the backward
                self._due.append((finding, error))
                return
            if not isinstance(error, _OURS):
                self._user_error = error
            raise

    def _follow_policy(self, finding: Finding) -> None:
        if self._policy == "warn":
            announce.warn(finding)
        elif self._policy == "raise":
            raise announce.error_of(finding)

    def _raise_due(self, owner: str) -> None:
        """Raise what is known of this optimizer by now, before it steps once more."""
        for each in self._due:
            finding, error = each
            if self._ledger.owner_of(finding) in (owner, ""):
                self._due.remove(each)
                if self._ledger.owner_of(finding):
                    self._raise(error)
                return

    def _raise(self, error: Exception) -> None:
        if not isinstance(error, _OURS):
            self._user_error = error
        raise error

    def _is_on_purpose(self, error: Exception) -> bool:
        return isinstance(error, _OURS) or error is self._user_error

    def _fail(self, error: Exception) -> None:
        """A fault of ours: step aside with one line, and let the training go on."""
        if self._failure:
            return
        self._failure = (
            f"watching ended by a fault of its own ({type(error).__name__}: {error}); "
            "the training goes on unwatched"
        )
        guard = self._guard
        if guard is not None:
            hooks.remove(guard)
        say(f"zerograd: {self._failure}")


watch = Sanitizer


def _no_such(unknown: Mapping[str, object]) -> UsageError:
    """Return what to say of settings that there are not, which is about the first of them."""
    name, value = next(iter(unknown.items()))
    near = get_close_matches(name, _SETTINGS, n=1)
    *first, last = _SETTINGS
    hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(first)} and {last}."
    return UsageError(f"watch({name}={value!r}): {hint}")


def active() -> Sanitizer | None:
    """Return the innermost sanitizer at work, or None."""
    return _active[-1] if _active else None


class _Objects:
    """The models and optimizers that a watch is narrowed to."""

    def __init__(self, objects: Iterable[object]) -> None:
        given = tuple(objects)
        self.models = tuple(each for each in given if isinstance(each, torch.nn.Module))
        self._optimizers = tuple(each for each in given if hasattr(each, "param_groups"))
        for each in given:
            if each not in self.models and each not in self._optimizers:
                raise UsageError(
                    f"watch({type(each).__name__}): it takes modules and optimizers, or nothing."
                )

    def __bool__(self) -> bool:
        return bool(self.models or self._optimizers)

    def has_optimizer(self, optimizer: Any) -> bool:
        if any(optimizer is each for each in self._optimizers):
            return True
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        return any(id(p) in held for p in self._parameters())

    def has_parameter(self, parameter: Tensor) -> bool:
        return any(parameter is each for each in self._parameters())

    def _parameters(self) -> Iterable[Tensor]:
        for model in self.models:
            yield from model.parameters()
