"""ZG304: clips of parameters that an iterator has given to somebody else already.

torch says nothing of a clip without parameters, and one may well be meant: of a list that some
models leave empty. An iterator that was handed in can give none any more.
"""

from __future__ import annotations

import ast
import sys
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules.clip_after_step import RULE, USED_UP
from zerograd.runtime.call_site import Site

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder

MOST_SITES = 1_024


class Vacant:
    """Looks at the clips that were handed no parameters, for the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._times: dict[Site, int] = {}

    def clipped(self, site: Site) -> None:
        """Tell of the second such clip at one place while there are gradients to clip."""
        if not self._recorder.memo.node.filled:
            return
        if len(self._times) >= MOST_SITES:
            self._times.clear()
        times = self._times[site] = self._times.get(site, 0) + 1
        name = _argument(site.text) if times == 2 else ""
        if not name or not _is_iterator(_value(name, self._recorder.sites.code)):
            return
        message = USED_UP.format(name=name)
        trail = (TrailStep(site.spot, "finds no parameter to clip", site.text),)
        advice = f"make {name} a list, which can be gone through again and again"
        self._recorder.tell(Finding(RULE, site.spot, message, advice, "", trail))


def _argument(text: str) -> str:
    """Return the name, `params` or `self.params`, that a call is handed first."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    if isinstance(call, ast.Await):
        call = call.value
    handed = call.args[:1] if isinstance(call, ast.Call) else []
    return next((ast.unparse(each) for each in handed if _is_name(each)), "")


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )


def _value(name: str, code: CodeType | None) -> Any:
    """Return what the user's function that runs `code` means by the name."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    if frame is None:
        return None
    first, _, attribute = name.partition(".")
    value = frame.f_locals.get(first, frame.f_globals.get(first))
    return getattr(value, "__dict__", {}).get(attribute) if attribute else value


def _is_iterator(value: Any) -> bool:
    return hasattr(type(value), "__next__")
