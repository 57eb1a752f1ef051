"""Reads an author's signature.

    def book(city: str, nights: int = 1, *, step: Step) -> Booking: ...

    sent         city and nights: the arguments, which the client sends
    injection    step: the parameters after `*`, which the toolkit makes; None if there are none
    output       Booking: the type of a tool's structured content; None if it promises none

Nothing here calls the function.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any, get_type_hints

from mcp_functions.handlers import return_types
from mcp_functions.schemas.parameters import MISSING, UNNAMED, Parameter, read_parameter
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers.injection import Injection
    from mcp_functions.schemas.json_types import JsonType

# Flags of a code object for *args and **kwargs, copied from `inspect`, whose import takes 6 ms of a cold start.
CO_VARARGS = 0x04
CO_VARKEYWORDS = 0x08
# A function with one of these attributes, which decorators set, has another signature than its code.
SIGNATURE_ATTRIBUTES = {"__wrapped__", "__signature__"}
# The evaluation of an annotation, which can be any expression, raises one of these.
ANNOTATION_ERRORS = (NameError, TypeError, SyntaxError, AttributeError)
# The module of `Elicit`, `Step` and the other classes that only a parameter after `*` may have.
CAPABILITIES_MODULE = "mcp_functions.rounds.capabilities"


class Signature(NamedTuple):
    """A signature as a handler reads it."""

    sent: tuple[Parameter, ...]  # the parameters before `*`
    # The annotation of each parameter by its name, and that of the result as "return". They are without the name, the
    # default and the title that a `Field` gave, because `sent` has these.
    hints: Mapping[str, Any]
    injection: Injection | None
    output: JsonType | None

    def defaults(self, given: int, named: Mapping[str, Any]) -> dict[str, Any]:
        """Make the values of the arguments that a direct call leaves out, as in a unit test.

        Python's own default would be wrong: the value after `=` may be a `Field`, or one that a call changes.

        Args:
            given: the number of positional arguments.
            named: the keyword arguments.

        Raises:
            TypeError: a parameter is missing, and has no default.
        """
        absent = [parameter for parameter in self.sent[given:] if parameter.name not in named]
        for parameter in absent:
            if parameter.required:
                message = f"missing required argument: {parameter.name!r}"
                raise TypeError(message)
        return {parameter.name: parameter.make_default() for parameter in absent if parameter.make_default}


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
    parameters = list_parameters(function)
    sent = tuple(_read_sent(parameter, hints) for parameter in parameters if not parameter.keyword_only)
    injection = _read_injection(parameters, hints, camel_case=camel_case)
    output = return_types.structured(hints.get("return"))
    return Signature(sent, hints, injection, output)


def list_parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """List the parameters of a function, from its code: the import of `inspect` takes 6 ms of a cold start."""
    code = function.__code__
    is_variadic = bool(code.co_flags & (CO_VARARGS | CO_VARKEYWORDS))
    has_positional_only = code.co_posonlyargcount > 0
    is_decorated = not SIGNATURE_ATTRIBUTES.isdisjoint(vars(function))
    if is_variadic or has_positional_only or is_decorated:
        return _inspect(function)
    # `co_varnames` has the parameters before `*` first, then those after `*`, and then the local variables.
    end_of_positional = code.co_argcount
    end_of_parameters = end_of_positional + code.co_kwonlyargcount
    positional = code.co_varnames[:end_of_positional]
    keyword_only = code.co_varnames[end_of_positional:end_of_parameters]
    # `__defaults__` has no names: its values belong to the last parameters before `*`.
    values = function.__defaults__ or ()
    with_default = positional[len(positional) - len(values) :]
    defaults = dict(zip(with_default, values, strict=True))
    keyword_defaults = function.__kwdefaults__ or {}
    before = [Parameter(name, defaults.get(name, MISSING)) for name in positional]
    after = [Parameter(name, keyword_defaults.get(name, MISSING), keyword_only=True) for name in keyword_only]
    return (*before, *after)


def _inspect(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """List the parameters of a decorated function. Refuse *args, **kwargs and positional-only parameters."""
    import inspect  # noqa: PLC0415 - few functions are decorated

    named_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in named_kinds:
            message = f"parameter {name!r}: {UNNAMED}"
            raise TypeError(message)
        default = MISSING if parameter.default is parameter.empty else parameter.default
        parameters.append(Parameter(name, default, keyword_only=parameter.kind is parameter.KEYWORD_ONLY))
    return tuple(parameters)


def _read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Read the annotations one after the other, so that an error names the parameter."""
    hints: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        # An object with one annotation; `__wrapped__` tells `get_type_hints` in which module its names are.
        one = types.SimpleNamespace(__annotations__={name: annotation}, __wrapped__=function)
        try:
            hints |= get_type_hints(one, include_extras=True)
        except ANNOTATION_ERRORS as error:
            subject = "the result" if name == "return" else f"parameter {name!r}"
            message = f"{subject}: {error}"
            raise TypeError(message) from error
    return hints


def _read_injection(parameters: Sequence[Parameter], hints: Mapping[str, Any], *, camel_case: bool) -> Injection | None:
    """Check that no capability is before `*`, and read the parameters after it; None if there are none.

    Without parameters after `*`, the check is needed only if the author's module has imported the capabilities.
    """
    has_injected = any(parameter.keyword_only for parameter in parameters)
    if not has_injected and CAPABILITIES_MODULE not in sys.modules:
        return None
    from mcp_functions.handlers import injection  # noqa: PLC0415 - many functions have no such parameter

    injection.check_arguments(parameters, hints)
    return injection.read_injection(parameters, hints, camel_case=camel_case) if has_injected else None


def _read_sent(parameter: Parameter, hints: dict[str, Any]) -> Parameter:
    """Read a parameter and its default, and replace its hint with its type alone."""
    if parameter.name not in hints:
        return parameter
    try:
        sent, plain_type = read_parameter(parameter, hints[parameter.name])
    except (TypeError, ValueError) as error:
        message = f"parameter {parameter.name!r}: {error}"
        raise TypeError(message) from error
    hints[parameter.name] = plain_type
    return sent
