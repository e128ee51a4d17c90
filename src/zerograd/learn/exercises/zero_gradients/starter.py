"""Exercise 1: clear a list of gradients.

A gradient says how a loss changes when a parameter changes. Training computes one
per parameter, uses them for one update, and must forget them before the next.

Write `zero_grad`: it gets the gradients as a list of numbers and returns the
cleared ones, a list of the same length that holds 0.0 everywhere. It returns a
new list; the one it was given stays as it was.

    zero_grad([3.0, -5.0])  ->  [0.0, 0.0]
"""


def zero_grad(grads: list[float]) -> list[float]:
    raise NotImplementedError
