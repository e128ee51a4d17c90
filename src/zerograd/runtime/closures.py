"""The user's closure, as an optimizer gets it: the same in all, and heard when it is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from itertools import starmap
from types import FunctionType, MethodType
from typing import Any

_SELF = "__zerograd_closure"


class _Heard(functools.partial):  # type: ignore[type-arg]
    """Stands for a closure: its arguments, attributes and class are the user's.

    A partial, since that is called without a frame of ours.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)[_SELF], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)[_SELF], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(vars(self)[_SELF], name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return vars(self)[_SELF].__class__


def heard(
    closure: Callable[..., Any], begins: Callable[[], None], returns: Callable[[Any], None]
) -> Callable[..., Any]:
    """Return a closure that tells when the user's one is called and what it has returned.

    Where that takes no arguments, the call is made of built-in iterators, so that no frame of
    ours lies between the optimizer and the user's closure when that raises.
    """

    def begun() -> tuple[()]:
        begins()
        return ()

    def returned(loss: Any) -> Any:
        returns(loss)
        return loss

    def called(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        begins()
        loss = closure(*args, **kwargs)
        returns(loss)
        return loss

    if takes_nothing(closure):
        # Not `next` of it, to which an argument would be a default.
        call: Callable[..., Any] = map(returned, starmap(closure, iter(begun, None))).__next__
    else:
        call = called
    stands_for = _Heard(call)
    vars(stands_for)[_SELF] = closure
    return stands_for


def takes_nothing(closure: Any) -> bool:
    """Can it only be called without arguments?"""
    given = 0
    if type(closure) is functools.partial:
        if closure.keywords:
            return False
        given, closure = len(closure.args), closure.func
    if type(closure) is MethodType:
        given, closure = given + 1, closure.__func__
    if type(closure) is not FunctionType:
        return False
    code = closure.__code__
    return (
        code.co_argcount == given
        and code.co_kwonlyargcount == 0
        and not code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    )
