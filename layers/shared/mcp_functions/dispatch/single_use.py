"""Each round of a conversation once: a seal cannot detect a repeated request, but a table can (envelope.md §13).

    the item of a conversation    {"round": 2, "print": digest of the request, "lease": unix seconds}
    after the round               {"round": 2, "print": digest of the request, "answer": the result}

A request claims its round before the handler runs: it writes the first form. The lease is the time until which this
request alone may run the round. The client gets the result after the item has it. A repeated request gets the same
result. A request with an older state, or with other answers, is refused.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.protocol.errors import Busy, InvalidRequestState, McpError, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.canonical_json import canonical_digest
from mcp_functions.seal.request_state import SKEW_MS, max_flow_seconds
from mcp_functions.store import Conflict, ItemTooLarge, Key, UnreadableItem
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler, Mode
    from mcp_functions.protocol.messages import Request
    from mcp_functions.seal.claims import Claims
    from mcp_functions.store import Item, SealedTable

KIND = "conversation"  # the kind of the items in the table
NO_TABLE = (
    "MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the table, the key and their policies,"
    " which mcp-functions block --write NAME writes into template.yaml"
)
SPARE_SECONDS = 120  # an item outlives the last state of its conversation by this time: clocks differ by up to 60 s
LEASE_MARGIN = 2  # seconds after a worker's end until another worker may take its round over
ATTEMPTS = 3  # how often a claim is tried: after each failure, another worker has changed the item


class RoundClaim(NamedTuple):
    """The claim of one request to run one round."""

    table: SealedTable
    mode: Mode  # "replay" returns the recorded result to a repeated request, "reject" refuses it
    key: Key  # the key of the conversation's item
    round: int  # the round to run; the state of the request is from the round before
    fingerprint: str  # the digest of the request's state and responses
    expires: int  # when every state of this conversation has expired, in unix seconds
    worker_ends: float  # when Lambda ends this invocation, in unix seconds

    def run(self, play: Callable[[], dict[str, Any]], now: float) -> dict[str, Any] | None:
        """Run a round, or return its recorded result; None if that was too large for the item.

        Args:
            play: runs the handler.
            now: the current time in unix seconds.

        Raises:
            InvalidRequestState: the conversation is past this round, or another request has claimed it.
            TemporarilyUnavailable: another worker runs this round, or the table is not available. The client gets no
                result, and may repeat the request.
        """
        item = self._claim(now)
        if "answer" in item.payload:
            recorded: dict[str, Any] | None = item.payload["answer"]
            return recorded
        try:
            result = play()
        except BaseException:
            self._release(item)
            raise
        recorded_result = result if self.mode == "replay" else None
        self._record(item, recorded_result)
        return result

    def check_unused(self) -> None:
        """Refuse a state whose round a request has claimed; nothing is claimed.

        Raises:
            InvalidRequestState: another request continued the conversation from this state, or went past it.
            TemporarilyUnavailable: the table is not available.
        """
        item = self.table.get(self.key)
        if item and item.payload["round"] >= self.round:
            raise InvalidRequestState(reason="used_rewound")

    def _claim(self, now: float) -> Item:
        """Return the item of the conversation: claimed for this round, or with the recorded result of this round."""
        lease = math.ceil(self.worker_ends) + LEASE_MARGIN
        payload = {"round": self.round, "print": self.fingerprint, "lease": lease}
        for _ in range(ATTEMPTS):
            try:
                item = self.table.get(self.key)
            except UnreadableItem:  # hidden, because a client gets the same error for every bad state
                raise InvalidRequestState(reason="used_unreadable") from None
            if item:
                self._check_may_continue(item.payload, now)
                if item.payload["round"] == self.round and "answer" in item.payload:
                    return item
            with suppress(Conflict):  # another worker was faster: read the item again
                if item is None:
                    return self.table.create(self.key, payload, expires=self.expires)
                return self.table.replace(item, payload, expires=self.expires)
        raise Busy(reason="used_contended", retry_after=1)

    def _check_may_continue(self, recorded: Mapping[str, Any], now: float) -> None:
        """Check that the request may run this round, or get its recorded result (§13.2).

        Without a result and after the lease, the earlier worker has ended. The round may run again, because its steps
        have the same idempotency keys.
        """
        if self.round > recorded["round"]:
            return
        if self.round < recorded["round"]:
            raise InvalidRequestState(reason="used_rewound")
        if self.fingerprint != recorded["print"]:
            raise InvalidRequestState(reason="used_forked")
        if "answer" in recorded and self.mode == "reject":
            raise InvalidRequestState(reason="used_again")
        if "answer" not in recorded and now < recorded["lease"]:
            raise Busy(reason="used_busy", retry_after=1)

    def _record(self, item: Item, result: dict[str, Any] | None) -> None:
        """Write the result before the client gets it."""
        payload = {"round": item.payload["round"], "print": item.payload["print"], "answer": result}
        try:
            self.table.replace(item, payload)
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # for the author: a repeated request will not get this result
            self._record(item, None)
        except Conflict:  # the lease ended and another worker runs the round: its result counts, not this one
            raise TemporarilyUnavailable(reason="used_overtaken", retry_after=1) from None

    def _release(self, item: Item) -> None:
        """End the lease, so that the same request may run at once. If the table fails, the lease ends by itself."""
        with suppress(Conflict, McpError):
            self.table.replace(item, {**item.payload, "lease": 0})


def claim_for(
    request: Request, handler: Handler[..., Any], state: Claims, principal: str | None, table: SealedTable
) -> RoundClaim:
    """Return the claim of a request that continues a conversation (§13.1); `principal` is the caller's digest."""
    token: str = request.params["requestState"]
    responses = dict(request.params.get("inputResponses", {}))
    return RoundClaim(
        table=table,
        mode=handler.single_use or "replay",
        key=Key(KIND, state.flow, principal),
        round=state.round + 1,
        fingerprint=base64url(canonical_digest(b"ks1/used\0" + token.encode() + b"\0", responses)),
        expires=math.ceil(state.flow_deadline / 1000) + SPARE_SECONDS,
        worker_ends=request.ends,
    )


def item_lifetime(answer_seconds: int) -> int:
    """Return how many seconds an item may have to live, if one answer may take so many."""
    return max_flow_seconds(answer_seconds) + SKEW_MS // 1000 + SPARE_SECONDS + 2  # rounded up twice
