"""Each stage against a reference without buffers; then both witnesses over the whole file."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zerograd.learn.grading import Wrong

Batches = list[tuple[Tensor, Tensor]]
bce = nn.functional.binary_cross_entropy_with_logits
mse = nn.functional.mse_loss


def _net(inputs: int, outputs: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs))


def _batches(count: int, width: int = 1) -> Batches:
    torch.manual_seed(5)
    return [(torch.randn(8, 4), torch.randn(8, width)) for _ in range(count)]


def _update(
    loss: Tensor, net: nn.Module, optimizer: torch.optim.Optimizer, max_norm: float | None = None
) -> None:
    """Step on the gradients of this loss alone, computed afresh."""
    parameters = list(net.parameters())
    for p, grad in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        p.grad = grad
    if max_norm is not None:
        nn.utils.clip_grad_norm_(parameters, max_norm)
    optimizer.step()


def _compare(stage: str, why: str, *pairs: tuple[nn.Module, nn.Module]) -> None:
    for net, wanted in pairs:
        weights = zip(net.parameters(), wanted.parameters(), strict=True)
        if not all(torch.allclose(p, q, atol=1e-5) for p, q in weights):
            raise Wrong(f"{stage}: the weights are not what the docstring asks for. {why}")


def check_pretrain(solution: Any) -> None:
    """pretrain: each update comes from its own batch"""
    net, batches = _net(4, 1, 0), _batches(6)
    wanted = copy.deepcopy(net)
    optimizer = torch.optim.SGD(wanted.parameters(), lr=0.02)
    for inputs, targets in batches * 2:
        _update(mse(wanted(inputs), targets), wanted, optimizer)
    solution.pretrain(net, batches, 2)
    _compare("pretrain", "How often is the bucket emptied, and how often filled?", (net, wanted))


def check_warm_up(solution: Any) -> None:
    """warm_up: each update comes from its own batch, with the rising step size"""
    net, batches = _net(4, 1, 1), _batches(6)
    wanted = copy.deepcopy(net)
    optimizer = torch.optim.Adam(wanted.parameters(), lr=0.01)
    rise = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=len(batches))
    for inputs, targets in batches:
        _update(mse(wanted(inputs), targets), wanted, optimizer)
        rise.step()
    solution.warm_up(net, batches)
    _compare("warm_up", "Read every line as Python does: is each call a call?", (net, wanted))


def check_scaled(solution: Any) -> None:
    """train_scaled: the true norm is clipped"""
    net, batches = _net(4, 1, 2), _batches(6)
    wanted = copy.deepcopy(net)
    optimizer = torch.optim.SGD(wanted.parameters(), lr=0.1, momentum=0.9)
    for inputs, targets in batches:
        _update(mse(wanted(inputs), targets), wanted, optimizer, max_norm=0.3)
    solution.train_scaled(net, batches, 0.3)
    _compare("train_scaled", "How large are the gradients that the clip sees?", (net, wanted))


def check_windows(solution: Any) -> None:
    """train_in_windows: every batch of a window counts"""
    net, batches = _net(4, 1, 3), _batches(8)
    wanted = copy.deepcopy(net)
    optimizer = torch.optim.SGD(wanted.parameters(), lr=0.1)
    for start in range(0, 8, 4):
        losses = [mse(wanted(x), y) for x, y in batches[start : start + 4]]
        _update(torch.stack(losses).mean(), wanted, optimizer)
    solution.train_in_windows(net, batches, 4)
    _compare("train_in_windows", "How many of the 4 batches are in the bucket?", (net, wanted))


def check_gan(solution: Any) -> None:
    """train_gan: each net is moved by its own loss alone"""
    netG, netD = _net(2, 4, 4), _net(4, 1, 5)
    wantG, wantD = copy.deepcopy(netG), copy.deepcopy(netD)
    batches = _batches(6, width=2)
    optG = torch.optim.SGD(wantG.parameters(), lr=0.1)
    optD = torch.optim.SGD(wantD.parameters(), lr=0.1)
    for real, noise in batches:
        on_real, on_fake = wantD(real), wantD(wantG(noise).detach())
        loss = bce(on_real, torch.ones_like(on_real)) + bce(on_fake, torch.zeros_like(on_fake))
        _update(loss, wantD, optD)
        judged = wantD(wantG(noise))
        _update(bce(judged, torch.ones_like(judged)), wantG, optG)
    solution.train_gan(netG, netD, batches)
    why = "What does the other loss leave in its bucket, and who empties it?"
    _compare("train_gan, netD", why, (netD, wantD))
    _compare("train_gan, netG", why, (netG, wantG))


def check_distil(solution: Any) -> None:
    """distil: the student learns, one update per batch"""
    student, teacher, batches = _net(4, 1, 6), _net(4, 1, 7), _batches(6)
    wanted = copy.deepcopy(student)
    optimizer = torch.optim.AdamW(wanted.parameters(), lr=0.01, weight_decay=0.0)
    for inputs, _ in batches:
        _update(mse(wanted(inputs), teacher(inputs).detach()), wanted, optimizer)
    solution.distil(student, teacher, batches)
    _compare("distil", "What is in the bucket when step() looks into it?", (student, wanted))


def check_static(solution: Any) -> None:
    """zerograd check has nothing to say about the file"""
    from zerograd import check_source

    path = Path(solution.__file__)
    for finding in check_source(path.read_text(encoding="utf-8"), path.name):
        raise Wrong(f"{finding.spot}: {finding.rule.code} {finding.rule.name}: {finding.message}")


def check_live(solution: Any) -> None:
    """zerograd's live witness sees nothing wrong in a run of all stages"""
    from zerograd import watch

    batches = _batches(12)
    stages: list[Callable[[], object]] = [
        lambda: solution.pretrain(_net(4, 1, 0), batches, 2),
        lambda: solution.warm_up(_net(4, 1, 1), batches),
        lambda: solution.train_scaled(_net(4, 1, 2), batches, 0.3),
        lambda: solution.train_in_windows(_net(4, 1, 3), batches, 4),
        lambda: solution.train_gan(_net(2, 4, 4), _net(4, 1, 5), _batches(12, width=2)),
        lambda: solution.distil(_net(4, 1, 6), _net(4, 1, 7), batches),
    ]
    for stage in stages:
        with watch(policy="collect") as seen:
            stage()
        for finding in seen.findings:
            line = finding.spot.line
            raise Wrong(f"in a run, line {line}: {finding.rule.code} {finding.message}")


def check_signatures(solution: Any) -> None:
    """the functions keep their names and parameters"""
    wanted = {
        "pretrain": ["model", "batches", "epochs"],
        "warm_up": ["model", "batches"],
        "train_scaled": ["model", "batches", "max_norm"],
        "train_in_windows": ["model", "batches", "window"],
        "train_gan": ["netG", "netD", "batches"],
        "distil": ["student", "teacher", "batches"],
    }
    for name, parameters in wanted.items():
        found = list(inspect.signature(getattr(solution, name)).parameters)
        if found != parameters:
            raise Wrong(f"{name} should take {parameters} and takes {found}.")
