"""`zero_grad()`: clear the gradients of whatever holds them.

Two kinds of target. A list or a NumPy array of numbers *is* the gradient: the
answer is a new one full of zeros, the input stays as it was, and torch is not
needed. A tensor, module or optimizer *holds* gradients: they are cleared where
they are and the answer is None.

torch and NumPy are never imported here. An argument can only be a tensor if its
owner has imported torch already, so `sys.modules` tells all there is to know.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from numbers import Number
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import numpy as np
    import torch

_PLAIN = frozenset((float, int))


@overload
def zero_grad(target: list[float], /, *, set_to_none: bool = True) -> list[float]: ...
@overload
def zero_grad(
    target: np.ndarray[Any, Any], /, *, set_to_none: bool = True
) -> np.ndarray[Any, Any]: ...
@overload
def zero_grad(*targets: Any, set_to_none: bool = True) -> None: ...
def zero_grad(*targets: Any, set_to_none: bool = True) -> Any:
    """Clear gradients; a list or array of numbers is answered with a new one of zeros.

    >>> zero_grad([0.5, -2.0, float("nan")])
    [0.0, 0.0, 0.0]

    Numbers are whatever Python calls a number: ints, bools (an int in Python), fractions
    and complex values too; each becomes `0.0`. An array keeps its shape and dtype.

    Tensors, modules, optimizers, parameter groups and iterables of these are cleared
    in place, several at once if you like, over all parameter groups::

        zero_grad(model)
        zero_grad(generator, discriminator, optimizer)
        zero_grad(model.parameters(), set_to_none=False)

    `set_to_none=True` drops each gradient, so its memory goes back; `False` keeps it and
    fills it with zeros. A parameter without a gradient is left as it is. Every target is
    looked at before the first one is cleared: a TypeError has changed nothing.
    """
    if not targets:
        raise TypeError("zero_grad() needs a target: a list of numbers, a model, an optimizer, ...")
    if len(targets) == 1:
        only = targets[0]
        if isinstance(only, list) and _is_all_numbers(only):
            return [0.0] * len(only)
        if _is_array(only):
            return _zero_array(only)
    tensors: list[torch.Tensor] = []
    for target in targets:
        _collect(target, tensors, where="")
    if set_to_none:
        for tensor in tensors:
            tensor.grad = None
    else:
        _fill_with_zeros(tensors)
    return None


def _is_all_numbers(values: list[Any]) -> bool:
    """Whether each element is a number; each *type* is asked once, so a long list costs little."""
    kinds = set(map(type, values))
    return kinds <= _PLAIN or all(issubclass(kind, Number) for kind in kinds)


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _zero_array(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"zero_grad() takes an array of numbers, but this one has dtype {array.dtype}"
        )
    return sys.modules["numpy"].zeros_like(array)  # type: ignore[no-any-return]


def _collect(target: Any, into: list[torch.Tensor], where: str) -> None:
    """Append every tensor whose gradient `target` holds, or raise TypeError."""
    torch = sys.modules.get("torch")
    if torch is not None:
        if isinstance(target, torch.Tensor):
            into.append(_holder(target, where))
            return
        if isinstance(target, torch.nn.Module):
            into.extend(_parameters_of(target))
            return
        groups = getattr(target, "param_groups", None)
        if isinstance(groups, list):
            for group in groups:
                into.extend(group["params"])
            return
        if isinstance(target, dict) and "params" in target:
            _collect(target["params"], into, where)
            return
    if not isinstance(target, Iterable) or isinstance(target, (str, bytes, dict)):
        raise TypeError(_cannot(target, where))
    if _is_array(target):
        raise TypeError(
            f"zero_grad() got an array{where} among other targets. An array is answered with "
            "a new one, so pass it alone: fresh = zero_grad(array)"
        )
    for index, element in enumerate(target):
        if isinstance(element, (Number, str)):
            raise TypeError(_cannot_element(target, index, element, where))
        _collect(element, into, f" at index {index}" + (f" of the item{where}" if where else ""))


def _parameters_of(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    # Module.parameters() spends most of its time on names; nobody asks for them here
    for child in module.modules():
        for parameter in child._parameters.values():
            if parameter is not None:
                yield parameter


def _holder(tensor: torch.Tensor, where: str) -> torch.Tensor:
    if tensor.is_leaf or tensor.retains_grad:
        return tensor
    raise TypeError(
        f"zero_grad() got a tensor{where} that is the result of an operation "
        f"({_grad_fn(tensor)}); it never holds a gradient. Pass the model, the optimizer or a "
        "leaf tensor, or call retain_grad() on this one before backward()."
    )


def _grad_fn(tensor: torch.Tensor) -> str:
    return type(tensor.grad_fn).__name__


def _fill_with_zeros(tensors: Iterable[torch.Tensor]) -> None:
    torch = sys.modules["torch"]
    together: dict[tuple[Any, Any], list[Any]] = {}
    for tensor in tensors:
        grad = tensor.grad
        if grad is None:
            continue
        if grad.requires_grad:  # left by backward(create_graph=True)
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
        # one call for many dense tensors; sparse ones and subclasses (DTensor) one by one
        if grad.layout is torch.strided and type(grad) is torch.Tensor:
            together.setdefault((grad.device, grad.dtype), []).append(grad)
        else:
            grad.zero_()
    for grads in together.values():
        torch._foreach_zero_(grads)


def _cannot(target: object, where: str) -> str:
    text = (
        f"zero_grad() got {_name(target)}{where}. It takes a list or array of numbers, "
        "or tensors, modules, optimizers and iterables of them."
    )
    if isinstance(target, dict):
        text += " Of a dict of parameters, pass its values()."
    if isinstance(target, bool):
        text += f" To choose how to clear, write set_to_none={target}."
    return text


def _cannot_element(target: object, index: int, element: object, where: str) -> str:
    """What to say of a number or a string found where a holder of gradients should be."""
    if isinstance(element, Number) and isinstance(target, list):
        odd = next((i for i, item in enumerate(target) if not isinstance(item, Number)), None)
        if odd is None:
            return (
                f"zero_grad() got a list of numbers{where}. A list of numbers is answered with "
                "a new one, so pass it alone, not inside another: fresh = zero_grad(values)"
            )
        return (
            f"zero_grad() got a list{where} that mixes numbers and others: element {odd} is "
            f"{_name(target[odd])}, element {index} {_name(element)}."
        )
    text = f"zero_grad() got {_name(target)}{where} whose element {index} is {_name(element)}."
    if isinstance(element, Number):
        return text + " Numbers come in a list or a NumPy array: zero_grad(list(values))."
    if isinstance(target, tuple) and index == 0:
        return text + " For pairs of name and parameter, pass parameters() instead."
    return text + " It takes numbers, or tensors, modules and optimizers."


def _name(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"
