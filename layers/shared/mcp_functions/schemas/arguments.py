"""A signature as `inputSchema`, and the client's arguments as the function's own.

What stands before `*` in a handler's signature is what the client sends. Its wire name is the alias that `Field` gives
it, or else the parameter's name (or its camelCase, by one switch).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.protocol.errors import shortened
from mcp_functions.schemas import defaults
from mcp_functions.schemas.json_types import Header, Kind, camel, from_text, kind
from mcp_functions.schemas.parameters import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcp_functions.schemas.parameters import Parameter


class InvalidArgument(Exception):
    """An argument does not fit; the text names it and says why, never its value."""


class Argument(NamedTuple):
    """One parameter of a handler, as the client knows it.

    Attributes:
        fresh: makes its default for one call; None leaves it to the function's own.

    """

    parameter: str
    wire: str
    kind: Kind
    required: bool
    fresh: Callable[[], Any] | None = None
    title: str | None = None


class RawArguments(NamedTuple):
    """Arguments under a schema that the author wrote: the function's one parameter before `*` takes them all."""

    parameter: str
    schema: Mapping[str, Any]
    check: Callable[[Any], Any]

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check them as a whole.

        Raises:
            InvalidArgument: they do not fit the schema.

        """
        try:
            return {self.parameter: self.check(given)}
        except ValueError as error:
            message = f"The arguments do not fit: {error}"
            raise InvalidArgument(message) from None


class Arguments:
    """All that a client may send to one handler.

    Attributes:
        every: each argument.
        schema: the `inputSchema`.

    """

    __slots__ = ("_known", "every", "schema")

    def __init__(self, every: tuple[Argument, ...]) -> None:
        """Write the schema once."""
        self.every = every
        self._known = frozenset(argument.wire for argument in every)
        self.schema = self._schema()

    def _schema(self) -> dict[str, Any]:
        """Write it: "MUST be a valid JSON Schema object (not null)", 2020-12 by default."""
        schemas = {argument.wire: argument.kind.schema for argument in self.every}
        definitions = _definitions(schemas)
        properties = {
            wire: {key: value for key, value in schema.items() if key != "$defs"} for wire, schema in schemas.items()
        }
        required = [argument.wire for argument in self.every if argument.required]
        return {
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": False,
            **({"$defs": definitions} if definitions else {}),
        }

    def bind(self, given: Mapping[str, Any], *, text: bool = False) -> dict[str, Any]:
        """Turn what the client sent into the function's keyword arguments.

        Args:
            given: the arguments by wire name.
            text: they are strings by protocol (a prompt's arguments, a URI's variables), whatever they mean.

        Raises:
            InvalidArgument: one is missing, unknown, or does not fit its type.

        """
        if not given.keys() <= self._known:
            unknown, known = min(given.keys() - self._known), ", ".join(sorted(self._known))
            message = f"Unknown argument {shortened(unknown)!r}; known are: {known or 'none'}"
            raise InvalidArgument(message)
        bound = {}
        for argument in self.every:
            if argument.wire in given:
                bound[argument.parameter] = _value(argument, given[argument.wire], text=text)
            elif argument.fresh:
                bound[argument.parameter] = argument.fresh()
            elif argument.required:
                message = f"Argument {argument.wire!r}: it is missing"
                raise InvalidArgument(message)
        return bound


def read(parameters: Iterable[Parameter], hints: Mapping[str, Any], *, camel_case: bool) -> Arguments:
    """Read the parameters before `*`.

    Raises:
        TypeError: a parameter has no type, or one that JSON cannot carry; the text names it.

    """
    every: dict[str, Argument] = {}
    for parameter in parameters:
        argument = _argument(parameter, hints, camel_case=camel_case)
        if same := every.get(argument.wire):
            both = f"parameters {same.parameter!r} and {parameter.name!r}"
            message = f"{both} have the same name on the wire, {argument.wire!r}: rename one"
            raise TypeError(message)
        every[argument.wire] = argument
    return Arguments(tuple(every.values()))


def read_raw(parameters: Sequence[Parameter], schema: Mapping[str, Any]) -> RawArguments:
    """Read the one parameter that takes all arguments under a raw schema.

    Raises:
        TypeError: there is not exactly one, or the schema may not be offered.

    """
    if len(parameters) != 1:
        message = "with input_schema, the function has one parameter before *: arguments: dict[str, Any]"
        raise TypeError(message)
    from mcp_functions.schemas.validation import checker  # noqa: PLC0415 - it brings expressions that most tools have no use for

    return RawArguments(parameters[0].name, schema, checker(schema))


def _argument(parameter: Parameter, hints: Mapping[str, Any], *, camel_case: bool) -> Argument:
    try:
        return _read(parameter, hints, camel_case=camel_case)
    except (TypeError, ValueError, NameError) as error:
        message = f"parameter {parameter.name!r}: {error}"
        raise TypeError(message) from error


def _read(parameter: Parameter, hints: Mapping[str, Any], *, camel_case: bool) -> Argument:
    if parameter.declared.kind is not parameter.declared.POSITIONAL_OR_KEYWORD or parameter.name not in hints:
        message = "every parameter needs a name (no *args, no /) and a type, which the client is told"
        raise TypeError(message)
    wire = parameter.alias or (camel(parameter.name) if camel_case else parameter.name)
    found = kind(hints[parameter.name])
    if header := next((item for item in found.metadata if isinstance(item, Header)), None):
        found = found._replace(schema={**found.schema, "x-mcp-header": header.name})
    if parameter.default is not MISSING:
        found = found._replace(schema={**found.schema, **defaults.published(parameter.default, found.check)})
    fresh = parameter.fresh or defaults.as_float(parameter.default, found.check)
    return Argument(parameter.name, wire, found, parameter.required, fresh, parameter.title)


def _definitions(schemas: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for wire, schema in schemas.items():
        for name, definition in schema.get("$defs", {}).items():
            if found.setdefault(name, definition) != definition:
                message = f"parameter {wire!r}: another parameter has a different type named {name!r}: rename one"
                raise TypeError(message)
    return found


def _value(argument: Argument, value: Any, *, text: bool) -> Any:  # noqa: ANN401 - the author's own types
    try:
        return from_text(argument.kind, value) if text else argument.kind.check(value)
    except ValueError as error:
        message = f"Argument {argument.wire!r}: {error}"
        raise InvalidArgument(message) from None
