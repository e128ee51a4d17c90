"""What a class refuses to have: `if self.scaler is not None: raise`, once it was set.

The methods that it inherits ask for it all the same. There it is None.
"""

from __future__ import annotations

import ast

from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import targets


def refused(body: list[ast.stmt]) -> set[str]:
    """Return the attributes that a method, at its end, does not allow to be set."""
    found: set[str] = set()
    for part in body:
        if found:  # asked before it is set: that it is not set twice
            found -= {each.attr for each in targets([part]) if isinstance(each, ast.Attribute)}
            if any(isinstance(each, ast.Name) and each.id == "super" for each in parts_below(part)):
                found.clear()
        name = _refused_by(part)
        if name:
            found.add(name)
    return found


def _refused_by(part: ast.stmt) -> str:
    if isinstance(part, ast.If) and not part.orelse and isinstance(part.body[-1], ast.Raise):
        return _set_there(part.test, ast.IsNot)
    if isinstance(part, ast.Assert):
        test = part.test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return _set_there(test.operand, ast.IsNot)
        return _set_there(test, ast.Is) if isinstance(test, ast.Compare) else ""
    return ""


def _set_there(test: ast.expr, sign: type[ast.cmpop]) -> str:
    """Return the attribute of `self.scaler`, or of `self.scaler is not None`."""
    if isinstance(test, ast.Compare):
        nothing = test.comparators[0]
        asked = type(test.ops[0]) is sign and len(test.ops) == 1
        if not asked or not isinstance(nothing, ast.Constant) or nothing.value is not None:
            return ""
        test = test.left
    itself = isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name)
    return test.attr if itself and test.value.id == "self" else ""  # type: ignore[attr-defined]
