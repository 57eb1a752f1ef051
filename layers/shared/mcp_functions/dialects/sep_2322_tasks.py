"""SEP-2322's persistent workflow, as it was proposed: other words for the tasks of the released extension.

The client wishes for a task (`params.task`), `tasks/get` says how it is and no more, `tasks/result` brings what it asks
or found, `tasks/input_response` takes the answers. The tasks, their store and their methods are those of the extension:
every request here becomes one of that, and what comes back is told in these words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.dialects import carrying
from mcp_functions.dialects.speaking import Dialect, declared
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
from mcp_functions.seal.request_state import Binding, payer, principal_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dialects.speaking import Place, Then
    from mcp_functions.protocol.messages import AnyResult, Request

NAME = "sep-2322-tasks"
RELATED = "io.modelcontextprotocol/related-task"
ANYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}

# `statusMessage` where the function says nothing of its progress: the proposal's own sentences
CREATED = "Task has been created for {} tool invocation."
SAID = {
    "input_required": "Input Required to Proceed call tasks/result",
    "completed": "Task has been completed successfully, call tasks/result",
}
WISH = 'params.task must be {"ttl": …}, in milliseconds, a whole number from 1 on, or {}'
NEEDED = 'This tool can only be called as a task: send params.task, {"ttl": milliseconds} or {}'
ABOUT = f'params._meta must hold "{RELATED}": {{"taskId": …}}'
ANSWERS = "params.inputResponses must be an object of objects"
WORKING = "The task is still working: poll tasks/get until its status is input_required or completed"
CANCELLED = "The task was cancelled, so it has no result"


class TaskFailed(McpError):
    """The error that a task ended with, as the call itself would have been answered."""

    status = 200

    def __init__(self, error: Mapping[str, Any]) -> None:
        """Take the JSON-RPC error."""
        super().__init__(str(error["message"]), error.get("data"), reason="task_failed")
        self.code = error["code"]  # type: ignore[misc]  # of whatever it was


def answer(place: Place, request: Request, *, then: Then) -> AnyResult:
    """Answer a request of a client that declares this dialect.

    Raises:
        McpError: what the extension would have said, in the words of this dialect.

    """
    method = request.message["method"]
    if declared(request, NAME) is None or method not in {"tools/call", *METHODS}:
        return then(request)
    return _call(request, then) if method == "tools/call" else METHODS[method](place, request, then)


def task(request: Request) -> str | None:
    """Read the id of the task that a request of this dialect is about."""
    if request.message["method"] not in METHODS or declared(request, NAME) is None:
        return None
    return _task_id(request)


def _call(request: Request, then: Then) -> AnyResult:
    """Call a tool, as a task if the client wishes for one and the tool can be one.

    "it can start using the ephemeral workflow and then switch to the persistent workflow": questions that come before
    the task are asked in rounds.
    """
    if "task" not in request.params:
        try:
            return then(request)
        except MissingRequiredClientCapability as error:
            raise (InvalidParams(NEEDED) if _lacks_tasks(error) else error) from None
    said = then(_knowing(request, request.capabilities)._replace(task_ttl=_ttl(request.params["task"])))
    if not isinstance(said, Result) or said.result.get("resultType") != "task":
        return said
    told = _told(said.result)
    told.setdefault("statusMessage", CREATED.format(request.params["name"]))
    return Result({"task": told, "_meta": dict(said.result["_meta"])})


def _get(_place: Place, request: Request, then: Then) -> Result:
    """Say how a task is, and not what it asks or found: "the `tasks/get` call should have a consistent latency"."""
    # It shows no question, so nobody need be able to answer one.
    result = _modern(request, then, "tasks/get", _task_id(request), declaring=ANYTHING)
    return Result({**_told(result), "_meta": dict(result["_meta"])})


def _cancel(place: Place, request: Request, then: Then) -> Result:
    """Wish that a task should end, and say how it is then."""
    _modern(request, then, "tasks/cancel", _task_id(request))
    return _get(place, request, then)


def _result(place: Place, request: Request, then: Then) -> Result:
    """Return what a task asks, or what it found. It never waits: nobody holds a Lambda, or a gateway, for that long.

    Raises:
        UnknownName: there is no result yet, or there will be none.
        TaskFailed: the task ended with an error.

    """
    task_id = _task_id(request)
    told = _modern(request, then, "tasks/get", task_id)
    match told["status"]:
        case "input_required":
            # "Servers MUST include an `inputRequests` field in the `tasks/result` response when the task is in state
            # `input_required`."; "Servers MAY include a requestState field"
            asked = {"inputRequests": told["inputRequests"], "requestState": _seal(place, request, task_id, told)}
            return Result({"resultType": "input_required", **asked, "_meta": _about(task_id, told)})
        case "completed":
            result = told["result"]
            return Result({**result, "_meta": {**result.get("_meta", {}), **_about(task_id, told)}})
        case "failed":
            raise TaskFailed(told["error"])
        case "cancelled":
            raise UnknownName(CANCELLED)
    raise UnknownName(WORKING, {"task": _told(told)})


def _input_response(place: Place, request: Request, then: Then) -> Result:
    """Take answers, and acknowledge them whether or not they are of use.

    "since the response is missing required information, the server does not proceed with processing the task and leaves
    the Task status as `input_required`"
    """
    task_id, responses = _task_id(request), request.params.get("inputResponses")
    # What is malformed: "should return a `JSONRPCErrorResponse` with an appropriate error code and message"
    if not isinstance(responses, dict) or not all(isinstance(value, dict) for value in responses.values()):
        raise InvalidParams(ANSWERS)
    known = _opened(place, request, task_id)
    told = _modern(request, then, "tasks/get", task_id, declaring=ANYTHING)
    asked: Mapping[str, Any] = told.get("inputRequests", {})
    open_ = asked if known is None else {key: asked[key] for key in known if key in asked}
    # "it SHOULD ignore any unexpected information"
    given = {key: responses[key] for key in open_ if key in responses and _fits(open_[key], responses[key])}
    if given:
        _modern(request, then, "tasks/update", task_id, more={"inputResponses": given})
    return Result({"_meta": _about(task_id, told)})


def _modern(  # noqa: PLR0913 - a request of the extension
    request: Request,
    then: Then,
    method: str,
    task_id: str,
    *,
    more: Mapping[str, Any] | None = None,
    declaring: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """Send a request of the extension, and return its result."""
    knowing = _knowing(request, request.capabilities if declaring is None else declaring)
    params = {"taskId": task_id, **(more or {}), "_meta": knowing.params["_meta"]}
    sent: Any = {**request.message, "method": method, "params": params}
    # A header of the released revision is not this client's duty; what it says all the same must be true.
    headers.admit_task(sent, {"mcp-name": task_id} | dict(request.headers))
    said = then(knowing._replace(message=sent, headers={**request.headers, "mcp-method": method, "mcp-name": task_id}))
    assert isinstance(said, Result)  # noqa: S101 - the extension's methods have results
    return said.result


def _knowing(request: Request, declaring: Mapping[str, Any]) -> Request:
    """Declare the extension for a client that declared this dialect instead."""
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


def _ttl(wish: object) -> int:
    match wish:
        case {"ttl": int(ttl)} if ttl > 0 and ttl is not True:
            return ttl
        case {"ttl": None}:
            return 0
        case dict() if "ttl" not in wish:
            return 0
    raise InvalidParams(WISH)


def _task_id(request: Request) -> str:
    """Read which task it is about: "`tasks/input_response` request that includes … `Task` metadata field"."""
    params = request.params
    related = params["_meta"].get(RELATED)
    named = [params["taskId"]] if "taskId" in params else []
    if related is not None:
        named.append(related.get("taskId") if isinstance(related, dict) else None)
    if not named or not all(isinstance(one, str) for one in named):
        raise InvalidParams(ABOUT if request.message["method"] == "tasks/input_response" else None)
    if len(set(named)) > 1:
        text = f"params.taskId and {RELATED} name two tasks"
        raise InvalidParams(text)
    return str(named[0])


def _told(result: Mapping[str, Any]) -> dict[str, Any]:
    """Tell a task in the words of this dialect: `ttl` and `pollInterval`, and nothing of its outcome."""
    message = result.get("statusMessage") or SAID.get(result["status"])
    return {
        "taskId": result["taskId"],
        "status": result["status"],
        **({"statusMessage": message} if message else {}),
        "createdAt": result["createdAt"],
        "lastUpdatedAt": result["lastUpdatedAt"],
        "ttl": result["ttlMs"],
        "pollInterval": result["pollIntervalMs"],
    }


def _about(task_id: str, told: Mapping[str, Any]) -> dict[str, Any]:
    return {RELATED: {"taskId": task_id}, META_SERVER_INFO: told["_meta"][META_SERVER_INFO]}


def _fits(asked: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    """Tell whether an answer has what its form requires."""
    match asked, response:
        case {"params": {"requestedSchema": dict(schema)}}, {"action": "accept", **more}:
            from jsonschema import Draft202012Validator  # noqa: PLC0415 - only for who answers in this dialect

            return bool(Draft202012Validator(schema).is_valid(more.get("content", {})))
    return True


def _seal(place: Place, request: Request, task_id: str, told: Mapping[str, Any]) -> str:
    """Seal which questions a client was shown: what it sends back answers these and no later ones."""
    states = place.states(place.settings.max_task_ttl, carrying.label(NAME))
    return states.seal(_bound(place, request, task_id), None, asked=dict.fromkeys(told["inputRequests"], ""), record={})


def _opened(place: Place, request: Request, task_id: str) -> list[str] | None:
    """Read which questions a client was shown, if it says; SEP-2322's own example does not."""
    if "requestState" not in request.params:
        return None
    token, bound = request.params["requestState"], _bound(place, request, task_id)
    if not isinstance(token, str):
        reason = "shape"
        raise InvalidRequestState(reason)
    states = place.states(place.settings.max_task_ttl, carrying.label(NAME))
    return list(states.open(token, bound, caller=payer(request.principal, request.address)).asked)


def _bound(place: Place, request: Request, task_id: str) -> Binding:
    return Binding(place.audience, "tasks/input_response", task_id, "", principal_digest(request.principal))


METHODS = {
    "tasks/get": _get,
    "tasks/result": _result,
    "tasks/input_response": _input_response,
    "tasks/cancel": _cancel,
}
DIALECT = Dialect(answer, task=task)
