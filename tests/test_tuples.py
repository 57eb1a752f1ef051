"""`mcp_functions.tuples` defines named tuples like those of `typing`, without evaluating annotations."""

from __future__ import annotations

import typing

import pytest

from mcp_functions.tuples import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        """Both together."""
        return self.x + self.y


def test_a_named_tuple_has_defaults_and_methods() -> None:
    point = Point(1)
    assert point == (1, 2)
    assert point._replace(y=3) == Point(x=1, y=3)
    assert (repr(point), point.sum, Point.__doc__, Point.__module__) == ("Point(x=1, y=2)", 3, "A place.", __name__)


def test_defining_a_named_tuple_compiles_no_annotation(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: object, *_args: object) -> None:
        raise AssertionError(source)

    monkeypatch.setattr(typing, "compile", refuse, raising=False)

    class Other(NamedTuple):
        x: int

    assert Other(1) == (1,)
    with pytest.raises(AssertionError, match="int"):

        class Costly(typing.NamedTuple):
            x: int
