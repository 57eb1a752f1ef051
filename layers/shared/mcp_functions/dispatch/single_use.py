"""Runs each round of a conversation only once, for handlers with `single_use` (envelope.md §13).

A round is one request of a conversation. A client may send the same request again, for example because it lost the
response. So a table has an item for each conversation. A request claims its round in the item before the function runs,
and writes the result into the item before the client gets it:

    while round 2 runs    {"round": 2, "print": …, "lease": 1785000030}
    after round 2         {"round": 2, "print": …, "answer": the result, or null if it is not kept}

    print    the fingerprint: a digest of the state and the answers in the request; stored items need the short name
    lease    in unix seconds: no other request may run the round before this time, when Lambda has ended the invocation;
             0 if the function has failed

A request that would run round 2 reads the item. If it is not served, the log has the word in brackets. Operators count
these words, so they never change:

    no item, or round 1               it runs round 2
    round 3                           it is refused, because its state is an old one (used_rewound)
    round 2, another fingerprint      it is refused, because the round belongs to other answers (used_forked)
    round 2, with a result            it gets this result; with `single_use="reject"` it is refused (used_again)
    round 2, before the lease ends    the client must try again later, because another invocation runs it (used_busy)
    round 2, after the lease ended    it runs round 2 again, because the other invocation died
    an item that does not open        it is refused, because it is unknown which rounds have run (used_unreadable)

A state names its table, because a new table does not know which rounds have run: a state of another table is refused
(used_other_table).
"""

from __future__ import annotations

import math
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers import runner
from mcp_functions.protocol.errors import Busy, InvalidRequestState, McpError, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.rounds.input_requests import missing_capabilities
from mcp_functions.seal.canonical_json import canonical_digest
from mcp_functions.seal.request_state import SKEW_MS, max_flow_seconds
from mcp_functions.store import Conflict, ItemTooLarge, Key, UnreadableItem

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import ResultObject
    from mcp_functions.seal.claims import Claims
    from mcp_functions.store import Item, SealedTable

TABLE_KEY = "table"  # under this key, the record has the digest of the table's name
TABLE_BYTES = 9  # of that digest, which tells tables apart and protects nothing
LEASE_MARGIN_SECONDS = 2  # from the end of an invocation until another one may run its round
SPARE_SECONDS = 120  # an item outlives the last state of its conversation: clocks differ by 60 s
ROUNDING_SECONDS = 2  # the deadline of the conversation and the expiry of its item are rounded up
MAX_ATTEMPTS = 3  # to write a claim: each failure means that another request changed the item


def find_claim(
    request: Request, handler: Handler[..., Any], state: Claims, seals: SealFactory, *, is_by_answer_tool: bool
) -> RoundClaim | None:
    """Return the claim of a request to run its round; None if the round may run again.

    An answer tool runs each round once, because a reopened chat shows an old form again.

    Raises:
        InvalidRequestState: another table knows which rounds have run, that of the stack before it was removed. A state
            that was sealed before states named their table is accepted.
    """
    table = digest_table(seals.table_name)
    if state.record.get(TABLE_KEY, table) != table:
        raise InvalidRequestState(reason="used_other_table")
    if handler.single_use is None and not is_by_answer_tool:
        return None
    return RoundClaim(request, handler, state, seals.table(item_seconds(handler.answer_within)))


def digest_table(name: str) -> str:
    """Return the digest of the name of the table that knows which rounds have run."""
    return base64url(sha256(b"ks1/table\0" + name.encode()).digest()[:TABLE_BYTES])


class RoundClaim:
    """The claim of one request to run one round of a conversation (envelope.md §13.1)."""

    def __init__(self, request: Request, handler: Handler[..., Any], state: Claims, table: SealedTable) -> None:
        """Prepare the claim of a request with a verified state. The table keeps items for `item_seconds` or longer."""
        self._request = request
        self._handler = handler
        self._table = table
        self._key = Key("conversation", state.flow, state.binding.principal)
        self._rejects_repeated = handler.single_use == "reject"
        self._round = state.round + 1  # the round to run; the state is from the round before
        self._fingerprint = _digest_request(request)
        # In unix seconds: when the item may go, and when another invocation may run the round.
        self._expires = math.ceil(state.flow_deadline / 1000) + SPARE_SECONDS
        self._lease = math.ceil(request.lambda_deadline) + LEASE_MARGIN_SECONDS

    def run(self, run_round: Callable[[], ResultObject], now: float) -> ResultObject:
        """Run the round, or return its recorded result. An error result says that this was too large to be kept.

        Raises:
            InvalidRequestState: the conversation is past this round, or another request has claimed it.
            TemporarilyUnavailable: another invocation runs this round, or the table is not available. The client gets
                no result, and may repeat the request.
        """
        item = self._claim(now)
        if "answer" in item.payload:
            return self._repeat(item.payload["answer"])
        try:
            result = run_round()
        except BaseException:  # also when the process must stop
            self._end_lease(item)
            raise
        self._record(item, result)
        return result

    def _end_lease(self, item: Item) -> None:
        """Let another request run the round, which has no result. If the table fails, the lease ends by itself."""
        with suppress(Conflict, McpError):
            self._table.replace(item, {**item.payload, "lease": 0})

    def _repeat(self, recorded: ResultObject | None) -> ResultObject:
        """Return the recorded result of the round, or an error result if the client cannot have it."""
        if recorded is None:
            return runner.error_result(self._handler, "This was done before, and its answer was not kept.")
        # The client may have restarted since the result was recorded, and may lack what its questions need.
        questions = recorded.get("inputRequests", {})
        missing = missing_capabilities(questions.values(), self._request.capabilities)
        if not missing:
            return recorded
        from mcp_functions.rounds import unfinished

        text = unfinished.explain(self._handler, questions, missing, self._request.params["_meta"])
        return runner.error_result(self._handler, text)

    def check_unused(self) -> None:
        """Check that no request has claimed this round or a later one. This request does not claim it either.

        Raises:
            InvalidRequestState: another request continued the conversation from this state, or went past it.
            TemporarilyUnavailable: the table is not available.
        """
        item = self._read()
        if item and item.payload["round"] >= self._round:
            raise InvalidRequestState(reason="used_rewound")

    def _claim(self, now: float) -> Item:
        """Return the item of the conversation: with the result of this round, or else claimed for this round."""
        claimed = {"round": self._round, "print": self._fingerprint, "lease": self._lease}
        for _attempt in range(MAX_ATTEMPTS):
            item = self._read()
            if item and not self._must_run(item, now):
                return item
            try:
                if item is None:
                    return self._table.create(self._key, claimed, expires=self._expires)
                return self._table.replace(item, claimed, expires=self._expires)
            except Conflict:  # another request has changed the item since it was read
                continue
        raise Busy(reason="used_contended", retry_after=1)

    def _read(self) -> Item | None:
        """Read the item of the conversation; None if there is none yet."""
        try:
            return self._table.get(self._key)
        except UnreadableItem:  # the client gets the error of every bad state
            raise InvalidRequestState(reason="used_unreadable") from None

    def _must_run(self, item: Item, now: float) -> bool:
        """Return whether the round must run, or else its result is in the item: the table at the top, line by line."""
        recorded = item.payload
        if recorded["round"] < self._round:
            return True
        if recorded["round"] > self._round:
            raise InvalidRequestState(reason="used_rewound")
        if recorded["print"] != self._fingerprint:
            raise InvalidRequestState(reason="used_forked")
        if "answer" in recorded:
            if self._rejects_repeated:
                raise InvalidRequestState(reason="used_again")
            return False
        if now < recorded["lease"]:
            raise Busy(reason="used_busy", retry_after=1)
        return True

    def _record(self, item: Item, result: ResultObject) -> None:
        """Write the result before the client gets it."""
        answer = None if self._rejects_repeated else result  # a rejected request gets none
        try:
            self._write_answer(item, answer)
        except ItemTooLarge as error:
            # The author reads in the log why a repeated request will not get this result.
            observability.current().reason = error.reason
            self._write_answer(item, None)

    def _write_answer(self, item: Item, answer: ResultObject | None) -> None:
        try:
            self._table.replace(item, {"round": self._round, "print": self._fingerprint, "answer": answer})
        except Conflict:
            # The lease ended before the round, another invocation has claimed it, and its result counts.
            raise TemporarilyUnavailable(reason="used_overtaken", retry_after=1) from None


def _digest_request(request: Request) -> str:
    """Return the digest of the state and the answers in a request."""
    token = request.params["requestState"]
    answers = dict(request.params.get("inputResponses", {}))
    # "ks1/used" makes the digest differ from each digest of another purpose.
    return base64url(canonical_digest(b"ks1/used\0" + token.encode() + b"\0", answers))


def item_seconds(answer_within: int) -> int:
    """Return how long an item may live, if one answer of the conversation may take `answer_within` seconds."""
    return max_flow_seconds(answer_within) + SKEW_MS // 1000 + SPARE_SECONDS + ROUNDING_SECONDS
