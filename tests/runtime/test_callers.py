"""Who called: a function is parsed alone where it can be, and read as in its file."""

from __future__ import annotations

import ast
import linecache

import pytest

pytest.importorskip("torch")

from zerograd.runtime import callers

SOURCE = '''
import functools

def outside(n):
    return n


class Trainer:
    @functools.lru_cache(
        maxsize=None,
    )
    def train(
        self, loader,
    ):
        text = """
not indented
"""
        for i, x in enumerate(loader):
            if i % 4 == 0:
                self.step(
                    x,
                )

    def after(self):
        total = 0
        while total < 3:
            total += 1
            self.step(total)
        return """
at the margin"""

for x in range(3):
    outside(x)
'''


def code_named(name, code):
    if code.co_name == name:
        return code
    inner = (each for each in code.co_consts if hasattr(each, "co_name"))
    return next(filter(None, (code_named(name, each) for each in inner)), None)


@pytest.mark.parametrize(
    ("name", "text"),
    [("train", "self.step(\n"), ("after", "self.step(total)"), ("<module>", "outside(x)")],
)
def test_the_statements_around_a_line_are_those_of_the_whole_file(name, text, monkeypatch):
    path = "a_trainer.py"
    lines = SOURCE.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, path, (len(SOURCE), None, lines, path))
    code = code_named(name, compile(SOURCE, path, "exec"))
    line = next(n for n, each in enumerate(lines, 1) if text.strip() in each)
    found = callers.nodes_around(code, line)
    whole = callers._over(SOURCE, 0, line)
    assert [(type(each), each.lineno) for each in found] == [
        (type(each), each.lineno) for each in whole
    ]
    assert any(isinstance(each, (ast.For, ast.While)) for each in found)


def test_a_function_alone_is_what_is_parsed(monkeypatch):
    path = "a_trainer.py"
    source = SOURCE + "\nthis is no Python\n"
    monkeypatch.setitem(
        linecache.cache, path, (len(source), None, source.splitlines(keepends=True), path)
    )
    code = code_named("train", compile(SOURCE, path, "exec"))
    line = next(n for n, each in enumerate(SOURCE.splitlines(), 1) if "self.step(" in each)
    assert any(isinstance(each, ast.For) for each in callers.nodes_around(code, line))
