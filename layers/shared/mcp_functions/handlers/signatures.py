"""Reads an author's signature.

    def book(city: str, nights: int = 1, *, step: Step) -> Booking: ...

    client_parameters   city and nights: the parameters before `*`, whose values the client sends
    types               {"city": str, "nights": int}
    returns             Booking: the annotation of the result
    injection           step: the parameters after `*`, whose values the toolkit makes; None without them

Nothing here calls the function. A plain function is read without `inspect`, because that import takes a fifth of a cold
start (6 to 10 ms with Python 3.13).
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_type_hints

from mcp_functions.schemas.parameters import MISSING, PARAMETER_RULE, Parameter, read_parameter
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.injection import Injection

VARIADIC = 0x04 | 0x08  # flags of the code of a function with *args or **kwargs
# A function with one of these attributes, which decorators set, has another signature than its code.
SIGNATURE_ATTRIBUTES = {"__wrapped__", "__signature__"}
# The module of `Elicit`, `Step` and the other classes that only a parameter after `*` may have.
CAPABILITIES_MODULE = "mcp_functions.rounds.capabilities"


class Signature(NamedTuple):
    """A signature as a handler reads it."""

    client_parameters: tuple[Parameter, ...]
    types: Mapping[str, Any]  # the annotation of each client parameter, without the options of a `Field`
    returns: Any  # None without an annotation
    injection: Injection | None  # None without parameters after `*`


def read(function: Callable[..., Any], *, camel_case: bool) -> Signature:
    """Read a function's signature; the function is not called.

    Args:
        function: an author's function.
        camel_case: True if names are camelCase on the wire.

    Raises:
        TypeError: an annotation cannot be read, or a parameter is on the wrong side of `*`.
        DeveloperError: a declared form cannot be expressed.
    """
    hints = _read_hints(function)
    before, after = list_parameters(function)
    client_parameters = []
    types = {}
    for parameter in before:
        name = parameter.name
        if name not in hints:  # it is refused later, unless the author wrote the schema of the arguments
            client_parameters.append(parameter)
            continue
        try:
            with_default, types[name] = read_parameter(parameter, hints[name])
        except (TypeError, ValueError) as error:
            message = f"parameter {name!r}: {error}"
            raise TypeError(message) from error
        client_parameters.append(with_default)
    injection = None
    # A capability can be on the wrong side of `*` only if the author's module has imported the capabilities.
    if after or CAPABILITIES_MODULE in sys.modules:
        from mcp_functions.handlers.injection import read_injection  # noqa: PLC0415 - many functions have no such parameter

        injection = read_injection(client_parameters, after, hints, camel_case=camel_case)
    return Signature(tuple(client_parameters), types=types, returns=hints.get("return"), injection=injection)


def list_parameters(function: Callable[..., Any]) -> tuple[list[Parameter], list[str]]:
    """List the parameters before `*` with their defaults, and the names of those after it.

    They are those of `inspect.signature`. A function that no decorator has changed is read from its code object:

        def book(city: str, nights: int = 1, *, step: Step) -> Booking: ...

        co_varnames             ("city", "nights", "step", …)     and then the local variables
        co_argcount             2                                 the first two are before `*`
        co_kwonlyargcount       1                                 the next one is after it
        __defaults__            (1,)                              for the last parameters before `*`
    """
    code = function.__code__
    is_variadic = code.co_flags & VARIADIC
    is_decorated = not SIGNATURE_ATTRIBUTES.isdisjoint(vars(function))
    if is_variadic or is_decorated or code.co_posonlyargcount:
        return _list_with_inspect(function)
    before = code.co_varnames[: code.co_argcount]
    after = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    # `zip` begins with the last parameter, and stops where `__defaults__` has no more values.
    defaults = dict(zip(reversed(before), reversed(function.__defaults__ or ()), strict=False))
    return [Parameter(name, defaults.get(name, MISSING)) for name in before], list(after)


def _list_with_inspect(function: Callable[..., Any]) -> tuple[list[Parameter], list[str]]:
    """List the parameters of a decorated function. Refuse *args, **kwargs and positional-only parameters."""
    import inspect  # noqa: PLC0415 - few functions are decorated

    before = []
    after = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            before.append(Parameter(name, MISSING if parameter.default is parameter.empty else parameter.default))
        elif parameter.kind is parameter.KEYWORD_ONLY:
            after.append(name)
        else:
            message = f"parameter {name!r}: {PARAMETER_RULE}"
            raise TypeError(message)
    return before, after


def _read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Read the annotations one after the other, so that an error names the parameter."""
    hints: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        # An object with one annotation; `__wrapped__` tells `get_type_hints` in which module its names are.
        one = SimpleNamespace(__annotations__={name: annotation}, __wrapped__=function)
        try:
            hints |= get_type_hints(one, include_extras=True)
        except (NameError, TypeError, SyntaxError, AttributeError) as error:  # an annotation can be any expression
            subject = "the result" if name == "return" else f"parameter {name!r}"
            message = f"{subject}: {error}"
            raise TypeError(message) from error
    return hints
