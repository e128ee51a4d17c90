"""Programs as people write them in whole: what stands around the update is half of them.

Windows that are counted down or handed out by a generator, tails after the loop, mixed
precision on one branch, batches that raise, norms that are looked at, attacks on the input,
several optimizers with shared parts in lists and dicts, trainers with methods of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.agreement.draft import Draft
from benchmarks.agreement.idioms import Pair
from benchmarks.agreement.tree import Block, Line, Node


def counted_down(draft: Draft) -> None:
    """A window whose counter runs down, or up to its size, in a variable of its own."""
    pair = draft.pair("net", "opt")
    write, size = draft.write, draft.random.choice([2, 3])
    fill = write.backward(f"{pair.net}(x).sum()", divide=size)
    step, clear = write.step(pair), write.clear(pair)
    if draft.chance(0.5):
        draft.before.append(Line(f"left = {size}"))
        count, guard, again = Line("left -= 1"), "left == 0", Line(f"left = {size}")
    else:
        draft.before.append(Line("done = 0"))
        count, guard, again = Line("done += 1"), f"done >= {size}", Line("done = 0")
    head = Block(f"if {guard}:", [*step, *clear, again], "guard: counted by hand")
    draft.body += [*fill, count, head]
    draft.epochs = draft.chance(0.5)
    if draft.epochs and draft.chance(0.4):
        draft.after_epoch = [*write.step(pair), *write.clear(pair)]


def handed_out(draft: Draft) -> None:
    """Windows that a generator makes of the batches."""
    pair = draft.pair("net", "opt")
    write = draft.write
    fill = write.backward(f"{pair.net}(part).sum()", divide=2)
    inner: list[Node] = [
        Block(f"for part in {write.helper('pieces')}(x, 2):", fill, "loop: pieces")
    ]
    step, clear = write.step(pair), write.clear(pair)
    draft.body += [*clear, *inner, *step] if draft.chance(0.5) else [*inner, *step, *clear]


def tail(draft: Draft) -> None:
    """A window, and after the loop a step for what is left of the last one."""
    if draft.chance(0.3):
        draft.scaler()
    pair = draft.pair("net", "opt")
    write, size = draft.write, draft.random.choice([2, 3])
    update = [write.update()] if write.scaler else []
    fill = write.backward(f"{pair.net}(x).sum()", divide=size)
    end: list[Node] = [*write.step(pair), *update, *write.clear(pair)]
    draft.body += [*fill, Block(f"if (i + 1) % {size} == 0:", end, "guard: counter")]
    draft.epochs = True
    rest: list[Node] = [*write.step(pair), *update, *write.clear(pair)]
    if draft.chance(0.7):
        rest = [Block(f"if len(loader) % {size} != 0:", rest, "guard: tail")]
    draft.after_epoch = rest


def one_branch(draft: Draft) -> None:
    """Mixed precision where a flag says so, and a plain update where it does not."""
    draft.scaler()
    pair = draft.pair("net", "opt")
    write, scaler = draft.write, draft.write.scaler
    clips = draft.chance(0.4)
    mixed: list[Node] = [Line(f"{scaler}.scale(loss).backward()", "backward: scaled")]
    plain: list[Node] = [Line("loss.backward()", "backward: loss")]
    if clips:
        mixed += [
            Line(f"{scaler}.unscale_({pair.opt})", "scaler: unscale_"),
            write.clip(pair.net),
        ]
        plain.append(write.clip(pair.net))
    mixed_step: list[Node] = [Line(f"{scaler}.step({pair.opt})", "step: scaler"), write.update()]
    plain_step: list[Node] = [Line(f"{pair.opt}.step()", "step: optimizer")]
    loss = Line(f"loss = {pair.net}(x).sum()")
    clear = write.clear(pair)
    if draft.chance(0.5):
        both = Block("if args.flag:", [*mixed, *mixed_step], "guard: mixed precision")
        both.more = [Block("else:", [*plain, *plain_step], "guard: mixed precision")]
        middle: list[Node] = [both]
    else:
        first = Block("if args.flag:", mixed, "guard: mixed precision")
        first.more = [Block("else:", plain, "guard: mixed precision")]
        second = Block("if args.flag:", mixed_step, "guard: mixed precision")
        second.more = [Block("else:", plain_step, "guard: mixed precision")]
        middle = [first, second]
    draft.body += [loss, *clear, *middle] if draft.chance(0.5) else [loss, *middle, *clear]


def rescued(draft: Draft) -> None:
    """A batch that is too large is left out: what it has filled is cleared, and others go on."""
    pair = draft.pair("net", "opt")
    write = draft.write
    large = Block("if x.sum() > 2:", [Line('raise RuntimeError("out of memory")')])
    fill = write.backward(f"{pair.net}(x).sum()")
    step, clear = write.step(pair), write.clear(pair)
    parts: list[Node] = [*fill[:-1], large, fill[-1], *step]
    parts = [*clear, *parts] if draft.chance(0.6) else [*parts, *clear]
    saved: list[Node] = [*write.clear(pair), Line("continue")]
    if draft.chance(0.3):
        saved = [Line("continue")]
    handler = Block("except RuntimeError:", saved)
    draft.body.append(Block("try:", parts, "flow: rescued", more=[handler]))
    draft.epochs = draft.chance(0.3)


def looked_at(draft: Draft) -> None:
    """A norm that is not finite calls the step off."""
    if draft.chance(0.4):
        draft.scaler()
    pair = draft.pair("net", "opt")
    write, scaler = draft.write, draft.write.scaler
    fill, clear = write.backward(f"{pair.net}(x).sum()"), write.clear(pair)
    norm = Line(f"norm = nn.utils.clip_grad_norm_({pair.net}.parameters(), 1.0)", "clip: looked at")
    if scaler:
        unscale = Line(f"{scaler}.unscale_({pair.opt})", "scaler: unscale_")
        step: Node = Line(f"{scaler}.step({pair.opt})", "step: scaler")
        guarded: Node = Block("if torch.isfinite(norm):", [step], "guard: finite norm")
        draft.body += [*clear, *fill, unscale, norm, guarded, write.update()]
        return
    if draft.chance(0.5):
        off: list[Node] = [*write.clear(pair), Line("continue")]
        skip = Block("if not torch.isfinite(norm):", off, "guard: finite norm")
        draft.body += [*fill, norm, skip, *write.step(pair, clip=0), *clear]
        return
    guarded = Block("if torch.isfinite(norm):", write.step(pair, clip=0), "guard: finite norm")
    draft.body += [*clear, *fill, norm, guarded]


def attack(draft: Draft) -> None:
    """An input that is moved along its gradient, made anew in each round or cleared."""
    net = draft.network("net")
    kind = draft.random.choice(["anew", "cleared", "asked for", "kept"])
    start = Line("adv = x.clone().detach().requires_grad_(True)")
    fill: list[Node] = [
        Line(f"loss = ({net}(adv) ** 2).sum()"),
        Line("loss.backward()", "backward: loss"),
    ]
    move = "adv + 0.01 * adv.grad.sign()"
    if kind == "anew":
        round_: list[Node] = [*fill, Line(f"adv = ({move}).detach().requires_grad_(True)")]
    elif kind == "asked for":
        round_ = [
            Line(f"slope = torch.autograd.grad(({net}(adv) ** 2).sum(), adv)[0]"),
            Line("adv = (adv + 0.01 * slope.sign()).detach().requires_grad_(True)"),
        ]
    else:
        data = Line("adv.data = (adv + 0.01 * adv.grad.sign()).data", "leaf: data")
        round_ = [*fill, data]
        if kind == "cleared":
            round_.append(Line("adv.grad.zero_()", "clear: leaf"))
    draft.body += [start, Block("for k in range(4):", round_, "loop: attack")]
    if draft.chance(0.6):
        pair = Pair(net, draft.optimizer("opt", f"{net}.parameters()"))
        draft.pairs.append(pair)
        write = draft.write
        fill = write.backward(f"{net}(adv.detach()).sum()")
        draft.body += [*write.clear(pair), *fill, *write.step(pair)]
    elif draft.chance(0.5):
        draft.body.append(Line(f"{net}.zero_grad()", "clear: module"))


def family(draft: Draft) -> None:
    """Networks and optimizers in lists, one of each for each member."""
    draft.made.append(("nets", "nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])"))
    nets = f"{draft.own}nets"
    draft.made.append(("opts", f"[torch.optim.SGD(n.parameters(), lr=0.01) for n in {nets}]"))
    opts = f"{draft.own}opts"
    clear = Line("o.zero_grad()", "clear: of a family")
    fill: list[Node] = [Line("loss = n(x).sum()"), Line("loss.backward()", "backward: loss")]
    step = Line("o.step()", "step: of a family")
    if draft.chance(0.5):
        order = [clear, *fill, step] if draft.chance(0.5) else [*fill, step, clear]
        draft.body.append(Block(f"for n, o in zip({nets}, {opts}):", order, "loop: family"))
        return
    total = Line(f"loss = sum(n(x).sum() for n in {nets})")
    draft.body += [
        Block(f"for o in {opts}:", [clear], "loop: family"),
        total,
        Line("loss.backward()", "backward: loss"),
        Block(f"for o in {opts}:", [step], "loop: family"),
    ]


def shared_parts(draft: Draft) -> None:
    """An encoder that two optimizers hold, and a critic with its own."""
    enc, actor, critic = (draft.network(name) for name in ("enc", "actor", "critic"))
    write = draft.write
    one = Pair(
        critic, draft.optimizer("critic_opt", f"[*{enc}.parameters(), *{critic}.parameters()]")
    )
    two = Pair(actor, draft.optimizer("actor_opt", f"{actor}.parameters()"))
    draft.pairs += [one, two]
    value = write.backward(f"({critic}({enc}(x)) ** 2).mean()")
    held = f"{enc}(x).detach()" if draft.chance(0.6) else f"{enc}(x)"
    policy = write.backward(f"{critic}({actor}({held})).mean()")
    first = [Line(f"{one.opt}.zero_grad()", "clear: optimizer"), *value, *write.step(one)]
    second = [Line(f"{two.opt}.zero_grad()", "clear: optimizer"), *policy, *write.step(two)]
    if draft.chance(0.35):
        second = [Block("if i % 2 == 0:", second, "guard: delayed")]
    draft.body += [*first, *second]


def minded(draft: Draft) -> None:
    """A trainer of its own around network and optimizer, as small libraries have."""
    pair = draft.pair("net", "opt")
    name = draft.write.helper("Minder")
    draft.made.append(("minder", f"{name}({pair.net}, {pair.opt})"))
    minder = f"{draft.own}minder"
    fill: list[Node] = [
        Line(f"loss = {pair.net}(x).sum()"),
        Line(f"{minder}.backward(loss)", "backward: of a trainer"),
    ]
    clear = Line(f"{minder}.zero_grad()", "clear: of a trainer")
    step = Line(f"{minder}.step()", "step: of a trainer")
    draft.body += [clear, *fill, step] if draft.chance(0.5) else [*fill, step, clear]


def called_back(draft: Draft) -> None:
    """Updates that are handed about as functions."""
    pair = draft.pair("net", "opt")
    loss = f"{pair.net}(x).sum()"
    apply = draft.write.helper("apply")
    if draft.chance(0.5):
        draft.body += [
            Line(f"{apply}({pair.opt}.zero_grad)", "clear: handed on"),
            Line(f"loss = {loss}"),
            Line(f"{apply}(loss.backward)", "backward: handed on"),
            Line(f"{apply}({pair.opt}.step)", "step: handed on"),
        ]
        return
    draft.before.append(Line(f"update = lambda: ({pair.opt}.step(), {pair.opt}.zero_grad())"))
    draft.body += [
        Line(f"loss = {loss}"),
        Line("loss.backward()", "backward: loss"),
        Line("update()", "step: lambda"),
    ]


def stopped(draft: Draft) -> None:
    """A loop that ends early, and batches that are left out."""
    pair = draft.pair("net", "opt")
    write = draft.write
    skip = Block("if x.sum() < -2:", [Line("continue")], "flow: continue")
    end = Block("if i >= 5:", [Line("break")], "flow: break")
    fill, step, clear = write.backward(f"{pair.net}(x).sum()"), write.step(pair), write.clear(pair)
    order: list[Node] = [*clear, *fill, *step] if draft.chance(0.5) else [*fill, *step, *clear]
    at = draft.random.randrange(len(order) + 1)
    draft.body += (
        [skip, *order[:at], end, *order[at:]] if draft.chance(0.5) else [skip, *order, end]
    )
    draft.epochs = draft.chance(0.6)


DAILY: dict[Callable[[Draft], None], float] = {
    counted_down: 10,
    handed_out: 6,
    tail: 10,
    one_branch: 10,
    rescued: 10,
    looked_at: 10,
    attack: 10,
    family: 8,
    shared_parts: 10,
    minded: 8,
    called_back: 6,
    stopped: 8,
}
