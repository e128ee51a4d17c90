"""Where the loop stands: in a script, in functions, in a class; and what kind of loop it is."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.agreement.draft import Draft
from benchmarks.agreement.tree import Block, Line, Node, render

# A body with these stays in its loop.
_OF_THE_LOOP = ("continue", "break", "ready", "i)", "i ", "left", "done", "\nupdate()")


def _loop(draft: Draft, body: list[Node]) -> list[Node]:
    text = "\n".join(render([*body, *draft.before]))
    start: list[Node] = [Line("count = 0")] if draft.counter else []
    inner = list(body)
    if "ready" in text:
        inner.insert(0, Line("ready = x.sum() > 0.5"))
    before = list(draft.before)
    for node in before:
        if "x.sum()" in "\n".join(render([node])):
            inner.insert(0, node)
            before = []
            break
    counts = "i " in text or "i)" in text
    loop = _rounds(draft, inner, counts=counts)
    if draft.epochs or draft.after_epoch:
        epoch: list[Node] = [*loop, *draft.after_epoch]
        outside: list[Node] = []
        if draft.chance(0.6):
            epoch = [*before, *epoch]
        else:
            outside = before
        return [*start, *outside, Block("for epoch in range(5):", epoch, "loop: epochs")]
    return [*start, *before, *loop]


def _rounds(draft: Draft, inner: list[Node], *, counts: bool) -> list[Node]:
    head: list[Node]
    kind = draft.random.choices(["for", "while", "endless", "iterator"], [20, 2, 2, 1.5])[0]
    if kind == "iterator":
        head = [Line("x = next(batches)")]
        loop = Block("for i in range(len(loader)):", [*head, *inner], "loop: iterator")
        return [Line("batches = iter(loader)"), loop]
    if kind == "while":
        head = [Line("x = loader[at]"), Line("i = at"), Line("at += 1")]
        return [Line("at = 0"), Block("while at < len(loader):", [*head, *inner], "loop: while")]
    if kind == "endless" and not counts:
        stop = Block("if x is None:", [Line("break")])
        head = [Line("x = next(batches, None)"), stop]
        return [
            Line("batches = iter(loader)"),
            Block("while True:", [*head, *inner], "loop: while True"),
        ]
    if not counts and draft.chance(0.6):
        return [Block("for x in loader:", inner)]
    return [Block("for i, x in enumerate(loader):", inner)]


def _made(draft: Draft) -> list[Node]:
    return [Line(f"{draft.own}{name} = {value}") for name, value in draft.made]


def _is_free(draft: Draft) -> bool:
    """Could the body stand in a function of its own?"""
    text = "\n".join(render(draft.body))
    return not draft.counter and not any(word in text for word in _OF_THE_LOOP)


def _script(draft: Draft) -> list[Node]:
    return [*_made(draft), *_loop(draft, draft.body)]


def _function(draft: Draft) -> list[Node]:
    main = Block("def main():", [*_made(draft), *_loop(draft, draft.body)])
    return [main, Line(""), Line(""), Line("main()")]


def _parameters(draft: Draft) -> list[Node]:
    names = ", ".join(name for name, _ in draft.made)
    train = Block(f"def train({names}, loader):", _loop(draft, draft.body))
    return [train, Line(""), Line(""), *_made(draft), Line(f"train({names}, loader)")]


def _per_batch(draft: Draft) -> list[Node]:
    if not _is_free(draft):
        return _function(draft)
    names = ", ".join(name for name, _ in draft.made)
    step = Block(f"def train_step({names}, x):", draft.body)
    call: list[Node] = [Line(f"train_step({names}, x)")]
    return [step, Line(""), Line(""), *_made(draft), *_loop(draft, call)]


def _class(draft: Draft) -> list[Node]:
    methods: list[Node] = [Block("def __init__(self):", _made(draft)), Line("")]
    if _is_free(draft) and draft.chance(0.5):
        batch = Block("def train_batch(self, x):", draft.body)
        run = Block("def train(self, loader):", _loop(draft, [Line("self.train_batch(x)")]))
        methods += [batch, Line(""), run]
    else:
        methods.append(Block("def train(self, loader):", _loop(draft, draft.body)))
    return [Block("class Trainer:", methods), Line(""), Line(""), Line("Trainer().train(loader)")]


def _driven(draft: Draft) -> list[Node]:
    """A class that does one batch, and a loop outside that calls it."""
    if not _is_free(draft):
        return _class(draft)
    methods: list[Node] = [Block("def __init__(self):", _made(draft)), Line("")]
    before = [*draft.before, *draft.after_epoch]
    if any("self." in line for line in render(before)):
        return _class(draft)
    name = draft.random.choice(["train_batch", "__call__"])
    methods.append(Block(f"def {name}(self, x):", draft.body))
    call = Line("trainer(x)" if name == "__call__" else "trainer.train_batch(x)")
    made = Line("trainer = Trainer()")
    return [Block("class Trainer:", methods), Line(""), Line(""), made, *_loop(draft, [call])]


def _nested(draft: Draft) -> list[Node]:
    """A function in a function, over the names around it."""
    if not _is_free(draft):
        return _function(draft)
    step = Block("def train_step(x):", draft.body)
    loop = _loop(draft, [Line("train_step(x)")])
    main = Block("def main():", [*_made(draft), Line(""), step, Line(""), *loop])
    return [main, Line(""), Line(""), Line("main()")]


SHAPES: dict[str, tuple[Callable[[Draft], list[Node]], float]] = {
    "script": (_script, 8),
    "function": (_function, 3),
    "parameters": (_parameters, 3),
    "per batch": (_per_batch, 3),
    "class": (_class, 4),
    "driven": (_driven, 3),
    "nested": (_nested, 2),
}
