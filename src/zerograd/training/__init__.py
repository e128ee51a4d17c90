"""The training step written right, once: one block, one update."""
