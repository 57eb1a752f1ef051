"""Clients that do not continue a call whose time was up: they show it as an error, as issues of their projects say.

A call may need several requests. If the time of one is up, its result has a state and no question, and the client
should repeat the request. Newer versions than those in the table are expected to do so, and so are all clients that
declare elicitation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_functions.protocol.constants import META_CLIENT_INFO, META_CLIENT_REVISION
from mcp_functions.protocol.messages import shows_forms

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import ClientCapabilities, Meta

# By the client's name: the last version that is known to stop, when that was seen, and the issue.
STOPPING_HOSTS = {
    # 2026-09-13, https://github.com/anthropics/claude-ai-mcp/issues/1027
    "Anthropic/ClaudeAI": "1.0.0",
}


def continues_calls(meta: Meta, declared: ClientCapabilities) -> bool:
    """Tell whether a client repeats a request whose result has no question, by its name and version in `_meta`."""
    if META_CLIENT_REVISION in meta:  # `legacy` repeats the requests of its clients of 2025
        return True
    info = meta.get(META_CLIENT_INFO)
    if shows_forms(declared) or not isinstance(info, dict):
        return True
    last_version = STOPPING_HOSTS.get(str(info.get("name")))
    return last_version is None or _read_version(info.get("version")) > _read_version(last_version)


def _read_version(text: object) -> tuple[int, ...]:
    """Read the numbers of a version: "1.10.2" is (1, 10, 2). A version without numbers counts as the oldest."""
    if not isinstance(text, str):
        return ()
    return tuple(int(number) for number in re.findall(r"\d{1,9}", text))
