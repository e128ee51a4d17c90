"""Flower: clients that train in turns on weights they are handed."""

import torch
from flwr.client import NumPyClient
from torch import nn

from benchmarks.outside.training import main


def _net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def _weights(net):
    return [each.detach().numpy().copy() for each in net.state_dict().values()]


def _load(net, weights):
    tensors = map(torch.as_tensor, weights)
    net.load_state_dict(dict(zip(net.state_dict(), tensors, strict=True)))


def _rounds(clients):
    weights = _weights(_net())
    for turn in range(3):
        answers = [each.fit(weights, {"turn": turn})[0] for each in clients]
        weights = [sum(parts) / len(parts) for parts in zip(*answers, strict=True)]
    return [torch.as_tensor(each) for each in weights]


def averaging(fault):
    class Client(NumPyClient):
        def __init__(self, seed):
            self.net, self.data = _net(), torch.randn(12, 4) + seed

        def fit(self, parameters, config):
            _load(self.net, parameters)
            optimizer = torch.optim.SGD(self.net.parameters(), 0.05, momentum=0.9)
            for x in self.data.split(4):
                if fault != "never":
                    optimizer.zero_grad()
                loss = (self.net(x) - x.sum(1, keepdim=True)).pow(2).mean()
                loss.backward()
                if fault == "between":
                    optimizer.zero_grad()  # found: between ZG102
                optimizer.step()  # found: never ZG101
            return _weights(self.net), len(self.data), {}

    return _rounds([Client(seed) for seed in range(3)])


def proximal(fault):
    class Client(NumPyClient):
        def __init__(self, seed):
            self.net, self.data = _net(), torch.randn(16, 4) - seed
            self.optimizer = torch.optim.AdamW(self.net.parameters(), 1e-2)

        def fit(self, parameters, config):
            _load(self.net, parameters)
            start = [each.detach().clone() for each in self.net.parameters()]
            for turn, x in enumerate(self.data.split(4)):
                pairs = zip(self.net.parameters(), start, strict=True)
                near = sum((each - old).pow(2).sum() for each, old in pairs)
                loss = (self.net(x) - x.sum(1, keepdim=True)).pow(2).mean() + 0.1 * near
                (loss / 2).backward()
                if fault == "early":
                    self.net.zero_grad()  # found: early ZG102
                if turn % 2:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            return _weights(self.net), len(self.data), {}

    return _rounds([Client(seed) for seed in range(2)])


if __name__ == "__main__":
    main()
