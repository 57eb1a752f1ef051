"""The annotations, icons and `_meta` of a decorator, checked as schema.ts defines them.

Each may be a dict, or a model of the official SDK. A misspelt name is refused, because clients silently ignore a hint
that they do not know.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import NotJson, to_json, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    Check: TypeAlias = Callable[[object], bool]

# A key of `_meta` is an optional prefix of dotted labels, and a name. MCP reserves some second labels (basic, "_meta").
LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
META_KEY = rf"(?:{LABEL}(?:\.{LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
TAGS = "fastmcp"
RESERVED = ("modelcontextprotocol", "mcp")
SOURCE = re.compile(r"(?:https?://|data:)[^\s]*", re.IGNORECASE)  # "an HTTP/HTTPS URL or a `data:` URI" (Icon)
SIZE = re.compile(r"[0-9]+x[0-9]+|any")  # "in WxH format" (schema.ts, Icon)
ROLE = re.compile("user|assistant")
THEME = re.compile("light|dark")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})?)?")


def _is_a(type_: type) -> Check:
    return lambda value: isinstance(value, type_)


def _is_priority(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _match(pattern: re.Pattern[str]) -> Check:
    return lambda value: isinstance(value, str) and bool(pattern.fullmatch(value))


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


# By the name on the wire: the allowed values in words, and their check.
Members: TypeAlias = "dict[str, tuple[str, Check]]"
TOOL: Members = {
    "title": ("text", _is_a(str)),
    "readOnlyHint": ("True or False", _is_a(bool)),
    "destructiveHint": ("True or False", _is_a(bool)),
    "idempotentHint": ("True or False", _is_a(bool)),
    "openWorldHint": ("True or False", _is_a(bool)),
}
CONTENT: Members = {
    "audience": ('a list of "user" and "assistant"', _list_of(_match(ROLE))),
    "priority": ("a number from 0 to 1", _is_priority),
    "lastModified": ("a date in ISO 8601, as in 2026-07-28T12:00:00Z", _match(DATE)),
}
ICON: Members = {
    "src": ("an https:// or data: URI", _match(SOURCE)),
    "mimeType": ("text", _is_a(str)),
    "sizes": ('a list of sizes such as "48x48" or "any"', _list_of(_match(SIZE))),
    "theme": ('"light" or "dark"', _match(THEME)),
}

# Of `Implementation`, what the deployment does not say: it has the name and the version (MCP_SERVER_NAME).
SERVER: Members = {
    "title": ("text", _is_a(str)),
    "description": ("text", _is_a(str)),
    "websiteUrl": ("an https:// URL", _match(re.compile(r"https?://[^\s]+"))),
    "icons": ("a list of icons", _is_a(list)),
}


def read_server_info(value: object) -> dict[str, Any]:
    """Read what a server says of itself in `serverInfo`, beside its name and version.

    Raises:
        TypeError: a member is unknown, or has a wrong value.
    """
    info = _members("server_info", value, SERVER)
    if "icons" in info:
        info["icons"] = read_icons(info["icons"])
    return info


def read_annotations(value: object, known: Members = CONTENT) -> dict[str, Any]:
    """Read the hints about the audience of content (Annotations), or with TOOL those about a tool's effects.

    Raises:
        TypeError: a hint is unknown, or has a value that it cannot have.
    """
    return _members("annotations", value, known)


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
    icons = [_members("an icon", icon, ICON) for icon in value]
    if not all("src" in icon for icon in icons):
        message = "an icon needs src, an https:// or data: URI"
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
        if not (isinstance(key, str) and _is_meta_key(key)):
            message = f"_meta key {key!r}: letters, digits, . _ - and a prefix/ that is not reserved for MCP"
            raise TypeError(message)
    try:
        plain: dict[str, Any] = to_json(dict(value))
        dumps(plain)
    except ValueError as error:
        reason = error if isinstance(error, NotJson) else "it holds NaN or Infinity"
        message = f"JSON cannot carry meta ({reason})"
        raise TypeError(message) from None
    return plain or None


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


def _is_meta_key(key: str) -> bool:
    """Check the name of a member of `_meta`."""
    labels = key.rpartition("/")[0].split(".")
    is_reserved = len(labels) > 1 and labels[1] in RESERVED
    return bool(key and re.fullmatch(META_KEY, key)) and not is_reserved


def _members(subject: str, value: object, known: Members) -> dict[str, Any]:
    """Read one object of the protocol: names may be the protocol's or Python's, `readOnlyHint` or `read_only_hint`."""
    names = {**{name: name for name in known}, **{_snake(name): name for name in known}}
    members: dict[str, Any] = {}
    for key, member in _given(subject, value, known).items():
        name = names.get(key, "")
        if not name or name in members:
            problem = "twice" if name else "which is not known"
            message = f"{subject}: it says {key!r}, {problem}; known are: {', '.join(known)}"
            raise TypeError(message)
        words, is_valid = known[name]
        members[name] = list(member) if isinstance(member, tuple) else member
        if not is_valid(members[name]):
            message = f"{subject}: {name} must be {words}"
            raise TypeError(message)
    return members


def _given(subject: str, value: object, known: Members) -> dict[str, Any]:
    """Return the members of a dict or of a model, without those that are None."""
    if isinstance(value, Mapping):
        return {key: member for key, member in value.items() if member is not None}
    if isinstance(value, type) or not hasattr(value, "model_dump"):
        message = (
            f"{subject}: a dict or a model with these members is needed: {', '.join(known)}; not {type_name(value)}"
        )
        raise TypeError(message)
    given: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not given:  # the SDK's models drop unknown names silently
        message = f"{subject}: {type_name(value)} says nothing; known are: {', '.join(known)}"
        raise TypeError(message)
    return given


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
