"""CUDA graphs: a replay fills, steps and clears as its capture did, and no hook hears of it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zerograd.lifecycle.state import BucketState
    from zerograd.runtime.recorder import Recorder


class Graphs:
    """Remembers whose gradients each graph touches, and loses sight of them at its replays."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before: dict[str, BucketState] = {}
        self._touched: weakref.WeakKeyDictionary[Any, tuple[str, ...]] = weakref.WeakKeyDictionary()

    def capture_begins(self, graph: Any) -> None:
        self._before = self._states()

    def capture_ends(self, graph: Any) -> None:
        changed = {
            name for name, state in self._states().items() if state != self._before.get(name)
        }
        self._touched[graph] = tuple(sorted(changed))
        self._before = {}

    def replayed(self, graph: Any) -> None:
        """Of a graph that was captured before anyone watched, nothing is known."""
        names = self._touched.get(graph)
        if names is None:
            names = tuple(self._states())
        if names:
            self._recorder.lose_sight_in_graphs(names)

    def _states(self) -> dict[str, BucketState]:
        recorder = self._recorder
        return {
            bucket.name: recorder.memo.state(bucket.name) for bucket in recorder.partition.buckets
        }
