"""`NamedTuple` as `typing` has it, but cheap to define.

`typing.NamedTuple` compiles each annotation that is a string, which takes 3 ms of a cold start. Here only type checkers
read the annotations.
"""

from __future__ import annotations

import types
import typing
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]


class _NamedTupleType(type):
    """Makes a named tuple of a class statement."""

    def __new__(cls, name: str, _bases: tuple[type, ...], members: dict[str, Any]) -> type:
        members["__annotations__"] = dict.fromkeys(members["__annotations__"], Any)
        return types.new_class(name, (typing.NamedTuple,), exec_body=lambda namespace: namespace.update(members))


if TYPE_CHECKING:
    from typing import NamedTuple
else:
    NamedTuple = type.__new__(_NamedTupleType, "NamedTuple", (), {})
