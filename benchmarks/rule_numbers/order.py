"""What faults of order do: clearing, backward and step."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import mse_loss

from benchmarks.rule_numbers.tasks import (
    SEEDS,
    Figures,
    batches,
    final_loss,
    flat_grad,
    forgotten,
    median,
    norm,
    plain,
    ruined,
    task,
    train,
)


def stale_gradient() -> Figures:
    right = [train(s, plain, lr=0.03) for s in SEEDS]
    wrong = [train(s, forgotten, lr=0.03) for s in SEEDS]
    early = [
        train(s, forgotten, lr=0.03, steps=5) < train(s, plain, lr=0.03, steps=5) for s in SEEDS
    ]
    worse = sum(not w < r for r, w in zip(right, wrong, strict=True))
    fast = [train(s, forgotten, lr=0.1) for s in SEEDS]
    return {
        "lr 0.03: median final loss, cleared": f"{median(right):.3f}",
        "lr 0.03: median final loss, not cleared": f"{median(wrong):.3f}",
        "lr 0.03: seeds that end worse": f"{worse} of {len(wrong)}",
        "lr 0.03: seeds that look better after 5 steps": f"{sum(early)} of {len(early)}",
        "lr 0.1: seeds that end above their start": f"{ruined(fast)} of {len(fast)}",
        "lr 0.1: median final loss, cleared": f"{median([train(s, plain) for s in SEEDS]):.3f}",
    }


def lost_gradient() -> Figures:
    def between(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor]) -> None:
        mse_loss(model(batch[0]), batch[1]).backward()
        opt.zero_grad()
        opt.step()

    start = [final_loss(*task(s)) for s in SEEDS]
    end = [train(s, between) for s in SEEDS]
    same = sum(a == b for a, b in zip(start, end, strict=True))
    model, inputs, targets = task(0)
    before = norm(list(model.parameters()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    for batch in batches(inputs, targets, 50):
        mse_loss(model(batch[0]), batch[1]).backward()
        optimizer.zero_grad(set_to_none=False)
        optimizer.step()
    after = norm(list(model.parameters()))
    return {
        "runs whose loss is bit-equal to the start": f"{same} of {len(end)}",
        "weight norm before, cleared to zero with decay": f"{before:.2f}",
        "weight norm after 50 steps": f"{after:.2f}",
    }


def uncalled_method() -> Figures:
    def uncalled(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor]) -> None:
        opt.zero_grad  # noqa: B018
        mse_loss(model(batch[0]), batch[1]).backward()
        opt.step()

    same = sum(train(s, uncalled) == train(s, forgotten) for s in SEEDS)
    return {"runs bit-equal to a loop without the line": f"{same} of {len(SEEDS)}"}


def absent_gradient_used() -> Figures:
    model, inputs, targets = task(0)
    parameters = list(model.parameters())
    fresh = sum(p.grad is None for p in parameters)
    mse_loss(model(inputs), targets).backward()
    filled = sum(p.grad is None for p in parameters)
    model.zero_grad()
    cleared = sum(p.grad is None for p in parameters)
    return {
        "gradients that are None before the first backward": f"{fresh} of {len(parameters)}",
        "after it": f"{filled} of {len(parameters)}",
        "after zero_grad()": f"{cleared} of {len(parameters)}",
    }


def unowned_gradient_grows() -> Figures:
    def run(clear_all: bool) -> tuple[list[float], float]:
        model, inputs, targets = task(0)
        body, head = model[0], model[2]  # type: ignore[index]
        optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
        norms, moved = [], 0.0
        for batch in batches(inputs, targets, 100):
            (model if clear_all else optimizer).zero_grad()
            mse_loss(model(batch[0]), batch[1]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            norms.append(norm([p.grad for p in body.parameters()]))
            moved += 0.05 * norm([p.grad for p in head.parameters()])
            optimizer.step()
        return norms, moved

    def growth() -> tuple[float, float]:
        model, inputs, targets = task(0)
        optimizer = torch.optim.SGD(model[2].parameters(), lr=0.05)  # type: ignore[index]
        norms = []
        for batch in batches(inputs, targets, 100):
            optimizer.zero_grad()
            mse_loss(model(batch[0]), batch[1]).backward()
            norms.append(norm([p.grad for p in model[0].parameters()]))  # type: ignore[index]
        return norms[0], norms[-1]

    first, last = growth()
    (_, right), (_, wrong) = run(True), run(False)
    return {
        "norm of the frozen part's gradient, first iteration": f"{first:.2f}",
        "after 100 iterations": f"{last:.1f}",
        "way the head goes, of what it should, both clipped": f"{100 * wrong / right:.0f} %",
    }


def leaked_gradient() -> Figures:
    shares, cosines = [], []
    for seed in SEEDS:
        torch.manual_seed(seed)
        gen = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        disc = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
        opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3)
        opt_d = torch.optim.Adam(disc.parameters(), lr=1e-3)
        loss = nn.BCEWithLogitsLoss()
        ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
        for _ in range(50):
            opt_g.zero_grad()
            opt_d.zero_grad()
            fake = gen(torch.randn(32, 2))
            loss(disc(fake), ones).backward()
            opt_g.step()
            left = flat_grad(disc).clone()
            real = torch.randn(32, 2) * 0.5 + 2
            (loss(disc(real), ones) + loss(disc(fake.detach()), zeros)).backward()
            own = flat_grad(disc) - left
            shares.append((left.norm() / (left.norm() + own.norm())).item())
            cosines.append(torch.cosine_similarity(flat_grad(disc), own, dim=0).item())
            opt_d.step()
    against = sum(each < 0 for each in cosines)
    return {
        "median share of the generator's loss in D's gradient": f"{100 * median(shares):.0f} %",
        "median cosine between what D steps on and its own gradient": f"{median(cosines):.2f}",
        "updates that point against D's own loss": f"{against} of {len(cosines)}",
    }


def leaf_gradient_grows() -> Figures:
    def search(clear: bool, seed: int) -> tuple[float, float]:
        model, _, targets = task(seed)
        torch.manual_seed(seed + 1)
        latent = torch.randn(1, 4, requires_grad=True)
        wanted = targets[:1]
        cosines = []
        for _ in range(60):
            if clear:
                latent.grad = None
            loss = mse_loss(model(latent), wanted) + 0.01 * latent.pow(2).sum()
            (own,) = torch.autograd.grad(loss, latent, retain_graph=True)
            loss.backward()
            assert latent.grad is not None
            used = latent.grad
            cosines.append(torch.cosine_similarity(used.flatten(), own.flatten(), dim=0).item())
            with torch.no_grad():
                latent -= 0.2 * used
        return loss.item(), cosines[-1]

    right = [search(True, s)[0] for s in SEEDS]
    wrong = [search(False, s) for s in SEEDS]
    worse = sum(w > r for r, (w, _) in zip(right, wrong, strict=True))
    return {
        "median loss of the search, cleared": f"{median(right):.3f}",
        "not cleared": f"{median([w for w, _ in wrong]):.3f}",
        "seeds that end worse": f"{worse} of {len(right)}",
        "median cosine of the sum and the last gradient": f"{median([c for _, c in wrong]):.2f}",
    }


def gradient_never_used() -> Figures:
    def unused(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor]) -> None:
        opt.zero_grad()
        mse_loss(model(batch[0]), batch[1]).backward()

    same = sum(train(s, unused) == final_loss(*task(s)) for s in SEEDS)
    return {"runs whose loss is bit-equal to the start": f"{same} of {len(SEEDS)}"}


def step_without_gradient() -> Figures:
    def empty(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor]) -> None:
        opt.zero_grad()
        mse_loss(model(batch[0]), batch[1])
        opt.step()

    same = sum(train(s, empty) == final_loss(*task(s)) for s in SEEDS)
    return {"runs whose loss is bit-equal to the start": f"{same} of {len(SEEDS)}"}


def gradient_reused() -> Figures:
    def twice(model: nn.Module, opt: torch.optim.Optimizer, batch: list[torch.Tensor]) -> None:
        plain(model, opt, batch)
        opt.step()

    rates = (0.1, 0.3)
    shown = {}
    for lr in rates:
        once = [train(s, plain, lr=lr) for s in SEEDS]
        again = [train(s, twice, lr=lr) for s in SEEDS]
        double = [train(s, plain, lr=2 * lr) for s in SEEDS]
        shown[f"lr {lr}: median final loss, one step"] = f"{median(once):.3f}"
        shown[f"lr {lr}: median final loss, two steps"] = f"{median(again):.3f}"
        shown[f"lr {lr}: one step at twice the rate"] = f"{median(double):.3f}"
        shown[f"lr {lr}: two steps, ruined"] = f"{ruined(again)} of {len(again)}"
    return shown


def unused_allow() -> Figures:
    from zerograd import check_source

    loop = "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 1)\n"
    loop += "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    loop += "for _ in range(8):\n    model(torch.randn(2, 4)).sum().backward()\n"
    allow = "  # zerograd: allow[stale-gradient] momentum of exactly 1 on purpose"
    without = check_source(f"{loop}    opt.step()\n", "train.py")
    hidden = check_source(f"{loop}    opt.step(){allow}\n", "train.py")
    return {
        "findings without the comment": f"{len(without)}",
        "findings with it": f"{len(hidden)}",
    }
