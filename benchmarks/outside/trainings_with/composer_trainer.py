"""Composer: its Trainer with micro-batches, and an algorithm of the user's."""

import torch
from composer import Algorithm, ComposerModel, Event, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.outside.training import main


class _Model(ComposerModel):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, batch):
        return self.net(batch[0])

    def loss(self, outputs, batch):
        return (outputs - batch[1]).pow(2).mean()


def _trainer(model, optimizer, *algorithms):
    data = TensorDataset(torch.randn(24, 4), torch.randn(24, 1))
    return Trainer(
        model=model,
        optimizers=optimizer,
        train_dataloader=DataLoader(data, 8),
        max_duration="2ep",
        device="cpu",
        device_train_microbatch_size=4,
        algorithms=list(algorithms),
        progress_bar=False,
        log_to_console=False,
    )


def micro_batches(fault):
    class Clearing(Algorithm):
        def match(self, event, state):
            return event is Event.AFTER_BACKWARD

        def apply(self, event, state, logger):
            if fault == "between":
                state.model.zero_grad()  # found: between ZG102

    model = _Model()
    _trainer(model, torch.optim.AdamW(model.parameters(), 1e-2), Clearing()).fit()
    return model.parameters()


def never_cleared(fault):
    model = _Model()
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    if fault == "never":
        optimizer.zero_grad = lambda *_, **__: None
    _trainer(model, optimizer).fit()  # found: never ZG101
    return model.parameters()


if __name__ == "__main__":
    main()
