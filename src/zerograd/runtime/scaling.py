"""Loss scalers: what is scaled, unscaled, stepped and updated through which of them."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from torch.amp.grad_scaler import GradScaler
from torch.optim.optimizer import Optimizer

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules.scaler_bypassed import NEVER_SCALED, RULE, SCALE_IT
from zerograd.runtime import torch_facts
from zerograd.runtime.call_site import Site, argument_of
from zerograd.runtime.hand_work import BY_HAND
from zerograd.runtime.owners import Owner

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder

MOST_SCALERS = 64
MOST_PLACES = 2048
LOOKED_THROUGH = 4  # backwards of one spot whose whole graph is searched for a factor


class Scaling:
    """Hears the calls of loss scalers, for the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[int, tuple[weakref.ref[GradScaler], str]] = {}
        self._steps: dict[int, tuple[str, int, bool]] = {}  # by thread: scaler, optimizer, stepped
        self._serial = 0
        # Backwards of losses with no factor in them: how many, and from where.
        self._plain: dict[Spot, tuple[int, Site]] = {}
        self._deep: set[Site] = set()  # whose factor lies deep in the graph
        self._suspected: dict[tuple[str, Spot], int] = {}

    def __bool__(self) -> bool:
        """Has any scaler been met?"""
        return bool(self._known)

    def scales(self, scaler: GradScaler, loss: Any) -> None:
        name, names = self._name(scaler), self._recorder.names
        if not names.get(name):
            names[name] = self._recorder.sites.here(3).receiver
        torch_facts.mark_scaled(loss, name)

    def factor_in(self, roots: Any, site: Site) -> str:
        """Return the scaler whose factor the loss of a backward carries, "" for none."""
        if not self._known:
            return ""
        times, _ = self._plain.get(site.spot, (0, site))
        found = torch_facts.scaler_of(roots)
        if not found and (site in self._deep or times < LOOKED_THROUGH):
            found = torch_facts.scaler_of(roots, most=torch_facts.MOST_NODES)
            if found:
                self._deep.add(site)
        if max(len(self._plain), len(self._deep)) >= MOST_PLACES:
            self._plain.clear()
            self._deep.clear()
        if found:
            self._plain.pop(site.spot, None)
        else:
            self._plain[site.spot] = times + 1, site
        return found

    def _judge_loss(self, scaler: GradScaler, optimizer: Optimizer) -> None:
        """Tell of a step through a scaler that never scaled the loss.

        Silent where the factor may be in it in another way: a loss that is multiplied by
        anything, a gradient assigned by hand, code that torch.compile has made.
        """
        recorder = self._recorder
        owner = recorder.owners.of(optimizer)
        if owner is None or torch_facts.has_compiled():
            return
        states = [recorder.memo.state(bucket.name) for bucket in owner.buckets]
        held = [each for state in states for each in state.contributions]
        if not held or any(state.scaled or state.unknown for state in states):
            return
        is_certain = getattr(scaler, "_scale", None) is None  # it has never scaled anything
        for each in held:
            _, site = self._plain.get(each.spot, (0, None))
            plain = site is not None and recorder.leaves.averaged.get(site) is False
            if each.used_by or each.backward == BY_HAND or not (plain or is_certain):
                return
        key = (owner.name, held[-1].spot)
        if len(self._suspected) >= MOST_PLACES:
            self._suspected.clear()
        times = self._suspected[key] = self._suspected.get(key, 0) + 1
        if times == 2 and not (torch_facts.may_look_at_values() and scaler.get_scale() != 1.0):
            self._suspected[key] = 0
        elif times > 1 or is_certain:
            self._tell(scaler, owner, held[-1].spot)

    def _tell(self, scaler: GradScaler, owner: Owner, spot: Spot) -> None:
        names = {"scaler": self._name(scaler), "owner": owner.name}
        step = self._recorder.sites.here(4).spot
        trail = (
            TrailStep(spot, "fills the gradients, without the scale", ""),
            TrailStep(step, "divides them by the scale", ""),
        )
        message, advice = NEVER_SCALED.format_map(names), SCALE_IT.format_map(names)
        self._recorder.tell(Finding(RULE, spot, message, advice, owner.name, trail))

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
        self._judge_loss(scaler, optimizer)

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
