"""A small training script with a fault in it, for `zerograd demo`. It is run, never imported."""
