"""Each round of a conversation once: a seal cannot detect a repeated request, but a table can (envelope.md §13).

One item per conversation records its last round, the request of that round and the result. A request claims its round
before the handler runs, and the client gets the result after the item has it. A repeated request gets the same result.
A request with an older state, or with other answers, is refused.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.protocol.errors import Busy, InvalidRequestState, McpError, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.canonical_json import canonical_digest
from mcp_functions.seal.request_state import SKEW_MS, max_flow_seconds
from mcp_functions.store import Conflict, ItemTooLarge, Key, UnreadableItem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Mode
    from mcp_functions.protocol.messages import Request
    from mcp_functions.seal.claims import Claims
    from mcp_functions.store import Item, SealedTable

KIND = "conversation"
NO_TABLE = (
    "MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the table, the key and their policies,"
    " which mcp-functions block --write NAME writes into template.yaml"
)
SPARE_SECONDS = 120  # an item outlives the last state of its conversation by this: clocks differ by up to 60 s
LEASE_MARGIN = 2  # seconds after a worker's end until another worker may take its round over
ATTEMPTS = 3  # at a claim: after each failed one, another worker has changed the item


class RoundClaim(NamedTuple):
    """The claim of one request to run one round."""

    key: Key  # of the conversation's item
    round: int  # the round to run; the state of the request is from the round before
    fingerprint: str  # digest of the request's state and responses
    expires: int  # unix seconds after which every state of this conversation has expired
    worker_ends: float  # unix seconds at which this worker ends


class RecordedResult(NamedTuple):
    """The result of a round that has run; None if the item does not hold it."""

    result: dict[str, Any] | None


def claim_for(request: Request, state: Claims, principal: str | None) -> RoundClaim:
    """Return the claim of a request that continues a conversation (§13.1); `principal` is the caller's digest."""
    token: str = request.params["requestState"]
    responses = dict(request.params.get("inputResponses", {}))
    return RoundClaim(
        key=Key(KIND, state.flow, principal),
        round=state.round + 1,
        fingerprint=base64url(canonical_digest(b"ks1/used\0" + token.encode() + b"\0", responses)),
        expires=math.ceil(state.flow_deadline / 1000) + SPARE_SECONDS,
        worker_ends=request.ends,
    )


def item_lifetime(answer_seconds: int) -> int:
    """Return how many seconds an item may have to live, if one answer may take so many."""
    return max_flow_seconds(answer_seconds) + SKEW_MS // 1000 + SPARE_SECONDS + 2  # rounded up twice


class SingleUse:
    """Runs each round of a conversation once."""

    def __init__(self, table: SealedTable, mode: Mode, now: Callable[[], float]) -> None:
        """Take the table. "replay" returns the recorded result to a repeated request, "reject" refuses it."""
        self._table, self._mode, self._now = table, mode, now

    def run(self, claim: RoundClaim, play: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """Run a round, or return its recorded result; None if that was too large for the item.

        Raises:
            InvalidRequestState: the conversation is past this round, or another request has claimed it.
            TemporarilyUnavailable: another worker runs this round, or the table is not available. The client gets no
                result, and may repeat the request.
        """
        item = self._claim(claim)
        if isinstance(item, RecordedResult):
            return item.result
        try:
            result = play()
        except BaseException:
            self._release(item)
            raise
        self._record(item, result if self._mode == "replay" else None)
        return result

    def check_unused(self, claim: RoundClaim) -> None:
        """Refuse a state whose round a request has claimed; nothing is claimed.

        Raises:
            InvalidRequestState: another request continued the conversation from this state, or went past it.
            TemporarilyUnavailable: the table is not available.
        """
        item = self._table.get(claim.key)
        if item and item.payload["round"] >= claim.round:
            reason = "used_rewound"
            raise InvalidRequestState(reason)

    def _claim(self, claim: RoundClaim) -> Item | RecordedResult:
        lease = math.ceil(claim.worker_ends) + LEASE_MARGIN
        payload = {"round": claim.round, "print": claim.fingerprint, "lease": lease}
        for _ in range(ATTEMPTS):
            try:
                item = self._table.get(claim.key)
            except UnreadableItem:
                raise InvalidRequestState(reason="used_unreadable") from None
            if item:
                recorded = self._check(item.payload, claim)
                if recorded:
                    return recorded
            with suppress(Conflict):  # another worker was faster: read the item again
                if item is None:
                    return self._table.create(claim.key, payload, expires=claim.expires)
                return self._table.replace(item, payload, expires=claim.expires)
        raise Busy(reason="used_contended", retry_after=1)

    def _check(self, recorded: Mapping[str, Any], claim: RoundClaim) -> RecordedResult | None:
        """Compare a claim with the item (§13.2); return None if the round may run."""
        if claim.round > recorded["round"]:
            return None
        if claim.round < recorded["round"]:
            raise InvalidRequestState(reason="used_rewound")
        if claim.fingerprint != recorded["print"]:
            raise InvalidRequestState(reason="used_forked")
        if "answer" not in recorded:
            if self._now() < recorded["lease"]:
                raise Busy(reason="used_busy", retry_after=1)
            return None  # the worker has ended without a result; its steps had the same idempotency keys
        if self._mode == "reject":
            raise InvalidRequestState(reason="used_again")
        return RecordedResult(recorded["answer"])

    def _record(self, item: Item, result: dict[str, Any] | None) -> None:
        """Write the result before the client gets it."""
        payload = {"round": item.payload["round"], "print": item.payload["print"], "answer": result}
        try:
            self._table.replace(item, payload)
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # for the author: a repeated request will not get this result
            self._record(item, None)
        except Conflict:
            # The lease ended and another worker runs the round: its result counts, and this one is dropped.
            raise TemporarilyUnavailable(reason="used_overtaken", retry_after=1) from None

    def _release(self, item: Item) -> None:
        """End the lease, so that the same request may run at once. If the table fails, the lease ends by itself."""
        with suppress(Conflict, McpError):
            self._table.replace(item, {**item.payload, "lease": 0})
