"""Exercise 6: two optimizers that must not drink from each other's bucket.

One round of adversarial training, the discriminator first:

  d_loss = bce(D(real), 1) + bce(D(fake), 0)     updates D alone
  g_loss = bce(D(fake), 1)                       updates G alone, after D has moved

with fake = G(noise). `train_round` returns (d_loss, g_loss) as numbers. Each
optimizer must step on the gradients of its own loss, of this round, and of nothing
else. Somebody tidied up and cleared each bucket right after its step. Mend it.
"""

import torch
from torch import Tensor, nn

bce = nn.functional.binary_cross_entropy_with_logits


def train_round(
    G: nn.Module,
    D: nn.Module,
    opt_g: torch.optim.Optimizer,
    opt_d: torch.optim.Optimizer,
    real: Tensor,
    noise: Tensor,
) -> tuple[float, float]:
    fake = G(noise)
    on_real, on_fake = D(real), D(fake)
    d_loss = bce(on_real, torch.ones_like(on_real)) + bce(on_fake, torch.zeros_like(on_fake))
    d_loss.backward(retain_graph=True)
    opt_d.step()
    opt_d.zero_grad()

    on_fake = D(fake)
    g_loss = bce(on_fake, torch.ones_like(on_fake))
    g_loss.backward()
    opt_g.step()
    opt_g.zero_grad()
    return d_loss.item(), g_loss.item()
