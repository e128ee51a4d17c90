"""Conditions and clears, written otherwise."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from benchmarks.accuracy.rewrites.binding import jumps, read, stored
from benchmarks.accuracy.rewrites.choosing import choose_site, has_event, simple
from benchmarks.accuracy.rewrites.sketch import (
    Block,
    Place,
    Sketch,
    Unfit,
    expression,
    fill,
    places,
)


def _conditions(sketch: Sketch) -> list[tuple[Place, int, ast.If]]:
    return [
        (place, at, each)
        for place in places(sketch)
        for at, each in enumerate(place.block)
        if isinstance(each, ast.If) and has_event(each)
    ]


def _tested(template: str, ahead: str = "", top: str = "") -> Callable[[Sketch], None]:
    """Make a rewrite of an `if` whose TEST decides over an event."""

    def apply(sketch: Sketch) -> None:
        found = _conditions(sketch)
        if not found:
            raise Unfit
        place, at, statement = sketch.random.choice(found)
        name = sketch.fresh("due")
        test = statement.test
        given = ", ".join(sorted(_plain_names(test)))
        statement.test = expression(template.replace("WORDS", given), TEST=test, NAME=name)
        if ahead:
            place.block[at:at] = fill(ahead.replace("WORDS", given), TEST=test, NAME=name)
        if top:
            sketch.on_top(fill(top.replace("WORDS", given), TEST=test, NAME=name))

    return apply


def _plain_names(test: ast.expr) -> set[str]:
    """Return the names that the test reads, if it does nothing but reckon with them."""
    allowed = (ast.BinOp, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Name, ast.Constant)
    more = (ast.operator, ast.cmpop, ast.boolop, ast.unaryop, ast.expr_context)
    if not all(isinstance(node, (*allowed, *more)) for node in ast.walk(test)):
        raise Unfit
    return read([test])


def _decided_early(sketch: Sketch) -> None:
    """The condition is computed at the top of the loop's body."""
    found = [each for each in _conditions(sketch) if each[0].loop is not None]
    if not found:
        raise Unfit
    place, _, statement = sketch.random.choice(found)
    loop = place.loop
    assert loop is not None
    if not isinstance(loop, ast.For) or _plain_names(statement.test) & stored(loop.body):
        raise Unfit
    name = sketch.fresh("due")
    loop.body[:0] = fill("NAME = TEST", NAME=name, TEST=statement.test)
    statement.test = ast.Name(name, ast.Load())


class _Modulo(ast.NodeTransformer):
    """Writes `(i + 1) % k == 0` in another way."""

    def __init__(self, template: str) -> None:
        self.template, self.done = template, False

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        left = node.left
        if (
            isinstance(left, ast.BinOp)
            and isinstance(left.op, ast.Mod)
            and isinstance(node.ops[0], ast.Eq)
            and ast.unparse(node.comparators[0]) == "0"
            and not self.done
        ):
            self.done = True
            return expression(self.template, LEFT=left.left, RIGHT=left.right)
        return node


def _counted(template: str) -> Callable[[Sketch], None]:
    def apply(sketch: Sketch) -> None:
        found = _conditions(sketch)
        sketch.random.shuffle(found)
        for _, _, statement in found:
            change = _Modulo(template)
            statement.test = change.visit(statement.test)
            if change.done:
                return
        raise Unfit

    return apply


def _cleared(template: str, needs: str = "") -> Callable[[Sketch], None]:
    """Make a rewrite of an optimizer's clear; HELD is the optimizer."""

    def apply(sketch: Sketch) -> None:
        site = choose_site(sketch, "zero_grad")
        if not simple(site) or not _is_optimizer(sketch, site.receiver):
            raise Unfit
        if needs:
            sketch.need(needs)
        names = {n: sketch.fresh(n.lower()) for n in ("GROUP", "P", "GRADS")}
        site.replace(fill(template, HELD=site.receiver, **names))

    return apply


def _is_optimizer(sketch: Sketch, receiver: ast.expr) -> bool:
    """Does it step, too?"""
    text = ast.unparse(receiver)
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("step", "param_groups")
        and ast.unparse(node.value) == text
        for node in ast.walk(sketch.tree)
    )


def _clear_moves_to_the_end(sketch: Sketch) -> None:
    """A clear at the top of a loop's body goes to its end."""
    site = choose_site(sketch, "zero_grad")
    loop = site.place.loop
    if loop is None or site.place.block is not loop.body or site.at != 0 or jumps(loop.body):
        raise Unfit
    if not isinstance(site.receiver, ast.Name) or site.receiver.id in stored([loop]):
        raise Unfit
    if not _is_clean(sketch, loop):
        raise Unfit
    loop.body.append(loop.body.pop(0))


def _is_clean(sketch: Sketch, loop: ast.stmt) -> bool:
    """Is this the only loop of the program with an event, and nothing happens outside it?"""
    inside = {id(node) for node in ast.walk(loop)}
    return not any(
        isinstance(node, ast.Attribute) and node.attr in ("backward", "grad")
        for node in ast.walk(sketch.tree)
        if id(node) not in inside
    )


def _clear_waits(sketch: Sketch) -> None:
    """A clear goes past neighbours that have nothing to do with gradients."""
    site = choose_site(sketch, "zero_grad")
    block, at = site.place.block, site.at
    end = at + 1
    while end < len(block) and _is_quiet(block[end]):
        end += 1
    if end == at + 1:
        raise Unfit
    if isinstance(site.receiver, ast.Name) and site.receiver.id in stored(block[at + 1 : end]):
        raise Unfit
    block[at:end] = [*block[at + 1 : end], block[at]]


def _is_quiet(statement: ast.stmt) -> bool:
    """Is this an assignment whose calls only compute, as far as their names tell?"""
    if not isinstance(statement, ast.Assign) or has_event(statement):
        return False
    calls = [node.func for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    names = [each.attr if isinstance(each, ast.Attribute) else ast.unparse(each) for each in calls]
    return not any(
        name.endswith("_") or "backward" in name or "step" in name or "train" in name
        for name in names
    )


def _clear_in_a_hook(sketch: Sketch) -> None:
    """A clear right after the step becomes a hook of the optimizer."""
    found: list[tuple[Block, int, str]] = []
    for place in places(sketch):
        for at, (one, two) in enumerate(zip(place.block, place.block[1:], strict=False)):
            first, second = ast.unparse(one), ast.unparse(two)
            name = first.removesuffix(".step()")
            if name != first and name.isidentifier() and second == f"{name}.zero_grad()":
                found.append((place.block, at + 1, name))
    if not found:
        raise Unfit
    block, at, name = sketch.random.choice(found)
    if ast.unparse(sketch.tree).count(f"{name}.step()") != 1:
        raise Unfit
    for place in places(sketch):
        for number, each in enumerate(place.block):
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == name:
                del block[at]
                hook = fill(f"{name}.register_step_post_hook(lambda it, *_: it.zero_grad())")
                place.block[number + 1 : number + 1] = hook
                return
    raise Unfit


def _skipped(test: str) -> Callable[[Sketch], None]:
    """Make a rewrite: rounds with nothing in them are skipped, at the top of the body."""

    def apply(sketch: Sketch) -> None:
        found = [
            place.loop
            for place in places(sketch)
            if isinstance(place.loop, ast.For)
            and place.block is place.loop.body
            and has_event(place.loop)
            and isinstance(place.loop.target, ast.Name)
        ]
        if not found:
            raise Unfit
        loop = sketch.random.choice(found)
        loop.body[:0] = fill(test, TARGET=copy.deepcopy(loop.target))

    return apply


def _wrapped_optimizer(template: str) -> Callable[[Sketch], None]:
    """Make a rewrite: the optimizer lives in an object of the program's own."""

    def apply(sketch: Sketch) -> None:
        site = choose_site(sketch, "step", "zero_grad")
        if not isinstance(site.receiver, ast.Name):
            raise Unfit
        name = site.receiver.id
        if not _only_plain(sketch, name):
            raise Unfit
        for place in places(sketch):
            for each in place.block:
                if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == name:
                    kind = sketch.fresh("Wrapped")
                    each.value = expression(f"{kind}(VALUE)", VALUE=each.value)
                    sketch.on_top(fill(template, KIND=kind))
                    return
        raise Unfit

    return apply


def _only_plain(sketch: Sketch, name: str) -> bool:
    """Is it only stepped and cleared, without arguments, in one scope?"""
    uses = [n for n in ast.walk(sketch.tree) if isinstance(n, ast.Name) and n.id == name]
    text = ast.unparse(sketch.tree)
    plain = text.count(f"{name}.step()") + text.count(f"{name}.zero_grad()")
    return len(uses) == plain + 1


WRAPPED = """
class KIND:
    def __init__(self, inner):
        self.inner = inner

    def zero_grad(self):
        self.inner.zero_grad()

    def step(self):
        self.inner.step()
"""
DELEGATED = """
class KIND:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)
"""
SAID = "NAME = lambda WORDS: TEST"
DECIDING: dict[str, Callable[[Sketch], None]] = {
    "test: variable": _tested("NAME", ahead="NAME = TEST"),
    "test: early": _decided_early,
    "test: bool": _tested("bool(TEST)"),
    "test: not not": _tested("not not TEST"),
    "test: and True": _tested("True and TEST"),
    "test: or False": _tested("TEST or False"),
    "test: ternary": _tested("True if TEST else False"),
    "test: walrus": _tested("(NAME := TEST)"),
    "test: function": _tested("NAME(WORDS)", top="def NAME(WORDS):\n    return TEST"),
    "test: lambda": _tested("NAME(WORDS)", ahead=SAID),
    "test: method": _tested(
        "NAME().due(WORDS)",
        top="class NAME:\n    @staticmethod\n    def due(WORDS):\n        return TEST",
    ),
    "window: not": _counted("not LEFT % RIGHT"),
    "window: divmod": _counted("divmod(LEFT, RIGHT)[1] == 0"),
    "window: other side": _counted("0 == LEFT % RIGHT"),
    "window: minus one": _counted("(LEFT - 1) % RIGHT == RIGHT - 1"),
    "window: floor": _counted("LEFT // RIGHT * RIGHT == LEFT"),
    "window: less than one": _counted("LEFT % RIGHT < 1"),
    "window: in": _counted("LEFT % RIGHT in (0,)"),
    "clear: set_to_none": _cleared("HELD.zero_grad(set_to_none=True)"),
    "clear: to zero": _cleared("HELD.zero_grad(set_to_none=False)"),
    "clear: groups": _cleared(
        'for GROUP in HELD.param_groups:\n    for P in GROUP["params"]:\n        P.grad = None'
    ),
    "clear: zero_ in groups": _cleared(
        'for GROUP in HELD.param_groups:\n    for P in GROUP["params"]:\n'
        "        if P.grad is not None:\n            P.grad.zero_()"
    ),
    "clear: detach_ and zero_": _cleared(
        'for GROUP in HELD.param_groups:\n    for P in GROUP["params"]:\n'
        "        if P.grad is not None:\n            P.grad.detach_()\n            P.grad.zero_()"
    ),
    "clear: data.zero_": _cleared(
        'for GROUP in HELD.param_groups:\n    for P in GROUP["params"]:\n'
        "        if P.grad is not None:\n            P.grad.data.zero_()"
    ),
    "clear: foreach": _cleared(
        'GRADS = [P.grad for GROUP in HELD.param_groups for P in GROUP["params"] '
        "if P.grad is not None]\nif GRADS:\n    torch._foreach_zero_(GRADS)",
        "import torch",
    ),
    "clear: first group": _cleared('for P in HELD.param_groups[0]["params"]:\n    P.grad = None'),
    "clear: at the end": _clear_moves_to_the_end,
    "clear: later": _clear_waits,
    "clear: hook": _clear_in_a_hook,
    "skip: None": _skipped("if TARGET is None:\n    continue"),
    "skip: not None": _skipped("if not (TARGET is not None):\n    print('skip')\n    continue"),
    "skip: assert": _skipped("assert TARGET is not None"),
    "skip: break": _skipped("if TARGET is None:\n    break"),
    "optimizer: wrapper": _wrapped_optimizer(WRAPPED),
    "optimizer: delegate": _wrapped_optimizer(DELEGATED),
}
