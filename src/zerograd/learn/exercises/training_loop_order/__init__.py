"""Exercise 3: the four calls, in a right order."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=3,
    name="training-loop-order",
    title="A training loop in the right order",
    hints=(
        "Each step() must see the gradients of its own batch: all of them, and nothing else. "
        "Which call here makes that untrue?",
        "Count what is in p.grad at the step of the second batch. "
        "And what does loss.backward() before the clear leave for step() to use?",
        "for each batch: optimizer.zero_grad(), then the loss, then loss.backward(), "
        "then optimizer.step(). Keep loss.item(), not loss.",
    ),
    explanation="""\
Three places are right for the clear: first thing in the loop, just before
backward(), or right after step(). The weights come out bit-equal if the buffers are
empty when the loop begins. Here they were not: the checks also called train() with
gradients left in them, and a clear only after step() comes too late for the first
batch. What else differs is memory: cleared to None early, the buffers are absent
during the forward pass.

One place is wrong in a quiet way: between backward() and step(). Nothing piles up
there, as is sometimes said; the step sees nothing, and the model never learns.
zerograd calls that ZG102, lost-gradient, and a missing clear ZG101, stale-gradient.

`loss.item()` gives a number. Keeping `loss` itself would keep its whole graph.""",
)
