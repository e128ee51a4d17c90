"""What one rank runs in `test_unsynced`: the scripts of a folder one by one, and their findings.

Nothing is named here that a script might use to average by itself: its source is read for that.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from zerograd import watch


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found = {}
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder / "site-packages"))
    for script in sorted(folder.glob("*.py")):
        torch.manual_seed(0)
        with watch(policy="collect") as watching:
            runpy.run_path(str(script))
        found[script.stem] = {
            "at": [[each.rule.code, each.spot.line] for each in watching.findings],
            "messages": [finding.message for finding in watching.findings],
            "fixes": [finding.advice for finding in watching.findings],
            "counts": [each.live.count for each in watching.findings if each.live],
            "not checked": watching.not_checked,
        }
        gc.collect()
    dist.barrier()
    print(f"{os.environ['RANK']} {json.dumps(found)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
