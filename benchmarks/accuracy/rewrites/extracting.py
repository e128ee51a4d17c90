"""Statements moved into a function, a method, a closure."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.accuracy.rewrites.binding import (
    known_above,
    parameters,
    read_first,
    stored,
    surely,
)
from benchmarks.accuracy.rewrites.choosing import Run, choose_run
from benchmarks.accuracy.rewrites.sketch import Block, Scope, Sketch, Unfit, fill

BUILTIN = frozenset(dir(builtins))


@dataclass(slots=True)
class Cut:
    """A run that could stand elsewhere: what it must be given, and what it gives back."""

    run: Run
    given: list[str]
    back: list[str]

    @property
    def body(self) -> Block:
        return self.run.statements

    def back_text(self) -> str:
        return ", ".join(self.back)


def own_names(scope: Scope) -> set[str]:
    if isinstance(scope, ast.Module):
        return stored(scope.body)
    return stored(scope.body) | parameters(scope)


def cut(sketch: Sketch, *, longest: int = 5) -> Cut:
    """Choose a run and find out what it reads and binds."""
    run = choose_run(sketch, longest=longest)
    statements, scope = run.statements, run.place.scope
    bound = stored(statements)
    outside = _read_outside(scope, statements, sketch)
    # A name that was there before may be read first and bound later.
    first = read_first(statements)
    back = sorted(bound & (outside | (first if run.place.loop else set())))
    if isinstance(scope, ast.Module):
        given = sorted(first & stored(scope.body) - known_above(sketch, scope))
    else:
        above = stored(sketch.tree.body) | BUILTIN
        given = sorted(first - (above - own_names(scope)))
    sure = surely(statements)
    if any(name not in sure and name not in given for name in back):
        raise Unfit
    return Cut(run, given, back)


def _read_outside(scope: Scope, statements: Block, sketch: Sketch) -> set[str]:
    inside = {id(node) for each in statements for node in ast.walk(each)}
    nodes = [node for node in ast.walk(scope) if id(node) not in inside]
    found = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    names = [n.names for n in nodes if isinstance(n, ast.Global | ast.Nonlocal)]
    return found.union(*names)


def function_of(cut: Cut, name: str, given: list[str]) -> ast.FunctionDef:
    made = fill(f"def NAME({', '.join(given)}):\n    BODY", NAME=name, BODY=cut.body)[0]
    assert isinstance(made, ast.FunctionDef)
    if cut.back:
        made.body += fill(f"return {cut.back_text()}")
    return made


def called(cut: Cut, call: str) -> Block:
    return fill(f"{cut.back_text()} = {call}" if cut.back else call)


def _to_function(sketch: Sketch) -> None:
    found = cut(sketch)
    name = sketch.fresh("part")
    function = function_of(found, name, found.given)
    found.run.replace(called(found, f"{name}({', '.join(found.given)})"))
    sketch.on_top([function])


def _to_function_by_keyword(sketch: Sketch) -> None:
    found = cut(sketch)
    name = sketch.fresh("part")
    function = function_of(found, name, ["*", *found.given] if found.given else [])
    words = ", ".join(f"{each}={each}" for each in found.given)
    found.run.replace(called(found, f"{name}({words})"))
    sketch.on_top([function])


def _to_static_method(sketch: Sketch) -> None:
    _to_method_of_class(sketch, "staticmethod", [])


def _to_class_method(sketch: Sketch) -> None:
    _to_method_of_class(sketch, "classmethod", ["cls"])


def _to_method_of_class(sketch: Sketch, decorator: str, first: list[str]) -> None:
    found = cut(sketch)
    name, holder = sketch.fresh("part"), sketch.fresh("Work")
    function = function_of(found, name, [*first, *found.given])
    made = fill("class HOLDER:\n    BODY", HOLDER=holder, BODY=[function])
    function.decorator_list = [ast.Name(decorator, ast.Load())]
    found.run.replace(called(found, f"{holder}.{name}({', '.join(found.given)})"))
    sketch.on_top(made)


def _to_method(sketch: Sketch) -> None:
    """A method of an object that is made on the spot."""
    found = cut(sketch)
    name, holder = sketch.fresh("part"), sketch.fresh("Work")
    if "self" in found.given or sketch.random.random() < 0.3:
        name = "__call__"
    given = [each for each in found.given if each != "self"]
    if given != found.given:
        raise Unfit
    function = function_of(found, name, ["self", *given])
    made = fill("class HOLDER:\n    BODY", HOLDER=holder, BODY=[function])
    whom = f"{holder}()" if name == "__call__" else f"{holder}().{name}"
    found.run.replace(called(found, f"{whom}({', '.join(given)})"))
    sketch.on_top(made)


def _to_keeper(sketch: Sketch) -> None:
    """An object that keeps what it needs, with a method that works on it."""
    found = cut(sketch)
    if "self" in found.given or not found.given:
        raise Unfit
    holder, name = sketch.fresh("Keeper"), sketch.fresh("work")
    takes = [f"self.{each} = {each}" for each in found.given]
    keeps = "\n        ".join(takes)
    gets = "\n        ".join(f"{each} = self.{each}" for each in found.given)
    back = f"\n        return {found.back_text()}" if found.back else ""
    template = (
        f"class {holder}:\n    def __init__(self, {', '.join(found.given)}):\n        {keeps}\n"
        f"    def {name}(self):\n        {gets}\n        BODY{back}"
    )
    made = fill(template, BODY=found.body)
    found.run.replace(called(found, f"{holder}({', '.join(found.given)}).{name}()"))
    sketch.on_top(made)


def _to_closure(sketch: Sketch) -> None:
    """A function in the scope itself, over the names around it."""
    found = cut(sketch)
    scope = found.run.place.scope
    if not stored(found.body).isdisjoint(found.given):
        raise Unfit
    name = sketch.fresh("part")
    function = function_of(found, name, [])
    found.run.replace([function, *called(found, f"{name}()")])
    if isinstance(scope, ast.Module) and sketch.random.random() < 0.5:
        found.run.place.block.remove(function)
        sketch.on_top([function])


def _to_closure_that_rebinds(sketch: Sketch) -> None:
    """A function that binds the names of the scope around it."""
    found = cut(sketch)
    scope = found.run.place.scope
    name = sketch.fresh("part")
    if not found.back:
        raise Unfit
    word = "global" if isinstance(scope, ast.Module) else "nonlocal"
    function = function_of(Cut(found.run, [], []), name, [])
    if not (stored(found.body) - set(found.back)).isdisjoint(found.given):
        raise Unfit
    function.body[:0] = fill(f"{word} {found.back_text()}")
    new = [each for each in found.back if each not in found.given]
    ahead = fill(" = ".join([*new, "None"])) if word == "nonlocal" and new else []
    found.run.replace([*ahead, function, *fill(f"{name}()")])


def _to_partial(sketch: Sketch) -> None:
    found = cut(sketch)
    if not found.given:
        raise Unfit
    sketch.need("import functools")
    name, made = sketch.fresh("part"), sketch.fresh("bound")
    function = function_of(found, name, found.given)
    first, rest = found.given[:1], found.given[1:]
    bind = fill(f"{made} = functools.partial({name}, {', '.join(first)})")
    found.run.replace([*bind, *called(found, f"{made}({', '.join(rest)})")])
    sketch.on_top([function])


def _to_packed(sketch: Sketch) -> None:
    """Arguments that travel in a tuple or a dict."""
    found = cut(sketch)
    if not found.given:
        raise Unfit
    name = sketch.fresh("part")
    function = function_of(found, name, found.given)
    words = ", ".join(found.given)
    if sketch.random.random() < 0.5:
        call = f"{name}(*({words},))"
    else:
        call = f"{name}(**dict({', '.join(f'{each}={each}' for each in found.given)}))"
    found.run.replace(called(found, call))
    sketch.on_top([function])


def _decorated(template: str, needs: str = "") -> Callable[[Sketch], None]:
    def apply(sketch: Sketch) -> None:
        found = cut(sketch)
        if needs:
            sketch.need(needs)
        name, decorator = sketch.fresh("part"), sketch.fresh("decorated")
        function = function_of(found, name, found.given)
        function.decorator_list = [ast.Name(decorator, ast.Load())]
        found.run.replace(called(found, f"{name}({', '.join(found.given)})"))
        sketch.on_top([*fill(template, NAME=decorator), function])

    return apply


def _two_layers(sketch: Sketch) -> None:
    """A function that calls a function."""
    found = cut(sketch)
    inner, outer = sketch.fresh("inner"), sketch.fresh("outer")
    words = ", ".join(found.given)
    function = function_of(found, inner, found.given)
    calls = fill(f"def {outer}({words}):\n    return {inner}({words})")
    found.run.replace(called(found, f"{outer}({words})"))
    sketch.on_top([*calls, function] if sketch.random.random() < 0.5 else [function, *calls])


def _early_return(sketch: Sketch) -> None:
    """A function that returns at once where there is nothing to do."""
    found = cut(sketch)
    if not found.given or found.back:
        raise Unfit
    name = sketch.fresh("part")
    function = function_of(found, name, found.given)
    function.body[:0] = fill(f"if {found.given[0]} is None:\n    return")
    found.run.replace(called(found, f"{name}({', '.join(found.given)})"))
    sketch.on_top([function])


def _copied(sketch: Sketch) -> None:
    """Both branches of a condition hold the same statements."""
    run = choose_run(sketch, longest=2)
    flag = sketch.fresh("verbose")
    both: Block = fill(
        "if FLAG:\n    ONE\nelse:\n    TWO",
        FLAG=flag,
        ONE=run.statements,
        TWO=copy.deepcopy(run.statements),
    )
    run.replace(both)
    sketch.on_top(fill("import sys\nFLAG = len(sys.argv) > 1", FLAG=flag))


EXTRACTING: dict[str, Callable[[Sketch], None]] = {
    "extract: function": _to_function,
    "extract: keyword arguments": _to_function_by_keyword,
    "extract: static method": _to_static_method,
    "extract: class method": _to_class_method,
    "extract: method": _to_method,
    "extract: keeper object": _to_keeper,
    "extract: closure": _to_closure,
    "extract: closure that rebinds": _to_closure_that_rebinds,
    "extract: partial": _to_partial,
    "extract: packed arguments": _to_packed,
    "extract: two layers": _two_layers,
    "extract: early return": _early_return,
    "extract: both branches": _copied,
    "extract: own decorator": _decorated(
        "def NAME(f):\n    def inner(*args, **kwargs):\n        return f(*args, **kwargs)\n"
        "    return inner"
    ),
    "extract: own decorator with wraps": _decorated(
        "def NAME(f):\n    @functools.wraps(f)\n    def inner(*args, **kwargs):\n"
        "        print('begin')\n        result = f(*args, **kwargs)\n        return result\n"
        "    return inner",
        "import functools",
    ),
    "extract: decorator that returns it": _decorated(
        "registry = {}\ndef NAME(f):\n    registry[f.__name__] = f\n    return f"
    ),
    "extract: enable_grad": _decorated("NAME = torch.enable_grad()", "import torch"),
}
