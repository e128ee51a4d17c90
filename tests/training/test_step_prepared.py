"""Objects prepared by Accelerate and by Lightning Fabric go into a Step as they are."""

from __future__ import annotations

import pytest
import torch
from token_task import TokenModel, mlp, relative_error, token_batches, token_loss, true_gradient
from torch.utils.data import DataLoader

from zerograd import Step, StepError, windows

COUNTS = [100, 3, 50, 128, 17]


def count(batch):
    return int((batch[1] != -100).sum())


class Watch(torch.optim.SGD):
    seen: torch.Tensor

    def step(self, closure=None):
        grads = [p.grad.flatten() for group in self.param_groups for p in group["params"]]
        self.seen = torch.cat(grads).double()


def collate(batch):
    return batch[0]


@pytest.fixture
def accelerator():
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState, PartialState

    yield Accelerator(cpu=True, gradient_accumulation_steps=2)
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def test_accelerate(accelerator):
    batches = token_batches(COUNTS)
    model = TokenModel()
    exact = [true_gradient(model, batches[i : i + 2]) for i in (0, 2, 4)]
    optimizer = Watch(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    loader = DataLoader(batches, batch_size=1, collate_fn=collate)
    prepared, prepared_optimizer, prepared_loader, prepared_scheduler = accelerator.prepare(
        model, optimizer, loader, scheduler
    )
    step = Step(prepared_optimizer, models=[prepared], scheduler=prepared_scheduler)
    errors = []
    for window, expected in zip(windows(prepared_loader, 2), exact, strict=True):
        with step(window):
            for batch in window:
                step.backward(token_loss(prepared, batch), weight=count(batch))
        errors.append(relative_error(optimizer.seen, expected))
    assert max(errors) < 1e-6
    assert scheduler.get_last_lr() == [0.1 * 0.5**3]


def test_an_accelerated_optimizer_cannot_be_stepped_inside_the_block(accelerator):
    model = mlp()
    optimizer = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.1))
    step = Step(optimizer, models=[model])
    with pytest.raises(StepError, match="Remove the call"), step:
        step.backward(model(torch.ones(1, 4)).sum())
        optimizer.step()


def test_the_scaler_of_an_accelerated_optimizer_is_found():
    from accelerate.optimizer import AcceleratedOptimizer
    from torch.amp import GradScaler

    class Prepared(AcceleratedOptimizer):
        def __init__(self, optimizer, scaler):  # without the process-wide state
            self.optimizer, self.scaler = optimizer, scaler

    model = mlp()
    scaler = GradScaler("cpu", init_scale=64.0)
    step = Step(Prepared(torch.optim.SGD(model.parameters(), lr=0.1), scaler))
    with step:
        step.backward(model(torch.ones(1, 4)).sum() * float("inf"))
    assert step.skipped and scaler.get_scale() == 32.0


def test_fabric():
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1)
    batches = token_batches(COUNTS)
    model = TokenModel()
    exact = [true_gradient(model, batches[i : i + 2]) for i in (0, 2, 4)]
    optimizer = Watch(model.parameters(), lr=0.1)
    prepared, prepared_optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(DataLoader(batches, batch_size=1, collate_fn=collate))
    step = Step(prepared_optimizer, models=[prepared])
    for window, expected in zip(windows(loader, 2), exact, strict=True):
        with step(window):
            for batch in window:
                step.backward(token_loss(prepared, batch), weight=count(batch))
        assert relative_error(optimizer.seen, expected) < 1e-6
