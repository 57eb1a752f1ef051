"""Decides whether a message comes from a client of 2025. The body decides; the header is a cross-check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from mcp_functions.legacy import revisions
from mcp_functions.protocol.constants import META_PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind: TypeAlias = Literal["request", "notification", "response", "batch"]

# No client before 2026-07-28 sends these methods. Without their envelope, the modern path explains what is missing.
MODERN_METHODS = frozenset({"server/discover", "subscriptions/listen", "tasks/update"})
MAX_BATCH = 50


def message_kind(body: object, header: str | None) -> Kind | None:
    """Return the kind of a legacy message; None if the modern path must answer or refuse the body."""
    if isinstance(body, list):
        return "batch" if _is_batch(body, header) else None
    return _single_kind(body, header) if isinstance(body, dict) else None


def _single_kind(message: Mapping[str, object], header: str | None) -> Kind | None:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    # 2026-07-28, basic/versioning: "A request carrying modern `_meta` is served … at this revision"
    if isinstance(meta, dict) and META_PROTOCOL_VERSION in meta:
        return None
    method = message.get("method")
    if header is None and isinstance(method, str) and method in MODERN_METHODS:
        return None
    if message.get("jsonrpc") != "2.0":
        return None
    if isinstance(method, str) and (params is None or isinstance(params, dict)):
        return _kind_by_id(message)
    if isinstance(message.get("id"), str | int) and ("result" in message or "error" in message):
        return "response"
    return None


def _kind_by_id(message: Mapping[str, object]) -> Kind | None:
    if "id" not in message:
        return "notification"
    return "request" if type(message["id"]) in (str, int) else None


def _is_batch(body: list[object], header: str | None) -> bool:
    if not revisions.supports(revisions.REVISION_OF_HEADER[header], "batches"):
        return False
    if not 0 < len(body) <= MAX_BATCH:
        return False
    return all(isinstance(each, dict) and message_kind(each, header) for each in body)
