"""Writes a function's signature as `inputSchema`, and turns the client's arguments into keyword arguments.

    def book(city: str, item_count: int = 1, *, step: Step) -> str: ...

    schema    {"type": "object", "properties": {"city": …, "itemCount": …}, "required": ["city"], …}
    sent      {"city": "Ely", "itemCount": 2}
    bound     {"city": "Ely", "item_count": 2}

The client sends a value for each parameter before `*`, under its wire name: the alias of its `Field`, or else the
parameter's name, in camelCase if `camel_case` is true. The toolkit itself passes the parameters after `*`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from mcp_functions.protocol.errors import ToolError, shortened
from mcp_functions.schemas.parameters import MISSING, PARAMETER_RULE, published_default, to_camel_case
from mcp_functions.schemas.type_reader import read_type
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcp_functions.protocol.wire_types import Schema
    from mcp_functions.schemas.json_types import JsonType
    from mcp_functions.schemas.parameters import Parameter


class Header(NamedTuple):
    """Marks an argument that clients repeat in the header `Mcp-Param-<name>`: `Annotated[str, Header("Region")]`."""

    name: str


class InvalidArgument(ToolError):
    """An argument does not fit. The message names the argument and the reason, and never quotes the value."""


class Argument(NamedTuple):
    """One argument of a handler: the parameter of its function, its name for the client, and its type."""

    parameter: Parameter
    wire_name: str
    type: JsonType

    def read(self, value: Any, *, is_text: bool) -> Any:  # noqa: ANN401
        """Read what the client sent, or raise InvalidArgument."""
        read = self.type.read_text if is_text else self.type.read
        try:
            return read(value)
        except ValueError as error:
            raise InvalidArgument(f"Argument {self.wire_name!r}: {error}") from None


class Arguments(NamedTuple):
    """The arguments of one handler by their wire names, in the order of the signature, and their `inputSchema`."""

    by_name: Mapping[str, Argument]
    schema: Schema

    def bind(self, sent: Mapping[str, Any], *, values_are_text: bool = False) -> dict[str, Any]:
        """Turn the client's arguments by wire name into keyword arguments; InvalidArgument if one does not fit.

        `values_are_text` if the protocol writes every value as a string: a prompt's arguments, the variables of a URI.
        """
        unknown = sorted(sent.keys() - self.by_name.keys())
        if unknown:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise InvalidArgument(f"Unknown argument {shortened(unknown[0])!r}; known are: {known}")
        bound = {}
        for name, argument in self.by_name.items():
            parameter = argument.parameter
            if name in sent:
                bound[parameter.name] = argument.read(sent[name], is_text=values_are_text)
            elif parameter.make_default:
                bound[parameter.name] = parameter.make_default()
            elif parameter.required:
                raise InvalidArgument(f"Argument {name!r}: it is missing")
        return bound


class RawArguments(NamedTuple):
    """All arguments in one parameter, under an `inputSchema` that the author wrote; `read` checks them."""

    parameter_name: str
    schema: Schema
    read: Callable[[object], Any]

    def bind(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Turn the client's arguments into the function's one keyword argument, or raise InvalidArgument."""
        try:
            return {self.parameter_name: self.read(sent)}
        except ValueError as error:
            raise InvalidArgument(f"The arguments do not fit: {error}") from None


def read_arguments(parameters: Iterable[Parameter], *, camel_case: bool) -> Arguments:
    """Read the parameters before `*`, in their order; a TypeError names one without a type, or with none of JSON's."""
    by_name: dict[str, Argument] = {}
    for parameter in parameters:
        try:
            argument = _read_argument(parameter, camel_case=camel_case)
        except (TypeError, ValueError, NameError) as error:
            raise TypeError(f"parameter {parameter.name!r}: {error}") from error
        name = argument.wire_name
        if name in by_name:
            both = f"parameters {by_name[name].parameter.name!r} and {parameter.name!r}"
            raise TypeError(f"{both} have the same name on the wire, {name!r}: rename one")
        by_name[name] = argument
    return Arguments(by_name, _schema_of(by_name))


def read_raw_arguments(parameters: Sequence[Parameter], schema: Mapping[str, Any]) -> RawArguments:
    """Read the one parameter that takes all arguments under an author's schema, or raise a TypeError."""
    if len(parameters) != 1:
        raise TypeError("with input_schema, the function has one parameter before *: arguments: dict[str, Any]")
    if schema.get("type") != "object":
        raise TypeError('the root of an inputSchema must have "type": "object"')
    from mcp_functions.schemas import validation

    type_ = validation.read_schema(schema)
    return RawArguments(parameters[0].name, type_.schema, type_.read)


def _read_argument(parameter: Parameter, *, camel_case: bool) -> Argument:
    if parameter.annotation is MISSING:
        raise TypeError(PARAMETER_RULE)
    type_ = read_type(parameter.annotation)
    headers = [item.name for item in get_args(parameter.annotation) if isinstance(item, Header)]
    keywords: Schema = {"x-mcp-header": headers[0]} if headers else {}
    default = parameter.default
    published: Schema = {} if default is MISSING else published_default(default, type_)
    # A client that sends the default of `amount: float = 5` makes it a float, too.
    if published and type(default) is int and type(type_.read(default)) is float:
        parameter = parameter._replace(make_default=partial(float, default))
    name = to_camel_case(parameter.name) if camel_case else parameter.name
    return Argument(parameter, parameter.alias or name, type_.with_keywords({**keywords, **published}))


def _schema_of(arguments: Mapping[str, Argument]) -> Schema:
    """Write an `inputSchema`: "MUST be a valid JSON Schema object (not null)", 2020-12 by default (server/tools).

    The definitions of nested types move to the root, where a `$ref` such as "#/$defs/City" finds them.
    """
    definitions: dict[str, Schema] = {}
    properties: dict[str, Schema] = {}
    for wire_name, argument in arguments.items():
        property_ = argument.type.schema.copy()
        for name, definition in property_.pop("$defs", {}).items():
            if definitions.setdefault(name, definition) != definition:
                raise TypeError(
                    f"parameter {wire_name!r}: another parameter has a different type named {name!r}: rename one"
                )
        properties[wire_name] = property_
    schema: Schema = {"type": "object", "properties": properties}
    required = [name for name, argument in arguments.items() if argument.parameter.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema
