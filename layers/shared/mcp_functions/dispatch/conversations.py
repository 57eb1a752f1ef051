"""Runs one request of a call that may ask its user.

    request 1     call book {"city": "Rome"}
    response 1    inputRequests {"seat": "Which seat?"}, requestState "ks1.a…"
    request 2     call book {"city": "Rome"}, inputResponses {"seat": "aisle"}, requestState "ks1.a…"
    response 2    the result of book

The requests of one call are a conversation, and each request is one round of it. A round has these parts:

    open the state        `requestState` is the sealed (encrypted) record of the earlier rounds: answers and steps
    run the function      from its first line, in every round; a question that has an answer by now returns it
    write the response    the function's result, or its questions with a new sealed state

A client without elicitation cannot ask its user. Its questions go another way (`apps`): the result is complete and has
them, and a second tool takes the answers, the answer tool `book-form` or `book-answer`.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.handlers import runner
from mcp_functions.protocol.errors import Crash, DeveloperError, Misconfigured, StateTooLarge, ToolError
from mcp_functions.protocol.messages import Result, is_asked_in_app, shows_forms
from mcp_functions.rounds.input_requests import missing_capabilities
from mcp_functions.rounds.round import History, Round, RoundOptions, RoundRequest
from mcp_functions.seal.request_state import start_round
from mcp_functions.settings import is_deployed
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.apps.answer_tools import AnswerTool
    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.dispatch.single_use import RoundClaim
    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import InputRequest, JSONObject
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.request_state import RequestStates, RoundStart
    from mcp_functions.tasks.methods import Tasks


class _Call(NamedTuple):
    """A call of a handler, and the round of it that this request runs."""

    # a call of the handler; a call of an answer tool was rewritten as one (`answer_calls`)
    request: Request
    handler: Handler[..., Any]
    start: RoundStart  # the verified state of the request, and what binds a state to this call
    round: Round
    # the answer tool that the request calls; None if it calls the handler itself
    answer_tool: AnswerTool | None

    @property
    def answered_by(self) -> str:
        """Who gave the answers of this request, for the audit and the log."""
        return self.answer_tool.answered_by if self.answer_tool else "client"


class Conversations:
    """Runs the rounds of the handlers of one Lambda."""

    def __init__(
        self,
        audience: str,
        seals: SealFactory | None,
        *,
        now: Callable[[], float] = time.time,
        audit: Callable[[AuditRecord], object] | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """Take the parts of one deployment; nothing is opened yet.

        Args:
            audience: the server for which states are sealed: "<service>/<stage>".
            seals: makes the states and the table of the function; None if it has no keys.
            now: the clock, in unix seconds.
            audit: the author's function that gets a record of each round.
            tasks: the tasks of the function; None if no call may become one.
        """
        self._audience = audience
        self._seals = seals
        self._now = now
        self._audit = audit
        self._tasks = tasks

    def run_round(self, request: Request, handler: Handler[..., Any]) -> Result:
        """Answer a request that calls the handler itself: the first one of a call, or one with a state and answers."""
        # A handler that never asks gets no honest state. It opens states too, so every handler refuses a forged one.
        needs_states = handler.needs_state or "requestState" in request.params
        states = self._states_of(handler) if needs_states else None
        start = start_round(self._audience, request, states)
        return self._answer(self._begin(request, handler, start))

    def run_answer_tool(self, request: Request, handler: Handler[..., Any], name: str) -> Result:
        """Answer a request that calls the answer tool of this name, with a state and answers, for a tool."""
        # only for clients without elicitation
        from mcp_functions.apps import answer_calls

        answer_tool = answer_calls.find_answer_tool(name, request.capabilities)
        states = self._states_of(handler, answer_tool)
        continued = answer_calls.open_call(answer_tool, handler.name, request, self._audience, states)
        call = self._begin(continued.request, handler, continued.start, answer_tool)
        return self._confirm_open(call) if continued.is_check else self._answer(call)

    def _confirm_open(self, call: _Call) -> Result:
        """Answer a form of a reopened chat, which asks if its question is still open. Otherwise an error says so."""
        # only for clients without elicitation
        from mcp_functions.apps import asking

        claim = self._find_claim(call)
        if claim:
            claim.check_unused()
        return Result(asking.result_for_check())

    def _states_of(self, handler: Handler[..., Any], answer_tool: AnswerTool | None = None) -> RequestStates | None:
        """Return the object that opens and seals the states of a handler; None if the function has no keys."""
        if self._seals is None:
            return None
        if answer_tool:
            return self._seals.states(handler.answer_within, answer_tool.label)
        return self._seals.states(handler.answer_within)

    def _begin(
        self, request: Request, handler: Handler[..., Any], start: RoundStart, answer_tool: AnswerTool | None = None
    ) -> _Call:
        """Begin a round with what its request brings, and with what its state says about the earlier rounds."""
        notes = observability.current()
        notes.round = start.number
        notes.flow = start.flow or None
        round_request = RoundRequest(
            responses=cast("dict[str, JSONObject]", request.params.get("inputResponses", {})),
            capabilities=request.capabilities,
            meta=request.params["_meta"],
            principal=request.principal,
            scopes=request.scopes,
            deadline=request.gateway_deadline,
            now=self._now,
        )
        history = History(start.flow, start.number)
        if start.claims:
            history = History(start.flow, start.number, start.claims.record, start.claims.asked)
        options = RoundOptions(
            camel_case=handler.camel_case,
            max_sheds=handler.max_sheds,
            single_use=handler.single_use is not None,
            has_app=handler.may_show_form and is_asked_in_app(request.capabilities),
        )
        round_ = Round(round_request, history, options)
        return _Call(request=request, handler=handler, start=start, round=round_, answer_tool=answer_tool)

    def _answer(self, call: _Call) -> Result:
        """Run the round and return its result, or the recorded result of a round that must not run twice."""
        if call.round.questions.actions:
            observability.current().answered_by = call.answered_by
        claim = self._find_claim(call)
        try:
            result = claim.run(partial(self._run_handler, call), self._now()) if claim else self._run_handler(call)
        # nothing was recorded for this round, so the same request may run again
        except Crash as crash:
            result = runner.crash_result(call.handler, crash)
        return Result(result, tuple(call.round.notifications))

    def _find_claim(self, call: _Call) -> RoundClaim | None:
        """Return the claim of a round that must run only once; None if the round may run again."""
        if self._seals is None or call.start.claims is None or not call.handler.needs_table:
            return None  # without a state, nothing recognizes a repeated request
        # imported at init, where needed
        from mcp_functions.dispatch import single_use

        single_use.check_table(call.start.claims.record, self._seals.table_name)
        by_answer_tool = call.answer_tool is not None
        return single_use.find_claim(call.request, call.handler, call.start.claims, self._seals, by_answer_tool)

    def _run_handler(self, call: _Call) -> dict[str, Any]:
        """Run the author's function. Return its result, or a result with its questions."""
        handler = call.handler
        call_as_task = None
        # neither a form nor a model asks for a task's result
        if self._tasks and handler.task and not call.answer_tool:
            call_as_task = partial(self._tasks.call, call.request)
        is_asked = False
        try:
            result = runner.run_round(handler, call.request.params, call.round, call_as_task)
            if result is None:
                result = self._ask(call)
                is_asked = True
        except ToolError as error:
            result = runner.error_result(handler, str(error))
        finally:  # the author gets a record of a round that fails, too
            self._report(call, is_asked=is_asked)
        return result

    def _report(self, call: _Call, *, is_asked: bool) -> None:
        """Give the record of a round to the author's function, `serve(audit=…)`."""
        if self._audit and call.handler.needs_state:
            # few functions have it
            from mcp_functions.rounds.audit import audit_record

            self._audit(audit_record(call.round, call.handler.name, sent=is_asked, answered_by=call.answered_by))

    def _ask(self, call: _Call) -> dict[str, Any]:
        """Return the result with the questions of a round, and the sealed state for the next one.

        Raises:
            ToolError: the user cannot be asked, or the conversation cannot continue; the text is for the model.
        """
        questions = call.round.requests  # empty if the round shed work, because its time was up
        if call.answer_tool or not _client_continues(call.request, questions):
            return self._ask_without_elicitation(call)
        token = self._seal(call, call.start.binding, call.round.next_record())
        # An empty `inputRequests` is sent too: one widespread client reads a result without it as the final one.
        return {"resultType": "input_required", "inputRequests": questions, "requestState": token}

    def _ask_without_elicitation(self, call: _Call) -> dict[str, Any]:
        """Return a complete result with the questions of a round, and a sealed state. An answer tool takes the answers.

        Raises:
            ToolError: as `_ask`.
        """
        handler, request, questions = call.handler, call.request, call.round.requests
        if not is_deployed("apps"):
            # only for clients without elicitation
            from mcp_functions.rounds import unfinished

            missing = missing_capabilities(questions.values(), request.capabilities)
            raise ToolError(unfinished.explain(handler, questions, missing, request.params["_meta"]))
        # only for clients without elicitation
        from mcp_functions.apps import answer_calls, asking

        answer_tool = asking.choose_answer_tool(handler, questions, request, call.answer_tool)
        binding = answer_calls.bind_state(answer_tool, self._audience, handler.name, request.principal)
        record = call.round.next_record()
        # A call of the answer tool does not repeat the arguments of the tool, so the state has them.
        record[answer_calls.ARGUMENTS_KEY] = request.params.get("arguments") or {}
        state = self._seal(call, binding, record, answer_tool)
        result = asking.make_result(answer_tool, handler, questions, state, self._now())
        return cast("dict[str, Any]", result)

    def _seal(
        self, call: _Call, binding: Binding, record: Mapping[str, Any], answer_tool: AnswerTool | None = None
    ) -> str:
        """Seal the record of this round as the state for the next one, which belongs to the request of the binding.

        Raises:
            ToolError: the conversation cannot continue; the text is for the model.
            Crash: the author's function keeps a value that is not JSON.
        """
        states = self._states_of(call.handler, answer_tool)
        if states is None:
            reason = f"{call.handler.name} asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
            raise Misconfigured(reason)
        if self._seals and call.handler.needs_table:
            # imported at init, where needed
            from mcp_functions.dispatch import single_use

            record = single_use.note_table(record, self._seals.table_name)
        start = call.start
        asked = call.round.questions.open_fingerprints()
        try:
            return states.seal(binding, start.claims, asked=asked, record=record, flow=start.flow)
        except DeveloperError as error:
            # `Crash.cause` has the error
            raise Crash(runner.crash_message(call.handler), error) from None
        except StateTooLarge as error:
            # the author reads the size and the limit in the log
            observability.current().reason = error.reason
            message = "This conversation has more to remember than it can carry. Answer more briefly."
            raise ToolError(message) from None


def _client_continues(request: Request, questions: Mapping[str, InputRequest]) -> bool:
    """Tell whether the client sends the next request after an `input_required` result, with all answers."""
    if questions:
        return not missing_capabilities(questions.values(), request.capabilities)
    # The client only has to repeat its request with the new state.
    if shows_forms(request.capabilities) or not is_deployed("apps"):
        return True
    # only for clients without elicitation
    from mcp_functions.apps import hosts

    return hosts.continues_calls(request.params["_meta"], request.capabilities)
