"""Runs each round of a conversation only once, for handlers with `single_use` (envelope.md §13).

A round is one request of a conversation. A client may send the same request again, for example because it lost the
response. So a table has an item for each conversation. A request claims its round in the item before the function runs,
and writes the result into the item before the client gets it:

    while round 2 runs    {"round": 2, "print": …, "lease": 1785000030}
    after round 2         {"round": 2, "print": …, "answer": the result, or null if it is not kept}

    print    the fingerprint: a digest of the state and the answers in the request; stored items need the short name
    lease    in unix seconds: until then Lambda has ended the invocation, and no other request may run the round

A request that would run round 2 reads the item:

    no item, or round 1               it runs round 2
    round 3                           it is refused: its state is an old one
    round 2, another fingerprint      it is refused: the round belongs to other answers
    round 2, with a result            it gets this result; with `single_use="reject"` it is refused
    round 2, before the lease ends    the client must try again later: another invocation runs the round
    round 2, after the lease ended    it runs round 2 again: the other invocation died
"""

from __future__ import annotations

import math
from contextlib import suppress
from enum import StrEnum
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
LEASE_MARGIN_SECONDS = 2  # from the end of an invocation until another one may run its round
FINGERPRINT_LABEL = b"ks1/used\0"  # begins the digest, so that it equals no digest of another purpose
MAX_ATTEMPTS = 3  # how often a claim is written: each failure means that another request has changed the item


class SingleUseReason(StrEnum):
    """Why a request did not run its round, for the log. An operator counts these words, so they do not change."""

    # The request is refused. The client gets the same error for every state that it may not use.
    OLD_STATE = "used_rewound"  # the conversation is past this round
    OTHER_ANSWERS = "used_forked"  # another request claimed this round, with other answers
    REPEATED = "used_again"  # the round has run, and repeated requests are refused: `single_use="reject"`
    UNREADABLE = "used_unreadable"  # the item does not open, so it is unknown which rounds have run

    # The client must repeat the request later.
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
            state: the verified state in the request.
            make_table: makes the table, from the longest lifetime of an item in seconds.
        """
        conversation_seconds = max_flow_seconds(handler.answer_within) + SKEW_MS // 1000
        self._table = make_table(conversation_seconds + SPARE_SECONDS + ROUNDING_SECONDS)
        # In unix seconds. After this time every state of the conversation has expired, and the item is not needed.
        self._expires = math.ceil(state.flow_deadline / 1000) + SPARE_SECONDS
        self._rejects_repeated = handler.single_use == "reject"  # otherwise a repeated request gets the recorded result
        self._key = Key(KIND, state.flow, state.binding.principal)
        self._round = state.round + 1  # the round to run; the state is from the round before
        self._fingerprint = _digest_request(request)
        self._lease = math.ceil(request.lambda_deadline) + LEASE_MARGIN_SECONDS  # in unix seconds

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
        if self._has_result(item):
            recorded: dict[str, Any] | None = item.payload["answer"]
            return recorded
        try:
            result = run_round()
        except BaseException:  # also when the process must stop: the round has no result, so it may run again
            with suppress(Conflict, McpError):  # if the table fails, the lease ends by itself
                self._table.replace(item, {**item.payload, "lease": 0})
            raise
        self._record(item, result)
        return result

    def check_unused(self) -> None:
        """Check that no request has claimed this round or a later one. This request does not claim it either.

        Raises:
            InvalidRequestState: another request continued the conversation from this state, or went past it.
            TemporarilyUnavailable: the table is not available.
        """
        item = self._read()
        if item and item.payload["round"] >= self._round:
            raise InvalidRequestState(SingleUseReason.OLD_STATE)

    def _claim(self, now: float) -> Item:
        """Return the item of the conversation: with the result of this round, or else claimed for this round."""
        claimed = {"round": self._round, "print": self._fingerprint, "lease": self._lease}
        for _attempt in range(MAX_ATTEMPTS):
            item = self._read()
            if item:
                self._check_may_run(item.payload, now)
                if self._has_result(item):
                    return item
            try:
                if item is None:
                    return self._table.create(self._key, claimed, expires=self._expires)
                return self._table.replace(item, claimed, expires=self._expires)
            except Conflict:  # another request has changed the item since it was read
                continue
        raise Busy(SingleUseReason.CONTENDED, retry_after=1)

    def _read(self) -> Item | None:
        """Read the item of the conversation; None if there is none yet."""
        try:
            return self._table.get(self._key)
        except UnreadableItem:  # the client gets the error of every bad state
            raise InvalidRequestState(SingleUseReason.UNREADABLE) from None

    def _check_may_run(self, recorded: Mapping[str, Any], now: float) -> None:
        """Check that the request may run its round, or get its result: the table at the top, line by line."""
        if recorded["round"] < self._round:
            return
        if recorded["round"] > self._round:
            raise InvalidRequestState(SingleUseReason.OLD_STATE)
        if recorded["print"] != self._fingerprint:
            raise InvalidRequestState(SingleUseReason.OTHER_ANSWERS)
        has_result = "answer" in recorded
        if has_result and self._rejects_repeated:
            raise InvalidRequestState(SingleUseReason.REPEATED)
        if not has_result and now < recorded["lease"]:
            raise Busy(SingleUseReason.RUNNING, retry_after=1)

    def _has_result(self, item: Item) -> bool:
        """Tell whether an item has the result of this round."""
        return item.payload["round"] == self._round and "answer" in item.payload

    def _record(self, item: Item, result: dict[str, Any]) -> None:
        """Write the result before the client gets it."""
        answer = None if self._rejects_repeated else result  # a refused request never gets the result
        try:
            self._write_answer(item, answer)
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # for the author: a repeated request will not get this result
            self._write_answer(item, None)

    def _write_answer(self, item: Item, answer: dict[str, Any] | None) -> None:
        try:
            self._table.replace(item, {"round": self._round, "print": self._fingerprint, "answer": answer})
        except Conflict:  # another invocation has claimed the round, and its result counts
            raise TemporarilyUnavailable(SingleUseReason.OVERTAKEN, retry_after=1) from None


def _digest_request(request: Request) -> str:
    """Return the digest of the state and the answers in a request."""
    token: str = request.params["requestState"]
    answers = dict(request.params.get("inputResponses", {}))
    return base64url(canonical_digest(FINGERPRINT_LABEL + token.encode() + b"\0", answers))
