"""Exercise 9: one all-reduce per update, on two ranks."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=9,
    name="no-sync-window",
    title="One all-reduce per update, on two ranks",
    seconds=180.0,
    hints=(
        "DistributedDataParallel averages gradients over the ranks in every backward(). "
        "How many of a window's backwards need that?",
        "Only the last one. Inside `with model.no_sync():` a forward and its backward stay local "
        "and simply add to p.grad; both must be inside.",
        "For all but the last micro-batch: with model.no_sync(): (loss_fn(model(x), y) / k)"
        ".backward(). The last one without it. Then step(), then zero_grad().",
    ),
    explanation="""\
Leaving out the clear saves no communication: DDP still exchanges gradients in every
backward(). Only no_sync() does. It is decided in the FORWARD whether the following
backward exchanges, so a forward outside and a backward inside (or the reverse) is
not what it looks like: zerograd names that ZG601, rank-desync, and a window with
several exchanges ZG505, sync-every-micro-batch.

Each rank clears its own bucket. If one rank forgets, the replicas still stay
bit-equal, because the sums are exchanged: comparing replicas cannot find it.""",
)
