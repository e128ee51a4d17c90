"""Exercise 6: two optimizers, and a loss that fills both buckets."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=6,
    name="gan-two-optimizers",
    title="Two optimizers that must not drink from each other's bucket",
    hints=(
        "The generator's loss runs through the discriminator. "
        "Whose gradients does g_loss.backward() fill?",
        "Both. So when discriminator's turn comes again, its bucket holds what the generator's "
        "loss left there. Clear it before its own backward(), not only after its step().",
        "opt_d.zero_grad(); d_loss.backward(); opt_d.step(); "
        "opt_g.zero_grad(); g_loss.backward(); opt_g.step(). And fake.detach() in d_loss.",
    ),
    explanation="""\
A backward fills every parameter on its way, not only those of the optimizer you
have in mind. The generator's loss goes through the discriminator, so after it the
discriminator's bucket is full of gradients that want it to be FOOLED. Its next
step would use them, and they have the opposite sign of what it needs.

A clear right before each own backward() is right in every shape of this loop. A
clear only after each own step() is not: the other loss comes in between. zerograd
names that ZG201, leaked-gradient. It is quiet in the loss curve, too.

`fake.detach()` in the discriminator's loss keeps the generator's bucket clean and
saves the generator's backward pass.""",
)
