"""The parts of code, found without asking of each node what fields it has."""

from __future__ import annotations

import ast


def parts_below(node: ast.AST) -> list[ast.AST]:
    """Return what `ast.walk` yields, in its order, but for operators, loads and stores."""
    found = [node]
    for each in found:  # it grows as it is read
        fields = _INNER.get(type(each))
        if fields is None:
            _add_inner(each, found)
            continue
        for name in fields:
            value = getattr(each, name)
            if type(value) is list:
                found += value
            elif value is not None:
                found.append(value)
    return found


def inner_of(node: ast.AST) -> list[ast.AST]:
    """Return what stands right inside a node, in the order of `ast.iter_child_nodes`."""
    found: list[ast.AST] = []
    _add_inner(node, found)
    return found


def names_below(node: ast.AST) -> list[str]:
    """Return the names in `node`, each as often as it is there."""
    return [each.id for each in parts_below(node) if type(each) is ast.Name]


def _add_inner(node: ast.AST, found: list[ast.AST]) -> None:
    for name in _INNER.get(type(node), node._fields):
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, _SIGNS):
            found.append(value)


_SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)

# where nodes stand in those that most code is made of; their lists hold nothing else
_INNER: dict[type[ast.AST], tuple[str, ...]] = {
    **dict.fromkeys((ast.Name, ast.Constant, ast.alias), ()),
    **dict.fromkeys((ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal), ()),
    **dict.fromkeys((ast.Import, ast.ImportFrom), ("names",)),
    **dict.fromkeys((ast.Attribute, ast.Starred, ast.keyword, ast.Expr, ast.Return), ("value",)),
    **dict.fromkeys((ast.Tuple, ast.List, ast.Set), ("elts",)),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp), ("elt", "generators")),
    **dict.fromkeys((ast.For, ast.AsyncFor), ("target", "iter", "body", "orelse")),
    **dict.fromkeys((ast.With, ast.AsyncWith), ("items", "body")),
    **dict.fromkeys((ast.If, ast.While, ast.IfExp), ("test", "body", "orelse")),
    ast.Subscript: ("value", "slice"),
    ast.Slice: ("lower", "upper", "step"),
    ast.Call: ("func", "args", "keywords"),
    ast.Compare: ("left", "comparators"),
    ast.BoolOp: ("values",),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.Lambda: ("args", "body"),
    ast.JoinedStr: ("values",),
    ast.FormattedValue: ("value", "format_spec"),
    ast.comprehension: ("target", "iter", "ifs"),
    ast.arg: ("annotation",),
    ast.withitem: ("context_expr", "optional_vars"),
    ast.Assign: ("targets", "value"),
    ast.AugAssign: ("target", "value"),
    ast.AnnAssign: ("target", "annotation", "value"),
    ast.Assert: ("test", "msg"),
    ast.Raise: ("exc", "cause"),
    ast.Delete: ("targets",),
    ast.Try: ("body", "handlers", "orelse", "finalbody"),
    ast.ExceptHandler: ("type", "body"),
}
