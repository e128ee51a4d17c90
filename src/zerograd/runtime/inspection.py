"""Looking by hand: what each parameter's gradient is right now, and a check for people's tests."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zerograd.errors import UsageError
from zerograd.lifecycle.state import BucketState, Phase
from zerograd.runtime import sanitizer, torch_facts

_HEADINGS = ("parameter", "shape", "gradient", "norm", "owner")


@dataclass(frozen=True, slots=True)
class Row:
    """One parameter.

    `gradient` is "absent" or "zero"; under a watch "fresh", "spent" or "stale"; without
    one, where only the values can be seen, "present".
    """

    name: str
    shape: tuple[int, ...]
    gradient: str
    norm: float | None
    owner: str


class Table(tuple[Row, ...]):
    """The rows, drawn as a table on a terminal and in a notebook."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [_HEADINGS, *(_cells(row) for row in self)]
        widths = [max(len(line[n]) for line in lines) for n in range(len(_HEADINGS))]
        drawn = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join(drawn)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(row)) + "</tr>"
            for row in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Row) -> tuple[str, ...]:
    norm = "" if row.norm is None else f"{row.norm:.3g}"
    return (row.name, "x".join(map(str, row.shape)) or "1", row.gradient, norm, row.owner)


def inspect(*objects: Any) -> Table:
    """Return what the gradient of each parameter of these models and optimizers is.

    Under a `watch` it also tells whether a step has used the gradient already.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> opt = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> inspect(model, opt)
    parameter  shape  gradient  norm  owner
    weight     1x2    absent          SGD
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> inspect(model, opt)[0].gradient
    'present'
    """
    optimizers = [each for each in objects if hasattr(each, "param_groups")]
    named = list(_named(objects))
    owners: dict[int, str] = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                owners.setdefault(id(parameter), type(optimizer).__name__)
    with_grad = [parameter for _, parameter in named if parameter.grad is not None]
    norms = torch_facts.norms([p.grad for p in with_grad if p.grad is not None])
    sizes = {id(parameter): norm for parameter, norm in zip(with_grad, norms, strict=True)}
    rows = []
    for name, parameter in named:
        norm = sizes.get(id(parameter))
        gradient, owner = _seen(parameter, norm)
        shape = tuple(parameter.shape)
        rows.append(Row(name, shape, gradient, norm, owner or owners.get(id(parameter), "")))
    return Table(rows)


def assert_cleared(*objects: Any) -> None:
    """Raise AssertionError unless every gradient of these objects is absent or zero.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1)
    >>> assert_cleared(model)
    """
    left = [row for row in inspect(*objects) if row.norm is not None and row.norm != 0]
    if left:
        names = ", ".join(f"{row.name} (norm {row.norm:.3g})" for row in left[:5])
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        raise AssertionError(f"gradients not cleared: {names}{more}")


def _named(objects: Iterable[Any]) -> Iterator[tuple[str, Tensor]]:
    seen: set[int] = set()
    for each in objects:
        if isinstance(each, torch.nn.Module):
            pairs: Iterable[tuple[str, Tensor]] = each.named_parameters()
        elif hasattr(each, "param_groups"):
            pairs = (
                (f"group {n}, parameter {m}", parameter)
                for n, group in enumerate(each.param_groups)
                for m, parameter in enumerate(group["params"])
            )
        elif isinstance(each, Tensor):
            pairs = [("tensor", each)]
        else:
            raise UsageError(f"{type(each).__name__}: give modules, optimizers or tensors.")
        for name, parameter in pairs:
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter


def _seen(parameter: Tensor, norm: float | None) -> tuple[str, str]:
    """Return what the gradient is, and the owner that a watch knows."""
    owner, state = "", None
    watching = sanitizer.active()
    if watching is not None:
        owner, state = watching.state_of(parameter)
    if norm is None:
        return "absent", owner
    if norm == 0 and not math.isnan(norm):
        return "zero", owner
    return _phase(state), owner


def _phase(state: BucketState | None) -> str:
    if state is None or state.unknown or not state.contributions:
        return "present"
    phases = [state.phase(owner) for owner in state.stepped] or [Phase.FRESH]
    worst = max(phases, key=[Phase.EMPTY, Phase.FRESH, Phase.SPENT, Phase.STALE].index)
    return worst.value
