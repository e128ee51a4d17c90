"""What a Step says when it is used in a way that would train on wrong gradients."""

from __future__ import annotations

NESTED = (
    "This Step's block is open already: blocks of one Step do not nest. "
    "End the first block, or make a second Step for the other optimizer."
)
CLOSED = "This Step is closed. Make a new one: Step(optimizer, ...)."
SHARED_SCALER = (
    "Another Step with the same GradScaler has its block open, and this block's update would "
    "change the scale under its gradients. End that block first."
)
LEFTOVERS = (
    "Gradients are left over from before the block, and would be added to its own. "
    "Call zerograd.zero_grad(model) first, and find the bare backward() they are from."
)
BROKEN = (
    "A backward of this block failed halfway, so the gradients hold a part of it. Let its "
    "exception leave the block, which drops the window, or call step.drop()."
)
NO_BACKWARD = (
    "The block ended without step.backward(), so there is nothing to step with. "
    "Call step.backward(loss) inside it, or step.drop() to leave this update out."
)
NO_GRADIENT = (
    "After the backward none of this Step's parameters has a gradient: the loss does not depend "
    "on them. Was the loss computed by another model, were the parameters replaced after the "
    "optimizer was made, or are they all frozen?"
)
EXCHANGED = (
    "This window's gradients have been exchanged with the other ranks, so they can no longer be "
    "dropped here alone. Call step.drop() before the last backward."
)
HALF_SHARDED = (
    "Under FSDP2 the gradients of a half-done window are not in .grad. "
    "Save between the blocks, or use Step(..., sync_every=True)."
)


def outside(what: str) -> str:
    return (
        f"step.{what}() was called outside a block. Write:\n"
        "    with step:\n        step.backward(loss)"
    )
