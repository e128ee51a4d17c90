"""More kinds of right programs: penalties, frozen parts, guards, losses that are summed up."""

from __future__ import annotations

from benchmarks.agreement.draft import Draft
from benchmarks.agreement.idioms import Pair
from benchmarks.agreement.themes import in_some_order
from benchmarks.agreement.tree import Block, Line, Node


def penalty(draft: Draft) -> None:
    """A loss on the gradient itself, as WGAN-GP has."""
    pair = draft.pair("net", "opt")
    write = draft.write
    made: list[Node] = [
        Line("mixed = x.clone().requires_grad_(True)"),
        Line(f"score = {pair.net}(mixed).pow(2).sum()"),
        Line("slope = torch.autograd.grad(score, mixed, create_graph=True)[0]", "grad: penalty"),
    ]
    loss = f"{pair.net}(x).mean() + ((slope.norm(dim=1) - 1) ** 2).mean()"
    fill: list[Node] = [Line(f"loss = {loss}"), Line("loss.backward()", "backward: loss")]
    clear, step = write.clear(pair), write.step(pair)
    if draft.chance(0.5):
        draft.body += [*clear, *made, *fill, *step]
    else:
        draft.body += [*made, *fill, *step, *clear]


def guarded(draft: Draft) -> None:
    """A batch whose loss is not finite is left out."""
    pair = draft.pair("net", "opt")
    write = draft.write
    clear, step = write.clear(pair), write.step(pair)
    bad: list[Node] = [*(write.clear(pair) if draft.chance(0.5) else []), Line("continue")]
    skip = Block("if not torch.isfinite(loss):", bad, "guard: not finite")
    loss = Line(f"loss = {pair.net}(x).sum()")
    fill = Line("loss.backward()", "backward: loss")
    if draft.chance(0.6):
        order: list[Node] = [loss, skip, *clear, fill, *step]
    else:
        order = [loss, fill, skip, *step, *clear]
    draft.body += order
    draft.epochs = draft.chance(0.3)


def frozen(draft: Draft) -> None:
    """A discriminator that is frozen while the generator learns."""
    g, d = draft.pair("gen", "opt_g"), draft.pair("disc", "opt_d")
    write = draft.write

    def freeze(truth: bool) -> Node:
        if draft.chance(0.5):
            return Line(f"{d.net}.requires_grad_({truth})", "frozen: requires_grad_")
        inner = Line(f"p.requires_grad = {truth}")
        head = f"for p in {d.net}.parameters():"
        return Block(head, [inner], "frozen: requires_grad", whole=True)

    fake = f"{d.net}({g.net}(x).detach()).sum()"
    first = [*write.clear(d), *write.backward(f"{d.net}(x).sum() - {fake}"), *write.step(d)]
    second = [*write.clear(g), *write.backward(f"{d.net}({g.net}(x)).sum()"), *write.step(g)]
    draft.body += [freeze(True), *first, freeze(False), *second]


def summed(draft: Draft) -> None:
    """Several losses, added up and sent backward once."""
    pair = draft.pair("net", "opt")
    if draft.chance(0.5):
        made: list[Node] = [
            Line("total = 0"),
            Block(
                "for part in range(3):",
                [Line(f"total = total + {pair.net}(x).sum()")],
                "loss: summed in a loop",
            ),
        ]
    else:
        losses = f"[{pair.net}(x).sum(), ({pair.net}(x) ** 2).mean()]"
        made = [Line(f"losses = {losses}"), Line("total = sum(losses)", "loss: summed from a list")]
    fill: list[Node] = [*made, Line("total.backward()", "backward: loss")]
    in_some_order(draft, draft.write.clear(pair), fill, draft.write.step(pair))


def held(draft: Draft) -> None:
    """Two networks in one optimizer, or two optimizers in a dict."""
    first, second = draft.network("net"), draft.network("other")
    write = draft.write
    loss = f"{second}({first}(x)).sum()"
    if draft.chance(0.5):
        kinds = [
            f"[{{'params': {first}.parameters()}}, {{'params': {second}.parameters()}}]",
            f"itertools.chain({first}.parameters(), {second}.parameters())",
            f"nn.ModuleList([{first}, {second}]).parameters()",
        ]
        parameters = draft.random.choice(kinds)
        if "itertools" in parameters:
            draft.imports["import itertools"] = None
        pair = Pair(first, draft.optimizer("opt", parameters))
        draft.pairs.append(pair)
        clear: list[Node] = [Line(f"{pair.opt}.zero_grad()", "clear: optimizer")]
        step: list[Node] = [Line(f"{pair.opt}.step()", "step: of several networks")]
        in_some_order(draft, clear, write.backward(loss), step)
        return
    one = Pair(first, draft.optimizer("opt", f"{first}.parameters()"))
    two = Pair(second, draft.optimizer("opt2", f"{second}.parameters()"))
    draft.made.append(("opts", f'{{"one": {one.opt}, "two": {two.opt}}}'))
    opts = f"{draft.own}opts"
    named = [Pair(pair.net, f'{opts}["{name}"]') for pair, name in ((one, "one"), (two, "two"))]
    draft.pairs += named
    clears: list[Node] = [Line(f"{pair.opt}.zero_grad()", "clear: of a dict") for pair in named]
    steps: list[Node] = [Line(f"{pair.opt}.step()", "step: of a dict") for pair in named]
    if draft.chance(0.4):
        clears = [
            Block(
                f"for o in {opts}.values():",
                [Line("o.zero_grad()")],
                "clear: of a dict",
                whole=True,
            )
        ]
    in_some_order(draft, clears, write.backward(loss), steps)


def alternating(draft: Draft) -> None:
    """Two networks that take turns, or one that is updated more seldom than the other."""
    first, second = draft.pair("net", "opt"), draft.pair("other", "opt2")
    write = draft.write

    def update(pair: Pair) -> list[Node]:
        return [*write.clear(pair), *write.backward(f"{pair.net}(x).sum()"), *write.step(pair)]

    turn = draft.random.choice(["i % 2 == 0", "(i + 1) % 3 == 0", "args.flag"])
    turns = Block(f"if {turn}:", update(first), "guard: turns")
    if draft.chance(0.5):
        turns.more = [Block("else:", update(second), "guard: turns")]
        draft.body.append(turns)
    else:
        draft.body += [*update(second), turns]
