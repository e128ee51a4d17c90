"""A clear of one part of a network, and what it spares.

Of a network that is cleared in part nobody knows, in general, how the rest fares. But where each
value that its `forward` gives back comes through a part that no line clears, every loss has filled
some of that: the rest is as if the clear were not there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.frame import Frame
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.keys import covers, touches
from zerograd.static.engine.text.classes import ClassUnit
from zerograd.static.engine.text.parts import parts_below

Outputs = tuple[frozenset[str], ...]

_WEIGHTED = re.compile(r"Linear$|Conv(Transpose)?\d?d$|LSTM$|GRU$|RNN$|Embedding$|Bilinear$")
# What keeps a gradient from coming back, here or by somebody's word elsewhere.
_CUTS = re.compile(r"detach|no_grad|inference_mode|requires_grad|argmax|\.(data|item|numpy|long)\b")


def outputs_around(frame: Frame, node: ast.AST) -> Outputs:
    """Return, for each value that the network around a cleared part gives, the parts behind it."""
    method = node.func if isinstance(node, ast.Call) else None
    part = method.value if isinstance(method, ast.Attribute) else None
    if not isinstance(part, ast.Attribute):
        return ()
    owner = frame.program.evaluate(frame, part.value)
    if type(owner) is not Instance or not frame.program.is_module(owner.cls):
        return ()
    texts = {frame.unit.source.text, owner.cls.unit.source.text}
    if any("requires_grad" in text for text in texts):
        return ()  # who knows which parts are frozen
    return tuple(
        frozenset(f"{owner.key}.{name}" for name in names) for names in _given_back(owner.cls)
    )


def _given_back(cls: ClassUnit) -> list[frozenset[str]]:
    """Return the parts with weights behind each value of a `forward` without branches."""
    made, forward = cls.methods.get("__init__"), cls.methods.get("forward")
    if made is None or forward is None or _CUTS.search(cls.unit.text_of(forward)):
        return []
    weighted = {
        target.attr
        for each in made.body
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and _WEIGHTED.search(ast.unparse(each.value.func))
        for target in each.targets
        if isinstance(target, ast.Attribute)
    }
    known: dict[str, frozenset[str]] = {}
    for each in forward.body:
        if isinstance(each, ast.Return) and each.value is not None:
            return [_behind(value, known, weighted) for value in _items(each.value)]
        if isinstance(each, ast.Assign):
            _assign(each, known, weighted)
        elif not isinstance(each, ast.Expr):
            return []
    return []


def _assign(node: ast.Assign, known: dict[str, frozenset[str]], weighted: set[str]) -> None:
    values = _items(node.value)
    for target in node.targets:
        names = _items(target)
        alike = len(names) == len(values)
        found = [
            _behind(values[n] if alike else node.value, known, weighted) for n in range(len(names))
        ]
        for name, parts in zip(names, found, strict=True):
            if isinstance(name, ast.Name):
                known[name.id] = parts


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _behind(node: ast.expr, known: dict[str, frozenset[str]], weighted: set[str]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for each in parts_below(node):
        if isinstance(each, ast.Name):
            found |= known.get(each.id, frozenset())
        elif isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self":
            found |= weighted & {each.attr}
    return found


def leave_the_rest(happenings: Iterable[Happening]) -> None:
    """Take out of clears in part those that leave some of what each loss fills as it is."""
    clears = [each for each in happenings if each.kind is EventKind.CLEAR and each.partial]
    for bucket in {bucket for each in clears for bucket in each.partial if each.spares}:
        concerned = [each for each in clears if bucket in each.partial]
        cleared = [key for each in concerned for key in each.keys or (bucket,)]
        outputs = [
            output
            for each in concerned
            for output in each.spares
            if all(covers(bucket, part) for part in output)
        ]
        losses = [
            each
            for each in happenings
            if each.kind is EventKind.BACKWARD and each.event and bucket in each.event.buckets
        ]
        if (
            outputs
            and all(each.sure and bucket in (each.keys or ()) for each in losses)
            and all(any(_is_spared(part, cleared) for part in output) for output in outputs)
        ):
            for each in concerned:
                each.partial = tuple(other for other in each.partial if other != bucket)


def _is_spared(part: str, cleared: Iterable[str]) -> bool:
    return not any(touches(key, part) for key in cleared)
