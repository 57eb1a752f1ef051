"""Reads the signature of an author's function, and does not call it.

    def book(city: str, nights: int = 1, *, step: Step) -> Booking: ...

    client_parameters   city and nights: the parameters before `*`, whose values the client sends
    returns             Booking
    injection           step: the parameters after `*`, whose values the toolkit makes; None if there are none

`schemas.parameters` reads the default of a client parameter, and `handlers.injection` the parameters after `*`.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from mcp_functions.schemas.parameters import MISSING, PARAMETER_RULE, Parameter, with_copied_default
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.injection import Injection


class Signature(NamedTuple):
    """The signature of an author's function."""

    client_parameters: tuple[Parameter, ...]
    returns: Any  # the return annotation; None without one
    injection: Injection | None


def read(function: Callable[..., Any], *, camel_case: bool) -> Signature:
    """Read a function's signature.

    Args:
        function: an author's function.
        camel_case: True if names are camelCase on the wire.

    Raises:
        TypeError: an annotation cannot be read, or a parameter is on the wrong side of `*`.
    """
    hints = _read_hints(function)
    before_star, after_star = _list_parameters(function)
    client_parameters = tuple(_read_client_parameter(parameter, hints) for parameter in before_star)
    injection = None
    if after_star:
        from mcp_functions.handlers.injection import read_injection  # noqa: PLC0415 - many functions need no injection

        injection = read_injection(client_parameters, after_star, hints, camel_case=camel_case)
    return Signature(client_parameters, returns=hints.get("return"), injection=injection)


def _read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Read the annotation of each parameter, and of the result as "return"."""
    hints: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        # An error of `get_type_hints(function)` would not say which annotation is wrong. So each call gets an object
        # with one annotation. `__wrapped__` leads to the function's module, where the annotation's names are looked up.
        holder = SimpleNamespace(__annotations__={name: annotation}, __wrapped__=function)
        try:
            hints |= get_type_hints(holder, include_extras=True)
        except (NameError, TypeError, SyntaxError, AttributeError) as error:  # an annotation may be any expression
            subject = "the result" if name == "return" else f"parameter {name!r}"
            message = f"{subject}: {error}"
            raise TypeError(message) from error
    return hints


def _read_client_parameter(parameter: Parameter, hints: Mapping[str, Any]) -> Parameter:
    """Read the annotation and the default of a parameter before `*`."""
    name = parameter.name
    if name not in hints:  # `schemas.arguments` refuses it, unless the author wrote a JSON Schema (`input_schema`)
        return parameter
    _check_is_before_star(name, hints[name])
    try:
        return _read_default(parameter._replace(annotation=hints[name]))
    except (TypeError, ValueError) as error:
        message = f"parameter {name!r}: {error}"
        raise TypeError(message) from error


def _read_default(parameter: Parameter) -> Parameter:
    """Read the default of a parameter, and its `Field` if it has one."""
    fields = sys.modules.get("pydantic.fields")  # without this module, the author cannot have made a `Field`
    places = (parameter.default, *get_args(parameter.annotation))
    if fields is None or not any(isinstance(item, fields.FieldInfo) for item in places):
        return with_copied_default(parameter)
    from mcp_functions.schemas import pydantic_fields  # noqa: PLC0415 - the author of a Field has imported pydantic

    return pydantic_fields.read_field(parameter)


def _check_is_before_star(name: str, hint: object) -> None:
    """Check that the client sends a parameter. A TypeError refuses `(elicit: Elicit)`, which belongs after `*`."""
    for part in (hint, get_origin(hint), *get_args(hint)):
        noun = getattr(part, "__after_star__", None)  # "a capability", for example: see `rounds.capabilities`
        if isinstance(noun, str):
            message = f"{name}: {noun} is a parameter after *, as in (…, *, {name})"
            raise TypeError(message)


def _list_parameters(function: Callable[..., Any]) -> tuple[list[Parameter], list[str]]:
    """List the parameters before `*` with their defaults, and the names of the parameters after `*`.

    A plain function is read without `inspect`, whose import takes a fifth of a cold start (6 to 10 ms).
    """
    code = function.__code__
    variadic = 0x04 | 0x08  # inspect.CO_VARARGS and CO_VARKEYWORDS, for *args and **kwargs
    # A decorator may give a function another signature than its code has. It then sets one of these attributes.
    is_decorated = hasattr(function, "__wrapped__") or hasattr(function, "__signature__")
    if is_decorated or code.co_flags & variadic or code.co_posonlyargcount:
        return _list_with_inspect(function)
    end = code.co_argcount + code.co_kwonlyargcount  # the names of local variables follow
    before_star = code.co_varnames[: code.co_argcount]
    after_star = code.co_varnames[code.co_argcount : end]
    defaults = function.__defaults__ or ()  # those of the last parameters before `*`
    all_defaults = (MISSING,) * (len(before_star) - len(defaults)) + defaults
    pairs = zip(before_star, all_defaults, strict=True)
    return [Parameter(name, default) for name, default in pairs], list(after_star)


def _list_with_inspect(function: Callable[..., Any]) -> tuple[list[Parameter], list[str]]:
    """List the parameters of any function.

    Raises:
        TypeError: the function has *args, **kwargs or positional-only parameters.
    """
    import inspect  # noqa: PLC0415 - few functions are decorated

    before_star = []
    after_star = []
    for name, parameter in inspect.signature(function).parameters.items():
        default = MISSING if parameter.default is parameter.empty else parameter.default
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            before_star.append(Parameter(name, default))
        elif parameter.kind is parameter.KEYWORD_ONLY:
            after_star.append(name)
        else:
            message = f"parameter {name!r}: {PARAMETER_RULE}"
            raise TypeError(message)
    return before_star, after_star
