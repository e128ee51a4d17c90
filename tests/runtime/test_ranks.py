"""Several ranks, one report: merged, said once, and never a reason for anyone to wait or die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.ranks_meet import free_port
from tests.runtime.processes_under_test import (
    DEADLINE,
    RUN,
    TORCHRUN,
    call,
    environment,
    run_json,
    write,
)
from zerograd.trace.reader import read_trace

pytest.importorskip("torch")

LAUNCHER = (*TORCHRUN, "--nproc-per-node", "2")

DDP = """
import os, sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
mode = sys.argv[1]
dist.init_process_group("gloo")
rank = dist.get_rank()
net = DistributedDataParallel(torch.nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    if mode != "forgets" or step < 2:
        opt.zero_grad()
    net(torch.ones(2, 4)).sum().backward()
    if mode == "apart" and rank == 1 and step == 5:
        continue
    opt.step()
dist.barrier()
dist.destroy_process_group()
if mode == "late" or rank == 1:
    time.sleep(2 * rank)
print("saved by", rank, flush=True)
"""

LEAVES_MUCH = """
import os, sys, time, torch
rank = int(os.environ["RANK"])
class Left:
    def __del__(self, sleep=time.sleep, made=os.mkdir, name=f"left-{rank}"):
        sleep(1.5)
        made(name)
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    if sys.argv[1] != "apart" or rank == 0:
        net(torch.ones(2, 4)).sum().backward()
        opt.step()
left = Left()  # dropped when Python itself ends
"""

UNEVEN = """
import torch, torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
net = DistributedDataParallel(torch.nn.Linear(4, 1))
opt = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.01)
with Join([net, opt]):
    for step in range(4 + 3 * dist.get_rank()):
        net(torch.ones(2, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
# Windows of two with a tail, which is shorter on one rank; then a training of equal lengths.
net = DistributedDataParallel(torch.nn.Linear(4, 1))
for opt in (torch.optim.SGD(net.parameters(), lr=0.01), torch.optim.Adam(net.parameters())):
    uneven = isinstance(opt, torch.optim.SGD)
    opt.zero_grad()
    with Join([net], enable=uneven):
        last = 4 + uneven * dist.get_rank()
        for step in range(last + 1):
            (net(torch.ones(2, 4)).sum() / 2).backward()
            if step % 2 or step == last:
                opt.step()
                opt.zero_grad()
dist.destroy_process_group()
"""

RUNS_OUT = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
net = DistributedDataParallel(torch.nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4 + 4 * dist.get_rank()):
    net(torch.ones(2, 4)).sum().backward()
    opt.step()
"""

COUNTED = DDP.replace(
    "dist.barrier()",
    "group = dist.distributed_c10d._get_default_group()\n"
    "open(f'{rank}.txt', 'w').write(str(group._get_sequence_number_for_group()))\n"
    "del group\n"  # kept beyond its end, its threads may abort the process as it exits
    "dist.barrier()",
)

ALONE = """
import os, sys, time, torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(10**9):
    net(torch.ones(2, 4)).sum().backward()
    opt.step()
    if step == 5:
        print("trains", flush=True)
    time.sleep(0.01)
"""


def test_findings_of_all_ranks_come_once_with_their_ranks_and_no_rank_is_cut_short(
    tmp_path: Path,
) -> None:
    write(tmp_path, ddp=DDP)
    out, trace = tmp_path / "f.json", tmp_path / "t.jsonl"
    done = call(*LAUNCHER, "-m", "zerograd", "run", "--format", "json", "--output", str(out),
                "--trace", str(trace), "ddp.py", "forgets", cwd=tmp_path)  # fmt: skip
    (finding,) = json.loads(out.read_text())
    assert finding["code"] == "ZG101" and finding["rank"] == [0, 1], finding
    assert finding["count"] == 2 * 6
    assert done.stderr.count("GradientWarning") == 1
    assert done.stderr.count("1 finding in") == 1
    # Rank 0 ends two seconds before rank 1, and its failing exit must not kill rank 1.
    assert "saved by 1" in done.stdout and "saved by 0" in done.stdout
    assert done.returncode == 1
    sections = read_trace(trace).sections
    assert [section.header.rank for section in sections] == [0, 1]
    assert all(section.end is not None and section.end["exit"] == 0 for section in sections)


def test_ranks_that_step_in_different_windows_are_found(tmp_path: Path) -> None:
    write(tmp_path, ddp=DDP)
    findings = run_json(tmp_path, "ddp.py", "apart", launcher=LAUNCHER)
    (finding,) = [each for each in findings if each["code"] == "ZG601"]
    assert finding["message"].endswith(
        "before step 6 of opt, rank 0 exchanges gradients once and rank 1 twice"
    )
    assert finding["location"]["row"] == 15 and finding["rank"] == [0, 1]


def test_what_only_ranks_together_show_is_in_the_trace_and_each_rank_counts_its_steps(
    tmp_path: Path,
) -> None:
    write(tmp_path, ddp=DDP)
    done = call(*LAUNCHER, "-m", "zerograd", "run", "--trace", "t.jsonl", "ddp.py", "apart",
                cwd=tmp_path)  # fmt: skip
    assert "Found 1 error. Watched 7 to 8 steps, ranks 0, 1." in done.stderr
    assert [each.rule.code for each in read_trace(tmp_path / "t.jsonl").findings] == ["ZG601"]
    told = call(sys.executable, "-m", "zerograd", "report", "t.jsonl", cwd=tmp_path).stdout
    assert "ddp.py:15:5: ZG601 rank-desync" in told and "on ranks 0, 1" in told


@pytest.mark.parametrize("mode", ["clean", "forgets"])
def test_no_collective_is_ours(tmp_path: Path, mode: str) -> None:
    write(tmp_path, ddp=COUNTED)
    counts = []
    for ours in ((), ("-m", "zerograd", "run", "--exit-zero")):
        done = call(*LAUNCHER, *ours, "ddp.py", mode, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        counts.append([int((tmp_path / f"{rank}.txt").read_text()) for rank in (0, 1)])
    assert counts[0] == counts[1] and min(counts[0]) >= 8  # one at least for each backward


def test_steps_that_a_rank_takes_for_others_after_its_data_has_ended_are_none_of_its_own(
    tmp_path: Path,
) -> None:
    write(tmp_path, uneven=UNEVEN)
    assert run_json(tmp_path, "uneven.py", launcher=LAUNCHER, code=0) == []


def test_clean_ranks_end_with_0_and_one_line(tmp_path: Path) -> None:
    write(tmp_path, ddp=DDP)
    done = call(*LAUNCHER, "-m", "zerograd", "run", "ddp.py", "clean", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("No findings.") == 1
    assert "ranks 0, 1" in done.stderr


def test_ranks_started_by_the_script_itself_are_compared_too(tmp_path: Path) -> None:
    spawns = """
    import os, sys, torch.multiprocessing
    def rank(number):
        os.environ.update(RANK=str(number), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=os.environ["PORT"])
        sys.argv = ["ddp.py", "apart"]
        exec(compile(open("ddp.py").read(), os.path.abspath("ddp.py"), "exec"), {"__name__": "x"})
    if __name__ == "__main__":
        torch.multiprocessing.spawn(rank, nprocs=2)
    """
    write(tmp_path, ddp=DDP, spawns=spawns)
    findings = run_json(tmp_path, "spawns.py", PORT=str(free_port()))
    assert "ZG601" in [each["code"] for each in findings]


def start_rank(tmp_path: Path, rank: int, port: int, *words: str) -> subprocess.Popen[str]:
    env = environment(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    with (tmp_path / f"stderr-{rank}").open("w") as errors:
        return subprocess.Popen(
            [*RUN, *words], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=errors, text=True
        )


def wait_until(condition: Any, seconds: float) -> float:
    """Return after how many seconds the condition held."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            pytest.fail(f"not within {seconds} s")
        time.sleep(0.05)
    return time.monotonic() - began


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_does_not_silence_the_other(tmp_path: Path, victim: int) -> None:
    write(tmp_path, alone=ALONE)
    port = free_port()
    ranks = [start_rank(tmp_path, rank, port, "--policy", "collect", "alone.py") for rank in (0, 1)]
    try:
        for rank in ranks:
            assert rank.stdout is not None and rank.stdout.readline() == "trains\n"
        os.kill(ranks[victim].pid, signal.SIGKILL)
        ranks[victim].wait(timeout=DEADLINE)
        said = lambda: "".join(  # noqa: E731
            (tmp_path / f"stderr-{rank}").read_text() for rank in (0, 1)
        )
        # Five seconds are promised on a machine at rest.
        before = slowness()
        took = wait_until(lambda: "ZG101 stale-gradient" in said(), DEADLINE)
        assert took < 5 * max(before, slowness(), slowness())
        wait_until(lambda: f"rank {victim} was killed" in said(), DEADLINE)
        assert ranks[1 - victim].poll() is None  # the other trains on
        # An interrupt ends the other at once: nothing of ours makes it wait for the dead.
        ranks[1 - victim].send_signal(signal.SIGINT)
        ranks[1 - victim].wait(timeout=DEADLINE)
        wait_until(lambda: "killed before the end" in said(), DEADLINE)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
            assert rank.stdout is not None
            rank.stdout.close()


@pytest.mark.parametrize("mode", ["all", "apart"])
def test_nothing_that_a_rank_leaves_is_cut_short_by_the_exit_code_of_another(
    tmp_path: Path, mode: str
) -> None:
    write(tmp_path, leaves=LEAVES_MUCH)
    done = call(*LAUNCHER, "-m", "zerograd", "run", "leaves.py", mode, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("ZG101 stale-gradient\n") == 1
    assert sorted(path.name for path in tmp_path.glob("left-*")) == ["left-0", "left-1"]
    assert "SIGTERM" not in done.stderr and "Sending process" not in done.stderr


def test_a_rank_that_waits_for_one_whose_data_has_ended_learns_that_it_is_gone(
    tmp_path: Path,
) -> None:
    write(tmp_path, runs_out=RUNS_OUT)
    done = call(*LAUNCHER, "-m", "zerograd", "run", "runs_out.py", cwd=tmp_path)
    assert done.returncode == 1  # and within the deadline, not after torch's half an hour
    assert done.stderr.count("ZG101 stale-gradient\n") == 1
    assert "Rank 1 ended with exit code 1." in done.stderr


def slowness() -> float:
    """How much slower than at rest this machine starts a process just now, at least 1."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-I", "-c", "import json"], check=True)
    return max(1.0, (time.monotonic() - began) / 0.1)


def test_machines_meet_through_the_launchers_store(tmp_path: Path) -> None:
    write(tmp_path, ddp=DDP)
    port = free_port()
    nodes = []
    for node in (0, 1):
        home = tmp_path / f"node{node}"
        home.mkdir()
        words = [
            sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank",
            str(node), "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port",
            str(port), "-m", "zerograd", "run", "--trace", str(home / "run.jsonl"),
            "ddp.py", "apart",
        ]  # fmt: skip
        nodes.append(
            subprocess.Popen(
                words,
                cwd=tmp_path,
                env=environment(TMPDIR=str(home)),  # no folder in common
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    said = [node.communicate(timeout=DEADLINE)[1] for node in nodes]
    assert said[0].count("ZG601 rank-desync\n") == 1, said
    assert "ddp.py:15:5: ZG601 rank-desync\n" in said[1]
    assert "zerograd: 1 finding; the report is on the machine of rank 0" in said[1]
    assert "how:" not in said[1]
    for home in ("node0", "node1"):
        told = read_trace(tmp_path / home / "run.jsonl").findings
        assert [finding.rule.code for finding in told] == ["ZG601"]
        assert [name for name in os.listdir(tmp_path / home) if "zerograd" in name] == []


def test_what_accelerate_launch_starts_is_followed(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    script = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    net = torch.nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    net, opt = accelerator.prepare(net, opt)
    for step in range(4):
        accelerator.backward(net(torch.ones(2, 4)).sum())
        opt.step()
    """
    write(tmp_path, script=script)
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"]
    launch += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    (finding,) = run_json(tmp_path, *launch, "script.py")
    assert finding["code"] == "ZG101" and finding["filename"] == "script.py"
