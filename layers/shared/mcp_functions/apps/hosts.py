"""Hosts that cannot carry a round without a question, as their issues say: they show it as an error and stop.

A row counts up to its version. A newer version, or one that declares elicitation, is believed to carry every round.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import META_CLIENT_INFO
from mcp_functions.protocol.messages import shows_forms
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Host(NamedTuple):
    """A row of the table: the client's name, the last version that is known for it, and how that is known."""

    name: str
    until: str
    seen: str  # ISO 8601
    source: str


STOPPING_HOSTS = (
    Host("Anthropic/ClaudeAI", "1.0.0", "2026-09-13", "https://github.com/anthropics/claude-ai-mcp/issues/1027"),
)


def carries_empty_rounds(meta: Mapping[str, Any], declared: Mapping[str, Any]) -> bool:
    """Tell whether a client repeats a request whose round ended without a question.

    Args:
        meta: `_meta` of the request, with the client's name and version.
        declared: the client's capabilities.

    """
    info = meta.get(META_CLIENT_INFO)
    if shows_forms(declared) or not isinstance(info, dict):
        return True
    version = _version(info.get("version"))
    return not any(host.name == info.get("name") and version <= _version(host.until) for host in STOPPING_HOSTS)


def _version(text: object) -> tuple[int, ...]:
    """Read the numbers of a version; one without numbers is the oldest."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", text)) if isinstance(text, str) else ()
