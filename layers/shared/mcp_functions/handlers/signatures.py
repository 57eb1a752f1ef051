"""Reads an author's signature.

    def book(city: str, nights: int = 1, *, step: Step) -> Booking: ...

    client_parameters   city and nights: the parameters before `*`, whose values the client sends
    types               {"city": str, "nights": int}
    returns             Booking: the annotation of the result
    injection           step: the parameters after `*`, whose values the toolkit makes; None if there are none

Nothing here calls the function.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_type_hints

from mcp_functions.schemas.parameters import MISSING, UNNAMED, Parameter, read_parameter
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers.injection import Injection

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

    client_parameters: tuple[Parameter, ...]
    types: Mapping[str, Any]  # the annotation of each client parameter, without the options of a `Field`
    returns: Any  # None without an annotation
    injection: Injection | None  # None without parameters after `*`

    def defaults(self, given: int, named: Mapping[str, Any]) -> dict[str, Any]:
        """Make the values of the arguments that a direct call leaves out, as in a unit test.

        Python's own default would be wrong: the value after `=` may be a `Field`, or one that a call changes.

        Args:
            given: the number of positional arguments.
            named: the keyword arguments.

        Raises:
            TypeError: a parameter is missing, and has no default.
        """
        defaults = {}
        for parameter in self.client_parameters[given:]:
            if parameter.name in named:
                continue
            if parameter.required:
                message = f"missing required argument: {parameter.name!r}"
                raise TypeError(message)
            if parameter.make_default:  # else Python's own default is right
                defaults[parameter.name] = parameter.make_default()
        return defaults


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
    for declared in before:
        parameter = declared
        if declared.name in hints:  # one without an annotation is refused later, unless the author wrote the schema
            parameter, types[declared.name] = _read_client_parameter(declared, hints[declared.name])
        client_parameters.append(parameter)
    injection = _read_injection(client_parameters, after, hints, camel_case=camel_case)
    return Signature(tuple(client_parameters), types=types, returns=hints.get("return"), injection=injection)


def list_parameters(function: Callable[..., Any]) -> tuple[list[Parameter], list[str]]:
    """List the parameters before `*`, and the names of those after it.

    They come from the function's code, because the import of `inspect` takes 6 ms of a cold start.
    """
    code = function.__code__
    is_variadic = bool(code.co_flags & (CO_VARARGS | CO_VARKEYWORDS))
    has_positional_only = code.co_posonlyargcount > 0
    is_decorated = not SIGNATURE_ATTRIBUTES.isdisjoint(vars(function))
    if is_variadic or has_positional_only or is_decorated:
        return _inspect(function)
    # `co_varnames` has the parameters before `*` first, then those after `*`, and then the local variables.
    end_of_before = code.co_argcount
    end_of_after = end_of_before + code.co_kwonlyargcount
    before = code.co_varnames[:end_of_before]
    after = code.co_varnames[end_of_before:end_of_after]
    # `__defaults__` has no names: its values belong to the last parameters before `*`.
    values = function.__defaults__ or ()
    with_default = before[len(before) - len(values) :]
    defaults = dict(zip(with_default, values, strict=True))
    return [Parameter(name, defaults.get(name, MISSING)) for name in before], list(after)


def _inspect(function: Callable[..., Any]) -> tuple[list[Parameter], list[str]]:
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
            message = f"parameter {name!r}: {UNNAMED}"
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
        except ANNOTATION_ERRORS as error:
            subject = "the result" if name == "return" else f"parameter {name!r}"
            message = f"{subject}: {error}"
            raise TypeError(message) from error
    return hints


def _read_client_parameter(declared: Parameter, hint: object) -> tuple[Parameter, object]:
    """Read the default of a parameter before `*`, and its annotation without the options of a `Field`."""
    try:
        return read_parameter(declared, hint)
    except (TypeError, ValueError) as error:
        message = f"parameter {declared.name!r}: {error}"
        raise TypeError(message) from error


def _read_injection(
    client_parameters: Sequence[Parameter], after: Sequence[str], hints: Mapping[str, Any], *, camel_case: bool
) -> Injection | None:
    """Check that no capability is before `*`, and read the parameters after it; None if there are none."""
    # Without parameters after `*`, the check is needed only if the author's module has imported the capabilities.
    if not after and CAPABILITIES_MODULE not in sys.modules:
        return None
    from mcp_functions.handlers import injection  # noqa: PLC0415 - many functions have no such parameter

    injection.check_before(client_parameters, hints)
    if not after:
        return None
    return injection.read_injection(client_parameters, after, hints, camel_case=camel_case)
