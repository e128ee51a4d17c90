"""Right programs of many kinds; the faults come later, by changes."""

from __future__ import annotations

from benchmarks.agreement.draft import Draft
from benchmarks.agreement.idioms import Pair
from benchmarks.agreement.tree import Block, Line, Node


def plain(draft: Draft) -> None:
    """One network, one optimizer."""
    pair = draft.pair("net", "opt")
    usual(draft, pair, f"{pair.net}(x).sum()")
    draft.epochs = draft.chance(0.4)


def two(draft: Draft) -> None:
    """Two networks, each with its own optimizer and loss."""
    first, second = draft.pair("net", "opt"), draft.pair("other", "opt2")
    usual(draft, first, f"{first.net}(x).sum()")
    usual(draft, second, f"{second.net}(x).sum()")


def twice(draft: Draft) -> None:
    """Two updates of one network in a round."""
    pair = draft.pair("net", "opt")
    forgets = draft.chance(0.6)
    for loss in (f"{pair.net}(x).sum()", f"({pair.net}(x) ** 2).mean()"):
        clear = [] if forgets and draft.chance(0.7) else draft.write.clear(pair)
        draft.body += [*clear, *draft.write.backward(loss), *draft.write.step(pair)]


def lost(draft: Draft) -> None:
    """Cleared between the backward and the step, once or twice."""
    pair = draft.pair("net", "opt")
    clear = [
        node for _ in range(draft.random.choice([1, 2, 2])) for node in draft.write.clear(pair)
    ]
    draft.body += draft.write.backward(f"{pair.net}(x).sum()")
    draft.body += [*clear, *draft.write.step(pair)]


def one_loss(draft: Draft) -> None:
    """One loss, two optimizers."""
    first, second = draft.pair("net", "opt"), draft.pair("other", "opt2")
    clears = [*draft.write.clear(first), *draft.write.clear(second)]
    fill = draft.write.backward(f"{second.net}({first.net}(x)).sum()")
    steps = [*draft.write.step(first), *draft.write.step(second)]
    names = f"{first.opt}, {second.opt}"
    if draft.chance(0.5):
        steps = [Block(f"for o in ({names}):", [Line("o.step()")], "step: over a list", whole=True)]
    if draft.chance(0.5):
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
        d_part += draft.write.backward(f"({fake} * -0.5)" if draft.chance(0.3) else fake)
    d_part += draft.write.step(d)
    g_loss = f"{d.net}({g.net}(x)).sum()"
    g_part = [*draft.write.clear(g), *draft.write.backward(g_loss), *draft.write.step(g)]
    if draft.chance(0.33):
        d_part = [Block("for part in range(3):", d_part, "loop: critic")]
        draft.body += [*d_part, *g_part]
        return
    if draft.chance(0.45):  # both cleared at the top, as one optimizer would be
        tops = [*draft.write.clear(g), *draft.write.clear(d)]
        parts = [g_part[1:], d_part[1:]] if draft.chance(0.7) else [d_part[1:], g_part[1:]]
        draft.body += [*tops, *parts[0], *parts[1]]
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
        in_some_order(draft, clear, fill, draft.write.step(pair))
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


def unowned(draft: Draft) -> None:
    """A network that no optimizer holds below one that is trained."""
    enc = draft.network("enc")
    pair = draft.pair("net", "opt")
    frozen = draft.chance(0.25)
    if frozen:
        draft.before.append(Line(f"{enc}.requires_grad_(False)"))
    usual(draft, pair, f"{pair.net}({enc}(x)).sum()")
    if not frozen and draft.chance(0.3):
        draft.body.append(Line(f"{enc}.zero_grad()", "clear: module"))


def leaf(draft: Draft) -> None:
    """A perturbation that is moved along its own gradient."""
    net = draft.network("net")
    draft.made.append(("delta", "torch.zeros(4, 4, requires_grad=True)"))
    delta = draft.own + "delta"
    sign = ".sign()" if draft.chance(0.4) else ""
    move: Node
    if draft.chance(0.55):
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
    if draft.chance(0.6):
        draft.body.append(Line(clear, "clear: leaf"))


def by_hand(draft: Draft) -> None:
    """Weights that are moved without an optimizer."""
    net = draft.network("net")
    pair = Pair(net, net)
    clears = ["module", "grad = None", "grad.zero_()", "grad.data.zero_()", "grad.fill_(0)"]
    clear = [draft.write.clear_as(draft.random.choice(clears), pair)]
    fill = draft.write.backward(f"{net}(x).sum()")
    in_some_order(draft, clear, fill, draft.write.by_hand(net))


def assigned(draft: Draft) -> None:
    """Gradients that are made elsewhere and assigned."""
    pair = draft.pair("net", "opt")
    held = f"{pair.net}.parameters()"
    assign = Block(
        f"for p, g in zip({held}, grads):", [Line("p.grad = g")], "assign: p.grad = g", whole=True
    )
    update: list[Node] = [
        Line(f"grads = torch.autograd.grad({pair.net}(x).sum(), list({held}))"),
        assign,
        *draft.write.step(pair),
    ]
    if draft.chance(0.3):  # among updates of the usual kind
        clear, fill = draft.write.clear(pair), draft.write.backward(f"{pair.net}(x).sum()")
        more = [*draft.write.backward(f"{pair.net}(x).mean()"), *draft.write.step(pair)]
        draft.body += [*clear, *fill, *draft.write.step(pair), *update, *more]
        return
    draft.body += update
    if draft.chance(0.4):
        draft.body += draft.write.clear(pair)


def closure(draft: Draft) -> None:
    """The optimizer calls back."""
    pair = draft.pair("net", "opt")
    if draft.chance(0.4):
        at = next(n for n, (name, _) in enumerate(draft.made) if name == "opt")
        held = f"{pair.net}.parameters()"
        draft.made[at] = ("opt", f"torch.optim.LBFGS({held}, lr=0.01, max_iter=2)")
    loss = f"({pair.net}(x) ** 2).mean()"
    draft.body += draft.write.closure(pair, loss, clears=draft.chance(0.75))


def critic(draft: Draft) -> None:
    """A loop in the loop."""
    first, second = draft.pair("net", "opt"), draft.pair("other", "opt2")
    write = draft.write
    part = [*write.clear(first), *write.backward(f"{first.net}(x).sum()"), *write.step(first)]
    draft.body.append(Block("for part in range(3):", part, "loop: nested"))
    usual(draft, second, f"{second.net}(x).sum()")


def unseen(draft: Draft) -> None:
    """Part of the loop is done by a package that is not read."""
    draft.imports["import tools"] = None
    pair = draft.pair("net", "opt")
    clear: list[Node] = draft.write.clear(pair)
    fill = draft.write.backward(f"{pair.net}(x).sum()")
    step: list[Node] = draft.write.step(pair)
    kind = draft.random.choice(["clear", "step", "both"])
    if kind == "clear":
        clear = [Line(f"tools.clear_gradients({pair.opt})", "call: unseen")]
    elif kind == "step":
        step = [Line(f"tools.step({pair.opt})", "call: unseen")]
    else:
        step = [Line(f"tools.update({pair.net}, {pair.opt})", "call: unseen")]
        clear = []
    in_some_order(draft, clear, fill, step)


def usual(draft: Draft, pair: Pair, loss: str) -> None:
    """Write clear, backward and step of one loss, in an order that is right."""
    clear, fill = draft.write.clear(pair), draft.write.backward(loss)
    if not draft.write.scaler and draft.chance(0.3):
        name = draft.write.helper("learn")
        draft.body.append(Line(f"{name}({pair.opt}, {loss})", "step: helper that does it all"))
        return
    if draft.chance(0.3):
        name = draft.write.helper("advance_and_reset")
        step: list[Node] = [Line(f"{name}({pair.opt})", "step: helper that clears")]
    else:
        step = draft.write.step(pair)
    in_some_order(draft, clear, fill, step)


def in_some_order(draft: Draft, clear: list[Node], fill: list[Node], step: list[Node]) -> None:
    """Write these three in one of the orders that are right."""
    orders = [[*clear, *fill, *step], [*fill, *step, *clear]]
    if len(fill) == 2:
        orders.append([fill[0], *clear, fill[1], *step])
    draft.body += draft.random.choice(orders)
