"""A parameter of an author's function, with what `Field` says about it, and a fresh default for each call."""

from __future__ import annotations

import inspect
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

MISSING: Any = inspect.Parameter.empty  # no default


class Parameter(NamedTuple):
    """A parameter of a function that a caller may fill in.

    Attributes:
        declared: as it stands in the signature.
        default: its real default; MISSING if it has none, or if `fresh` makes it.
        is_filled: whether a direct call must be given its value, because its default is not what stands after `=`.
        fresh: makes the default for one call, if it is filled and has one.
        alias: its name on the wire, if `Field` gives one.
        title: its title for people, if `Field` gives one.

    """

    declared: inspect.Parameter
    default: Any
    is_filled: bool = False
    fresh: Callable[[], Any] | None = None
    alias: str | None = None
    title: str | None = None

    @property
    def name(self) -> str:
        """Its name in the function."""
        return self.declared.name

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING and self.fresh is None


def copier(default: Any) -> Callable[[], Any] | None:  # noqa: ANN401 - a default is any value
    """Return a function that copies a default for each call, or None for a default that no call can change.

    Raises:
        TypeError: the default can be changed and cannot be copied.

    """
    if _is_hashable(default) and not any(hasattr(default, name) for name in ("__dataclass_fields__", "model_fields")):
        return None
    try:
        deepcopy(default)
    except Exception as error:
        message = f"its default cannot be copied for each call: {error}"
        raise TypeError(message) from error
    return partial(deepcopy, default)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
