"""Schedulers that move only when the step happened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.optim.lr_scheduler import ReduceLROnPlateau


def list_schedulers(given: Any) -> list[Any]:
    """One scheduler or several, as a list; TypeError for what cannot be moved without help."""
    if given is None:
        return []
    several = given if isinstance(given, Iterable) else [given]
    schedulers = list(several)
    for scheduler in schedulers:
        if not callable(getattr(scheduler, "step", None)):
            raise TypeError(
                f"a scheduler has a step() method, but {type(scheduler).__name__} has none"
            )
        if isinstance(getattr(scheduler, "scheduler", scheduler), ReduceLROnPlateau):
            raise TypeError(
                "ReduceLROnPlateau needs a metric, which Step does not have. "
                "Leave it out of Step and call scheduler.step(metric) after each evaluation."
            )
    return schedulers
