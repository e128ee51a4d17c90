"""Where the user's code clears, assigns or uses `.grad` by hand: no call tells, the source does.

Read only for a place that is new, and only near a statement that did tell.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from typing import TypeGuard

from zerograd.lifecycle.events import Spot
from zerograd.runtime.call_site import Site
from zerograd.runtime.written import (
    IN_PLACE,
    is_grad,
    mentions_grad,
    statements,
)

BY_HAND = "by hand"  # in place of a backward: gradients that were written to

_OF_A_VECTOR = "vector_to_parameters"
_OTHER_STEPS = re.compile(r"sched|prof|env|scaler|loop|anneal|warm", re.IGNORECASE)


def find(site: Site, what: str, of: str = "") -> tuple[Spot, str]:
    """Return the statement near `site` that does `what`: clear, assign or update.

    In the same function first, the nearest one below; then anywhere in the file, if
    there is only one; then a call near it that says so, of an optimizer that is none of
    torch's; else the site itself. Those that do it to `of`, a name, go before others.
    """
    text = "".join(linecache.getlines(site.path))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return site.spot, ""
    line = site.line
    near = sorted(
        statements(function_around(tree, line), what), key=lambda s: (s.lineno < line, s.lineno)
    )
    everywhere = list(statements(tree, what))
    near = [each for each in near if of and _is_done_to(each, of)] or near
    if of and what == "update" and not any(_is_done_to(each, of) for each in near):
        near = _below(near, function_around(tree, line), of) or near
    if not near and what == "update":
        near = _handed_back_near(function_around(tree, line), tree)
    if near:
        chosen = _applied(near[0], tree) if what == "update" else near[0]
    elif len(everywhere) == 1:
        chosen = _applied(everywhere[0], tree) if what == "update" else everywhere[0]
    else:
        called = sorted(
            _calls(function_around(tree, line), what), key=lambda s: (s.lineno < line, s.lineno)
        )
        if not called:
            return site.spot, ""
        chosen = called[0]
    return spot_of(chosen, site), ast.unparse(chosen).splitlines()[0]


def spot_of(node: ast.stmt | ast.expr, site: Site) -> Spot:
    """Return where a statement or a call in the file of `site` stands."""
    return site.spot._replace(
        line=node.lineno + site.above,
        column=node.col_offset + 1,
        end_line=(node.end_lineno or 0) + site.above,
        end_column=(node.end_col_offset or 0) + 1,
    )


def clears_before(site: Site) -> list[Spot]:
    """Return the clears by hand above `site` in its function, or else all in it.

    Which of them it was is a guess.
    """
    line = site.line
    near = [each.lineno for each in statements(function_around(parsed(site.path), line), "clear")]
    above = [each for each in near if each < line]
    return [site.spot._replace(line=each + site.above) for each in above or near]


def _handed_back_near(scope: ast.AST, tree: ast.Module) -> list[ast.stmt]:
    """Return where all parameters are given a vector: what that is made of is read elsewhere."""
    found = [
        each
        for each_scope in reached(scope, tree)
        for each in ast.walk(each_scope)
        if isinstance(each, ast.Expr) and _called(each) == _OF_A_VECTOR
    ]
    return sorted(found, key=lambda each: each.lineno)


def _calls(scope: ast.AST, what: str) -> Iterator[ast.stmt]:
    """Yield `optimizer.step()` for an update, `optimizer.zero_grad()` for a clear."""
    name = {"update": "step", "clear": "zero_grad"}.get(what, "")
    for node in ast.walk(scope):
        call = node.value if isinstance(node, ast.Expr) else None
        if (
            isinstance(node, ast.Expr)
            and isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == name
            and not _OTHER_STEPS.search(ast.unparse(call.func.value))
        ):
            yield node


def _applied(use: ast.stmt, tree: ast.Module) -> ast.stmt:
    """Return where a gradient that `use` only reads is applied to its parameter.

    `g = p.grad` and `m.add_(p.grad)` come before `p.sub_(lr * g)`, what is made of the gradients of
    all before it is handed back to them, and `grads = [p.grad for p in params]` before
    `torch._foreach_add_(params, grads, alpha=-lr)`.
    """
    names = _read_in(use)
    if any(_is_done_to(use, name) for name in names):
        return use
    scope = function_around(tree, use.lineno)
    below = [each for name in names for each in _below([use], scope, name)]
    found = [each for each in below if each is not use] or _handing_back(use, scope)
    return min(found, key=lambda each: each.lineno, default=use)


def _read_in(use: ast.stmt) -> set[str]:
    """Return what the gradients that a statement reads belong to, and the lists it goes through."""
    nodes = list(ast.walk(use))
    names = {ast.unparse(each.value) for each in nodes if is_grad(each)}  # type: ignore[attr-defined]
    for each in nodes:
        if isinstance(each, ast.comprehension) and ast.unparse(each.target) in names:
            names.add(ast.unparse(each.iter))
    return names


def _handing_back(use: ast.stmt, scope: ast.AST) -> list[ast.stmt]:
    """Return the statements that put what was made of a gradient into parameters of other names.

    `new = [p - lr * p.grad for p in params]`, then `for q, n in zip(params, new): q.copy_(n)`; or
    one call for all of them.
    """
    carried = set(_targets(use))
    found: list[ast.stmt] = []
    later = (each for each in ast.walk(scope) if getattr(each, "lineno", 0) > use.lineno)
    for node in sorted(later, key=lambda each: each.lineno):  # type: ignore[attr-defined]
        if isinstance(node, (ast.For, ast.Assign)) and _mentions(_source(node), carried):
            carried.update(_targets(node))
        elif _changes(node) and _mentions(node.value, carried):
            found.append(node)
    return found


def _changes(node: ast.AST) -> TypeGuard[ast.AugAssign | ast.Expr]:
    """Is it `q -= n`, `q.copy_(n)`, `vector_to_parameters(v, params)`, `net.load_state_dict(n)`?"""
    if not isinstance(node, ast.Expr):
        return isinstance(node, ast.AugAssign)
    return _calls_in_place(node) or _called(node) in (_OF_A_VECTOR, "load_state_dict")


def _called(statement: ast.Expr) -> str:
    function = statement.value.func if isinstance(statement.value, ast.Call) else None
    name = getattr(function, "attr", getattr(function, "id", ""))
    return name if isinstance(name, str) else ""


def _source(node: ast.For | ast.Assign) -> ast.expr:
    return node.iter if isinstance(node, ast.For) else node.value


def _targets(node: ast.AST) -> list[str]:
    targets = getattr(node, "targets", [getattr(node, "target", node)])
    return [each.id for part in targets for each in ast.walk(part) if isinstance(each, ast.Name)]


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def _below(uses: list[ast.stmt], scope: ast.AST, name: str) -> list[ast.stmt]:
    """Return the statements after the first use of a gradient that change `name` by way of others.

    `v = 0.9 * v + w.grad; w -= lr * v` updates `w` in the second.
    """
    return [
        each
        for each in ast.walk(scope)
        if isinstance(each, (ast.Assign, ast.AugAssign, ast.Expr))
        and uses
        and each.lineno >= uses[0].lineno
        and _is_done_to(each, name)
        and (not isinstance(each, ast.Expr) or _calls_in_place(each))
    ]


def _calls_in_place(statement: ast.Expr) -> bool:
    call = statement.value
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and (call.func.attr in IN_PLACE or _is_foreach(call))
    )


def _is_foreach(call: ast.Call) -> bool:
    """Is it `torch._foreach_add_(params, …)`, which changes its first argument?"""
    name = getattr(call.func, "attr", "")
    return name.startswith("_foreach_") and name.endswith("_") and bool(call.args)


def _is_done_to(statement: ast.stmt, name: str) -> bool:
    """Is it `name` that the statement changes: `w -= …`, `w.data = …`, `w.sub_(…)`?"""
    if isinstance(statement, ast.AugAssign):
        changed: ast.AST = statement.target
    elif isinstance(statement, ast.Assign):
        changed = statement.targets[0]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        changed = call.args[0] if _is_foreach(call) else call.func
    else:
        return False
    text = ast.unparse(changed)
    is_own = text == name or text.startswith(f"{name}.")
    return is_own and not mentions_grad(changed)  # `p.grad = None`


def reached(scope: ast.AST, tree: ast.Module) -> list[ast.AST]:
    """Return `scope` and the functions of the file that are named in it, or in one of those."""
    functions: dict[str, list[ast.AST]] = {}
    for each in ast.walk(tree):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.setdefault(each.name, []).append(each)
    found = [scope]
    for each in found:  # grows as it goes
        for node in ast.walk(each):
            name = getattr(node, "attr", getattr(node, "id", ""))
            found += functions.pop(name, [])
    return found


def scopes_near(site: Site) -> list[ast.AST]:
    """Return the function around `site`, and those of its file that are named in it."""
    tree = parsed(site.path)
    return reached(function_around(tree, site.line), tree)


def parsed(path: str) -> ast.Module:
    """Return the file as it is parsed, with nothing in it if it cannot be."""
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[])


def function_around(tree: ast.Module, line: int) -> ast.AST:
    """Return the innermost function around `line`, or the module."""
    found: ast.AST = tree
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            and (found is tree or node.lineno >= getattr(found, "lineno", 0))
        ):
            found = node
    return found
