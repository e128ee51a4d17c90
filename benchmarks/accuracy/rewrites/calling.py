"""The same call, spelled otherwise."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from benchmarks.accuracy.rewrites.binding import stored
from benchmarks.accuracy.rewrites.choosing import Site, choose_site, simple
from benchmarks.accuracy.rewrites.sketch import Block, Sketch, Unfit, fill, places


def _with(call: ast.Call, function: ast.expr) -> ast.expr:
    """Return the call, of another function."""
    made = copy.deepcopy(call)
    made.func = function
    return made


def _spelled(
    template: str, *methods: str, needs: str = "", bare: bool = False
) -> Callable[[Sketch], None]:
    """Make a rewrite of a template over CALL, FUNC (`opt.step`), HELD (`opt`) and "METHOD"."""

    def apply(sketch: Sketch) -> None:
        site = choose_site(sketch, *methods)
        if not simple(site) or (bare and (site.call.args or site.call.keywords)):
            raise Unfit
        if needs:
            sketch.need(needs)
        names = {n: sketch.fresh(n.lower()) for n in ("NAME", "EACH", "MAKE")}
        by = fill(template, **_parts(site), **names)
        site.replace(_calls(by, site))

    return apply


def _parts(site: Site) -> dict[str, ast.expr | str]:
    return {
        "CALL": site.call,
        "FUNC": site.call.func,
        "HELD": site.receiver,
        "METHOD": site.method,
    }


class _Calls(ast.NodeTransformer):
    """Gives `GIVEN(f)` the arguments of the original call."""

    def __init__(self, call: ast.Call) -> None:
        self.call = call

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "GIVEN":
            return _with(self.call, node.args[0])
        return node


def _calls(block: Block, site: Site) -> Block:
    return [_Calls(site.call).visit(each) for each in block]


def _bound_before_the_loop(sketch: Sketch) -> None:
    """Take the method into a variable ahead of the loop."""
    site = choose_site(sketch, "step", "zero_grad", "update")
    loop = site.place.loop
    if not isinstance(site.receiver, ast.Name) or loop is None:
        raise Unfit
    if site.receiver.id in stored([loop]):
        raise Unfit
    name = sketch.fresh("call")
    for place in places(sketch):
        if loop in place.block and site.receiver.id in stored(_before(place.block, loop)):
            at = place.block.index(loop)
            assert site.call.func is not None
            ahead = fill("NAME = FUNC", NAME=name, FUNC=site.call.func)
            site.replace([ast.Expr(_with(site.call, ast.Name(name, ast.Load())))])
            place.block[at:at] = ahead
            return
    raise Unfit


def _before(block: Block, loop: ast.stmt) -> Block:
    return block[: block.index(loop)]


def _forwarded(sketch: Sketch) -> None:
    """A function that hands on whatever it is given."""
    site = choose_site(sketch)
    if not simple(site):
        raise Unfit
    name = sketch.fresh("call")
    sketch.on_top(fill("def NAME(f, *args, **kwargs):\n    return f(*args, **kwargs)", NAME=name))
    first = copy.deepcopy(site.call.func)
    made = copy.deepcopy(site.call)
    made.func, made.args = ast.Name(name, ast.Load()), [first, *made.args]
    site.replace([ast.Expr(made)])


def _method_by_name(sketch: Sketch) -> None:
    """A function that is told which method to call."""
    site = choose_site(sketch)
    if not simple(site):
        raise Unfit
    name = sketch.fresh("do")
    template = "def NAME(it, name, *args, **kwargs):\n    return getattr(it, name)(*args, **kwargs)"
    sketch.on_top(fill(template, NAME=name))
    made = copy.deepcopy(site.call)
    made.func = ast.Name(name, ast.Load())
    made.args = [copy.deepcopy(site.receiver), ast.Constant(site.method), *made.args]
    site.replace([ast.Expr(made)])


def _default_argument(sketch: Sketch) -> None:
    """A function defined on the spot, its default argument being the object."""
    site = choose_site(sketch, "step", "zero_grad")
    if not simple(site) or site.call.args or site.call.keywords:
        raise Unfit
    name = sketch.fresh("run")
    template = "def NAME(it=HELD):\n    it.METHOD()\nNAME()"
    site.replace(fill(template, NAME=name, HELD=site.receiver, METHOD=site.method))


CALLING: dict[str, Callable[[Sketch], None]] = {
    "call: getattr": _spelled('GIVEN(getattr(HELD, "METHOD"))'),
    "call: getattr with a default": _spelled(
        'NAME = getattr(HELD, "METHOD", None)\nif NAME is not None:\n    GIVEN(NAME)'
    ),
    "call: bound method in a variable": _spelled("NAME = FUNC\nGIVEN(NAME)"),
    "call: bound before the loop": _bound_before_the_loop,
    "call: methodcaller": _spelled(
        'operator.methodcaller("METHOD")(HELD)', needs="import operator", bare=True
    ),
    "call: dict of methods": _spelled('NAME = {"METHOD": FUNC}\nGIVEN(NAME["METHOD"])'),
    "call: dict of functions": _spelled(
        'NAME = {"METHOD": lambda it: it.METHOD()}\nNAME["METHOD"](HELD)', bare=True
    ),
    "call: loop over callbacks": _spelled("for EACH in [FUNC]:\n    GIVEN(EACH)"),
    "call: loop over the objects": _spelled(
        "for EACH in (HELD,):\n    EACH.METHOD()", "step", "zero_grad", bare=True
    ),
    "call: loop over named objects": _spelled(
        'for NAME, EACH in {"it": HELD}.items():\n    EACH.METHOD()', bare=True
    ),
    "call: map": _spelled("list(map(lambda EACH: EACH.METHOD(), [HELD]))", bare=True),
    "call: comprehension": _spelled("[EACH.METHOD() for EACH in (HELD,)]", bare=True),
    "call: partial": _spelled(
        "NAME = functools.partial(FUNC)\nGIVEN(NAME)", needs="import functools"
    ),
    "call: lambda": _spelled("NAME = lambda: CALL\nNAME()"),
    "call: lambda on the spot": _spelled("(lambda EACH: EACH.METHOD())(HELD)", bare=True),
    "call: and": _spelled("HELD is not None and CALL"),
    "call: or": _spelled("HELD is None or CALL"),
    "call: ternary": _spelled("CALL if HELD is not None else None"),
    "call: walrus": _spelled("if (NAME := HELD) is not None:\n    GIVEN(NAME.METHOD)"),
    "call: result kept": _spelled("NAME = CALL"),
    "call: through the class": _spelled("type(HELD).METHOD(HELD)", "step", "zero_grad", bare=True),
    "call: star arguments": _spelled("FUNC(*(), **{})", bare=True),
    "call: keyword dict": _spelled("NAME = dict()\nFUNC(**NAME)", bare=True),
    "call: match": _spelled('match "METHOD":\n    case "METHOD":\n        CALL'),
    "call: alias of the object": _spelled("NAME = HELD\nGIVEN(NAME.METHOD)"),
    "call: chained assignment": _spelled("NAME = EACH = HELD\nGIVEN(EACH.METHOD)"),
    "call: star unpacking": _spelled("NAME, *EACH = (HELD, 1, 2)\nGIVEN(NAME.METHOD)"),
    "call: forwarded": _forwarded,
    "call: method by name": _method_by_name,
    "call: default argument": _default_argument,
}
