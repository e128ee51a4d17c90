"""Clears that are given to somebody else to call: handlers, callbacks, registered functions.

`@trainer.on(Events.ITERATION_STARTED) def clear(engine): opt.zero_grad()` is called by the
trainer, in each round or not. Nothing that such a clear may have prevented is certain.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.identity.elsewhere import clears
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.words import is_optimizer_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_PREVENTED = frozenset(("ZG101", "ZG201"))
_DOES_MORE = re.compile(r"\.backward\(|\bstep\(")
_CLEARED = re.compile(r"(\w+)(?:\[[^\]]*\])?\.zero_grads?\s*\(")
# decorators that hand the function to nobody
_PLAIN = frozenset(
    (
        *("no_grad", "enable_grad", "inference_mode", "staticmethod", "classmethod", "property"),
        *("setter", "abstractmethod", "override", "wraps", "contextmanager", "compile", "script"),
        *("jit", "cache", "lru_cache", "cached_property", "fixture", "parametrize", "record"),
    )
)


def without_entrusted(program: Program, findings: list[Finding]) -> list[Finding]:
    """Return the findings, those uncertain that a clear in other hands may have prevented."""
    unit = program.main
    if not unit.clears() or not any(_is_concerned(each) for each in findings):
        return findings  # most files
    cleared = {name for text in _entrusted(unit) for name in _CLEARED.findall(text) or [""]}
    return [
        replace(each, certain=False)
        if _is_concerned(each) and any(_is_of(name, each.owner) for name in cleared)
        else each
        for each in findings
    ]


def _is_concerned(finding: Finding) -> bool:
    return finding.certain and finding.rule.code in _PREVENTED


def _is_of(cleared: str, owner: str) -> bool:
    """Is it the same optimizer, by its own name? Of a network cleared nobody knows whose it is."""
    own = re.findall(r"\w+", owner)
    return not is_optimizer_name(cleared) or cleared in own[-2:]


def _entrusted(unit: Unit) -> Iterator[str]:
    """Yield the code of what only clears, and is given away without a call of it."""
    handed = [
        each
        for node in unit.parts_of(unit.source.tree)
        if isinstance(node, ast.Call)
        for each in (*node.args, *(word.value for word in node.keywords))
    ]
    for each in handed:
        if isinstance(each, ast.Lambda) and _only_clears(unit.text_of(each)):
            yield unit.text_of(each)
    names = {each.id for each in handed if isinstance(each, ast.Name)}
    for node in unit.functions_saying("grad"):
        if not _only_clears(unit.text_of(node)):
            continue
        given = node.name in names or any(map(_registers, node.decorator_list))
        if given and not re.search(rf"(?<!def )\b{node.name}\s*\(", unit.source.text):
            yield unit.text_of(node)


def _only_clears(text: str) -> bool:
    return clears(text) and _DOES_MORE.search(text) is None


def _registers(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return path_of(called).rsplit(".", 1)[-1] not in _PLAIN
