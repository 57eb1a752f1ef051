"""The state of one round, sealed for the request that continues the conversation (envelope.md §9).

A conversation is one call over several requests. Each request is a round. A state holds what the next round needs, and
the client carries it:

    round 1: seal(binding of request 1, no state)  -> token -> the client sends it with request 2
    round 2: open(token, binding of request 2)     -> claims -> seal(…, that state) -> next token

The seal proves no more than that this server made the token. A client could still send it with other arguments, after
weeks, or as another user. So a state holds the binding of its request: the call, its arguments and the caller (the
principal). `open` compares this binding with the new request, and refuses a state that is too old.

The log and the claims call the random id of a conversation `flow`.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, ToolError
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.binding import Binding, bind_request, caller_id
from mcp_functions.seal.claims import Claims, check_binding, encode_claims, read_claims
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.messages import Request
    from mcp_functions.seal.envelope import Seal

SKEW_MS = 60_000  # how far the clocks of two containers may differ, in milliseconds
FLOW_BYTES = 16  # the random bytes in the id of a conversation
MAX_ROUNDS = 16  # how many states are sealed in one conversation, one for each round
# A conversation may take six times as long as one answer may take, and at least an hour (envelope.md §9.4).
FLOW_FACTOR = 6
MIN_CONVERSATION_SECONDS = 3600


class RoundStart(NamedTuple):
    """What a round begins with."""

    binding: Binding  # what the next state is bound to: this server, and the request of this round
    flow: str  # the id of the conversation
    claims: Claims | None  # of the state that the client returned; None in the first round

    @property
    def number(self) -> int:
        """The number of the round, from 1."""
        return self.claims.round + 1 if self.claims else 1


def max_flow_seconds(lifetime: int) -> int:
    """Return how many seconds a conversation may take, if one answer may take `lifetime` seconds."""
    return max(MIN_CONVERSATION_SECONDS, FLOW_FACTOR * lifetime)


def new_flow() -> str:
    """Return a random id for a new conversation."""
    return base64url(os.urandom(FLOW_BYTES))


def start_round(audience: str, request: Request, states: RequestStates | None) -> RoundStart:
    """Verify the state that a request carries, or begin a conversation. A function without keys has no `states`."""
    binding = bind_request(audience, request.method, request.params, request.principal)
    if "requestState" not in request.params:
        # Only a state needs the id of the conversation, and a function without keys seals no state.
        flow = new_flow() if states else ""
        return RoundStart(binding, flow=flow, claims=None)
    if states is None:
        raise InvalidRequestState(reason="function_has_no_keys")
    token = request.params["requestState"]
    if not isinstance(token, str):
        raise InvalidRequestState(reason="shape")
    claims = states.open(token, binding, caller=caller_id(request.principal, request.address))
    return RoundStart(binding, flow=claims.flow, claims=claims)


class RequestStates:
    """Seals the state of a round, and opens it for the request that continues the conversation."""

    def __init__(
        self,
        seal: Seal,
        *,
        now: Callable[[], float] = time.time,
        lifetime_seconds: int = 600,
        anonymous: bool = False,
    ) -> None:
        """Set the limits: how long one answer may take, and whether states may have no principal."""
        self._seal = seal
        self._now = now
        self._lifetime_ms = lifetime_seconds * 1000
        self._max_conversation_ms = max_flow_seconds(lifetime_seconds) * 1000
        self._anonymous = anonymous

    def seal(
        self,
        binding: Binding,
        previous: Claims | None,
        *,
        asked: Mapping[str, str],
        record: Mapping[str, Any],
        flow: str = "",
    ) -> str:
        """Seal the state of a round.

        Args:
            binding: the request of this round.
            previous: the state that this round began with; None in the first round.
            asked: the fingerprint of each open question, by wire key.
            record: the JSON of `rounds.record`.
            flow: the id of the conversation in the first round; "" makes one. A later round has the id of `previous`.

        Raises:
            ToolError: the conversation has used its rounds or its time; the text is for the model.
            DeveloperError: the record is not JSON.
        """
        self._check_principal(binding)
        issued = self._now_ms()
        deadline = issued + self._max_conversation_ms
        number = 1
        if previous:
            number = previous.round + 1
            flow = previous.flow
            # The deadline is that of the first round. It is earlier if the clock of this container is behind the clock
            # of the first one: `open` refuses a deadline that is too far away (envelope.md §9.5).
            deadline = min(previous.flow_deadline, deadline)
        _check_not_used_up(number, deadline - issued)
        claims = Claims(
            binding=binding,
            issued=issued,
            expires=min(issued + self._lifetime_ms, deadline),
            flow_deadline=deadline,
            flow=flow or new_flow(),
            round=number,
            asked=dict(asked),
            record=dict(record),
        )
        return self._seal.seal(encode_claims(claims))

    def open(self, token: str, binding: Binding, *, caller: str = "") -> Claims:
        """Open a state, and check that it belongs to a request. A failed unwrap is charged to `caller` (`caller_id`).

        Raises:
            InvalidRequestState: the state does not belong to this request; `reason` is for the log.
        """
        self._check_principal(binding)
        notes = observability.current()
        notes.caller_id = caller
        claims = read_claims(self._seal.unseal(token, caller=caller))
        notes.flow = claims.flow
        notes.round = claims.round + 1
        check_binding(claims, binding)
        self._check_limits(claims)
        return claims

    def _check_limits(self, claims: Claims) -> None:
        """Check the times and the number of the round against the configured limits (envelope.md §9.5)."""
        now = self._now_ms()
        if claims.issued > now + SKEW_MS:
            raise InvalidRequestState(reason="issued_future")
        # A shorter lifetime takes effect at once, for states that were sealed before, too.
        if not 0 < claims.expires - claims.issued <= self._lifetime_ms:
            raise InvalidRequestState(reason="lifetime")
        if claims.expires > claims.flow_deadline:
            raise InvalidRequestState(reason="lifetime")
        # Another container may have set the deadline, so its clock may differ.
        if claims.flow_deadline > claims.issued + self._max_conversation_ms + SKEW_MS:
            raise InvalidRequestState(reason="lifetime")
        if now >= claims.expires:
            raise InvalidRequestState(reason="expired")
        if not 1 <= claims.round <= MAX_ROUNDS:
            raise InvalidRequestState(reason="round")

    def _now_ms(self) -> int:
        return int(self._now() * 1000)

    def _check_principal(self, binding: Binding) -> None:
        # envelope.md §9.2: "Without `anonymous`, a request without a principal is a configuration error".
        if binding.principal is None and not self._anonymous:
            raise Misconfigured("no principal: set RequestStates(anonymous=True) for a server without authentication")


def _check_not_used_up(number: int, milliseconds_left: int) -> None:
    """Refuse a state for a conversation that has used its rounds or its time. The text is for the model."""
    if number > MAX_ROUNDS:
        raise ToolError(f"This conversation has used its {MAX_ROUNDS} rounds. Start again.")
    if milliseconds_left <= 0:
        raise ToolError("This conversation has used its time. Start again.")
