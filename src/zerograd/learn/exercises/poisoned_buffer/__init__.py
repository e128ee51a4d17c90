"""Exercise 7: one bad batch must not poison the rest."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=7,
    name="poisoned-buffer",
    title="One bad batch must not poison the rest",
    hints=(
        "Skipping the step is half of it. What is in p.grad when the next batch comes, "
        "and what is nan plus anything?",
        "The clear must happen on the skipped path as well. And a finite loss may still have "
        "gradients that are not: look at the gradients.",
        "optimizer.zero_grad() at the top of the loop, so that no path misses it. Step only if "
        "all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None).",
    ),
    explanation="""\
nan + x is nan. A bucket that got one NaN stays poisoned until it is emptied, so a
guard that skips the step must clear on its way out. `zero_()` and None both heal;
multiplying by 0 does not, and neither does forgetting: every later step is skipped
as well and the loss curve ends in a flat line.

The rule of thumb is the one of exercise 3: clear at the top of the loop, where no
`continue` can jump over it.

A guard like yours throws a gradient away on purpose. zerograd does not call that
lost: the values were not finite.""",
)
