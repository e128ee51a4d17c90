"""Avalanche: strategies that learn one experience after another."""

import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.supervised import EWC, Naive, Replay
from torch import nn
from torch.utils.data import TensorDataset

from benchmarks.outside.training import main


class _Rows(TensorDataset):
    def __init__(self, seed):
        made = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(0, 2, (16,), generator=made)
        super().__init__(torch.randn(16, 4, generator=made), self.targets)


def _strategy(kind, plugins, **more):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return kind(
        model=net,
        optimizer=torch.optim.SGD(net.parameters(), 0.05),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=4,
        train_epochs=2,
        evaluator=EvaluationPlugin(loggers=[]),
        plugins=plugins,
        **more,
    )


def _experiences():
    parts = [as_classification_dataset(_Rows(seed)) for seed in range(3)]
    return benchmark_from_datasets(train=parts).train_stream


def _learn(strategy):
    for experience in _experiences():
        strategy.train(experience)
    return strategy.model.parameters()


def naive(fault):
    class Clearing(SupervisedPlugin):
        def before_update(self, strategy, **_):
            if fault == "between":
                strategy.optimizer.zero_grad()  # found: between ZG102

    return _learn(_strategy(Naive, [Clearing()]))


def elastic_weights(fault):
    class Clearing(SupervisedPlugin):
        def after_backward(self, strategy, **_):
            if fault == "between":
                strategy.model.zero_grad()  # found: between ZG102

    return _learn(_strategy(EWC, [Clearing()], ewc_lambda=0.1))


def replay(fault):
    strategy = _strategy(Replay, [], mem_size=8)
    if fault == "never":
        strategy.optimizer.zero_grad = lambda *_, **__: None
    for experience in _experiences():
        strategy.train(experience)  # found: never ZG101
    return strategy.model.parameters()


if __name__ == "__main__":
    main()
