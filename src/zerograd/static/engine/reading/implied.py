"""What Python calls by itself: properties, their setters, items and iterators of the project.

Nothing is written that looks like a call, and yet such a method may clear. Those that do
something to gradients are followed; most classes have none.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.values import Value
from zerograd.static.engine.text.classes import FunctionNode

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame


def implied(frame: Frame, node: ast.AST, owner: Value, name: str, *given: Value) -> Value | None:
    """Follow the method that Python calls there, if the project has it and it acts."""
    program = frame.program
    if type(owner) is not Instance or program.peeking:
        return None
    method = program.implied(owner, name)
    return program.invoke(frame, node, method, Arguments([*given], {})) if method else None


def handed_through(frame: Frame, owner: Instance) -> Value | None:
    """Return what an object asks for all that it does not have itself.

    `def __getattr__(self, name): return getattr(self.inner, name)`
    """
    method = frame.program.method(owner, "__getattr__")
    body = method.node.body if method is not None and isinstance(method.node, FunctionNode) else []
    asked = body[-1].value if body and isinstance(body[-1], ast.Return) else None
    if not isinstance(asked, ast.Call) or path_of(asked.func) != "getattr":
        return None
    inner = path_of(asked.args[0]).removeprefix("self.") if asked.args else ""
    return frame.program.instance_attribute(owner, inner) if inner.isidentifier() else None
