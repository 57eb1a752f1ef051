"""Reads the signature of an author's function, and does not call it.

    def book(city: str, nights: int = 1, *, step: Step) -> Booking: ...

    client_parameters   city and nights: the parameters before `*`, whose values the client sends
    returns             Booking
    injection           step: the parameters after `*`, whose values the toolkit makes; None if there are none

`Parameter` in `schemas.parameters` says what is known of each parameter before `*`.

`inspect` reads any function, but its import takes a fifth of a cold start (6 to 10 ms). So this module reads the code
object of a plain `def`, and leaves other functions to `callables`, which imports `inspect`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from mcp_functions.schemas.parameters import MISSING, Parameter, default_maker
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.injection import Injection

# The flags of a function with *args or **kwargs, and of a generator, as `inspect` has them.
CO_VARARGS = 0x04
CO_VARKEYWORDS = 0x08
CO_GENERATOR = 0x20
CO_ASYNC_GENERATOR = 0x200
ITERATORS = (Iterator, Generator, AsyncIterator, AsyncGenerator)


class Signature(NamedTuple):
    """The signature of an author's function."""

    client_parameters: tuple[Parameter, ...]
    returns: Any  # the return annotation; None without one
    injection: Injection | None


def to_plain_function(given: Callable[..., Any]) -> FunctionType:
    """Return a function, or make one of another callable; TypeError for a class, or for one that is not in Python."""
    if isinstance(given, FunctionType):
        check_returns(given)
        return given
    from mcp_functions.handlers import callables

    function = callables.to_function(given)
    check_returns(vars(function)["__wrapped__"])
    return function


def check_returns(function: FunctionType) -> None:
    """Refuse a function that no request can call, or whose call never returns a result."""
    name = function.__name__
    if function.__code__.co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR):
        raise TypeError(f"{name} is a generator, because it has a `yield`: return a list instead")
    if {"dispatch", "registry"} <= vars(function).keys():
        rule = "chooses by the type of a positional argument (singledispatch): decorate a plain function"
        raise TypeError(f"{name} {rule}")


def read(function: Callable[..., Any], *, camel_case: bool) -> Signature:
    """Read a function's signature; TypeError for an annotation that cannot be read, or on the wrong side of `*`."""
    try:
        annotations = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise TypeError(f"an annotation cannot be read: {error}") from error
    before_star, after_star = _list_parameters(function)
    client_parameters = tuple(_read_parameter(name, default, annotations) for name, default in before_star.items())
    injection = None
    if after_star:
        from mcp_functions.handlers.injection import read_injection

        injection = read_injection(client_parameters, after_star, annotations, camel_case=camel_case)
    returns = annotations.get("return")
    if (get_origin(returns) or returns) in ITERATORS:
        raise TypeError(
            f"-> {returns}: a call returns no iterator. Annotate the list that it returns; functools.wraps copies the "
            "annotation of the function inside"
        )
    return Signature(client_parameters, returns, injection)


def _list_parameters(function: Callable[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """List the parameters before `*` with their defaults (or MISSING), and the names of the parameters after `*`."""
    code = function.__code__
    is_decorated = hasattr(function, "__wrapped__") or hasattr(function, "__signature__")
    if is_decorated or code.co_posonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
        from mcp_functions.handlers import callables

        return callables.list_parameters(function)
    # A code object names first the parameters before `*`, then those after it, and then other variables.
    names = code.co_varnames
    count = code.co_argcount  # of the parameters before `*`
    defaults = function.__defaults__ or ()  # Python allows defaults only for the last parameters
    missing = (MISSING,) * (count - len(defaults))
    before_star = dict(zip(names[:count], missing + defaults, strict=True))
    after_star = names[count : count + code.co_kwonlyargcount]
    return before_star, list(after_star)


def _read_parameter(name: str, default: object, annotations: Mapping[str, Any]) -> Parameter:
    """Read the annotation and the default of a parameter before `*`."""
    if name not in annotations:  # `schemas.arguments` refuses it, unless the author wrote a schema
        return Parameter(name, default)
    annotation = annotations[name]
    _check_is_before_star(name, annotation)
    try:
        if any(_is_field(item) for item in (default, *get_args(annotation))):
            from mcp_functions.schemas import pydantic_fields

            return pydantic_fields.read_field(Parameter(name, default, annotation=annotation))
        make_default = default_maker(default)
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameter {name!r}: {error}") from error
    return Parameter(name, default, make_default, annotation)


def _check_is_before_star(name: str, annotation: object) -> None:
    """Check that the client sends a parameter. A TypeError refuses `(elicit: Elicit)`, which belongs after `*`."""
    for part in (annotation, get_origin(annotation), *get_args(annotation)):
        noun = getattr(part, "__after_star__", None)  # "a capability" (`rounds.capabilities`)
        if isinstance(noun, str):
            raise TypeError(f"{name}: {noun} is a parameter after *, as in (…, *, {name})")


def _is_field(item: object) -> bool:
    """Tell whether an object is a `Field` of pydantic, without an import of pydantic."""
    pydantic_fields = sys.modules.get("pydantic.fields")
    return pydantic_fields is not None and isinstance(item, pydantic_fields.FieldInfo)
