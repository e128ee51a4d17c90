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
    return _makes_zeros(statement.value)


def _makes_zeros(value: ast.expr) -> bool:
    name = getattr(value.func, "attr", "") if isinstance(value, ast.Call) else ""
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
    """Is it `p.grad = None`, `p.grad *= 0`, `p.grad[:] = 0`, or a call that does the same?"""
    if isinstance(statement, ast.Assign):
        value, targets = statement.value, statement.targets
        if _is_none(value):
            return any(map(is_grad, targets))
        return _is_zeros(value) and any(map(_is_inside_of_grad, targets))
    if isinstance(statement, ast.AugAssign):
        factor = isinstance(statement.op, ast.Mult) and _is_zero(statement.value)
        return factor and mentions_grad(statement.target)
    call: ast.expr = statement.value
    if isinstance(call, (ast.ListComp, ast.GeneratorExp)):
        call = call.elt  # [p.grad.zero_() for p in …]
    return isinstance(call, ast.Call) and _is_clear(call)


def _is_clear(call: ast.Call) -> bool:
    """Is it `p.grad.zero_()`, `p.grad.mul_(0)`, `nn.init.zeros_(p.grad)` or the like?"""
    function, given = call.func, call.args
    if isinstance(function, ast.Name):
        names = [each.value for each in given if isinstance(each, ast.Constant)]
        return function.id == "setattr" and names == ["grad", None]
    if not isinstance(function, ast.Attribute):
        return False
    if function.attr in ("zero_", "zeros_"):  # torch's functions take what they clear
        return any(map(mentions_grad, (function.value, *given)))
    if function.attr in ("fill_", "mul_", "copy_"):
        return mentions_grad(function.value) and any(map(_is_zeros, given))
    return function.attr == "_foreach_zero_"


def _is_inside_of_grad(target: ast.expr) -> bool:
    """Is it all that some `.grad` holds: `p.grad.data`, `p.grad[:]`? `p.grad[:n]` is a part."""
    inner = target
    while not is_grad(inner):
        if isinstance(inner, ast.Subscript) and ast.unparse(inner.slice) not in (":", "..."):
            return False
        if not isinstance(inner, ast.Subscript) and getattr(inner, "attr", "") != "data":
            return False
        inner = inner.value  # type: ignore[attr-defined]
    return inner is not target


def is_grad(node: ast.AST) -> bool:
    """Is it some tensor's `.grad`, and not the function of `torch.autograd` or `torch.func`?

    `_grad` is the same one by another name, where it is no attribute of the user's own objects.
    """
    if not isinstance(node, ast.Attribute) or node.attr not in ("grad", "_grad"):
        return False
    of = getattr(node.value, "attr", getattr(node.value, "id", ""))
    return of not in (("autograd", "func") if node.attr == "grad" else ("self", "cls"))


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_zeros(node: ast.expr) -> bool:
    return _is_zero(node) or _makes_zeros(node)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def mentions_grad(node: ast.AST) -> bool:
    return any(map(is_grad, ast.walk(node)))
