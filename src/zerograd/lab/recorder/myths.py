"""Sayings about clearing, each put to a run."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from zerograd.lab.recorder.numbers import short, shorts

Make = Callable[[Any], torch.optim.Optimizer]


def _every_optimizer() -> dict[str, type[torch.optim.Optimizer]]:
    found = {
        name: value
        for name, value in vars(torch.optim).items()
        if isinstance(value, type) and issubclass(value, torch.optim.Optimizer)
    }
    # SparseAdam wants sparse gradients, LBFGS a closure that fills the bucket itself
    return {name: kind for name, kind in sorted(found.items()) if name != "Optimizer"}


def optimizers_clear_nothing() -> dict[str, Any]:
    """Record for each class of torch.optim whether step() leaves the gradients as they were."""
    rows = {}
    for name, kind in _every_optimizer().items():
        torch.manual_seed(0)
        w = nn.Parameter(torch.randn(6, 4))
        sparse = name == "SparseAdam"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some say that they are beta
            optimizer = kind([w], lr=0.01)  # type: ignore[call-arg]
        if name == "LBFGS":
            optimizer.step(partial(_filled, w, sparse=False))
            left = bool(_dense(w).count_nonzero())
            rows[name] = "filled by its closure, not cleared" if left else "cleared"
            continue
        _filled(w, sparse=sparse)
        before = _dense(w)
        optimizer.step()
        rows[name] = "unchanged" if torch.equal(before, _dense(w)) else "changed"
    return rows


def _filled(w: nn.Parameter, *, sparse: bool) -> float:
    if sparse:
        loss = nn.functional.embedding(torch.tensor([0, 2]), w, sparse=True).square().sum()
    else:
        loss = w.square().sum()
    loss.backward()
    return loss.item()


def _dense(w: nn.Parameter) -> Tensor:
    assert w.grad is not None
    return w.grad.to_dense().clone() if w.grad.is_sparse else w.grad.clone()


_IDLE: dict[str, Make] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05),
    "SGD, weight decay": lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.01),
    "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def idle_head() -> list[dict[str, Any]]:
    """Compare clears to None and to zero, with every parameter used and with one idle at times."""
    rows = []
    for name, make in _IDLE.items():
        row: dict[str, Any] = {"optimizer": name}
        for idle in (False, True):
            ends = [_two_heads(make, to_none=to_none, idle=idle) for to_none in (True, False)]
            gap = (ends[0] - ends[1]).norm() / ends[0].norm()
            row["idle" if idle else "used"] = short(gap)
        rows.append(row)
    return rows


def _two_heads(make: Make, *, to_none: bool, idle: bool) -> Tensor:
    torch.manual_seed(0)
    body, heads = nn.Linear(4, 8), nn.ModuleList([nn.Linear(8, 1), nn.Linear(8, 1)])
    parameters = [*body.parameters(), *heads.parameters()]
    optimizer = make(parameters)
    generator = torch.Generator().manual_seed(1)
    for step in range(60):
        inputs = torch.randn(16, 4, generator=generator)
        features = torch.tanh(body(inputs))
        optimizer.zero_grad(set_to_none=to_none)
        used = [heads[0]] if idle and step % 3 else list(heads)
        losses = [(head(features) - 1).square().mean() for head in used]
        torch.stack(losses).sum().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in parameters])


def idle_weight(steps: int = 1000) -> dict[str, Any]:
    """Record a weight that gets no gradient under AdamW, cleared to zero and to None."""
    curves: dict[str, Any] = {"steps": steps, "every": 50}
    for name, to_none in (("zero", False), ("none", True)):
        used, idle = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        optimizer = torch.optim.AdamW([used, idle], lr=0.01, weight_decay=0.1)
        ((used + idle) * 0).sum().backward()  # both have a buffer once
        weights = [1.0]
        for step in range(1, steps + 1):
            optimizer.zero_grad(set_to_none=to_none)
            used.square().sum().backward()
            optimizer.step()
            if step % 50 == 0:
                weights.append(idle.item())
        curves[name] = shorts(weights)
    return curves


def after_clearing() -> list[dict[str, Any]]:
    """Record how far the weights move by a clear alone, and by a step on what it left."""
    rows = []
    makers: dict[str, Make] = {
        "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
        "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "SGD, weight decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
        "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    }
    for name, make in makers.items():
        row: dict[str, Any] = {"optimizer": name}
        for kind, to_none in (("none", True), ("zero", False)):
            torch.manual_seed(0)
            w = nn.Parameter(torch.randn(20))
            optimizer = make([w])
            for _ in range(3):
                optimizer.zero_grad()
                (w - 3).square().sum().backward()
                optimizer.step()
            start = w.detach().clone()
            optimizer.zero_grad(set_to_none=to_none)
            row["by_clear"] = float((w.detach() - start).abs().max())
            optimizer.step()
            row[f"by_step_on_{kind}"] = short((w.detach() - start).norm() / start.norm())
        rows.append(row)
    return rows


def exchanges(window: int = 4, updates: int = 3) -> dict[str, Any]:
    """Count all-reduces per update for a window, with and without no_sync().

    One gloo rank: how often a rank exchanges does not depend on how many there are.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = dist.FileStore(f"{folder}/store", 1)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            counts = {
                name: _exchanges(window, updates, clear_each=clear_each, no_sync=no_sync)
                for name, clear_each, no_sync in (
                    ("clear every micro-batch", True, False),
                    ("clear once a window", False, False),
                    ("clear once a window, no_sync()", False, True),
                )
            }
        finally:
            dist.destroy_process_group()
    return {"window": window, "per_update": counts}


def _exchanges(window: int, updates: int, *, clear_each: bool, no_sync: bool) -> float:
    count = 0

    def hook(_: object, bucket: Any) -> torch.futures.Future[Tensor]:
        nonlocal count
        count += 1
        done: torch.futures.Future[Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    hook.__annotations__.clear()  # DDP reads them, and they are strings here
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(updates):
        optimizer.zero_grad()
        for index in range(window):
            if clear_each:
                optimizer.zero_grad()
            quiet = no_sync and index < window - 1
            with model.no_sync() if quiet else nullcontext():
                (model(torch.ones(2, 4)).square().mean() / window).backward()
        optimizer.step()
    return count / updates


def other_routes() -> dict[str, Any]:
    """Record what the routes that return gradients leave in `.grad`."""
    w = nn.Parameter(torch.tensor(2.0))
    by_grad = torch.autograd.grad(w**2, [w])[0]
    left_by_grad = w.grad is None
    by_func = torch.func.grad(lambda v: v**2)(w.detach())
    return {
        "autograd_grad": {"value": float(by_grad), "grad_is_none": left_by_grad},
        "func_grad": {"value": float(by_func), "grad_is_none": w.grad is None},
    }
