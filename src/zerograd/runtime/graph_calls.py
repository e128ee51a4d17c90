"""Patches on CUDA graphs: when one is captured, and when it is replayed."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch

from zerograd.runtime import traced_calls
from zerograd.runtime.scaler_calls import Patch


def put_on(patch: Patch) -> None:
    """Patch the graphs that there are, and those that come."""
    graph = torch.cuda.CUDAGraph
    patch(graph, "capture_begin", _capture_beginning(graph.capture_begin))
    patch(graph, "capture_end", _capture_ending(graph.capture_end))
    patch(graph, "replay", _replaying(graph.replay))


def _capture_beginning(original: Any) -> Any:
    @functools.wraps(original)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        original(self, *args, **kwargs)
        for listener in traced_calls.listeners:
            listener.capture_begins(self)

    return capture_begin


def _capture_ending(original: Any) -> Any:
    @functools.wraps(original)
    def capture_end(self: Any) -> None:
        __tracebackhide__ = True
        original(self)
        for listener in traced_calls.listeners:
            listener.capture_ends(self)

    return capture_end


def _replaying(original: Any) -> Any:
    @functools.wraps(original)
    def replay(self: Any) -> None:
        __tracebackhide__ = True
        original(self)
        # What torch replays for itself, in compiled code say, stands in a backward that is heard.
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("torch."):
            for listener in traced_calls.listeners:
                listener.replayed(self)

    return replay
