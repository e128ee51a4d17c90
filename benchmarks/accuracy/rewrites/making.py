"""Factories: models and optimizers made elsewhere, or by name."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from benchmarks.accuracy.rewrites.holding import made_once
from benchmarks.accuracy.rewrites.sketch import Block, Sketch, Unfit, expression, fill

OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS")


def _choose(sketch: Sketch, *, optimizers: bool = False) -> tuple[Block, int, ast.Assign, ast.Call]:
    found = []
    for block, at, _, _ in made_once(sketch):
        statement = block[at]
        assert isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
        call = statement.value
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        wanted = name in OPTIMIZERS if optimizers else name in (*OPTIMIZERS, "Linear", "Sequential")
        if wanted:
            found.append((block, at, statement, call))
    if not found:
        raise Unfit
    return sketch.random.choice(found)


def made_by(template: str, top: str = "", needs: str = "") -> Callable[[Sketch], None]:
    """Make a rewrite of VALUE, an optimizer that is made, or CLASS(...)."""

    def apply(sketch: Sketch) -> None:
        _, _, statement, call = _choose(sketch, optimizers=True)
        if needs:
            sketch.need(needs)
        name = sketch.fresh("make")
        function = call.func
        assert isinstance(function, ast.Attribute)
        parts: dict[str, ast.expr | str] = {
            "VALUE": call,
            "CLASS": function,
            "NAME": name,
            "KEY": function.attr,
            "FAMILY": function.value,
        }
        made = expression(template, **parts)
        statement.value = _Given(call).visit(made)
        if top:
            sketch.on_top(fill(top, **parts))

    return apply


class _Given(ast.NodeTransformer):
    """Gives `GIVEN(f)` the arguments of the original call; GIVEN_TO puts some ahead."""

    def __init__(self, call: ast.Call) -> None:
        self.call = call

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "GIVEN":
            made = copy.deepcopy(self.call)
            made.func, made.args = node.args[0], [*node.args[1:], *made.args]
            return made
        return node


def _factory(sketch: Sketch) -> None:
    """A function without arguments, over the names around it."""
    block, at, statement, call = _choose(sketch)
    name = sketch.fresh("make")
    function = fill(f"def {name}():\n    return VALUE", VALUE=call)
    statement.value = expression(f"{name}()")
    block[at:at] = function


def _parameters(template: str, needs: str = "") -> Callable[[Sketch], None]:
    """Make a rewrite of what the optimizer is given."""

    def apply(sketch: Sketch) -> None:
        _, _, _, call = _choose(sketch, optimizers=True)
        if not call.args or not ast.unparse(call.args[0]).endswith(".parameters()"):
            raise Unfit
        if needs:
            sketch.need(needs)
        call.args[0] = expression(template, PARAMS=call.args[0])

    return apply


FACTORY = "def NAME(kind, *args, **kwargs):\n    return kind(*args, **kwargs)"
BRANCHES = """
def NAME(name, params, **kwargs):
    if name == "KEY":
        made = CLASS(params, **kwargs)
    elif name == "other":
        made = FAMILY.ASGD(params, **kwargs)
    else:
        raise ValueError(name)
    return made
"""
MAKING: dict[str, Callable[[Sketch], None]] = {
    "make: function": _factory,
    "make: factory": made_by("GIVEN(NAME, CLASS)", FACTORY),
    "make: factory with branches": made_by('GIVEN(NAME, "KEY")', BRANCHES),
    "make: getattr of the module": made_by('GIVEN(getattr(FAMILY, "KEY"))'),
    "make: table of classes": made_by('GIVEN({"KEY": CLASS}["KEY"])'),
    "make: class in a variable": made_by("GIVEN(NAME)", "NAME = CLASS"),
    "make: partial": made_by("GIVEN(functools.partial(CLASS))", needs="import functools"),
    "make: lambda": made_by("(lambda: VALUE)()"),
    "make: subclass": made_by("GIVEN(NAME)", "class NAME(CLASS):\n    pass"),
    "make: either": made_by("VALUE if 1 > 0 else None"),
    "make: parameters in a list": _parameters("list(PARAMS)"),
    "make: parameters in groups": _parameters('[{"params": PARAMS}]'),
    "make: parameters by list": _parameters("[p for p in PARAMS if p.requires_grad]"),
    "make: parameters by filter": _parameters("filter(lambda p: p.requires_grad, PARAMS)"),
    "make: parameters by chain": _parameters("itertools.chain(PARAMS)", "import itertools"),
    "make: parameters starred": _parameters("[*PARAMS]"),
}
