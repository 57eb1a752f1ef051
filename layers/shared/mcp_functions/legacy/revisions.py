"""The features of each revision of 2025, in one table. Revisions are dates, so they compare as text."""

from __future__ import annotations

OLDEST, JUNE, LATEST = "2025-03-26", "2025-06-18", "2025-11-25"
SERVED = (OLDEST, JUNE, LATEST)

# 2025-11-25, basic/transports, "Protocol Version Header": "if the server does not receive an MCP-Protocol-Version
# header … the server SHOULD assume protocol version 2025-03-26". 2024-11-05 lacks this transport, so a client that
# names it is served as the first revision that has it.
REVISION_OF_HEADER: dict[str | None, str] = {
    None: OLDEST,
    "2024-11-05": OLDEST,
    **{served: served for served in SERVED},
}

# The revision that introduced each feature (the changelogs, "Key changes"). Every revision has the features not listed.
INTRODUCED = {
    "title": JUNE,
    "_meta": JUNE,  # of tools, prompts, resources and content
    "outputSchema": JUNE,
    "structuredContent": JUNE,
    "resource_link": JUNE,
    "lastModified": JUNE,
    "elicitation": JUNE,
    "icons": LATEST,
    "elicitation.url": LATEST,
    "elicitation.multi": LATEST,  # several choices of a list
    "elicitation.oneOf": LATEST,  # choices with titles; earlier revisions have enumNames
    "sampling.tools": LATEST,
    "sampling.context": LATEST,
    "sampling.blocks": LATEST,  # a message of several blocks
}
LAST = {"batches": OLDEST}  # 2025-06-18, changelog: "Remove support for JSON-RPC batching"


def supports(revision: str, feature: str) -> bool:
    """Return whether a revision has a feature of `INTRODUCED` or `LAST`."""
    return INTRODUCED.get(feature, OLDEST) <= revision <= LAST.get(feature, LATEST)


def negotiate(requested: object) -> str:
    """Return the revision of a new session.

    2025-11-25, basic/lifecycle, "Version Negotiation": "If the server supports the requested protocol version, it MUST
    respond with the same version. Otherwise, … This SHOULD be the latest version supported by the server".
    """
    return requested if isinstance(requested, str) and requested in SERVED else LATEST
