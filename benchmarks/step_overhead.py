"""Host cost of Step and of five frameworks over a hand-written loop: `make bench-step-overhead`.

Blocks of updates, each framework's block paired with a hand-written block of the same round,
in random order; the median of the pairs' ratios, with the hand-written loop paired with
itself as the A/A control. CPU time of the process, which other load on the machine disturbs
less than the wall clock; there is one thread and nothing to wait for.
tiny: MLP 8-8-1, batch 4. small: MLP 256-512-512-10, batch 32. SGD, no clip, no logging.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from zerograd import Step, windows

RESULTS = Path(__file__).parent / "results" / "step_overhead.json"
Batch = tuple[torch.Tensor, torch.Tensor]
Block = Callable[[], float]  # runs a block of updates, returns its CPU seconds


class Task:
    """A model and its batches."""

    def __init__(self, size: str) -> None:
        torch.manual_seed(0)
        widths, rows = ([8, 8, 1], 4) if size == "tiny" else ([256, 512, 512, 10], 32)
        self.widths = widths
        self.updates = 60 if size == "tiny" else 12
        self.batches: list[Batch] = [
            (torch.randn(rows, widths[0]), torch.randn(rows, widths[-1])) for _ in range(200)
        ]

    def model(self) -> nn.Module:
        layers: list[nn.Module] = []
        for wide, narrow in zip(self.widths, self.widths[1:], strict=False):
            layers += [nn.Linear(wide, narrow), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def take(self, count: int) -> list[Batch]:
        return [self.batches[i % len(self.batches)] for i in range(count)]


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def hand(task: Task, k: int) -> Block:
    model = task.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = task.take(task.updates * k)

    def work() -> None:
        for index, (x, y) in enumerate(batches):
            loss = mse_loss(model(x), y)
            (loss / k if k > 1 else loss).backward()
            if (index + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()

    return lambda: timed(work)


def step(task: Task, k: int) -> Block:
    model = task.model()
    owned = Step(torch.optim.SGD(model.parameters(), lr=1e-3))
    batches = task.take(task.updates * k)

    def plain() -> None:
        for x, y in batches:
            with owned:
                owned.backward(mse_loss(model(x), y))

    def windowed() -> None:
        for window in windows(batches, k):
            with owned(window):
                for x, y in window:
                    owned.backward(mse_loss(model(x), y))

    return lambda: timed(plain if k == 1 else windowed)


def accelerate(task: Task, k: int) -> Block:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=k)
    model = task.model()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=1e-3))
    batches = task.take(task.updates * k)

    def work() -> None:
        for x, y in batches:
            with accelerator.accumulate(model):
                accelerator.backward(mse_loss(model(x), y))
                optimizer.step()
                optimizer.zero_grad()

    return lambda: timed(work)


def fabric(task: Task, k: int) -> Block:
    from lightning.fabric import Fabric

    held = Fabric(accelerator="cpu", devices=1)
    model = task.model()
    model, optimizer = held.setup(model, torch.optim.SGD(model.parameters(), lr=1e-3))
    batches = task.take(task.updates * k)

    def work() -> None:
        for index, (x, y) in enumerate(batches):
            loss = mse_loss(model(x), y)
            held.backward(loss / k if k > 1 else loss)
            if (index + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()

    return lambda: timed(work)


def ignite(task: Task, k: int) -> Block:
    from ignite.engine import create_supervised_trainer

    model = task.model()
    trainer = create_supervised_trainer(
        model,
        torch.optim.SGD(model.parameters(), lr=1e-3),
        mse_loss,
        gradient_accumulation_steps=k,
    )
    batches = task.take(task.updates * k)
    return lambda: timed(lambda: trainer.run(batches, max_epochs=1))


class Loader:
    """The batches as an object of its own: Lightning takes a list for several loaders."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)


def lightning(task: Task, k: int) -> Block:
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = task.model()

        def training_step(self, batch: Batch, _: int) -> torch.Tensor:
            return mse_loss(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

        def on_train_start(self) -> None:
            self.began = time.process_time()

        def on_train_end(self) -> None:
            self.seconds = time.process_time() - self.began

    batches = Loader(task.take(task.updates * k))

    def block() -> float:
        module = Module()
        trainer = pl.Trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=k,
        )  # fmt: skip
        trainer.fit(module, batches)
        return module.seconds

    return block


def hf_trainer(task: Task, k: int) -> Block:
    import tempfile

    from transformers import Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_callback import PrinterCallback, ProgressCallback

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = task.model()

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": mse_loss(self.net(x), labels)}

    class Clock(TrainerCallback):
        seconds = began = 0.0

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self.began = time.process_time()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            self.seconds = time.process_time() - self.began

    rows = [
        {"x": x[i], "labels": y[i]} for x, y in task.take(task.updates * k) for i in range(len(x))
    ]
    size = len(task.batches[0][0])

    def block() -> float:
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(
                model=Wrapped(),
                args=TrainingArguments(
                    folder, max_steps=task.updates, per_device_train_batch_size=size,
                    gradient_accumulation_steps=k, report_to=[], save_strategy="no",
                    logging_strategy="no", disable_tqdm=True, use_cpu=True, optim="sgd",
                    lr_scheduler_type="constant", max_grad_norm=0.0, seed=0,
                ),
                train_dataset=rows,
                callbacks=[clock],
            )  # fmt: skip
            trainer.remove_callback(PrinterCallback)
            trainer.remove_callback(ProgressCallback)
            trainer.train()
        return clock.seconds

    return block


MAKERS: dict[str, Callable[[Task, int], Block]] = {
    "hand again (A/A)": hand,
    "zerograd Step": step,
    "Accelerate": accelerate,
    "Fabric": fabric,
    "Ignite": ignite,
    "Lightning Trainer": lightning,
    "HF Trainer (own DataLoader)": hf_trainer,
}


def cases() -> Iterator[tuple[str, int]]:
    for size in ("tiny", "small"):
        for k in (1, 4):
            yield size, k


def measure(size: str, k: int, rounds: int) -> dict[str, Any]:
    task = Task(size)
    reference = hand(task, k)
    blocks: dict[str, Block] = {}
    missing = []
    for name, make in MAKERS.items():
        try:
            blocks[name] = make(task, k)
            blocks[name]()  # warm up
        except ImportError as error:
            blocks.pop(name, None)
            missing.append(f"{name}: {error}")
    reference()
    ratios: dict[str, list[float]] = {name: [] for name in blocks}
    extra: dict[str, list[float]] = {name: [] for name in blocks}
    hand_us: list[float] = []
    own_us: dict[str, list[float]] = {name: [] for name in blocks}
    chosen = random.Random(0)
    for index in range(rounds):
        order = list(blocks)
        chosen.shuffle(order)
        for name in order:
            # a framework that costs a second to start is measured in every third round
            if name in ("Lightning Trainer", "HF Trainer (own DataLoader)") and index % 3:
                continue
            if chosen.random() < 0.5:
                plain, taken = reference(), blocks[name]()
            else:
                taken, plain = blocks[name](), reference()
            ratios[name].append(taken / plain)
            extra[name].append((taken - plain) / task.updates * 1e6)
            own_us[name].append(taken / task.updates * 1e6)
            hand_us.append(plain / task.updates * 1e6)

    def fastest_tenth(values: list[float]) -> float:
        return round(statistics.median(sorted(values)[: max(1, len(values) // 5)]), 1)

    def quartiles(values: list[float], digits: int) -> list[float]:
        return [round(value, digits) for value in statistics.quantiles(values, n=4)]

    return {
        "size": size,
        "k": k,
        "hand_us_per_update": quartiles(hand_us, 1),
        # contention only ever adds: the fastest tenths come nearest to a quiet machine
        "hand_us_fastest_tenth": fastest_tenth(hand_us),
        "extra_us_fastest_tenth": {
            name: round(fastest_tenth(own) - fastest_tenth(hand_us), 1)
            for name, own in own_us.items()
        },
        "ratio_fastest_tenth": {
            name: round(fastest_tenth(own) / fastest_tenth(hand_us), 3)
            for name, own in own_us.items()
        },
        "ratio_quartiles": {name: quartiles(values, 3) for name, values in ratios.items()},
        "extra_us_per_update_quartiles": {name: quartiles(v, 1) for name, v in extra.items()},
        "missing": missing,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--output", type=Path, default=RESULTS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in ("lightning", "lightning.pytorch", "transformers", "accelerate", "ignite"):
        logging.getLogger(name).setLevel(logging.ERROR)
    versions = {}
    for name in ("accelerate", "lightning", "transformers", "ignite"):
        try:
            versions[name] = __import__(name).__version__
        except ImportError:
            versions[name] = "not installed"
    result = {
        "what": "CPU time of a block of updates over that of a hand-written one beside it",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, shared",
        "load": [round(value, 1) for value in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "rounds": args.rounds,
        **versions,
        "cases": [],
    }
    for size, k in cases():
        row = measure(size, k, args.rounds if size == "tiny" else max(9, args.rounds // 3))
        result["cases"].append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
