"""`python -m zerograd.demo.losses SCRIPT`: run a script and print the losses it went back from.

The script is run as it is; only `Tensor.backward` is overheard. Its own output
goes to standard error, the losses as a JSON list to standard output.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys

import torch


def losses_of(script: str) -> list[float]:
    """Return the value of every loss that `script` calls backward() on."""
    seen: list[float] = []
    original = torch.Tensor.backward

    def overheard(self: torch.Tensor, *args: object, **options: object) -> None:
        seen.append(float(self.detach()))
        original(self, *args, **options)  # type: ignore[no-untyped-call]

    torch.Tensor.backward = overheard  # type: ignore[method-assign]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            runpy.run_path(script, run_name="__main__")
    finally:
        torch.Tensor.backward = original  # type: ignore[method-assign]
    return seen


if __name__ == "__main__":
    json.dump(losses_of(sys.argv[1]), sys.stdout)
