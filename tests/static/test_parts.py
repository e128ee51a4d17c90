"""The parts of code are those that `ast.walk` finds, without what says nothing of their own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from zerograd.static.engine.text.parts import inner_of, names_below, parts_below

SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
OURS = sorted((Path(__file__).parents[2] / "src" / "zerograd" / "static").rglob("*.py"))
ODD = """
async def f(a, /, b: int = 1, *c, d=None, **e) -> {**a, 'k': None}:
    async with x as (y, *z), w: await y
    async for i, j in [*z]: del i.k, j[1:2, ::3]
    else: yield (yield from q)
    try: assert not a, f'{b!r:>{c}} {d}'
    except (E, F) as g: raise G from g
    finally: global h
    match p:
        case {'a': 1, **r} | [1, *s] | C(t, u=2) if v: pass
    l = lambda m, *n: (o := m) if n else {k: v for k, v in m if k for w in v}
    a.b[c] += -d @ e or f and g < h <= i is not j
"""


def without_signs(nodes: list[ast.AST]) -> list[ast.AST]:
    return [each for each in nodes if not isinstance(each, SIGNS)]


@pytest.mark.parametrize("path", [None, *OURS[:40]])
def test_the_parts_are_those_of_a_walk_in_its_order(path: Path | None) -> None:
    text = path.read_text(encoding="utf-8") if path is not None else ODD
    tree = ast.parse(text)
    assert parts_below(tree) == without_signs(list(ast.walk(tree)))
    for each in ast.walk(tree):
        assert inner_of(each) == without_signs(list(ast.iter_child_nodes(each)))


def test_names_come_as_often_as_they_are_there() -> None:
    assert sorted(names_below(ast.parse("a.b + a[c] + f(d=a)"))) == ["a", "a", "a", "c", "f"]
