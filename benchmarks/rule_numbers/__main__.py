"""Measures what each rule's fault does to training: the numbers on the rule pages.

    python -m benchmarks.rule_numbers

takes about a minute. Each function trains something small twice, right and wrong, and
returns the figures as they stand on the page of its rule. Everything is seeded and runs on
one thread.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path

import torch

from benchmarks.rule_numbers import order, scaling, windows
from benchmarks.rule_numbers.ranks import ranks
from benchmarks.rule_numbers.tasks import Figures

RESULTS = Path(__file__).parents[1] / "results" / "rule_numbers.json"


def measure() -> dict[str, Figures]:
    torch.set_num_threads(1)
    both = ranks()
    return {
        "ZG101": order.stale_gradient(),
        "ZG102": order.lost_gradient(),
        "ZG103": order.uncalled_method(),
        "ZG104": order.absent_gradient_used(),
        "ZG105": order.unowned_gradient_grows(),
        "ZG201": order.leaked_gradient(),
        "ZG202": order.leaf_gradient_grows(),
        "ZG203": order.gradient_never_used(),
        "ZG301": scaling.clip_before_unscale(),
        "ZG302": scaling.missing_scaler_update(),
        "ZG303": scaling.scaler_bypassed(),
        "ZG304": scaling.clip_after_step(),
        "ZG305": scaling.scaler_updated_early(),
        "ZG401": order.step_without_gradient(),
        "ZG402": order.gradient_reused(),
        "ZG501": windows.window_cleared_early(),
        "ZG502": windows.tail_lost(),
        "ZG503": windows.window_not_averaged(),
        "ZG504": windows.window_guard_wrong(),
        "ZG505": {
            "all-reduces an update, every micro-batch": f"{both['all']:.0f}",
            "all-reduces an update, with no_sync": f"{both['skip']:.0f}",
        },
        "ZG601": {
            "relative distance of the ranks, right": f"{both['right']:.0f}",
            "no_sync around the forward only": f"{100 * both['no_sync']:.0f} %",
            "raw module": f"{100 * both['raw']:.0f} %",
            "first of two micro-batches inside no_sync": f"{both['right window']:.0f}",
            "last of two micro-batches inside no_sync": f"{100 * both['inverted']:.0f} %",
            "both micro-batches inside no_sync": f"{100 * both['always']:.0f} %",
        },
        "ZG901": order.unused_allow(),
    }


def main() -> None:
    figures = measure()
    result = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "threads": 1,
        "figures": figures,
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
