"""What each revision of 2025 knows: one table, asked by name. Revisions are dates, so they compare as text."""

from __future__ import annotations

OLDEST, JUNE, LATEST = "2025-03-26", "2025-06-18", "2025-11-25"
SERVED = (OLDEST, JUNE, LATEST)

# "if the server does not receive an MCP-Protocol-Version header … the server SHOULD assume … 2025-03-26".
# No client of 2024-11-05 knows this transport; one that names it has read no further than the first that does.
HEADERS: dict[str | None, str] = {None: OLDEST, "2024-11-05": OLDEST, **{served: served for served in SERVED}}

# What first stood in which revision (the changelogs, "Key changes"); what is not here, all of them know.
SINCE = {
    "title": JUNE,
    "_meta": JUNE,  # of tools, prompts, resources and content
    "outputSchema": JUNE,
    "structuredContent": JUNE,
    "resource_link": JUNE,
    "lastModified": JUNE,
    "elicitation": JUNE,
    "icons": LATEST,
    "description": LATEST,  # of an implementation
    "websiteUrl": LATEST,
    "elicitation.url": LATEST,
    "elicitation.multi": LATEST,  # several choices of a list
    "elicitation.oneOf": LATEST,  # choices with titles; before, enumNames
    "elicitation.default": LATEST,  # of other fields than booleans
    "sampling.tools": LATEST,
    "sampling.context": LATEST,
    "sampling.blocks": LATEST,  # a message of several blocks
}
UNTIL = {"batches": OLDEST}  # "Remove support for JSON-RPC batching" (2025-06-18)


def knows(revision: str, what: str) -> bool:
    """Say whether a revision knows a word of `SINCE` or `UNTIL`."""
    return SINCE.get(what, OLDEST) <= revision <= UNTIL.get(what, LATEST)


def negotiated(requested: object) -> str:
    """Choose the revision of a session.

    "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, … This
    SHOULD be the latest version supported by the server" (basic/lifecycle); of those that know sessions.
    """
    return requested if isinstance(requested, str) and requested in SERVED else LATEST
