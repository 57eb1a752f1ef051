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
    from collections.abc import Callable

    from mcp_functions.apps.answer_tools import AnswerTool
    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.dispatch.single_use import RoundClaim
    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import JSONObject, ResultObject
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.request_state import RequestStates, RoundStart
    from mcp_functions.tasks.methods import Tasks


class RoundOfCall(NamedTuple):
    """The round of a call that this request runs."""

    request: Request  # calls the handler; a call of an answer tool was rewritten (`answer_calls`)
    handler: Handler[..., Any]
    start: RoundStart  # the verified state of the request, and what binds a state to this call
    round: Round
    answer_tool: AnswerTool | None  # that the client calls; None if it calls the handler itself

    @property
    def answered_by(self) -> str:
        """Who gave the answers of this request, for the audit and the log."""
        return self.answer_tool.answered_by if self.answer_tool else "client"

    @property
    def client_continues(self) -> bool:
        """Whether the client sends the next request after an `input_required` result, with all answers."""
        if self.answer_tool:
            return False
        declared = self.request.capabilities
        if self.round.requests:
            return not missing_capabilities(self.round.requests.values(), declared)
        # The client only has to repeat its request with the new state.
        if shows_forms(declared) or not is_deployed("apps"):
            return True
        from mcp_functions.apps import hosts

        return hosts.continues_calls(self.request.params["_meta"], declared)


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

        States are sealed for the audience "<service>/<stage>"; `seals` is None if the function has no keys. The
        author's `audit` gets a record of each round, and `tasks` is None if no call may become one.
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
        from mcp_functions.apps import answer_calls

        answer_tool = answer_calls.find_answer_tool(name, request.capabilities)
        states = self._states_of(handler, answer_tool)
        continued = answer_calls.open_call(answer_tool, handler.name, request, self._audience, states)
        current = self._begin(continued.request, handler, continued.start, answer_tool)
        return self._confirm_open(current) if continued.is_check else self._answer(current)

    def _confirm_open(self, current: RoundOfCall) -> Result:
        """Answer a form of a reopened chat, which asks if its question is still open. Otherwise an error says so."""
        from mcp_functions.apps import asking

        claim = self._find_claim(current)
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
    ) -> RoundOfCall:
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
        return RoundOfCall(request, handler, start, Round(round_request, history, options), answer_tool)

    def _answer(self, current: RoundOfCall) -> Result:
        """Run the round and return its result, or the recorded result of a round that must not run twice."""
        if current.round.questions.actions:
            observability.current().answered_by = current.answered_by
        claim = self._find_claim(current)
        run = partial(self._run, current)
        try:
            result = claim.run(run, self._now()) if claim else run()
        except Crash as crash:  # nothing was recorded, so the same request may run again
            result = runner.crash_result(current.handler, crash)
        return Result(result, tuple(current.round.notifications))

    def _find_claim(self, current: RoundOfCall) -> RoundClaim | None:
        """Return the claim of a round that must run only once; None if the round may run again."""
        state = current.start.claims  # without one, nothing recognizes a repeated request
        if self._seals is None or state is None or not current.handler.needs_table:
            return None
        from mcp_functions.dispatch import single_use

        return single_use.find_claim(
            current.request, current.handler, state, self._seals, is_by_answer_tool=current.answer_tool is not None
        )

    def _run(self, current: RoundOfCall) -> ResultObject:
        """Run the author's function. Return its result, or a result with its questions."""
        is_asked = False
        try:
            params = current.request.params
            result = runner.run_round(current.handler, params, current.round, self._call_as_task(current))
            if result is None:
                result = self._ask(current)
                is_asked = True
        except ToolError as error:
            result = runner.error_result(current.handler, str(error))
        finally:  # the author gets a record of a round that fails, too
            self._report(current, is_asked=is_asked)
        return result

    def _call_as_task(self, current: RoundOfCall) -> Callable[..., ResultObject] | None:
        """Return what takes the place of `handler.call`, if the call may become a task.

        A client that calls an answer tool knows no tasks: neither a form nor a model asks for a task's result.
        """
        if self._tasks and current.handler.task and not current.answer_tool:
            return partial(self._tasks.call, current.request)
        return None

    def _report(self, current: RoundOfCall, *, is_asked: bool) -> None:
        """Give the record of a round to the author's function, `serve(audit=…)`."""
        if self._audit and current.handler.needs_state:
            from mcp_functions.rounds.audit import audit_record

            answered_by = current.answered_by
            self._audit(audit_record(current.round, current.handler.name, sent=is_asked, answered_by=answered_by))

    def _ask(self, current: RoundOfCall) -> ResultObject:
        """Return the result with the questions of a round, and the sealed state for the next one."""
        if not current.client_continues:
            return self._ask_without_elicitation(current)
        state = self._seal(current)
        # There is no question if the round shed work, because its time was up. Also an empty `inputRequests` is sent:
        # one widespread client reads a result without it as the final one.
        return {"resultType": "input_required", "inputRequests": current.round.requests, "requestState": state}

    def _ask_without_elicitation(self, current: RoundOfCall) -> ResultObject:
        """Return a complete result with the questions and a sealed state. An answer tool takes the answers."""
        handler, request, questions = current.handler, current.request, current.round.requests
        if not is_deployed("apps"):
            from mcp_functions.rounds import unfinished

            missing = missing_capabilities(questions.values(), request.capabilities)
            raise ToolError(unfinished.explain(handler, questions, missing, request.params["_meta"]))
        from mcp_functions.apps import asking

        answer_tool = asking.choose_answer_tool(handler, questions, request, current.answer_tool)
        state = self._seal(current, answer_tool)
        return asking.make_result(answer_tool, handler, questions, state, self._now())

    def _seal(self, current: RoundOfCall, answer_tool: AnswerTool | None = None) -> str:
        """Seal the record of this round as the state for the next one, which a call of the answer tool may bring.

        Raises:
            ToolError: the conversation cannot continue; the text is for the model.
            Crash: the author's function keeps a value that is not JSON.
        """
        try:
            return self._seal_record(current, answer_tool)
        except DeveloperError as error:
            raise Crash(runner.crash_message(current.handler), error) from None
        except StateTooLarge as error:
            observability.current().reason = error.reason  # the author reads the limit in the log
            raise ToolError("This conversation has more to remember than it can carry. Answer more briefly.") from None

    def _seal_record(self, current: RoundOfCall, answer_tool: AnswerTool | None) -> str:
        handler, start = current.handler, current.start
        states = self._states_of(handler, answer_tool)
        if self._seals is None or states is None:
            raise Misconfigured(
                f"{handler.name} asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
            )
        binding = start.binding
        record: dict[str, Any] = {**current.round.next_record()}
        if answer_tool:
            from mcp_functions.apps import answer_calls

            binding = answer_calls.bind_state(answer_tool, self._audience, handler.name, current.request.principal)
            # A call of the answer tool does not repeat the arguments of the tool, so the state has them.
            record[answer_calls.ARGUMENTS_KEY] = current.request.params.get("arguments") or {}
        if handler.needs_table:
            from mcp_functions.dispatch import single_use

            record[single_use.TABLE_KEY] = single_use.digest_table(self._seals.table_name)
        asked = current.round.questions.open_fingerprints()
        return states.seal(binding, start.claims, asked=asked, record=record, flow=start.flow)
