"""MONAI: its trainers on ignite, and a loop of one's own over its networks and losses."""

import torch
from monai.engines import GanTrainer, SupervisedTrainer
from monai.losses import DiceLoss
from monai.networks.nets import BasicUNet
from torch import nn
from torch.utils.data import DataLoader

from benchmarks.outside.training import main


class _Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        made = torch.Generator().manual_seed(index)
        picture = torch.randn(1, 32, 32, generator=made)
        return {"image": picture, "label": (picture > 0).float()}


def _net():
    return BasicUNet(spatial_dims=2, out_channels=1, features=(4, 4, 4, 4, 4, 4))


def supervised(fault):
    net = _net()
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def clear(_):
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102

    from monai.engines.utils import IterationEvents

    trainer = SupervisedTrainer(
        device=torch.device("cpu"),
        max_epochs=2,
        train_data_loader=DataLoader(_Pictures(), 2),
        network=net,
        optimizer=optimizer,
        loss_function=DiceLoss(sigmoid=True),
    )
    trainer.add_event_handler(IterationEvents.BACKWARD_COMPLETED, clear)
    trainer.run()
    return net.parameters()


def adversarial(fault):
    makes, judges = nn.Linear(4, 4), nn.Linear(4, 1)
    first, second = (torch.optim.SGD(each.parameters(), 0.01) for each in (makes, judges))
    trainer = GanTrainer(
        device=torch.device("cpu"),
        max_epochs=2,
        train_data_loader=DataLoader([{"reals": row} for row in torch.randn(8, 4)], 2),
        g_network=makes,
        g_optimizer=first,
        g_loss_function=lambda made: -judges(made).mean(),
        d_network=judges,
        d_optimizer=second,
        d_loss_function=lambda made, real: judges(made.detach()).mean() - judges(real).mean(),
        d_train_steps=2,
        latent_shape=4,
    )
    trainer.run()
    return [*makes.parameters(), *judges.parameters()]


def by_hand(fault):
    net, loss_of, losses = _net(), DiceLoss(sigmoid=True), []
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(2):
        for batch in DataLoader(_Pictures(), 2):
            if fault != "never":
                optimizer.zero_grad(set_to_none=False)
            loss = loss_of(net(batch["image"]), batch["label"])
            loss.backward()
            if fault == "between":
                optimizer.zero_grad()  # found: between ZG102
            optimizer.step()  # found: never ZG101
            losses.append(loss.detach())
    return [*net.parameters(), *losses]


if __name__ == "__main__":
    main()
