"""SEP-2322's persistent workflow, as it was proposed: other names for the tasks of the released extension.

Every request becomes a request of the released extension, and its result is translated back:

    this dialect                      the extension
    tools/call with params.task       tools/call of a client that declares the extension
    tasks/get                         tasks/get, without questions and result
    tasks/result                      tasks/get: its questions or its result
    tasks/input_response              tasks/update
    tasks/cancel                      tasks/cancel, and then tasks/get

The requestState of `tasks/result` holds the questions that it returned, sealed (encrypted and authenticated).
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
from mcp_functions.protocol.messages import Result, is_dict_of
from mcp_functions.seal.binding import Binding, caller_id, principal_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dialects.dialect import DialectContext, Next
    from mcp_functions.protocol.messages import AnyResult, Request

NAME = "sep-2322-tasks"
RELATED = "io.modelcontextprotocol/related-task"  # the member of `_meta` that names a task
# All capabilities for questions. With them `tasks/get` refuses no client, whatever the task asks.
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
    if declaration(request, NAME) is None:
        return then(request)
    if method == "tools/call":
        return _call(request, then)
    if method in METHODS:
        return METHODS[method](context, request, then)
    return then(request)


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
            if _lacks_tasks(error):
                raise InvalidParams(TASK_REQUIRED) from None  # the cause names the extension, which this client lacks
            raise
    extended = _with_extension(request, request.capabilities)
    modern = then(extended._replace(task_ttl=_ttl(request.params["task"])))
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
    task_id = _task_id(request)
    responses: Any = request.params.get("inputResponses")
    # A malformed request: "should return a `JSONRPCErrorResponse` with an appropriate error code and message"
    if not is_dict_of(dict, responses):
        raise InvalidParams(INVALID_ANSWERS)
    shown = _shown_questions(context, request, task_id)
    modern = _modern(request, then, "tasks/get", task_id, declaring=ANYTHING)
    asked: Mapping[str, Any] = modern.get("inputRequests", {})
    # "it SHOULD ignore any unexpected information"
    given: dict[str, Any] = {}
    for key, question in asked.items():
        was_shown = shown is None or key in shown
        if was_shown and key in responses and _fits(question, responses[key]):
            given[key] = responses[key]
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
    """Run a request of the extension, and return its result.

    Args:
        request: the request of this dialect.
        then: runs the request of the extension.
        method: the method of the extension.
        task_id: the task's id.
        more: further params.
        declaring: the capabilities to declare; None for those of the client.
    """
    capabilities = request.capabilities if declaring is None else declaring
    extended = _with_extension(request, capabilities)
    params = {"taskId": task_id, **(more or {}), "_meta": extended.params["_meta"]}
    sent: Any = {**request.message, "method": method, "params": params}
    # This client need not send the headers of the released revision, but they must not contradict the body.
    headers.check_task_id(sent, {"mcp-name": task_id, **request.headers})
    sent_headers = {**request.headers, "mcp-method": method, "mcp-name": task_id}
    modern = then(extended._replace(message=sent, headers=sent_headers))
    assert isinstance(modern, Result)  # noqa: S101 - the extension's methods have results
    return modern.result


def _with_extension(request: Request, declaring: Mapping[str, Any]) -> Request:
    """Return the request with the extension declared, which the client of this dialect supports under another name."""
    declared = declaring.get("extensions")
    extensions = dict(declared) if isinstance(declared, dict) else {}
    extensions[EXTENSION_TASKS] = {}
    meta = {**request.params["_meta"], META_CLIENT_CAPABILITIES: {**declaring, "extensions": extensions}}
    sent: Any = {**request.message, "params": {**request.params, "_meta": meta}}
    return request._replace(message=sent)


def _lacks_tasks(error: MissingRequiredClientCapability) -> bool:
    match error.data:
        case {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": _}}}:
            return True
    return False


def _ttl(task: object) -> int:
    """Return the time for which a client wants its task to be kept, in milliseconds; 0 if it names none."""
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
    if not named or not all(isinstance(task_id, str) for task_id in named):
        needs_related = request.message["method"] == "tasks/input_response"
        raise InvalidParams(INVALID_RELATED if needs_related else None)
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
    """Return the `_meta` of a result: the task that it belongs to, and the server."""
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
    shown = dict.fromkeys(modern["inputRequests"], "")
    return states.seal(_binding(context, request, task_id), None, asked=shown, record={})


def _shown_questions(context: DialectContext, request: Request, task_id: str) -> list[str] | None:
    """Return the keys of the questions that a client was shown; None without a token, as in SEP-2322's example."""
    if "requestState" not in request.params:
        return None
    token = request.params["requestState"]
    if not isinstance(token, str):
        raise InvalidRequestState(reason="shape")
    states = context.states(context.settings.max_task_ttl, turn_state.label(NAME))
    binding = _binding(context, request, task_id)
    return list(states.open(token, binding, caller=caller_id(request.principal, request.address)).asked)


def _binding(context: DialectContext, request: Request, task_id: str) -> Binding:
    """Return what the token is sealed for: the function, the task and the principal."""
    return Binding(context.audience, "tasks/input_response", task_id, "", principal_digest(request.principal))


METHODS = {"tasks/get": _get, "tasks/result": _result, "tasks/input_response": _input_response, "tasks/cancel": _cancel}
DIALECT = Dialect(answer, task=task)
