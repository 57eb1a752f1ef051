"""Checks of the annotations, icons and `_meta` that an author gives to a decorator (schema.ts).

Each may be a dict or a model of the official SDK. A misspelt name is refused, because clients ignore unknown hints and
the author would not notice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import NotJson, to_json, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

# "_meta" keys: an optional prefix of dotted labels, and a name; prefixes whose second label is MCP's own are reserved
LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
META_KEY = rf"(?:{LABEL}(?:\.{LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
RESERVED = ("modelcontextprotocol", "mcp")
# "src: … May be an HTTP/HTTPS URL or a `data:` URI"; clients must reject any other scheme
SOURCE = re.compile(r"(?:https?://|data:)[^\s]*", re.IGNORECASE)
SIZE = re.compile(r"[0-9]+x[0-9]+|any")  # "in WxH format (e.g., "48x48", "96x96") or "any""
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})?)?")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _are_roles(value: object) -> bool:
    return isinstance(value, list) and all(each in ("user", "assistant") for each in value)


def _is_priority(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_date(value: object) -> bool:
    return isinstance(value, str) and bool(DATE.fullmatch(value))


def _is_source(value: object) -> bool:
    return isinstance(value, str) and bool(SOURCE.fullmatch(value))


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and SIZE.fullmatch(each) for each in value)


def _is_theme(value: object) -> bool:
    return value in ("light", "dark")


# name on the wire -> (what it must be, in words; the check)
Members = dict[str, "tuple[str, Callable[[object], bool]]"]
TOOL: Members = {
    "title": ("text", _is_text),
    "readOnlyHint": ("True or False", _is_bool),
    "destructiveHint": ("True or False", _is_bool),
    "idempotentHint": ("True or False", _is_bool),
    "openWorldHint": ("True or False", _is_bool),
}
CONTENT: Members = {
    "audience": ('a list of "user" and "assistant"', _are_roles),
    "priority": ("a number from 0 to 1", _is_priority),
    "lastModified": ("a date in ISO 8601, as in 2026-07-28T12:00:00Z", _is_date),
}
ICON: Members = {
    "src": ("an https:// or data: URI", _is_source),
    "mimeType": ("text", _is_text),
    "sizes": ('a list of sizes such as "48x48" or "any"', _are_sizes),
    "theme": ('"light" or "dark"', _is_theme),
}


def read_tool_annotations(value: object) -> dict[str, Any] | None:
    """Read the hints about what a tool does (ToolAnnotations); None if there are none.

    Raises:
        TypeError: a hint is unknown, or has a value that it cannot have.

    """
    return None if value is None else _members("annotations", value, TOOL)


def read_annotations(value: object) -> dict[str, Any] | None:
    """Read the hints about who should use content or a resource (Annotations); None if there are none.

    Raises:
        TypeError: a hint is unknown, or has a value that it cannot have.

    """
    return None if value is None else _members("annotations", value, CONTENT)


def read_icons(value: object) -> list[dict[str, Any]] | None:
    """Read a list of icons (Icon[]); None if there are none.

    Raises:
        TypeError: it is no list, or one of them has no `src`, or says something that an icon cannot say.

    """
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str):
        message = f'icons is a list, as in icons=[{{"src": "https://…"}}], not {type_name(value)}'
        raise TypeError(message)
    read = [_members("an icon", icon, ICON) for icon in value]
    if not all("src" in icon for icon in read):
        message = "an icon needs src, an https:// or data: URI"
        raise TypeError(message)
    return read or None


def read_meta(value: object) -> dict[str, Any] | None:
    """Read `_meta`; None if there is none.

    Raises:
        TypeError: it is no mapping, a key is reserved or is none, or JSON cannot carry a value.

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
    except NotJson as error:
        message = f"JSON cannot carry meta ({error})"
        raise TypeError(message) from None
    except ValueError:
        message = "JSON cannot carry meta (it holds NaN or Infinity)"
        raise TypeError(message) from None
    return plain or None


def _is_meta_key(key: str) -> bool:
    """Check the name of a `_meta` member (basic, "Request metadata")."""
    if not key or not re.fullmatch(META_KEY, key):
        return False
    labels = key.rpartition("/")[0].split(".")
    return len(labels) == 1 or labels[1] not in RESERVED


def _members(subject: str, value: object, known: Members) -> dict[str, Any]:
    """Read one object of the protocol: names may be the protocol's or Python's, `readOnlyHint` or `read_only_hint`."""
    names = {**{name: name for name in known}, **{_snake(name): name for name in known}}
    read: dict[str, Any] = {}
    for key, member in _to_dict(subject, value, known).items():
        name = names.get(key, "")
        if not name or name in read:
            problem = "twice" if name else "which is not known"
            message = f"{subject}: it says {key!r}, {problem}; known are: {', '.join(known)}"
            raise TypeError(message)
        words, is_valid = known[name]
        member = list(member) if isinstance(member, tuple) else member  # noqa: PLW2901 - JSON has one kind of list
        if not is_valid(member):
            message = f"{subject}: {name} must be {words}"
            raise TypeError(message)
        read[name] = member
    return read


def _to_dict(subject: str, value: object, known: Members) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {key: member for key, member in value.items() if member is not None}
    if isinstance(value, type) or not hasattr(value, "model_dump"):
        message = (
            f"{subject}: a dict or a model with these members is needed: {', '.join(known)}; not {type_name(value)}"
        )
        raise TypeError(message)
    members: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not members:  # the SDK's models silently drop an unknown name
        message = f"{subject}: {type_name(value)} says nothing; known are: {', '.join(known)}"
        raise TypeError(message)
    return members


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
