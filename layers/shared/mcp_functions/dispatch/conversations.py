"""The rounds of a conversation: verify the state of a request, run the handler, seal the state for the next round.

`requestState` is verified before anything else of the request is used, also for a handler that would not read it. It is
sealed when the exception `InputRequired` ends a round.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers.runner import crash_message, crash_result, run_round
from mcp_functions.protocol.constants import META_EARLIER
from mcp_functions.protocol.errors import Crash, DeveloperError, Misconfigured, StateTooLarge
from mcp_functions.protocol.messages import Result, complete
from mcp_functions.rounds.input_requests import check_capabilities
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.seal.request_state import RoundBudgetExceeded, start_round
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.rounds.round import AuditRecord
    from mcp_functions.seal.request_state import RequestStates, RoundStart, VerifiedState
    from mcp_functions.store import SealedTable
    from mcp_functions.tasks import Tasks

NOT_KEPT = "This was done before, and its answer was not kept."
TOO_LARGE = "This conversation has more to remember than it can carry. Answer more briefly."


class _Turn(NamedTuple):
    """A request of a conversation and its round."""

    request: Request
    handler: Handler[..., Any]
    states: RequestStates | None
    start: RoundStart
    round: Round


class Conversations:
    """Runs the rounds of the handlers of one Lambda."""

    def __init__(  # noqa: PLR0913 - the parts of one deployment
        self,
        audience: str,
        states: Callable[[int], RequestStates] | None,
        table: Callable[[int], SealedTable] | None = None,
        *,
        server_info: Mapping[str, str],
        now: Callable[[], float] = time.time,
        audit: Callable[[AuditRecord], object] | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """Take the parts of one deployment, which `Dispatcher` describes; nothing is opened yet."""
        self._audience, self._states, self._table = audience, states, table
        self._now, self._audit, self._tasks = now, audit, tasks
        self._server_info = server_info

    def run_round(self, request: Request, handler: Handler[..., Any]) -> Result:
        """Run the round that a request asks for."""
        turn = self._turn(request, handler)
        state = turn.start.state
        try:
            # A first round needs no table: it ends before its first step (`Round.end_without_state`).
            result = self._run_once(turn, state) if handler.single_use and state else self._run(turn)
        except Crash as crash:  # the claim was released and no answer recorded, so the same request may run again
            result = crash_result(handler, crash)
        return Result(complete(result, self._server_info), tuple(turn.round.notifications))

    def _turn(self, request: Request, handler: Handler[..., Any]) -> _Turn:
        """Verify the state before the handler runs, because authors may change the arguments."""
        states = None
        if self._states and (handler.needs_state or "requestState" in request.params):
            states = self._states(handler.answer_within)
        start = start_round(self._audience, request, states)
        notes = observability.current()
        notes.round, notes.flow = start.number, start.flow or None
        round_request = RoundRequest(
            responses=request.params.get("inputResponses", {}),
            capabilities=request.capabilities,
            meta=request.params["_meta"],
            principal=request.principal,
            scopes=request.scopes,
            flow=start.flow,
            number=start.number,
            deadline=request.deadline,
            now=self._now,
            camel_case=handler.camel_case,
            max_sheds=handler.max_sheds,
            single_use=handler.single_use is not None,
        )
        record, asked = (start.state.record, start.state.asked) if start.state else ({}, {})
        return _Turn(request, handler, states, start, Round(round_request, record, asked))

    def _run_once(self, turn: _Turn, state: VerifiedState) -> dict[str, Any]:
        """Run a round that must not run twice, or return its recorded result."""
        from mcp_functions.dispatch import single_use  # noqa: PLC0415 - imported at init, where a handler needs it

        if self._table is None:
            raise Misconfigured(single_use.NO_TABLE)
        request, handler = turn.request, turn.handler
        rounds = single_use.SingleUse(
            self._table(single_use.item_lifetime(handler.answer_within)), handler.single_use or "reject", self._now
        )
        claim = single_use.claim_for(request, state, turn.start.binding.principal)
        result = rounds.run(claim, lambda: self._run(turn))
        if result is None:
            return handler.error_result(NOT_KEPT)
        # The client may have restarted with other capabilities since the result was recorded.
        self._check_capabilities(request, result.get("inputRequests", {}))
        return result

    def _run(self, turn: _Turn) -> dict[str, Any]:
        """Run the round. The author's audit gets its record, also if the round fails."""
        handler, sent = turn.handler, False
        try:
            result = self._play(turn)
            if result is None:
                result = self._input_required(turn)
                sent = "inputRequests" in result
            return result
        finally:
            if self._audit and handler.needs_state:
                self._audit(turn.round.audit(handler.name, turn.start.binding.principal, sent=sent))

    def _play(self, turn: _Turn) -> dict[str, Any] | None:
        handler, params = turn.handler, turn.request.params
        if self._tasks and handler.task:
            return run_round(self._tasks.instead_of(handler, turn.request), params, turn.round)
        return run_round(handler, params, turn.round)

    def _input_required(self, turn: _Turn) -> dict[str, Any]:
        """Seal the state for the next round, and return the InputRequiredResult."""
        handler, round_ = turn.handler, turn.round
        self._check_capabilities(turn.request, round_.requests)
        if turn.states is None:
            reason = f"{handler.name} asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
            raise Misconfigured(reason)
        asked, record = round_.questions.open_fingerprints(), round_.next_record()
        try:
            token = turn.states.seal(
                turn.start.binding, turn.start.state, asked=asked, record=record, flow=turn.start.flow
            )
        except DeveloperError as error:  # the function keeps a value that is not JSON
            raise Crash(crash_message(handler), error) from None
        except RoundBudgetExceeded as error:
            return handler.error_result(str(error))
        except StateTooLarge as error:
            observability.current().reason = error.reason  # for the author; the model cannot raise a limit
            return handler.error_result(TOO_LARGE)
        # An empty `inputRequests` is sent too: one widespread client reads a result without it as the final one.
        return {"resultType": "input_required", "inputRequests": round_.requests, "requestState": token}

    @staticmethod
    def _check_capabilities(request: Request, questions: Mapping[str, Any]) -> None:
        earlier = META_EARLIER in request.params["_meta"]
        check_capabilities(questions, request.capabilities, earlier=earlier)
