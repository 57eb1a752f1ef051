"""Which era a message belongs to: by its body first, and the header is the cross-check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_functions.legacy import revisions
from mcp_functions.protocol.constants import META_PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind: TypeAlias = Literal["request", "notification", "response", "batch"]

# Methods that no client before 2026-07-28 ever sends: whoever does, without its envelope, should hear what is missing.
MODERN = frozenset({"server/discover", "subscriptions/listen", "tasks/update"})
MAX_BATCH = 50


def kind(body: Any, header: str | None) -> Kind | None:  # noqa: ANN401 - JSON is any value
    """Say what kind of a legacy message this is; None: it is for the modern ladder to answer, or to refuse.

    Args:
        body: JSON, parsed.
        header: MCP-Protocol-Version, of `revisions.HEADERS`.

    """
    match body:
        case {"params": {"_meta": dict(meta)}} if META_PROTOCOL_VERSION in meta:
            return None  # "A request carrying modern `_meta` is served … at this revision", whatever its method
        case list():
            return "batch" if _is_batch(body, header) else None
        case {"method": str(method)} if header is None and method in MODERN:
            return None
        case {"jsonrpc": "2.0", "method": str()} if _has_params(body):
            return "notification" if "id" not in body else "request" if type(body["id"]) in (str, int) else None
        case {"jsonrpc": "2.0", "id": str() | int(), "result": _} | {"jsonrpc": "2.0", "id": str() | int(), "error": _}:
            return "response"
    return None


def _is_batch(body: list[Any], header: str | None) -> bool:
    if not revisions.knows(revisions.HEADERS[header], "batches") or not 0 < len(body) <= MAX_BATCH:
        return False
    return all(isinstance(each, dict) and kind(each, header) for each in body)


def _has_params(message: Mapping[str, Any]) -> bool:
    return message.get("params") is None or isinstance(message["params"], dict)
