"""SEP-2322's persistent workflow, as it was proposed: other names for the tasks of the released extension.

The client asks for a task with `params.task`. `tasks/get` returns the status, `tasks/result` the questions or the
result, and `tasks/input_response` receives the answers.
Every request becomes a request of the released extension, and its result is translated back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.dialects import turn_state
from mcp_functions.dialects.dialect import Dialect, declaration
from mcp_functions.protocol import headers
from mcp_functions.protocol.constants import EXTENSION_TASKS, META_CLIENT_CAPABILITIES, META_SERVER_INFO
from mcp_functions.protocol.errors import (
    InvalidParams,
    InvalidRequestState,
    McpError,
    MissingRequiredClientCapability,
    UnknownName,
)
from mcp_functions.protocol.messages import Result
from mcp_functions.seal.binding import Binding, caller_id, principal_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dialects.dialect import DialectContext, Next
    from mcp_functions.protocol.messages import AnyResult, Request

NAME = "sep-2322-tasks"
RELATED = "io.modelcontextprotocol/related-task"
ANYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}

# `statusMessage` of a function that reports no progress; the sentences are the proposal's
CREATED = "Task has been created for {} tool invocation."
STATUS_MESSAGES = {
    "input_required": "Input Required to Proceed call tasks/result",
    "completed": "Task has been completed successfully, call tasks/result",
}
INVALID_TASK = 'params.task must be {"ttl": …}, in milliseconds, a whole number from 1 on, or {}'
TASK_REQUIRED = 'This tool can only be called as a task: send params.task, {"ttl": milliseconds} or {}'
INVALID_RELATED = f'params._meta must hold "{RELATED}": {{"taskId": …}}'
INVALID_ANSWERS = "params.inputResponses must be an object of objects"
WORKING = "The task is still working: poll tasks/get until its status is input_required or completed"
CANCELLED = "The task was cancelled, so it has no result"


class TaskFailed(McpError):
    """The error that a task ended with, as the call itself would have been answered."""

    status = 200

    def __init__(self, error: Mapping[str, Any]) -> None:
        """Use the members of a JSON-RPC error."""
        super().__init__(str(error["message"]), error.get("data"), reason="task_failed")
        self.code = error["code"]  # type: ignore[misc]  # differs for each error


def answer(context: DialectContext, then: Next, request: Request) -> AnyResult:
    """Answer a request of a client that declares this dialect.

    Raises:
        McpError: the error of the extension.
    """
    method = request.message["method"]
    if declaration(request, NAME) is None or method not in {"tools/call", *METHODS}:
        return then(request)
    return _call(request, then) if method == "tools/call" else METHODS[method](context, request, then)


def task(request: Request) -> str | None:
    """Return the id of the task that a request of this dialect names."""
    if request.message["method"] not in METHODS or declaration(request, NAME) is None:
        return None
    return _task_id(request)


def _call(request: Request, then: Next) -> AnyResult:
    """Call a tool, as a task if the client asks for a task and the tool supports it.

    "it can start using the ephemeral workflow and then switch to the persistent workflow": rounds ask the questions
    before the task.
    """
    if "task" not in request.params:
        try:
            return then(request)
        except MissingRequiredClientCapability as error:
            raise (InvalidParams(TASK_REQUIRED) if _lacks_tasks(error) else error) from None
    modern = then(_with_extension(request, request.capabilities)._replace(task_ttl=_ttl(request.params["task"])))
    if not isinstance(modern, Result) or modern.result.get("resultType") != "task":
        return modern
    task = _status(modern.result)
    task.setdefault("statusMessage", CREATED.format(request.params["name"]))
    return Result({"task": task, "_meta": dict(modern.result["_meta"])})


def _get(_context: DialectContext, request: Request, then: Next) -> Result:
    """Return a task's status, without questions and result: "the `tasks/get` call should have a consistent latency"."""
    # The result shows no question, so the client's capabilities do not matter.
    result = _modern(request, then, "tasks/get", _task_id(request), declaring=ANYTHING)
    return Result({**_status(result), "_meta": dict(result["_meta"])})


def _cancel(context: DialectContext, request: Request, then: Next) -> Result:
    """Request the cancellation of a task, and return its status."""
    _modern(request, then, "tasks/cancel", _task_id(request))
    return _get(context, request, then)


def _result(context: DialectContext, request: Request, then: Next) -> Result:
    """Return the questions or the result of a task. It never waits, because a Lambda cannot wait that long."""
    task_id = _task_id(request)
    modern = _modern(request, then, "tasks/get", task_id)
    match modern["status"]:
        case "input_required":
            # "Servers MUST include an `inputRequests` field in the `tasks/result` response when the task is in state
            # `input_required`."; "Servers MAY include a requestState field"
            asked = {"inputRequests": modern["inputRequests"], "requestState": _seal(context, request, task_id, modern)}
            return Result({"resultType": "input_required", **asked, "_meta": _about(task_id, modern)})
        case "completed":
            result = modern["result"]
            return Result({**result, "_meta": {**result.get("_meta", {}), **_about(task_id, modern)}})
        case "failed":
            raise TaskFailed(modern["error"])
        case "cancelled":
            raise UnknownName(CANCELLED)
    raise UnknownName(WORKING, {"task": _status(modern)})


def _input_response(context: DialectContext, request: Request, then: Next) -> Result:
    """Receive answers; the acknowledgement does not depend on their content.

    "since the response is missing required information, the server does not proceed with processing the task and leaves
    the Task status as `input_required`"
    """
    task_id, responses = _task_id(request), request.params.get("inputResponses")
    # A malformed request: "should return a `JSONRPCErrorResponse` with an appropriate error code and message"
    if not isinstance(responses, dict) or not all(isinstance(value, dict) for value in responses.values()):
        raise InvalidParams(INVALID_ANSWERS)
    known = _opened(context, request, task_id)
    modern = _modern(request, then, "tasks/get", task_id, declaring=ANYTHING)
    asked: Mapping[str, Any] = modern.get("inputRequests", {})
    open_ = asked if known is None else {key: asked[key] for key in known if key in asked}
    # "it SHOULD ignore any unexpected information"
    given = {key: responses[key] for key in open_ if key in responses and _fits(open_[key], responses[key])}
    if given:
        _modern(request, then, "tasks/update", task_id, more={"inputResponses": given})
    return Result({"_meta": _about(task_id, modern)})


def _modern(  # noqa: PLR0913 - a request of the extension
    request: Request,
    then: Next,
    method: str,
    task_id: str,
    *,
    more: Mapping[str, Any] | None = None,
    declaring: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """Send a request of the extension with `more` params, declaring other capabilities if given; return its result."""
    extended = _with_extension(request, request.capabilities if declaring is None else declaring)
    params = {"taskId": task_id, **(more or {}), "_meta": extended.params["_meta"]}
    sent: Any = {**request.message, "method": method, "params": params}
    # This client need not send the headers of the released revision, but they must not contradict the body.
    headers.check_task_id(sent, {"mcp-name": task_id} | dict(request.headers))
    modern = then(
        extended._replace(message=sent, headers={**request.headers, "mcp-method": method, "mcp-name": task_id})
    )
    assert isinstance(modern, Result)  # noqa: S101 - the extension's methods have results
    return modern.result


def _with_extension(request: Request, declaring: Mapping[str, Any]) -> Request:
    """Return the request with the extension declared, which the client of this dialect supports under another name."""
    extensions = declaring.get("extensions")
    known = {**(extensions if isinstance(extensions, dict) else {}), EXTENSION_TASKS: {}}
    meta = {**request.params["_meta"], META_CLIENT_CAPABILITIES: {**declaring, "extensions": known}}
    sent: Any = {**request.message, "params": {**request.params, "_meta": meta}}
    return request._replace(message=sent)


def _lacks_tasks(error: MissingRequiredClientCapability) -> bool:
    match error.data:
        case {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": _}}}:
            return True
    return False


def _ttl(task: object) -> int:
    match task:
        case {"ttl": int(ttl)} if ttl > 0 and ttl is not True:
            return ttl
        case {"ttl": None}:
            return 0
        case dict() if "ttl" not in task:
            return 0
    raise InvalidParams(INVALID_TASK)


def _task_id(request: Request) -> str:
    """Return the id of the named task: "`tasks/input_response` request that includes … `Task` metadata field"."""
    params = request.params
    related = params["_meta"].get(RELATED)
    named = [params["taskId"]] if "taskId" in params else []
    if related is not None:
        named.append(related.get("taskId") if isinstance(related, dict) else None)
    if not named or not all(isinstance(one, str) for one in named):
        raise InvalidParams(INVALID_RELATED if request.message["method"] == "tasks/input_response" else None)
    if len(set(named)) > 1:
        raise InvalidParams(message=f"params.taskId and {RELATED} name two tasks")
    return str(named[0])


def _status(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's status with this dialect's names, `ttl` and `pollInterval`, and without its outcome."""
    message = result.get("statusMessage") or STATUS_MESSAGES.get(result["status"])
    return {
        "taskId": result["taskId"],
        "status": result["status"],
        **({"statusMessage": message} if message else {}),
        "createdAt": result["createdAt"],
        "lastUpdatedAt": result["lastUpdatedAt"],
        "ttl": result["ttlMs"],
        "pollInterval": result["pollIntervalMs"],
    }


def _about(task_id: str, modern: Mapping[str, Any]) -> dict[str, Any]:
    return {RELATED: {"taskId": task_id}, META_SERVER_INFO: modern["_meta"][META_SERVER_INFO]}


def _fits(asked: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    """Return whether an answer fits its form."""
    match asked, response:
        case {"params": {"requestedSchema": dict(schema)}}, {"action": "accept", **more}:
            from jsonschema import Draft202012Validator  # noqa: PLC0415 - only answers in this dialect need it

            return bool(Draft202012Validator(schema).is_valid(more.get("content", {})))
    return True


def _seal(context: DialectContext, request: Request, task_id: str, modern: Mapping[str, Any]) -> str:
    """Return the token with the questions that a client was shown; its answers count for these questions only."""
    states = context.states(context.settings.max_task_ttl, turn_state.label(NAME))
    return states.seal(
        _bound(context, request, task_id), None, asked=dict.fromkeys(modern["inputRequests"], ""), record={}
    )


def _opened(context: DialectContext, request: Request, task_id: str) -> list[str] | None:
    """Return the questions that a client was shown; None without a token, as in SEP-2322's example."""
    if "requestState" not in request.params:
        return None
    token, bound = request.params["requestState"], _bound(context, request, task_id)
    if not isinstance(token, str):
        raise InvalidRequestState(reason="shape")
    states = context.states(context.settings.max_task_ttl, turn_state.label(NAME))
    return list(states.open(token, bound, caller=caller_id(request.principal, request.address)).asked)


def _bound(context: DialectContext, request: Request, task_id: str) -> Binding:
    return Binding(context.audience, "tasks/input_response", task_id, "", principal_digest(request.principal))


METHODS = {"tasks/get": _get, "tasks/result": _result, "tasks/input_response": _input_response, "tasks/cancel": _cancel}
DIALECT = Dialect(answer, task=task)
