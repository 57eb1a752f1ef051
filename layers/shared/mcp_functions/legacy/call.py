"""One request of a legacy client, whose handler runs in rounds with the modern revision, 2026-07-28."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import RequestId

# These params have another meaning in 2026-07-28, or none.
DROPPED_PARAMS = frozenset({"_meta", "inputResponses", "requestState", "task"})


class Call(NamedTuple):
    """One request of a client, between its rounds. Sealed ids and items hold it as an array, in this order."""

    id: RequestId  # the id of the client's request
    method: str  # the method of the request
    params: Mapping[str, Any]  # the params of the request, with their meaning in 2026-07-28
    state: str | None = None  # `requestState` for the next round


def read_call(message: Mapping[str, Any]) -> Call:
    """Return the call in a client's request. Its params are those that keep their meaning, with a copy of `_meta`."""
    params = message.get("params") or {}
    kept = {name: value for name, value in params.items() if name not in DROPPED_PARAMS}
    meta = params.get("_meta")
    kept["_meta"] = dict(meta) if isinstance(meta, dict) else {}
    return Call(message["id"], message["method"], kept)
