"""Step on a GPU: `python benchmarks/step_gpu.py --output FOLDER` writes step_gpu.json.

Shows that Step waits for the device no more than a hand-written loop does (sync-debug mode
set to error), that its gradients are exact there, that a fused optimizer's skip is learnt
without waiting, and what two optimizers with one scaler come to under Accelerate and here.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.amp import GradScaler

from zerograd import Step, windows

CUDA = torch.device("cuda")


@contextmanager
def no_waiting() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def model_of(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 8)).to(CUDA)


def batches(count: int = 6) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]]:
    """Inputs, targets, and the number of rows on the device and on the host."""
    made = []
    for index in range(count):
        rows = 3 + 37 * index % 50
        torch.manual_seed(index)
        x, y = torch.randn(rows, 32, device=CUDA), torch.randint(0, 8, (rows,), device=CUDA)
        made.append((x, y, torch.full((), rows, device=CUDA), rows))
    return made


def loss_of(model: nn.Module, batch: Any, factor: float = 1.0) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]).float(), batch[1]) * factor


def waits() -> dict[str, str]:
    """Each kind of Step in sync-debug mode; a wait raises there."""
    rows = {}
    data = batches()
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "clip": {"clip": 1.0},
        "clip_value": {"clip_value": 0.1},
        "arena": {"arena": True},
        "arena and clip": {"arena": True, "clip": 1.0},
        "device weights": {"device_weights": True},
        "device weights and clip": {"device_weights": True, "clip": 1.0},
        "device weights, arena, clip": {"device_weights": True, "clip": 1.0, "arena": True},
        "scheduler": {"scheduler": True},
        "fused and scaler": {"scaler": True},
        "fused, scaler, clip, scheduler": {"scaler": True, "clip": 1.0, "scheduler": True},
        "fused, scaler, device weights": {"scaler": True, "device_weights": True},
    }
    for fused in (True, False):
        for name, options in kinds.items():
            if "fused" in name and not fused:
                continue
            given = dict(options)
            model = model_of()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
            by_device = given.pop("device_weights", False)
            if given.get("scaler"):
                given["scaler"] = GradScaler("cuda", init_scale=1024.0)
            if given.get("scheduler"):
                given["scheduler"] = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
            step = Step(optimizer, models=[model], **given)

            def epoch(
                step: Step = step, model: nn.Module = model, by_device: bool = by_device
            ) -> None:
                for window in windows(data, 3):
                    with step(window):
                        for batch in window:
                            step.backward(
                                loss_of(model, batch), batch[2] if by_device else batch[3]
                            )

            epoch()
            label = f"{name} ({'fused' if fused else 'foreach'} AdamW)"
            try:
                with no_waiting():
                    epoch()
                    epoch()
                rows[label] = "no wait"
            except RuntimeError as error:
                rows[label] = f"waited: {error}"
            step.close()
    model = model_of()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=False)
    scaler = GradScaler("cuda", init_scale=1024.0)
    step = Step(optimizer, scaler=scaler)
    with step:
        step.backward(loss_of(model, data[0]))
    try:
        with no_waiting(), step:
            step.backward(loss_of(model, data[0]))
        rows["scaler, foreach AdamW"] = "no wait"
    except RuntimeError:
        rows["scaler, foreach AdamW"] = "one wait: GradScaler's own"
    step.close()
    return rows


class Recorder(torch.optim.SGD):
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        grads = [p.grad.flatten() for group in self.param_groups for p in group["params"]]
        self.seen = torch.cat(grads).double()


def exactness() -> dict[str, float]:
    """Relative error against float64 over the whole window."""
    torch.backends.cuda.matmul.allow_tf32 = False
    data = batches()
    exact_model = model_of().double()
    whole = (torch.cat([b[0] for b in data]).double(), torch.cat([b[1] for b in data]))
    nn.functional.cross_entropy(exact_model(whole[0]), whole[1]).backward()
    exact = torch.cat([p.grad.flatten() for p in exact_model.parameters() if p.grad is not None])
    rows = {}
    for name, options in {
        "host weights": {},
        "device weights": {},
        "device weights, arena": {"arena": True},
        "host weights, scaler": {"scaler": True},
    }.items():
        given: dict[str, Any] = dict(options)
        model = model_of()
        optimizer = Recorder(model.parameters(), lr=0.0)
        if given.get("scaler"):
            given["scaler"] = GradScaler("cuda", init_scale=1024.0)
        step = Step(optimizer, **given)
        for _ in range(2):
            for window in windows(data, len(data)):
                with step(window):
                    for batch in window:
                        step.backward(loss_of(model, batch), batch[2 if "device" in name else 3])
        rows[name] = float((optimizer.seen - exact).norm() / exact.norm())
        step.close()
    return rows


def skips() -> dict[str, Any]:
    """Overflows and bad weights on the device: who steps, and whether the scheduler moves."""
    rows: dict[str, Any] = {}
    data = batches(1)[0]
    for fused in (True, False):
        model = model_of()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        scaler = GradScaler("cuda", init_scale=1024.0)
        step = Step(optimizer, scaler=scaler, scheduler=scheduler, clip=1.0)
        first = next(model.parameters())
        seen = []
        for index in range(5):
            before = first.detach().clone()
            with step:
                step.backward(loss_of(model, data, float("inf") if index in (1, 3) else 1.0))
            moved = not torch.equal(before, first)
            seen.append({"skipped": step.skipped, "moved": moved})
        rows[f"overflow, {'fused' if fused else 'foreach'}"] = {
            "steps": seen,
            "right": [s["skipped"] for s in seen] == [False, True, False, True, False]
            and all(s["skipped"] != s["moved"] for s in seen),
            "rate": scheduler.get_last_lr()[0],
            "rate_right": abs(float(scheduler.get_last_lr()[0]) - 0.1 * 0.5**3) < 1e-9,
        }
        step.close()
        model = model_of()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        step = Step(optimizer, scheduler=scheduler)
        first = next(model.parameters())
        outcome = []
        for weight in (5.0, float("nan"), 0.0, 5.0):
            before = first.detach().clone()
            with step:
                step.backward(loss_of(model, data), weight=torch.full((), weight, device=CUDA))
            finite = bool(torch.isfinite(first).all())
            moved = not torch.equal(before, first)
            outcome.append({"skipped": step.skipped, "finite": finite, "moved": moved})
        rows[f"bad device weight, {'fused' if fused else 'foreach'}"] = {
            "steps": outcome,
            "right": [o["skipped"] for o in outcome] == [False, True, True, False]
            and all(o["finite"] for o in outcome)
            and (not fused or [o["moved"] for o in outcome] == [True, False, False, True]),
            "rate": scheduler.get_last_lr()[0],
        }
        step.close()
    return rows


def bare_zeros() -> dict[str, str]:
    """A known hole: a fill with zeros by CUDA's foreach kernels moves no version."""
    model = model_of()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = batches(1)[0]
    rows = {}
    for set_to_none in (True, False):
        step = Step(optimizer)
        try:
            with step:
                step.backward(loss_of(model, data))
                optimizer.zero_grad(set_to_none=set_to_none)
            rows[f"zero_grad(set_to_none={set_to_none}) inside"] = "not seen"
        except Exception as error:
            rows[f"zero_grad(set_to_none={set_to_none}) inside"] = type(error).__name__
        step.close()
    return rows


def two_optimizers_one_scaler() -> dict[str, Any]:
    """fp16, two models, two optimizers, one clip: the size of each model's update."""
    first, second = model_of(1), model_of(2)
    data = batches(1)[0]

    def loss(a: nn.Module, b: nn.Module) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.float16):
            found = a(data[0]) + b(data[0])
        return nn.functional.cross_entropy(found.float(), data[1])

    def size(new: nn.Module, old: nn.Module) -> float:
        pairs = zip(new.parameters(), old.parameters(), strict=True)
        return float(torch.cat([(p - q).detach().flatten() for p, q in pairs]).norm())

    def sizes(a: nn.Module, b: nn.Module) -> list[float]:
        return [size(a, first), size(b, second)]

    rows: dict[str, Any] = {}
    a, b = copy.deepcopy(first), copy.deepcopy(second)
    oa, ob = torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)
    scaler = GradScaler("cuda")
    scaler.scale(loss(a, b)).backward()
    scaler.unscale_(oa)
    scaler.unscale_(ob)
    nn.utils.clip_grad_norm_([*a.parameters(), *b.parameters()], 1.0)
    scaler.step(oa)
    scaler.step(ob)
    scaler.update()
    rows["plain torch, one update"] = sizes(a, b)

    a, b = copy.deepcopy(first), copy.deepcopy(second)
    step = Step(
        torch.optim.SGD(a.parameters(), lr=0.1),
        torch.optim.SGD(b.parameters(), lr=0.1),
        models=[a, b],
        scaler=GradScaler("cuda"),
        clip=1.0,
    )
    with step:
        step.backward(loss(a, b))
    rows["zerograd Step"] = sizes(a, b)
    step.close()

    try:
        import accelerate

        accelerator = accelerate.Accelerator(mixed_precision="fp16")
        a, b = copy.deepcopy(first), copy.deepcopy(second)
        pa, pb, oa, ob = accelerator.prepare(
            a, b, torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)
        )
        accelerator.backward(
            nn.functional.cross_entropy((pa(data[0]) + pb(data[0])).float(), data[1])
        )
        accelerator.clip_grad_norm_([*pa.parameters(), *pb.parameters()], 1.0)
        oa.step()
        ob.step()
        rows[f"Accelerate {accelerate.__version__}"] = sizes(a, b)
        a, b = copy.deepcopy(first), copy.deepcopy(second)
        pa, pb, oa, ob = accelerator.prepare(
            a, b, torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)
        )
        step = Step(oa, ob, models=[pa, pb], clip=1.0)
        with step:
            step.backward(nn.functional.cross_entropy((pa(data[0]) + pb(data[0])).float(), data[1]))
        rows["zerograd Step on Accelerate's prepared objects"] = sizes(a, b)
    except ImportError:
        rows["Accelerate"] = "not installed"
    right = rows["plain torch, one update"]
    return {
        "update_sizes": rows,
        "ratio_to_plain_torch": {
            name: [x / y for x, y in zip(value, right, strict=True)]
            for name, value in rows.items()
            if isinstance(value, list)
        },
    }


def wrapped() -> dict[str, Any]:
    """Under NCCL (one rank, as there is one GPU) and Fabric: the error of a window's update."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    data = batches()
    whole = (torch.cat([b[0] for b in data]).double(), torch.cat([b[1] for b in data]))
    start, exact = model_of(), model_of().double()
    nn.functional.cross_entropy(exact(whole[0]), whole[1]).backward()
    right = torch.cat([p.grad.flatten() for p in exact.parameters() if p.grad is not None])

    def error_of(model: nn.Module, optimizer: Any, loss: Callable[[Any], torch.Tensor]) -> float:
        """SGD with rate 1 moves the parameters by the gradient."""
        step = Step(optimizer, models=[model], clip=1e9)
        for window in windows(data, len(data)):
            with step(window):
                for batch in window:
                    step.backward(loss(batch), batch[3])
        step.close()
        ends = [getattr(p, "full_tensor", lambda p=p: p)() for p in model.parameters()]
        begins = start.parameters()
        moved = [(b - e).detach().flatten() for b, e in zip(begins, ends, strict=True)]
        return float((torch.cat(moved).double() - right).norm() / right.norm())

    def sgd(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=1.0)

    rows: dict[str, Any] = {}
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29531", rank=0, world_size=1)
    try:
        replica = DistributedDataParallel(copy.deepcopy(start), device_ids=[0])
        rows["DDP, NCCL"] = error_of(replica, sgd(replica), partial(loss_of, replica))
        for name, shape in (("FSDP2, NCCL", (1,)), ("HSDP, NCCL", (1, 1))):
            names = ("shard",) if len(shape) == 1 else ("replicate", "shard")
            mesh = init_device_mesh("cuda", shape, mesh_dim_names=names)
            sharded = copy.deepcopy(start)
            for layer in sharded:
                if isinstance(layer, nn.Linear):
                    fully_shard(layer, mesh=mesh)
            fully_shard(sharded, mesh=mesh)
            rows[name] = error_of(sharded, sgd(sharded), partial(loss_of, sharded))
    finally:
        dist.destroy_process_group()
    try:
        from lightning_fabric import Fabric
    except ImportError:
        rows["Fabric"] = "not installed"
        return rows
    # under mixed precision Fabric refuses every backward that is not its own
    for precision in ("32-true", "bf16-true"):
        fabric = Fabric(accelerator="cuda", devices=1, precision=precision)
        model = copy.deepcopy(start)
        prepared, optimizer = fabric.setup(model, sgd(model))
        rows[f"Fabric, {precision}"] = error_of(prepared, optimizer, partial(loss_of, prepared))
    return rows


def captured_arena_with_step_shapes() -> dict[str, Any]:
    """The arena's addresses stay, so a captured backward goes on filling it."""
    from zerograd import GradArena

    model = model_of()
    arena = GradArena(model.parameters())
    x = torch.randn(16, 32, device=CUDA)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x).pow(2).mean().backward()
            arena.zero_()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        arena.zero_()
        model(x).pow(2).mean().backward()
        norm = arena.clip_(1e9)
    graph.replay()
    expected = nn.utils.get_total_norm(
        torch.autograd.grad(model(x).pow(2).mean(), list(model.parameters()))
    )
    return {"norm": float(norm), "expected": float(expected)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }
    parts: dict[str, Callable[[], Any]] = {
        "waits": waits,
        "exactness": exactness,
        "skips": skips,
        "bare_zeros": bare_zeros,
        "two_optimizers_one_scaler": two_optimizers_one_scaler,
        "wrapped": wrapped,
        "captured_arena": captured_arena_with_step_shapes,
    }
    for name, part in parts.items():
        began = time.perf_counter()
        try:
            result[name] = part()
        except Exception:  # the other parts are still worth having
            result[name] = {"failed": traceback.format_exc()}
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
        print(json.dumps(result[name]), flush=True)
        (folder / "step_gpu.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
