"""The parts of an expression, found without asking of each node what fields it has."""

from __future__ import annotations

import ast


def parts_below(node: ast.AST) -> list[ast.AST]:
    """Return what `ast.walk` yields, in its order, but for operators, loads and stores."""
    found = [node]
    for each in found:
        fields = _INNER.get(type(each))
        for name in each._fields if fields is None else fields:
            value = getattr(each, name, None)
            if isinstance(value, list):
                found += [inner for inner in value if isinstance(inner, ast.AST)]
            elif isinstance(value, ast.AST) and name != "ctx":
                found.append(value)
    return found


# where expressions stand in those that conditions are mostly made of
_INNER: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Name: (),
    ast.Constant: (),
    ast.Attribute: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Call: ("func", "args", "keywords"),
    ast.Compare: ("left", "comparators"),
    ast.BoolOp: ("values",),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
}
