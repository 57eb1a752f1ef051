"""What pydantic knows of a type (a core schema of pydantic_core), with changes for values that come as JSON.

class Size(Enum):
    SMALL = (1, 2)

reader_and_writer(TypeAdapter(Size))    read [1, 2] as Size.SMALL, which pydantic alone would refuse
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaSerializer, SchemaValidator, core_schema, to_jsonable_python

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import TypeAdapter


def reader_and_writer(adapter: TypeAdapter[Any]) -> tuple[Any, Any]:
    """Return the validator and the serializer of a type, after the changes."""
    changed = _changed(adapter.core_schema)
    if changed == adapter.core_schema:
        return adapter.validator, adapter.serializer
    # Without the option, pydantic would use the validator of each model class, which is not changed.
    return SchemaValidator(changed, _use_prebuilt=False), SchemaSerializer(changed, _use_prebuilt=False)


def _changed(part: Any) -> Any:  # noqa: ANN401 - a part of a core schema
    """Copy a core schema, and change the parts in it that cannot read or write JSON as they are."""
    if type(part) in (list, tuple):
        return type(part)(map(_changed, part))
    if not isinstance(part, dict):
        return part
    # A default and the author's keywords are no parts of the description. A field may have such a name, too.
    kept = ("default", "metadata") if isinstance(part.get("type"), str) else ()
    return _change({name: each if name in kept else _changed(each) for name, each in part.items()})


def _change(part: Any) -> object:  # noqa: ANN401 - a part of a core schema
    match part.get("type"):
        case "generator":
            # An `Iterable`: its items are checked when it is read, and not when the author's function asks for them.
            return {**part, "type": "list"}
        case "function-wrap":
            return _without_second_write(part)
        case "tagged-union":
            return _with_values_of_tags(part)
        case "literal":
            return _with_values(part, [choice for choice in part["expected"] if isinstance(choice, Enum)])
        case "enum" if any(isinstance(member.value, tuple) for member in part["members"]):
            return _with_values(part, part["members"])
    return part


def _without_second_write(part: dict[str, object]) -> object:
    """Write what the type inside a PlainValidator wrote only once: pydantic would warn (its issues 10402, 10964)."""
    if getattr(part["function"], "__module__", "") == "pydantic.functional_validators":
        part.pop("return_schema", None)
    return part


def _with_values_of_tags(part: core_schema.TaggedUnionSchema) -> object:
    """Let a tag that is a member of an Enum also be its value, because JSON cannot hold the member."""
    choices = part["choices"]
    values = {tag.value: choice for tag, choice in choices.items() if isinstance(tag, Enum)}
    return {**part, "choices": {**choices, **values}}


def _with_values(part: core_schema.CoreSchema, members: Sequence[Enum]) -> object:
    """Read the values of members of an Enum, as JSON has them (pydantic's issues 8708, 9968 and 10629).

    pydantic reads a Literal of members only from the members, and an Enum of tuples only from tuples.
    """
    if not members:
        return part
    by_value = [(to_jsonable_python(member.value), member) for member in members]
    return core_schema.no_info_before_validator_function(partial(_member_of, by_value), part)


def _member_of(by_value: Sequence[tuple[Any, Enum]], choice: object) -> object:
    """Return the member that has a value; a choice that is no such value stays as it is."""
    found = (member for value, member in by_value if (type(value), value) == (type(choice), choice))
    return next(found, choice)


def loss_of(part: object) -> str | None:
    """Name what a type has and never writes; None if there is nothing. An author's serializer may write anything."""
    if isinstance(part, list | tuple):
        return next(filter(None, map(loss_of, part)), None)
    if not isinstance(part, dict):
        return None
    if part.get("serialization_exclude") and part["schema"]["type"] != "default":
        return "a required field with exclude=True"
    written = part.get("serialization")
    if isinstance(written, dict) and "function" in written:
        return "a secret" if _writes_asterisks(written["function"]) else None
    return loss_of(list(part.values()))


def _writes_asterisks(function: Callable[..., object]) -> bool:
    return function.__module__ == "pydantic.types" and "secret" in function.__name__
