"""fastai: a Learner with its own optimizers, with torch's, and windows by its callback."""

import torch
from fastai.callback import schedule  # noqa: F401 (gives Learner its fit_one_cycle)
from fastai.callback.training import GradientAccumulation, GradientClip
from fastai.data.core import DataLoaders
from fastai.learner import Callback, Learner
from fastai.optimizer import Adam, OptimWrapper
from torch import nn
from torch.utils.data import TensorDataset

from benchmarks.outside.training import main


def _loaders():
    from fastai.data.load import DataLoader

    data = TensorDataset(torch.randn(24, 4), torch.randn(24, 1))
    return DataLoaders(DataLoader(data, bs=4), DataLoader(data, bs=8))


def _learner(optimizer, *callbacks):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    learner = Learner(_loaders(), net, nn.functional.mse_loss, optimizer, cbs=callbacks)
    said = ("ProgressCallback", "Recorder")  # how long each epoch took, among other things
    learner.remove_cbs([each for each in learner.cbs if type(each).__name__ in said])
    return learner


def _of_torch(parameters, **more):
    return OptimWrapper(parameters, torch.optim.AdamW, **more)


def own_optimizer(fault):
    learner = _learner(Adam)
    learner.fit(2)
    return learner.model.parameters()


def one_cycle(fault):
    class Clearing(Callback):
        def before_step(self):
            if fault == "between":
                self.learn.opt.zero_grad()  # found: between ZG102

    learner = _learner(_of_torch, Clearing(), GradientClip(1.0))
    learner.fit_one_cycle(2)
    return learner.model.parameters()


def never_cleared(fault):
    learner = _learner(_of_torch)
    learner.create_opt()
    if fault == "never":
        learner.opt.opt.zero_grad = lambda *_, **__: None
    learner.fit(2)  # found: never ZG101
    return learner.model.parameters()


def windows(fault):
    class Clearing(Callback):
        def after_batch(self):
            if fault == "early":
                self.learn.opt.zero_grad()  # found: early ZG501

    learner = _learner(_of_torch, GradientAccumulation(8), Clearing())
    learner.fit(2)
    return learner.model.parameters()


if __name__ == "__main__":
    main()
