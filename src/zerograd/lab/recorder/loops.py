"""Where a clear stands in a loop, and what goes wrong where it does not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from zerograd.lab.recorder.numbers import short, shorts


def _net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))


def _batches(count: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    mix = draw(6, 1)
    batches = []
    for _ in range(count):
        inputs = draw(32, 6)
        batches.append((inputs, inputs @ mix / 2 + 0.1 * draw(32, 1)))
    return batches


def weights_of(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def _trained(make: Any, place: str, steps: int = 50) -> Tensor:
    model = _net()
    optimizer = make(model.parameters())
    for inputs, targets in _batches(steps):
        if place == "top":
            optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        if place == "before backward":
            optimizer.zero_grad()
        loss.backward()
        if place == "before step":
            optimizer.zero_grad()
        optimizer.step()
        if place == "after step":
            optimizer.zero_grad()
    return weights_of(model)


_MAKERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
}


def placement() -> list[dict[str, Any]]:
    """Compare final weights for each place of the clear with those of a clear at the top."""
    rows = []
    for name, make in _MAKERS.items():
        top = _trained(make, "top")
        for place in ("before backward", "after step", "before step", "nowhere"):
            other = _trained(make, place)
            rows.append(
                {
                    "optimizer": name,
                    "place": place,
                    "bit_equal_to_top": bool(torch.equal(top, other)),
                    "bit_equal_to_start": bool(torch.equal(weights_of(_net()), other)),
                    "relative_difference": short((other - top).norm() / top.norm()),
                }
            )
    return rows


def lost() -> dict[str, Any]:
    """Record the loss where the clear stands between backward and step."""
    curves: dict[str, Any] = {}
    for place in ("top", "before step"):
        model = _net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        (inputs, targets) = _batches(1)[0]
        losses = []
        for _ in range(50):
            if place == "top":
                optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            if place == "before step":
                optimizer.zero_grad()
            optimizer.step()
            losses.append(loss.detach())
        curves[place.replace(" ", "_")] = shorts(losses)
    return curves


def subset(steps: int = 20) -> dict[str, Any]:
    """Record the gradient norm of a backbone that no optimizer holds."""
    model = _net()
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.05)
    backbone, head = [], []
    for inputs, targets in _batches(1) * steps:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        backbone.append(_grad_norm(model[0]))
        head.append(_grad_norm(model[2]))
        optimizer.step()
    return {"backbone": shorts(backbone), "head": shorts(head)}


def _grad_norm(module: nn.Module) -> Tensor:
    grads = [p.grad.flatten() for p in module.parameters() if p.grad is not None]
    norm: Tensor = torch.cat(grads).norm()
    return norm


def overflow(steps: int = 30, bad: int = 3) -> dict[str, Any]:
    """Record a loss scaler after one overflow, with and without clearing."""
    recorded: dict[str, Any] = {"steps": steps, "overflow_at": bad + 1}
    for name in ("cleared", "forgotten"):
        model = _net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=65536.0, growth_interval=10**6)
        skipped, scales = 0, []
        for index, (inputs, targets) in enumerate(_batches(1) * steps):
            if name == "cleared":
                optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            # a factor that is finite alone and too much together with the scale
            scaler.scale(loss * 1e34 if index == bad else loss).backward()
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            skipped += scaler.get_scale() < before
            scales.append(scaler.get_scale())
        inputs, targets = _batches(1)[0]
        final = nn.functional.mse_loss(model(inputs), targets).detach()
        recorded[name] = {
            "skipped": skipped,
            "scales": [float(f"{scale:.6g}") for scale in scales],
            "final_loss": short(final),
        }
    return recorded


def poison(steps: int = 60, bad: int = 5) -> dict[str, Any]:
    """Record the final loss after one NaN batch, for each way to clear."""
    ends: dict[str, Any] = {}
    for way in ("zero", "none", "times zero", "nothing"):
        model = _net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        steps_taken = 0
        for index, (inputs, targets) in enumerate(_batches(1) * steps):
            for p in model.parameters():
                if p.grad is None or way == "nothing":
                    continue
                if way == "zero":
                    p.grad.zero_()
                elif way == "none":
                    p.grad = None
                else:
                    p.grad.mul_(0)
            factor = float("nan") if index == bad else 1.0
            (nn.functional.mse_loss(model(inputs), targets) * factor).backward()
            finite = all(
                bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None
            )
            if finite:
                optimizer.step()
                steps_taken += 1
        inputs, targets = _batches(1)[0]
        final = nn.functional.mse_loss(model(inputs), targets).detach()
        ends[way] = {"final_loss": short(final), "steps_taken": steps_taken}
    return {"steps": steps, "bad": bad + 1, "ways": ends}


def windows() -> dict[str, Any]:
    """Compare the gradient of a window with that of the one big batch it stands for."""
    inputs, targets = (torch.cat(part) for part in zip(*_batches(2), strict=True))
    model = _net().double()
    inputs, targets = inputs.double(), targets.double()
    wanted = _gradient(model, [(inputs, targets, 1.0)])

    def pieces(sizes: list[int], weights: list[float]) -> list[tuple[Tensor, Tensor, float]]:
        parts = zip(inputs.split(sizes), targets.split(sizes), weights, strict=True)
        return list(parts)

    even, ragged = [16, 16, 16, 16], [20, 20, 20, 4]
    cases = {
        "even, divided by 4": pieces(even, [1 / 4] * 4),
        "even, not divided": pieces(even, [1.0] * 4),
        "20/20/20/4, divided by 4": pieces(ragged, [1 / 4] * 4),
        "20/20/20/4, by samples": pieces(ragged, [n / 64 for n in ragged]),
    }
    errors = {}
    for name, case in cases.items():
        error = (_gradient(model, case) - wanted).norm() / wanted.norm()
        # what is left of an exact sum is rounding, and differs from machine to machine
        errors[name] = 0.0 if error < 1e-12 else short(error)
    return errors


def _gradient(model: nn.Module, pieces: list[tuple[Tensor, Tensor, float]]) -> Tensor:
    model.zero_grad()
    for inputs, targets, weight in pieces:
        (nn.functional.mse_loss(model(inputs), targets) * weight).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
