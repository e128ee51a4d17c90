"""Exercise 1: what clearing means, on a plain list."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=1,
    name="zero-gradients",
    title="Clear a list of gradients",
    needs_torch=False,
    seconds=10.0,
    hints=(
        "How many values must come back, and what is each of them? "
        "Do the values that went in matter at all?",
        "Arithmetic cannot clear: nan * 0 is nan, inf - inf is nan, -2.0 * 0 is -0.0. "
        "Write the zero, do not compute it.",
        "A list times a number repeats the list: [0.0] * 3 is [0.0, 0.0, 0.0]. "
        "The number you need is len(grads).",
    ),
    explanation="""\
A clear does not look at what it clears. That is why it also heals: a NaN or an
infinity that got into a gradient is gone after `grad.zero_()` or `grad = None`,
and is NOT gone after `grad * 0`, because nan * 0 is nan. Exercise 7 needs this.

You returned a new list and left the caller's alone. PyTorch does it the other
way round: it changes the buffers in place, and since version 2.0 it does not
even write zeros by default but sets `.grad` to None, "absent". The next exercise
is about the difference.""",
)
