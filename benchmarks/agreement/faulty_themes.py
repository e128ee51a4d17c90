"""Kinds of programs with mistakes of their own: scalers, windows, replicas.

Random changes seldom hit upon a clip before the unscaling or a window that is cleared in each
round, so these themes make the well-known mistakes themselves, now and then.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.agreement import themes, wider_themes
from benchmarks.agreement.draft import Draft
from benchmarks.agreement.idioms import Pair
from benchmarks.agreement.themes import usual
from benchmarks.agreement.tree import Block, Line, Node


def amp(draft: Draft) -> None:
    """A loss scaler, one optimizer or two."""
    draft.scaler()
    pair = draft.pair("net", "opt")
    write, scaler = draft.write, draft.write.scaler
    kind = draft.random.choices(
        ["right", "clip early", "clip late", "bypassed", "no update", "update early"],
        [5, 5, 5, 6, 4, 13],
    )[0]
    unscale = Line(f"{scaler}.unscale_({pair.opt})", "scaler: unscale_")
    step: Node = Line(f"{scaler}.step({pair.opt})", "step: scaler")
    fill = write.backward(f"{pair.net}(x).sum()")
    clear = write.clear(pair)
    update = write.update()
    if kind == "right":
        usual(draft, pair, f"{pair.net}(x).sum()")
        if draft.chance(0.3):
            other = draft.pair("other", "opt2")
            usual(draft, other, f"{other.net}(x).sum()")
        draft.body.append(update)
        return
    middle: list[Node] = [step, update]
    if kind == "clip early":
        middle = [write.clip(pair.net), *([unscale] if draft.chance(0.5) else []), step, update]
    elif kind == "clip late":
        late = [write.clip(pair.net), update]
        middle = [step, *(late if draft.chance(0.5) else reversed(late))]
    elif kind == "bypassed":
        bare = Line(f"{pair.opt}.step()", "step: optimizer")
        middle = [bare, *([update] if draft.chance(0.7) else [])]
    elif kind == "no update":
        middle = [*([unscale, write.clip(pair.net)] if draft.chance(0.4) else []), step]
    elif draft.chance(0.5):
        middle = [unscale, update, step] if draft.chance(0.5) else [update, step]
    else:  # one update for each of two, the first too early for the second
        other = draft.pair("other", "opt2")
        second = write.backward(f"{other.net}(x).sum()")
        early: list[Node] = [step, update]
        middle = [*second, *early, Line(f"{scaler}.step({other.opt})", "step: scaler"), update]
        clear = [*clear, *write.clear(other)]
    order = [*clear, *fill, *middle] if draft.chance(0.6) else [*fill, *middle, *clear]
    draft.body += order


def window(draft: Draft) -> None:
    """Several micro-batches a step."""
    if draft.chance(0.15):
        draft.scaler()
    pair = draft.pair("net", "opt")
    _window(draft, pair.net, pair)


def _window(draft: Draft, net: str, pair: Pair) -> None:
    k = draft.random.choice([2, 2, 3])
    usual_form = draft.chance(0.3)  # what most people write, right but for its tail or its sum
    fill = draft.write.backward(f"{net}(x).sum()", divide=k if draft.chance(0.6) else 0)
    guard = f"(i + 1) % {k} == 0"
    kind = draft.random.random()
    if kind < 0.2:
        draft.counter = True
        fill = [Line("count += 1"), *fill]
        guard = f"count % {k} == 0"
    elif kind < 0.35:
        guard += " or i + 1 == len(loader)"
    elif kind < 0.9 and not usual_form:
        guard = draft.random.choice(
            [f"(i + 1) % {k}", f"i % {k} == {k}", f"i % {k} == 0", "(i + 1) % 1 == 0"]
        )
    step = draft.write.step(pair)
    if draft.write.scaler:
        step.append(draft.write.update())
    clear = draft.write.clear(pair)
    form = draft.random.choices(
        ["guard", "cleared at the top", "cleared at the end", "continue", "nested"],
        [12, 5, 1, 2, 7],
    )[0]
    form = "guard" if usual_form else form
    if form == "nested":
        inner = [*clear, *fill] if draft.chance(0.4) else fill
        draft.body.append(Block("for part in range(3):", inner, "loop: micro-batches"))
        draft.body += step if inner is not fill else [*step, *clear]
        draft.epochs = draft.chance(0.3)
        return
    if form == "continue":
        skip = Block(f"if i % {k} != {k - 1}:", [Line("continue")], "flow: continue")
        top = [*clear, *fill] if draft.chance(0.4) else fill
        draft.body += [*top, skip, *step]
        draft.body += clear if top is fill else []
    elif form == "cleared at the top":
        draft.body += [*clear, *fill, Block(f"if {guard}:", step, "guard: counter")]
    elif form == "cleared at the end":
        draft.body += [*fill, Block(f"if {guard}:", step, "guard: counter"), *clear]
    else:
        draft.body += [*fill, Block(f"if {guard}:", [*step, *clear], "guard: counter")]
    draft.epochs = draft.chance(0.85)
    if draft.epochs and draft.chance(0.15):
        draft.after_epoch = [*draft.write.step(pair), *draft.write.clear(pair)]


def leak(draft: Draft) -> None:
    """A discriminator that steps on what the generator's loss has left in it, too."""
    g, d = draft.pair("gen", "opt_g"), draft.pair("disc", "opt_d")
    write = draft.write
    draft.body += [*write.clear(g), *write.clear(d)]
    draft.body += [*write.backward(f"{d.net}({g.net}(x)).sum()"), *write.step(g)]
    fake = f" - {d.net}({g.net}(x).detach()).sum()" if draft.chance(0.5) else ""
    draft.body += [*write.backward(f"{d.net}(x).sum(){fake}"), *write.step(d)]


def replica(draft: Draft) -> None:
    """A network that DistributedDataParallel keeps equal over the ranks."""
    draft.imports["from torch.nn.parallel import DistributedDataParallel"] = None
    bare = draft.network("bare")
    draft.made.append(("net", f"DistributedDataParallel({bare})"))
    net = draft.own + "net"
    pair = Pair(net, draft.optimizer("opt", f"{net}.parameters()"))
    draft.pairs.append(pair)
    write = draft.write
    kinds = ["plain", "window", "no_sync", "outside", "raw"]
    kind = draft.random.choices(kinds, [2, 22, 12, 13, 6])[0]
    if kind == "plain":
        usual(draft, pair, f"{net}(x).sum()")
    elif kind == "window":
        _window(draft, net, pair)
    elif kind == "raw":
        called = f"{net}.module" if draft.chance(0.5) else bare
        usual(draft, pair, f"{called}(x).sum()")
    elif kind == "outside":
        forward = Block(
            f"with {net}.no_sync():", [Line(f"loss = {net}(x).sum()")], "no_sync: forward"
        )
        draft.body += [*write.clear(pair), forward, Line("loss.backward()", "backward: loss")]
        draft.body += write.step(pair)
    else:
        quiet = Block(
            f"with {net}.no_sync():",
            [Line(f"({net}(x).sum() / 2).backward()", "backward: chained")],
            "no_sync: both",
        )
        loud = Line(f"({net}(x).sum() / 2).backward()", "backward: chained")
        draft.body += [*write.clear(pair), quiet, loud, *write.step(pair)]


THEMES: dict[Callable[[Draft], None], float] = {
    themes.plain: 10,
    themes.two: 4,
    themes.twice: 6,
    themes.lost: 5,
    themes.one_loss: 26,
    themes.gan: 38,
    themes.shared: 7,
    themes.unowned: 14,
    themes.leaf: 31,
    themes.by_hand: 14,
    themes.assigned: 13,
    themes.closure: 18,
    themes.critic: 16,
    themes.unseen: 14,
    wider_themes.penalty: 15,
    wider_themes.guarded: 12,
    wider_themes.frozen: 19,
    wider_themes.summed: 30,
    wider_themes.held: 31,
    wider_themes.alternating: 13,
    amp: 80,
    window: 56,
    leak: 19,
    replica: 60,
}
