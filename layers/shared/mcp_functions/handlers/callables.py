"""Reads callables that are no plain function, with the help of `inspect`.

    tool(shop.count)                a bound method
    tool(Greeter("Hello"))          an object whose class has `__call__`
    tool(partial(convert, 0.5))     a partial of one of these, or of a function
    tool(retried(convert))          a function that a decorator made

A class, and a function written in C, are refused.
"""

from __future__ import annotations

import inspect
from functools import partial, partialmethod, update_wrapper
from typing import TYPE_CHECKING, Any

from mcp_functions.schemas.parameters import MISSING, PARAMETER_RULE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType


def to_function(given: Callable[..., object]) -> FunctionType:
    """Make a function with the parameters, annotations and docstring of a callable.

    Args:
        given: a bound method, an object whose class has `__call__`, a partial of one of these or of a function, or what
            a decorator such as `functools.cache` made of one.

    Raises:
        TypeError: it is a class, or not callable, or not written in Python, or a call of it can never return a result.
    """
    written, owner = _find_def(given)
    if isinstance(written, partialmethod):
        raise TypeError(f"{type(owner).__name__} has a __call__ made by functools.partialmethod: write it with def")
    if written is None:
        raise TypeError("a handler is a function written with def, a method of an object, or a callable object")

    def function(*args: object, **kwargs: object) -> object:
        return given(*args, **kwargs)

    update_wrapper(function, written)
    if written.__name__ == "__call__":  # the class has a better name, and may have the docstring
        function.__name__ = type(owner).__name__
        function.__doc__ = written.__doc__ or owner.__doc__
    vars(function)["__signature__"] = inspect.Signature(_parameters(given))
    return function  # type: ignore[return-value]  # mypy reads a nested function as a Callable


def _find_def(callable_: object) -> tuple[FunctionType | partialmethod[object] | None, object]:
    """Return the function that the author wrote with `def`, or None; and the object, if it is a `__call__`."""
    given: Any = callable_
    owner = None
    while not inspect.isfunction(given):
        if isinstance(given, partial):
            given = given.func
        elif inspect.ismethod(given) or isinstance(given, staticmethod | classmethod):
            given = given.__func__
        elif _is_wrapper(given):
            given = given.__wrapped__
        elif isinstance(given, partialmethod):
            return given, owner
        elif owner is None and not inspect.isclass(given):
            owner = given
            given = inspect.getattr_static(type(given), "__call__", None)
        else:
            return None, None
    return given, owner


def _is_wrapper(given: object) -> bool:
    """Recognize what `functools.cache` made, or a decorator that is a class."""
    # An object with `__getattr__` would answer `hasattr` with any attribute.
    return not inspect.isclass(given) and inspect.getattr_static(given, "__wrapped__", None) is not None


def _parameters(call: Callable[..., object]) -> list[inspect.Parameter]:
    """List the parameters of a callable, without those that a partial sets.

    `inspect.signature` of a partial would also list the parameters that the partial sets by keyword.
    """
    if not isinstance(call, partial):
        written: Any = call
        if not inspect.isroutine(call) and not _is_wrapper(call):
            written = written.__call__
        return list(inspect.signature(written).parameters.values())
    remaining = _parameters(call.func)[len(call.args) :]
    return [parameter for parameter in remaining if parameter.name not in call.keywords]


def list_parameters(function: Callable[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """List the parameters before `*` with their defaults (or MISSING), and the names after it, or raise a TypeError."""
    before_star: dict[str, Any] = {}
    after_star: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.POSITIONAL_OR_KEYWORD:
            before_star[each.name] = MISSING if each.default is each.empty else each.default
        elif each.kind is each.KEYWORD_ONLY:
            after_star.append(each.name)
        else:
            raise TypeError(f"parameter {each.name!r}: {PARAMETER_RULE}")
    return before_star, after_star
