"""Exercise 2: absent and zero are two things."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=2,
    name="none-safe-clear",
    title="Clear gradients that may be absent",
    hints=(
        "Before the first backward(), and after every default zero_grad(), p.grad is None. "
        "None has no zero_().",
        "`if p.grad is not None:` guards the call. In place means p.grad.zero_(), "
        "not p.grad = something new.",
        "A gradient made with create_graph=True still hangs on its graph. "
        "p.grad.detach_() cuts it, before the zero_().",
    ),
    explanation="""\
Two kinds of clear exist and they are not the same:

  zero    the buffer stays and holds zeros. The memory stays taken, and step()
          still visits the parameter: momentum and weight decay move it.
  None    the buffer is gone. Memory is free during the forward pass, and step()
          skips the parameter altogether.

`optimizer.zero_grad()` and `module.zero_grad()` do the second since PyTorch 2.0;
`zero_grad(set_to_none=False)` asks for the first. They train alike only while
every parameter gets a gradient in every step. zerograd names an unguarded
`p.grad.zero_()` as ZG104, absent-gradient-used.""",
)
