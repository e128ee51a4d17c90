"""Opacus, Pyro and BoTorch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.outside.training import main


def _data():
    return DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), 8)


def opacus(fault):
    from opacus import PrivacyEngine

    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    made = torch.Generator().manual_seed(0)
    model, optimizer, data = PrivacyEngine().make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), 0.05),
        data_loader=_data(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        noise_generator=made,
    )
    losses = []
    for _ in range(3):
        for x, y in data:
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return [*net.parameters(), *losses]


def pyro(fault):
    import pyro as ppl
    import pyro.distributions as dist

    ppl.clear_param_store()

    def model(x):
        where = ppl.sample("where", dist.Normal(0.0, 1.0))
        with ppl.plate("data", len(x)):
            ppl.sample("seen", dist.Normal(where, 1.0), obs=x)

    def guide(x):
        mean = ppl.param("mean", torch.tensor(0.5))
        wide = ppl.param("wide", torch.tensor(1.0), constraint=dist.constraints.positive)
        ppl.sample("where", dist.Normal(mean, wide))

    x, losses = torch.randn(16) + 2, []
    steps = ppl.infer.SVI(model, guide, ppl.optim.Adam({"lr": 0.05}), ppl.infer.Trace_ELBO())
    for _ in range(8):
        losses.append(torch.tensor(steps.step(x)))
    return [ppl.param("mean"), ppl.param("wide"), *losses]


def pyro_by_hand(fault):
    import pyro as ppl
    import pyro.distributions as dist
    from pyro.infer.autoguide import AutoNormal

    ppl.clear_param_store()

    def model(x):
        where = ppl.sample("where", dist.Normal(0.0, 1.0))
        with ppl.plate("data", len(x)):
            ppl.sample("seen", dist.Normal(where, 1.0), obs=x)

    guide, loss_of = AutoNormal(model), ppl.infer.Trace_ELBO().differentiable_loss
    x, losses = torch.randn(16) + 2, []
    guide(x)
    optimizer = torch.optim.Adam(guide.parameters(), 0.05)
    for _ in range(8):
        loss = loss_of(model, guide, x)
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        if fault not in ("never", "between"):
            optimizer.zero_grad()
        losses.append(loss.detach())
    return [*guide.parameters(), *losses]


def botorch(fault):
    from botorch.fit import fit_gpytorch_mll
    from botorch.generation.gen import gen_candidates_torch
    from botorch.models import SingleTaskGP
    from botorch.optim.fit import fit_gpytorch_mll_torch
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = torch.rand(12, 2, dtype=torch.float64)
    y = x.sum(1, keepdim=True).sin()
    found = []
    for fit in (
        fit_gpytorch_mll,
        lambda each: fit_gpytorch_mll_torch(each, step_limit=8),
    ):
        model = SingleTaskGP(x, y)
        fit(ExactMarginalLogLikelihood(model.likelihood, model))
        found += [each.detach().clone() for each in model.parameters()]
    from botorch.acquisition import UpperConfidenceBound

    start = torch.rand(3, 1, 2, dtype=torch.float64)
    best, _ = gen_candidates_torch(
        start, UpperConfidenceBound(model, beta=0.1), 0.0, 1.0, options={"maxiter": 6}
    )
    return [*found, best]


if __name__ == "__main__":
    main()
