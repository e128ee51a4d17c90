"""Gradient error of one update against the float64 full batch: `make bench-step-accuracy`.

Embedding and two linear layers, vocabulary 64, windows of 4 micro-batches of 4 x 128 tokens.
A: very uneven token counts. B: equal counts. C: a tail of 2 micro-batches. Each framework is
used as its documentation shows, with its defaults. Two ranks (gloo) run as real processes.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from zerograd import Step, windows

RESULTS = Path(__file__).parent / "results" / "step_accuracy.json"
VOCABULARY, K, ROWS, LENGTH = 64, 4, 4, 128
Batch = tuple[torch.Tensor, torch.Tensor]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, 32)
        self.hidden = nn.Linear(32, 64)
        self.head = nn.Linear(64, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(torch.tanh(self.hidden(self.table(tokens))))
        return logits


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def tokens_in(batch: Batch) -> int:
    return int((batch[1] != -100).sum())


def make_batches(case: str, seed: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(seed)
    count = 6 if case == "C" else 4
    batches = []
    for _ in range(count):
        tokens = torch.randint(0, VOCABULARY, (ROWS, LENGTH), generator=generator)
        targets = torch.randint(0, VOCABULARY, (ROWS, LENGTH), generator=generator)
        if case == "A":
            cap = int(torch.randint(1, LENGTH + 1, (), generator=generator))
            for row in range(ROWS):
                keep = int(torch.randint(1, cap + 1, (), generator=generator))
                targets[row, keep:] = -100
        batches.append((tokens, targets))
    return batches


def make_model(seed: int) -> Net:
    torch.manual_seed(seed)
    return Net()


def truth(model: nn.Module, batches: list[Batch]) -> torch.Tensor:
    exact = copy.deepcopy(model).double()
    whole = tuple(torch.cat([batch[i] for batch in batches]) for i in (0, 1))
    loss_of(exact, whole).backward()  # type: ignore[arg-type]
    return torch.cat([p.grad.flatten() for p in exact.parameters()])  # type: ignore[union-attr]


class Recorder(torch.optim.SGD):
    """Keeps each gradient it is given; the parameters never move."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, lr=0.0)
        self.seen: list[torch.Tensor] = []

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        if closure is not None:
            with torch.enable_grad():
                closure()
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        self.seen.append(torch.cat([g.detach().flatten() for g in grads]).double())


Runner = Callable[[Net, list[Batch]], list[torch.Tensor]]


def with_step(model: Net, batches: list[Batch]) -> list[torch.Tensor]:
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, models=[model])
    for window in windows(batches, K):
        with step(window):
            for batch in window:
                step.backward(loss_of(model, batch), weight=tokens_in(batch))
    return optimizer.seen


def with_hand(model: Net, batches: list[Batch]) -> list[torch.Tensor]:
    optimizer = Recorder(model.parameters())
    for index, batch in enumerate(batches):
        (loss_of(model, batch) / K).backward()
        if (index + 1) % K == 0:
            optimizer.step()
            optimizer.zero_grad()
    return optimizer.seen


def with_accelerate(model: Net, batches: list[Batch]) -> list[torch.Tensor]:
    from accelerate import Accelerator
    from torch.utils.data import DataLoader

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=K)
    optimizer = Recorder(model.parameters())
    loader: Any = DataLoader(batches, batch_size=None)  # type: ignore[arg-type]
    prepared, wrapped, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(prepared):
            accelerator.backward(loss_of(prepared, batch))
            wrapped.step()
            wrapped.zero_grad()
    return optimizer.seen


class Loader:
    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Any:
        return iter(self._batches)


def with_lightning(model: Net, batches: list[Batch]) -> list[torch.Tensor]:
    import lightning.pytorch as pl

    optimizer = Recorder(model.parameters())

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def training_step(self, batch: Batch, _: int) -> torch.Tensor:
            return loss_of(self.net, batch)

        def configure_optimizers(self) -> Any:
            return optimizer

    pl.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=K,
    ).fit(Module(), Loader(batches))  # fmt: skip
    return optimizer.seen


def trainer_of(takes_kwargs: bool) -> Runner:
    def run(model: Net, batches: list[Batch]) -> list[torch.Tensor]:
        from transformers import Trainer, TrainingArguments

        class Plain(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = model

            def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
                return {"loss": loss_of(self.net, (tokens, labels))}

        class Counting(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = model

            def forward(
                self, tokens: torch.Tensor, labels: torch.Tensor, **kwargs: Any
            ) -> dict[str, Any]:
                items = kwargs.get("num_items_in_batch")
                found = self.net(tokens).flatten(0, 1)
                how = "mean" if items is None else "sum"
                loss = nn.functional.cross_entropy(found, labels.flatten(), reduction=how)
                return {"loss": loss if items is None else loss / items}

        rows = [{"tokens": b[0][i], "labels": b[1][i]} for b in batches for i in range(ROWS)]
        optimizer = Recorder(model.parameters())
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(
                model=Counting() if takes_kwargs else Plain(),
                args=TrainingArguments(
                    folder, num_train_epochs=1, per_device_train_batch_size=ROWS,
                    gradient_accumulation_steps=K, report_to=[], save_strategy="no",
                    logging_strategy="no", disable_tqdm=True, use_cpu=True, max_grad_norm=0.0,
                    lr_scheduler_type="constant", train_sampling_strategy="sequential",
                ),
                train_dataset=rows,
                optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)),
            )  # fmt: skip
            trainer.train()
        return optimizer.seen

    return run


def with_ignite(model: Net, batches: list[Batch]) -> list[torch.Tensor]:
    from ignite.engine import create_supervised_trainer

    optimizer = Recorder(model.parameters())
    trainer = create_supervised_trainer(
        model,
        optimizer,
        lambda found, targets: nn.functional.cross_entropy(found.flatten(0, 1), targets.flatten()),
        gradient_accumulation_steps=K,
    )
    trainer.run(batches, max_epochs=1)
    return optimizer.seen


def with_fastai(model: Net, batches: list[Batch]) -> list[torch.Tensor]:
    from fastai.callback.training import GradientAccumulation
    from fastai.data.core import DataLoaders
    from fastai.learner import Learner
    from fastai.optimizer import OptimWrapper

    made: list[Recorder] = []

    def optimizer(params: Any, **_: Any) -> Any:
        flat = [p for group in params for p in group] if isinstance(params[0], list) else params
        made.append(Recorder(flat))
        return OptimWrapper(opt=made[-1])

    learner = Learner(
        DataLoaders(Loader(batches), Loader(batches)),
        model,
        loss_func=lambda found, y: nn.functional.cross_entropy(found.flatten(0, 1), y.flatten()),
        opt_func=optimizer,
        cbs=GradientAccumulation(n_acc=K * ROWS),
    )
    with learner.no_bar(), learner.no_logging():
        learner.fit(1, lr=1e-9)
    return made[-1].seen


RUNNERS: dict[str, Runner] = {
    "zerograd Step": with_step,
    "hand-written, loss / K": with_hand,
    "Accelerate": with_accelerate,
    "Lightning Trainer": with_lightning,
    "HF Trainer, forward without kwargs": trainer_of(False),
    "HF Trainer, forward(**kwargs)": trainer_of(True),
    "Ignite": with_ignite,
    "fastai": with_fastai,
}


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


def measure(run: Runner, case: str, seeds: int) -> dict[str, Any]:
    errors = []
    steps = 0
    for seed in range(seeds):
        model = make_model(seed)
        batches = make_batches(case, seed)
        first = copy.deepcopy(model)
        seen = run(model, batches)
        steps = len(seen)
        if case == "C" and len(seen) < 2:
            return {"tail": "never stepped", "updates": steps}
        used = batches[4:] if case == "C" else batches
        errors.append(error(seen[-1], truth(first, used)))
    return {"median": statistics.median(errors), "max": max(errors), "updates": steps}


def rank(number: int, store: str) -> None:
    """One of two ranks: errors of two windows under Step, a hand-written loop and Accelerate."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    data = [make_batches("A", 10 * r) + make_batches("A", 10 * r + 1) for r in range(2)]
    exact = [truth(make_model(0), data[0][i : i + 4] + data[1][i : i + 4]) for i in (0, 4)]

    def errors(optimizer: Recorder) -> list[float]:
        return [error(a, b) for a, b in zip(optimizer.seen, exact, strict=True)]

    found = {}
    model = DistributedDataParallel(make_model(0))
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, models=[model])
    for window in windows(data[number], K):
        with step(window):
            for batch in window:
                step.backward(loss_of(model, batch), weight=tokens_in(batch))
    found["zerograd Step"] = errors(optimizer)
    model = DistributedDataParallel(make_model(0))
    optimizer = Recorder(model.parameters())
    for index, batch in enumerate(data[number]):
        model.require_backward_grad_sync = (index + 1) % K == 0
        (loss_of(model, batch) / K).backward()
        if (index + 1) % K == 0:
            optimizer.step()
            optimizer.zero_grad()
    found["hand-written DDP, loss / K"] = errors(optimizer)
    found["Accelerate"] = errors(accelerate_on_ranks(data[number], number))
    dist.barrier()
    if number == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


def accelerate_on_ranks(batches: list[Batch], number: int) -> Recorder:
    """Accelerate's documented loop on the process group that is there already."""
    # it believes these, not the group
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", ACCELERATE_USE_CPU="true")
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=K)
    assert accelerator.num_processes == 2
    net = make_model(0)
    optimizer = Recorder(net.parameters())
    prepared, wrapped = accelerator.prepare(net, optimizer)
    for batch in batches:
        with accelerator.accumulate(prepared):
            accelerator.backward(loss_of(prepared, batch))
            wrapped.step()
            wrapped.zero_grad()
    return optimizer


def two_ranks() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        started = [
            subprocess.Popen(
                [sys.executable, __file__, "--rank", str(number), "--store", f"{folder}/store"],
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(2)
        ]
        said = [process.communicate(timeout=300)[0] for process in started]
        return json.loads(said[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.rank is not None:
        rank(args.rank, args.store)
        return
    torch.set_num_threads(1)
    for name in ("lightning", "lightning.pytorch", "transformers", "accelerate", "ignite"):
        logging.getLogger(name).setLevel(logging.ERROR)
    result: dict[str, Any] = {
        "what": "norm of the error of the gradient over the norm of the float64 full-batch one",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "seeds": args.seeds,
        "frameworks": {},
    }
    for name, run in RUNNERS.items():
        try:
            result["frameworks"][name] = {c: measure(run, c, args.seeds) for c in "ABC"}
        except ImportError as fault:
            result["frameworks"][name] = f"not installed ({fault})"
        print(name, json.dumps(result["frameworks"][name]), flush=True)
    result["two ranks, uneven tokens, two windows"] = two_ranks()
    print(json.dumps(result["two ranks, uneven tokens, two windows"]))
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
