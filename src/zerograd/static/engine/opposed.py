"""Losses that pull one output to opposite sides: a discriminator's and its generator's.

`criterion(D(fake), zeros)` trains D, `criterion(D(fake), ones)` trains G *against* D. Where both
go backward before D steps, D's update holds G's loss as well, and the two cancel each other.
"""

from __future__ import annotations

import ast
from itertools import combinations
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.state import BucketState, Contribution
from zerograd.static.engine.frame import path_of
from zerograd.static.engine.ir import Happening
from zerograd.static.engine.origins import Assignments, assignments_around

if TYPE_CHECKING:
    from zerograd.static.engine.buckets import Buckets

Claim = tuple[str, str, bool]  # a network, what it is handed, and where its output is pulled to

OPPOSED = (
    "{owner}.step() also uses the gradients of a loss that works against it: "
    "one pulls {output} to 0, the other to 1"
)
SEPARATE = (
    "call {owner}.step() before the other loss goes backward, or {owner}.zero_grad() between them; "
    "and detach() what the generator made in the discriminator's own loss"
)

STATIONS = (
    "fills its gradients",
    "adds onto them, for the opposite",
    "steps on both",
)

_ONES = frozenset(("ones", "ones_like", "new_ones"))
_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_FULL = frozenset(("full", "full_like", "new_full", "fill_"))
_SAME_VALUES = frozenset(
    (
        *("to", "cuda", "cpu", "float", "double", "type", "type_as", "detach", "requires_grad_"),
        *("view", "reshape", "squeeze", "unsqueeze", "flatten", "expand", "expand_as", "clone"),
        *("contiguous", "sigmoid", "Variable", "Sigmoid"),
    )
)


class Opposed:
    """Finds, at a step, two losses in its gradients that oppose each other."""

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets
        self._claims: dict[int, frozenset[Claim]] = {}
        self._scopes: dict[tuple[int, tuple[int, int] | None], Assignments] = {}

    def at(
        self, step: Happening, state: BucketState
    ) -> tuple[Contribution, Contribution, str] | None:
        """Return the two, in the order in which they came, and the output that both pull at."""
        assert step.event is not None
        owner = step.event.owner
        held = [
            each
            for each in state.contributions
            if owner in each.fills and owner not in each.used_by
        ]
        if not any(each.fills - {owner} for each in held):
            return None  # neither is another's loss
        for first, second in combinations(held, 2):
            output = self._contested(first, second, step)
            if output:
                return first, second, output
        return None

    def _contested(self, one: Contribution, other: Contribution, step: Happening) -> str:
        assert step.event is not None
        for network, handed, side in self._claims_of(one):
            if (network, handed, not side) in self._claims_of(other):
                last = network.rsplit(".", 1)[-1]
                if any(_last(bucket) == last for bucket in step.event.buckets):
                    return f"{network}({handed})"
        return ""

    def _claims_of(self, held: Contribution) -> frozenset[Claim]:
        for each in self._buckets.happenings:
            if each.kind is EventKind.BACKWARD and each.spot == held.spot:
                found = self._claims.get(id(each))
                if found is None:
                    found = self._claims[id(each)] = self._read(each)
                return found
        return frozenset()

    def _read(self, backward: Happening) -> frozenset[Claim]:
        loss = _loss_of(backward.node)
        if loss is None:
            return frozenset()
        key = (id(backward.unit), backward.scope)
        given = self._scopes.get(key)
        if given is None:
            given = self._scopes[key] = assignments_around(backward)
        return frozenset(
            claim
            for each in given.behind(loss)
            if isinstance(each, ast.Call) and (claim := _claim(each, given)) is not None
        )


def _loss_of(node: ast.AST) -> ast.expr | None:
    """Return what goes backward: `loss.backward()`, `scaler.scale(loss).backward()`, or handed."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and not node.args:
        return node.func.value
    return node.args[0] if node.args else None


def _claim(call: ast.Call, given: Assignments) -> Claim | None:
    """Return what `criterion(output, target)` says of a network's output."""
    if len(call.args) + len(call.keywords) != 2 or not call.args:
        return None
    target = call.args[1] if len(call.args) == 2 else call.keywords[0].value
    side = _side(target, given)
    if side is None:
        return None
    output = _network_call(call.args[0], given)
    if output is None or not output.args:
        return None
    network = path_of(output.func)
    handed = ", ".join(ast.unparse(each) for each in output.args)
    return (network, handed.replace(".detach()", ""), side) if network else None


def _network_call(node: ast.expr, given: Assignments, depth: int = 0) -> ast.Call | None:
    if depth > 4:
        return None
    if isinstance(node, ast.Name | ast.Attribute):
        values = given.before(path_of(node), node.lineno)
        return _network_call(values[0], given, depth + 1) if len(values) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    name = path_of(node.func).rsplit(".", 1)[-1]
    method = node.func.attr if isinstance(node.func, ast.Attribute) else name
    if method not in _SAME_VALUES:
        return node
    if isinstance(node.func, ast.Attribute) and path_of(node.func.value) not in ("torch", "F"):
        return _network_call(node.func.value, given, depth + 1)
    return _network_call(node.args[0], given, depth + 1) if node.args else None


def _side(node: ast.expr, given: Assignments, depth: int = 0) -> bool | None:
    """Return whether a target is all ones, or all zeros; None where it cannot be told."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return node.value >= 0.5 if 0 <= node.value <= 1 else None
    if depth > 4:
        return None
    if isinstance(node, ast.Name | ast.Attribute):
        values = given.before(path_of(node), node.lineno)
        return _side(values[0], given, depth + 1) if len(values) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else path_of(node.func)
    if name in _ONES or name in _ZEROS:
        return name in _ONES
    if name in _FULL:
        filled = [*node.args, *(each.value for each in node.keywords if each.arg == "fill_value")]
        return _side(filled[0 if name == "fill_" else -1], given, depth + 1) if filled else None
    if name not in _SAME_VALUES:
        return None
    if isinstance(node.func, ast.Attribute):
        return _side(node.func.value, given, depth + 1)
    return _side(node.args[0], given, depth + 1) if node.args else None


def _last(bucket: str) -> str:
    return bucket.rsplit(".", 1)[-1].split("@", 1)[0]
