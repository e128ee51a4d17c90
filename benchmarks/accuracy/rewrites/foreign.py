"""Part of the work done by a package that cannot be read: nothing wrong may be said then."""

from __future__ import annotations

import ast
from collections.abc import Callable

from benchmarks.accuracy.rewrites.choosing import choose_site, simple
from benchmarks.accuracy.rewrites.extracting import called, cut, function_of
from benchmarks.accuracy.rewrites.making import made_by
from benchmarks.accuracy.rewrites.sketch import Sketch, Unfit, fill

NEEDS = "import outside"
# What the package does, for programs that are run.
SOURCE = """
import contextlib


def do(it, name, *args, **kwargs):
    return getattr(it, name)(*args, **kwargs)


def clear(it):
    it.zero_grad()


def call(f, *args, **kwargs):
    return f(*args, **kwargs)


def plain(f):
    def inner(*args, **kwargs):
        return f(*args, **kwargs)

    return inner


def make(kind, *args, **kwargs):
    return kind(*args, **kwargs)


@contextlib.contextmanager
def cleared(it):
    yield it
    it.zero_grad()


def look_at(*things):
    pass
"""


def _done_outside(template: str, *methods: str) -> Callable[[Sketch], None]:
    def apply(sketch: Sketch) -> None:
        site = choose_site(sketch, *methods)
        if not simple(site) or site.call.args or site.call.keywords:
            raise Unfit
        sketch.need(NEEDS)
        function = site.call.func
        site.replace(fill(template, HELD=site.receiver, FUNC=function, METHOD=site.method))

    return apply


def _decorated(sketch: Sketch) -> None:
    """A function behind a decorator from elsewhere."""
    found = cut(sketch)
    sketch.need(NEEDS)
    name = sketch.fresh("part")
    function = function_of(found, name, found.given)
    decorator = ast.Attribute(ast.Name("outside", ast.Load()), "plain", ast.Load())
    function.decorator_list = [decorator]
    found.run.replace(called(found, f"{name}({', '.join(found.given)})"))
    sketch.on_top([function])


def _called_back(sketch: Sketch) -> None:
    """A function that another package calls."""
    found = cut(sketch)
    sketch.need(NEEDS)
    name = sketch.fresh("part")
    function = function_of(found, name, found.given)
    words = ", ".join([name, *found.given])
    found.run.replace(called(found, f"outside.call({words})"))
    sketch.on_top([function])


def _looked_at(sketch: Sketch) -> None:
    """Another package is shown the object, and does nothing to it."""
    site = choose_site(sketch)
    if not simple(site):
        raise Unfit
    sketch.need(NEEDS)
    site.place.block[site.at : site.at] = fill("outside.look_at(HELD)", HELD=site.receiver)


FOREIGN: dict[str, Callable[[Sketch], None]] = {
    "foreign: clear": _done_outside("outside.clear(HELD)", "zero_grad"),
    "foreign: call": _done_outside("outside.call(FUNC)"),
    "foreign: by name": _done_outside('outside.do(HELD, "METHOD")'),
    "foreign: decorator": _decorated,
    "foreign: called back": _called_back,
    "foreign: make": made_by("GIVEN(outside.make, CLASS)", needs=NEEDS),
    "foreign: looked at": _looked_at,
}
