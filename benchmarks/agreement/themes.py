"""Right programs of many kinds; the faults come later, by small changes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.agreement.idioms import Idioms, Pair
from benchmarks.agreement.tree import Block, Line, Node


@dataclass(slots=True)
class Draft:
    """A program in parts: what it makes, and the loop body that trains."""

    random: random.Random
    write: Idioms
    theme: str
    own: str = ""  # "self." in a class
    made: list[tuple[str, str]] = field(default_factory=list)  # names and constructors, in order
    before: list[Node] = field(default_factory=list)  # ahead of the loop
    body: list[Node] = field(default_factory=list)
    after_epoch: list[Node] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    epochs: bool = False
    counter: bool = False  # the loop counts in a variable of its own

    def network(self, name: str, sizes: str = "4, 4") -> str:
        self.made.append((name, f"nn.Linear({sizes})"))
        return self.own + name

    def optimizer(self, name: str, parameters: str) -> str:
        kind = self.random.choice(["SGD", "SGD", "Adam", "AdamW"])
        self.made.append((name, f"torch.optim.{kind}({parameters}, lr=0.01)"))
        return self.own + name

    def pair(self, net: str, opt: str) -> Pair:
        made = Pair(self.network(net), "")
        made.opt = self.optimizer(opt, f"{made.net}.parameters()")
        self.pairs.append(made)
        return made

    def scaler(self) -> None:
        self.made.append(("scaler", 'torch.amp.GradScaler("cpu", init_scale=8.0)'))
        self.write.scaler = self.own + "scaler"

    def chance(self, p: float) -> bool:
        return self.random.random() < p


def plain(draft: Draft) -> None:
    """One network, one optimizer."""
    pair = draft.pair("net", "opt")
    _usual(draft, pair, f"{pair.net}(x).sum()")
    draft.epochs = draft.chance(0.4)


def two(draft: Draft) -> None:
    """Two networks, each with its own optimizer and loss."""
    first, second = draft.pair("net", "opt"), draft.pair("other", "opt2")
    _usual(draft, first, f"{first.net}(x).sum()")
    _usual(draft, second, f"{second.net}(x).sum()")


def one_loss(draft: Draft) -> None:
    """One loss, two optimizers."""
    first, second = draft.pair("net", "opt"), draft.pair("other", "opt2")
    clears = [*draft.write.clear(first), *draft.write.clear(second)]
    fill = draft.write.backward(f"{second.net}({first.net}(x)).sum()")
    steps = [*draft.write.step(first), *draft.write.step(second)]
    if draft.chance(0.3):
        names = f"{first.opt}, {second.opt}"
        steps = [Block(f"for o in ({names}):", [Line("o.step()")], "step: over a list", whole=True)]
    if draft.chance(0.3):
        names = f"{first.opt}, {second.opt}"
        clears = [
            Block(f"for o in [{names}]:", [Line("o.zero_grad()")], "clear: over a list", whole=True)
        ]
    draft.body += [*clears, *fill, *steps] if draft.chance(0.6) else [*fill, *steps, *clears]


def gan(draft: Draft) -> None:
    """A generator and a discriminator; the generator's loss runs through both."""
    g, d = draft.pair("gen", "opt_g"), draft.pair("disc", "opt_d")
    real = draft.write.backward(f"{d.net}(x).sum()")
    detached = draft.chance(0.8)
    fake = f"{d.net}({g.net}(x).detach()).sum()" if detached else f"{d.net}({g.net}(x)).sum()"
    d_part: list[Node] = [*draft.write.clear(d), *real]
    if draft.chance(0.6):
        d_part += draft.write.backward(f"-{fake}" if draft.chance(0.3) else fake)
    d_part += draft.write.step(d)
    g_loss = f"{d.net}({g.net}(x)).sum()"
    g_part = [*draft.write.clear(g), *draft.write.backward(g_loss), *draft.write.step(g)]
    if draft.chance(0.2):
        d_part = [Block("for part in range(3):", d_part, "loop: critic")]
        draft.body += [*d_part, *g_part]
        return
    if draft.chance(0.3):  # both cleared at the top, as one optimizer would be
        tops = [*draft.write.clear(g), *draft.write.clear(d)]
        draft.body += [*tops, *g_part[1:], *d_part[1:]]
        return
    draft.body += [*d_part, *g_part] if draft.chance(0.6) else [*g_part, *d_part]


def shared(draft: Draft) -> None:
    """An encoder below two heads."""
    enc, one, two_ = (draft.network(name) for name in ("enc", "head", "head2"))
    if draft.chance(0.4):
        held = f"[*{enc}.parameters(), *{one}.parameters(), *{two_}.parameters()]"
        pair = Pair(enc, draft.optimizer("opt", held))
        draft.pairs.append(pair)
        losses = [f"{one}({enc}(x)).sum()", f"{two_}({enc}(x)).sum()"]
        fill = [node for loss in losses for node in draft.write.backward(loss)]
        clear: list[Node] = [Line(f"{pair.opt}.zero_grad()", "clear: optimizer")]
        _in_some_order(draft, clear, fill, draft.write.step(pair))
        return
    first = Pair(
        one, draft.optimizer("opt", f"list({enc}.parameters()) + list({one}.parameters())")
    )
    second = Pair(two_, draft.optimizer("opt2", f"{two_}.parameters()"))
    draft.pairs += [first, second]
    for pair in (first, second):
        clear = [Line(f"{pair.opt}.zero_grad()", "clear: optimizer")]
        fill = draft.write.backward(f"{pair.net}({enc}(x)).sum()")
        draft.body += [*clear, *fill, *draft.write.step(pair)]


def amp(draft: Draft) -> None:
    """A loss scaler, one optimizer or two."""
    draft.scaler()
    pair = draft.pair("net", "opt")
    _usual(draft, pair, f"{pair.net}(x).sum()")
    if draft.chance(0.3):
        other = draft.pair("other", "opt2")
        if draft.chance(0.3):
            draft.body.append(draft.write.update())
        _usual(draft, other, f"{other.net}(x).sum()")
    if draft.chance(0.12):  # one line too high
        draft.body.insert(-1, draft.write.update())
    else:
        draft.body.append(draft.write.update())


def window(draft: Draft) -> None:
    """Several micro-batches a step."""
    if draft.chance(0.15):
        draft.scaler()
    pair = draft.pair("net", "opt")
    k = draft.random.choice([2, 2, 3])
    divide = k if draft.chance(0.6) else 0
    fill = draft.write.backward(f"{pair.net}(x).sum()", divide=divide)
    guard = f"(i + 1) % {k} == 0"
    kind = draft.random.random()
    if kind < 0.2:
        draft.counter = True
        fill = [Line("count += 1"), *fill]
        guard = f"count % {k} == 0"
    elif kind < 0.35:
        guard += " or i + 1 == len(loader)"
    elif kind < 0.42:
        guard = draft.random.choice([f"(i + 1) % {k}", f"i % {k} == {k}", "(i + 1) % 1 == 0"])
    step = draft.write.step(pair)
    if draft.write.scaler:
        step.append(draft.write.update())
    update: list[Node] = [*step, *draft.write.clear(pair)]
    draft.body += [*fill, Block(f"if {guard}:", update, "guard: counter")]
    draft.epochs = draft.chance(0.7)
    if draft.epochs and draft.chance(0.15):
        draft.after_epoch = [*draft.write.step(pair), *draft.write.clear(pair)]


def leaf(draft: Draft) -> None:
    """A perturbation that is moved along its own gradient."""
    net = draft.network("net")
    draft.made.append(("delta", "torch.zeros(4, 4, requires_grad=True)"))
    delta = draft.own + "delta"
    sign = ".sign()" if draft.chance(0.4) else ""
    move: Node
    if draft.chance(0.7):
        move = Block(
            "with torch.no_grad():",
            [Line(f"{delta} += 0.01 * {delta}.grad{sign}")],
            "leaf: no_grad",
            whole=True,
        )
    else:
        move = Line(f"{delta}.data += 0.01 * {delta}.grad{sign}", "leaf: data")
    clear = draft.random.choice([f"{delta}.grad.zero_()", f"{delta}.grad = None"])
    draft.body += [
        Line(f"{net}.zero_grad()", "clear: module"),
        Line(f"loss = {net}(x + {delta}).sum()"),
        Line("loss.backward()", "backward: loss"),
        move,
    ]
    if draft.chance(0.7):
        draft.body.append(Line(clear, "clear: leaf"))


def by_hand(draft: Draft) -> None:
    """Weights that are moved without an optimizer."""
    net = draft.network("net")
    pair = Pair(net, net)
    clears = ["module", "grad = None", "grad.zero_()", "grad.data.zero_()"]
    clear = [draft.write.clear_as(draft.random.choice(clears), pair)]
    fill = draft.write.backward(f"{net}(x).sum()")
    _in_some_order(draft, clear, fill, draft.write.by_hand(net))


def closure(draft: Draft) -> None:
    """The optimizer calls back."""
    pair = draft.pair("net", "opt")
    if draft.chance(0.4):
        name, _ = draft.made.pop()
        held = f"{pair.net}.parameters()"
        draft.made.append((name, f"torch.optim.LBFGS({held}, lr=0.01, max_iter=2)"))
    draft.body += draft.write.closure(pair, f"({pair.net}(x) ** 2).mean()")


def critic(draft: Draft) -> None:
    """A loop in the loop."""
    first, second = draft.pair("net", "opt"), draft.pair("other", "opt2")
    inner = draft.write
    part = [
        *inner.clear(first),
        *inner.backward(f"{first.net}(x).sum()"),
        *inner.step(first),
    ]
    draft.body.append(Block("for part in range(3):", part, "loop: nested"))
    _usual(draft, second, f"{second.net}(x).sum()")


THEMES: dict[Callable[[Draft], None], float] = {
    plain: 20,
    two: 8,
    one_loss: 8,
    gan: 13,
    shared: 8,
    amp: 17,
    window: 17,
    leaf: 6,
    by_hand: 4,
    closure: 4,
    critic: 5,
}


def _usual(draft: Draft, pair: Pair, loss: str) -> None:
    clear, fill = draft.write.clear(pair), draft.write.backward(loss)
    if draft.chance(0.08):
        step: list[Node] = [
            Line(
                f"{draft.write.helper('advance_and_reset')}({pair.opt})", "step: helper that clears"
            )
        ]
    else:
        step = draft.write.step(pair)
    _in_some_order(draft, clear, fill, step)


def _in_some_order(draft: Draft, clear: list[Node], fill: list[Node], step: list[Node]) -> None:
    orders = [[*clear, *fill, *step], [*fill, *step, *clear]]
    if len(fill) == 2:
        orders.append([fill[0], *clear, fill[1], *step])
    draft.body += draft.random.choice(orders)
