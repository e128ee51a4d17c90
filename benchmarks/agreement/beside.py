"""What stands beside the training in real loops: right as it is, and in the way of a witness."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.agreement.draft import Draft
from benchmarks.agreement.idioms import Pair
from benchmarks.agreement.tree import Block, Line, Node

TAG = "beside"  # nothing is changed here


def add(draft: Draft) -> None:
    """Write some of it into the program."""
    if not draft.pairs:
        return
    for write, weight in _KINDS.items():
        if draft.chance(weight):
            write(draft, draft.random.choice(draft.pairs))


def _scheduler(draft: Draft, pair: Pair) -> None:
    draft.made.append(("schedule", f"torch.optim.lr_scheduler.StepLR({pair.opt}, step_size=2)"))
    step = Line(f"{draft.own}schedule.step()", f"{TAG}: scheduler")
    (draft.after_epoch if draft.epochs and draft.chance(0.5) else draft.body).append(step)


def _average(draft: Draft, pair: Pair) -> None:
    """A moving average of the weights."""
    mean = draft.network("mean")
    pairs = f"zip({mean}.parameters(), {pair.net}.parameters())"
    move = Block(f"for kept, p in {pairs}:", [Line("kept.mul_(0.9).add_(p, alpha=0.1)")])
    draft.body.append(Block("with torch.no_grad():", [move], f"{TAG}: average", whole=True))


def _evaluation(draft: Draft, pair: Pair) -> None:
    look = Block("with torch.no_grad():", [Line(f"score = {pair.net}(loader[0]).mean().item()")])
    body: list[Node] = [Line(f"{pair.net}.eval()"), look, Line(f"{pair.net}.train()")]
    node = Block("if loader:", body, f"{TAG}: evaluation", whole=True)
    (draft.after_epoch if draft.epochs else draft.body).append(node)


def _measured(draft: Draft, pair: Pair) -> None:
    """The norm of the gradients, for a log."""
    held = f"{pair.net}.parameters()"
    if draft.chance(0.5):
        text = f"norm = sum(p.grad.norm() for p in {held} if p.grad is not None)"
    else:
        text = f'norm = nn.utils.clip_grad_norm_({held}, float("inf"))'
    at = draft.random.randrange(len(draft.body) + 1)
    draft.body.insert(at, Line(text, f"{TAG}: norm"))


def _saved(draft: Draft, pair: Pair) -> None:
    """A checkpoint; what it holds is read, not used."""
    states = f'{{"net": {pair.net}.state_dict(), "opt": {pair.opt}.state_dict()}}'
    draft.body.append(Line(f"saved = {states}", f"{TAG}: checkpoint"))


def _timed(draft: Draft, pair: Pair) -> None:
    """A context manager around all of it."""
    heads = [
        "with torch.set_grad_enabled(True):",
        "with torch.autograd.set_detect_anomaly(False):",
        'with torch.autocast("cpu", enabled=False):',
    ]
    head = draft.random.choice(heads)
    draft.body = [Block(head, draft.body, f"{TAG}: context manager")]


_KINDS: dict[Callable[[Draft, Pair], None], float] = {
    _scheduler: 0.06,
    _average: 0.045,
    _evaluation: 0.045,
    _measured: 0.05,
    _saved: 0.04,
    _timed: 0.06,
}
