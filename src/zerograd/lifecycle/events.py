"""What can happen to gradients, and where.

Everything after this module sees events only; nothing there knows whether an
event was read in source code or happened in a live run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class EventKind(str, Enum):
    """The nine things that can happen to a bucket. The values are those of trace files."""

    CLEAR = "clear"
    BACKWARD = "backward"
    ASSIGN = "assign"
    UNSCALE = "unscale"
    CLIP = "clip"
    STEP = "step"
    STEP_SKIPPED = "step_skipped"
    SCALER_UPDATE = "scaler_update"
    TOUCH = "touch"  # `.grad` used as a tensor, so it must not be None


class Spot(NamedTuple):
    """A place in the user's source: 1-based lines and columns, as editors count them.

    In a notebook `cell` is the number of the code cell, counted from 1, and
    `line` counts within that cell.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    cell: int | None = None

    def __str__(self) -> str:
        cell = f":cell {self.cell}" if self.cell is not None else ""
        return f"{self.path}{cell}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to the gradients of some buckets.

    Without `buckets` the event concerns the one bucket named like its owner,
    which is all that a program with one optimizer needs.
    """

    kind: EventKind
    owner: str  # the optimizer as the user's code names it: "opt", "self.opt_g"
    spot: Spot
    buckets: tuple[str, ...] = ()  # filled, cleared, clipped or stepped
    text: str = ""  # the user's own statement, for the trail
    backward: str = ""  # BACKWARD: which one; empty means the one at this spot
    fills: frozenset[str] = frozenset()  # BACKWARD: the owners any of whose buckets it filled
    empties: frozenset[str] = frozenset()  # CLEAR: the owners all of whose buckets it emptied
    scaler: str = ""  # the loss scaler it went through: scale, unscale_, step, update
    to_none: bool = True  # CLEAR: to None, else to zero
    # CLEAR: within a method of the optimizer itself (SAM, closures)
    # STEP: within a step under way, which calls its closure again
    inside: bool = False
    leaf: bool = False  # the bucket is an input, latent or perturbation, its use the step
    averaged: bool | None = None  # BACKWARD: was the loss divided or weighted? None: not known
    synchronised: bool = False  # BACKWARD: it all-reduced over ranks
    finite: bool = True  # CLEAR: what it dropped was finite
    chosen: bool = False  # CLEAR, STEP: the round's own data decide whether it comes
    counted: bool | None = None  # STEP: does a counter decide when it comes? None: not known
    scope: tuple[int, int] | None = None  # STEP: first and last line of the function it is in

    @property
    def reach(self) -> tuple[str, ...]:
        """The buckets this event touches."""
        return self.buckets or (self.owner,)
