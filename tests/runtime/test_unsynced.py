"""Two real gloo ranks: steps on gradients that DDP has not averaged, by mistake and on purpose."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from tests.ranks_meet import said_by_ranks

pytest.importorskip("torch")

from zerograd.runtime.exchanges import measures_in

RANKS = Path(__file__).with_name("unsynced_under_test.py")

BEGINS = """
import torch, torch.distributed as dist
from contextlib import nullcontext
from torch.nn.parallel import DistributedDataParallel
from torch.nn import BatchNorm1d, Linear
def model():
    return torch.nn.Sequential(Linear(4, 8), BatchNorm1d(8), Linear(8, 1))
net = DistributedDataParallel(model())
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def loss_of(model=None):
    return (model or net)(torch.randn(8, 4)).pow(2).mean() / 2
torch.manual_seed(dist.get_rank())
"""

INVERTED = """
for i in range(16):
    with net.no_sync() if i % 2 == 1 else nullcontext():
        loss_of().backward()  # here
    if i % 2 == 1:
        opt.step()
        opt.zero_grad()
"""
ALWAYS = """
for i in range(16):
    with net.no_sync():
        loss_of().backward()  # here
    if i % 2 == 1:
        opt.step()
        opt.zero_grad()
"""

FAULTY = {
    "inverted": INVERTED,
    "always": ALWAYS,
    "unused parameters": "net = DistributedDataParallel(net.module, find_unused_parameters=True)"
    + INVERTED,
    "static graph": "net = DistributedDataParallel(net.module, static_graph=True)" + INVERTED,
    "bucket view": "net = DistributedDataParallel(net.module, gradient_as_bucket_view=True)"
    + INVERTED,
    "of each epoch's tail": """
for epoch in range(4):
    for i in range(5):
        is_full = (i + 1) % 2 == 0
        with nullcontext() if is_full else net.no_sync():
            loss_of().backward()  # here
        if is_full or i == 4:
            opt.step()
            opt.zero_grad()
""",
    "flag set too late": """
for step in range(8):
    loss_accum = torch.zeros(1)
    for micro in range(3):
        loss = loss_of()
        loss_accum += loss.detach()
        net.require_backward_grad_sync = micro == 2
        loss.backward()  # here
    dist.all_reduce(loss_accum)
    opt.step()
    opt.zero_grad()
""",
    "accuracy logged": INVERTED
    + """
    if i % 6 == 5:
        correct = torch.tensor([1.0])
        dist.all_reduce(correct)
""",
    "scaler": """
scaler = torch.amp.GradScaler("cpu")
for i in range(16):
    with net.no_sync():
        scaler.scale(loss_of()).backward()  # here
    if i % 2 == 1:
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
""",
    "one of two models": """
other = DistributedDataParallel(torch.nn.Linear(4, 1))
opt_other = torch.optim.SGD(other.parameters(), lr=0.01)
for i in range(8):
    opt_other.zero_grad()
    loss_of(other).backward()
    opt_other.step()
    opt.zero_grad()
    with net.no_sync():
        loss_of().backward()  # here
    opt.step()
""",
    "one of two models, one optimizer": """
other = DistributedDataParallel(torch.nn.Linear(4, 1))
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)
for i in range(8):
    opt.zero_grad()
    loss_of(other).backward()
    with net.no_sync():
        loss_of().backward()  # here
    opt.step()
""",
    "an optimizer with a wrapper that clears": """
class Wrapper(torch.optim.SGD):
    def __init__(self, inner):
        self.__dict__ = inner.__dict__
        self.inner = inner
    def step(self):
        self.inner.step()
wrapper = Wrapper(opt)
for i in range(8):
    with net.no_sync():
        loss_of().backward()  # here
    wrapper.step()
    wrapper.zero_grad()
""",
    "past the wrapper, beside another model": """
other = DistributedDataParallel(torch.nn.Linear(4, 4))
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)
for i in range(8):
    opt.zero_grad()
    net.module(other(torch.randn(8, 4))).mean().backward()  # here
    opt.step()
""",
    "accelerate": """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
net, opt = accelerator.prepare(model(), torch.optim.SGD(net.parameters(), lr=0.01))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(8):
    with accelerator.no_sync(net):
        accelerator.backward(loss_of(net))  # here
    opt.step()
    opt.zero_grad()
""",
}

AVERAGES = """
def average(tensors):
    for each in tensors:
        dist.all_reduce(each)
        each /= dist.get_world_size()
"""
SILENT = {
    "right": """
for i in range(16):
    with net.no_sync() if i % 2 == 0 else nullcontext():
        loss_of().backward()
    if i % 2 == 1:
        opt.step()
        opt.zero_grad()
""",
    "right by the flag": """
for i in range(16):
    net.require_backward_grad_sync = i % 2 == 1
    loss_of().backward()
    if i % 2 == 1:
        opt.step()
        opt.zero_grad()
""",
    "once only": """
for i in range(8):
    with net.no_sync() if i == 3 else nullcontext():
        loss_of().backward()
    opt.step()
    opt.zero_grad()
""",
    "gradients averaged by hand": AVERAGES
    + """
for i in range(16):
    with net.no_sync():
        loss_of().backward()
    if i % 2 == 1:
        average([each.grad for each in net.parameters()])
        opt.step()
        opt.zero_grad()
""",
    "gradients averaged by hand, in a library": """
from hands import together
for i in range(16):
    with net.no_sync():
        loss_of().backward()
    if i % 2 == 1:
        together([each.grad for each in net.parameters()])
        opt.step()
        opt.zero_grad()
""",
    "weights averaged in a library": """
from hands import together
for i in range(16):
    with net.no_sync():
        loss_of().backward()
    if i % 2 == 1:
        opt.step()
        opt.zero_grad()
        together([each.data for each in net.parameters()])
""",
    "an optimizer that averages": """
from hands import Together
opt = Together(net.parameters(), lr=0.01)
for i in range(8):
    with net.no_sync():
        loss_of().backward()
    opt.step()
    opt.zero_grad()
    loss = torch.ones(1)
    dist.all_reduce(loss)
""",
    "hooks that average": """
from hands import together
for each in net.parameters():
    each.register_post_accumulate_grad_hook(lambda each: together([each.grad]))
for i in range(8):
    with net.no_sync():
        loss_of().backward()
    opt.step()
    opt.zero_grad()
""",
    "weights averaged every fourth step": AVERAGES
    + """
for i in range(16):
    with net.no_sync():
        loss_of().backward()
    opt.step()
    opt.zero_grad()
    if i % 4 == 3:
        average([each.data for each in net.parameters()])
""",
    "weights averaged after a thousand steps": AVERAGES
    + """
for i in range(16):
    with net.no_sync():
        loss_of().backward()
    opt.step()
    opt.zero_grad()
    if i % 1000 == 999:
        average([each.data for each in net.parameters()])
""",
    "periodic averager": """
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
averager = PeriodicModelAverager(period=100)
for i in range(8):
    with net.no_sync():
        loss_of().backward()
    opt.step()
    averager.average_parameters(net.parameters())
    opt.zero_grad()
""",
    "post-local SGD": """
from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as hooks
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
alone = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
state = hooks.PostLocalSGDState(None, alone, start_localSGD_iter=3)
net.register_comm_hook(state, hooks.post_localSGD_hook)
opt = PostLocalSGDOptimizer(opt, PeriodicModelAverager(period=4, warmup_steps=3))
for i in range(12):
    with net.no_sync() if i % 2 == 0 else nullcontext():
        loss_of().backward()
    if i % 2 == 1:
        opt.step()
        opt.zero_grad()
""",
    "sam": """
class Sam(torch.optim.SGD):
    def step(self, closure):
        closure = torch.enable_grad()(closure)
        self.zero_grad()
        return super().step(closure)
opt = Sam(net.parameters(), lr=0.01)
for i in range(8):
    with net.no_sync():
        loss_of().backward()
    opt.step(lambda: loss_of().backward())
    opt.zero_grad()
""",
    "an inner and an outer optimizer": """
inner = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6):
    before = [each.detach().clone() for each in net.parameters()]
    for _ in range(2):
        inner.zero_grad()
        with net.no_sync():
            loss_of().backward()
        inner.step()
    opt.zero_grad()
    loss_of().backward()
    with torch.no_grad():
        for each, old in zip(net.parameters(), before):
            each.copy_(old)
    opt.step()
""",
    "a group of one rank": """
alone = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
net = DistributedDataParallel(model(), process_group=alone)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
"""
    + ALWAYS,
    "a discriminator's share of the generator's loss": """
judge = DistributedDataParallel(torch.nn.Linear(1, 1))
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.01)
for i in range(8):
    made = net(torch.randn(8, 4))
    opt_judge.zero_grad()
    judge(made.detach()).mean().backward()
    opt_judge.step()
    opt.zero_grad()
    with judge.no_sync():
        judge(made).mean().backward()
    opt.step()
""",
    "join": """
with net.join():
    for i in range(8 + 2 * dist.get_rank()):
        with net.no_sync() if i % 2 == 0 else nullcontext():
            loss_of().backward()
        if i % 2 == 1:
            opt.step()
            opt.zero_grad()
""",
    "another wrapper of that name": """
class DistributedDataParallel(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
    def forward(self, x):
        return self.module(x)
net = DistributedDataParallel(model())
opt = torch.optim.SGD(net.parameters(), lr=0.01)
from hands import together
for i in range(8):
    loss_of().backward()
    together([each.grad for each in net.parameters()])
    opt.step()
    opt.zero_grad()
""",
    "gradients averaged in a library, a loss by hand": """
from hands import together
for i in range(8):
    with net.no_sync():
        loss = loss_of()
        loss.backward()
    together([each.grad for each in net.parameters()])
    dist.all_reduce(loss)
    opt.step()
    opt.zero_grad()
""",
    "evaluation between": """
for i in range(16):
    with net.no_sync() if i % 2 == 0 else nullcontext():
        loss_of().backward()
    if i % 2 == 1:
        opt.step()
        opt.zero_grad()
        with torch.no_grad(), net.no_sync():
            loss_of()
""",
    "accelerate": """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
data = torch.utils.data.DataLoader(torch.randn(56, 4), batch_size=4)
inner = model()
net, opt, data = accelerator.prepare(inner, torch.optim.SGD(inner.parameters(), lr=0.01), data)
for epoch in range(2):
    for batch in data:
        with accelerator.accumulate(net):
            accelerator.backward(net(batch).pow(2).mean())
            opt.step()
            opt.zero_grad()
""",
    "accelerate, synchronised on demand": """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
inner = model()
net, opt = accelerator.prepare(inner, torch.optim.SGD(inner.parameters(), lr=0.01))
for i in range(8):
    with accelerator.no_sync(net):
        first, second = loss_of(net), loss_of(net)
        accelerator.backward(first)
        with accelerator.trigger_sync_in_backward(net):
            accelerator.backward(second)
    opt.step()
    opt.zero_grad()
""",
}

HANDS = """
import torch, torch.distributed as dist
def together(tensors):
    for each in tensors:
        dist.all_reduce(each)
        each /= 2
class Together(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure=None):
        together([each.grad for each in self.param_groups[0]["params"]])
        return super().step(closure)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Run all trainings on two ranks once; return what each rank found."""
    pytest.importorskip("accelerate")
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "hands.py").write_text(HANDS)
    for kind, scripts in (("faulty", FAULTY), ("silent", SILENT)):
        for name, text in scripts.items():
            (folder / f"{kind} {name}.py").write_text(BEGINS + text)
    results = {}
    for out in said_by_ranks([sys.executable, str(RANKS), str(folder)], 2, deadline=240):
        number, _, text = out.strip().splitlines()[-1].partition(" ")
        results[int(number)] = json.loads(text)
    return results


@pytest.mark.parametrize("name", FAULTY)
def test_steps_on_gradients_of_one_rank_alone_are_told_at_the_last_backward(found, name):
    lines = (BEGINS + FAULTY[name]).splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if "# here" in text]
    for rank in (0, 1):
        assert found[rank][f"faulty {name}"]["at"] == [["ZG601", line]]


@pytest.mark.parametrize("name", SILENT)
def test_ranks_that_average_in_their_own_time_are_no_fault(found, name):
    for rank in (0, 1):
        assert found[rank][f"silent {name}"]["at"] == []
        assert found[rank][f"silent {name}"]["not checked"] == []


def test_it_is_told_from_the_second_window_on_and_counted(found):
    assert found[0]["faulty inverted"]["counts"] == [7]  # of eight


def test_the_ways_to_be_apart_are_told_apart(found):
    said = {name: found[0][f"faulty {name}"]["messages"][0] for name in FAULTY}
    assert "the last backward of each window ran inside no_sync()" in said["inverted"]
    assert "every backward of each window ran inside no_sync()" in said["always"]
    assert "before require_backward_grad_sync was set" in said["flag set too late"]
    assert "before that forward" in found[0]["faulty flag set too late"]["fixes"][0]


@pytest.mark.parametrize(
    "text, measures",
    [
        ("loss.backward()  # then all_reduce", 0),
        ("x.broadcast_to(3)", 0),
        ("if accelerator.sync_gradients: clip()", 0),
        ("net.require_backward_grad_sync = last", 0),
        ("meter = AverageMeter()", 0),
        ("model.gradient_checkpointing_enable(); loss.mean(); params.merge(x)", 0),
        ("dist.all_reduce(loss)", 1),
        ("def f(x):\n  t = torch.tensor(x).cuda()\n  dist.all_reduce(t)\nf(1)", 1),
        ("def f(t):\n  dist.all_reduce(t)\nt = torch.tensor(1)", None),
        ("dist.all_reduce(loss)\ndist.all_reduce(p.grad)", None),
        ("from torch.distributed import all_reduce as f\nf(x)", None),
        ("reduce = dist.all_reduce", None),
        ("with LocalSGD(accelerator=a, model=m, local_sgd_steps=8): pass", None),
        ("hvd.allreduce_(p.grad)", None),
        ("mpi_avg_grads(net)", None),
        ("sync_all_params(net)", None),
        ("average_gradients(net)", None),
        ("trainer.exchange_weights()", None),
        ("model_averaging(net)", None),
    ],
)
def test_what_a_source_exchanges_is_read_from_its_names(text, measures):
    assert measures_in(ast.parse(text)) == measures
