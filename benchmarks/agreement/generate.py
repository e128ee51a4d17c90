"""A seed in, a small training program out: a right one, changed a little in random places.

The surroundings give it `loader`, a list of batches, and `args`, with the flags `flag`
and `other`. The same seed gives the same program.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.accuracy import generate_loops
from benchmarks.agreement.idioms import HELPERS, Idioms
from benchmarks.agreement.themes import THEMES, Draft
from benchmarks.agreement.tree import Block, Line, Node, places, render, tags

HEADER = ["import torch", "import torch.nn as nn", "", ""]
FLAGS = ["args.flag", "args.flag", "not args.flag", "args.other"]
MOVING = [
    "(i + 1) % 2 == 0",
    "(i + 1) % 3 == 0",
    "i % 2 == 0",
    "i > 0",
    "x.sum() > 0",
    "x.sum() > 0",
    "ready",
]
UNCALLED = ("zero_grad()", "step()", "backward()")


@dataclass(frozen=True, slots=True)
class Program:
    """One generated program."""

    seed: int
    text: str
    theme: str
    idioms: frozenset[str]
    changes: tuple[str, ...] = ()


def generate(seed: int) -> Program:
    """Return the program of this seed."""
    chance = random.Random(seed)
    if chance.random() < 0.12:
        text = generate_loops.generate(seed).replace("'cuda'", "'cpu', init_scale=8.0")
        return Program(seed, text, "exhaustive", frozenset())
    make = chance.choices(list(THEMES), list(THEMES.values()))[0]
    shape = chance.choices(
        ["script", "function", "parameters", "per batch", "class", "nested"], [8, 3, 3, 3, 4, 2]
    )[0]
    own = "self." if shape == "class" else ""
    draft = Draft(chance, Idioms(chance), make.__name__, own)
    make(draft)
    changes = [_change(draft) for _ in range(chance.choices([0, 1, 2, 3], [3, 6, 3, 1])[0])]
    nodes = _SHAPES[shape](draft)
    helpers: list[str] = []
    for name in draft.write.needs:
        helpers += [*HELPERS[name], "", ""]
    text = "\n".join([*HEADER, *helpers, *render(nodes)]) + "\n"
    idioms = {*tags(nodes), f"shape: {shape}", *(f"change: {each}" for each in changes if each)}
    return Program(seed, text, make.__name__, frozenset(idioms), tuple(filter(None, changes)))


# Changes: what people get wrong, and what only looks wrong.


def _change(draft: Draft) -> str:
    chance = draft.random
    spots = [
        (held, at)
        for held, at in places(draft.body)
        if held[at].tag and not held[at].tag.startswith("guard")
    ]
    if not spots:
        return ""
    held, at = chance.choice(spots)
    node = held[at]
    kind = chance.choices(
        [
            "delete",
            "double",
            "swap",
            "guard",
            "hoist",
            "insert",
            "skip",
            "wrong",
            "uncalled",
            "sink",
        ],
        [6, 2, 3, 5, 3, 3, 2, 2, 1, 1],
    )[0]
    if kind == "delete":
        del held[at]
    elif kind == "double":
        held.insert(chance.randrange(len(held) + 1), node)
    elif kind == "swap":
        other_list, other = chance.choice(spots)
        held[at], other_list[other] = other_list[other], node
    elif kind == "guard":
        block = Block(f"if {_condition(draft)}:", [node], "guard: condition")
        held[at] = block
        if chance.random() < 0.2:
            held.insert(at + 1, Block("else:", [_event(draft)], "guard: else"))
    elif kind == "hoist":
        if not node.tag.startswith("clear"):
            return ""
        del held[at]
        draft.before.append(node)
        draft.epochs = draft.epochs or chance.random() < 0.5
    elif kind == "sink":
        if not node.tag.startswith(("clear: optimizer", "step: optimizer", "scaler")):
            return ""
        del held[at]
        draft.after_epoch.append(node)
        draft.epochs = True
    elif kind == "insert":
        held.insert(at, _event(draft))
    elif kind == "skip":
        word = chance.choices(["continue", "break"], [9, 1])[0]
        held.insert(at, Block(f"if {_condition(draft)}:", [Line(word)], f"flow: {word}"))
    elif kind == "wrong":
        if len(draft.pairs) < 2 or not isinstance(node, Line):
            return ""
        right, wrong = chance.sample(draft.pairs, 2)
        text = node.text.replace(f"{right.opt}.", f"{wrong.opt}.")
        text = text.replace(f"({right.opt})", f"({wrong.opt})")
        if text == node.text:
            return ""
        held[at] = Line(text, node.tag)
    elif kind == "uncalled":
        if not isinstance(node, Line) or not node.text.endswith(UNCALLED):
            return ""
        held[at] = Line(node.text[:-2], "uncalled")
    return kind


def _condition(draft: Draft) -> str:
    return draft.random.choice(FLAGS + MOVING)


def _event(draft: Draft) -> Node:
    chance, write = draft.random, draft.write
    if not draft.pairs:
        return Line("torch.zeros(1)")
    pair = chance.choice(draft.pairs)
    kind = chance.choice(["clear", "clip", "step", "backward", "scaler"])
    if kind == "clear":
        return write.clear(pair)[0]
    if kind == "step":
        return write.step(pair, clip=0)[-1]
    if kind == "clip":
        return write.clip(pair.net)
    if kind == "scaler" and write.scaler:
        choices = [write.update(), Line(f"{write.scaler}.unscale_({pair.opt})", "scaler: unscale_")]
        return chance.choice(choices)
    return Line(f"{pair.net}(x).sum().backward()", "backward: chained")


# Shapes: where the loop stands.


def _loop(draft: Draft, body: list[Node]) -> list[Node]:
    text = "\n".join(render([*body, *draft.before]))
    start: list[Node] = [Line("count = 0")] if draft.counter else []
    inner = list(body)
    if "ready" in text:
        inner.insert(0, Line("ready = x.sum() > 0.5"))
    head = "for i, x in enumerate(loader):"
    if "i " not in text and "i)" not in text and draft.random.random() < 0.6:
        head = "for x in loader:"
    before = list(draft.before)
    for node in before:
        if "x.sum()" in "\n".join(render([node])):
            inner.insert(0, node)
            before = []
            break
    loop: list[Node] = [Block(head, inner)]
    if draft.epochs or draft.after_epoch:
        epoch: list[Node] = [*loop, *draft.after_epoch]
        outside: list[Node] = []
        if draft.random.random() < 0.6:
            epoch = [*before, *epoch]
        else:
            outside = before
        return [*start, *outside, Block("for epoch in range(4):", epoch, "loop: epochs")]
    return [*start, *before, *loop]


def _made(draft: Draft) -> list[Node]:
    return [Line(f"{draft.own}{name} = {value}") for name, value in draft.made]


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
    text = "\n".join(render(draft.body))
    if draft.counter or any(word in text for word in ("continue", "break", "ready", "i)", "i ")):
        return _function(draft)
    names = ", ".join(name for name, _ in draft.made)
    step = Block(f"def train_step({names}, x):", draft.body)
    call: list[Node] = [Line(f"train_step({names}, x)")]
    return [step, Line(""), Line(""), *_made(draft), *_loop(draft, call)]


def _class(draft: Draft) -> list[Node]:
    start = Block("def __init__(self):", _made(draft))
    text = "\n".join(render(draft.body))
    free = not draft.counter and not any(
        word in text for word in ("continue", "break", "ready", "i)", "i ")
    )
    if free and draft.random.random() < 0.5:
        batch = Block("def train_batch(self, x):", draft.body)
        run = Block("def train(self, loader):", _loop(draft, [Line("self.train_batch(x)")]))
        methods: list[Node] = [start, Line(""), batch, Line(""), run]
    else:
        methods = [
            start,
            Line(""),
            Block("def train(self, loader):", _loop(draft, draft.body)),
        ]
    return [Block("class Trainer:", methods), Line(""), Line(""), Line("Trainer().train(loader)")]


def _nested(draft: Draft) -> list[Node]:
    """A function in a function, over the names around it."""
    text = "\n".join(render(draft.body))
    if draft.counter or any(word in text for word in ("continue", "break", "ready", "i)", "i ")):
        return _function(draft)
    step = Block("def train_step(x):", draft.body)
    loop = _loop(draft, [Line("train_step(x)")])
    main = Block("def main():", [*_made(draft), Line(""), step, Line(""), *loop])
    return [main, Line(""), Line(""), Line("main()")]


_SHAPES = {
    "script": _script,
    "function": _function,
    "parameters": _parameters,
    "per batch": _per_batch,
    "class": _class,
    "nested": _nested,
}
