"""How fast the checker is: the part of the page about time."""

from __future__ import annotations

from typing import Any

from benchmarks.accuracy.page.inputs import percent


def speed_section(result: dict[str, Any]) -> list[str]:
    lines = ["## How fast", ""]
    machine = result["versions"]
    lines += [
        f"Python {machine['python']}, {machine['cores']} cores, {machine['ruff']}; medians of "
        f"several runs that took turns, start-up included. Load on the machine before: "
        f"{result['load_before']:.1f}; where it is high, trust CPU time rather than wall time.",
        "",
        "| code | tool | wall s | CPU s |",
        "|---|---|--:|--:|",
    ]
    for part, title in (
        ("examples", "pytorch/examples"),
        ("training", "training files"),
        ("mixed", "mixed tree"),
    ):
        if part not in result:
            continue
        for tool, row in result[part]["timings"].items():
            lines.append(
                f"| {title}, {result[part]['files']} files | {tool} "
                f"| {row['wall_median_s']} | {row['cpu_median_s']} |"
            )
    if "training" in result:
        rate = result["training"]["files_per_cpu_second"]
        lines += ["", f"Training files a second and core: {rate}."]
    if "mixed" in result:
        share = percent(result["mixed"]["training_share"])
        lines += ["", f"Of the mixed tree, {share} of the files train something."]
    lines += ["", "Cost by size (CPU seconds, start-up taken off):", ""]
    lines += ["| shape | " + "size: seconds, milliseconds a line |", "|---|---|"]
    for shape, points in result.get("curves", {}).items():
        cells = "; ".join(
            f"{p['size']}: {p['cpu_s']}, {p['ms_per_line']}"
            if "cpu_s" in p
            else f"{p['size']}: over {p['over_limit_s']}"
            for p in points
        )
        lines.append(f"| {shape.replace('_', ' ')} | {cells} |")
    return [*lines, ""]
