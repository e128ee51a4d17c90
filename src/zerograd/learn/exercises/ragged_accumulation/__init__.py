"""Exercise 4: accumulation on purpose, with a last window that is short."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=4,
    name="ragged-accumulation",
    title="Accumulate over micro-batches of uneven size",
    hints=(
        "Write down what the gradient of the mean over a whole window is, as a sum over its "
        "micro-batches. Which factor does each one carry?",
        "Dividing by `window` is right only if every micro-batch has the same size and the last "
        "window is full. A micro-batch of n samples out of N weighs n / N.",
        "Collect a window in a list, N = sum(len(x) for x, _ in it). For each micro-batch: "
        "(loss_fn(model(x), y) * len(x) / N).backward(). Then step(), then zero_grad().",
    ),
    explanation="""\
Accumulation is the clear left out on purpose, K - 1 times out of K. It equals the
big batch under conditions, and each can be broken without an error:

  the weights    dividing by K assumes K micro-batches of equal size. With sizes
                 20, 20, 20, 4 the gradient was off by 44 % of its norm in
                 the small net of `zerograd lab`; other data, another error.
  the tail       10 micro-batches in windows of 4 leave 2. Dropped, they were
                 computed for nothing; left in the buffer, they leak into the next
                 epoch (ZG502, tail-lost).
  the layers     batch norm sees each micro-batch alone, and dropout draws other
                 masks. No weight repairs that.

`zerograd.windows` and `zerograd.Step` do all of this, also for several ranks.""",
)
