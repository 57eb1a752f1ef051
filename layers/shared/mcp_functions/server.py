"""A method finds its handler, and what the handler did becomes a result: the dispatch on `resultType`.

This is the one place that opens and seals a `requestState`. The state is checked before anything of the request is
believed, also for a handler that would not have read it; it is sealed when the signal `InputRequired` ends a round.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import catalog, headers, observing
from mcp_functions.errors import (
    InvalidParams,
    InvalidRequestState,
    Misconfigured,
    MissingRequiredClientCapability,
    ResourceNotFound,
    StateTooLarge,
)
from mcp_functions.handlers.playing import play, returned
from mcp_functions.messages import Answer, complete
from mcp_functions.names import CALLS, LOG_LEVELS, META_LOG_LEVEL, TASKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers import Completing, Handler
    from mcp_functions.messages import Request, Written
    from mcp_functions.request_state import Binding, Opened, RequestStates
    from mcp_functions.rounds import AuditRecord, Round
    from mcp_functions.settings import Settings
    from mcp_functions.table import Table
    from mcp_functions.tasks import Tasks

NO_TABLE = "MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the table, the key and their policies"

NONE: Mapping[str, Any] = {}


class Server:
    """Answers for the handlers of one Lambda.

    Args:
        handlers: what this Lambda offers.
        settings: what the deployment decided.
        audience: who may read a state sealed here, `<stack>/<function>/<stage>`.
        states: makes what seals and opens for a lifetime in seconds; None where this Lambda may not ask.
        table: makes what keeps items for at most as many seconds; None where there is none.
        now: the clock, unix seconds.
        audit: is told of every round of a handler that may ask.
        tasks: keeps calls that became tasks; None where none may.

    """

    def __init__(  # noqa: PLR0913 - what one deployment of some handlers consists of
        self,
        handlers: Sequence[Handler[..., Any]],
        settings: Settings,
        audience: str,
        states: Callable[[int], RequestStates] | None,
        table: Callable[[int], Table] | None = None,
        *,
        now: Callable[[], float] = time.time,
        audit: Callable[[AuditRecord], object] | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """Describe the handlers once, for every list to come."""
        self._handlers = handlers
        self._settings = settings
        self._audience = audience
        self._states = states
        self._table = table
        self._now = now
        self._audit = audit
        self._tasks = tasks
        self._catalog = catalog.of(handlers)
        self._lists = catalog.Lists(self._catalog, settings)
        self._server_info = settings.server_info
        self._found: dict[tuple[str, str], Handler[..., Any]] = {}  # by method and name, once each was asked for

    def answer(self, request: Request) -> Answer | Written:
        """Answer one request that has been admitted.

        Raises:
            McpError: whatever was wrong with it, or with this server.

        """
        method, params = request.message["method"], request.params
        if method in CALLS:
            return self._call(request)
        if method in TASKS and self._tasks:
            headers.admit_task(request.message, request.headers)
            request.must_take_tasks()
            return self._completed(self._tasks.answer(request))
        if method == "completion/complete":
            return self._completed(self._complete(request))
        return self._lists.answer(method, params)

    def _completed(self, result: dict[str, Any], notifications: Sequence[dict[str, Any]] = ()) -> Answer:
        return Answer(complete(result, self._server_info), tuple(notifications))

    def _call(self, request: Request) -> Answer:
        handler = self._handler(request.message["method"], request.params)
        notes = observing.current()
        notes.handler = handler.name
        self._permit(request, handler)
        if handler.repeated:
            catalog.check_declared(handler.repeated, request.params, request.headers)
        _check_shape(request)
        carries = "requestState" in request.params
        if handler.alone and not carries:
            notes.round = 1
            answer = self._completed(returned(handler, request.params))
        else:
            answer = self._converse(request, handler)
        if carries or "inputResponses" in request.params:
            answer = answer._replace(result=_uncached(answer.result))
        return answer

    def _converse(self, request: Request, handler: Handler[..., Any]) -> Answer:
        from mcp_functions.request_state import binding  # noqa: PLC0415 - imported at init, where a handler may need it

        # Bound to what the client sent: before the handler runs, for authors do change their arguments.
        bound = binding(self._audience, request.message["method"], request.params, request.principal)
        opened = self._open(request, handler, bound)
        round_ = self._round(request, handler, opened)
        if handler.single_use and opened:  # a first round does nothing that counts (`Round.anchor`)
            result = self._once(request, handler, bound, opened, round_)
        else:
            result = self._played(request, handler, bound, opened, round_)
        return self._completed(result, round_.notifications)

    def _once(
        self, request: Request, handler: Handler[..., Any], bound: Binding, opened: Opened, round_: Round
    ) -> dict[str, Any]:
        """Run a round that must not run twice."""
        from mcp_functions import single_use  # noqa: PLC0415 - imported at init, where a handler needs it
        from mcp_functions.input_requests import missing  # noqa: PLC0415

        if self._table is None:
            raise Misconfigured(NO_TABLE)
        params = request.params
        used = single_use.presented(opened, bound.principal, params["requestState"], params.get("inputResponses", {}))
        result = single_use.once(
            self._table(single_use.max_age(handler.answer_within)),
            handler.single_use or "reject",
            used,
            lambda: self._played(request, handler, bound, opened, round_),
            now=self._now,
            until=request.ends,
        )
        if result is None:
            return handler.failed("This was done before, and its answer was not kept.")
        # whoever asks again may have been restarted, as another client
        if lacking := missing(result.get("inputRequests", {}).values(), request.capabilities):
            raise MissingRequiredClientCapability(lacking)
        return result

    def _played(
        self, request: Request, handler: Handler[..., Any], bound: Binding, opened: Opened | None, round_: Round
    ) -> dict[str, Any]:
        """Run the round, and tell the author's audit what was asked and answered in it, also if it failed."""
        result: dict[str, Any] | None = None
        try:
            runs = self._tasks.instead_of(handler, request) if self._tasks and handler.task else handler
            result = play(runs, request.params, round_)
            if result is None:
                result = self._input_required(request, handler, bound, opened, round_)
            return result
        finally:
            if self._audit and handler.asks:
                sent = result is not None and result.get("resultType") == "input_required"
                self._audit(round_.audit(handler.name, bound.principal, sent=sent))

    def _round(self, request: Request, handler: Handler[..., Any], opened: Opened | None) -> Round:
        from mcp_functions.rounds import Round  # noqa: PLC0415 - as above

        flow = opened.flow if opened else ""
        if handler.asks and self._states and not opened:
            flow = self._states(handler.answer_within).new_flow()
        notes = observing.current()
        notes.round = opened.round + 1 if opened else 1
        notes.flow = observing.digest(flow) if flow else None
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

    def _permit(self, request: Request, handler: Handler[..., Any]) -> None:
        if handler.scopes:
            from mcp_functions import tokens  # noqa: PLC0415 - only for who needs more than a caller

            tokens.permit(handler.name, handler.scopes, request.scopes, self._settings)

    def _handler(self, method: str, params: dict[str, Any]) -> Handler[..., Any]:
        name = params.get(CALLS[method])
        if isinstance(name, str) and (known := self._found.get((method, name))):
            return known
        catalog.function_of(self._catalog, method, params)  # raises what the specification wants for an unknown name
        handler = self._named(method, params[CALLS[method]])
        if handler.key == name:  # a template has more names than could be kept
            self._found[method, handler.key] = handler
        return handler

    def _named(self, method: str, name: str) -> Handler[..., Any]:
        family = method.partition("/")[0]
        fitting = [handler for handler in self._handlers if catalog.CAPABILITIES[catalog.KINDS[handler.kind]] == family]
        for handler in fitting:
            if handler.key == name:
                return handler
        for handler in fitting:
            if handler.matches(name) is not None:
                return handler
        raise ResourceNotFound(name)

    def _open(self, request: Request, handler: Handler[..., Any], bound: Binding) -> Opened | None:
        if "requestState" not in request.params:
            return None
        token = request.params["requestState"]
        if self._states is None or not isinstance(token, str):
            reason = "shape" if self._states else "function_has_no_keys"
            raise InvalidRequestState(reason)
        caller = bound.principal or request.address  # whom to charge for a token that is no good
        return self._states(handler.answer_within).open(token, bound, caller=caller)

    def _input_required(
        self, request: Request, handler: Handler[..., Any], bound: Binding, opened: Opened | None, round_: Round
    ) -> dict[str, Any]:
        from mcp_functions.input_requests import missing  # noqa: PLC0415 - as above
        from mcp_functions.request_state import RoundBudgetExceeded  # noqa: PLC0415

        # "MUST NOT send an inputRequests that the client has not declared support for in its capabilities"
        if lacking := missing(round_.requests.values(), request.capabilities):
            raise MissingRequiredClientCapability(lacking)
        if self._states is None:
            reason = f"{handler.name} asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
            raise Misconfigured(reason)
        states = self._states(handler.answer_within)
        try:
            token = states.seal(bound, opened, asked=round_.leave_asked(), record=round_.leave(), flow=round_.flow)
        except RoundBudgetExceeded as error:
            return handler.failed(str(error))
        except StateTooLarge as error:
            observing.current().reason = error.reason  # for the author; the model cannot raise a limit
            return handler.failed("This conversation has more to remember than it can carry. Answer more briefly.")
        # `inputRequests` is there even when it is empty: one widespread client takes its absence for a final result.
        return {"resultType": "input_required", "inputRequests": round_.requests, "requestState": token}

    def _complete(self, request: Request) -> dict[str, Any]:
        catalog.completing(self._catalog, request.params)
        handler = self._named(*catalog.referred(request.params))
        observing.current().handler = handler.name
        self._permit(request, handler)
        match request.params.get("argument"):
            case {"name": str(name), "value": str(value)}:
                context = request.params.get("context", {})
                known = context.get("arguments", {}) if isinstance(context, dict) else None
                if isinstance(known, dict) and all(isinstance(other, str) for other in known.values()):
                    return cast("Completing[..., Any]", handler).completion(name, value, known)
                text = "params.context.arguments must be an object of strings"
            case _:
                text = 'params.argument must be {"name": …, "value": …}, both strings'
        raise InvalidParams(text)


def _check_shape(request: Request) -> None:
    params, meta = request.params, request.params["_meta"]
    arguments, responses = params.get("arguments"), params.get("inputResponses", NONE)
    if not (arguments is None or isinstance(arguments, dict)):
        text = "params.arguments must be an object"
    elif request.message["method"] == "prompts/get" and not all(isinstance(v, str) for v in (arguments or {}).values()):
        text = "The arguments of a prompt must be strings"
    # "Servers SHOULD validate that the data provided by the client is a valid InputResponses object"
    elif responses is not NONE and not _are_objects(responses):
        text = "params.inputResponses must be an object of objects"
    elif META_LOG_LEVEL in meta and meta[META_LOG_LEVEL] not in LOG_LEVELS:
        text = f"{META_LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}"
    elif "progressToken" in meta and type(meta["progressToken"]) not in (str, int):
        text = "_meta.progressToken must be a string or an integer"
    else:
        return
    raise InvalidParams(text)


def _are_objects(responses: object) -> bool:
    return isinstance(responses, dict) and all(isinstance(response, dict) for response in responses.values())


def _uncached(result: Mapping[str, Any]) -> Mapping[str, Any]:
    # "results of requests that carry inputResponses or requestState MUST NOT be cached"
    return {**result, "ttlMs": 0, "cacheScope": "private"} if "cacheScope" in result else result
