"""What an exception that ends the program has to do with gradients.

It may be explained by a rule (ZG104: an AttributeError or TypeError about None, where `.grad`
is None), and it may have come before what other rules wait for.
"""

from __future__ import annotations

import re
from types import TracebackType

from zerograd.lifecycle.findings import Finding
from zerograd.rules.absent_gradient_used import RULE, USE_LATER, WIPES
from zerograd.runtime.aloud import say
from zerograd.runtime.announce import describe
from zerograd.runtime.call_site import kind_of_is_user, site_of

_SETTLED_LATER = frozenset({"ZG201", "ZG203", "ZG302"})  # a later call may clear them up
_NO_UPDATE = re.compile(r"since the last update\(\)|called after step\(\)")
_GRAD = re.compile(r"([\w.\[\]]*?)\.grad\b")


def explain_absence(error: BaseException) -> Finding | None:
    """Return the finding behind `error`, if it comes of a `.grad` that is None."""
    if not isinstance(error, (AttributeError, TypeError)) or "NoneType" not in str(error):
        return None
    last = _last_of_the_user(error.__traceback__)
    if last is None:
        return None
    site = site_of(last.tb_frame.f_code, last.tb_lasti, last.tb_lineno)
    found = _GRAD.search(site.text)
    if found is None:
        return None
    owner = found.group(1) or "the parameter"
    words = {"owner": owner}
    is_clear = any(f".{name}" in site.text for name in WIPES)
    return Finding(
        rule=RULE,
        spot=site.spot,
        message=RULE.summary.format_map(words),
        advice=(RULE.advice if is_clear else USE_LATER).format_map(words),
        owner=owner,
    )


def not_due_after(error: BaseException) -> frozenset[str]:
    """Return the rules that a program which ends by `error` has not broken yet.

    What it had yet to do is not missing, unless that is what the error is about: torch
    refuses to unscale or step again before the scaler is updated. And who interrupts a run may
    do so since nothing is learnt.
    """
    due = set()
    if isinstance(error, RuntimeError) and _NO_UPDATE.search(str(error)):
        due.add("ZG302")
    if not isinstance(error, Exception):
        due.add("ZG203")
    return _SETTLED_LATER - due


def _last_of_the_user(trace: TracebackType | None) -> TracebackType | None:
    last = None
    while trace is not None:
        if kind_of_is_user(trace.tb_frame.f_code.co_filename):
            last = trace
        trace = trace.tb_next
    return last


def add_note(error: BaseException, finding: Finding) -> None:
    """Tell the reader of the traceback what zerograd knows; the exception stays what it is."""
    text = f"zerograd: {finding.spot}: {describe(finding)}"
    if hasattr(error, "add_note"):
        error.add_note(text)
    else:  # Python 3.10
        say(text)


def without_frames_of(error: BaseException, folder: str) -> None:
    """Unlink the frames of code under `folder` from the traceback, in place."""
    trace = error.__traceback__
    while trace is not None:
        following = trace.tb_next
        while following is not None and following.tb_frame.f_code.co_filename.startswith(folder):
            following = following.tb_next
        trace.tb_next = following
        trace = following
