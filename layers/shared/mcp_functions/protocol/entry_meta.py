"""Checks the `_meta` and the tags that an author gives to a decorator.

    @tool(meta={"example.com/team": "billing"}, tags=["money"])
    _meta    {"example.com/team": "billing", "fastmcp": {"tags": ["money"]}}

FastMCP writes tags under its own key, and clients look for them there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from mcp_functions.protocol.constants import OWN_META
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import NotJson, to_json, type_name

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject

# A key is a name, or a prefix of labels and a name that may be empty: "team", "example.com/team" (basic, "_meta").
LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
KEY = rf"{NAME}|(?P<prefix>{LABEL}(?:\.{LABEL})*)/(?:{NAME})?"
RESERVED_LABELS = {"modelcontextprotocol", "mcp"}  # as a prefix's second label (basic, "_meta")
TAGS = "fastmcp"


def read_meta(value: object, tags: Collection[str]) -> JSONObject | None:
    """Read `_meta`, and add the tags; None if there is neither. Raise a TypeError for one that may not be published."""
    meta = {} if value is None else _read_members(value)
    words = _read_tags(tags) if tags else []
    if not words:
        return meta or None
    if TAGS in meta:
        raise TypeError(f"meta has {TAGS!r} already: give its tags there, or in tags")
    return {**meta, TAGS: {"tags": words}}


def _read_members(value: object) -> JSONObject:
    if not isinstance(value, Mapping):
        raise TypeError(f"meta is a dict, not {type_name(value)}")
    for key in value:
        if not _is_key(key):
            raise TypeError(f"_meta key {key!r}: letters, digits, . _ - and a prefix/ that is not reserved")
    try:
        members: JSONObject = to_json(dict(value))
        dumps(members).encode()  # a check: it raises ValueError for what `to_json` keeps
    except NotJson as error:
        raise TypeError(f"JSON cannot carry meta ({error})") from None
    except UnicodeEncodeError:
        raise TypeError("JSON cannot carry meta (it holds half of a surrogate pair)") from None
    except ValueError:
        raise TypeError("JSON cannot carry meta (it holds NaN, Infinity or too many digits)") from None
    return members


def _is_key(key: object) -> bool:
    match = re.fullmatch(KEY, key) if isinstance(key, str) else None
    if match is None or match[0].startswith(OWN_META):
        return False
    second_label = (match["prefix"] or "").split(".")[1:2]
    return RESERVED_LABELS.isdisjoint(second_label)


def _read_tags(tags: Collection[str]) -> list[str]:
    is_collection = isinstance(tags, Collection) and not isinstance(tags, str)
    if not is_collection or not all(isinstance(tag, str) and tag for tag in tags):
        raise TypeError('tags is a collection of words: tags=["billing"]')
    return sorted(set(tags))
