"""Clear a list of gradients: the solution of the first exercise."""


def zero_grad(grads: list[float]) -> list[float]:
    """Return a new list of zeros, one for each gradient.

    The values are never looked at, so a NaN cannot survive.

    >>> zero_grad([3.0, float("nan")])
    [0.0, 0.0]
    """
    return [0.0] * len(grads)
