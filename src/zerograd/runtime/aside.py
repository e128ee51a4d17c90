"""A loss that a clear throws away in each round, beside another one that the step uses.

No order of calls tells it from `probe.backward()`, a look at the gradients for a log, then a clear:
who looks at `.grad` leaves no trace. So the source must show that nobody does.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import Event, Spot
from zerograd.lifecycle.findings import explain
from zerograd.lifecycle.looking import looks, sees_each_backward
from zerograd.lifecycle.state import BucketState, Contribution, Drop
from zerograd.lifecycle.window import Counts
from zerograd.rules.lost_gradient import RULE
from zerograd.runtime.buckets import Bucket
from zerograd.runtime.hand_work import function_around, parsed
from zerograd.runtime.in_sight import files
from zerograd.runtime.owners import Owner

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder

MOST_DROPS = 1024


class Aside:
    """Looks at what each window has lost, for the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before: dict[str, tuple[Drop, Counts]] = {}  # of the window before, by owner
        self._meant: set[Drop] = set()

    def stepped(self, owner: Owner, event: Event) -> None:
        """Tell of the window that this step has closed, if it lost what the one before it lost."""
        window = self._recorder.memo.edge.closed
        drop = window.drop if window is not None else None
        if window is None or drop is None or not window.aside or window.chosen:
            self._before.pop(owner.name, None)
            return
        lost = (drop, window.aside)
        is_again = self._before.get(owner.name) == lost
        self._before[owner.name] = lost
        if not is_again or not drop.finite or drop in self._meant:
            return
        if _may_look(drop, owner.buckets):
            if len(self._meant) >= MOST_DROPS:
                self._meant.clear()
            self._meant.add(drop)
            return
        held = (Contribution("", window.used[0][0]),)
        self._recorder.tell(explain(RULE, event, BucketState(held, lost=drop)))


def _may_look(drop: Drop, buckets: Iterable[Bucket]) -> bool:
    """May anybody have looked at what the backward of this drop had filled?"""
    loss, clear = drop.backward, drop.clear
    if (loss.path, loss.cell) != (clear.path, clear.cell) or loss.cell is not None:
        return True
    tree = parsed(loss.path)
    scope = function_around(tree, loss.line)
    if not tree.body or scope is not function_around(tree, clear.line):
        return True
    if looks(_names_in(scope)) or any(map(_is_handed_on, _calls_between(scope, loss, clear))):
        return True
    if any(sees_each_backward("".join(linecache.getlines(path))) for path in files()):
        return True
    parameters = [each for bucket in buckets for each in bucket.parameters()]
    return any(each._backward_hooks or _hooks_after(each) for each in parameters)


def _hooks_after(parameter: object) -> bool:
    return bool(getattr(parameter, "_post_accumulate_grad_hooks", None))


def _names_in(scope: ast.AST) -> str:
    """Return all that is named in a scope: comments and texts look at nothing."""
    names = []
    for node in ast.walk(scope):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, (ast.Attribute, ast.keyword, ast.arg)):
            names.append(getattr(node, "attr", getattr(node, "arg", "")) or "")
    return " ".join(names)


def _calls_between(scope: ast.AST, loss: Spot, clear: Spot) -> Iterator[ast.Call]:
    """Yield the calls on the way from the loss to the clear, round the loop if need be."""
    first, last = sorted((loss.line, clear.line))
    loops = [
        each
        for each in ast.walk(scope)
        if isinstance(each, (ast.For, ast.While)) and each.lineno < first <= last <= _end(each)
    ]
    around = max(loops, key=lambda each: each.lineno, default=scope)
    is_before = loss.line < clear.line
    for node in ast.walk(around):
        if isinstance(node, ast.Call) and node.lineno not in (first, last):
            is_inside = first < node.lineno < last
            if is_inside is is_before:
                yield node


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _is_handed_on(call: ast.Call) -> bool:
    """Is anything but a number or a text handed to it?"""
    given = [*call.args, *(word.value for word in call.keywords)]
    return any(not isinstance(each, (ast.Constant, ast.JoinedStr)) for each in given)
