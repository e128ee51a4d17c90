"""A function with a watch around each of its runs, whatever kind of function it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any


def within(context: AbstractContextManager[Any], function: Callable[..., Any]) -> Any:
    """Return `function` run within `context`: to its end, not only until it first gives way.

    A call of a coroutine function or generator runs none of its body, so the context is
    entered where the body begins and left where it ends.
    """
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with context:
                return await function(*args, **kwargs)

        return awaited
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def iterated(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            with context:
                async for each in function(*args, **kwargs):
                    yield each

        return iterated
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            with context:
                return (yield from function(*args, **kwargs))

        return generated

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with context:
            return function(*args, **kwargs)

    return called
