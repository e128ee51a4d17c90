"""Blocks around statements: conditions, contexts, tries, loops that run once."""

from __future__ import annotations

import ast
from collections.abc import Callable

from benchmarks.accuracy.rewrites.binding import jumps, leaves, stored, surely
from benchmarks.accuracy.rewrites.choosing import choose_run, choose_site, simple
from benchmarks.accuracy.rewrites.sketch import Block, Sketch, Unfit, fill, places

OWN_CONTEXT = """
@contextlib.contextmanager
def NAME():
    print('begin')
    try:
        yield
    finally:
        print('end')
"""
OWN_CLASS = """
class NAME:
    def __enter__(self):
        return self
    def __exit__(self, *_):
        return False
"""


def _around(
    template: str,
    *,
    needs: str = "",
    top: str = "",
    loops: bool = False,
    longest: int = 5,
) -> Callable[[Sketch], None]:
    """Make a rewrite that puts BODY into a template; with `loops` no jump may stand in it."""

    def apply(sketch: Sketch) -> None:
        run = choose_run(sketch, longest=longest, loops=loops)
        name = sketch.fresh("flag")
        if needs:
            sketch.need(needs)
        run.replace(fill(template, BODY=run.statements, NAME=name))
        if top:
            sketch.on_top(fill(top, NAME=name))

    return apply


def _finally(sketch: Sketch) -> None:
    """The last statement of a loop's body stands in a `finally`."""
    found = [p.loop for p in places(sketch) if p.loop is not None and p.block is p.loop.body]
    loop = sketch.random.choice(found or [None])
    if loop is None or len(loop.body) < 2 or jumps(loop.body) or leaves(loop.body):
        raise Unfit
    last = loop.body[-1]
    loop.body[:] = fill("try:\n    BODY\nfinally:\n    LAST", BODY=loop.body[:-1], LAST=[last])


def _cleared_around(kind: str) -> Callable[[Sketch], None]:
    """A clear at an end of a block becomes a context that clears on the way in or out."""

    def apply(sketch: Sketch) -> None:
        site = choose_site(sketch, "zero_grad")
        block, at = site.place.block, site.at
        first, last = at == 0, at == len(block) - 1
        if not simple(site) or len(block) < 2 or not (first or last):
            raise Unfit
        rest = block[1:] if first else block[:-1]
        if not first and (jumps(rest) or leaves(rest)):
            raise Unfit
        name = sketch.fresh("Cleared" if kind == "class" else "cleared")
        sketch.on_top(_clearing(kind, name, first=first))
        if kind == "generator":
            sketch.need("import contextlib")
        if kind == "stack":
            sketch.need("import contextlib")
            if first:
                raise Unfit
            template = "with contextlib.ExitStack() as NAME:\n    NAME.callback(FUNC)\n    BODY"
            assert isinstance(site.call.func, ast.Attribute)
            block[:] = fill(template, NAME=name.lower(), FUNC=site.call.func, BODY=rest)
            return
        block[:] = fill("with NAME(HELD):\n    BODY", NAME=name, HELD=site.receiver, BODY=rest)

    return apply


def _clearing(kind: str, name: str, *, first: bool) -> Block:
    if kind == "generator":
        body = "it.zero_grad()\n    yield it" if first else "yield it\n    it.zero_grad()"
        return fill(f"@contextlib.contextmanager\ndef {name}(it):\n    {body}")
    if kind == "class":
        enter = "self.it.zero_grad()" if first else "pass"
        leave = "pass" if first else "self.it.zero_grad()"
        return fill(
            f"class {name}:\n    def __init__(self, it):\n        self.it = it\n"
            f"    def __enter__(self):\n        {enter}\n        return self.it\n"
            f"    def __exit__(self, *_):\n        {leave}\n"
        )
    return []


def _hidden_in_else(sketch: Sketch) -> None:
    """The rest of a block after an `if` that leaves becomes its `else`."""
    found = []
    for place in places(sketch):
        for at, each in enumerate(place.block[:-1]):
            last = each.body[-1] if isinstance(each, ast.If) and not each.orelse else None
            if isinstance(last, ast.Continue | ast.Return | ast.Break):
                found.append((place.block, at))
    if not found:
        raise Unfit
    block, at = sketch.random.choice(found)
    statement = block[at]
    assert isinstance(statement, ast.If)
    statement.orelse = block[at + 1 :]
    del block[at + 1 :]


def _continue_instead(sketch: Sketch) -> None:
    """A last `if` of a loop's body becomes a `continue` on its opposite."""
    found = []
    for place in places(sketch):
        if place.loop is not None and place.block is place.loop.body:
            last = place.block[-1]
            if isinstance(last, ast.If) and not last.orelse:
                found.append((place.block, last))
    if not found:
        raise Unfit
    block, last = sketch.random.choice(found)
    block[-1:] = [*fill("if not TEST:\n    continue", TEST=last.test), *last.body]


def _bound_first(sketch: Sketch) -> None:
    """Names are bound to None at the top of a body, as some people do."""
    found = [p.loop for p in places(sketch) if p.loop is not None and p.block is p.loop.body]
    loop = sketch.random.choice(found or [None])
    if loop is None:
        raise Unfit
    own = sorted(surely(loop.body) - stored([getattr(loop, "target", loop)]))
    read_first = [name for name in own if _is_read_first(name, loop.body)]
    own = [name for name in own if name not in read_first]
    if not own:
        raise Unfit
    loop.body[:0] = fill(f"{own[0]} = None")


def _is_read_first(name: str, block: Block) -> bool:
    for each in block:
        names = [n for n in ast.walk(each) if isinstance(n, ast.Name) and n.id == name]
        if names:
            is_assigned = isinstance(each, ast.Assign) and name in stored(each.targets)
            return not is_assigned or any(isinstance(n.ctx, ast.Load) for n in names)
    return False


WRAPPING: dict[str, Callable[[Sketch], None]] = {
    "wrap: flag": _around("if NAME:\n    BODY", top="NAME = True"),
    "wrap: else of a flag": _around("if not NAME:\n    pass\nelse:\n    BODY", top="NAME = True"),
    "wrap: if True": _around("if True:\n    BODY"),
    "wrap: nullcontext": _around(
        "with contextlib.nullcontext():\n    BODY", needs="import contextlib"
    ),
    "wrap: enable_grad": _around("with torch.enable_grad():\n    BODY", needs="import torch"),
    "wrap: set_grad_enabled": _around(
        "with torch.set_grad_enabled(True):\n    BODY", needs="import torch"
    ),
    "wrap: own context": _around(
        "with NAME():\n    BODY", needs="import contextlib", top=OWN_CONTEXT
    ),
    "wrap: own context class": _around("with NAME() as it:\n    BODY", top=OWN_CLASS),
    "wrap: ExitStack": _around(
        "with contextlib.ExitStack() as NAME:\n    BODY", needs="import contextlib"
    ),
    "wrap: autocast switched off": _around(
        "with torch.autocast('cpu', enabled=False):\n    BODY", needs="import torch"
    ),
    "wrap: try and finally": _around("try:\n    BODY\nfinally:\n    print('done')"),
    "wrap: try and raise": _around("try:\n    BODY\nexcept RuntimeError:\n    raise"),
    "wrap: try and else": _around(
        "try:\n    print('try')\nexcept KeyError:\n    raise\nelse:\n    BODY"
    ),
    "wrap: except with a message": _around(
        "try:\n    BODY\nexcept ValueError as NAME:\n    raise RuntimeError('failed') from NAME"
    ),
    "wrap: once round a for": _around("for NAME in range(1):\n    BODY", loops=True),
    "wrap: once round a while": _around("while True:\n    BODY\n    break", loops=True),
    "wrap: else of a for": _around("for NAME in ():\n    pass\nelse:\n    BODY", loops=False),
    "wrap: match": _around("match 1:\n    case 1:\n        BODY\n    case _:\n        pass"),
    "wrap: nested ifs": _around("if NAME:\n    if NAME is not None:\n        BODY", top="NAME = 1"),
    "wrap: finally": _finally,
    "wrap: clear in a context": _cleared_around("generator"),
    "wrap: clear in a context class": _cleared_around("class"),
    "wrap: clear as a callback": _cleared_around("stack"),
    "wrap: else after continue": _hidden_in_else,
    "wrap: continue instead of if": _continue_instead,
    "wrap: bound to None first": _bound_first,
}
