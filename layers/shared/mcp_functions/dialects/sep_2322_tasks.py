"""SEP-2322's persistent workflow, as it was proposed: other names for the tasks of the released extension.

Every request becomes a request of the released extension, and its result is translated back:

    this dialect                      the extension
    tools/call with params.task       tools/call of a client that declares the extension
    tasks/get                         tasks/get, without questions and result
    tasks/result                      tasks/get: its questions or its result
    tasks/input_response              tasks/update
    tasks/cancel                      tasks/cancel, and then tasks/get

The requestState of `tasks/result` holds the questions that it returned, sealed (encrypted and authenticated).
The quotations in this file are from SEP-2322.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

from mcp_functions.dialects import turn_state
from mcp_functions.dialects.dialect import Dialect, declaration
from mcp_functions.protocol.constants import EXTENSION_TASKS, META_CLIENT_CAPABILITIES, META_SERVER_INFO, META_TASK_TTL
from mcp_functions.protocol.errors import (
    InvalidParams,
    InvalidRequestState,
    McpError,
    MissingRequiredClientCapability,
    UnknownName,
)
from mcp_functions.protocol.messages import Result, is_dict_of, value_at
from mcp_functions.seal.binding import Binding, caller_id, principal_digest

if TYPE_CHECKING:
    from typing import Final

    from mcp_functions.dialects.dialect import DialectContext
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.protocol.wire_types import (
        ClientCapabilities,
        Error,
        InputRequest,
        InputRequests,
        InputResponse,
        InputResponses,
        Meta,
        Params,
        ResultObject,
    )
    from mcp_functions.seal.request_state import RequestStates

NAME = "sep-2322-tasks"
METHODS = ("tasks/get", "tasks/result", "tasks/input_response", "tasks/cancel")
RELATED: Final = "io.modelcontextprotocol/related-task"  # the member of `_meta` that names a task
# All capabilities that a question may need. A `tasks/get` that declares them succeeds whatever the task asks.
ALL_CAPABILITIES: ClientCapabilities = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}

# The `statusMessage` of a task that reports no progress. The sentences are the proposal's.
STATUS_MESSAGES = {
    "input_required": "Input Required to Proceed call tasks/result",
    "completed": "Task has been completed successfully, call tasks/result",
}
INVALID_TASK = 'params.task must be {"ttl": …}, in milliseconds, a whole number from 1 on, or {}'


class TaskStatus(TypedDict, total=False):
    """A task's status, as this dialect writes it."""

    taskId: str
    status: str
    statusMessage: str
    createdAt: str
    lastUpdatedAt: str
    ttl: int
    pollInterval: int


class Sep2322Tasks(Dialect):
    """The dialect `sep-2322-tasks`."""

    name = NAME

    def answer(self, context: DialectContext, request: Request) -> AnyResult:
        """Answer a request of a client that declares this dialect; an McpError is the error of the extension."""
        if request.method == "tools/call":
            return _call(context, request)
        if request.method not in METHODS:
            return context.answer_current(request)
        task = TaskRequest(context, request, _task_id(request))
        if request.method == "tasks/result":
            return task.outcome()
        if request.method == "tasks/input_response":
            return task.receive_answers()
        if request.method == "tasks/cancel":
            task.send("tasks/cancel", request.capabilities)
        return task.status()

    def read_task_id(self, request: Request) -> str | None:
        """Return the id of the task that a request of this dialect names."""
        if request.method not in METHODS or declaration(request, NAME) is None:
            return None
        return _task_id(request)


def _call(context: DialectContext, request: Request) -> AnyResult:
    """Call a tool, as a task if the client asks for a task and the tool supports it.

    "it can start using the ephemeral workflow and then switch to the persistent workflow": rounds ask the questions
    before the task.
    """
    if "task" not in request.params:
        return _call_without_task(context, request)
    extended = _with_extension(request, request.capabilities)
    meta: Meta = {**extended.params["_meta"], META_TASK_TTL: _ttl(request.params["task"])}
    result = context.answer_current(extended.with_params({**extended.params, "_meta": meta}))
    if not isinstance(result, Result) or result.result.get("resultType") != "task":
        return result  # the tool does not run as a task, or asks first
    status = _status(cast("ResultObject", result.result))
    # The sentence is the proposal's.
    status.setdefault("statusMessage", f"Task has been created for {request.params['name']} tool invocation.")
    return Result({"task": status, "_meta": dict(result.result["_meta"])})


def _call_without_task(context: DialectContext, request: Request) -> AnyResult:
    """Call a tool; if the tool needs a task, the error says how this client asks for one."""
    try:
        return context.answer_current(request)
    except MissingRequiredClientCapability as error:
        if value_at(error.data, "requiredCapabilities", "extensions", EXTENSION_TASKS) is None:
            raise  # the tool needs another capability
        raise InvalidParams(
            message='This tool can only be called as a task: send params.task, {"ttl": milliseconds} or {}'
        ) from None


class TaskRequest(NamedTuple):
    """A request of this dialect about a task."""

    context: DialectContext
    request: Request
    task_id: str

    def send(self, method: str, capabilities: ClientCapabilities, params: Params | None = None) -> ResultObject:
        """Send a request of the extension about the task, as a client with these capabilities; return its result."""
        request = _with_extension(self.request, capabilities)
        params = {"taskId": self.task_id, **(params or {}), "_meta": request.params["_meta"]}
        message: Any = {**request.message, "method": method, "params": params}
        # This client need not send the header `mcp-name`. If it does, the extension checks it. The headers must name
        # the method of the extension in place of the dialect's.
        headers = {"mcp-name": self.task_id, **request.headers, "mcp-method": method}
        result = self.context.answer_current(request._replace(message=message, headers=headers))
        assert isinstance(result, Result)  # noqa: S101 - the extension's methods have results
        return cast("ResultObject", result.result)

    def status(self) -> Result:
        """Return the status, without questions and result: "the `tasks/get` call should have a consistent latency"."""
        task = self.send("tasks/get", ALL_CAPABILITIES)  # as the result has no question
        return Result({**_status(task), "_meta": dict(task["_meta"])})

    def outcome(self) -> Result:
        """Return the questions or the result. It never waits, because a Lambda cannot wait that long."""
        task = self.send("tasks/get", self.request.capabilities)
        meta = self._meta(task)
        match task["status"]:
            case "input_required":
                return Result({**self._questions(task["inputRequests"]), "_meta": meta})
            case "completed":
                result = task["result"]
                return Result({**result, "_meta": {**result.get("_meta", {}), **meta}})
            case "failed":  # the error that the call itself would have had
                raise _to_exception(task["error"])
            case "cancelled":
                raise UnknownName(message="The task was cancelled, so it has no result")
        message = "The task is still working: poll tasks/get until its status is input_required or completed"
        raise UnknownName(message=message, data={"task": _status(task)})

    def _questions(self, questions: InputRequests) -> ResultObject:
        """Return a result with the questions, and a requestState that holds their keys.

        "Servers MUST include an `inputRequests` field in the `tasks/result` response when the task is in state
        `input_required`."; "Servers MAY include a requestState field". Answers that come back with the requestState
        count only for these questions.
        """
        asked = dict.fromkeys(questions, "")  # only the keys are needed later, and no fingerprints
        token = self._states().seal(self._binding(), None, asked=asked, record={})
        return {"resultType": "input_required", "inputRequests": questions, "requestState": token}

    def receive_answers(self) -> Result:
        """Receive answers; the acknowledgement does not depend on their content.

        "since the response is missing required information, the server does not proceed with processing the task and
        leaves the Task status as `input_required`"
        """
        responses: Any = self.request.params.get("inputResponses")
        # A malformed request: "should return a `JSONRPCErrorResponse` with an appropriate error code and message"
        if not is_dict_of(dict, responses):
            raise InvalidParams(message="params.inputResponses must be an object of objects")
        shown = self._shown_questions()
        task = self.send("tasks/get", ALL_CAPABILITIES)
        questions = task.get("inputRequests", {})
        accepted: InputResponses = {}
        for key, response in responses.items():
            was_shown = shown is None or key in shown
            if key in questions and was_shown and _fits(questions[key], response):
                accepted[key] = response  # "it SHOULD ignore any unexpected information"
        if accepted:
            self.send("tasks/update", self.request.capabilities, {"inputResponses": accepted})
        return Result({"_meta": self._meta(task)})

    def _shown_questions(self) -> list[str] | None:
        """Return the keys of the questions that a client was shown; None without a token, as in SEP-2322's example."""
        request = self.request
        if "requestState" not in request.params:
            return None
        token = request.params["requestState"]
        if not isinstance(token, str):
            raise InvalidRequestState(reason="shape")
        caller = caller_id(request.principal, request.address)
        return list(self._states().open(token, self._binding(), caller=caller).asked)

    def _meta(self, task: ResultObject) -> Meta:
        """Return the `_meta` of a result: the task that it belongs to, and the server."""
        return {RELATED: {"taskId": self.task_id}, META_SERVER_INFO: task["_meta"][META_SERVER_INFO]}

    def _states(self) -> RequestStates:
        return self.context.states(self.context.settings.max_task_ttl, turn_state.label(NAME))

    def _binding(self) -> Binding:
        """Return what the token is sealed for: the function, the task and the principal."""
        principal = principal_digest(self.request.principal)
        return Binding(self.context.audience, "tasks/input_response", self.task_id, "", principal)


def _with_extension(request: Request, capabilities: ClientCapabilities) -> Request:
    """Return the request of a client that declares these capabilities and the extension."""
    extensions = capabilities.get("extensions")
    if not isinstance(extensions, dict):
        extensions = {}
    declared: ClientCapabilities = {**capabilities, "extensions": {**extensions, EXTENSION_TASKS: {}}}
    meta: Meta = {**request.params["_meta"], META_CLIENT_CAPABILITIES: declared}
    return request.with_params({**request.params, "_meta": meta})


def _ttl(task: object) -> int:
    """Read `params.task`: the milliseconds for which the client wants its task to be kept; 0 if it names none."""
    if not isinstance(task, dict):
        raise InvalidParams(message=INVALID_TASK)
    ttl = task.get("ttl")
    if ttl is None:
        return 0
    if type(ttl) is not int or ttl < 1:
        raise InvalidParams(message=INVALID_TASK)
    return ttl


def _task_id(request: Request) -> str:
    """Return the id of the named task: in `params.taskId`, in `_meta` as `tasks/input_response` has it, or in both."""
    params = request.params
    ids: list[object] = []
    if "taskId" in params:
        ids.append(params["taskId"])
    if params["_meta"].get(RELATED) is not None:
        ids.append(value_at(params["_meta"], RELATED, "taskId"))
    if not ids or not all(isinstance(task_id, str) for task_id in ids):
        invalid_meta = f'params._meta must hold "{RELATED}": {{"taskId": …}}'
        raise InvalidParams(message=invalid_meta if request.method == "tasks/input_response" else None)
    if len(set(ids)) > 1:
        raise InvalidParams(message=f"params.taskId and {RELATED} name two tasks")
    return str(ids[0])


def _status(task: ResultObject) -> TaskStatus:
    """Return a task's status with this dialect's names, `ttl` and `pollInterval`, and without its outcome."""
    status: TaskStatus = {"taskId": task["taskId"], "status": task["status"]}
    message = task.get("statusMessage") or STATUS_MESSAGES.get(task["status"])
    if message:
        status["statusMessage"] = message
    status["createdAt"] = task["createdAt"]
    status["lastUpdatedAt"] = task["lastUpdatedAt"]
    status["ttl"] = task["ttlMs"]
    status["pollInterval"] = task["pollIntervalMs"]
    return status


def _to_exception(json_error: Error) -> McpError:
    error = McpError("task_failed", message=json_error["message"], data=json_error.get("data"))
    error.code = json_error["code"]
    return error


def _fits(question: InputRequest, response: InputResponse) -> bool:
    """Return whether an answer fits the form of its question. A declined answer, or one to no form, always fits."""
    schema = value_at(question, "params", "requestedSchema")
    if schema is None or response.get("action") != "accept":
        return True
    from jsonschema import Draft202012Validator

    return bool(Draft202012Validator(schema).is_valid(response.get("content", {})))


DIALECT = Sep2322Tasks()
