"""Models and layers that others wrote, under a loop of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.outside.way import Made, Way, made, sgd, small


def _x_transformers() -> Iterator[Way]:
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    def model() -> Any:
        layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
        return AutoregressiveWrapper(
            TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers)
        )

    words = made(
        model,
        loss=lambda net, given: net(given.long()),
        inputs=lambda: torch.randint(0, 32, (2, 16)),
    )
    yield Way("a small decoder", words)


def _peft() -> Iterator[Way]:
    from peft import LoraConfig, get_peft_model

    def make() -> Made:
        net: Any = get_peft_model(small(), LoraConfig(target_modules=["0", "2"], r=2))
        own = [each for each in net.parameters() if each.requires_grad]
        given = torch.randn(16, 4)
        return Made(own, sgd(own), lambda: net(given).pow(2).mean())

    yield Way("LoRA", make)


def _gpytorch() -> Iterator[Way]:
    import gpytorch

    exact: Any = gpytorch.models.ExactGP

    class Process(exact):  # type: ignore[misc]
        def __init__(self, x: Tensor, y: Tensor, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    def make() -> Made:
        x = torch.randn(16, 4)
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        process = Process(x, x.sum(1), likelihood)
        marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
        own = list(process.parameters())
        return Made(own, sgd(own), lambda: -marginal(process(x), x.sum(1)))

    yield Way("an exact process", make)


def _torchdiffeq() -> Iterator[Way]:
    import torchdiffeq

    class Field(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(4, 4)

        def forward(self, _: Any, y: Tensor) -> Any:
            return self.net(y).tanh()

    for solve in (torchdiffeq.odeint, torchdiffeq.odeint_adjoint):

        def loss(net: Any, given: Tensor, solve: Any = solve) -> Any:
            return solve(net, given, torch.tensor([0.0, 1.0]), method="euler")[-1].pow(2).mean()

        yield Way(solve.__name__, made(Field, loss=loss))


def _geometric() -> Iterator[Way]:
    from torch_geometric.nn import GATConv, GCNConv

    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    for kind in (GCNConv, GATConv):

        def model(kind: Any = kind) -> Any:
            return kind(4, 2)

        def loss(net: Any, given: Tensor) -> Any:
            return net(given, edges).pow(2).mean()

        yield Way(kind.__name__, made(model, loss=loss))


PACKAGES = {
    "x-transformers": _x_transformers,
    "peft": _peft,
    "gpytorch": _gpytorch,
    "torchdiffeq": _torchdiffeq,
    "torch-geometric": _geometric,
}
