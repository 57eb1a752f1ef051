"""Chooses what answers a request, by its method and by the name in its params.

A handler that needs no round (`needs_round`) runs here. The call of any other handler may take several requests: it
is a conversation, and `conversations` runs each request as one round of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.handlers import catalog, lookup
from mcp_functions.handlers.runner import crash_result, run_round
from mcp_functions.protocol.constants import (
    CALL_METHODS,
    DISCOVERY_METHODS,
    LOG_LEVELS,
    META_LOG_LEVEL,
    TASK_METHODS,
)
from mcp_functions.protocol.errors import Crash, InvalidParams, MethodNotFound
from mcp_functions.protocol.messages import MAX_ID_CHARS, Result, complete, is_dict_of, is_id, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.dispatch.conversations import Conversations
    from mcp_functions.handlers.base import Handler
    from mcp_functions.handlers.completions import CompletableHandler
    from mcp_functions.handlers.lists import Lists
    from mcp_functions.handlers.lookup import Target
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import Params, ResultObject
    from mcp_functions.settings import Settings
    from mcp_functions.tasks.methods import Tasks


class Dispatcher:
    """Answers requests for the handlers of one Lambda, which `catalog` describes."""

    def __init__(
        self,
        handlers: Sequence[Handler[..., Any]],
        settings: Settings,
        make_conversations: Callable[[], Conversations],
        tasks: Tasks | None = None,
        shown: Catalog | None = None,
    ) -> None:
        """Index the handlers. Their catalog is `shown`, or else that of all of them.

        The first request that needs rounds calls `make_conversations`; `tasks` is None if no call may become one.
        """
        # By their list and their key: ("tools", "book"), or ("resources", "file:///terms").
        self._handlers = {(catalog.LISTS_BY_KIND[handler.kind], handler.key): handler for handler in handlers}
        self.catalog = catalog.deployed_part(catalog.build(handlers) if shown is None else shown)
        self._settings = settings
        self._tasks = tasks
        self._make_conversations = make_conversations
        self._server_info = catalog.server_info(self.catalog, settings.server_info)
        task_methods = TASK_METHODS if tasks and self.catalog.get("tasks") else ()
        # What answers each method; a later row counts more. This function has no other method.
        self._methods: dict[str, Callable[[Request], Result]] = {
            **dict.fromkeys(DISCOVERY_METHODS, self._list),  # discovery and lists
            **dict.fromkeys(self.catalog.get("methods", ()), self._pass_on),  # extensions
            **dict.fromkeys(task_methods, self._answer_task),  # tasks
            "completion/complete": self._complete_argument,  # completions of arguments
            **dict.fromkeys(CALL_METHODS, self._call),  # tools, prompts and resources
        }

    def showing(self, shown: Catalog) -> Dispatcher:
        """Return a dispatcher of the same handlers with another catalog."""
        handlers = tuple(self._handlers.values())
        return Dispatcher(handlers, self._settings, lambda: self._conversations, self._tasks, shown)

    def answer(self, request: Request) -> Result:
        """Answer one request whose headers have been checked; McpError if this function or its handler refuses it."""
        if request.method not in self._methods:
            raise MethodNotFound
        return self._methods[request.method](request)

    def _call(self, request: Request) -> Result:
        """Find the handler that a call names, check the call, and run the handler."""
        method = request.method
        params = request.params
        if lookup.asks_for_form(self.catalog, method, params):
            return lookup.form_result(self._server_info)
        target = lookup.find(self.catalog, method, params)
        handler = self._authorize(request, target)
        # The arguments of an answer tool are a state and answers, which no header repeats.
        if not target.answer_tool:
            lookup.check_headers(handler.header_arguments, params, request.headers)
        _check_params(method, params)
        outcome = self._run(request, handler, target.answer_tool)
        result = _limit_caching(cast("ResultObject", outcome.result), params, is_hidden=handler.hide_without_scopes)
        return Result(complete(result, self._server_info), outcome.notifications)

    def _run(self, request: Request, handler: Handler[..., Any], answer_tool: str) -> Result:
        """Run a handler, for a call of itself or of its answer tool.

        An answer tool is a second tool, `<tool>-form` or `<tool>-answer`. It brings the answers of a client that cannot
        ask its user (`apps.answer_tools`).
        """
        if answer_tool:
            return self._conversations.run_answer_tool(request, handler, answer_tool)
        # A request with a state always goes through `conversations`, so that a forged state is refused everywhere.
        if not handler.needs_round and "requestState" not in request.params:
            return Result(_run_alone(request, handler))
        return self._conversations.run_round(request, handler)

    def _authorize(self, request: Request, target: Target) -> Handler[..., Any]:
        """Return the handler of a target, if the caller may use it."""
        handler = self._handlers[target.list_name, target.key]
        self._check_scopes(request, handler)
        return handler

    def _check_scopes(self, request: Request, handler: Handler[..., Any]) -> None:
        """Check that the caller's token has the scopes of a handler. The log names the handler in any case."""
        observability.current().handler = handler.name
        if handler.scopes or handler.restricted_by:
            from mcp_functions.http import access_tokens

            access_tokens.require_scopes(handler, request, self._settings)

    def _answer_task(self, request: Request) -> Result:
        """Answer a request about a task."""
        assert self._tasks  # noqa: S101 - only then is this method a row
        return self._complete(self._tasks.answer(request))

    def _pass_on(self, request: Request) -> Result:
        """Answer a request of an extension, with the adopted server that has the extension."""
        handler = next(each for each in self._handlers.values() if request.method in each.extension_methods)
        self._check_scopes(request, handler)
        return self._complete(handler.pass_on(request))

    def _complete_argument(self, request: Request) -> Result:
        """Suggest values for an argument that a user types, perhaps from the values of other arguments."""
        handler = self._authorize(request, lookup.find_reference(self.catalog, request.params))
        argument, other_arguments = _read_completion(request.params)
        if handler.passes_on:
            return self._complete(handler.pass_on(request))
        completable = cast("CompletableHandler[..., Any]", handler)
        return self._complete(completable.find_completions(argument["name"], argument["value"], other_arguments))

    def _list(self, request: Request) -> Result:
        """Answer discovery or a list."""
        return self._lists.answer(request.method, request.params)

    def _complete(self, result: ResultObject) -> Result:
        """Add what every result has."""
        return Result(complete(result, self._server_info))

    @cached_property
    def _conversations(self) -> Conversations:
        """What runs the rounds of handlers that need one."""
        return self._make_conversations()

    @cached_property
    def _lists(self) -> Lists:
        """What answers discovery and lists. Most requests are calls."""
        from mcp_functions.handlers.lists import Lists

        return Lists(self.catalog, self._settings)


def _run_alone(request: Request, handler: Handler[..., Any]) -> ResultObject:
    """Run a handler that needs no round."""
    observability.current().round = 1
    try:
        return run_round(handler, request.params, None) or {}
    except Crash as crash:
        return crash_result(handler, crash)


def _limit_caching(result: ResultObject, params: Params, *, is_hidden: bool) -> ResultObject:
    """Forbid clients to cache a result that depends on more than the URI, and caches to share what is hidden.

    "results of requests that carry inputResponses or requestState MUST NOT be cached" (server/utilities/caching).
    """
    is_of_conversation = "requestState" in params or "inputResponses" in params
    if is_of_conversation and "cacheScope" in result:
        return {**result, "ttlMs": 0, "cacheScope": "private"}
    if is_hidden and "cacheScope" in result:
        return {**result, "cacheScope": "private"}
    return result


def _read_completion(params: Params) -> tuple[dict[str, str], dict[str, str]]:
    """Read the argument that a user types, and the other ones; refuse another shape (server/utilities/completion)."""
    argument = params.get("argument")
    if not isinstance(value_at(argument, "name"), str) or not isinstance(value_at(argument, "value"), str):
        raise InvalidParams(message='params.argument must be {"name": …, "value": …}, both strings')
    context = params.get("context", {})
    others: Any = context.get("arguments", {}) if isinstance(context, dict) else None
    if not is_dict_of(str, others):
        raise InvalidParams(message="params.context.arguments must be an object of strings")
    return cast("dict[str, str]", argument), others


def _check_params(method: str, params: Params) -> None:
    """Check the shapes of the params that every call may have."""
    meta = params["_meta"]
    arguments = params.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidParams(message="params.arguments must be an object")
    if method == "prompts/get" and arguments and not is_dict_of(str, arguments):
        raise InvalidParams(message="The arguments of a prompt must be strings")
    # "Servers SHOULD validate that the data provided by the client is a valid InputResponses object"
    if "inputResponses" in params and not is_dict_of(dict, params["inputResponses"]):
        raise InvalidParams(message="params.inputResponses must be an object of objects")
    if META_LOG_LEVEL in meta and meta[META_LOG_LEVEL] not in LOG_LEVELS:
        raise InvalidParams(message=f"{META_LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}")
    if "progressToken" in meta and not is_id(meta["progressToken"]):
        raise InvalidParams(
            message=f"_meta.progressToken must be a string of at most {MAX_ID_CHARS} characters, or an integer"
        )
