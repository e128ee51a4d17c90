"""ZG505: windows that are averaged over the ranks at every micro-batch, and how to avoid it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.text.parts import parts_below

_WRAPPED = re.compile(r"\bDistributedDataParallel\(|\bDDP\(")
# ways to keep a backward from it: torch's, and apex's
_KEPT_FROM_IT = re.compile(r"no_sync|require_backward_grad_sync|disable_allreduce")
_UNSAID = re.compile(r"#.*")  # a comment keeps nothing back
# apex has a class of that name, without torch's `no_sync()`
_OF_APEX = re.compile(r"(?m)^\s*(?:from|import) apex\.parallel\b|\bapex\.parallel\.Dist")
_OF_TORCH = re.compile(r"torch\.nn\.parallel\b|\bnn\.parallel\.Dist")
_BY_SWITCH = (
    "call disable_allreduce() of the wrapped model for all but the last micro-batch, "
    "and enable_allreduce() before that one"
)


_IN_VAIN = (
    "no_sync() around backward() alone keeps nothing back: the forward outside it has settled that "
    "every micro-batch all-reduces its gradients over the ranks"
)
_BOTH_INSIDE = "run the forward inside {context} as well"


def synchronises_each(step: Happening) -> bool:
    """Is the network wrapped, and no backward kept from exchanging its gradients?"""
    text = step.unit.source.text
    if "DDP(" not in text and "DataParallel(" not in text:
        return False  # most files
    if _WRAPPED.search(text) is None:
        return False
    return _KEPT_FROM_IT.search(text) is None or bool(_kept_in_vain(step))


def as_written(finding: Finding, step: Happening) -> Finding:
    """Return the finding in the words for what is there: apex, or a `no_sync()` that is in vain."""
    text = step.unit.source.text
    kept = _kept_in_vain(step)
    if kept:
        context = step.unit.source.segment(kept[0].items[0].context_expr)
        return replace(
            finding,
            spot=step.unit.source.spot(kept[0]),
            message=_IN_VAIN,
            advice=_BOTH_INSIDE.format(context=context),
        )
    if _OF_APEX.search(text) is None or _OF_TORCH.search(text) is not None:
        return finding
    return replace(finding, advice=_BY_SWITCH)


def _kept_in_vain(step: Happening) -> list[ast.With]:
    """Return what is to keep backwards back, if all of it stands around nothing but backwards.

    DDP settles in the forward whether the backward exchanges gradients.
    """
    text = step.unit.source.text
    kept = [
        each
        for each in step.unit.statements()
        if isinstance(each, ast.With) and _is_no_sync(each.items[0].context_expr)
    ]
    said = len(_KEPT_FROM_IT.findall(_UNSAID.sub("", text)))
    return kept if kept and len(kept) == said and all(map(_only_backward, kept)) else []


def _is_no_sync(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "no_sync"
    )


def _only_backward(block: ast.With) -> bool:
    """Does it send back what was computed before it, under a condition perhaps, and no more?"""
    parts = [each for statement in block.body for each in parts_below(statement)]
    calls = [each for each in parts if isinstance(each, ast.Call)]
    sent = [each for part in block.body for each in _sent(part)]
    return bool(sent) and all(
        isinstance(each.func, ast.Attribute) and each.func.attr in ("backward", "scale")
        for each in calls
    )


def _sent(part: ast.stmt) -> Iterator[ast.Call]:
    """Yield the backwards of a statement that does nothing else."""
    if isinstance(part, ast.If):
        for each in (*part.body, *part.orelse):
            yield from _sent(each)
    elif (
        isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Call)
        and isinstance(part.value.func, ast.Attribute)
        and part.value.func.attr == "backward"
    ):
        yield part.value
