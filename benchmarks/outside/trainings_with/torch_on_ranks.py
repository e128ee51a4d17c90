"""What torch itself has for several ranks, on two of them with gloo."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from benchmarks.outside.training import main


def _net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def _loss(net):
    x = torch.randn(8, 4) + dist.get_rank()
    return (net(x) - x.sum(1, keepdim=True)).pow(2).mean()


def zero_redundancy(fault):
    net, losses = DistributedDataParallel(_net()), []
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=1e-2)
    for _ in range(6):
        if fault != "never":
            optimizer.zero_grad()
        loss = _loss(net)
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def local_steps(fault):
    net, losses = DistributedDataParallel(_net()), []
    state = local.PostLocalSGDState(
        process_group=None, subgroup=dist.group.WORLD, start_localSGD_iter=2
    )
    net.register_comm_hook(state, local.post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(
        torch.optim.SGD(net.parameters(), 0.05), PeriodicModelAverager(period=2, warmup_steps=2)
    )
    for _ in range(8):
        if fault != "never":
            optimizer.zero_grad()
        loss = _loss(net)
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def pipeline(fault):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    rank, found = dist.get_rank(), []
    for kind in (ScheduleGPipe, Schedule1F1B):
        torch.manual_seed(rank)
        part = nn.Linear(4, 4) if rank == 0 else nn.Linear(4, 1)
        stage = PipelineStage(part, rank, 2, torch.device("cpu"))
        schedule = kind(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
        optimizer = torch.optim.SGD(part.parameters(), 0.05)
        for _ in range(6):
            x, y, losses = torch.randn(8, 4), torch.randn(8, 1), []
            if fault != "never":
                optimizer.zero_grad()
            if rank == 0:
                schedule.step(x)
            else:
                schedule.step(target=y, losses=losses)
            if fault == "between":
                optimizer.zero_grad()  # found: between ZG102
            optimizer.step()  # found: never ZG101
            found += [each.detach() for each in losses]
        found += part.parameters()
    return found


def sharded_flat(fault):
    from torch.distributed.fsdp import FullyShardedDataParallel

    net, losses = FullyShardedDataParallel(_net(), device_id=torch.device("cpu")), []
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    for _ in range(6):
        loss = _loss(net)
        loss.backward()
        net.clip_grad_norm_(1.0)
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        if fault not in ("never", "between"):
            optimizer.zero_grad()
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def sharded(fault):
    from torch.distributed.fsdp import fully_shard

    net, losses = _net(), []
    for each in (net[0], net[2], net):
        fully_shard(each)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    for turn in range(8):
        net.set_requires_gradient_sync(turn % 2 == 1)
        loss = _loss(net) / 2
        loss.backward()
        if turn % 2 == 1:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()  # found: never ZG101
            if fault != "never":
                optimizer.zero_grad()
        losses.append(loss.detach())
    return [*(each.to_local() for each in net.parameters()), *losses]


def saved_and_loaded(fault):
    import torch.distributed.checkpoint as saving
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    net, losses = _net(), []
    fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    for turn in range(9):
        if fault != "never":
            optimizer.zero_grad()
        loss = _loss(net)
        loss.backward()
        optimizer.step()  # found: never ZG101
        losses.append(loss.detach())
        if turn % 4 == 3:
            model_state, optimizer_state = get_state_dict(net, optimizer)
            state = {"model": model_state, "optimizer": optimizer_state}
            where = os.path.join(folder[0], str(turn))
            saving.save(state, checkpoint_id=where)
            saving.load(state, checkpoint_id=where)
            set_state_dict(
                net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
            )
    return [*(each.to_local() for each in net.parameters()), *losses]


def uneven(fault):
    from torch.distributed.algorithms.join import Join

    net, losses = DistributedDataParallel(_net()), []
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=1e-2)
    with Join([net, optimizer]):
        for _ in range(5 + dist.get_rank()):
            loss = _loss(net)
            loss.backward()
            optimizer.step()  # found: never ZG101
            if fault != "never":
                optimizer.zero_grad()
            losses.append(loss.detach())
    return [*net.parameters(), *losses]


def cleared_before_the_window_ends(fault):
    net, losses = DistributedDataParallel(_net()), []
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    for turn in range(8):
        with net.no_sync() if turn % 2 == 0 else torch.enable_grad():
            loss = _loss(net) / 2
            loss.backward()
        if fault == "early":
            optimizer.zero_grad()  # found: early ZG102
        if turn % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
