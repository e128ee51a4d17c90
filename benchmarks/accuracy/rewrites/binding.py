"""Which names some statements bind, read and need."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from benchmarks.accuracy.rewrites.sketch import Scope, Sketch

_OWN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINED = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_OF_ITS_FRAME = ("locals", "globals", "super", "exec", "eval", "vars")


def stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that these bind in the scope they stand in."""
    found: set[str] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, _COMPREHENSIONS):
            todo += [each.value for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
            found |= {e.target.id for e in ast.walk(node) if isinstance(e, ast.NamedExpr)}
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).split(".")[0] for each in node.names}
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        todo += ast.iter_child_nodes(node)
    return found


def read(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that these read, also in functions inside, but for those bound there."""
    found: set[str] = set()
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load | ast.Del):
                found.add(node.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


def inner_only(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that comprehensions and functions inside bind for themselves."""
    found: set[str] = set()
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.comprehension):
                found |= {e.id for e in ast.walk(node.target) if isinstance(e, ast.Name)}
            elif isinstance(node, _OWN):
                arguments = node.args
                every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                every += [each for each in (arguments.vararg, arguments.kwarg) if each]
                found |= {each.arg for each in every}
                if not isinstance(node, ast.Lambda):
                    found |= stored(node.body)
    return found


def leaves(nodes: Iterable[ast.AST], *, loops: bool = True) -> bool:
    """Is there a jump out of these statements, or a word that belongs to their function?

    With `loops` false, jumps of a loop around them are allowed.
    """
    return any(_leaves(top, 0, loops) for top in nodes)


def _leaves(node: ast.AST, depth: int, loops: bool) -> bool:
    if isinstance(node, ast.Return | ast.Global | ast.Nonlocal | ast.Await | ast.Delete):
        return True
    if isinstance(node, ast.Yield | ast.YieldFrom | ast.ImportFrom | ast.Import):
        return True
    if isinstance(node, ast.Break | ast.Continue):
        return loops and depth == 0
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.AsyncFunctionDef):
        return False
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Name) and called.id in _OF_ITS_FRAME:
        return True
    more = depth + isinstance(node, ast.For | ast.While)
    return any(_leaves(each, more, loops) for each in ast.iter_child_nodes(node))


def jumps(nodes: Iterable[ast.AST]) -> bool:
    """Is there a `break` or `continue` of the loop around these?"""
    return any(_jumps(node) for node in nodes)


def _jumps(node: ast.AST) -> bool:
    if isinstance(node, ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.ClassDef | ast.Lambda):
        return any(_jumps(each) for each in getattr(node, "orelse", ()))
    return any(_jumps(each) for each in ast.iter_child_nodes(node))


def surely(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that these bind whatever happens."""
    found: set[str] = set()
    for each in statements:
        if isinstance(each, ast.Assign):
            found |= stored(each.targets)
        elif isinstance(each, ast.AnnAssign) and each.value is not None:
            found |= stored([each.target])
        elif isinstance(each, ast.FunctionDef):
            found.add(each.name)
        elif isinstance(each, ast.With):
            found |= surely(each.body) | stored(each.items)
        elif isinstance(each, ast.If) and each.orelse:
            found |= surely(each.body) & surely(each.orelse)
    return found


def read_first(block: Iterable[ast.stmt], sure: frozenset[str] = frozenset()) -> set[str]:
    """Return what these read before they surely bind it themselves."""
    return _in_order(list(block), set(sure))[0]


def _in_order(block: list[ast.stmt], sure: set[str]) -> tuple[set[str], set[str]]:
    found: set[str] = set()
    for each in block:
        more, sure = _first(each, sure)
        found |= more
    return found, sure


def _first(node: ast.stmt, sure: set[str]) -> tuple[set[str], set[str]]:
    """Return what one statement reads first, and what is bound for sure after it."""
    if isinstance(node, ast.If | ast.While):
        named = {e.target.id for e in ast.walk(node.test) if isinstance(e, ast.NamedExpr)}
        sure = sure | (named - read([node.test]))
    if isinstance(node, ast.For):
        inner, _ = _in_order([*node.body, *node.orelse], sure | stored([node.target]))
        return (_plainly([node.iter]) - sure) | inner, sure
    if isinstance(node, ast.While):
        return (_plainly([node.test]) - sure) | _in_order([*node.body, *node.orelse], sure)[0], sure
    if isinstance(node, ast.If):
        one, after_one = _in_order(node.body, sure)
        two, after_two = _in_order(node.orelse, sure)
        return (_plainly([node.test]) - sure) | one | two, after_one & after_two
    if isinstance(node, ast.With):
        reads = _plainly(node.items) - sure
        inner, after = _in_order(node.body, sure | stored(node.items))
        return reads | inner, after
    if isinstance(node, ast.Try):
        inner, _ = _in_order([*node.body, *node.orelse], sure)
        for part in (*(h.body for h in node.handlers), node.finalbody):
            inner |= _in_order(part, sure)[0]
        return inner, sure
    return _plainly([node]) - sure, sure | surely([node])


def _plainly(nodes: Iterable[ast.AST]) -> set[str]:
    nodes = list(nodes)
    return read(nodes) - (inner_only(nodes) - stored(nodes))


def known_above(sketch: Sketch, scope: Scope) -> set[str]:
    """Return names that a function of the module reads without being given them."""
    body = sketch.tree.body
    if isinstance(scope, ast.Module):
        return stored(each for each in body if isinstance(each, _DEFINED))
    return stored(body)


def parameters(function: ast.FunctionDef) -> set[str]:
    return inner_only([function]) - inner_only(function.body) - stored(function.body)
