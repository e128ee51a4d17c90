"""Tied input and output embeddings."""

import torch
from torch import nn

torch.manual_seed(0)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 6)
        self.mix = nn.GRU(6, 6, batch_first=True)
        self.out = nn.Linear(6, 12, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.mix(self.embed(tokens))[0])


model = Tied()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(5):
    tokens = torch.randint(0, 12, (4, 7))
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 12), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
