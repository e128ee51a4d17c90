"""A finding told while the training runs: as a warning at the user's line, or as an exception."""

from __future__ import annotations

import warnings

from zerograd.errors import GradientError, GradientWarning
from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Finding, Live


def describe(finding: Finding) -> str:
    """Return the finding as one line and its remedy, for warnings and exceptions."""
    live = finding.live or Live()
    share = f" ({live.leftover})" if live.leftover else ""
    return f"{finding.rule.code} {finding.rule.name}: {finding.message}{share}; {finding.advice}"


def warn(finding: Finding) -> None:
    """Issue a GradientWarning at the user's own line."""
    warn_at(finding.spot, describe(finding))


def warn_at(spot: Spot, text: str) -> None:
    """Issue a GradientWarning there, unless the script has closed its standard error."""
    try:
        cell = f":cell {spot.cell}" if spot.cell is not None else ""
        warnings.warn_explicit(text, GradientWarning, spot.path + cell, spot.line, registry={})
    except (OSError, ValueError):
        pass  # the finding is kept; that nobody can be warned is no reason to stop


def error_of(finding: Finding) -> GradientError:
    """Return what stops the training, to be raised from within the offending statement."""
    error = GradientError(f"{finding.spot}: {describe(finding)}")
    error.finding = finding  # type: ignore[attr-defined]
    return error
