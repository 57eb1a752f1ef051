"""What an author says about a type in `Annotated`, besides a bare string, which is its description.

`kinds` reads these words, and pydantic understands them too: in a model, or beside its own `Field`.
"""

from __future__ import annotations

import re
import sys
from collections import namedtuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        """Write it for pydantic, which has a class and its name in another place."""

        def in_place(schema: dict[str, Any]) -> dict[str, Any]:
            if "anyOf" in schema:
                schema = {**schema, "anyOf": [in_place(member) for member in schema["anyOf"]]}
            if "$ref" not in schema:
                return schema
            resolved = handler.resolve_ref_schema(schema)
            return {key: value for key, value in resolved.items() if key != "title"}

        return self.add_to(in_place(handler(core_schema)))


class Title(Addition):
    """Names a field or an argument for people: `Annotated[int, Title("Work item")]`."""

    def __init__(self, title: str) -> None:
        """Take the title."""
        self._title = title

    def add_to(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Write it beside the description."""
        return {**schema, "title": self._title}


class Titles(Addition):
    """Gives the choices of a Literal or Enum words for people: `Annotated[Literal["a", "b"], Titles("One", "Two")]`."""

    def __init__(self, *titles: str) -> None:
        """Take one title for each choice, in their order."""
        self._titles = titles

    def add_to(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Write `oneOf` with `const` and `title` in place of `enum`.

        Raises:
            TypeError: there are not as many titles as choices.

        """
        return {key: value for key, value in super().add_to(schema).items() if key not in ("enum", "const")}

    def _added(self, schema: dict[str, Any]) -> dict[str, Any]:
        choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if len(choices) != len(self._titles):
            message = f"Titles has {len(self._titles)} titles for {len(choices)} choices"
            raise TypeError(message)
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
    """Inclusive limits, `None` for none: `kinds` and pydantic read what it consists of, as of `annotated_types`."""

    __is_annotated_types_grouped_metadata__ = True
    names: tuple[str, str]

    def __init__(self, least: float | None, most: float | None) -> None:
        """Take the lower and the upper one."""
        self._limits = (least, most)

    def __iter__(self) -> Iterator[object]:
        """List them. pydantic knows those of `annotated_types` alone, and has imported it."""
        home = sys.modules.get("annotated_types", sys.modules[__name__])
        pairs = zip(self.names, self._limits, strict=True)
        return iter([getattr(home, name)(limit) for name, limit in pairs if limit is not None])


class Between(Limits):
    """Limits a number: `Annotated[int, Between(1, 30)]`."""

    names = ("Ge", "Le")


class Length(Limits):
    """Limits the characters of a string or the items of a list: `Annotated[str, Length(3, 200)]`."""

    names = ("MinLen", "MaxLen")


# As in `annotated_types`, whose import would cost more than all of a form.
Ge = namedtuple("Ge", "ge")  # noqa: PYI024 - read by `kinds.limits`, which needs no types
Le = namedtuple("Le", "le")  # noqa: PYI024
MinLen = namedtuple("MinLen", "min_length")  # noqa: PYI024
MaxLen = namedtuple("MaxLen", "max_length")  # noqa: PYI024
