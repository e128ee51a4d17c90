"""Lightning: automatic and manual optimization, several optimizers, Fabric."""

import lightning
import torch
from lightning.pytorch.callbacks import GradientAccumulationScheduler, StochasticWeightAveraging
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.outside.training import main


def _data(count=24, size=4):
    return DataLoader(TensorDataset(torch.randn(count, 4), torch.randn(count, 1)), size)


def _trainer(**more):
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    off = dict.fromkeys(quiet, False)
    return lightning.Trainer(**{"max_epochs": 3, "accelerator": "cpu", **off, **more})


class _Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.losses = []

    def loss(self, batch):
        loss = (self.net(batch[0]) - batch[1]).pow(2).mean()
        self.losses.append(loss.detach())
        return loss

    def training_step(self, batch, index):
        return self.loss(batch)

    def validation_step(self, batch, index):
        self.log("quality", self.loss(batch))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def automatic(fault):
    class Model(_Regression):
        def optimizer_zero_grad(self, epoch, index, optimizer):
            if fault != "never":
                optimizer.zero_grad()

        def on_after_backward(self):
            if fault == "between":
                self.zero_grad()  # found: between ZG102

    model = Model()
    _trainer().fit(model, _data(), _data(8))  # found: never ZG101
    return [*model.parameters(), *model.losses]


def automatic_with_windows(fault):
    class Model(_Regression):
        def on_train_batch_end(self, *_):
            if fault == "early":
                self.optimizers().zero_grad()  # found: early ZG501

    model = Model()
    averaged = StochasticWeightAveraging(0.01, swa_epoch_start=2)
    _trainer(
        max_epochs=4, accumulate_grad_batches=3, gradient_clip_val=0.5, callbacks=[averaged]
    ).fit(model, _data())
    return [*model.parameters(), *model.losses]


def windows_that_grow(fault):
    model = _Regression()
    grows = GradientAccumulationScheduler({0: 1, 1: 2, 2: 4})
    _trainer(max_epochs=4, callbacks=[grows]).fit(model, _data(28))
    return [*model.parameters(), *model.losses]


def last_window_of_one_batch(fault):
    model = _Regression()
    _trainer(accumulate_grad_batches=3).fit(model, _data(28))
    return [*model.parameters(), *model.losses]


def manual(fault):
    class Model(_Regression):
        automatic_optimization = False

        def training_step(self, batch, index):
            optimizer = self.optimizers()
            if fault != "never":
                optimizer.zero_grad()
            self.manual_backward(self.loss(batch))
            if fault == "between":
                optimizer.zero_grad()  # found: between ZG102
            self.clip_gradients(optimizer, gradient_clip_val=0.5, gradient_clip_algorithm="norm")
            optimizer.step()  # found: never ZG101
            if fault == "twice":
                optimizer.step()  # found: twice ZG402

    model = Model()
    _trainer().fit(model, _data())
    return [*model.parameters(), *model.losses]


def manual_windows(fault):
    class Model(_Regression):
        automatic_optimization = False

        def training_step(self, batch, index):
            optimizer = self.optimizers()
            self.manual_backward(self.loss(batch) / 2)
            if (index + 1) % 2 == 0:
                optimizer.step()  # found: never ZG101
                if fault != "never":
                    optimizer.zero_grad()
            elif fault == "early":
                optimizer.zero_grad()  # found: early ZG501

    model = Model()
    _trainer().fit(model, _data())
    return [*model.parameters(), *model.losses]


def two_optimizers(fault):
    class Model(_Regression):
        automatic_optimization = False

        def __init__(self):
            super().__init__()
            self.judge = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))

        def training_step(self, batch, index):
            makes, judges = self.optimizers()
            if fault != "leak":
                self.toggle_optimizer(makes)
            makes.zero_grad()
            self.manual_backward(-self.judge(self.net(batch[0])).mean())
            makes.step()
            if fault != "leak":
                self.untoggle_optimizer(makes)
            if fault not in ("leak", "never"):
                judges.zero_grad()
            fake = self.judge(self.net(batch[0]).detach()).mean()
            self.manual_backward(fake - self.judge(batch[1]).mean())
            judges.step()  # found: leak ZG201, never ZG101
            if fault == "leak":
                judges.zero_grad()

        def configure_optimizers(self):
            return (
                torch.optim.Adam(self.net.parameters()),
                torch.optim.Adam(self.judge.parameters()),
            )

    model = Model()
    _trainer().fit(model, _data())
    return model.parameters()


def three_optimizers_at_their_own_pace(fault):
    class Model(_Regression):
        automatic_optimization = False

        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))

        def training_step(self, batch, index):
            loss = sum((part(batch[0]) - batch[1]).pow(2).mean() for part in self.parts)
            self.manual_backward(loss)
            for pace, optimizer in enumerate(self.optimizers(), 1):
                if index % pace == 0:
                    optimizer.step()
                if fault != "never":
                    optimizer.zero_grad()

        def configure_optimizers(self):
            return [torch.optim.SGD(part.parameters(), lr=0.01) for part in self.parts]

    model = Model()
    _trainer().fit(model, _data())
    return model.parameters()


def scaler_by_hand(fault):
    class Model(_Regression):
        automatic_optimization = False
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

        def training_step(self, batch, index):
            optimizer = self.optimizers(use_pl_optimizer=False)
            optimizer.zero_grad()
            self.scaler.scale(self.loss(batch)).backward()
            if fault != "clip":
                self.scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(self.parameters(), 0.5)  # found: clip ZG301
            self.scaler.step(optimizer)
            self.scaler.update()

    model = Model()
    _trainer().fit(model, _data())
    return [*model.parameters(), *model.losses]


def fabric(fault):
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    model, optimizer = fabric.setup(net, torch.optim.Adam(net.parameters()))
    losses = []
    for index, (x, y) in enumerate(fabric.setup_dataloaders(_data(48))):
        loss = (model(x) - y).pow(2).mean() / 2
        with fabric.no_backward_sync(model, enabled=index % 2 == 0):
            fabric.backward(loss)
        losses.append(loss.detach())
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        if index % 2 == 1:
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()  # found: never ZG101
            if fault != "never":
                optimizer.zero_grad()
    return [*net.parameters(), *losses]


if __name__ == "__main__":
    main()
