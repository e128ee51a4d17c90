"""`Step`: one `with` block is one update, in the right order, with the right mean."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from zerograd.buffers.arena import GradArena
from zerograd.errors import StepError
from zerograd.training import closures, misuse, normalise, ownership, saved
from zerograd.training.arguments import (
    check_clip,
    evaluate,
    find_scaler,
    list_models,
    make_arena,
    refuse_loss,
    shared_device,
)
from zerograd.training.canaries import Canaries
from zerograd.training.gradients import Gradients
from zerograd.training.neighbours import Neighbours
from zerograd.training.normalise import DeviceLedger, HostLedger, Weight, check_weight
from zerograd.training.ranks import find_ranks, raise_if_lost_rank
from zerograd.training.schedule import list_schedulers
from zerograd.training.update import Updater
from zerograd.training.windows import Window

Loss = torch.Tensor | Callable[[], torch.Tensor]


class Step:
    """The sole owner of clear, backward, scale, clip and step for some optimizers.

    ::

        step = Step(optimizer, models=[model], clip=1.0, scaler=scaler, scheduler=scheduler)
        for window in windows(loader, 8):
            with step(window):
                for batch in window:
                    step.backward(mean_loss(model(batch.x), batch.y), weight=batch.tokens)

    `loss` is a mean over `weight` items; the update uses the mean over all items of the
    window, on all ranks. A block that ends well steps once and clears; one that raises
    drops its window. Misuse raises `StepError`, which says what to write instead.

    models: every model the losses go through, as it is called (the DDP or FSDP2 one).
    clip, norm_type: clip by the norm of all gradients together; `math.inf` only measures.
    clip_value: cut each element instead.
    scaler, scheduler: a `GradScaler`; one scheduler or several, moved only if stepped.
    arena: True gathers the gradients in one flat buffer to take their norm and clip them;
    a GradArena of your own keeps them there all the time, at fixed addresses.
    sync_every: exchange gradients between ranks at each micro-batch, not at the last one
    alone; slower, and saves the memory that FSDP2 needs to hold whole gradients.
    """

    def __init__(
        self,
        *optimizers: Any,
        models: nn.Module | Iterable[nn.Module] = (),
        clip: float | None = None,
        clip_value: float | None = None,
        norm_type: float = 2.0,
        scaler: Any = None,
        scheduler: Any = None,
        arena: bool | GradArena = False,
        sync_every: bool = False,
    ) -> None:
        if not optimizers:
            raise TypeError("Step() needs an optimizer: Step(optimizer, models=[model])")
        self._optimizers: list[Optimizer] = [ownership.unwrap(each) for each in optimizers]
        self._models = list_models(models)
        check_clip(clip, clip_value, norm_type)
        self._scaler = find_scaler(scaler, optimizers)
        self._closure_wanted = closures.are_wanted(self._optimizers, self._scaler)
        schedulers = list_schedulers(scheduler)
        parameters = ownership.parameters_of(self._optimizers)
        if not parameters:
            raise StepError("The optimizer holds no parameters, so there is nothing to step.")
        self._ranks = find_ranks(self._models, parameters, sync_every=sync_every)
        flat = make_arena(arena, parameters, self._models, self._optimizers)
        self._gradients = Gradients(parameters, flat)
        self._guard = ownership.Guard(self._optimizers, self._scaler)
        ownership.claim(self._guard, parameters)
        weakref.finalize(self, self._guard.release)
        self._updater = Updater(
            self._optimizers,
            self._guard,
            clip=clip,
            clip_value=clip_value,
            norm_type=norm_type,
            scaler=self._scaler,
            schedulers=schedulers,
            arena=flat,
        )
        self._group_count = ownership.count_parameters(self._optimizers)
        self._neighbours = Neighbours(self._guard, self._models)
        self._canaries = Canaries(parameters)
        self._ledger: HostLedger | DeviceLedger = HostLedger()
        if self._ranks is not None and self._ranks.meets_on_device:
            self._ledger = DeviceLedger(parameters[0].device)
        self._window: Window[Any] | None = None
        self._evaluations: list[closures.Evaluation] = []
        self._count = 0  # backwards in this window
        self._is_broken = False  # a backward of this window failed halfway
        self._is_dropped = False
        self._resumed: dict[str, Any] | None = None

    # the block

    def __call__(self, window: Window[Any]) -> Step:
        """Bind the window whose batches this block draws: `with step(window):`."""
        if not isinstance(window, Window):
            raise TypeError(
                f"step() takes a window of zerograd.windows(loader, k), not "
                f"{type(window).__name__}. Without windows, write `with step:`."
            )
        self._window = window
        return self

    def __enter__(self) -> Step:
        guard = self._guard
        window, self._window = self._window, None
        if guard.is_open:
            raise StepError(misuse.NESTED)
        if not guard.handles:
            raise StepError(misuse.CLOSED)
        if self._scaler is not None and ownership.shares_open_scaler(guard):
            raise StepError(misuse.SHARED_SCALER)
        if ownership.count_parameters(self._optimizers) != self._group_count:
            self._adopt_new_parameters()
        if self._gradients.are_filled():
            raise StepError(misuse.LEFTOVERS)
        if self._gradients.arena is not None:
            self._canaries.record()
        else:
            self._canaries.expect_none()
        guard.is_open = True
        if self._resumed is not None:
            self._continue_window()
        if self._ranks is not None:
            self._ranks.open(window is not None)
        if window is not None:
            self._bind(window)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        done = False
        try:
            # what is dropped here still has to meet the other ranks
            if kind is None and (not self._is_dropped or self._ranks is not None):
                self._finish()
                done = True
        finally:
            self._leave(done)
        if self._ranks is not None and isinstance(error, RuntimeError):
            raise_if_lost_rank(error)  # a forward that waited for a rank that does not come

    def drop(self) -> None:
        """Give up this window's gradients; the block then ends without an update.

        What it sends backward after this is left out too.
        With several ranks the others go on, this one takes part with weight 0; that must
        be decided before the window's last backward, in which the ranks exchange.
        """
        self._must_be_open("drop")
        if self._ranks is not None and self._ranks.is_synced:
            raise StepError(misuse.EXCHANGED)
        self._gradients.clear()
        self._canaries.record()
        self._ledger.reset()
        self._evaluations = []
        self._count, self._is_dropped, self._is_broken = 0, True, False

    def backward(
        self,
        loss: Loss,
        weight: Any = 1.0,
        *,
        retain_graph: bool | None = None,
        create_graph: bool = False,
    ) -> None:
        """Add the gradients of `loss`, a mean over `weight` items, to this block's own.

        An optimizer that evaluates its loss several times (LBFGS) takes a function that
        returns the loss: `step.backward(lambda: loss_fn(model(x), y))`.
        """
        if not self._guard.is_open:
            self._must_be_open("backward")
        if self._is_broken or self._is_dropped:
            if self._is_dropped:
                return
            raise StepError(misuse.BROKEN)
        if weight.__class__ is not float:
            weight = check_weight(weight)
        elif weight and not normalise.LIGHTEST <= weight <= normalise.HEAVIEST:
            check_weight(weight)
        if self._closure_wanted:
            self._evaluations.append((closures.check_evaluation(loss, self._optimizers[0]), weight))
            self._count += 1
            return
        if not isinstance(loss, torch.Tensor):
            loss = evaluate(loss)
        if not loss.requires_grad or loss.numel() != 1:
            refuse_loss(loss)
        self._canaries.check()
        self._run_backward(loss, weight, retain_graph, create_graph)
        is_seen = self._canaries.record()
        if not self._count and (not is_seen or self._gradients.arena is not None):
            self._look_for_gradient()
        self._count += 1

    @property
    def skipped(self) -> bool:
        """Whether the last block made no update: overflow, bad weights, drop(), an exception.

        With a fused optimizer and a scaler, or with weights on a device, only the device
        knows; reading this waits for it.
        """
        return self._updater.skipped

    @property
    def grad_norm(self) -> float | None:
        """The gradients' norm before the last clip; None without `clip`. Reading it waits."""
        return self._updater.grad_norm

    def settle(self) -> None:
        """Wait for what the device still has to say, and move the schedulers accordingly.

        A Step does this by itself before its next update. Call it before you save a
        scheduler or read its rate after the last block (see `skipped`).
        """
        self._updater.settle()

    def close(self) -> None:
        """Give up the ownership of the optimizers; the Step cannot be used afterwards."""
        if self._guard.is_open:
            raise StepError("close() was called inside the block. Call it after the block.")
        self._updater.settle()
        self._guard.release()
        self._guard.handles = []
        if self._ranks is not None:
            self._ranks.release()

    # saving and going on

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on, in the middle of a window too: then its gradients are in it.

        Save it beside the states of the model, optimizer, scaler and scheduler, on each
        rank its own. `drawn` is the number of batches the open window has handed out.
        """
        self._updater.settle()
        total, scale = self._ledger.state()
        state = saved.between_windows(scale)
        if not self._guard.is_open:
            return state if self._resumed is None else self._resumed
        self._canaries.check()
        if self._evaluations:
            raise StepError("A window of functions cannot be saved: save between the blocks.")
        if self._ranks is not None and self._ranks.is_sharded and not self._ranks.is_synced:
            raise StepError(misuse.HALF_SHARDED)
        state["total"], state["count"] = total, self._count
        state["drawn"] = 0 if self._drawing is None else self._drawing.drawn + self._drawn_before
        state["grads"] = self._gradients.copies()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a saved state; the next block goes on with the window it was saved in."""
        if self._guard.is_open:
            raise StepError("load_state_dict() was called inside the block. Call it before.")
        saved.check_state(state, self._gradients.parameters)
        self._ledger.restore(0.0, float(state["scale"]))
        self._resumed = dict(state) if state.get("grads") is not None else None

    # inside

    _drawing: Window[Any] | None = None  # the window of the open block
    _drawn_before = 0  # batches its first part had drawn before a restart

    def _bind(self, window: Window[Any]) -> None:
        self._drawing = window
        if self._ranks is not None:
            window.look_ahead = self._ranks.is_sharded
            window.listen(self._ranks.before_batch)

    def _must_be_open(self, what: str) -> None:
        if not self._guard.is_open:
            raise StepError(misuse.outside(what))

    def _run_backward(
        self,
        loss: torch.Tensor,
        weight: Weight,
        retain_graph: bool | None = None,
        create_graph: bool = False,
    ) -> None:
        if weight.__class__ is not float and isinstance(self._ledger, HostLedger):
            self._ledger = self._ledger.to_device(shared_device(weight, loss))
        root = self._ledger.root(loss, weight)  # type: ignore[arg-type]
        if self._scaler is not None:
            loss = self._scaler.scale(loss)
        held = self._neighbours.set_aside() if self._neighbours.are_there() else None
        try:
            self._is_broken = True  # until the backward has come through
            loss.backward(root, retain_graph, create_graph)
            self._is_broken = False
        except RuntimeError as error:
            if self._ranks is not None:
                raise_if_lost_rank(error)
            raise
        finally:
            if held is not None:
                self._neighbours.put_back(held)
        self._ledger.add(weight)  # type: ignore[arg-type]
        if self._ranks is not None:
            self._ranks.after_backward()

    def _look_for_gradient(self) -> None:
        """After a window's first backward, where the canaries did not show one."""
        if self._ranks is not None and self._ranks.is_sharded and not self._ranks.is_synced:
            return  # FSDP2 shows a gradient only once it is exchanged
        if not self._gradients.are_filled():
            raise StepError(misuse.NO_GRADIENT)
        self._canaries.choose(self._gradients.parameters)  # those watched so far are never filled
        self._canaries.record()

    def _finish(self) -> None:
        """The update, at the end of a block that did not raise."""
        if self._is_broken:
            raise StepError(misuse.BROKEN)
        self._canaries.check()
        if not self._count and self._ranks is None:
            raise StepError(misuse.NO_BACKWARD)
        if self._closure_wanted:
            self._updater.apply_closure(self._evaluate_window)
            return
        if self._ranks is not None:
            self._ranks.finish()
        factor = self._ledger.close(self._ranks)
        self._updater.apply(self._gradients.parameters, factor, self._ledger.invalid)

    @torch.enable_grad()
    def _evaluate_window(self) -> torch.Tensor:
        """The window's mean loss with its gradients in place, as a closure must give it."""
        self._gradients.clear()
        self._ledger.reset()
        mean = closures.send_all(self._evaluations, self._run_backward, self._ledger, self._ranks)
        factor = self._ledger.close(self._ranks)
        self._updater.edit(self._gradients.parameters, factor)
        return mean

    def _leave(self, is_done: bool) -> None:
        self._gradients.clear()
        self._guard.is_open = False
        self._canaries.forget()
        self._count = 0
        if self._evaluations:
            self._evaluations = []
        if self._drawing is not None:
            self._drawing.listen(None)
            self._drawing, self._drawn_before = None, 0
        if self._ranks is not None:
            self._ranks.close()
        if not is_done:
            self._ledger.reset()
            self._updater.give_up()
        self._is_broken = self._is_dropped = False

    def _adopt_new_parameters(self) -> None:
        """A group was added to an optimizer, as for layers that are unfrozen later."""
        parameters = ownership.parameters_of(self._optimizers)
        ownership.claim(self._guard, parameters)
        self._gradients.adopt(parameters)
        self._canaries.choose(parameters)
        self._group_count = ownership.count_parameters(self._optimizers)

    def _continue_window(self) -> None:
        state, self._resumed = self._resumed, None
        assert state is not None
        saved.put_back(state, self._gradients, self._ledger, self._scaler)
        self._count, self._drawn_before = int(state["count"]), int(state["drawn"])
        if self._count:
            self._canaries.choose(self._gradients.parameters)
            self._canaries.record()
