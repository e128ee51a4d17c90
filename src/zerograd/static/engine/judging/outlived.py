"""ZG401: an optimizer that has outlived its networks, which were made anew after it.

    optimizer = Adam(model.parameters())
    for fold in folds:
        model = Net()
        ...  # optimizer.step() finds nothing: it holds the parameters of the first model

Told at the step, where it is so in every round but the first, whichever way it is come to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.ir import (
    Attempt,
    Block,
    Branch,
    Happening,
    Haze,
    Jump,
    Loop,
    Made,
    Node,
    Reset,
    Scope,
    walk,
)
from zerograd.static.engine.identity.keys import covers, touches
from zerograd.static.engine.identity.shown import code_of, name_of
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.stores import names_stored, statements_in

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets

MESSAGE = (
    "{owner}.step() finds no gradients: {owner} was made before line {line} made {network} anew"
)
ADVICE = "make {owner} again after {network}, over its new parameters"
# Who says so gives an optimizer other parameters than it was made over.
_GIVEN_OTHERS = re.compile(
    r"add_param_group|param_groups\b.*\[\s*[\"']params[\"']\s*\]\s*=|\bopt\w*\.__init__\("
)

# What is surely so at a point: an optimizer was made, and of its keys these were made anew since.
Past = dict[tuple[str, str], Made]


def outlived(block: Block, nodes: list[Node], buckets: Buckets) -> Iterator[Finding]:
    """Yield the steps of optimizers all of whose networks others have taken the place of."""
    made = [each for each in nodes if isinstance(each, Made)]
    networks = {key for each in made for key in each.before}
    if not any(each.holds and all(_is_anew(key, networks) for key in each.holds) for each in made):
        return  # most roots
    reader = _Reader(made)
    reader.read(block)
    for step in buckets.happenings:
        cause = reader.cause(step)
        if cause is None or not _is_trained(step, cause, buckets) or _is_given_others(step):
            continue
        if not _shares_parts(cause):
            yield _finding(step, cause)


def _is_anew(key: str, networks: Iterable[str]) -> bool:
    return any(covers(network, key) for network in networks)


def _is_trained(step: Happening, cause: Made, buckets: Buckets) -> bool:
    """Does the loop go backward through the network that has taken the place?"""
    return any(
        each.kind is EventKind.BACKWARD
        and each.loop is step.loop
        and each.sure
        and any(touches(key, cause.key) for key in each.keys or ())
        for each in buckets.happenings
    )


def _is_given_others(step: Happening) -> bool:
    return _GIVEN_OTHERS.search(step.unit.source.text) is not None


def _shares_parts(made: Made) -> bool:
    """May the new network have parts of the old one: `net.body = old.body`, or by its class?"""
    assert made.unit is not None and isinstance(made.node, ast.Assign)
    name = re.escape(made.unit.source.segment(made.node.targets[0]))
    if re.search(rf"\b{name}(?:\.\w+|\[[^]]*\])+\s*=[^=]", made.unit.source.text):
        return True
    called = made.node.value.func if isinstance(made.node.value, ast.Call) else None
    cls = made.unit.classes.get(called.id) if isinstance(called, ast.Name) else None
    return cls is not None and any(map(_takes_from_outside, cls.methods.values()))


def _takes_from_outside(method: FunctionNode) -> bool:
    """`self.body = shared`, where neither a caller nor the method itself gives it that name?"""
    own = {each.arg for each in (*method.args.args, *method.args.kwonlyargs)}
    own |= names_stored(method.body)
    return any(
        isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id not in own
        for each in statements_in(method.body)
    )


class _Exits:
    def __init__(self) -> None:
        self.ways: dict[str, list[Past]] = {"break": [], "continue": [], "return": [], "raise": []}


class _Reader:
    """Goes through a skeleton once a round, with what is so on every way that leads there."""

    def __init__(self, made: list[Made]) -> None:
        self._held = {each.key: each.holds for each in made if each.holds}
        self._seen: dict[int, list[Made | None]] = {}  # at each step: what made the network anew

    def read(self, block: Block) -> None:
        self._block(block, {}, _Exits())

    def cause(self, step: Happening) -> Made | None:
        """Return what took the place of the last of a step's networks, on every way to it."""
        seen = self._seen.get(id(step))
        return seen[-1] if seen and all(seen) else None

    def _block(self, block: Block, past: Past | None, exits: _Exits) -> Past | None:
        for node in block:
            if past is None:
                return None
            past = self._node(node, past, exits)
        return past

    def _node(self, node: Node, past: Past, exits: _Exits) -> Past | None:
        if isinstance(node, Happening):
            self._happen(node, past)
        elif isinstance(node, Made):
            return self._make(node, past)
        elif isinstance(node, Reset):
            return self._forget(past, node.keys)  # an optimizer that somebody unseen has made
        elif isinstance(node, Haze):
            return self._haze(node, past)
        elif isinstance(node, Jump):
            exits.ways[node.how].append(past)
            return None
        elif isinstance(node, Branch):
            ways = [self._block(each, past, exits) for each in (node.then, node.otherwise)]
            return _join(ways)
        elif isinstance(node, Loop):
            return self._loop(node, past, exits)
        elif isinstance(node, Scope):
            inner = _Exits()
            return _join([self._block(node.body, past, inner), *inner.ways["return"]])
        elif isinstance(node, Attempt):
            end = self._block([*node.body, *node.otherwise], past, exits)
            anywhere = _join([past, end])
            ends = [end, *(self._block(each, anywhere, exits) for each in node.handlers)]
            return self._block(node.finally_, _join(ends), exits)
        return past

    def _loop(self, node: Loop, past: Past, exits: _Exits) -> Past | None:
        """What the first round finds is not told: it is the second that steps on nothing."""
        inside = {id(each) for each in walk(node.body)}
        entered, ends, inner = past, [past], _Exits()
        for number in range(len(self._held) + 3):
            for each in inside & self._seen.keys():
                del self._seen[each]
            inner = _Exits()
            end = _join([self._block(node.body, past, inner), *inner.ways["continue"]])
            ends += [*inner.ways["break"], *([end] if end is not None else [])]
            after = end if number == 0 else _join([past, end])
            if node.once or after is None or after == past:
                break
            past = after
        exits.ways["return"] += inner.ways["return"]
        exits.ways["raise"] += inner.ways["raise"]
        after_all = _join([each for each in ends if not (node.once and each is entered)])
        return self._block(node.otherwise, after_all, exits) if node.otherwise else after_all

    def _make(self, node: Made, past: Past) -> Past:
        if node.holds:
            return {**self._forget(past, {node.key}), (node.key, ""): node}
        held = [
            (owner, key)
            for owner, keys in self._held.items()
            if (owner, "") in past
            for key in keys
            if any(covers(each, key) for each in node.before)
        ]
        return {**past, **dict.fromkeys(held, node)}

    def _forget(self, past: Past, owners: Collection[str]) -> Past:
        return {pair: made for pair, made in past.items() if pair[0] not in owners}

    def _haze(self, node: Haze, past: Past) -> Past:
        """Who is handed an optimizer by a call that is not seen may give it other parameters."""
        if not node.whole or node.spent:
            return past
        return {
            (owner, key): made
            for (owner, key), made in past.items()
            if not key or not (node.keys is None or any(touches(key, each) for each in node.keys))
        }

    def _happen(self, node: Happening, past: Past) -> None:
        if node.kind is not EventKind.STEP or node.optimizer is None or node.event is None:
            return
        owner = node.optimizer.key
        held = [past.get((owner, key)) for key in self._held.get(owner, ())]
        last = max((each for each in held if each), key=_line_of, default=None)
        self._seen.setdefault(id(node), []).append(last if held and all(held) else None)


def _join(ways: list[Past | None]) -> Past | None:
    """Return what is so on all of these ways that are ways at all."""
    some = [each for each in ways if each is not None]
    if not some:
        return None
    return {pair: made for pair, made in some[0].items() if all(pair in each for each in some)}


def _line_of(made: Made) -> int:
    return getattr(made.node, "lineno", 0)


def _finding(step: Happening, cause: Made) -> Finding:
    assert cause.unit is not None and isinstance(cause.node, ast.Assign)
    source = cause.unit.source
    network = source.segment(cause.node.targets[0])
    names = {"owner": name_of(step), "network": network, "line": str(cause.node.lineno)}
    return Finding(
        rule=BY_CODE["ZG401"],
        spot=step.spot,
        message=MESSAGE.format_map(names),
        advice=ADVICE.format_map(names),
        owner=names["owner"],
        trail=(
            TrailStep(
                source.spot(cause.node),
                "makes another network, which the optimizer does not hold",
                source.segment(cause.node),
            ),
            TrailStep(step.spot, "steps on the old one's parameters", code_of(step)),
        ),
    )
