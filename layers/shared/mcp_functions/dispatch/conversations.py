"""A round of a conversation: what a request carries is opened, the round is played, what it leaves is sealed.

This is the one place that opens and seals a `requestState`. The state is checked before anything of the request is
believed, also for a handler that would not have read it; it is sealed when the signal `InputRequired` ends a round.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.handlers.playing import crashed, play, words
from mcp_functions.protocol.constants import META_EARLIER
from mcp_functions.protocol.errors import (
    Crash,
    DeveloperError,
    InvalidRequestState,
    Misconfigured,
    MissingRequiredClientCapability,
    StateTooLarge,
)
from mcp_functions.protocol.messages import Result, complete
from mcp_functions.rounds.input_requests import in_words, missing
from mcp_functions.rounds.round import Round
from mcp_functions.seal.request_state import RoundBudgetExceeded, binding, payer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers import Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.rounds.round import AuditRecord
    from mcp_functions.seal.request_state import Binding, Opened, RequestStates
    from mcp_functions.store import Table
    from mcp_functions.tasks import Tasks


class _Turn(NamedTuple):
    """One request of a conversation, while it is answered."""

    request: Request
    handler: Handler[..., Any]
    bound: Binding
    opened: Opened | None
    round: Round


class Conversations:
    """Plays the rounds of the handlers of one Lambda.

    Args:
        audience: who may read a state sealed here, `<stack>/<function>/<stage>`.
        states: makes what seals and opens for a lifetime in seconds; None where this Lambda may not ask.
        table: makes what keeps items for at most as many seconds; None where there is none.
        server_info: names the server in every result.
        now: the clock, unix seconds.
        audit: is told of every round of a handler that may ask.
        tasks: keeps calls that became tasks; None where none may.

    """

    def __init__(  # noqa: PLR0913 - what one deployment's conversations need
        self,
        audience: str,
        states: Callable[[int], RequestStates] | None,
        table: Callable[[int], Table] | None = None,
        *,
        server_info: Mapping[str, str],
        now: Callable[[], float] = time.time,
        audit: Callable[[AuditRecord], object] | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """Remember what there is."""
        self._audience, self._states, self._table = audience, states, table
        self._now, self._audit, self._tasks = now, audit, tasks
        self._server_info = server_info

    def play(self, request: Request, handler: Handler[..., Any]) -> Result:
        """Play the round that a request asks for.

        Raises:
            McpError: its state is none for this request, or the round has no result.

        """
        # Bound to what the client sent: before the handler runs, for authors do change their arguments.
        bound = binding(self._audience, request.message["method"], request.params, request.principal)
        opened = self._open(request, handler, bound)
        once = opened if handler.single_use else None  # a first round does nothing that counts (`Round.anchor`)
        turn = _Turn(request, handler, bound, opened, self._round(request, handler, opened))
        try:
            result = self._once(turn, once) if once else self._played(turn)
        except Crash as crash:  # its claim was released and it was not recorded, so the same request runs again
            result = crashed(handler, crash)
        return Result(complete(result, self._server_info), tuple(turn.round.notifications))

    def _once(self, turn: _Turn, opened: Opened) -> dict[str, Any]:
        """Run a round that must not run twice."""
        from mcp_functions.dispatch import single_use  # noqa: PLC0415 - imported at init, where a handler needs it

        if self._table is None:
            raise Misconfigured(single_use.NO_TABLE)
        request, handler, params = turn.request, turn.handler, turn.request.params
        responses = params.get("inputResponses", {})
        used = single_use.presented(opened, turn.bound.principal, params["requestState"], responses)
        result = single_use.once(
            self._table(single_use.max_age(handler.answer_within)),
            handler.single_use or "reject",
            used,
            lambda: self._played(turn),
            now=self._now,
            until=request.ends,
        )
        if result is None:
            return handler.failed("This was done before, and its answer was not kept.")
        # whoever asks again may have been restarted, as another client
        asked = result.get("inputRequests", {})
        if lacking := missing(asked.values(), request.capabilities):
            raise _unasked(request, lacking, asked)
        return result

    def _played(self, turn: _Turn) -> dict[str, Any]:
        """Run the round, and tell the author's audit what was asked and answered in it, also if it failed."""
        handler, result, sent = turn.handler, None, False
        try:
            result = self._run(turn)
            if result is None:
                result = self._input_required(turn)
                sent = "inputRequests" in result
            return result
        finally:
            if self._audit and handler.asks:
                self._audit(turn.round.audit(handler.name, turn.bound.principal, sent=sent))

    def _run(self, turn: _Turn) -> dict[str, Any] | None:
        handler, params = turn.handler, turn.request.params
        if self._tasks and handler.task:
            return play(self._tasks.instead_of(handler, turn.request), params, turn.round)
        return play(handler, params, turn.round)

    def _round(self, request: Request, handler: Handler[..., Any], opened: Opened | None) -> Round:
        flow = opened.flow if opened else ""
        if handler.asks and self._states and not opened:
            flow = self._states(handler.answer_within).new_flow()
        notes = observability.current()
        notes.round = opened.round + 1 if opened else 1
        notes.flow = flow or None
        return Round(
            record=opened.record if opened else {},
            asked=opened.asked if opened else {},
            flow=flow,
            number=opened.round + 1 if opened else 1,
            responses=request.params.get("inputResponses", {}),
            declared=request.capabilities,
            meta=request.params["_meta"],
            camel_case=handler.camel_case,
            deadline=request.deadline,
            now=self._now,
            max_sheds=handler.max_sheds,
            principal=request.principal,
            scopes=request.scopes,
            single_use=handler.single_use is not None,
        )

    def _open(self, request: Request, handler: Handler[..., Any], bound: Binding) -> Opened | None:
        if "requestState" not in request.params:
            return None
        token = request.params["requestState"]
        if self._states is None or not isinstance(token, str):
            reason = "shape" if self._states else "function_has_no_keys"
            raise InvalidRequestState(reason)
        caller = payer(request.principal, request.address)  # who is charged if KMS has to be asked
        return self._states(handler.answer_within).open(token, bound, caller=caller)

    def _input_required(self, turn: _Turn) -> dict[str, Any]:
        handler, round_ = turn.handler, turn.round
        # "MUST NOT send an inputRequests that the client has not declared support for in its capabilities"
        if lacking := missing(round_.requests.values(), turn.request.capabilities):
            raise _unasked(turn.request, lacking, round_.requests)
        if self._states is None:
            reason = f"{handler.name} asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
            raise Misconfigured(reason)
        states, asked = self._states(handler.answer_within), round_.leave_asked()
        try:
            token = states.seal(turn.bound, turn.opened, asked=asked, record=round_.leave(), flow=round_.flow)
        except DeveloperError as error:  # JSON cannot carry what the function keeps
            raise Crash(words(handler), error) from None
        except RoundBudgetExceeded as error:
            return handler.failed(str(error))
        except StateTooLarge as error:
            observability.current().reason = error.reason  # for the author; the model cannot raise a limit
            return handler.failed("This conversation has more to remember than it can carry. Answer more briefly.")
        # `inputRequests` is there even when it is empty: one widespread client takes its absence for a final result.
        return {"resultType": "input_required", "inputRequests": round_.requests, "requestState": token}


def _unasked(request: Request, lacking: dict[str, Any], asked: Mapping[str, Any]) -> MissingRequiredClientCapability:
    """Refuse to ask, and say what would have been asked: the model may ask its user, or know the answer."""
    asks = {key: in_words(each) for key, each in asked.items()}
    return MissingRequiredClientCapability(lacking, asks, earlier=META_EARLIER in request.params["_meta"])
