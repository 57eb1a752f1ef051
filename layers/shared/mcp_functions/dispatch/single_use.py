"""Each round of a conversation once: what no seal can promise, a table does (envelope.md §13).

One item per conversation says which round it has come to, with which request, and what was answered. A request claims
its round before anything of it runs, and its answer goes out when the item has it. So a round is answered once: who
asks again hears the same answer, and who comes with an older state, or with other answers, is refused.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.protocol.errors import Busy, InvalidRequestState, McpError, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.request_state import SKEW_MS, digest_of, longest
from mcp_functions.store import Conflict, ItemTooLarge, Key, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Mode
    from mcp_functions.seal.request_state import Opened
    from mcp_functions.store import Item, Table

KIND = "conversation"
NO_TABLE = (
    "MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the table, the key and their policies; what"
    " template.yaml needs is printed by: python -m mcp_functions.local block task NAME (or single_use NAME)"
)
SPARE_SECONDS = 120  # for which an item outlives the last state of its conversation: clocks differ by up to 60 s
LEASE_MARGIN = 2  # seconds after the end of a worker at which others may take its round over
ATTEMPTS = 3  # at a claim: each that fails was won by somebody else


class Presented(NamedTuple):
    """One request that continues a conversation.

    Attributes:
        key: of the conversation's item.
        round: that the request wants to run; the state it brought was left by the one before.
        fingerprint: of its state and its answers.
        ends: unix seconds; nobody can present a state of this conversation after it.

    """

    key: Key
    round: int
    fingerprint: str
    ends: int


class Answered(NamedTuple):
    """A round that has run; its result, if that was kept."""

    result: dict[str, Any] | None


def presented(opened: Opened, principal: str | None, token: str, responses: Mapping[str, Any]) -> Presented:
    """Say what a request wants to use (§13.1).

    Args:
        opened: the state that it brought, verified.
        principal: digest of who calls.
        token: the state as it came.
        responses: `inputResponses`.

    """
    fingerprint = base64url(digest_of(b"ks1/used\0" + token.encode() + b"\0", dict(responses)))
    ends = math.ceil(opened.flow_deadline / 1000) + SPARE_SECONDS
    return Presented(Key(KIND, opened.flow, principal), opened.round + 1, fingerprint, ends)


def max_age(lifetime: int) -> int:
    """Say how long an item may have to live, if one answer may take `lifetime` seconds."""
    return longest(lifetime) + SKEW_MS // 1000 + SPARE_SECONDS + 2  # rounded up twice


def once(  # noqa: PLR0913 - what is used, where that is written down, and what it is for
    table: Table,
    mode: Mode,
    request: Presented,
    play: Callable[[], dict[str, Any]],
    *,
    now: Callable[[], float],
    until: float,
) -> dict[str, Any] | None:
    """Run a round, or give its answer again.

    Args:
        table: that keeps an item for each conversation.
        mode: "replay" gives who asks again the same answer, "reject" refuses.
        request: that came.
        play: runs the round.
        now: unix seconds, wall clock.
        until: unix seconds at which this worker is no more.

    Returns:
        The result; None if this round was run before and its result was too large to be kept.

    Raises:
        InvalidRequestState: this round is over, or another request has it.
        TemporarilyUnavailable: another worker has it just now, or the table cannot answer: nothing was run, or what was
            run was not answered. The same request may come again.

    """
    claimed = _claim(table, mode, request, now=now, until=until)
    if isinstance(claimed, Answered):
        return claimed.result
    try:
        result = play()
    except BaseException:
        _let_go(table, claimed)
        raise
    _record(table, claimed, result if mode == "replay" else None)
    return result


def _claim(table: Table, mode: Mode, request: Presented, *, now: Callable[[], float], until: float) -> Item | Answered:
    claim = {"round": request.round, "print": request.fingerprint, "lease": math.ceil(until) + LEASE_MARGIN}
    for _ in range(ATTEMPTS):
        try:
            found = table.get(request.key)
        except Unreadable:
            reason = "used_unreadable"
            raise InvalidRequestState(reason) from None
        if found and (answered := _look(found.payload, mode, request, now())):
            return answered
        try:
            if found is None:
                return table.create(request.key, claim, expires=request.ends)
            return table.replace(found, claim, expires=request.ends)
        except Conflict:
            continue  # somebody was faster: look at what has become of it
    reason = "used_contended"
    raise Busy(reason, retry_after=1)


def _look(said: Mapping[str, Any], mode: Mode, request: Presented, now: float) -> Answered | None:
    """Decide about a request by what the item says (§13.2); None: it may run."""
    if request.round > said["round"]:
        return None
    if request.round < said["round"]:
        reason = "used_rewound"
    elif request.fingerprint != said["print"]:
        reason = "used_forked"
    elif "answer" in said and mode == "replay":
        return Answered(said["answer"])
    elif "answer" in said:
        reason = "used_again"
    elif now < said["lease"]:
        reason = "used_busy"
        raise Busy(reason, retry_after=1)
    else:
        return None  # its worker is gone, and nobody knows how far it came: the keys of its steps are the same
    raise InvalidRequestState(reason)


def _record(table: Table, claimed: Item, result: dict[str, Any] | None) -> None:
    """Write the answer down, before anybody hears it."""
    done = {name: claimed.payload[name] for name in ("round", "print")}
    try:
        table.replace(claimed, {**done, "answer": result})
    except ItemTooLarge as error:
        observability.current().reason = error.reason  # for the author: this answer cannot be given again
        _record(table, claimed, None)
    except Conflict:
        # The lease was over and the round is another worker's now: its answer counts, and this one nobody may hear.
        reason = "used_overtaken"
        raise TemporarilyUnavailable(reason, retry_after=1) from None


def _let_go(table: Table, claimed: Item) -> None:
    """Let the same request try again at once, if the table will have it; or else when the lease is over."""
    with suppress(Conflict, McpError):
        table.replace(claimed, {**claimed.payload, "lease": 0})
