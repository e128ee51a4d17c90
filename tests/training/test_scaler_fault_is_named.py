"""Two optimizers, one scaler, an update after each: both witnesses name the second one's fault."""

from __future__ import annotations

import subprocess
import sys

import pytest

FAULT = """\
import torch
from torch import nn

first, second = nn.Linear(4, 1), nn.Linear(4, 1)
opt_a = torch.optim.SGD(first.parameters(), lr=0.1)
opt_b = torch.optim.SGD(second.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(6):
    x = torch.randn(8, 4)
    loss = (first(x) + second(x)).pow(2).mean()
    opt_a.zero_grad()
    opt_b.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt_a)
    scaler.unscale_(opt_b)
    nn.utils.clip_grad_norm_([*first.parameters(), *second.parameters()], 1.0)
    scaler.step(opt_a)
    scaler.update()
    scaler.step(opt_b)
    scaler.update()
"""


@pytest.mark.parametrize("command", ["check", "run"])
def test_the_early_update_is_named(command, tmp_path):
    (tmp_path / "train.py").write_text(FAULT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zerograd", command, "train.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ZG305" in done.stdout + done.stderr
