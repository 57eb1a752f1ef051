"""Reads an author's signature: the parameters that the client sends, the capabilities after `*`, and the return type.

An error is raised where the function is decorated, and names the function's file and line.
"""

from __future__ import annotations

import sys
import types
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_type_hints

from mcp_functions.handlers import return_types
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.parameters import MISSING, UNNAMED, Parameter, read_parameter
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.handlers.injection import Injection
    from mcp_functions.schemas.json_types import JsonType

VARIADIC = 0x04 | 0x08  # flags of code with *args or **kwargs
REPLACED = {"__wrapped__", "__signature__"}  # attributes of a function whose code has another's parameters
UNREADABLE = (NameError, TypeError, SyntaxError, AttributeError)


class Signature(NamedTuple):
    """A signature as a handler reads it."""

    sent: tuple[Parameter, ...]  # by the client: the parameters before `*`
    hints: Mapping[str, Any]  # the type of each parameter
    injection: Injection | None  # the parameters after `*`, if there are any
    output: JsonType | None  # the type of a tool's structured content, if it promises any

    def defaults(self, given: int, named: Mapping[str, Any]) -> dict[str, Any]:
        """Make the defaults that a direct call needs, because `Field` declares them and not the value after `=`.

        Args:
            given: the number of positional arguments.
            named: the keyword arguments.

        Raises:
            TypeError: a parameter is missing, and `Field` has no default for it.
        """
        absent = [
            parameter for parameter in self.sent[given:] if parameter.replaces_default and parameter.name not in named
        ]
        for parameter in absent:
            if parameter.required:
                message = f"missing required argument: {parameter.name!r}"
                raise TypeError(message)
        return {parameter.name: parameter.make_default() for parameter in absent if parameter.make_default}


@contextmanager
def locating_errors(function: Callable[..., Any]) -> Iterator[None]:
    """Raise an error in a signature as a TypeError that begins with the function's file, line and name."""
    try:
        yield
    except (TypeError, ValueError, NameError, DeveloperError) as error:
        code = getattr(function, "__wrapped__", function).__code__
        message = f"{code.co_filename}:{code.co_firstlineno}: {function.__name__}(): {error}"
        raise TypeError(message) from error


def read(function: Callable[..., Any], *, camel_case: bool) -> Signature:
    """Read a function's signature; the function is not called.

    Args:
        function: an author's function.
        camel_case: whether names are written in camelCase on the wire.

    Raises:
        TypeError: an annotation cannot be read, or a parameter is on the wrong side of `*`.
        DeveloperError: a declared form cannot be expressed.
    """
    hints = _hints(function)
    parameters = declared(function)
    sent = tuple(_read_sent(each, hints) for each in parameters if not each.keyword_only)
    injection = None
    # A capability can only be an annotation if the module of their base class was imported.
    if len(sent) < len(parameters) or "mcp_functions.rounds.capabilities" in sys.modules:
        from mcp_functions.handlers.injected_parameters import read_injection  # noqa: PLC0415 - few functions need it

        injection = read_injection(parameters, hints, camel_case=camel_case)
    output = return_types.structured(hints.get("return"))
    return Signature(sent, hints, injection if len(sent) < len(parameters) else None, output)


def declared(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """List the parameters of a function. The import of `inspect` takes 6 ms of a cold start: few functions need it."""
    code = function.__code__
    if code.co_posonlyargcount or code.co_flags & VARIADIC or not REPLACED.isdisjoint(vars(function)):
        return _inspect(function)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    last = function.__defaults__ or ()
    defaults = dict(zip(names[code.co_argcount - len(last) :], last, strict=False)) | (function.__kwdefaults__ or {})
    return tuple(
        Parameter(name, defaults.get(name, MISSING), keyword_only=index >= code.co_argcount)
        for index, name in enumerate(names)
    )


def _inspect(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """List the parameters of a function that is decorated, or refuse it."""
    import inspect  # noqa: PLC0415 - few functions are decorated

    parameters = inspect.signature(function).parameters.values()
    for each in parameters:
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            message = f"parameter {each.name!r}: {UNNAMED}"
            raise TypeError(message)
    return tuple(
        Parameter(each.name, MISSING if each.default is each.empty else each.default, each.kind is each.KEYWORD_ONLY)
        for each in parameters
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except UNREADABLE as error:
        message = f"{_unreadable(function)}: {error}"
        raise TypeError(message) from error


def _unreadable(function: Callable[..., Any]) -> str:
    """Name the parameter whose annotation cannot be read, or the result."""
    for name, annotation in function.__annotations__.items():
        try:
            get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), function.__globals__)
        except UNREADABLE:
            return "the result" if name == "return" else f"parameter {name!r}"
    return "a parameter"


def _read_sent(parameter: Parameter, hints: dict[str, Any]) -> Parameter:
    """Read a parameter and its default, and replace its hint with its type alone."""
    if parameter.name not in hints:
        return parameter
    try:
        sent, hints[parameter.name] = read_parameter(parameter, hints[parameter.name])
    except (TypeError, ValueError) as error:
        message = f"parameter {parameter.name!r}: {error}"
        raise TypeError(message) from error
    return sent
