"""The revisions of 2025: which features each has, and which messages their clients send.

Revisions are dates, so they compare as text: "2025-06-18" < "2025-11-25".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from mcp_functions.protocol.constants import META_PROTOCOL_VERSION

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONValue

VERSION_HEADER = "mcp-protocol-version"
OLDEST = "2025-03-26"
JUNE = "2025-06-18"
LATEST = "2025-11-25"
SERVED = (OLDEST, JUNE, LATEST)

# 2025-11-25, basic/transports, "Protocol Version Header": "if the server does not receive an MCP-Protocol-Version
# header … the server SHOULD assume protocol version 2025-03-26". 2024-11-05 lacks this transport, so a client that
# names it is served as the first revision that has it.
REVISION_OF_HEADER: dict[str | None, str] = {None: OLDEST, "2024-11-05": OLDEST, **{each: each for each in SERVED}}

INTRODUCED = {  # the revision that introduced each feature (the changelogs, "Key changes")
    "title": JUNE,
    "_meta": JUNE,  # in tools, prompts, resources and content
    "outputSchema": JUNE,
    "structuredContent": JUNE,
    "resource_link": JUNE,
    "lastModified": JUNE,
    "elicitation": JUNE,
    "elicitation.form": JUNE,
    "icons": LATEST,
    "elicitation.url": LATEST,
    "elicitation.multi": LATEST,  # a field for several choices of a list
    "elicitation.oneOf": LATEST,  # choices with titles; earlier revisions have enumNames
    "sampling.tools": LATEST,
    "sampling.context": LATEST,
    "sampling.blocks": LATEST,  # a message with several blocks of content
}

MessageKind: TypeAlias = Literal["request", "notification", "answer"]  # an answer: a response

# Only clients of 2026-07-28 send these methods. If such a request lacks its header and its `_meta`, the code for
# 2026-07-28 must answer it, because it explains what is missing.
NEW_METHODS = ("server/discover", "subscriptions/listen", "tasks/update")


def supports(revision: str, feature: str) -> bool:
    """Return whether a revision has a feature; a feature that `INTRODUCED` does not list is in every revision."""
    return INTRODUCED.get(feature, OLDEST) <= revision


def negotiate(requested: object) -> str:
    """Return the revision of a new session.

    2025-11-25, basic/lifecycle, "Version Negotiation": "If the server supports the requested protocol version, it MUST
    respond with the same version. Otherwise, … This SHOULD be the latest version supported by the server".
    """
    return requested if isinstance(requested, str) and requested in SERVED else LATEST


def message_kind(body: JSONValue, header: str | None) -> MessageKind | None:
    """Return the kind of a legacy message; None if the code for 2026-07-28 must answer or refuse the body.

    `header` is the header MCP-Protocol-Version, a key of `REVISION_OF_HEADER`.
    """
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0" or _is_of_current_revision(body, header):
        return None
    id_ = body.get("id")
    if isinstance(body.get("method"), str) and isinstance(body.get("params"), dict | None):
        if "id" not in body:
            return "notification"
        return "request" if type(id_) in (str, int) else None  # and not a bool
    is_response = "result" in body or "error" in body
    return "answer" if is_response and isinstance(id_, str | int) else None


def _is_of_current_revision(message: JSONValue, header: str | None) -> bool:
    """Return whether the code for 2026-07-28 must answer a message."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    # 2026-07-28, basic/versioning: "A request carrying modern `_meta` is served … at this revision"
    if isinstance(meta, dict) and META_PROTOCOL_VERSION in meta:
        return True
    return header is None and message.get("method") in NEW_METHODS
