"""Exercise 5: what an optimizer does not hold, it does not clear."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=5,
    name="subset-optimizer",
    title="An optimizer over a part of the model",
    hints=(
        "optimizer.zero_grad() clears what the optimizer holds. Print the norm of "
        "model.backbone's gradient over the steps: who empties that bucket?",
        "Two ways out: clear the whole model, or let backward() not fill the backbone at all. "
        "And who is clipped by clip_grad_norm_(model.parameters(), ...)?",
        "model.zero_grad() instead of optimizer.zero_grad(), and "
        "clip_grad_norm_(model.head.parameters(), max_norm).",
    ),
    explanation="""\
`optimizer.zero_grad()` and `model.zero_grad()` clear the same buffers only if the
optimizer holds the whole model. Here the backbone belonged to nobody: every
backward() added to it, nothing took away, and the global norm used for clipping
grew with it, until the head's own gradient was scaled down to almost nothing. No
error, no NaN, only a model that stops learning.

Nobody steps on the backbone, so this is no stale-gradient. zerograd names it
ZG105, unowned-gradient-grows, a warning where a clip includes it.

Freezing with requires_grad_(False) also saves the backward pass of the backbone;
if you do it, the caller may want the flags back.""",
)
