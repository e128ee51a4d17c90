"""Loss scalers: what is scaled, unscaled, stepped and updated through which of them."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from torch.amp.grad_scaler import GradScaler
from torch.optim.optimizer import Optimizer

from zerograd.lifecycle.events import Event, EventKind
from zerograd.runtime import torch_facts
from zerograd.runtime.call_site import argument_of

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder

MOST_SCALERS = 64


class Scaling:
    """Hears the calls of loss scalers, for the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[int, tuple[weakref.ref[GradScaler], str]] = {}
        self._steps: dict[int, tuple[str, int, bool]] = {}  # by thread: scaler, optimizer, stepped
        self._serial = 0

    def __bool__(self) -> bool:
        """Has any scaler been met?"""
        return bool(self._known)

    def scales(self, scaler: GradScaler, loss: Any) -> None:
        name, names = self._name(scaler), self._recorder.names
        if not names.get(name):
            names[name] = self._recorder.sites.here(3).receiver
        torch_facts.mark_scaled(loss, name)

    def unscaled(self, scaler: GradScaler, optimizer: Optimizer, failed: bool = False) -> None:
        recorder = self._recorder
        owner = recorder.owners.of(optimizer)
        if owner is None:
            return
        # torch refuses a second unscale before update(): that call is the fault, and does nothing.
        # After a step it is the step that waits for the update.
        if failed and not any(
            owner.name in state.halfway and owner.name not in state.awaiting
            for state in (recorder.memo.state(each.name) for each in owner.buckets)
        ):
            return
        site, name = recorder.sites.here(3), self._name(scaler)
        if not owner.display:
            recorder.call(owner, argument_of(site.text))
        recorder.unseen.before_use(owner.buckets, site)
        key = (EventKind.UNSCALE, site, owner.name, owner.mask, name)
        symbol = recorder.symbols.get(key)
        if symbol is None:
            names = recorder.names_of(owner.mask)
            kind = EventKind.UNSCALE
            event = Event(kind, owner.name, site.spot, names, site.text, scaler=name)
            symbol = recorder.new(key, event)
        recorder.feed(symbol)

    def step_begins(self, scaler: GradScaler, optimizer: Optimizer) -> None:
        self._steps[threading.get_ident()] = (self._name(scaler), id(optimizer), False)

    def step_ends(self, scaler: GradScaler, optimizer: Optimizer, failed: bool) -> None:
        name, _, stepped = self._steps.pop(threading.get_ident(), ("", 0, True))
        recorder = self._recorder
        owner = recorder.owners.of(optimizer)
        if stepped or owner is None:
            return
        site = recorder.sites.here(3)
        if not owner.display:
            recorder.call(owner, argument_of(site.text))
        # torch refuses a second step before update(): that call is the fault, and no step.
        awaiting = (recorder.memo.state(each.name).awaiting for each in owner.buckets)
        if not failed or any(owner.name in each for each in awaiting):
            recorder.steps.feed(EventKind.STEP_SKIPPED, owner, site, name)

    def updates(self, scaler: GradScaler) -> None:
        recorder = self._recorder
        site, name = recorder.sites.here(3), self._name(scaler)
        key = (EventKind.SCALER_UPDATE, site, name)
        symbol = recorder.symbols.get(key)
        if symbol is None:
            names = tuple(bucket.name for bucket in recorder.partition.buckets)
            kind = EventKind.SCALER_UPDATE
            symbol = recorder.new(key, Event(kind, "", site.spot, names, site.text, scaler=name))
        recorder.feed(symbol)

    def is_stepping(self) -> bool:
        """Is a scaler stepping an optimizer?"""
        return bool(self._steps)

    def around(self, optimizer: Optimizer) -> str:
        """Return the scaler that steps this optimizer now, and take note that it does; or ""."""
        thread = threading.get_ident()
        name, number, _ = self._steps.get(thread, ("", 0, False))
        if number != id(optimizer):
            return ""
        self._steps[thread] = (name, number, True)
        return name

    def factor_of(self, name: str) -> Any:
        """Return the tensor that holds the factor of a scaler, None if it has none."""
        for ref, known in self._known.values():
            if known == name:
                return getattr(ref(), "_scale", None)
        return None

    def _name(self, scaler: GradScaler) -> str:
        entry = self._known.get(id(scaler))
        if entry is None or entry[0]() is not scaler:
            if entry is not None:  # one that is gone had the same number
                self._recorder.names.pop(entry[1], None)
            if len(self._known) >= MOST_SCALERS:
                for key, (ref, name) in list(self._known.items()):
                    if ref() is None:
                        del self._known[key]
                        self._recorder.names.pop(name, None)
            self._serial += 1
            entry = self._known[id(scaler)] = (weakref.ref(scaler), f"scaler#{self._serial}")
        return entry[1]
