"""Catalyst: runners with batches handled by hand."""

import torch
from catalyst import dl
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.outside.training import main


def _loaders(size=4):
    data = TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
    return {"train": DataLoader(data, size), "valid": DataLoader(data, size)}


def _net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def handled_by_hand(fault):
    class Runner(dl.Runner):
        def handle_batch(self, batch):
            x, y = batch
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.batch_metrics = {"loss": loss}
            if self.is_train_loader:
                self.engine.backward(loss)
                if fault == "between":
                    self.optimizer.zero_grad()  # found: between ZG102
                self.optimizer.step()  # found: never ZG101
                if fault not in ("never", "between"):
                    self.optimizer.zero_grad()

    net = _net()
    Runner().train(
        model=net,
        optimizer=torch.optim.SGD(net.parameters(), 0.05),
        loaders=_loaders(),
        num_epochs=2,
        verbose=False,
        engine=dl.CPUEngine(),
    )
    return net.parameters()


if __name__ == "__main__":
    main()
