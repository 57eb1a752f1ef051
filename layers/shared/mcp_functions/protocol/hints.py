"""Checks the annotations, icons and `_meta` that an author gives to a decorator, as schema.ts defines them.

    @tool(annotations={"readOnlyHint": True}, icons=[{"src": "https://…"}], meta={"example.com/team": "billing"})

An author gives each of these objects as a dict, or as a model of the official SDK. Each function returns it as a dict.
A misspelt name is refused, because clients silently ignore a name that they do not know.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.protocol.constants import OWN_META
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import NotJson, pydantic_to_json, to_json, type_name
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Members: TypeAlias = "dict[str, Member]"  # the members that an object may have, by name


class Member(NamedTuple):
    """The rule for a member of an object."""

    allowed: str  # the values that the member may have, in words for an error
    is_valid: Callable[[Any], bool]  # tells whether the member may have a value


def _text(allowed: str, pattern: str) -> Member:
    """Return the rule for a string with a pattern."""
    return Member(allowed, lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)))


def _list_of(item: Member) -> Member:
    """Return the rule for a list whose items have a rule."""
    return Member(f"a list of {item.allowed}", lambda value: isinstance(value, list) and all(map(item.is_valid, value)))


TEXT = Member("text", lambda value: isinstance(value, str))
FLAG = Member("True or False", lambda value: isinstance(value, bool))
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
TOOL_ANNOTATIONS: Members = {  # schema.ts, ToolAnnotations
    "title": TEXT,
    "readOnlyHint": FLAG,
    "destructiveHint": FLAG,
    "idempotentHint": FLAG,
    "openWorldHint": FLAG,
}
CONTENT_ANNOTATIONS: Members = {  # schema.ts, Annotations
    "audience": _list_of(_text('"user" and "assistant"', "user|assistant")),
    # The exact type counts, because True is an `int` to `isinstance`.
    "priority": Member("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1),
    "lastModified": _text("a date in ISO 8601, as in 2026-07-28T12:00:00Z", DATE),
}
ICON: Members = {
    # schema.ts, Icon: `src` is "an HTTP/HTTPS URL or a `data:` URI", and sizes are "in WxH format"
    "src": _text("an http://, https:// or data: URI", r"(?i:https?://|data:)\S*"),
    "mimeType": TEXT,
    "sizes": _list_of(_text('sizes such as "48x48" or "any"', "[0-9]+x[0-9]+|any")),
    "theme": _text('"light" or "dark"', "light|dark"),
}
# `Implementation` also has a name and a version. They come from the deployment (MCP_SERVER_NAME), not from the author.
SERVER: Members = {
    "title": TEXT,
    "description": TEXT,
    "websiteUrl": _text("an http:// or https:// URL", r"https?://\S+"),
    # `read_server_info` checks each icon
    "icons": Member("a list of icons", lambda value: isinstance(value, list)),
}


def read_server_info(value: object) -> dict[str, Any]:
    """Read what a server says of itself in `serverInfo`. A TypeError names an unknown or wrong member."""
    info = _read_members("server_info", value, SERVER)
    if "icons" in info:
        info["icons"] = read_icons(info["icons"])
    return info


def read_annotations(value: object, known: Members = CONTENT_ANNOTATIONS) -> dict[str, Any]:
    """Read the annotations of content, or those of a tool with TOOL_ANNOTATIONS. A TypeError names a wrong member."""
    return _read_members("annotations", value, known)


def read_icons(value: object) -> list[dict[str, Any]] | None:
    """Read a list of icons (Icon[]); None if there are none.

    Raises:
        TypeError: the value is not a list, or an icon lacks `src`, or has an unknown member or a wrong value.
    """
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str):
        message = f'icons is a list, as in icons=[{{"src": "https://…"}}], not {type_name(value)}'
        raise TypeError(message)
    icons = [_read_members("an icon", icon, ICON) for icon in value]
    if not all("src" in icon for icon in icons):
        message = "an icon needs src, an http://, https:// or data: URI"
        raise TypeError(message)
    return icons or None


def read_meta(value: object) -> dict[str, Any] | None:
    """Read `_meta`; None if there is none.

    Raises:
        TypeError: the value is not a mapping, a key is reserved or malformed, or JSON cannot carry a value.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        message = f"meta is a dict, not {type_name(value)}"
        raise TypeError(message)
    for key in value:
        if not _is_meta_key(key):
            message = f"_meta key {key!r}: letters, digits, . _ - and a prefix/ that is not reserved"
            raise TypeError(message)
    try:
        plain: dict[str, Any] = to_json(dict(value))
        dumps(plain)  # a check: it raises ValueError for NaN and Infinity, which `to_json` keeps
    except ValueError as error:
        reason = error if isinstance(error, NotJson) else "it holds NaN or Infinity"
        message = f"JSON cannot carry meta ({reason})"
        raise TypeError(message) from None
    return plain or None


# A key of `_meta` is a name, or a prefix of labels and a name that may be empty: "team", "example.com/team".
LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
META_KEY = rf"{NAME}|(?P<prefix>{LABEL}(?:\.{LABEL})*)/(?:{NAME})?"
# as the second label of a prefix (basic, "_meta")
RESERVED_LABELS = {"modelcontextprotocol", "mcp"}


def _is_meta_key(key: object) -> bool:
    match = re.fullmatch(META_KEY, key) if isinstance(key, str) else None
    if match is None:
        return False
    labels = (match["prefix"] or "").split(".")
    if match[0].startswith(OWN_META):
        return False
    return len(labels) == 1 or labels[1] not in RESERVED_LABELS


TAGS = "fastmcp"  # the key of `_meta` under which FastMCP writes tags


def add_tags(meta: dict[str, Any] | None, tags: Collection[str]) -> dict[str, Any] | None:
    """Add tags to `_meta`, where FastMCP writes its own and clients look for them: `{"fastmcp": {"tags": […]}}`.

    Raises:
        TypeError: the tags are no collection of texts, or `_meta` already has this member.
    """
    if not tags:
        return meta
    if isinstance(tags, str) or not all(isinstance(tag, str) and tag for tag in tags):
        message = 'tags is a collection of words: tags=["billing"]'
        raise TypeError(message)
    if meta and TAGS in meta:
        message = f"meta has {TAGS!r} already: give its tags there, or in tags"
        raise TypeError(message)
    return {**(meta or {}), TAGS: {"tags": sorted(set(tags))}}


def _read_members(subject: str, value: object, known: Members) -> dict[str, Any]:
    """Read a dict or a model of the official SDK as an object of the protocol.

    Args:
        subject: what the value is, for error messages.
        value: the dict or the model. A member that is None counts as absent.
        known: the members that the object may have.

    Raises:
        TypeError: the value is no dict and no model, a member is unknown, or a member has a wrong value.
    """
    names = ", ".join(known)
    given: Any = value
    # a class of the SDK is no model itself
    if hasattr(value, "model_dump") and not isinstance(value, type):
        # a model silently drops a misspelt name, and may then be empty
        given = pydantic_to_json(value) or None
    if not isinstance(given, Mapping):
        message = f"{subject}: a dict or a model with these members is needed: {names}; not {type_name(value)}"
        raise TypeError(message)
    members = {}
    for name, member in given.items():
        if name not in known:
            message = f"{subject}: it says {name!r}, which is not known; known are: {names}"
            raise TypeError(message)
        if member is None:
            continue
        plain = list(member) if isinstance(member, tuple) else member
        if not known[name].is_valid(plain):
            message = f"{subject}: {name} must be {known[name].allowed}"
            raise TypeError(message)
        members[name] = plain
    return members
