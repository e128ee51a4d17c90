"""Parameters that a test picks from those of a network: whose they are then.

`[p for n, p in net.named_parameters() if "bias" in n]` is a part of the network. Two
optimizers over parts that no parameter can be in at once have nothing in common.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from itertools import combinations

from zerograd.static.engine.identity.keys import covers, keys_of
from zerograd.static.engine.identity.values import Optimizer, Params, Pick, Value, leaves_of
from zerograd.static.engine.text.parts import parts_below

_OPPOSITE: dict[type[ast.cmpop], ast.cmpop] = {
    ast.NotIn: ast.In(),
    ast.NotEq: ast.Eq(),
    ast.IsNot: ast.Is(),
}


def picks_of(test: ast.expr, truth: bool, items: Sequence[str] = ()) -> frozenset[Pick]:
    """Return what is known of the parameters for which a test gave `truth`.

    Args:
        items: what the loop over them calls each; another loop may call it otherwise.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return picks_of(test.operand, not truth, items)
    opposite = _OPPOSITE.get(type(test.ops[0])) if isinstance(test, ast.Compare) else None
    if isinstance(test, ast.Compare) and opposite is not None and len(test.ops) == 1:
        test, truth = ast.Compare(test.left, [opposite], test.comparators), not truth
    text = ast.unparse(test)
    for number, name in enumerate(items):
        text = re.sub(rf"(?<![\w.]){re.escape(name)}\b", f"<{number}>", text)
    found = frozenset(((text, truth),))
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is truth:
        found = found.union(*(picks_of(each, truth, items) for each in test.values))
    return found


def picked_by(generators: list[ast.comprehension]) -> frozenset[Pick]:
    """Return what is known of the parameters that a comprehension lets through.

    Those that need no gradient, or have none, are nobody's: that makes no part of the others.
    """
    items = [
        each.id
        for generator in generators
        for each in parts_below(generator.target)
        if isinstance(each, ast.Name)
    ]
    tests = [test for generator in generators for test in generator.ifs]
    picks = frozenset[Pick]().union(*(picks_of(each, True, items) for each in tests))
    return frozenset((text, truth) for text, truth in picks if "grad" not in text)


def sliced_by(node: ast.Slice) -> frozenset[Pick]:
    """`params[:half]` and `params[half:]`: what is known of those that a slice takes."""
    if node.step is None and node.lower is None and node.upper is not None:
        return frozenset(((f"index < {ast.unparse(node.upper)}", True),))
    if node.step is None and node.upper is None and node.lower is not None:
        return frozenset(((f"index < {ast.unparse(node.lower)}", False),))
    return frozenset(((ast.unparse(node), True),))


def picks_in(source: Value) -> dict[str, list[frozenset[Pick]]]:
    """Return the networks of which an optimizer is given parts, and how each was picked."""
    found: dict[str, list[frozenset[Pick]]] = {}
    parts: set[str] = set()
    for each in leaves_of(source):
        picks = each.picks if isinstance(each, Params) else frozenset[Pick]()
        for key in keys_of(each):
            found.setdefault(key, []).append(picks)
            if isinstance(each, Params) and each.part:
                parts.add(key)
    return {key: picks for key, picks in found.items() if any(picks) or key in parts}


def are_all(picks: Sequence[frozenset[Pick]]) -> bool:
    """Do the parts make up the whole: those for which a test holds, and those for which not?

    One optimizer of weights that decay and of those that do not has them all.
    """
    alone = {pick for each in picks if len(each) == 1 for pick in each}
    return any((text, not truth) in alone for text, truth in alone)


def parted(optimizers: Iterable[Optimizer]) -> dict[tuple[str, str], str]:
    """Return the bucket that each optimizer has of a network which several share out.

    It is asked for by the optimizer's key and that of the network.
    """
    holders: dict[str, list[Optimizer]] = {}
    for each in optimizers:
        for key in each.picks if not each.is_by_hand else ():
            holders.setdefault(key, []).append(each)
    others = {
        key
        for each in optimizers
        for key in each.keys or ()
        if key not in each.picks and not each.is_by_hand
    }
    found = {
        (each.key, key): f"{key}.part {number}"
        for key, owners in holders.items()
        if len(owners) > 1 and key not in others and _are_apart(key, owners)
        for number, each in enumerate(owners, 1)
    }
    # `[p for p in net.parameters() if id(p) not in theirs]` beside one over `net.head`
    found |= {
        (owners[0].key, key): f"{key}.rest"
        for key, owners in holders.items()
        if len(owners) == 1
        and key not in others
        and any(
            each is not owners[0] and any(_is_inside(part, key) for part in each.keys or ())
            for each in optimizers
        )
    }
    return found


def _is_inside(key: str, network: str) -> bool:
    return key != network and covers(network, key)


def _are_apart(key: str, owners: list[Optimizer]) -> bool:
    return all(
        any((text, not truth) in theirs for text, truth in mine)
        for one, other in combinations(owners, 2)
        for mine in one.picks[key]
        for theirs in other.picks[key]
    )
