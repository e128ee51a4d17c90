"""ZG505: windows that are averaged over the ranks at every micro-batch, and how to avoid it."""

from __future__ import annotations

import re
from dataclasses import replace

from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.identity.ir import Happening

_WRAPPED = re.compile(r"\bDistributedDataParallel\(|\bDDP\(")
# ways to keep a backward from it: torch's, and apex's
_KEPT_FROM_IT = re.compile(r"no_sync|require_backward_grad_sync|disable_allreduce")
# apex has a class of that name, without torch's `no_sync()`
_OF_APEX = re.compile(r"(?m)^\s*(?:from|import) apex\.parallel\b|\bapex\.parallel\.Dist")
_OF_TORCH = re.compile(r"torch\.nn\.parallel\b|\bnn\.parallel\.Dist")
_BY_SWITCH = (
    "call disable_allreduce() of the wrapped model for all but the last micro-batch, "
    "and enable_allreduce() before that one"
)


def synchronises_each(step: Happening) -> bool:
    """Is the network wrapped, and no backward kept from exchanging its gradients?"""
    text = step.unit.source.text
    if "DDP(" not in text and "DataParallel(" not in text:
        return False  # most files
    return _WRAPPED.search(text) is not None and _KEPT_FROM_IT.search(text) is None


def told_of_apex(finding: Finding, step: Happening) -> Finding:
    """Return the finding with advice that can be followed, if apex has wrapped the network."""
    text = step.unit.source.text
    if _OF_APEX.search(text) is None or _OF_TORCH.search(text) is not None:
        return finding
    return replace(finding, advice=_BY_SWITCH)
