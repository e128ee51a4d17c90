"""What is measured: a model, its optimizer, and a function that computes a loss."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from zerograd.errors import UsageError


@dataclass
class Workload:
    """A model and what a training step of it does; without a loss only clears are measured."""

    name: str
    model: nn.Module
    loss: Callable[[], torch.Tensor] | None

    @property
    def parameters(self) -> list[torch.Tensor]:
        return [p for p in self.model.parameters() if p.requires_grad]

    @property
    def gradient_bytes(self) -> int:
        return sum(p.numel() * p.element_size() for p in self.parameters)


def make_workload(name: str, device: torch.device) -> Workload:
    """One of the built-in models, or what MODULE:FACTORY returns."""
    torch.manual_seed(0)
    built_in = {"tiny": _tiny, "resnet": _resnet, "gpt2": _gpt2, "many": _many}
    if name in built_in:
        return built_in[name](device)
    if ":" not in name:
        raise UsageError(
            f"--model {name}: no such model. Choose tiny, resnet, gpt2 or many, "
            "or name your own as MODULE:FACTORY."
        )
    return _load(name, device)


def _load(name: str, device: torch.device) -> Workload:
    module_name, _, factory_name = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(f"--model {name}: cannot import {module_name} ({error})") from error
    except Exception as error:
        raise _raised(name, f"importing {module_name}", error) from error
    finally:
        sys.path.pop(0)
    factory = getattr(module, factory_name, None)
    if not callable(factory):
        raise UsageError(f"--model {name}: {module_name} has no function {factory_name}")
    try:
        made = factory()
    except Exception as error:
        raise _raised(name, f"{factory_name}()", error) from error
    model, loss = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, nn.Module) or (loss is not None and not callable(loss)):
        raise UsageError(
            f"--model {name}: {factory_name}() must return a module, or a pair of a module and "
            "a function without arguments that returns the loss"
        )
    model = model.to(device)
    if not any(p.requires_grad for p in model.parameters()):
        raise UsageError(f"--model {name}: the model has no parameter that requires a gradient")
    if loss is not None:
        try:
            value = loss()
        except Exception as error:
            raise _raised(name, "the loss", error) from error
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
            raise UsageError(
                f"--model {name}: the loss must be one number that requires a gradient"
            )
    return Workload(name, model, loss)


def _raised(name: str, what: str, error: Exception) -> UsageError:
    """Return one line about an error of the user's own code, and the frames that are theirs."""
    ours = (__file__, "<frozen importlib", importlib.__file__)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(ours)
    ]
    shown = "".join(traceback.format_list(frames)).rstrip()
    return UsageError(f"--model {name}: {what} raised {type(error).__name__}: {error}\n{shown}")


def _tiny(device: torch.device) -> Workload:
    model = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    ).to(device)
    x = torch.randn(32, 64, device=device)
    y = torch.randint(0, 10, (32,), device=device)
    return Workload("tiny", model, lambda: functional.cross_entropy(model(x), y))


class _Residual(nn.Module):
    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(out)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != out:
            self.shortcut = nn.Conv2d(width, out, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


def _resnet(device: torch.device) -> Workload:
    """18 layers, 11 million parameters, on small images."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    width = 64
    for out, stride in (
        (64, 1),
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        (512, 1),
    ):
        layers.append(_Residual(width, out, stride))
        width = out
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    model = nn.Sequential(*layers).to(device)
    count = 64 if device.type == "cuda" else 4
    x = torch.randn(count, 3, 32, 32, device=device)
    y = torch.randint(0, 10, (count,), device=device)
    return Workload("resnet", model, lambda: functional.cross_entropy(model(x), y))


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        parts = self.mix(self.first_norm(x)).view(rows, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, length, width))
        lifted: torch.Tensor = self.down(functional.gelu(self.up(self.second_norm(x))))
        return x + lifted


class _Gpt(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([_Attention(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # type: ignore[no-any-return]


def _gpt2(device: torch.device) -> Workload:
    """GPT-2 small: 124 million parameters in 148 tensors."""
    model = _Gpt(layers=12, width=768, heads=12, vocabulary=50257, length=1024).to(device)
    rows, length = (8, 1024) if device.type == "cuda" else (1, 64)
    tokens = torch.randint(0, 50257, (rows, length + 1), device=device)

    def loss() -> torch.Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            found = model(tokens[:, :-1])
        return functional.cross_entropy(found.flatten(0, 1).float(), tokens[:, 1:].flatten())

    return Workload("gpt2", model, loss)


class _Towers(nn.Module):
    """Many small layers side by side, computed in one batched product."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(width, width) * 0.1 for _ in range(count)])
        self.biases = nn.ParameterList([torch.zeros(width) for _ in range(count)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, biases = torch.stack(list(self.weights)), torch.stack(list(self.biases))
        mean: torch.Tensor = torch.tanh(torch.baddbmm(biases.unsqueeze(1), x, weights)).mean()
        return mean


def _many(device: torch.device) -> Workload:
    """4,000 tensors of at most 256 numbers each."""
    model = _Towers(count=2000, width=16).to(device)
    x = torch.randn(2000, 8, 16, device=device)
    return Workload("many", model, lambda: model(x).pow(2))


def make_optimizer(parameters: Any, device: torch.device) -> torch.optim.Optimizer:
    """AdamW, fused on a GPU, as it is used today."""
    return torch.optim.AdamW(parameters, lr=1e-6, fused=device.type == "cuda")
