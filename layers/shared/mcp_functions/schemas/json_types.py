"""A type as JSON sees it: its schema, and a check of one value.

JSON's own types (str, int, float, bool, None, Literal, list, dict[str, …] and unions of these) are read here, with
limits (`limits`) and common classes (`classes`), because importing pydantic would cost most of a cold start. Any other
type is pydantic's. A property test says that both ways agree. A check never quotes the value: its words go back to the
client and may be logged.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from mcp_functions.protocol.errors import ParseError, shortened
from mcp_functions.protocol.json_reader import loads
from mcp_functions.protocol.json_writer import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_ERRORS = 1000  # of one value that pydantic is asked to explain: it can explain all of them or none
Read: TypeAlias = "tuple[dict[str, Any], Callable[[Any], Any]]"
Number: TypeAlias = int | float  # a JSON number: an int where it has no fraction


class Header(NamedTuple):
    """Marks an argument that clients repeat in the header `Mcp-Param-<name>`: `Annotated[str, Header("Region")]`."""

    name: str


class Kind(NamedTuple):
    """One type: its JSON Schema, and how a JSON value becomes one of it (ValueError says why not, never the value)."""

    schema: dict[str, Any]
    check: Callable[[Any], Any]
    description: str | None = None
    metadata: tuple[Any, ...] = ()


def camel(name: str) -> str:
    """`work_item_id` as `workItemId`."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def kind(annotation: Any) -> Kind:  # noqa: ANN401 - an annotation is any value
    """Read one annotation.

    Args:
        annotation: a resolved type hint; a string inside `Annotated` is its description.

    Raises:
        TypeError: nobody knows how to write this type in JSON.

    """
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    try:
        schema, check = native(annotation) or _pydantic(annotation)
    except RecursionError:  # a class that holds itself
        schema, check = _pydantic(annotation)
    if description := _description(metadata):
        schema = {**schema, "description": description}
    metadata = tuple(item for item in metadata if not isinstance(item, str))
    return Kind(schema, check, schema.get("description"), metadata)


def from_text(expected: Kind, text: str) -> Any:  # noqa: ANN401 - a value of the kind
    """Read a value out of a URI or a prompt's argument, which are always text.

    Raises:
        ValueError: the text does not say a value of this kind.

    """
    try:
        return expected.check(text)
    except ValueError:
        try:
            value = loads(text)
        except ParseError:
            value = text
        if isinstance(value, dict | list | str):
            raise
        return expected.check(value)


def native(annotation: Any) -> Read | None:  # noqa: ANN401 - an annotation is any value
    """Read an annotation without pydantic; None if only pydantic reads it."""
    if annotation in (Any, object):
        return {}, _same
    if isinstance(annotation, type) and annotation in SCALARS:
        return SCALARS[annotation]
    if get_origin(annotation) is Annotated:
        return _annotated(*get_args(annotation))
    if composed := _composed(annotation):
        return composed
    if not isinstance(annotation, type) or annotation.__module__ == "builtins":
        return None
    from mcp_functions.schemas import class_types  # noqa: PLC0415 - JSON's own types do not need it

    return class_types.read(annotation)


def _annotated(inner: Any, *metadata: Any) -> Read | None:  # noqa: ANN401 - as above
    if any(map(is_pydantic, metadata)):
        return None
    given = [item for item in metadata if _is_limit(item)]
    members = get_args(inner)
    if given and type(None) in members:  # what is limited is the other one
        inner = Annotated[(Union.__getitem__(tuple(member for member in members if member is not type(None))), *given)]
        inner, given = inner | None, []
    bare = native(inner)
    if bare and given:
        from mcp_functions.schemas import limits  # noqa: PLC0415 - few parameters have one

        bare = limits.limited(inner, *bare, given)
    if bare is None:
        return None
    schema, check = bare
    for item in metadata:
        if hasattr(item, "add_to"):  # of `annotations`
            schema, check = item.add_to(schema), _both(check, item.check)
    if description := _description(metadata):
        schema = {**schema, "description": description}
    return schema, check


def _both(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: second(first(value))


def _is_limit(item: object) -> bool:
    return _home(item) == "annotated_types" or hasattr(item, "__is_annotated_types_grouped_metadata__")


def _description(metadata: tuple[Any, ...]) -> str | None:
    return next((item for item in metadata if isinstance(item, str)), None)


def _composed(annotation: Any) -> Read | None:  # noqa: ANN401
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return literal(args)
    if origin in (Union, types.UnionType):
        return _union(args)
    if annotation is list or origin is list:
        return _array(args)
    if annotation is dict or (origin is dict and args[0] is str):
        return _object(args)
    return None


def _scalar(name: str, article: str, *accepted: type) -> Read:
    def check(value: object) -> object:
        if type(value) not in accepted:
            message = f"must be {article} {name}"
            raise ValueError(message)
        return value

    return {"type": name}, check


def _same(value: object) -> object:
    return value


def _float(value: object) -> float:
    if type(value) is not int and type(value) is not float:
        message = "must be a number"
        raise ValueError(message)
    try:
        return float(value)
    except OverflowError:
        message = "must be a number within the range of a double"
        raise ValueError(message) from None


NUMBER = _scalar("number", "a", int, float)
SCALARS: dict[type, Read] = {
    str: _scalar("string", "a", str),
    int: _scalar("integer", "an", int),
    float: ({"type": "number"}, _float),
    bool: _scalar("boolean", "a", bool),
    type(None): _scalar("null", "a", type(None)),
}


def literal(values: tuple[Any, ...]) -> Read | None:
    """Read a choice among values of JSON; None if one of them is not JSON's."""
    if not all(type(value) in (str, int, bool, type(None)) for value in values):
        return None
    accepted = {(type(value), value) for value in values}

    def check(value: object) -> object:
        if not isinstance(value, str | int | None) or (type(value), value) not in accepted:
            message = "must be one of " + ", ".join(dumps(value) for value in values)
            raise ValueError(message)
        return value

    names = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
    one = {type(value) for value in values}
    schema: dict[str, Any] = {"type": names[one.pop()]} if len(one) == 1 else {}
    return {**schema, "enum": list(values)}, check


def _union(members: tuple[Any, ...]) -> Read | None:
    if set(members) == {int, float}:
        return NUMBER
    kinds = [native(member) for member in members]
    known = [found for found in kinds if found]
    makes_floats = any(_mentions(member, float) for member in members)
    if len(known) < len(kinds) or not (_are_disjoint(known) or _is_json_union(members, makes_floats=makes_floats)):
        return None

    def check(value: object) -> object:
        reasons, made = [], []
        for _schema, member in known:
            try:
                result = member(value)
            except ValueError as error:
                reasons.append(str(error))
                continue
            if not makes_floats or repr(result) == repr(value):
                return result
            made.append(result)
        if made:
            return made[0]  # an int stays an int if any member says so, as to pydantic; here none does
        raise ValueError(" or ".join(reasons))

    return {"anyOf": [schema for schema, _check in known]}, check


def _is_json_union(members: tuple[Any, ...], *, makes_floats: bool) -> bool:
    """Tell a union of JSON's own types; which of other types that overlap is preferred, is pydantic's affair."""
    if makes_floats and any(_mentions(member, Any, object, list, dict) for member in members):
        return False
    return all(map(_is_json, members))


def _is_json(annotation: Any) -> bool:  # noqa: ANN401 - an annotation is any value
    if annotation in (Any, object, list, dict) or get_origin(annotation) is Literal:
        return True
    is_composed = get_origin(annotation) in (list, dict, Union, types.UnionType)
    return annotation in SCALARS or (is_composed and all(map(_is_json, get_args(annotation))))


def _are_disjoint(members: list[Read]) -> bool:
    names = [name for schema, _check in members for name in _json_types(schema)]
    return len(names) == len(set(names)) and "any" not in names


def _json_types(schema: dict[str, Any]) -> list[str]:
    """List JSON's types in a schema, its two of numbers as one."""
    if "anyOf" in schema:
        return [name for member in schema["anyOf"] for name in _json_types(member)]
    return [str(schema.get("type", "any")).replace("integer", "number")]


def _mentions(annotation: Any, *wanted: Any) -> bool:  # noqa: ANN401 - annotations are any values
    return annotation in wanted or any(_mentions(inner, *wanted) for inner in get_args(annotation))


def _array(args: tuple[Any, ...]) -> Read | None:
    item = native(args[0]) if args else ({}, _same)
    if item is None:
        return None
    schema, inner = item

    def check(value: object) -> list[Any]:
        if not isinstance(value, list):
            message = "must be an array"
            raise ValueError(message)  # noqa: TRY004 - every refusal of a value is a ValueError
        return [inside(f"item {index}", inner, element) for index, element in enumerate(value)]

    return {"type": "array", "items": schema} if schema else {"type": "array"}, check


def _object(args: tuple[Any, ...]) -> Read | None:
    member = native(args[1]) if args else ({}, _same)
    if member is None:
        return None
    schema, inner = member

    def check(value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            message = "must be an object"
            raise ValueError(message)  # noqa: TRY004 - every refusal of a value is a ValueError
        return {key: inside("a value", inner, element) for key, element in value.items()}

    return {"type": "object", "additionalProperties": schema} if schema else {"type": "object"}, check


def inside(where: str, check: Callable[[Any], Any], value: object) -> Any:  # noqa: ANN401 - of any type
    """Check a part of a value.

    Raises:
        ValueError: it does not fit; the text begins with `where` it stands.

    """
    try:
        return check(value)
    except ValueError as error:
        message = f"{where} {error}"
        raise ValueError(message) from None


def is_pydantic(item: object) -> bool:
    """Tell what pydantic reads, in an annotation or in a class."""
    is_ours = hasattr(item, "add_to")  # of `annotations`
    return _home(item) in ("pydantic", "pydantic_core") or (
        hasattr(item, "__get_pydantic_core_schema__") and not is_ours
    )


def _home(item: object) -> str:
    return type(item).__module__.partition(".")[0]


def _pydantic(annotation: Any) -> Read:  # noqa: ANN401
    from pydantic_core import ValidationError  # noqa: PLC0415 - a scalar tool never pays for it

    from mcp_functions.schemas import pydantic_types  # noqa: PLC0415 - likewise

    schema, read = pydantic_types.read(annotation)

    def check(value: object) -> object:
        try:
            return read(value)
        except ValidationError as error:
            raise ValueError(first_reason(error)) from None

    return schema, check


def first_reason(error: Any) -> str:  # noqa: ANN401 - pydantic's ValidationError, not imported here
    """Say in a few words where and why a value does not fit, without the value itself."""
    if error.error_count() > MOST_ERRORS:
        return f"does not fit in {error.error_count()} places"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = shortened(".".join(str(part) for part in first["loc"]))
    reason = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{where} {reason}" if where else str(reason)
