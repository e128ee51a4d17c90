"""Token-weighted accumulation with a short last window, in mixed precision.

python examples/step_accumulation.py
"""

from __future__ import annotations

import torch
from torch import nn
from torch.amp import GradScaler

import zerograd

VOCABULARY = 32


def make_loader(batches: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Each next token is the last one plus 1; rows have different lengths."""
    loader = []
    for _ in range(batches):
        start = torch.randint(0, VOCABULARY, (8, 1))
        tokens = (start + torch.arange(17)) % VOCABULARY
        targets = tokens[:, 1:].clone()
        for row, length in enumerate(torch.randint(1, 17, (8,))):
            targets[row, length:] = -100
        loader.append((tokens[:, :-1], targets))
    return loader


def main() -> None:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.float16 if device == "cuda" else torch.bfloat16
    model = nn.Sequential(nn.Embedding(VOCABULARY, 32), nn.Linear(32, VOCABULARY)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
    scaler = GradScaler(device, init_scale=2.0**10)
    step = zerograd.Step(optimizer, models=[model], clip=1.0, scaler=scaler)
    loader = make_loader(30)
    for epoch in range(3):
        total, count = 0.0, 0
        for window in zerograd.windows(loader, 4):
            with step(window):
                for tokens, targets in window:
                    tokens, targets = tokens.to(device), targets.to(device)
                    with torch.autocast(device, dtype=dtype):
                        logits = model(tokens)
                    loss = nn.functional.cross_entropy(
                        logits.float().flatten(0, 1), targets.flatten()
                    )
                    items = int((targets != -100).sum())
                    step.backward(loss, weight=items)
                    total, count = total + loss.item() * items, count + items
            if step.skipped:
                print("overflow, the step was left out")
        print(f"epoch {epoch + 1}: loss {total / count:.3f}, last window held {window.drawn}")


if __name__ == "__main__":
    main()
