"""Clearing gradients: one call for all that holds them, and one buffer to hold them all."""
