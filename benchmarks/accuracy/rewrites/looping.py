"""The same rounds, by another kind of loop."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.accuracy.rewrites.binding import jumps, leaves, read, read_first, stored
from benchmarks.accuracy.rewrites.choosing import has_event
from benchmarks.accuracy.rewrites.extracting import own_names
from benchmarks.accuracy.rewrites.sketch import Block, Place, Sketch, Unfit, fill, places


@dataclass(slots=True)
class Loop:
    """A `for` with an event in it."""

    place: Place
    at: int
    node: ast.For

    def replace(self, by: Block) -> None:
        for each in by:
            if isinstance(each, ast.For | ast.While):
                vars(each)["origin"] = vars(self.node).get("origin", 0)
        self.place.block[self.at : self.at + 1] = by


def choose_loop(sketch: Sketch) -> Loop:
    """Choose a `for` that trains."""
    found = [
        Loop(place, at, node)
        for place in places(sketch)
        for at, node in enumerate(place.block)
        if isinstance(node, ast.For) and has_event(node) and not node.orelse
    ]
    if not found:
        raise Unfit
    return sketch.random.choice(found)


def _turned(template: str, needs: str = "", *, straight: bool = False) -> Callable[[Sketch], None]:
    """Make a rewrite of a template over TARGET, ITER, BODY; `straight`: no jump in the body."""

    def apply(sketch: Sketch) -> None:
        loop = choose_loop(sketch)
        node = loop.node
        if straight and jumps(node.body):
            raise Unfit
        for each in filter(None, [needs]):
            sketch.need(each)
        names = {n: sketch.fresh(n.lower()) for n in ("NUMBER", "ITEMS", "NOTHING")}
        by = fill(template, TARGET=node.target, ITER=node.iter, BODY=node.body, **names)
        loop.replace(by)

    return apply


def _as_body(template: str, needs: str = "") -> Callable[[Sketch], None]:
    """Make a rewrite that turns the body into a function FUNC of the target."""

    def apply(sketch: Sketch) -> None:
        loop = choose_loop(sketch)
        node, scope = loop.node, loop.place.scope
        if leaves(node.body) or jumps(node.body) or not isinstance(node.target, ast.Name):
            raise Unfit
        bound = stored(node.body)
        outside = _elsewhere(scope, node)
        shared = sorted(bound & (outside | read_first(node.body)))
        word = "global" if isinstance(scope, ast.Module) else "nonlocal"
        known = own_names(scope) if word == "nonlocal" else set()
        if word == "nonlocal" and not set(shared) <= _bound_elsewhere(scope, node) & known:
            raise Unfit
        if needs:
            sketch.need(needs)
        declare = fill(f"{word} {', '.join(shared)}") if shared else []
        names = {n: sketch.fresh(n.lower()) for n in ("FUNC", "ITEMS", "NUMBER")}
        body = [*declare, *node.body]
        loop.replace(fill(template, TARGET=node.target.id, ITER=node.iter, BODY=body, **names))

    return apply


def _elsewhere(scope: ast.AST, loop: ast.For) -> set[str]:
    inside = {id(node) for node in ast.walk(loop)}
    nodes = [node for node in ast.walk(scope) if id(node) not in inside]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _bound_elsewhere(scope: ast.AST, loop: ast.For) -> set[str]:
    inside = {id(node) for node in ast.walk(loop)}
    nodes = [node for node in ast.walk(scope) if id(node) not in inside]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _half_in_a_generator(sketch: Sketch) -> None:
    """A generator does the first half of each round and yields; the loop does the rest."""
    loop = choose_loop(sketch)
    node, scope = loop.node, loop.place.scope
    if leaves(node.body) or jumps(node.body) or len(node.body) < 2:
        raise Unfit
    at = sketch.random.randrange(1, len(node.body))
    first, rest = node.body[:at], node.body[at:]
    bound = stored(first) | stored([node.target])
    if stored(rest) & (read(first) | read([node.iter])) or bound & _elsewhere(scope, node):
        raise Unfit
    if read_first(first) & stored(first):
        raise Unfit
    handed = sorted(bound & read(rest))
    words = ", ".join(handed) if handed else "nothing"
    value = words if handed else "None"
    name = sketch.fresh("halves")
    template = f"def {name}():\n    for TARGET in ITER:\n        FIRST\n        yield {value}"
    function = fill(template, TARGET=node.target, ITER=node.iter, FIRST=first)
    loop.replace([*function, *fill(f"for {words} in {name}():\n    REST", REST=rest)])


LOOPING: dict[str, Callable[[Sketch], None]] = {
    "loop: enumerate from 1": _turned("for NUMBER, TARGET in enumerate(ITER, start=1):\n    BODY"),
    "loop: zip with count": _turned(
        "for NUMBER, TARGET in zip(itertools.count(), ITER):\n    BODY", "import itertools"
    ),
    "loop: chain": _turned(
        "for TARGET in itertools.chain(ITER, []):\n    BODY", "import itertools"
    ),
    "loop: islice": _turned(
        "for TARGET in itertools.islice(ITER, None):\n    BODY", "import itertools"
    ),
    "loop: iter": _turned("ITEMS = iter(ITER)\nfor TARGET in ITEMS:\n    BODY"),
    "loop: list": _turned("ITEMS = list(ITER)\nfor TARGET in ITEMS:\n    BODY"),
    "loop: index": _turned(
        "ITEMS = list(ITER)\nfor NUMBER in range(len(ITEMS)):\n    TARGET = ITEMS[NUMBER]\n    BODY"
    ),
    "loop: range with a step": _turned(
        "ITEMS = list(ITER)\nfor NUMBER in range(0, 2 * len(ITEMS), 2):\n"
        "    TARGET = ITEMS[NUMBER // 2]\n    BODY"
    ),
    "loop: slices of one": _turned(
        "ITEMS = list(ITER)\nfor NUMBER in range(len(ITEMS)):\n"
        "    for TARGET in ITEMS[NUMBER:NUMBER + 1]:\n        BODY",
        straight=True,
    ),
    "loop: while with a counter": _turned(
        "ITEMS = list(ITER)\nNUMBER = 0\nwhile NUMBER < len(ITEMS):\n"
        "    TARGET = ITEMS[NUMBER]\n    NUMBER += 1\n    BODY"
    ),
    "loop: while True and break": _turned(
        "ITEMS = list(ITER)\nNUMBER = 0\nwhile True:\n    if NUMBER >= len(ITEMS):\n        break\n"
        "    TARGET = ITEMS[NUMBER]\n    NUMBER += 1\n    BODY"
    ),
    "loop: break at the end": _turned(
        "ITEMS = list(ITER)\nNUMBER = 0\nwhile ITEMS:\n    TARGET = ITEMS[NUMBER]\n    BODY\n"
        "    NUMBER += 1\n    if NUMBER == len(ITEMS):\n        break",
        straight=True,
    ),
    "loop: while items": _turned(
        "ITEMS = list(ITER)\nwhile ITEMS:\n    TARGET = ITEMS.pop(0)\n    BODY"
    ),
    "loop: next with a default": _turned(
        "NOTHING = object()\nITEMS = iter(ITER)\nNUMBER = next(ITEMS, NOTHING)\n"
        "while NUMBER is not NOTHING:\n    TARGET = NUMBER\n    NUMBER = next(ITEMS, NOTHING)\n"
        "    BODY"
    ),
    "loop: walrus": _turned(
        "NOTHING = object()\nITEMS = iter(ITER)\n"
        "while (NUMBER := next(ITEMS, NOTHING)) is not NOTHING:\n    TARGET = NUMBER\n    BODY"
    ),
    "loop: StopIteration": _turned(
        "ITEMS = iter(ITER)\nwhile True:\n    try:\n        TARGET = next(ITEMS)\n"
        "    except StopIteration:\n        break\n    BODY"
    ),
    "loop: StopIteration around": _turned(
        "ITEMS = iter(ITER)\ntry:\n    while True:\n        TARGET = next(ITEMS)\n        BODY\n"
        "except StopIteration:\n    pass",
        straight=True,
    ),
    "loop: cycle": _turned(
        "NUMBER = list(ITER)\nITEMS = itertools.cycle(NUMBER)\nfor NOTHING in range(len(NUMBER)):\n"
        "    TARGET = next(ITEMS)\n    BODY",
        "import itertools",
    ),
    "loop: with an else": _turned("for TARGET in ITER:\n    BODY\nelse:\n    print('done')"),
    "loop: in a loop that runs once": _turned(
        "for NUMBER in range(1):\n    for TARGET in ITER:\n        BODY"
    ),
    "loop: generator": _turned(
        "def ITEMS(NUMBER):\n    yield from NUMBER\nfor TARGET in ITEMS(ITER):\n    BODY"
    ),
    "loop: generator expression": _turned("for TARGET in (NUMBER for NUMBER in ITER):\n    BODY"),
    "loop: own iterator": _turned(
        "class ITEMS:\n    def __init__(self, it):\n        self.it = it\n"
        "    def __iter__(self):\n        for each in self.it:\n            yield each\n"
        "for TARGET in ITEMS(ITER):\n    BODY"
    ),
    "loop: half in a generator": _half_in_a_generator,
    "loop: body as a function": _as_body(
        "def FUNC(TARGET):\n    BODY\nfor NUMBER in ITER:\n    FUNC(NUMBER)"
    ),
    "loop: map": _as_body("def FUNC(TARGET):\n    BODY\nlist(map(FUNC, ITER))"),
    "loop: comprehension": _as_body(
        "def FUNC(TARGET):\n    BODY\n[FUNC(NUMBER) for NUMBER in ITER]"
    ),
    "loop: recursion": _as_body(
        "ITEMS = list(ITER)\ndef FUNC(NUMBER):\n    if NUMBER == len(ITEMS):\n        return\n"
        "    def FUNC_BODY(TARGET):\n        BODY\n    FUNC_BODY(ITEMS[NUMBER])\n"
        "    FUNC(NUMBER + 1)\nFUNC(0)"
    ),
    "loop: coroutine": _as_body(
        "def FUNC():\n    while True:\n        TARGET = yield\n        STEP(TARGET)\n"
        "def STEP(TARGET):\n    BODY\nITEMS = FUNC()\nnext(ITEMS)\n"
        "for NUMBER in ITER:\n    ITEMS.send(NUMBER)"
    ),
    "loop: async": _as_body(
        "def FUNC(TARGET):\n    BODY\nasync def ITEMS():\n    for NUMBER in ITER:\n"
        "        FUNC(NUMBER)\nasyncio.run(ITEMS())",
        "import asyncio",
    ),
    "loop: callbacks": _as_body(
        "def FUNC(TARGET):\n    BODY\nITEMS = [FUNC]\nfor NUMBER in ITER:\n"
        "    for each in ITEMS:\n        each(NUMBER)"
    ),
}
