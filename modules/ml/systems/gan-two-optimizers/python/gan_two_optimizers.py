"""One adversarial round: the solution of the sixth exercise."""

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
    """Update D, then G, each from its own loss; return both losses."""
    fake = G(noise)

    opt_d.zero_grad()  # the last round's g_loss went through D as well
    on_real, on_fake = D(real), D(fake.detach())
    d_loss = bce(on_real, torch.ones_like(on_real)) + bce(on_fake, torch.zeros_like(on_fake))
    d_loss.backward()
    opt_d.step()

    opt_g.zero_grad()
    on_fake = D(fake)
    g_loss = bce(on_fake, torch.ones_like(on_fake))
    g_loss.backward()
    opt_g.step()
    return d_loss.item(), g_loss.item()
