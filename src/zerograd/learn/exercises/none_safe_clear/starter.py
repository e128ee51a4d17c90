"""Exercise 2: clear gradients that may be absent.

`p.grad` of a parameter holds its gradient, or None where there is none. This
`clear` should write zeros into every gradient that is there, in place, and leave
an absent one absent. It crashes instead. Mend it.

    clear(model.parameters())
"""

from collections.abc import Iterable

import torch


def clear(parameters: Iterable[torch.Tensor]) -> None:
    for p in parameters:
        p.grad.zero_()
