"""What is widely said about clearing gradients, and what the recorded runs show instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zerograd.lab.figures import mib, percent


@dataclass(frozen=True, slots=True)
class Correction:
    """A claim, a verdict, what was measured, and the panel that shows it."""

    claim: str
    verdict: str
    measured: str
    panel: str


def corrections(recorded: dict[str, Any]) -> list[Correction]:
    """Return the claims of well-meant lessons that do not hold as they stand."""
    grid, steps = recorded["grid"], recorded["three_steps"]
    overflow = recorded["overflow"]
    rows = {(row["batch"], row["optimizer"]): row["peaks"] for row in recorded["memory"]["rows"]}
    higher = sum(peaks["zero"] > peaks["none"] for peaks in rows.values())
    subset = recorded["subset"]["backbone"]
    per_update = recorded["exchanges"]["per_update"]
    return [
        Correction(
            "After clearing, the gradient is 0.",
            "outdated",
            "It is None: set_to_none is the default of optimizers and modules since PyTorch 2.0.",
            "bucket",
        ),
        Correction(
            "set_to_none=True is an option you may add.",
            "outdated",
            "It is what you get; set_to_none=False is the option.",
            "bucket",
        ),
        Correction(
            "Backpropagate, then zero, then update (a common diagram).",
            "wrong",
            "That loop learns nothing: weights bit-equal to the start after 50 steps.",
            "predict",
        ),
        Correction(
            "Clearing after backward makes gradients accumulate.",
            "wrong cause",
            "Nothing accumulates; the step sees nothing.",
            "puzzle",
        ),
        Correction(
            "Without clearing, training diverges or learns nothing.",
            "overstated",
            f"{grid['diverged']} of {grid['pairs']} pairs diverged, {grid['worse']} ended worse, "
            f"{grid['better']} better.",
            "myths",
        ),
        Correction(
            "Three steps without clearing already spoil the training.",
            "wrong",
            f"After 3 steps the forgetful loss is lower in {steps['ahead_after_3']} of "
            f"{steps['seeds']} seeds. It turns worse at step {steps['turns_worse_median']}.",
            "predict",
        ),
        Correction(
            "Updates grow ever larger.",
            "not in general",
            "On a bowl the buffer swings between the same bounds for 200 steps.",
            "sum",
        ),
        Correction(
            "None and zero end in the same model.",
            "with a condition",
            "Only if every parameter gets a gradient in every step.",
            "myths",
        ),
        Correction(
            "Zeroing in place avoids memory overhead.",
            "wrong",
            f"It had the higher peak in {higher} of {len(rows)} set-ups and the same in the rest; "
            f"batch 256 with SGD: {mib(rows[256, 'SGD']['zero'])} MiB against "
            f"{mib(rows[256, 'SGD']['none'])}.",
            "memory",
        ),
        Correction(
            "None avoids allocating a zero tensor.",
            "wrong reason",
            "Zeros are written in place, 0 bytes allocated. None frees the buffer.",
            "memory",
        ),
        Correction(
            "optimizer.zero_grad() and model.zero_grad() clear the same.",
            "only if the optimizer holds the whole model",
            f"Head-only optimizer: backbone gradient norm {subset[0]:.2f} to {subset[-1]:.2f} "
            "in 20 steps.",
            "predict",
        ),
        Correction(
            "In mixed precision, clearing has to do with the scale.",
            "wrong mechanism",
            "zero_grad() leaves the scale alone. After one overflow a loop without a clear "
            f"skipped {overflow['forgotten']['skipped']} of {overflow['steps']} steps, with one "
            f"{overflow['cleared']['skipped']}.",
            "predict",
        ),
        Correction(
            "Delaying the clear cuts communication.",
            "wrong",
            f"{per_update['clear once a window']:g} all-reduces per update either way; "
            f"{per_update['clear once a window, no_sync()']:g} with no_sync().",
            "myths",
        ),
        Correction(
            "Skip the clear for K - 1 micro-batches and it equals the big batch.",
            "with conditions",
            "Exact for equal sizes divided by K. Sizes 20/20/20/4: off by "
            f"{percent(recorded['windows']['20/20/20/4, divided by 4'])} in a small net; how much "
            "depends on the data. Not divided: 4 times too large.",
            "predict",
        ),
        Correction(
            "Most frameworks accumulate.",
            "about half",
            "Those with a gradient on the parameter do; JAX, TensorFlow, autograd and MLX return "
            "gradients.",
            "myths",
        ),
        Correction(
            "Ways to get a gradient without .grad are rare.",
            "outdated",
            "torch.autograd.grad and torch.func.grad are part of PyTorch, and leave .grad at None.",
            "myths",
        ),
    ]


def as_markdown(recorded: dict[str, Any]) -> str:
    """Return the corrections as the page of the docs: `python -m zerograd.lab.corrections`."""
    lines = [
        "# What is often said",
        "",
        "Good lessons about clearing gradients exist, and most hold a few of these sentences.",
        f"The right column was measured with PyTorch {recorded['torch']} "
        f"({recorded['machine']}, seed {recorded['seed']}).",
        "`zerograd lab` shows the runs, and `zerograd lab --record` repeats them.",
        "",
        "| said | verdict | measured | panel of the lab |",
        "|---|---|---|---|",
    ]
    for one in corrections(recorded):
        lines.append(f"| {one.claim} | {one.verdict} | {one.measured} | {one.panel} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from zerograd.lab.page import load_recorded

    print(as_markdown(load_recorded()), end="")
