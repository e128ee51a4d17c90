"""Measuring how a model's gradients are cleared, normed and clipped fastest."""
