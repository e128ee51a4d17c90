"""Programs that others wrote, run unchanged with and without `zerograd run`."""
