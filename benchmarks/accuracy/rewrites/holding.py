"""A variable that lives in an object: an attribute, an item, a field, a function's result."""

from __future__ import annotations

import ast
from collections.abc import Callable

from benchmarks.accuracy.rewrites.binding import parameters, stored
from benchmarks.accuracy.rewrites.sketch import (
    Block,
    Scope,
    Sketch,
    Unfit,
    expression,
    fill,
    places,
)


def _is_made(statement: ast.stmt) -> bool:
    """Is this `name = Something(...)`?"""
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Call)
    )


def made_once(sketch: Sketch) -> list[tuple[Block, int, str, Scope]]:
    """Return the assignments `name = Something(...)` of names that are bound nowhere else."""
    found = []
    for place in places(sketch):
        if place.loop is not None:
            continue
        for at, statement in enumerate(place.block):
            if not _is_made(statement):
                continue
            assert isinstance(statement, ast.Assign)
            target = statement.targets[0]
            assert isinstance(target, ast.Name)
            if _times_bound(place.scope, target.id) == 1:
                found.append((place.block, at, target.id, place.scope))
    return found


def _times_bound(scope: Scope, name: str) -> int:
    count = 0
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and node.id == name:
            count += not isinstance(node.ctx, ast.Load)
        elif isinstance(node, ast.arg):
            count += 2 * (node.arg == name)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            count += 2 * (name in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            count += 2 * (node.name == name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            count += 2 * (name in stored([node]))
    return count


def _is_trained(scope: Scope, name: str) -> bool:
    """Is one of its attributes read?"""
    parts = [node.value for node in ast.walk(scope) if isinstance(node, ast.Attribute)]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


class _Replace(ast.NodeTransformer):
    def __init__(self, name: str, by: ast.expr) -> None:
        self.name, self.by = name, by

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id != self.name or not isinstance(node.ctx, ast.Load):
            return node
        made = expression("BY", BY=self.by)
        for each in ast.walk(made):
            vars(each)["origin"] = vars(node).get("origin", 0)
        return made


def _held(
    made: str, store: str, load: str, *, needs: str = "", top: str = ""
) -> Callable[[Sketch], None]:
    """Make a rewrite: `made` makes the holder, `store` puts VALUE there, `load` reads it."""

    def apply(sketch: Sketch) -> None:
        found = [e for e in made_once(sketch) if _is_trained(e[3], e[2])]
        if not found:
            raise Unfit
        block, at, name, scope = sketch.random.choice(found)
        if isinstance(scope, ast.Module) and _is_shadowed(sketch, name):
            raise Unfit
        for line in filter(None, [needs]):
            sketch.need(line)
        holder, kind = sketch.fresh("held"), sketch.fresh("Held")
        names = {"HOLDER": holder, "KIND": kind, "FIELD": name}
        statement = block[at]
        assert isinstance(statement, ast.Assign)
        value = statement.value
        _Replace(name, expression(load, **names)).visit(scope)
        put = fill(store, VALUE=value, **names)
        for each in put:
            vars(each)["origin"] = vars(statement).get("origin", 0)
        at = block.index(statement)
        block[at : at + 1] = [*fill(made, **names), *put]
        if top:
            sketch.on_top(fill(top, **names))

    return apply


def _is_shadowed(sketch: Sketch, name: str) -> bool:
    functions = [n for n in ast.walk(sketch.tree) if isinstance(n, ast.FunctionDef)]
    return any(name in stored(each.body) | parameters(each) for each in functions)


HOLDING: dict[str, Callable[[Sketch], None]] = {
    "hold: SimpleNamespace": _held(
        "HOLDER = types.SimpleNamespace()",
        "HOLDER.FIELD = VALUE",
        "HOLDER.FIELD",
        needs="import types",
    ),
    "hold: SimpleNamespace at once": _held(
        "pass", "HOLDER = types.SimpleNamespace(FIELD=VALUE)", "HOLDER.FIELD", needs="import types"
    ),
    "hold: dict": _held("HOLDER = {}", 'HOLDER["FIELD"] = VALUE', 'HOLDER["FIELD"]'),
    "hold: dict at once": _held("pass", 'HOLDER = {"FIELD": VALUE}', 'HOLDER["FIELD"]'),
    "hold: dict by word": _held("pass", "HOLDER = dict(FIELD=VALUE)", 'HOLDER["FIELD"]'),
    "hold: dict.get": _held("pass", "HOLDER = dict(FIELD=VALUE)", 'HOLDER.get("FIELD")'),
    "hold: list": _held("pass", "HOLDER = [VALUE]", "HOLDER[0]"),
    "hold: list that grows": _held("HOLDER = []", "HOLDER.append(VALUE)", "HOLDER[-1]"),
    "hold: tuple": _held("pass", "HOLDER = (VALUE, None)", "HOLDER[0]"),
    "hold: empty class": _held(
        "HOLDER = KIND()", "HOLDER.FIELD = VALUE", "HOLDER.FIELD", top="class KIND:\n    pass"
    ),
    "hold: own class": _held(
        "pass",
        "HOLDER = KIND(VALUE)",
        "HOLDER.FIELD",
        top="class KIND:\n    def __init__(self, it):\n        self.FIELD = it",
    ),
    "hold: dataclass": _held(
        "pass",
        "HOLDER = KIND(VALUE)",
        "HOLDER.FIELD",
        needs="import dataclasses",
        top="@dataclasses.dataclass\nclass KIND:\n    FIELD: object",
    ),
    "hold: namedtuple": _held(
        "pass",
        "HOLDER = KIND(VALUE, 1)",
        "HOLDER.FIELD",
        needs="import collections",
        top='KIND = collections.namedtuple("KIND", ["FIELD", "more"])',
    ),
    "hold: NamedTuple class": _held(
        "pass",
        "HOLDER = KIND(VALUE)",
        "HOLDER.FIELD",
        needs="import typing",
        top="class KIND(typing.NamedTuple):\n    FIELD: object",
    ),
    "hold: nested attribute": _held(
        "HOLDER = KIND()\nHOLDER.inner = KIND()",
        "HOLDER.inner.FIELD = VALUE",
        "HOLDER.inner.FIELD",
        top="class KIND:\n    pass",
    ),
    "hold: class attribute": _held(
        "pass", "KIND.FIELD = VALUE", "KIND.FIELD", top="class KIND:\n    FIELD = None"
    ),
    "hold: setattr": _held(
        "HOLDER = KIND()",
        'setattr(HOLDER, "FIELD", VALUE)',
        "HOLDER.FIELD",
        top="class KIND:\n    pass",
    ),
    "hold: __dict__": _held(
        "HOLDER = KIND()",
        'HOLDER.__dict__["FIELD"] = VALUE',
        "HOLDER.FIELD",
        top="class KIND:\n    pass",
    ),
    "hold: __dict__.update": _held(
        "HOLDER = KIND()",
        "HOLDER.__dict__.update(FIELD=VALUE)",
        "HOLDER.FIELD",
        top="class KIND:\n    pass",
    ),
    "hold: getattr": _held(
        "HOLDER = KIND()",
        "HOLDER.FIELD = VALUE",
        'getattr(HOLDER, "FIELD")',
        top="class KIND:\n    pass",
    ),
    "hold: property": _held(
        "pass",
        "HOLDER = KIND(VALUE)",
        "HOLDER.FIELD",
        top="class KIND:\n    def __init__(self, it):\n        self._it = it\n"
        "    @property\n    def FIELD(self):\n        return self._it",
    ),
    "hold: getter": _held(
        "pass",
        "HOLDER = KIND(VALUE)",
        "HOLDER.get()",
        top="class KIND:\n    def __init__(self, it):\n        self._it = it\n"
        "    def get(self):\n        return self._it",
    ),
    "hold: closure": _held("pass", "HOLDER = VALUE\ndef KIND():\n    return HOLDER", "KIND()"),
    "hold: lambda": _held("pass", "HOLDER = VALUE\nKIND = lambda: HOLDER", "KIND()"),
    "hold: __getitem__": _held(
        "pass",
        "HOLDER = KIND(VALUE)",
        'HOLDER["FIELD"]',
        top="class KIND:\n    def __init__(self, it):\n        self._it = {'FIELD': it}\n"
        "    def __getitem__(self, name):\n        return self._it[name]",
    ),
    "hold: __getattr__": _held(
        "pass",
        "HOLDER = KIND(VALUE)",
        "HOLDER.FIELD",
        top="class KIND:\n    def __init__(self, it):\n        self._it = {'FIELD': it}\n"
        "    def __getattr__(self, name):\n        return self._it[name]",
    ),
    "hold: __slots__": _held(
        "HOLDER = KIND()",
        "HOLDER.FIELD = VALUE",
        "HOLDER.FIELD",
        top="class KIND:\n    __slots__ = ('FIELD',)",
    ),
    "hold: chained assignment": _held("pass", "HOLDER = KIND = VALUE", "KIND"),
    "hold: unpacked": _held("pass", "HOLDER, *KIND = VALUE, 1", "HOLDER"),
    "hold: pair": _held("pass", "HOLDER, KIND = (VALUE, None)", "HOLDER"),
    "hold: optional": _held("HOLDER = None", "if HOLDER is None:\n    HOLDER = VALUE", "HOLDER"),
    "hold: first of a loop": _held(
        "HOLDER = None", "for KIND in range(1):\n    HOLDER = VALUE", "HOLDER"
    ),
}
