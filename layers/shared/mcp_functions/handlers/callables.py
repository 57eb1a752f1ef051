"""Makes a plain function of a bound method, a callable object or a `functools.partial`.

A handler reads the code, the annotations and the docstring of a function. The other callables lack some of these.
"""

from __future__ import annotations

import inspect
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType


def to_function(given: object) -> FunctionType:
    """Make a function with the parameters, annotations and docstring of a callable.

    Args:
        given: a bound method, an object whose class has `__call__`, or a partial of one of these or of a function.

    Raises:
        TypeError: it is a class, or not callable, or not written in Python.
    """
    source = _source(given)
    if source is None:
        message = f"{given!r}: a handler is a function written with def, a method of an object, or a callable object"
        raise TypeError(message)
    call: Any = given

    def function(*args: object, **kwargs: object) -> object:
        return call(*args, **kwargs)

    update_wrapper(function, source)
    if source.__name__ == "__call__":
        function.__name__ = type(given).__name__
        function.__doc__ = source.__doc__ or given.__doc__
    signature: Any = inspect.Signature(_parameters(call))
    vars(function)["__signature__"] = signature  # mypy knows no such attribute of a function
    return function  # type: ignore[return-value]  # mypy reads a nested function as a Callable


def _source(given: object) -> FunctionType | None:
    """Return the function that the author wrote with `def`; None if there is none."""
    while isinstance(given, partial):
        given = given.func
    if inspect.isclass(given) or not callable(given):
        return None
    if not inspect.isroutine(given):
        given = type(given).__call__
    source = getattr(given, "__func__", given)
    return source if inspect.isfunction(source) else None


def _parameters(call: Callable[..., object]) -> list[inspect.Parameter]:
    """List the parameters that a call still needs; `inspect` would keep those that a partial names."""
    if not isinstance(call, partial):
        return list(inspect.signature(call).parameters.values())
    left = _parameters(call.func)[len(call.args) :]
    return [parameter for parameter in left if parameter.name not in call.keywords]
