"""What an author says about a type in `Annotated`, besides a bare string, which is its description.

`kinds` reads these words, and pydantic understands them too: in a model, or beside its own `Field`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.errors import DeveloperError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMATS = {"email": r"[^@\s]+@[^@\s]+", "uri": r"[A-Za-z][A-Za-z0-9+.-]*:\S+"}


class Addition:
    """Something that is written into the schema of a type."""

    def add_to(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Write it into a schema; into the one that is not null, if there are two."""
        if "anyOf" not in schema:
            return {**schema, **self._added(schema)}
        members = [member if member == {"type": "null"} else self.add_to(member) for member in schema["anyOf"]]
        return {**schema, "anyOf": members}

    def check(self, value: object) -> object:
        """Return a value that fits; the rest is a ValueError."""
        return value

    def _added(self, schema: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401
        """Write it for pydantic."""
        return self.add_to(handler.resolve_ref_schema(handler(core_schema)))


class Title(Addition):
    """Names a field or an argument for people: `Annotated[int, Title("Work item")]`."""

    def __init__(self, title: str) -> None:
        """Take the title."""
        self._title = title

    def _added(self, _schema: dict[str, Any]) -> dict[str, Any]:
        return {"title": self._title}


class Titles(Addition):
    """Gives the choices of a Literal or Enum words for people: `Annotated[Literal["a", "b"], Titles("One", "Two")]`."""

    def __init__(self, *titles: str) -> None:
        """Take one title for each choice, in their order."""
        self._titles = titles

    def add_to(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Write `oneOf` with `const` and `title` in place of `enum`.

        Raises:
            DeveloperError: there are not as many titles as choices.

        """
        return {key: value for key, value in super().add_to(schema).items() if key not in ("enum", "const")}

    def _added(self, schema: dict[str, Any]) -> dict[str, Any]:
        choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if len(choices) != len(self._titles):
            rule = "Titles has {titles} titles for {choices} choices"
            raise DeveloperError(rule, titles=len(self._titles), choices=len(choices))
        pairs = zip(choices, self._titles, strict=True)
        return {"type": "string", "oneOf": [{"const": choice, "title": title} for choice, title in pairs]}


class Format(Addition):
    """Says what a string is: `Annotated[str, Format("email")]` or `Format("uri")`."""

    def __init__(self, name: str) -> None:
        """Take the name of the format.

        Raises:
            TypeError: it is another one. (A `date` and a `datetime` have formats of their own.)

        """
        if name not in FORMATS:
            message = f"Format({name!r}): the formats are {' and '.join(FORMATS)}"
            raise TypeError(message)
        self._name = name

    def check(self, value: object) -> object:
        """Return a string that has the format."""
        if isinstance(value, str) and not re.fullmatch(FORMATS[self._name], value):
            message = f"must be a valid {self._name}"
            raise ValueError(message)
        return value

    def _added(self, _schema: dict[str, Any]) -> dict[str, Any]:
        return {"format": self._name}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:  # noqa: ANN401 - pydantic's own types
        """Check it for pydantic."""
        from pydantic_core import core_schema  # noqa: PLC0415 - pydantic calls this

        return core_schema.no_info_after_validator_function(self.check, handler(source))


class Limits:
    """Inclusive limits, `None` for none. pydantic and `kinds` ask it for those of `annotated_types`."""

    __is_annotated_types_grouped_metadata__ = True

    def __init__(self, least: float | None, most: float | None) -> None:
        """Take both."""
        self._limits = (least, most)

    def __iter__(self) -> Iterator[object]:
        """List what `annotated_types` calls them."""
        pairs = zip(self._names(), self._limits, strict=True)
        return iter([make(limit) for make, limit in pairs if limit is not None])

    def _names(self) -> tuple[Callable[..., object], Callable[..., object]]:
        raise NotImplementedError


class Between(Limits):
    """Limits a number: `Annotated[int, Between(1, 30)]`."""

    def _names(self) -> tuple[Callable[..., object], Callable[..., object]]:
        from annotated_types import Ge, Le  # noqa: PLC0415 - few parameters have one

        return Ge, Le


class Length(Limits):
    """Limits the characters of a string or the items of a list: `Annotated[str, Length(3, 200)]`."""

    def _names(self) -> tuple[Callable[..., object], Callable[..., object]]:
        from annotated_types import MaxLen, MinLen  # noqa: PLC0415 - likewise

        return MinLen, MaxLen
