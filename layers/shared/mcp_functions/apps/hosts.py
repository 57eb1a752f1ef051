"""Hosts that stop at a round without a question: they show it as an error, as the issues of their projects say.

A round is one request of a call. It ends without a question if its time was up, and the client should repeat its
request. A row of the table counts up to its version. A newer version is expected to repeat, and so is a client that
declares elicitation.
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
    """A row of the table."""

    name: str  # the client's name, as in its `clientInfo`
    until: str  # the last version that is known to stop
    seen: str  # when this was seen, as an ISO 8601 date
    source: str  # the URL of the issue


STOPPING_HOSTS = (
    Host("Anthropic/ClaudeAI", "1.0.0", "2026-09-13", "https://github.com/anthropics/claude-ai-mcp/issues/1027"),
)


def carries_empty_rounds(meta: Mapping[str, Any], declared: Mapping[str, Any]) -> bool:
    """Tell whether a client repeats a request whose round ended without a question.

    Args:
        meta: the `_meta` of the request, with the client's name and version.
        declared: the client's capabilities.
    """
    info = meta.get(META_CLIENT_INFO)
    if shows_forms(declared) or not isinstance(info, dict):
        return True
    version = _read_version(info.get("version"))
    stopping = [host for host in STOPPING_HOSTS if host.name == info.get("name")]
    return not any(version <= _read_version(host.until) for host in stopping)


def _read_version(text: object) -> tuple[int, ...]:
    """Read the numbers of a version; one without numbers counts as the oldest."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", text)) if isinstance(text, str) else ()
