import contextlib
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

with tempfile.TemporaryDirectory() as folder:
    store = dist.FileStore(f"{folder}/store", 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    for quiet in (False, True):
        seen = []

        def hook(state, bucket, seen=seen):
            seen.append(bucket)
            done = torch.futures.Future()
            done.set_result(bucket.buffer())
            return done

        model = DistributedDataParallel(torch.nn.Linear(4, 1))
        model.register_comm_hook(None, hook)
        for micro_batch in range(4):  # one window, no clear in between
            hush = quiet and micro_batch < 3
            with model.no_sync() if hush else contextlib.nullcontext():
                model(torch.ones(2, 4)).sum().backward()
        print(f"no_sync {quiet}: {len(seen)} all-reduces for one update")
    dist.destroy_process_group()
