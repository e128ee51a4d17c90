"""CUDA graphs, played by one that writes gradients past every hook and version counter."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import zerograd


class Graph:
    """Replays what a capture filled: by the address of the gradients, as a GPU does."""

    def capture_begin(self):
        pass

    def capture_end(self):
        pass

    def replay(self):
        for p in self.model.parameters():
            p.grad.numpy()[...] = 1.0


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)


def train(captures, *, clear=True):
    """Train through a graph's replays, or beside one that was captured with nothing in it."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    graph = Graph()
    graph.model = model
    graph.capture_begin()
    if captures:
        model(torch.ones(3, 2)).mean().backward()
    graph.capture_end()
    for _ in range(5):
        if captures:
            graph.replay()
        else:
            model(torch.ones(3, 2)).mean().backward()
            graph.replay()
        optimizer.step()
        if clear:
            optimizer.zero_grad(set_to_none=False)


@pytest.mark.parametrize("clear", [True, False])
def test_gradients_that_a_replay_writes_are_not_judged(clear):
    with zerograd.watch(policy="collect") as watch:
        train(captures=True, clear=clear)
    assert watch.findings == []
    assert watch.not_checked == ["gradients inside a CUDA graph: its replays are not seen"]


def test_a_graph_that_touches_none_hides_nothing():
    with zerograd.watch(policy="collect") as watch:
        train(captures=False, clear=False)
    assert [each.rule.code for each in watch.findings] == ["ZG101"]
    assert watch.not_checked == []


def test_the_class_is_as_it_was_afterwards():
    before = vars(Graph).copy()
    with zerograd.watch(policy="collect"):
        assert vars(Graph)["replay"] is not before["replay"]
    assert vars(Graph)["replay"] is before["replay"]
