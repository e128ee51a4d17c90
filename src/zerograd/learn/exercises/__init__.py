"""The exercises, in the order of the course: one package each.

A package holds EXERCISE (title, hints, explanation), `starter.py`, which is
copied into the learner's folder, and `checks.py`, which grades it. Solutions
and the wrong solutions that the checks must catch live in the repository under
`modules/ml/systems/`.
"""

ORDER = (
    "zero_gradients",
    "none_safe_clear",
    "training_loop_order",
    "ragged_accumulation",
    "subset_optimizer",
    "gan_two_optimizers",
    "poisoned_buffer",
    "scaler_overflow",
    "no_sync_window",
    "six_faults",
)
