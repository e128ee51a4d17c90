"""What the code near a place does to `.grad` by hand: only adds, only clears, keeps, hands on.

Each question is asked of the source once for a place, and only where a counter has moved.
"""

from __future__ import annotations

import ast

from zerograd.lifecycle.events import Spot
from zerograd.runtime.call_site import CLEARS, Site
from zerograd.runtime.hand_work import function_around, parsed, reached, scopes_near
from zerograd.runtime.written import clears, is_grad, mentions_grad, puts_zeros, statements


def scales_near(spot: Spot) -> bool:
    """Are gradients divided or scaled by hand in the function around `spot`?"""
    tree = parsed(spot.path)
    return any(True for _ in statements(function_around(tree, spot.line), "scale"))


def is_kept_near(spot: Spot) -> bool:
    """Is what `.grad` held kept elsewhere around `spot`, or written back into it?

    `kept.append(p.grad.clone())`, then `p.grad.copy_(sum_of(kept))`: nothing is lost by a clear
    in between. In the function around it, and in those of the file that it calls.
    """
    tree = parsed(spot.path)
    scopes = reached(function_around(tree, spot.line), tree)
    return any(_keeps(each) for scope in scopes for each in ast.walk(scope))


def _keeps(node: ast.AST) -> bool:
    """Is it `p.grad.clone()`, `kept.append(p.grad)`, `p.grad.copy_(g)` or `p.grad.data = g`?"""
    if isinstance(node, ast.Assign):
        return any(mentions_grad(each) and not is_grad(each) for each in node.targets)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in ("append", "extend"):
        return any(is_grad(getattr(each, "elt", each)) for each in node.args)
    written = node.func.attr in ("clone", "copy_", "set_") and mentions_grad(node.func.value)
    return written or node.func.attr == "_foreach_copy_"


def only_adds_near(site: Site) -> bool:
    """Is all that is done to `.grad` by hand near `site` to add to it?

    `p.grad += g` keeps what is there. Not so if the code there, or what it calls in the same file,
    clears by hand, or calls something that says so.
    """
    tree = parsed(site.path)
    scopes = reached(function_around(tree, site.line), tree)
    found = [each for scope in scopes for each in statements(scope, "assign")]
    return (
        any(map(adds, found))
        and all(adds(each) or starts(each, tree) for each in found)
        and not any(True for scope in scopes for _ in statements(scope, "clear"))
        and not any(_says_clear(each) for scope in scopes for each in ast.walk(scope))
    )


def leaves_alone(site: Site) -> bool:
    """Is nothing done to `.grad` by hand near `site`, nor by what is called there in its file?"""
    return not any(
        any(True for what in ("assign", "clear") for _ in statements(scope, what))
        or any(map(_says_clear, ast.walk(scope)))
        for scope in scopes_near(site)
    )


def adds(statement: ast.stmt) -> bool:
    """Is it `p.grad += g` or `p.grad.add_(g)`?"""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, (ast.Add, ast.Sub)) and is_grad(statement.target)
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("add_", "sub_")
        and is_grad(call.func.value)
    )


def starts(statement: ast.stmt, scope: ast.AST) -> bool:
    """Is it `p.grad = …` of a tensor that is made there, or asked for only where there is none?

    A buffer of one's own, put there each time, may have been written to in between.
    """
    if not isinstance(statement, ast.Assign):
        return False
    return isinstance(statement.value, (ast.Call, ast.BinOp)) or any(
        isinstance(each, ast.If) and mentions_grad(each.test) and statement in ast.walk(each)
        for each in ast.walk(scope)
    )


def _says_clear(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name != "zero_grad" and bool(CLEARS.fullmatch(name))


def only_clears_near(site: Site) -> bool:
    """Is all that is done to `.grad` by hand near `site` to clear it?"""
    tree = parsed(site.path)
    scopes = reached(function_around(tree, site.line), tree)
    return any(True for scope in scopes for _ in statements(scope, "clear")) and all(
        clears(each)  # type: ignore[arg-type]
        for scope in scopes
        for each in statements(scope, "assign")
    )


def gives_near(site: Site) -> bool:
    """Is some `p.grad = …` near `site` given what another parameter's `.grad` holds?"""
    return any(
        isinstance(each, ast.Assign)
        and any(map(is_grad, each.targets))
        and mentions_grad(each.value)
        and not _is_made_of_itself(each)
        for scope in scopes_near(site)
        for each in statements(scope, "assign")
    )


def only_puts_zeros_near(site: Site) -> bool:
    """Does every `p.grad = …` near `site` put zeros there, as a clear does?"""
    tree = parsed(site.path)
    near = list(statements(function_around(tree, site.line), "assign"))
    found = near or list(statements(tree, "assign"))
    return bool(found) and all(map(puts_zeros, found))  # type: ignore[arg-type]


def only_changes_near(site: Site) -> bool:
    """Does every `p.grad = …` near `site` make the new gradient of the one that was there?

    `p.grad = p.grad / n` keeps what is stale in it.
    """
    tree = parsed(site.path)
    near = list(statements(function_around(tree, site.line), "assign"))
    found = near or list(statements(tree, "assign"))
    return bool(found) and all(map(_is_made_of_itself, found))


def _is_made_of_itself(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign):
        return True  # `p.grad += g`, `p.grad.mul_(s)`
    before = {ast.unparse(each) for each in ast.walk(statement.value) if is_grad(each)}
    return all(ast.unparse(target) in before for target in statement.targets)
