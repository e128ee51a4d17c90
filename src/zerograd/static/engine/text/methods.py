"""The names of methods, and what they say of who has them."""

from __future__ import annotations

# what gives the same thing back
SAME = frozenset(
    (
        *("to", "cuda", "cpu", "float", "half", "double", "bfloat16", "train", "eval", "apply"),
        *("share_memory", "type", "contiguous", "requires_grad_", "compile"),
    )
)
WRAPPERS = frozenset(("prepare_model", "unwrap_model"))  # of who is handed a network
# what is cut off from its network, or made anew beside it
CUTS = frozenset(
    (
        *("detach", "item", "tolist", "numpy", "detach_", "clone_detached", "new_tensor"),
        *("new_zeros", "new_ones", "new_empty", "new_full"),
    )
)
OF_TENSORS = frozenset(
    (
        *("argmax", "clamp", "clone", "expand", "flatten", "flip", "gather", "long", "max"),
        *("mean", "min", "permute", "pow", "repeat", "reshape", "squeeze", "sum", "transpose"),
        *("unsqueeze", "view"),
    )
)
PARAMETERS = frozenset(("parameters", "named_parameters", "trainable_parameters", "get_parameters"))
OF_MODULES = PARAMETERS | {"to", "cuda", "train", "eval"}
LOOKUPS = frozenset(("get", "pop", "setdefault"))  # of a dict
PARTS = frozenset(("children", "modules", "named_children", "named_modules"))
# what leaves gradients alone, and gives back nothing that computes
SILENT = frozenset(
    (
        *PARTS,
        *("state_dict", "buffers", "named_buffers", "register_forward_hook", "register_hook"),
        *("register_buffer", "add_module", "no_sync", "size", "dim", "log", "log_dict"),
        *("print", "save_hyperparameters", "toggle_optimizer", "untoggle_optimizer"),
    )
)


def is_no_tensors(name: str) -> bool:
    """Is it a method that no tensor has, as far as one that changes nothing in place is known?"""
    return not name.endswith("_") and name not in ("retain_grad", "record_stream")
