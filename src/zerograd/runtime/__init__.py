"""Live training -> events: the second witness, and all that surrounds it in a run.

Modules here may import torch; those that a child process loads before torch
(`on_import`, `processes`) do so only inside functions.
"""
