"""Training as it is done on a GPU: graphs, streams, scalers that skip; right ones silent."""

from __future__ import annotations

import gc
from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch import nn

import zerograd

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
    pytest.mark.filterwarnings("ignore"),  # a compiler has many
]

ROUNDS = 6


def parts(**how):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)).cuda()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2, **how)


def batches():
    torch.manual_seed(1)
    return [(torch.randn(8, 16, device="cuda"), torch.randn(8, 1, device="cuda"))
            for _ in range(ROUNDS)]  # fmt: skip


@contextmanager
def captured():
    """Capture a graph. A dead one that the collector finds meanwhile would break the capture."""
    gc.collect()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        yield graph


def replays(model, loss_of=nn.functional.mse_loss, *, step=None, adds=False):
    """Capture a backward, and a step if there is one; yield after a replay for each batch.

    Args:
        adds: leave gradients there when the capture begins, so that each replay adds to them.
    """
    x, y = torch.zeros(8, 16, device="cuda"), torch.zeros(8, 1, device="cuda")
    stream = torch.cuda.Stream()  # a capture asks for a warm-up on a stream of its own
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model.zero_grad(set_to_none=True)
            loss_of(model(x), y).backward()
    torch.cuda.current_stream().wait_stream(stream)
    if not adds:
        model.zero_grad(set_to_none=True)
    with captured() as graph:
        loss_of(model(x), y).backward()
        if step is not None:
            step()
    for data, target in batches():
        if adds:
            model.zero_grad(set_to_none=False)
        x.copy_(data)
        y.copy_(target)
        graph.replay()
        yield


def plain(clear=True):
    model, optimizer = parts(fused=True)
    for x, y in batches():
        if clear:
            optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


def whole_graph():
    """Forward, backward and step in one graph, replayed."""
    model, optimizer = parts(capturable=True)
    for _ in replays(model, step=optimizer.step):
        pass
    return model


def graph_then_step(adds=False):
    """Forward and backward in a graph, the step outside: each replay writes the gradients anew."""
    model, optimizer = parts()
    for _ in replays(model, adds=adds):
        optimizer.step()
    return model


def graph_that_adds():
    return graph_then_step(adds=True)


def graph_of_the_eyes_only(clear=True):
    """A graph that only looks, beside training that is seen."""
    model, optimizer = parts()
    looked = torch.zeros(8, 16, device="cuda")
    with torch.no_grad():
        model(looked)  # warms up
        torch.cuda.synchronize()
        with captured() as graph:
            model(looked)
    for x, y in batches():
        graph.replay()
        if clear:
            optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


def graph_with_scaler():
    model, optimizer = parts()
    scaler = torch.amp.GradScaler("cuda")
    for _ in replays(model, lambda out, y: scaler.scale(nn.functional.mse_loss(out, y))):
        scaler.step(optimizer)
        scaler.update()
    return model


def graphed_callable(clear=True):
    model, optimizer = parts()
    model = torch.cuda.make_graphed_callables(model, (torch.randn(8, 16, device="cuda"),))
    for x, y in batches():
        if clear:
            optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


def compiled(clear=True, mode="reduce-overhead"):
    model, optimizer = parts()
    fast = torch.compile(model, mode=mode)
    for x, y in batches():
        nn.functional.mse_loss(fast(x), y).backward()
        optimizer.step()
        if clear:
            optimizer.zero_grad()
    return model


def scaled(unscale=True, start=2.0**40):
    """A scale so large that the first steps are skipped."""
    model, optimizer = parts()
    scaler = torch.amp.GradScaler("cuda", init_scale=start)
    for x, y in batches():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        if unscale:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return model


def two_streams():
    """Two losses on streams of their own, into one step."""
    model, optimizer = parts()
    side = torch.cuda.Stream()
    for x, y in batches():
        optimizer.zero_grad()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            (nn.functional.mse_loss(model(x[:4]), y[:4]) / 2).backward()
        torch.cuda.current_stream().wait_stream(side)
        (nn.functional.mse_loss(model(x[4:]), y[4:]) / 2).backward()
        optimizer.step()
    return model


def offloaded():
    from torch.utils.checkpoint import checkpoint

    model, optimizer = parts()
    for x, y in batches():
        optimizer.zero_grad()
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            out = checkpoint(model, x, use_reentrant=False)
        nn.functional.mse_loss(out, y).backward()
        optimizer.step()
    return model


RIGHT = (
    *(plain, compiled, scaled, two_streams, offloaded, graphed_callable, whole_graph),
    *(graph_then_step, graph_that_adds, graph_of_the_eyes_only, graph_with_scaler),
)


@pytest.mark.parametrize("train", RIGHT, ids=lambda train: train.__name__)
def test_right_training_is_silent_and_comes_out_the_same(train):
    alone = [p.detach().clone() for p in train().parameters()]
    with zerograd.watch(policy="collect") as watch:
        watched = train()
    assert [f"{each.rule.code} {each.message}" for each in watch.findings] == []
    assert all(map(torch.equal, alone, watched.parameters()))


@pytest.mark.parametrize(
    ("train", "how", "code"),
    [
        (plain, {"clear": False}, "ZG101"),
        (graphed_callable, {"clear": False}, "ZG101"),
        (graph_of_the_eyes_only, {"clear": False}, "ZG101"),
        (compiled, {"clear": False, "mode": "default"}, "ZG101"),
        (scaled, {"unscale": False, "start": 2.0**10}, "ZG301"),
    ],
)
def test_faults_are_found(train, how, code):
    with zerograd.watch(policy="collect") as watch:
        train(**how)
    assert code in [each.rule.code for each in watch.findings]


@pytest.mark.parametrize("train", [whole_graph, graph_then_step, graph_that_adds])
def test_the_run_begins_while_a_graph_is_there_already(train):
    """Attached late, between two replays, it says nothing either."""
    watchers = []
    before = torch.cuda.CUDAGraph.replay

    def replay(graph):
        if not watchers:
            watchers.append(zerograd.watch(policy="collect").start())
        return before(graph)

    torch.cuda.CUDAGraph.replay = replay
    try:
        train()
    finally:
        torch.cuda.CUDAGraph.replay = before
        watchers[0].stop()
    assert watchers[0].findings == []


def peak(watched, **how):
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with zerograd.watch(policy="collect") if watched else nullcontext():
        plain(**how)
    return torch.cuda.max_memory_allocated() - before


def test_peak_memory_is_equal():
    peak(watched=True)  # warms up
    assert peak(watched=False) == peak(watched=True)


def test_what_confirms_a_fault_takes_no_more_than_the_gradients_once():
    gradients = [p.numel() * p.element_size() for p in parts()[0].parameters()]
    most = sum(-(-each // 512) * 512 for each in gradients)  # as they are allocated
    peak(watched=True, clear=False)
    extra = peak(watched=True, clear=False) - peak(watched=False, clear=False)
    assert 0 <= extra <= most
