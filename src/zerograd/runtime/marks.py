"""Gradients marked before something happens, to tell afterwards which of them it changed."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torch import Tensor

from zerograd.runtime import torch_facts

if TYPE_CHECKING:
    from zerograd.runtime.buckets import Bucket

Mark = tuple[weakref.ref[Tensor], int] | None  # None: there was no gradient


class Scan:
    """Some parameters before a backward, to tell afterwards which of them it filled.

    Args:
        chosen: members of buckets, all those of one bucket together.
    """

    def __init__(self, chosen: Iterable[tuple[Bucket, list[weakref.ref[Tensor]]]]) -> None:
        self._before = [(bucket, members, marks_of(bucket, members)) for bucket, members in chosen]

    def apart(self, mask: int) -> Iterator[tuple[weakref.ref[Tensor], Tensor, bool]]:
        """Yield the members that do not go with their bucket, and whether they were filled.

        Args:
            mask: the buckets whose canaries were filled.
        """
        for bucket, members, marks in self._before:
            expected = bool(bucket.bit & mask)
            held = [member() for member in members]
            if marks is None:  # what has a gradient now was filled
                odd = [each is not None and (each.grad is None) is expected for each in held]
            else:
                odd = [
                    each is not None and _is_new(each, mark, bucket) is not expected
                    for each, mark in zip(held, marks, strict=True)
                ]
            if True in odd:
                for member, each, is_odd in zip(members, held, odd, strict=True):
                    if is_odd and each is not None:
                        yield member, each, not expected


def marks_of(bucket: Bucket, members: Iterable[weakref.ref[Tensor]]) -> list[Mark] | None:
    """Return how to know each gradient again; None if there is none at all."""
    held = [member() for member in members]
    grads = [_shown(bucket, each) if each is not None else None for each in held]
    if not any(grad is not None for grad in grads):
        return None
    return [
        (weakref.ref(each), _version(each, bucket.sharded)) if each is not None else None
        for each in grads
    ]


def _shown(bucket: Bucket, parameter: Tensor) -> Tensor | None:
    """Return the gradient, or what tells in its stead whether it has changed."""
    grad = parameter.grad
    if grad is None or bucket.keepers is None:
        return grad
    return bucket.keepers.shown(parameter, grad)


def _version(grad: Tensor, is_sharded: bool) -> int:
    return torch_facts.version_of(grad) if is_sharded else grad._version


def is_same(parameter: Tensor, mark: Mark, bucket: Bucket) -> bool:
    """Is the gradient there, and the one that was marked?"""
    return parameter.grad is not None and not _is_new(parameter, mark, bucket)


def _is_new(parameter: Tensor, mark: Mark, bucket: Bucket) -> bool:
    """Has a gradient come, or has it been added to, since it was marked?"""
    grad = _shown(bucket, parameter)
    if grad is None:
        return False
    return mark is None or mark[0]() is not grad or mark[1] != _version(grad, bucket.sharded)
