"""What other tools find: the part of the page about them."""

from __future__ import annotations

from typing import Any


def rivals_section(result: dict[str, Any]) -> list[str]:
    tools = ["zerograd", "torch-preflight", "dslinter", "mldoct"]
    lines = ["## Beside other tools", ""]
    lines += [
        f"On a sample of at most {result['sample_of_each_kind']} mutants of each kind, drawn from "
        f"the part {result['part']}; each is one file, without the project around it. zerograd "
        "must name the right rule at the right line; for the others any new word about "
        "gradients counts, at any line.",
        "",
        "| how it is broken | mutants | " + " | ".join(tools) + " |",
        "|---|--:|" + "--:|" * len(tools),
    ]
    for kind, row in result["found"].items():
        cells = " | ".join(str(row.get(tool, 0)) for tool in tools)
        lines.append(f"| {kind.replace('-', ' ')} | {row['mutants']} | {cells} |")
    untouched = result["originals"]
    told = "; ".join(
        f"{tool} {untouched[tool]['findings']} in {untouched[tool]['files']} files"
        for tool in tools[1:]
    )
    return [
        *lines,
        "",
        f"Findings of the others on that part's {untouched['training_files']} untouched training "
        f"files: {told}.",
        "",
    ]
