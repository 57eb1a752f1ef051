"""Checks the annotations and icons of handlers and content, and what a server says of itself, as schema.ts has them.

    @tool(annotations={"readOnlyHint": True}, icons=[{"src": "https://…"}])

An author writes each of these objects as a dict, or as a model of the official SDK. Each function returns it as a dict.
A misspelt name is refused, because clients silently ignore a name that they do not know. The TypeError for a wrong
value begins with its place: "icons[1]: src must be an http://, https:// or data: URI".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.protocol.plain_values import BYTES, pydantic_to_json, type_name
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.protocol.wire_types import Annotations, Icon, ServerInfo, ToolAnnotations


# ---- Three kinds of rules: for one value, for a list, and for an object


class Value(NamedTuple):
    """The rule for a text, a number or a flag; `allowed` says what it may be, in words for an error."""

    allowed: str
    is_valid: Callable[[Any], bool]

    def read(self, place: str, value: object) -> Any:  # noqa: ANN401
        """Return the value, or raise a TypeError."""
        if not self.is_valid(value):
            raise TypeError(f"{place} must be {self.allowed}")
        return value


class ListOf(NamedTuple):
    """The rule for a list, whose items have a rule; `allowed` says what they may be, in words for an error."""

    allowed: str
    item: Value | Object

    def read(self, place: str, value: object) -> list[Any]:
        """Return a list of the items, or raise a TypeError with the index of the wrong one."""
        if not isinstance(value, Sequence) or isinstance(value, (str, *BYTES)):
            raise TypeError(f"{place} must be a list of {self.allowed}, not {type_name(value)}")
        return [self.item.read(f"{place}[{index}]", item) for index, item in enumerate(value)]


class Object:
    """The rule for an object: the members that it may have, and perhaps one that it must have."""

    def __init__(self, required: str | None = None, **members: Value | ListOf) -> None:
        """Set the rule of each member."""
        self.members = members
        self.required = required

    def read(self, place: str, value: object) -> dict[str, Any]:
        """Return the dict or the model as a dict, or raise a TypeError. A member that is None counts as absent."""
        names = ", ".join(self.members)
        given = _dict_of_model(value) if hasattr(value, "model_dump") else value
        if not isinstance(given, Mapping):
            needed = f"a dict or a model with these members is needed: {names}"
            raise TypeError(f"{place}: {needed}; not {type_name(value)}")
        unknown = [name for name in given if name not in self.members]
        if unknown:
            raise TypeError(f"{place}: it says {unknown[0]!r}, which is not known; known are: {names}")
        present = {name: member for name, member in given.items() if member is not None}
        if self.required and self.required not in present:
            raise TypeError(f"{place} needs {self.required}, {self.members[self.required].allowed}")
        return {name: self.members[name].read(f"{place}: {name}", member) for name, member in present.items()}


def _dict_of_model(value: object) -> object:
    """Write a model as a dict; None for a class of the SDK, which is no model, and for a model without members.

    A model of the SDK silently drops a misspelt name, and may then be empty.
    """
    return None if isinstance(value, type) else pydantic_to_json(value) or None


def _text(allowed: str, pattern: str) -> Value:
    return Value(allowed, lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)))


# ---- The objects of schema.ts

TEXT = Value("text", lambda value: isinstance(value, str))
FLAG = Value("True or False", lambda value: isinstance(value, bool))
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"

TOOL_ANNOTATIONS = Object(title=TEXT, readOnlyHint=FLAG, destructiveHint=FLAG, idempotentHint=FLAG, openWorldHint=FLAG)

ANNOTATIONS = Object(
    audience=ListOf('"user" and "assistant"', _text('"user" or "assistant"', "user|assistant")),
    # The exact type counts, because True is an `int` to `isinstance`.
    priority=Value("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1),
    lastModified=_text("a date in ISO 8601, as in 2026-07-28T12:00:00Z", DATE),
)

# `src` is "an HTTP/HTTPS URL or a `data:` URI", and sizes are "in WxH format".
ICON = Object(
    src=_text("an http://, https:// or data: URI", r"(?i:https?://|data:)\S*"),
    mimeType=TEXT,
    sizes=ListOf('sizes such as "48x48" or "any"', _text('"any", or a size such as "48x48"', "[0-9]+x[0-9]+|any")),
    theme=_text('"light" or "dark"', "light|dark"),
    required="src",
)
ICONS = ListOf('icons, as in [{"src": "https://…"}]', ICON)

# `Implementation` also has a name and a version. They come from the deployment (MCP_SERVER_NAME), not from the author.
SERVER_INFO = Object(
    title=TEXT,
    description=TEXT,
    websiteUrl=_text("an http:// or https:// URL", r"https?://\S+"),
    icons=ICONS,
)


def read_tool_annotations(value: object) -> ToolAnnotations:
    """Read the annotations of a tool, or raise a TypeError."""
    return cast("ToolAnnotations", TOOL_ANNOTATIONS.read("annotations", value))


def read_annotations(value: object) -> Annotations:
    """Read the annotations of a resource or of content, or raise a TypeError."""
    return cast("Annotations", ANNOTATIONS.read("annotations", value))


def read_icons(value: object) -> list[Icon] | None:
    """Read a list of icons, or raise a TypeError; None for None, and for an empty list."""
    return None if value is None else ICONS.read("icons", value) or None


def read_server_info(value: object) -> ServerInfo:
    """Read what a server says of itself in `serverInfo`, or raise a TypeError."""
    return cast("ServerInfo", SERVER_INFO.read("server_info", value))
