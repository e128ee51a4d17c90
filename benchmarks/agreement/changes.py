"""Changes to a right program: what people get wrong, and what only looks wrong."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.agreement.draft import Draft
from benchmarks.agreement.tree import Block, Line, Node, places
from zerograd.rules import ALL_RULES

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
Place = tuple[list[Node], int]  # a list of statements, and which of them


def change(draft: Draft) -> str:
    """Change one thing; return the name of the change, or nothing if it did not fit."""
    spots = [
        (held, at)
        for held, at in places(draft.body)
        if held[at].tag and not held[at].tag.startswith(("guard", "beside"))
    ]
    if not spots:
        return ""
    acts = list(_CHANGES)
    act = draft.random.choices(acts, list(_CHANGES.values()))[0]
    return act.__name__.strip("_") if act(draft, spots) else ""


def _pick(draft: Draft, spots: list[Place], *tags: str) -> Place | None:
    """Return one place; with tags, one of these kinds."""
    fitting = [each for each in spots if not tags or each[0][each[1]].tag.startswith(tags)]
    return draft.random.choice(fitting) if fitting else None


def _delete(draft: Draft, spots: list[Place]) -> bool:
    held, at = draft.random.choice(spots)
    del held[at]
    return True


def _double(draft: Draft, spots: list[Place]) -> bool:
    held, at = draft.random.choice(spots)
    held.insert(draft.random.randrange(len(held) + 1), held[at])
    return True


def _swap(draft: Draft, spots: list[Place]) -> bool:
    (held, at), (other, there) = draft.random.choice(spots), draft.random.choice(spots)
    one, two = held[at], other[there]
    if one is not two and (_is_inside(one, two) or _is_inside(two, one)):
        return False  # a block cannot stand in itself
    held[at], other[there] = two, one
    return True


def _is_inside(node: Node, block: Node) -> bool:
    return any(inner[at] is node for inner, at in places([block]))


def _guard(draft: Draft, spots: list[Place]) -> bool:
    held, at = draft.random.choice(spots)
    guarded = Block(f"if {_condition(draft)}:", [held[at]], "guard: condition")
    if draft.chance(0.2):
        guarded.more = [Block("else:", [_event(draft)], "guard: else")]
    held[at] = guarded
    return True


def _hoist(draft: Draft, spots: list[Place]) -> bool:
    place = _pick(draft, spots, "clear")
    if place is None:
        return False
    held, at = place
    draft.before.append(held.pop(at))
    draft.epochs = draft.epochs or draft.chance(0.5)
    return True


def _sink(draft: Draft, spots: list[Place]) -> bool:
    place = _pick(draft, spots, "clear: optimizer", "step: optimizer", "scaler")
    if place is None:
        return False
    held, at = place
    draft.after_epoch.append(held.pop(at))
    draft.epochs = True
    return True


def _insert(draft: Draft, spots: list[Place]) -> bool:
    held, at = draft.random.choice(spots)
    held.insert(at, _event(draft))
    return True


def _skip(draft: Draft, spots: list[Place]) -> bool:
    held, at = draft.random.choice(spots)
    word = draft.random.choices(["continue", "break"], [6, 3])[0]
    held.insert(at, Block(f"if {_condition(draft)}:", [Line(word)], f"flow: {word}"))
    return True


def _attempt(draft: Draft, spots: list[Place]) -> bool:
    """Put statements under a `try`, whose body may raise."""
    held, at = draft.random.choice(spots)
    end = draft.random.randrange(at + 1, len(held) + 1)
    body = held[at:end]
    kind = draft.random.choice(["except", "except and raise", "finally"])
    if kind == "finally":
        rest, tag = Block("finally:", [_event(draft)]), "flow: finally"
    else:
        if kind == "except and raise":
            place = draft.random.randrange(len(body) + 1)
            raising = Block(f"if {_condition(draft)}:", [Line('raise ValueError("bad batch")')])
            body = [*body[:place], raising, *body[place:]]
        handler: Node = _event(draft) if draft.chance(0.5) else Line("pass")
        rest, tag = Block("except ValueError:", [handler]), "flow: try"
    held[at:end] = [Block("try:", body, tag, more=[rest])]
    return True


def _wrong(draft: Draft, spots: list[Place]) -> bool:
    """Use the wrong one of two optimizers."""
    if len(draft.pairs) < 2:
        return False
    right, wrong = draft.random.sample(draft.pairs, 2)
    named = (f"{right.opt}.", f"({right.opt})")
    fitting = [each for each in _lines(spots) if any(name in each[2].text for name in named)]
    if not fitting:
        return False
    held, at, line = draft.random.choice(fitting)
    text = line.text.replace(f"{right.opt}.", f"{wrong.opt}.")
    held[at] = Line(text.replace(f"({right.opt})", f"({wrong.opt})"), line.tag)
    return True


def _clear_again(draft: Draft, spots: list[Place]) -> bool:
    """Clear once more, by hand and unasked: what was set to None is not there."""
    place = _pick(draft, spots, "clear")
    if place is None or not draft.pairs:
        return False
    held, at = place
    pair = draft.random.choice(draft.pairs)
    held.insert(at + 1, draft.write.clear_as("unguarded zero_()", pair))
    return True


def _uncalled(draft: Draft, spots: list[Place]) -> bool:
    fitting = [each for each in _lines(spots) if each[2].text.endswith(UNCALLED)]
    if not fitting:
        return False
    held, at, line = draft.random.choice(fitting)
    held[at] = Line(line.text[:-2], "uncalled")
    return True


def _allow(draft: Draft, spots: list[Place]) -> bool:
    """Allow a rule at one line, whether it is broken there or not."""
    fitting = [each for each in _lines(spots) if "#" not in each[2].text]
    if not fitting:
        return False
    held, at, line = draft.random.choice(fitting)
    name = draft.random.choice(ALL_RULES).name
    held[at] = Line(f"{line.text}  # zerograd: allow[{name}] as it should be", line.tag)
    return True


def _lines(spots: list[Place]) -> list[tuple[list[Node], int, Line]]:
    """Return the places that hold a simple statement, with it."""
    return [(held, at, node) for held, at in spots if isinstance(node := held[at], Line)]


def _only_filled(draft: Draft, spots: list[Place]) -> bool:
    """Drop every step of one optimizer."""
    # A block that stands twice in the program is one list, and its steps go once.
    steps = {(id(held), at): held for held, at in spots if held[at].tag.startswith("step")}
    for (_, at), held in reversed(steps.items()):
        del held[at]
    return bool(steps)


_CHANGES: dict[Callable[[Draft, list[Place]], bool], float] = {
    _delete: 6,
    _double: 2,
    _swap: 3,
    _guard: 5,
    _hoist: 3,
    _sink: 2,
    _insert: 3,
    _skip: 3,
    _attempt: 4,
    _wrong: 7,
    _clear_again: 2,
    _uncalled: 2,
    _allow: 2,
    _only_filled: 1.3,
}


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
