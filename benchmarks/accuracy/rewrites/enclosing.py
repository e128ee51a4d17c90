"""The whole program in a function, or in a class with a life of its own."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.accuracy.rewrites.binding import inner_only, jumps, leaves, read, read_first, stored
from benchmarks.accuracy.rewrites.choosing import has_event
from benchmarks.accuracy.rewrites.sketch import Block, Sketch, Unfit, fill


@dataclass(slots=True)
class Script:
    """A program that stands at module level: what it sets up, and what it then does."""

    kept: Block  # imports, functions, classes
    before: Block
    loop: ast.For
    after: Block


def _split(sketch: Sketch) -> Script:
    body = sketch.tree.body
    kept = [s for s in body if isinstance(s, _KEPT) or _is_text(s)]
    rest = [s for s in body if s not in kept]
    if read([s for s in kept if isinstance(s, ast.FunctionDef | ast.ClassDef)]) & stored(rest):
        raise Unfit  # a function reads what the script binds
    for at, each in enumerate(rest):
        if isinstance(each, ast.For) and has_event(each):
            if any(_is_scoped(node) for part in rest for node in ast.walk(part)):
                raise Unfit
            return Script(kept, rest[:at], each, rest[at + 1 :])
    raise Unfit


_KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def _is_scoped(node: ast.AST) -> bool:
    return isinstance(node, ast.Global | ast.Nonlocal)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Owned(ast.NodeTransformer):
    """Makes `self.name` of these names."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.names:
            return node
        made = ast.Attribute(ast.Name("self", ast.Load()), node.id, node.ctx)
        for each in (made, made.value):
            vars(each)["origin"] = vars(node).get("origin", 0)
        return made


def _owned(names: set[str], block: Block) -> Block:
    return [_Owned(names).visit(each) for each in block]


def _in_main(sketch: Sketch) -> None:
    found = _split(sketch)
    body = [*found.before, found.loop, *found.after]
    sketch.tree.body = [*found.kept, *fill("def main():\n    BODY\nmain()", BODY=body)]


def _in_main_guarded(sketch: Sketch) -> None:
    found = _split(sketch)
    body = [*found.before, found.loop, *found.after]
    template = "def main():\n    BODY\nif __name__ == '__main__':\n    main()"
    sketch.tree.body = [*found.kept, *fill(template, BODY=body)]


def _parameters(sketch: Sketch) -> None:
    """The loop in a function that is given what it needs."""
    found = _split(sketch)
    if leaves([found.loop]):
        raise Unfit
    given = sorted(stored(found.before) & read([found.loop]))
    if stored([found.loop]) & (read(found.after) | set(given)):
        raise Unfit
    name = sketch.fresh("train")
    words = ", ".join(given)
    made = fill(f"def {name}({words}):\n    BODY", BODY=[found.loop])
    call = fill(f"{name}({words})")
    sketch.tree.body = [*found.kept, *made, *found.before, *call, *found.after]


def _in_a_class(template: str, *, needs: str = "", whole: bool = False) -> Callable[[Sketch], None]:
    """Make a rewrite: what is set up becomes attributes; templates over SETUP, LOOP, ITER, BODY.

    With `whole` the body of the loop stays where it is.
    """

    def apply(sketch: Sketch) -> None:
        found = _split(sketch)
        loop = found.loop
        own = stored(found.before)
        local = stored([loop])
        if leaves([loop]) or any(isinstance(s, ast.With | ast.Try | ast.For) for s in found.before):
            raise Unfit
        if local & own or (local & read(found.after)):
            own |= local
        if not whole:
            if jumps(loop.body) or not isinstance(loop.target, ast.Name) or loop.target.id in own:
                raise Unfit
            carried = read_first(loop.body) & local - {loop.target.id}
            own |= carried
        if inner_only([*found.before, loop, *found.after]) & own:
            raise Unfit
        if needs:
            sketch.need(needs)
        setup, body = _owned(own, found.before), _owned(own, loop.body)
        target = _owned(own, [ast.Expr(loop.target)])[0]
        source = _owned(own, [ast.Expr(loop.iter)])[0]
        assert isinstance(target, ast.Expr) and isinstance(source, ast.Expr)
        loop.target, loop.iter, loop.body = target.value, source.value, body
        parts: dict[str, ast.expr | Block | str] = {
            "SETUP": setup,
            "LOOP": [loop],
            "BODY": body,
            "ITER": loop.iter,
            "AFTER": [*_owned(own, found.after), ast.Pass()],
            "KIND": sketch.fresh("Trainer"),
            "BASE": sketch.fresh("Base"),
        }
        if isinstance(loop.target, ast.Name):
            parts["TARGET"] = loop.target.id
        sketch.tree.body = [*found.kept, *fill(template, **parts)]

    return apply


CLASS = """
class KIND:
    def __init__(self):
        SETUP

    def run(self):
        LOOP
        AFTER

KIND().run()
"""
STEPS = """
class KIND:
    def __init__(self):
        SETUP

    def one(self, TARGET):
        BODY

    def run(self):
        for TARGET in ITER:
            self.one(TARGET)
        AFTER

trainer = KIND()
trainer.run()
"""
CALLED = """
class KIND:
    def __init__(self):
        SETUP

    def __call__(self, TARGET):
        BODY

    def source(self):
        return ITER

trainer = KIND()
for TARGET in trainer.source():
    trainer(TARGET)
"""
TEMPLATE = """
class BASE(abc.ABC):
    def run(self):
        self.prepare()
        for TARGET in self.source():
            self.before(TARGET)
            self.one(TARGET)

    def before(self, TARGET):
        pass

    @abc.abstractmethod
    def prepare(self):
        ...

    @abc.abstractmethod
    def source(self):
        ...

    @abc.abstractmethod
    def one(self, TARGET):
        raise NotImplementedError

class KIND(BASE):
    def prepare(self):
        SETUP

    def source(self):
        return ITER

    def one(self, TARGET):
        BODY

KIND().run()
"""
SUPER = """
class BASE:
    def __init__(self):
        SETUP

    def one(self, TARGET):
        BODY

class KIND(BASE):
    def __init__(self):
        super().__init__()
        self.rounds = 0

    def one(self, TARGET):
        self.rounds += 1
        return super().one(TARGET)

    def run(self):
        for TARGET in ITER:
            self.one(TARGET)

KIND().run()
"""
MIXIN = """
class BASE:
    def one(self, TARGET):
        BODY

class BASE_SET:
    def __init__(self):
        SETUP

class KIND(BASE, BASE_SET):
    def run(self):
        for TARGET in ITER:
            self.one(TARGET)

KIND().run()
"""
ENTERED = """
class KIND:
    def __enter__(self):
        SETUP
        return self

    def __exit__(self, *_):
        return False

    def one(self, TARGET):
        BODY

    def source(self):
        return ITER

with KIND() as trainer:
    for TARGET in trainer.source():
        trainer.one(TARGET)
"""
YIELDS = """
class KIND:
    def __init__(self):
        SETUP

    def __iter__(self):
        for TARGET in ITER:
            BODY
            yield TARGET

for round in KIND():
    print(round)
"""
CALLBACKS = """
class BASE:
    def __init__(self, trainer):
        self.trainer = trainer

    def on_batch(self, batch):
        self.trainer.one(batch)

class KIND:
    def __init__(self):
        SETUP
        self.callbacks = [BASE(self)]

    def one(self, TARGET):
        BODY

    def run(self):
        for TARGET in ITER:
            for callback in self.callbacks:
                callback.on_batch(TARGET)

KIND().run()
"""
LAZY = """
class KIND:
    def __init__(self):
        self.ready = False

    def setup(self):
        if self.ready:
            return
        SETUP
        self.ready = True

    def fit(self):
        self.setup()
        for TARGET in ITER:
            self.one(TARGET)

    def one(self, TARGET):
        BODY

def main():
    trainer = KIND()
    trainer.fit()

main()
"""
ENCLOSING: dict[str, Callable[[Sketch], None]] = {
    "enclose: main": _in_main,
    "enclose: main, guarded": _in_main_guarded,
    "enclose: function with parameters": _parameters,
    "enclose: class": _in_a_class(CLASS, whole=True),
    "enclose: class with a step": _in_a_class(STEPS),
    "enclose: __call__": _in_a_class(CALLED),
    "enclose: template method": _in_a_class(TEMPLATE, needs="import abc"),
    "enclose: super": _in_a_class(SUPER),
    "enclose: mixin": _in_a_class(MIXIN),
    "enclose: __enter__": _in_a_class(ENTERED),
    "enclose: __iter__": _in_a_class(YIELDS),
    "enclose: callbacks": _in_a_class(CALLBACKS),
    "enclose: set up later": _in_a_class(LAZY),
}
