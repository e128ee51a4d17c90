"""What is done to `.grad` by functions that are called near a statement, in files of their own.

A library may compute gradients by itself and add them onto `.grad` as a backward does: jacobian
descent, an engine of its own. No call tells of that, but the library's source does. It is read
only on a suspicion, once for a place.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from zerograd.lifecycle.events import Spot
from zerograd.runtime import hand_work
from zerograd.runtime.call_site import Site, kind_of_is_machinery, kind_of_is_user
from zerograd.runtime.clears import code_of
from zerograd.runtime.hand_work import parsed, scopes_near
from zerograd.runtime.in_sight import is_read_by
from zerograd.runtime.names import variables_of
from zerograd.runtime.near import adds, starts
from zerograd.runtime.written import statements

MOST_FILES = 256  # of one package
MOST_BYTES = 1 << 18  # of one file


def only_adds(site: Site) -> bool:
    """Is all that the functions called near `site` do to `.grad` to add to it?"""
    return any(_only_adds(each) for _, each in _called_near(site))


def filling(site: Site) -> tuple[Spot, str]:
    """Return the call near `site` of a function that adds to `.grad`, or else the site itself."""
    line = site.line
    calls = [call for call, code in _called_near(site) if _only_adds(code)]
    if not calls:
        return site.spot, ""
    chosen = min(calls, key=lambda each: (each.lineno > line, -each.lineno))
    return hand_work.spot_of(chosen, site), ast.unparse(chosen)


def reads(site: Site) -> bool:
    """Does a function called near `site` use what `.grad` holds? So one may step on its own."""
    return any(is_read_by(code) for _, code in _called_near(site))


def _only_adds(code: CodeType) -> bool:
    trees = [parsed(path) for path in _files_of(code)]
    written = [(each, tree) for tree in trees for each in statements(tree, "assign")]
    return (
        any(adds(each) for each, _ in written)
        and all(adds(each) or starts(each, tree) for each, tree in written)
        and not any(True for tree in trees for _ in statements(tree, "clear"))
    )


def _called_near(site: Site) -> Iterator[tuple[ast.Call, CodeType]]:
    """Yield the calls in the user's function around `site`, and what they call in other files."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != site.path:
        frame = frame.f_back
    if frame is None:
        return
    names = variables_of(frame)
    for scope in scopes_near(site):
        for node in ast.walk(scope):
            if not isinstance(node, ast.Call):
                continue
            code = code_of(resolved(node.func, names))
            path = code.co_filename if code is not None else site.path
            if code is not None and path != site.path and not kind_of_is_machinery(path):
                yield node, code


def resolved(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return what an expression of names and attributes stands for, with no code run for it."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    holder = resolved(node.value, names)
    if isinstance(holder, ModuleType):
        return vars(holder).get(node.attr)
    return inspect.getattr_static(holder, node.attr, None)


def _files_of(code: CodeType) -> list[str]:
    """Return the user's own file that code is in, or those of the package it belongs to."""
    path = Path(code.co_filename)
    if kind_of_is_user(code.co_filename):
        return [str(path)]
    files = sorted(path.parent.rglob("*.py"))[:MOST_FILES]
    return [str(each) for each in files if each.stat().st_size <= MOST_BYTES and _names_grad(each)]


def _names_grad(path: Path) -> bool:
    try:
        return b".grad" in path.read_bytes()
    except OSError:
        return False
