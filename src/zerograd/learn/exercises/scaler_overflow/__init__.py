"""Exercise 8: a loss scaler, a clip and an overflow."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=8,
    name="scaler-overflow",
    title="A loss scaler that meets an overflow",
    hints=(
        "What is in p.grad after scaler.scale(loss).backward()? At which scale does the clip "
        "then measure the norm? And who empties the bucket after the overflow?",
        "The clip must come after scaler.unscale_(optimizer), and scaler.update() after "
        "scaler.step(optimizer), once per batch.",
        "zero_grad(), scale(loss).backward(), unscale_(optimizer), clip_grad_norm_, "
        "scaler.step(optimizer), scaler.update().",
    ),
    explanation="""\
The scaler multiplies the loss so that small gradients survive in half precision.
Until `unscale_` that factor is in the bucket, and a clip before it compares 65536
times the norm with max_norm: everything gets clipped to almost nothing (ZG301).

An overflow is no accident but how the scaler finds its scale: it skips that step
and halves the scale. zero_grad() leaves the scale alone, whatever is sometimes said.
Forgetting it is at first hardly seen here: unscaling divides what is left of the
last batch by 65536 once more, together with the new gradients. Then comes the
first overflow. The infinity stays in the bucket, every later step is skipped, and
the scale is halved each time: in a recorded run of 30 steps one overflow in step 4
cost 1 skipped step with a clear and 27 without.""",
)
