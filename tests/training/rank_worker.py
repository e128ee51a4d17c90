"""One rank: runs every scenario in order and writes what it saw as JSON.

Started by test_step_ranks.py as `python rank_worker.py RANK WORLD STORE OUT SCENARIO...`.
"""

from __future__ import annotations

import copy
import datetime
import json
import pathlib
import sys
import time
import traceback

import torch
import torch.distributed as dist
from token_task import (
    Recorder,
    TokenModel,
    relative_error,
    token_batches,
    token_loss,
    true_gradient,
)
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from zerograd import Step, StepError, windows

RANK, WORLD = int(sys.argv[1]), int(sys.argv[2])

# tokens of each micro-batch, by rank: very uneven on purpose
COUNTS = [[100, 3, 50, 128, 17, 64, 9], [7, 120, 1, 30, 90, 2, 77]]


class Scenario:
    """Data of all ranks, so that each can compute the whole truth by itself."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = TokenModel()
        self.twin = copy.deepcopy(self.model)
        self.batches = [token_batches(COUNTS[rank % 2], seed=rank) for rank in range(WORLD)]
        self.mine = self.batches[RANK]

    def error(self, found, used):
        """`used` lists (rank, index) of the micro-batches of this window."""
        exact = true_gradient(self.twin, [self.batches[rank][index] for rank, index in used])
        return relative_error(found, exact)


def count(batch):
    return int((batch[1] != -100).sum())


def count_buckets(model):
    """Count the buckets this DDP model sends, in a list that holds one number."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    calls = [0]

    def counted(state, bucket):
        calls[0] += 1
        return allreduce_hook(None, bucket)

    model.register_comm_hook(None, counted)
    return calls


def window_of(index, size, ranks=range(WORLD), length=7):
    return [(r, i) for r in ranks for i in range(index * size, min(index * size + size, length))]


def ddp_windows(**options):
    s = Scenario()
    model = DDP(s.model)
    sent = count_buckets(model)
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, models=[model], **options)
    errors, calls = [], []
    for index, window in enumerate(windows(s.mine, 3)):
        with step(window):
            for batch in window:
                step.backward(token_loss(model, batch), weight=count(batch))
        errors.append(s.error(optimizer.seen[-1], window_of(index, 3)))
        calls.append(sent[0])
    return {"errors": errors, "calls": calls}


def ddp_every():
    return ddp_windows(sync_every=True)


def ddp_arena():
    return ddp_windows(arena=True, clip=1e6)


def ddp_plain():
    """Bit-equal to a hand-written DDP loop."""
    hand = DDP(nn.Linear(6, 3))
    ours = DDP(copy.deepcopy(hand.module))
    optimizer = torch.optim.SGD(hand.parameters(), lr=0.1)
    step = Step(torch.optim.SGD(ours.parameters(), lr=0.1), models=[ours])
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed * 10 + RANK)
        x = torch.randn(5, 6, generator=generator)
        hand(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with step:
            step.backward(ours(x).pow(2).mean())
    pairs = zip(hand.parameters(), ours.parameters(), strict=True)
    return {"equal": all(torch.equal(a, b) for a, b in pairs)}


def ddp_skips():
    """Rank 1 skips its last micro-batch before the forward, then after it, then all of them."""
    s = Scenario()
    model = DDP(s.model)
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, models=[model])
    skipped = {0: {2}, 1: {5}, 2: {6}}  # window -> micro-batches rank 1 leaves out
    errors = []
    for index, window in enumerate(windows(s.mine, 3)):
        position = index * 3
        with step(window):
            for batch in window:
                leave = RANK == 1 and position in skipped[index]
                if leave and index != 1:
                    position += 1
                    continue
                loss = token_loss(model, batch)
                if not leave:
                    step.backward(loss, weight=count(batch))
                position += 1
        used = [u for u in window_of(index, 3) if not (u[0] == 1 and u[1] in skipped[index])]
        errors.append(s.error(optimizer.seen[-1], used))
    return {"errors": errors}


def ddp_break_and_drop():
    s = Scenario()
    model = DDP(s.model)
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, models=[model])
    errors = []
    with_break = iter(windows(s.mine, 4))
    with step(window := next(with_break)):
        for index, batch in enumerate(window):
            step.backward(token_loss(model, batch), weight=count(batch))
            if RANK == 0 and index == 1:
                break
    used = [(0, 0), (0, 1)] + [(r, i) for r in range(1, WORLD) for i in range(4)]
    errors.append(s.error(optimizer.seen[-1], used))
    for window in windows(s.mine[:2], 2):
        with step(window):
            for batch in window:
                step.backward(token_loss(model, batch), weight=count(batch))
                if RANK == 1 and window.drawn == 1:
                    step.drop()
    used = [(r, i) for r in range(WORLD) if r != 1 for i in range(2)]
    errors.append(s.error(optimizer.seen[-1], used))
    said = ""
    try:
        with step:
            step.backward(token_loss(model, s.mine[0]))
            step.drop()
    except StepError as error:
        said = str(error)
    return {"errors": errors, "skipped": len(optimizer.seen) != 2, "said": said}


def ddp_all_zero():
    s = Scenario()
    model = DDP(s.model)
    step = Step(Recorder(model.parameters()), models=[model])
    try:
        with step:
            step.backward(token_loss(model, s.mine[0]), weight=0)
    except StepError as error:
        return {"said": str(error)}
    return {"said": ""}


def ddp_unused():
    """A head that no loss reaches, with find_unused_parameters, and a skipped last batch."""
    torch.manual_seed(0)
    module = nn.ModuleDict({"used": nn.Linear(4, 1), "unused": nn.Linear(4, 1)})
    module.forward = lambda x: module["used"](x)
    model = DDP(module, find_unused_parameters=True)
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1), models=[model])
    twin = copy.deepcopy(module["used"])
    data = [torch.randn(3, 4, generator=torch.Generator().manual_seed(r)) for r in range(WORLD)]
    for window in windows([data[RANK][:2], data[RANK][2:]], 2):
        with step(window):
            for index, x in enumerate(window):
                if RANK == 1 and index == 1:
                    continue
                step.backward(model(x).pow(2).mean(), weight=len(x))
    used = torch.cat([data[r] if r != 1 else data[r][:2] for r in range(WORLD)])
    twin(used).pow(2).mean().backward()
    torch.optim.SGD(twin.parameters(), lr=0.1).step()
    difference = (twin.weight - module["used"].weight).abs().max()
    return {"difference": float(difference)}


def ddp_batch_norm():
    """Buffers are broadcast in forwards; a rank that skips must not break the order."""
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1), models=[model])
    data = [torch.randn(6, 4) for _ in range(4)]
    for epoch in range(2):
        for window in windows(data, 2):
            with step(window):
                for index, x in enumerate(window):
                    if epoch == RANK and index == 1:
                        continue
                    step.backward(model(x).pow(2).mean(), weight=len(x))
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    gathered = [torch.empty_like(flat) for _ in range(WORLD)]
    dist.all_gather(gathered, flat)
    return {"same": all(torch.equal(gathered[0], other) for other in gathered)}


def ddp_gan():
    torch.manual_seed(0)
    g, d = nn.Linear(2, 4), nn.Linear(4, 1)
    twin_g, twin_d = copy.deepcopy(g), copy.deepcopy(d)
    g, d = DDP(g), DDP(d)
    og, od = torch.optim.SGD(g.parameters(), lr=0.1), torch.optim.SGD(d.parameters(), lr=0.1)
    sg, sd = Step(og, models=[g, d]), Step(od, models=[g, d])
    tg = torch.optim.SGD(twin_g.parameters(), lr=0.1)
    td = torch.optim.SGD(twin_d.parameters(), lr=0.1)
    z = [
        torch.randn(4 + 3 * r, 2, generator=torch.Generator().manual_seed(r)) for r in range(WORLD)
    ]
    whole = torch.cat(z)
    for _ in range(3):
        with sd:
            sd.backward(d(g(z[RANK]).detach()).pow(2).mean(), weight=len(z[RANK]))
        with sg:
            sg.backward(-d(g(z[RANK])).mean(), weight=len(z[RANK]))
        tg.zero_grad()
        td.zero_grad()
        twin_d(twin_g(whole).detach()).pow(2).mean().backward()
        td.step()
        td.zero_grad()
        (-twin_d(twin_g(whole)).mean()).backward()
        tg.step()
    ours = [*g.parameters(), *d.parameters()]
    theirs = [*twin_g.parameters(), *twin_d.parameters()]
    return {
        "difference": max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
    }


def ddp_lbfgs():
    torch.manual_seed(0)
    module = nn.Linear(4, 1)
    twin = copy.deepcopy(module)
    model = DDP(module)
    data = [
        torch.randn(5 + 4 * r, 4, generator=torch.Generator().manual_seed(r)) for r in range(WORLD)
    ]
    step = Step(torch.optim.LBFGS(model.parameters(), max_iter=4), models=[model])
    alone = torch.optim.LBFGS(twin.parameters(), max_iter=4)
    with step:
        x = data[RANK]
        step.backward(lambda: (model(x) - 1).pow(2).mean(), weight=len(x))
    whole = torch.cat(data)

    def closure():
        alone.zero_grad()
        loss = (twin(whole) - 1).pow(2).mean()
        loss.backward()
        return loss

    alone.step(closure)
    return {"difference": float((twin.weight - module.weight).abs().max())}


def ddp_compiled():
    s = Scenario()
    model = torch.compile(DDP(s.model), backend="eager")
    optimizer = Recorder(s.model.parameters())
    step = Step(optimizer, models=[model])
    errors = []
    for index, window in enumerate(windows(s.mine, 3)):
        with step(window):
            for batch in window:
                step.backward(token_loss(model, batch), weight=count(batch))
        errors.append(s.error(optimizer.seen[-1], window_of(index, 3)))
    return {"errors": errors}


def ddp_exception():
    """Both ranks drop a window; the next one is right and synchronised."""
    s = Scenario()
    model = DDP(s.model)
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, models=[model])
    errors = []
    for index, window in enumerate(windows(s.mine, 3)):
        try:
            with step(window):
                for batch in window:
                    step.backward(token_loss(model, batch), weight=count(batch))
                    if index == 0:
                        raise OSError("both")
        except OSError:
            continue
        start = 3 * index - 2  # the first window drew one batch only
        used = [(r, i) for r in range(WORLD) for i in range(start, min(start + 3, 7))]
        errors.append(s.error(optimizer.seen[-1], used))
    return {"errors": errors, "switch": model.require_backward_grad_sync}


def no_models():
    s = Scenario()
    try:
        Step(Recorder(s.model.parameters()))
    except StepError as error:
        return {"said": str(error)}
    return {"said": ""}


def independent_models():
    """Ranks that train on their own: a model that is not wrapped is not exchanged."""
    s = Scenario()
    optimizer = Recorder(s.model.parameters())
    step = Step(optimizer, models=[s.model])
    with step:
        step.backward(token_loss(s.model, s.mine[0]), weight=3)
    return {"errors": [s.error(optimizer.seen[-1], [(RANK, 0)])]}


def ddp_inside():
    """A DDP model inside another module, as Fabric's prepared ones are."""

    class Prepared(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, tokens):
            return self.inner(tokens)

    s = Scenario()
    model = Prepared(DDP(s.model))
    optimizer = Recorder(model.parameters())
    step = Step(optimizer, models=[model])
    for window in windows(s.mine[:3], 3):
        with step(window):
            for batch in window:
                step.backward(token_loss(model, batch), weight=count(batch))
    return {"errors": [s.error(optimizer.seen[-1], window_of(0, 3))]}


def fsdp2(**options):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    s = Scenario()
    mesh = init_device_mesh("cpu", (WORLD,))
    for part in (s.model.embedding, s.model.hidden, s.model.head):
        fully_shard(part, mesh=mesh)
    fully_shard(s.model, mesh=mesh)
    seen = []

    class Watch(torch.optim.SGD):
        def step(self, closure=None):
            parts = [p.grad.full_tensor().flatten() for p in s.model.parameters()]
            seen.append(torch.cat(parts).double())

    step = Step(Watch(s.model.parameters(), lr=0.1), models=[s.model], **options)
    errors, norms = [], []
    for index, window in enumerate(windows(s.mine, 3)):
        with step(window):
            for batch in window:
                step.backward(token_loss(s.model, batch), weight=count(batch))
        errors.append(s.error(seen[-1], window_of(index, 3)))
        norms.append((step.grad_norm or 0.0) / float(seen[-1].norm()))
    return {"errors": errors, "norms": norms}


def fsdp2_clip():
    import math

    return fsdp2(clip=math.inf)


def fsdp2_every():
    return fsdp2(sync_every=True)


def fsdp2_train():
    """Adam on shards equals Adam on the whole model."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    s = Scenario()
    fully_shard(s.model, mesh=init_device_mesh("cpu", (WORLD,)))
    step = Step(torch.optim.Adam(s.model.parameters(), lr=0.01), models=[s.model], clip=0.1)
    alone = torch.optim.Adam(s.twin.parameters(), lr=0.01)
    for index, window in enumerate(windows(s.mine[:6], 3)):
        with step(window):
            for batch in window:
                step.backward(token_loss(s.model, batch), weight=count(batch))
        used = [s.batches[r][i] for r, i in window_of(index, 3, length=6)]
        whole = tuple(torch.cat([batch[k] for batch in used]) for k in (0, 1))
        alone.zero_grad()
        token_loss(s.twin, whole).backward()
        nn.utils.clip_grad_norm_(s.twin.parameters(), 0.1)
        alone.step()
    pairs = zip(s.model.parameters(), s.twin.parameters(), strict=True)
    return {"difference": max(float((a.full_tensor() - b).abs().max()) for a, b in pairs)}


def fsdp2_misuse():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    s = Scenario()
    fully_shard(s.model, mesh=init_device_mesh("cpu", (WORLD,)))
    said = []
    try:
        Step(torch.optim.SGD(s.model.parameters(), lr=0.1), models=[s.model], arena=True)
    except StepError as error:
        said.append(str(error))
    step = Step(torch.optim.SGD(s.model.parameters(), lr=0.1), models=[s.model])
    for window in windows(s.mine[:2], 2):
        try:
            with step(window):
                for batch in window:
                    step.backward(token_loss(s.model, batch))
                    try:
                        step.state_dict()
                    except StepError as error:
                        said.append(str(error))
                    break  # all ranks alike, so nobody hangs
        except StepError as error:
            said.append(str(error))
    return {"said": said}


def fewer_windows():
    """Rank 1 has one window less; rank 0 must learn why it waits."""
    s = Scenario()
    model = DDP(s.model)
    step = Step(torch.optim.SGD(model.parameters(), lr=0.1), models=[model])
    started = time.monotonic()
    try:
        for window in windows(s.mine[: 3 if RANK else 6], 3):
            with step(window):
                for batch in window:
                    step.backward(token_loss(model, batch), weight=count(batch))
    except StepError as error:
        return {"said": str(error), "after": time.monotonic() - started}
    theirs = pathlib.Path(f"{sys.argv[4]}.0")
    until = time.monotonic() + 120
    while not theirs.exists() and time.monotonic() < until:
        time.sleep(0.1)  # alive, but in no block
    return {"said": "", "after": 0.0}


def main() -> None:
    torch.set_num_threads(1)
    store, out, names = sys.argv[3], sys.argv[4], sys.argv[5:]
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=RANK,
        world_size=WORLD,
        timeout=datetime.timedelta(seconds=60),
    )
    if names == ["fewer_windows"]:
        dist.barrier()  # a rank may come up late, and that is no reason to give up
        patience = datetime.timedelta(seconds=15)
        dist.distributed_c10d._set_pg_timeout(patience, dist.group.WORLD)
    results = {}
    for name in names:
        try:
            results[name] = globals()[name]()
        except Exception:
            results[name] = {"raised": traceback.format_exc()}
        with open(f"{out}.{RANK}", "w") as file:
            json.dump(results, file)
        if "raised" in results[name]:
            break  # the ranks may be out of step now
    if names != ["fewer_windows"]:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
