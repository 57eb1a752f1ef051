"""A method finds its handler, and what the handler did becomes a result: the dispatch on `resultType`.

A handler that can do nothing but return is run at once; whatever else it may do is the business of `conversing`.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.handlers import catalog
from mcp_functions.handlers.playing import crashed, play
from mcp_functions.protocol import headers
from mcp_functions.protocol.constants import CALLS, LOG_LEVELS, META_LOG_LEVEL, TASKS
from mcp_functions.protocol.errors import Crash, InvalidParams, ResourceNotFound
from mcp_functions.protocol.messages import MAX_ID, Result, complete, is_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.dispatch.conversations import Conversations
    from mcp_functions.handlers import Completing, Handler
    from mcp_functions.protocol.messages import Request
    from mcp_functions.rounds.round import AuditRecord
    from mcp_functions.seal.request_state import RequestStates
    from mcp_functions.settings import Settings
    from mcp_functions.store import Table
    from mcp_functions.tasks import Tasks


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
        self._handlers: dict[str, dict[str, Handler[..., Any]]] = {}  # by family of methods, and by key
        for handler in handlers:
            family = catalog.CAPABILITIES[catalog.KINDS[handler.kind]]
            self._handlers.setdefault(family, {}).setdefault(handler.key, handler)
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

    def answer(self, request: Request) -> Result:
        """Answer one request that has been admitted.

        Raises:
            McpError: whatever was wrong with it, or with this server.

        """
        method = request.message["method"]
        if method in CALLS:
            return self._call(request)
        if method in TASKS and self._tasks:
            headers.admit_task(request.message, request.headers)
            request.must_take_tasks()
            return self._completed(self._tasks.answer(request))
        if method == "completion/complete":
            return self._completed(self._complete(request))
        return self._lists.answer(method, request.params)

    def _completed(self, result: Mapping[str, Any]) -> Result:
        return Result(complete(result, self._server_info))

    def _call(self, request: Request) -> Result:
        method, params = request.message["method"], request.params
        catalog.function_of(self._catalog, method, params)  # raises what the specification wants for an unknown name
        handler = self._named(method, params[CALLS[method]])
        notes = observability.current()
        notes.handler = handler.name
        self._permit(request, handler)
        catalog.check_parameters(handler.repeated, params, request.headers)
        _check_shape(method, params)
        carries = "requestState" in params
        if handler.alone and not carries:
            notes.round = 1
            answer = self._completed(_returned(handler, params))
        else:
            answer = self._conversations.play(request, handler)
        if "cacheScope" in answer.result and (carries or "inputResponses" in params):
            # "results of requests that carry inputResponses or requestState MUST NOT be cached"
            return answer._replace(result={**answer.result, "ttlMs": 0, "cacheScope": "private"})
        return answer

    @cached_property
    def _conversations(self) -> Conversations:
        from mcp_functions.dispatch.conversations import Conversations  # noqa: PLC0415 - imported at init, where a handler asks

        return Conversations(
            self._audience, self._states, self._table, server_info=self._server_info, now=self._now,
            audit=self._audit, tasks=self._tasks,
        )  # fmt: skip

    def _permit(self, request: Request, handler: Handler[..., Any]) -> None:
        if handler.scopes:
            from mcp_functions.http import access_tokens  # noqa: PLC0415 - only for who needs more than a caller

            access_tokens.permit(handler.name, handler.scopes, request.scopes, self._settings)

    def _named(self, method: str, name: str) -> Handler[..., Any]:
        fitting = self._handlers[method.partition("/")[0]]
        if name in fitting:
            return fitting[name]
        for handler in fitting.values():
            if handler.matches(name) is not None:
                return handler
        raise ResourceNotFound(name)

    def _complete(self, request: Request) -> dict[str, Any]:
        catalog.completing(self._catalog, request.params)
        handler = self._named(*catalog.referred(request.params))
        observability.current().handler = handler.name
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


def _returned(handler: Handler[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Run a handler that can do nothing but return."""
    try:
        return play(handler, params, None) or {}
    except Crash as crash:
        return crashed(handler, crash)


def _check_shape(method: str, params: Mapping[str, Any]) -> None:
    meta = params["_meta"]
    arguments, responses = params.get("arguments"), params.get("inputResponses", {})
    if not (arguments is None or isinstance(arguments, dict)):
        text = "params.arguments must be an object"
    elif method == "prompts/get" and not all(isinstance(v, str) for v in (arguments or {}).values()):
        text = "The arguments of a prompt must be strings"
    # "Servers SHOULD validate that the data provided by the client is a valid InputResponses object"
    elif not (isinstance(responses, dict) and all(isinstance(response, dict) for response in responses.values())):
        text = "params.inputResponses must be an object of objects"
    elif META_LOG_LEVEL in meta and meta[META_LOG_LEVEL] not in LOG_LEVELS:
        text = f"{META_LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}"
    elif "progressToken" in meta and not is_id(meta["progressToken"]):
        text = f"_meta.progressToken must be a string of at most {MAX_ID} characters, or an integer"
    else:
        return
    raise InvalidParams(text)
