"""The report of a run is read by somebody, whatever the script has done to its streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = """
import io, os, sys, torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net(torch.ones(1, 2)).sum().backward()
    opt.step()
print("trained", flush=True)
{}
"""


@pytest.mark.parametrize(
    "does",
    [
        "sys.stdout = sys.stderr = None",
        "sys.stdout.close(); sys.stderr.close()",
        "sys.stdout = sys.stderr = io.StringIO()",
    ],
)
def test_the_report_comes_through(tmp_path: Path, does: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(does))
    run = [sys.executable, "-m", "zerograd", "run", "--policy", "collect", "--exit-zero"]
    ended = subprocess.run([*run, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "trained\n")
    assert "ZG101" in ended.stderr and "Traceback" not in ended.stderr


def test_streams_closed_from_outside_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format("raise SystemExit(3)"))
    run = f"{sys.executable} -m zerograd run --policy collect script.py >&- 2>&-"
    assert subprocess.run(["sh", "-c", run], cwd=tmp_path).returncode in (3, 1)
    plain = subprocess.run(["sh", "-c", f"{sys.executable} script.py >&- 2>&-"], cwd=tmp_path)
    assert plain.returncode in (3, 1)
