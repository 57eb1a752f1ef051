"""Runs each round of a conversation once (envelope.md §13). A seal cannot detect a repeated request, so a table does.

The table has one item for each conversation. A request claims its round there before the function runs, and writes the
result there before the client gets it:

    during round 2    {"round": 2, "print": fingerprint of the request, "lease": unix seconds}
    after round 2     {"round": 2, "print": fingerprint of the request, "answer": the result, or null if it is not kept}

The fingerprint is a digest of the request's state and answers. Its name in the item is short, because the size of an
item is limited, and may not change, because stored items have it. The lease is the time until which no other request
may run the round: by then Lambda has ended the invocation. For a request that would run round 2, the item decides:

    no item, or round 1              it runs round 2
    round 3                          it is refused: its state is an old one
    round 2, other fingerprint       it is refused: the round belongs to other answers
    round 2, with an answer          it gets this answer; with the mode "reject", it is refused
    round 2, before the lease ends   it must try again later: the round is running
    round 2, after the lease ended   it runs round 2 again: the invocation died; steps keep their idempotency keys
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.seal.claims import Claims
    from mcp_functions.store import Item, SealedTable

KIND = "conversation"  # the kind of the items in the table
NO_TABLE = (
    "MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the table, the key and their policies,"
    " which mcp-functions block --write NAME writes into template.yaml"
)
SPARE_SECONDS = 120  # an item outlives the last state of its conversation by this time: clocks differ by up to 60 s
ROUNDING_SECONDS = 2  # the deadline of the conversation and the expiry of its item are rounded up, each by up to 1 s
LEASE_MARGIN = 2  # seconds after Lambda ends an invocation until another one may run its round
FINGERPRINT_LABEL = b"ks1/used\0"  # begins the digest, so that it equals no digest of another purpose
ATTEMPTS = 3  # how often a claim is tried: each failure means that another request has changed the item

# Why a request was refused. Only the log has these words, and docs/security.md explains them: an operator counts and
# searches them, so they do not change. The client gets the same error for every state that it may not use.
OLD_STATE = "used_rewound"  # the conversation is past this round
OTHER_ANSWERS = "used_forked"  # another request claimed this round, with other answers
REPEATED = "used_again"  # the round has run, and the mode is "reject"
UNREADABLE = "used_unreadable"  # the item does not open, so it is unknown which rounds have run

# Why a request must be repeated later, for the log.
RUNNING = "used_busy"  # another invocation runs this round
CONTENDED = "used_contended"  # other requests changed the item at each attempt to claim it
OVERTAKEN = "used_overtaken"  # the lease ended before the round, and another invocation has claimed it


class RoundClaim:
    """The claim of one request to run one round of a conversation (§13.1)."""

    def __init__(
        self, request: Request, handler: Handler[..., Any], state: Claims, make_table: Callable[[int], SealedTable]
    ) -> None:
        """Prepare the claim; the table is not read yet.

        Args:
            request: the request, which continues the conversation.
            handler: the handler of the conversation.
            state: the state of the request, which was verified before.
            make_table: makes the table, from the longest lifetime of an item in seconds.
        """
        longest_seconds = max_flow_seconds(handler.answer_within) + SKEW_MS // 1000 + SPARE_SECONDS
        self._table = make_table(longest_seconds + ROUNDING_SECONDS)
        # In unix seconds. After this time every state of the conversation has expired, so nobody needs the item.
        self._expires = math.ceil(state.flow_deadline / 1000) + SPARE_SECONDS
        self._rejects_repeated = handler.single_use == "reject"  # otherwise they get the recorded result
        self._key = Key(KIND, state.flow, state.binding.principal)
        self._round = state.round + 1  # the round to run; the state is from the round before
        token: str = request.params["requestState"]
        answers = dict(request.params.get("inputResponses", {}))
        self._fingerprint = base64url(canonical_digest(FINGERPRINT_LABEL + token.encode() + b"\0", answers))
        self._lease = math.ceil(request.lambda_deadline) + LEASE_MARGIN

    def run(self, run_round: Callable[[], dict[str, Any]], now: float) -> dict[str, Any] | None:
        """Run a round, or return its recorded result; None if that was not kept because it was too large.

        Args:
            run_round: runs the round.
            now: the current time in unix seconds.

        Raises:
            InvalidRequestState: the conversation is past this round, or another request has claimed it.
            TemporarilyUnavailable: another invocation runs this round, or the table is not available. The client gets
                no result, and may repeat the request.
        """
        item = self._claim(now)
        if "answer" in item.payload:
            recorded: dict[str, Any] | None = item.payload["answer"]
            return recorded
        try:
            result = run_round()
        except BaseException:
            # End the lease, so that the same request may run at once. If the table fails, the lease ends by itself.
            with suppress(Conflict, McpError):
                self._table.replace(item, {**item.payload, "lease": 0})
            raise
        self._record(item, result)
        return result

    def check_unused(self) -> None:
        """Refuse a state whose round a request has claimed; nothing is claimed.

        Raises:
            InvalidRequestState: another request continued the conversation from this state, or went past it.
            TemporarilyUnavailable: the table is not available.
        """
        item = self._read()
        if item and item.payload["round"] >= self._round:
            raise InvalidRequestState(OLD_STATE)

    def _claim(self, now: float) -> Item:
        """Return the item of the conversation: claimed for this round, or with the answer of this round."""
        payload = {"round": self._round, "print": self._fingerprint, "lease": self._lease}
        for _ in range(ATTEMPTS):
            item = self._read()
            if item:
                self._check_may_run(item.payload, now)
                if item.payload["round"] == self._round and "answer" in item.payload:
                    return item
            try:
                if item is None:
                    return self._table.create(self._key, payload, expires=self._expires)
                return self._table.replace(item, payload, expires=self._expires)
            except Conflict:  # another request has changed the item since it was read
                continue
        raise Busy(CONTENDED, retry_after=1)

    def _read(self) -> Item | None:
        try:
            return self._table.get(self._key)
        except UnreadableItem:  # hidden, because a client gets the same error for every bad state
            raise InvalidRequestState(UNREADABLE) from None

    def _check_may_run(self, recorded: Mapping[str, Any], now: float) -> None:
        """Check that the request may run its round, or get the recorded answer: the table at the top, line by line."""
        if recorded["round"] < self._round:
            return
        if recorded["round"] > self._round:
            raise InvalidRequestState(OLD_STATE)
        if recorded["print"] != self._fingerprint:
            raise InvalidRequestState(OTHER_ANSWERS)
        if "answer" in recorded:
            if self._rejects_repeated:
                raise InvalidRequestState(REPEATED)
        elif now < recorded["lease"]:
            raise Busy(RUNNING, retry_after=1)

    def _record(self, item: Item, result: dict[str, Any]) -> None:
        """Write the result before the client gets it."""
        # With "reject", `_check_may_run` refuses a repeated request, so the answer is not kept.
        answer = None if self._rejects_repeated else result
        try:
            self._write_answer(item, answer)
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # for the author: a repeated request will not get this result
            self._write_answer(item, None)

    def _write_answer(self, item: Item, answer: dict[str, Any] | None) -> None:
        try:
            self._table.replace(item, {"round": self._round, "print": self._fingerprint, "answer": answer})
        except Conflict:  # the result of the invocation that took over counts, and not this one
            raise TemporarilyUnavailable(OVERTAKEN, retry_after=1) from None
