"""`NamedTuple` as `typing` has it, but cheap to define.

`typing.NamedTuple` compiles each annotation that is a string, and makes two classes. In a cold start this takes a
millisecond for ten named tuples. Here only type checkers read the annotations.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]


class _NamedTupleType(type):
    """Makes a named tuple of a class statement."""

    def __new__(cls, name: str, _bases: tuple[type, ...], members: dict[str, Any]) -> type[tuple[Any, ...]]:
        fields = members.pop("__annotations__")
        defaults = [members.pop(field) for field in fields if field in members]
        named_tuple: Any = namedtuple(name, fields, defaults=defaults)  # type: ignore[misc]  # noqa: PYI024
        for member, value in members.items():  # the module, the docstring and the methods
            setattr(named_tuple, member, value)
        return named_tuple


if TYPE_CHECKING:
    from typing import NamedTuple
else:
    NamedTuple = type.__new__(_NamedTupleType, "NamedTuple", (), {})
