"""Ignite's engines and skorch's nets: the loop is theirs, the step may be the user's."""

import skorch
import torch
from ignite.engine import Engine, Events, create_supervised_trainer
from skorch.callbacks import Callback
from torch import nn

from benchmarks.outside.training import main


def _net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def _batches(count=8):
    return [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(count)]


def engine_by_hand(fault):
    net, losses = _net(), []
    optimizer = torch.optim.Adam(net.parameters())

    def update(engine, batch):
        if fault != "never":
            optimizer.zero_grad()
        loss = (net(batch[0]) - batch[1]).pow(2).mean()
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        losses.append(loss.detach())

    Engine(update).run(_batches(), max_epochs=2)
    return [*net.parameters(), *losses]


def supervised_windows(fault):
    net = _net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    trainer = create_supervised_trainer(
        net, optimizer, nn.functional.mse_loss, gradient_accumulation_steps=2
    )

    @trainer.on(Events.ITERATION_COMPLETED)
    def after(engine):
        if fault == "early":
            net.zero_grad()  # found: early ZG501

    trainer.run(_batches(), max_epochs=2)
    return net.parameters()


def scaled_by_hand(fault):
    net = _net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def update(engine, batch):
        optimizer.zero_grad()
        scaler.scale((net(batch[0]) - batch[1]).pow(2).mean()).backward()
        if fault != "clip":
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)  # found: clip ZG301
        scaler.step(optimizer)
        scaler.update()

    Engine(update).run(_batches(), max_epochs=2)
    return net.parameters()


def skorch_net(fault):
    class Between(Callback):
        def on_grad_computed(self, net, named_parameters, **_):
            if fault == "between":
                net.module_.zero_grad()  # found: between ZG102

    class Net(skorch.NeuralNetRegressor):
        def _zero_grad_optimizer(self, set_to_none=None):
            if fault != "never":
                super()._zero_grad_optimizer(set_to_none)

    net = Net(_net, max_epochs=3, lr=0.01, batch_size=8, verbose=0, callbacks=[Between()])
    net.fit(torch.randn(48, 4), torch.randn(48, 1))  # found: never ZG101
    return net.module_.parameters()


if __name__ == "__main__":
    main()
