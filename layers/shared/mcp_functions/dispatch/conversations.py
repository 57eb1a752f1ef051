"""Runs one round of a conversation, from the request to its result.

    1. open the state      `start_round` verifies it before anything else of the request is used
    2. prepare the round   with the record of the rounds before, and the answers of this request
    3. run the function    it starts from its first line in every round; with `single_use`, each round runs only once
    4. answer              with the function's result, or with its questions and a sealed state

Words:

    conversation   a call that may ask its user, so it may take several requests
    round          one of these requests
    record         what the next round must know: the answers so far, and the results of steps
    state          `requestState`: the sealed record, which the client sends back with its next request
    channel        how a client without elicitation is asked: by a form of its host, or by its model in words
    companion      a second tool beside a tool that asks; a call of it brings the answers of a channel
    claims         what a verified state says: the conversation, the round, and the record
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers import runner
from mcp_functions.protocol.constants import META_CLIENT_REVISION
from mcp_functions.protocol.errors import Crash, DeveloperError, Misconfigured, StateTooLarge, ToolError
from mcp_functions.protocol.messages import Result, is_asked_in_app, shows_forms
from mcp_functions.rounds.input_requests import missing_capabilities
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.seal.request_state import start_round
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.apps.channels import Channel
    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.claims import Claims
    from mcp_functions.seal.request_state import RequestStates, RoundStart
    from mcp_functions.store import SealedTable
    from mcp_functions.tasks import Tasks

# Results for the model.
NOT_KEPT = "This was done before, and its answer was not kept."
TOO_LARGE = "This conversation has more to remember than it can carry. Answer more briefly."


class _Call(NamedTuple):
    """A call in its present round."""

    request: Request  # a call of the tool that asks; for a call of a companion, `companions` has written this one
    handler: Handler[..., Any]
    states: RequestStates | None  # seals and opens states; None if the function has no keys
    start: RoundStart  # the verified state of the request, and what binds it to this request
    round: Round
    channel: Channel | None  # how the answers arrived; None if the client itself asked its user

    @property
    def answered_by(self) -> str:
        """Who gave the answers of this request."""
        return self.channel.answered_by if self.channel else "client"


class Conversations:
    """Runs the rounds of the handlers of one Lambda."""

    def __init__(  # noqa: PLR0913 - the parts of one deployment
        self,
        audience: str,
        make_states: Callable[..., RequestStates] | None,
        make_table: Callable[[int], SealedTable],
        *,
        now: Callable[[], float] = time.time,
        audit: Callable[[AuditRecord], object] | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """Take the parts of one deployment; nothing is opened yet.

        Args:
            audience: the server for which states are sealed: "<service>/<stage>".
            make_states: `make_states(lifetime=…, label=…)` returns what seals states, for a lifetime in seconds and the
                label of a channel; None if the function has no keys.
            make_table: makes the table of single-use rounds, from the lifetime of its items in seconds.
            now: the clock, unix seconds.
            audit: the author's function that gets a record of each round.
            tasks: the tasks of the function; None if no call may become one.
        """
        self._audience = audience
        self._make_states = make_states
        self._make_table = make_table
        self._now = now
        self._audit = audit
        self._tasks = tasks

    def run_round(self, request: Request, handler: Handler[..., Any]) -> Result:
        """Run the round that a request asks for."""
        states = None
        # A handler that never asks opens a state too: then a forged one is refused by every handler.
        if self._make_states and (handler.needs_state or "requestState" in request.params):
            states = self._make_states(lifetime=handler.answer_within)
        start = start_round(self._audience, request, states)
        return self._run(self._prepare(request, handler, states, start))

    def run_companion(self, request: Request, handler: Handler[..., Any], name: str) -> Result:
        """Run the round that a companion continues, or tell its form whether the question is still open.

        Args:
            request: the call of the companion.
            handler: the tool that asks.
            name: the name of the companion.
        """
        from mcp_functions.apps import asking, companions  # noqa: PLC0415 - only for clients without elicitation

        channel = companions.channel_of(name, request.capabilities)
        states = self._channel_states(handler, channel)
        continued = companions.open_call(channel, handler.name, request, self._audience, states)
        start = continued.start
        if not continued.is_check:
            return self._run(self._prepare(continued.request, handler, states, start, channel))
        if handler.needs_table and start.claims:
            from mcp_functions.dispatch import single_use  # noqa: PLC0415 - imported at init, where a handler needs it

            single_use.RoundClaim(continued.request, handler, start.claims, self._make_table).check_unused()
        return Result(asking.open_result())

    def _channel_states(self, handler: Handler[..., Any], channel: Channel) -> RequestStates | None:
        """Return the object that seals the states of a channel; None if the function has no keys."""
        return self._make_states(lifetime=handler.answer_within, label=channel.label) if self._make_states else None

    def _prepare(
        self,
        request: Request,
        handler: Handler[..., Any],
        states: RequestStates | None,
        start: RoundStart,
        channel: Channel | None = None,
    ) -> _Call:
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
            deadline=request.gateway_deadline,
            now=self._now,
            camel_case=handler.camel_case,
            max_sheds=handler.max_sheds,
            single_use=handler.single_use is not None,
            has_app=handler.may_show_form and is_asked_in_app(request.capabilities),
        )
        record = start.claims.record if start.claims else {}
        asked = start.claims.asked if start.claims else {}
        return _Call(request, handler, states, start, Round(round_request, record, asked), channel)

    def _run(self, call: _Call) -> Result:
        """Run the round, once if it must not be repeated; a crash becomes a result."""
        if call.round.questions.actions:
            observability.current().answered_by = call.answered_by
        # The answers of a form count once wherever there is a table: a reopened chat shows an old form again.
        must_run_once = call.handler.single_use or (call.channel and call.handler.needs_table)
        state = call.start.claims  # a first round has none, and needs no claim: it ends before its first step
        try:
            result = self._run_once(call, state) if must_run_once and state else self._run_function(call)
        except Crash as crash:  # nothing was recorded for this round, so the same request may run again
            result = runner.crash_result(call.handler, crash)
        return Result(result, tuple(call.round.notifications))

    def _run_once(self, call: _Call, state: Claims) -> dict[str, Any]:
        """Run a round that must not run twice, or return its recorded result."""
        from mcp_functions.dispatch import single_use  # noqa: PLC0415 - imported at init, where a handler needs it

        handler = call.handler
        claim = single_use.RoundClaim(call.request, handler, state, self._make_table)
        result = claim.run(lambda: self._run_function(call), self._now())
        if result is None:
            return handler.error_result(NOT_KEPT)
        # The client may have restarted with other capabilities since the result was recorded.
        questions = result.get("inputRequests", {})
        lacking = missing_capabilities(questions.values(), call.request.capabilities)
        if not lacking:
            return result
        from mcp_functions.apps import channels  # noqa: PLC0415 - only for clients without elicitation

        earlier = META_CLIENT_REVISION in call.request.params["_meta"]
        return handler.error_result(channels.not_asked(handler, questions, lacking, earlier=earlier))

    def _run_function(self, call: _Call) -> dict[str, Any]:
        """Run the function. Return its result, or a result that asks its questions; the audit gets a record of both."""
        handler = call.handler
        call_as_task = None
        if self._tasks and handler.task and not call.channel:  # a form cannot follow a task
            call_as_task = partial(self._tasks.call, call.request)
        is_asked = False
        try:
            result = runner.run_round(handler, call.request.params, call.round, call_as_task)
            if result is None:
                result = self._ask(call)
                is_asked = True
        except ToolError as error:
            result = handler.error_result(str(error))
        finally:  # a round that fails has a record too
            if self._audit and handler.needs_state:
                from mcp_functions.rounds.audit import audit_record  # noqa: PLC0415 - only for serve(audit=…)

                self._audit(audit_record(call.round, handler.name, sent=is_asked, answered_by=call.answered_by))
        return result

    def _ask(self, call: _Call) -> dict[str, Any]:
        """Return the result that carries the questions of a round.

        Raises:
            ToolError: the user cannot be asked, or the conversation cannot continue; the text is for the model.

        """
        questions = call.round.requests  # empty if the round ended only because its time was up
        lacking = missing_capabilities(questions.values(), call.request.capabilities)
        if call.channel or lacking or not _client_continues(call.request, questions):
            return self._ask_by_channel(call, questions, lacking)
        token = self._seal(call, call.states, call.start.binding, call.round.next_record())
        # An empty `inputRequests` is sent too: one widespread client reads a result without it as the final one.
        return {"resultType": "input_required", "inputRequests": questions, "requestState": token}

    def _ask_by_channel(
        self, call: _Call, questions: Mapping[str, JSONObject], lacking: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a complete result that asks the questions: the client does not know `input_required` results.

        Raises:
            ToolError: the user cannot be asked this way either; the text is for the model.
            MissingRequiredClientCapability: the handler requires what the client lacks.
        """
        from mcp_functions.apps import asking, companions  # noqa: PLC0415 - only for clients without elicitation

        handler = call.handler
        request = call.request
        channel = asking.choose_channel(handler, request, call.channel, questions, lacking)
        states = self._channel_states(handler, channel)
        binding = companions.bind(channel, self._audience, handler.name, request.principal)
        # A call of the companion does not repeat the arguments of the tool, so the state has them.
        arguments = request.params.get("arguments") or {}
        token = self._seal(call, states, binding, {**call.round.next_record(), companions.ARGUMENTS: arguments})
        return asking.write_result(channel, handler, questions, token, self._now())

    def _seal(self, call: _Call, states: RequestStates | None, binding: Binding, record: Mapping[str, Any]) -> str:
        """Seal the state for the next round.

        Args:
            call: the call and its round.
            states: seals the state; None if the function has no keys.
            binding: the request to which the state will belong.
            record: what the next round must know.

        Raises:
            ToolError: the conversation cannot continue; the text is for the model.
            Crash: the author's function keeps a value that is not JSON.
            Misconfigured: the function has no keys.
        """
        handler = call.handler
        start = call.start
        if states is None:
            reason = f"{handler.name} asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
            raise Misconfigured(reason)
        asked = call.round.questions.open_fingerprints()
        try:
            return states.seal(binding, start.claims, asked=asked, record=record, flow=start.flow)
        # Both errors are hidden: the crash has its cause as an attribute, and the log has the limit.
        except DeveloperError as error:
            raise Crash(runner.crash_message(handler), error) from None
        except StateTooLarge as error:
            observability.current().reason = error.reason  # for the author, because the model cannot raise a limit
            raise ToolError(TOO_LARGE) from None


def _client_continues(request: Request, questions: Mapping[str, JSONObject]) -> bool:
    """Tell whether a client that can ask these questions sends the next request by itself.

    Without a question, it only has to repeat the request. Some clients that show no forms do not know that.
    """
    meta = request.params["_meta"]
    is_of_2025 = META_CLIENT_REVISION in meta  # `legacy` asks and continues for it
    if questions or is_of_2025 or shows_forms(request.capabilities):
        return True
    from mcp_functions.apps import hosts  # noqa: PLC0415 - only for clients without elicitation

    return hosts.carries_empty_rounds(meta, request.capabilities)
