"""What a statement of the user's code does to `.grad`, as it is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

IN_PLACE = frozenset({"add_", "sub_", "addcmul_", "addcdiv_", "copy_", "mul_", "lerp_", "set_"})
_FACTORS = frozenset(
    {"div_", "mul_", "true_divide_", "divide_", "multiply_", "_foreach_div_", "_foreach_mul_"}
)


def statements(scope: ast.AST, what: str) -> Iterator[ast.stmt]:
    """Yield what does that in a scope: clear, assign, scale, put zeros, or update by a gradient."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Delete):
            if what == "clear" and any(map(is_grad, node.targets)):
                yield node
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)) and _does(node, what):
            yield node


def _does(statement: ast.Assign | ast.AugAssign | ast.Expr, what: str) -> bool:
    if what == "clear":
        return clears(statement)
    if what == "assign":
        return _assigns(statement)
    if what == "scale":
        return _scales(statement)
    if what == "zeros":
        return puts_zeros(statement)
    if isinstance(statement, ast.Expr):
        calls = _links(statement.value)
        return any(
            name in IN_PLACE and any(map(mentions_grad, (*call.args, *call.keywords)))
            for name, call in calls
        ) and not mentions_grad(_receiver(calls))
    target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
    return mentions_grad(statement.value) and not mentions_grad(target)


def _assigns(statement: ast.Assign | ast.AugAssign | ast.Expr) -> bool:
    if isinstance(statement, ast.Assign):
        return not _is_none(statement.value) and any(map(is_grad, statement.targets))
    if isinstance(statement, ast.AugAssign):
        return mentions_grad(statement.target)
    calls = _links(statement.value)
    last = calls[0][0] if calls else ""
    return last.endswith("_") and last != "zero_" and mentions_grad(_receiver(calls))


def _links(value: ast.expr) -> list[tuple[str, ast.Call]]:
    """Return the method calls in a chain, the last one first: `p.add_(g).clamp_(0, 1)`."""
    found = []
    while isinstance(value, ast.Attribute) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    ):
        if isinstance(value, ast.Call):
            found.append((value.func.attr, value))  # type: ignore[attr-defined]
            value = value.func
        value = value.value  # type: ignore[attr-defined]
    return found


def _receiver(calls: list[tuple[str, ast.Call]]) -> ast.AST:
    """Return what the first call of a chain is a method of."""
    return calls[-1][1].func.value if calls else ast.Constant(None)  # type: ignore[attr-defined]


def puts_zeros(statement: ast.Assign | ast.AugAssign | ast.Expr) -> bool:
    """Is it `p.grad = torch.zeros_like(p)`?"""
    if not isinstance(statement, ast.Assign) or not any(map(is_grad, statement.targets)):
        return False
    call = statement.value
    name = getattr(call.func, "attr", "") if isinstance(call, ast.Call) else ""
    return name in ("zeros_like", "zeros", "new_zeros")


def _scales(statement: ast.Assign | ast.AugAssign | ast.Expr) -> bool:
    if isinstance(statement, ast.Assign):
        return _assigns(statement) and isinstance(statement.value, (ast.BinOp, ast.Call))
    if isinstance(statement, ast.AugAssign):
        factor = isinstance(statement.op, (ast.Div, ast.Mult)) and not _is_zero(statement.value)
        return factor and _assigns(statement)
    call = statement.value
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _FACTORS
        and mentions_grad(call)
    )


def clears(statement: ast.Assign | ast.AugAssign | ast.Expr) -> bool:
    if isinstance(statement, ast.Assign):
        return _is_none(statement.value) and any(map(is_grad, statement.targets))
    if isinstance(statement, ast.AugAssign):
        factor = isinstance(statement.op, ast.Mult) and _is_zero(statement.value)
        return factor and mentions_grad(statement.target)
    call: ast.expr = statement.value
    if isinstance(call, (ast.ListComp, ast.GeneratorExp)):
        call = call.elt  # [p.grad.zero_() for p in …]
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and (
            (call.func.attr in ("zero_", "fill_") and mentions_grad(call.func.value))
            or call.func.attr == "_foreach_zero_"
        )
    )


def is_grad(node: ast.AST) -> bool:
    """Is it some tensor's `.grad`, and not the function of `torch.autograd` or `torch.func`?"""
    if not isinstance(node, ast.Attribute) or node.attr != "grad":
        return False
    of = node.value
    return getattr(of, "attr", getattr(of, "id", "")) not in ("autograd", "func")


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def mentions_grad(node: ast.AST) -> bool:
    return any(map(is_grad, ast.walk(node)))
