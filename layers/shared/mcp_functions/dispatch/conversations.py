"""The rounds of a conversation: verify the state of a request, run the handler, seal the state for the next round.

    request --start_round--> RoundStart --> Round --run_round--> the result, if the function returned
                                                             |-> the questions and a sealed state, if it asks

A conversation is a call that may ask its user; each request of it runs one round. The handler starts from its first
line in every round. The record holds what earlier rounds learned, and it travels to the next round in `requestState`.

`requestState` is verified before anything else of the request is used, also for a handler that would not read it.

Clients without elicitation are asked below it (`mcp_functions.apps`): in a form of the host, or by the model in words.
Both are channels. Their answers arrive as calls of a second tool, the companion of the tool that asks.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions import observability
from mcp_functions.handlers.runner import crash_message, crash_result, run_round
from mcp_functions.protocol.constants import META_EARLIER
from mcp_functions.protocol.errors import (
    Crash,
    DeveloperError,
    InvalidRequestState,
    Misconfigured,
    StateTooLarge,
    ToolError,
)
from mcp_functions.protocol.messages import is_asked_in_app, shows_forms
from mcp_functions.rounds.input_requests import missing_capabilities
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.seal.request_state import start_round
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.apps.rungs import Channel
    from mcp_functions.dispatch.single_use import RoundClaim
    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.claims import Claims
    from mcp_functions.seal.request_state import RequestStates, RoundStart
    from mcp_functions.store import SealedTable
    from mcp_functions.tasks import Tasks

# Results for the model.
NOT_KEPT = "This was done before, and its answer was not kept."
TOO_LARGE = "This conversation has more to remember than it can carry. Answer more briefly."

Played: TypeAlias = "tuple[dict[str, Any], Sequence[Mapping[str, Any]]]"  # a result, and the notifications before it


class _Turn(NamedTuple):
    """A request of a conversation and its round."""

    request: Request
    handler: Handler[..., Any]
    states: RequestStates | None  # seals and opens states; None if the function has no keys
    start: RoundStart  # the verified state of the request, and what binds it to this request
    round: Round
    channel: Channel | None = None  # how the answers arrived, if a companion was called; None for the client itself

    @property
    def answered_by(self) -> str:
        """Who gives the answers of this request."""
        return self.channel.answered_by if self.channel else "client"


class Conversations:
    """Runs the rounds of the handlers of one Lambda."""

    def __init__(  # noqa: PLR0913 - the parts of one deployment
        self,
        audience: str,
        states: Callable[..., RequestStates] | None,
        table: Callable[[int], SealedTable],
        *,
        now: Callable[[], float] = time.time,
        audit: Callable[[AuditRecord], object] | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """Take the parts of one deployment; nothing is opened yet.

        Args:
            audience: the server for which states are sealed: "<service>/<stage>".
            states: makes the object that seals states, from their lifetime in seconds and a label of the seal; None
                if the function has no keys.
            table: makes the table of single-use rounds, from the lifetime of its items in seconds.
            now: the clock, unix seconds.
            audit: the author's function that gets a record of each round.
            tasks: the tasks of the function; None if no call may become one.
        """
        self._audience = audience
        self._states = states
        self._table = table
        self._now = now
        self._audit = audit
        self._tasks = tasks

    def run_round(self, request: Request, handler: Handler[..., Any]) -> Played:
        """Run the round that a request asks for."""
        states = None
        if self._states and (handler.needs_state or "requestState" in request.params):
            states = self._states(handler.answer_within)
        start = start_round(self._audience, request, states)
        return self._answer(self._prepare(request, handler, states, start))

    def run_companion(self, request: Request, handler: Handler[..., Any], name: str) -> Played:
        """Run the round that a companion tool continues (`apps.companions`), or check that its state is not used.

        Args:
            request: the call of the companion.
            handler: the tool that asks.
            name: the name of the companion.
        """
        from mcp_functions.apps import asking, companions  # noqa: PLC0415 - only for clients without elicitation

        call = companions.open_call(name, handler.name, request, self._audience, partial(self._label_states, handler))
        turn = self._prepare(call.request, handler, call.states, call.start, call.channel)
        if not call.is_check:
            return self._answer(turn)
        # A form that is shown again asks whether its question is still open.
        if handler.needs_table and call.start.state:
            self._claim(turn, call.start.state).check_unused()
        return asking.open_result(), ()

    def _label_states(self, handler: Handler[..., Any], label: bytes) -> RequestStates:
        """Return the object that seals the states of a channel, which has a label of its own."""
        if self._states is None:
            raise InvalidRequestState(reason="function_has_no_keys")
        return self._states(handler.answer_within, label)

    def _answer(self, turn: _Turn) -> Played:
        """Run a round, once if it must not be repeated; a crash becomes a result."""
        state = turn.start.state
        handler = turn.handler
        if turn.round.questions.actions:
            observability.current().answered_by = turn.answered_by
        # The answers of an app count once wherever there is a table: a reopened chat shows an old form again.
        must_run_once = handler.single_use or (turn.channel and handler.needs_table)
        try:
            # A first round has no state and needs no table: it ends before its first step (`Round.require_state`).
            result = self._run_once(turn, state) if must_run_once and state else self._run(turn)
        except Crash as crash:  # nothing was recorded for this round, so the same request may run again
            result = crash_result(handler, crash)
        return result, turn.round.notifications

    def _prepare(
        self,
        request: Request,
        handler: Handler[..., Any],
        states: RequestStates | None,
        start: RoundStart,
        channel: Channel | None = None,
    ) -> _Turn:
        """Prepare the round. Its state was verified before, because an author's function may change the arguments."""
        notes = observability.current()
        notes.round = start.number
        notes.flow = start.flow or None
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
            has_app=handler.form and is_asked_in_app(request.capabilities),
        )
        record = start.state.record if start.state else {}
        asked = start.state.asked if start.state else {}
        return _Turn(request, handler, states, start, Round(round_request, record, asked), channel)

    def _run_once(self, turn: _Turn, state: Claims) -> dict[str, Any]:
        """Run a round that must not run twice, or return its recorded result."""
        claim = self._claim(turn, state)
        result = claim.run(lambda: self._run(turn), self._now())
        if result is None:
            return turn.handler.error_result(NOT_KEPT)
        # The client may have restarted with other capabilities since the result was recorded.
        questions = result.get("inputRequests", {})
        lacking = missing_capabilities(questions.values(), turn.request.capabilities)
        if not lacking:
            return result
        from mcp_functions.apps import rungs  # noqa: PLC0415 - only for clients without elicitation

        earlier = META_EARLIER in turn.request.params["_meta"]
        return turn.handler.error_result(rungs.not_asked(turn.handler, questions, lacking, earlier=earlier))

    def _claim(self, turn: _Turn, state: Claims) -> RoundClaim:
        """Return the claim of this round. It is written to the table, so that no other request runs the same round."""
        from mcp_functions.dispatch import single_use  # noqa: PLC0415 - imported at init, where a handler needs it

        table = self._table(single_use.item_lifetime(turn.handler.answer_within))
        return single_use.claim_for(turn.request, turn.handler, state, turn.start.binding.principal, table)

    def _run(self, turn: _Turn) -> dict[str, Any]:
        """Run the round. The author's audit gets its record, also if the round fails."""
        handler = turn.handler
        is_asked = False
        try:
            result = self._run_function(turn)
            if result is None:
                result = self._ask(turn)
                is_asked = True
        except ToolError as error:
            return handler.error_result(str(error))
        else:
            return result
        finally:
            if self._audit and handler.needs_state:
                principal = turn.start.binding.principal
                record = turn.round.audit(handler.name, principal, sent=is_asked, answered_by=turn.answered_by)
                self._audit(record)

    def _run_function(self, turn: _Turn) -> dict[str, Any] | None:
        """Run the author's function; None if the round ended before the function returned."""
        call_as_task = None
        if self._tasks and turn.handler.task and not turn.channel:  # a form cannot follow a task
            call_as_task = partial(self._tasks.call, turn.request)
        return run_round(turn.handler, turn.request.params, turn.round, call_as_task)

    def _ask(self, turn: _Turn) -> dict[str, Any]:
        """Return the result that carries the questions of a round.

        Raises:
            ToolError: the user cannot be asked, or the conversation cannot continue; the text is for the model.

        """
        declared = turn.request.capabilities
        questions = turn.round.requests  # empty if the round ended only because its time was up
        lacking = missing_capabilities(questions.values(), declared)
        # Without a question, a client only has to send the next request. One that shows no forms may not know that.
        may_stop = not questions and not shows_forms(declared)
        if turn.channel or lacking or may_stop:
            from mcp_functions.apps import asking  # noqa: PLC0415 - only for clients without elicitation

            round_ = asking.OpenRound(turn.handler, turn.request, turn.channel, questions, lacking, self._now())
            if not asking.is_carried(round_):
                return asking.ask(round_, self._audience, self._states, partial(self._seal, turn))
        token = self._seal(turn, turn.states, turn.start.binding, {})
        # An empty `inputRequests` is sent too: one widespread client reads a result without it as the final one.
        return {"resultType": "input_required", "inputRequests": questions, "requestState": token}

    def _seal(self, turn: _Turn, states: RequestStates | None, binding: Binding, kept: Mapping[str, Any]) -> str:
        """Seal the state for the next round.

        Args:
            turn: the request and its round.
            states: seals the state; None if the function has no keys.
            binding: the request to which the state will belong.
            kept: what the channel keeps, in addition to the record of the round.

        Raises:
            ToolError: the conversation cannot continue; the text is for the model.
            Crash: the author's function keeps a value that is not JSON.
            Misconfigured: the function has no keys.
        """
        handler = turn.handler
        start = turn.start
        if states is None:
            reason = f"{handler.name} asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
            raise Misconfigured(reason)
        asked = turn.round.questions.open_fingerprints()
        record = {**turn.round.next_record(), **kept}
        try:
            return states.seal(binding, start.state, asked=asked, record=record, flow=start.flow)
        # Both errors are hidden: the crash has its cause as an attribute, and the log has the limit.
        except DeveloperError as error:
            raise Crash(crash_message(handler), error) from None
        except StateTooLarge as error:
            observability.current().reason = error.reason  # for the author, because the model cannot raise a limit
            raise ToolError(TOO_LARGE) from None
