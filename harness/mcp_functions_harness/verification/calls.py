"""Calls tools, prompts and resources of a server, answers their questions, and follows a task to its end.

    round 1   the call                          -> questions and a state
    round 2   the call, the answers, the state  -> more questions, the result, or a task, which is polled

A call that asks shows that the server can encrypt a state and open it again, which needs its KMS key.

Only calls that change nothing are made, and those of tools that the user names. Resources, prompts, and tools with
`readOnlyHint` change nothing. MCP says that any other tool may be destructive ("destructiveHint … Default: true").
"""

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

from mcp_functions.protocol.catalog_types import Catalog
from mcp_functions.protocol.constants import EXTENSION_TASKS
from mcp_functions.protocol.wire_types import InputRequest, InputResponse, JSONValue, Params, ResultObject, Schema
from mcp_functions_harness.client import messages, schema_values
from mcp_functions_harness.client.http import Response
from mcp_functions_harness.client.tasks import ENDED, Refused
from mcp_functions_harness.verification import lists
from mcp_functions_harness.verification.lists import Lists
from mcp_functions_harness.verification.options import Options
from mcp_functions_harness.verification.report import Failed, Skipped
from mcp_functions_harness.verification.server import Server

MAX_CALLS = 20  # of calls that the user did not name
MAX_ROUNDS = 20
SERVER_ERROR = 500  # the first HTTP status of an error of the server
REFUSALS = ("decline", "cancel")
NAME_A_TOOL = "name one: --tool NAME --arguments JSON"


class Call(NamedTuple):
    """A call to make."""

    method: str  # the method of the protocol, e.g. "tools/call"
    params: Params  # the name and the arguments, or the URI
    header_parameters: Sequence[tuple[str, str]] = ()  # see `messages.header_parameters`
    is_named: bool = False  # whether the user named it

    def __str__(self) -> str:
        """Return the name or the URI that it calls."""
        return str(self.params.get("name") or self.params.get("uri"))


class Calls:
    """The calls of one run; no tool is called twice."""

    def __init__(self, server: Server, project: Catalog, options: Options) -> None:
        """Call nothing yet."""
        self._server = server
        self._options = options
        folders_of_tools = project.get("functions", {}).get("tools", {})
        folders_with_tasks = project.get("tasks", ())
        self._tools_with_tasks = {name for name, folder in folders_of_tools.items() if folder in folders_with_tasks}
        self._task_calls: list[tuple[Call, ResultObject]] = []  # each with what names its task

    def check_conversation(self) -> str:
        """Call every tool that the user named. If none asks a question, call others until one does."""
        texts = [self._run_conversation(call) for call in self._named_calls()]
        asked = [text for text in texts if text]
        if asked:
            return "; ".join(asked)
        for call in self._read_calls():
            text = self._run_conversation(call)
            if text:
                return text
        raise Skipped(f"no resource, prompt or read-only tool asks a question; {NAME_A_TOOL}")

    def check_task(self) -> str:
        """Follow a task to its end."""
        discovered = self._server.exchange("server/discover", {}).result or {}
        if EXTENSION_TASKS not in discovered.get("capabilities", {}).get("extensions", {}):
            raise Skipped("the server has none")
        if not self._task_calls:
            for call in self._read_calls():
                if str(call) in self._tools_with_tasks:
                    self._run_conversation(call)
        if not self._task_calls:
            raise Skipped(f"no read-only tool is a task; {NAME_A_TOOL}")
        return "; ".join(self._follow(call, task) for call, task in self._task_calls)

    @cached_property
    def _lists(self) -> Lists:
        return lists.read(self._server, ("resources", "prompts", "tools"))

    def _named_calls(self) -> list[Call]:
        """Return the calls of the tools that the user names, with their arguments."""
        named_tools = self._options["named_tools"]
        if not named_tools:
            return []
        schemas = {tool["name"]: tool["inputSchema"] for tool in self._lists["tools"]}
        calls = []
        for name, arguments in named_tools:
            if name not in schemas:
                raise Failed(f"there is no tool {name}")
            calls.append(_tool_call(name, arguments, schemas[name], is_named=True))
        return calls

    def _read_calls(self) -> list[Call]:
        """Return calls that change nothing, with invented arguments; without tools that the user has named."""
        called = {name for name, _arguments in self._options["named_tools"]}
        calls = [Call("resources/read", {"uri": resource["uri"]}) for resource in self._lists["resources"]]
        for prompt in self._lists["prompts"]:
            required = [argument["name"] for argument in prompt.get("arguments", []) if argument.get("required")]
            calls.append(Call("prompts/get", {"name": prompt["name"], "arguments": dict.fromkeys(required, "example")}))
        for tool in self._lists["tools"]:
            hints: Mapping[str, Any] = tool.get("annotations", {})
            if hints.get("readOnlyHint") is True and tool["name"] not in called:
                schema = tool["inputSchema"]
                calls.append(_tool_call(tool["name"], schema_values.example(schema), schema))
        return calls[:MAX_CALLS]

    def _run_conversation(self, call: Call) -> str:
        """Make a call, answer its questions to the end, and return what was seen; "" if it asked none or is a task."""
        rounds = 1
        response = self._send(call, {})
        while response.questions is not None and rounds < MAX_ROUNDS:
            if response.state is None:
                raise Failed("a round asked, and gave no requestState")
            questions = response.questions.items()
            answers = {key: cast("InputResponse", self._answer(key, request)) for key, request in questions}
            response = self._send(call, {"requestState": response.state, "inputResponses": answers})
            if response.result is None:
                raise Failed(f"{call}: the state of round {rounds} was not accepted: {response}")
            rounds += 1
        return self._judge(call, response, rounds)

    def _send(self, call: Call, inputs: Params) -> Response:
        return self._server.exchange(call.method, {**call.params, **inputs}, header_parameters=call.header_parameters)

    def _judge(self, call: Call, last_response: Response, rounds: int) -> str:
        """Judge the end of a conversation; the results are those of `_run_conversation`."""
        result: ResultObject = last_response.result or {}
        if result.get("resultType") == "task":
            self._task_calls.append((call, result))  # `check_task` polls it
            return ""
        if last_response.done:
            return f"{call} was complete after {rounds} rounds" if rounds > 1 else ""
        if call.is_named and result.get("isError"):
            error = f"{call} reported an error in round {rounds}"
            raise Failed(f"{error}: --arguments and --answers may not fit it")
        still_asks = last_response.questions is not None
        if call.is_named or still_asks or last_response.status >= SERVER_ERROR:
            raise Failed(f"{call}, round {rounds}: {last_response}")
        return ""  # the server refuses arguments that were invented here, which proves nothing

    def _answer(self, key: str, request: InputRequest) -> Mapping[str, Any]:
        """Answer a question as the user says, or else with an invented answer."""
        answer = self._options["answers"].get(key)
        if answer is None:
            return schema_values.answer(request)
        if answer in REFUSALS:
            return {"action": answer}
        return {"action": "accept", "content": answer}

    def _follow(self, call: Call, task: ResultObject) -> str:
        """Poll a task to its end, and answer its questions."""
        seconds = self._options["seconds"]
        deadline = time.monotonic() + seconds
        polls = 0

        def check_deadline(task: ResultObject) -> None:
            nonlocal polls
            polls += 1
            if task["status"] not in ENDED and time.monotonic() >= deadline:
                self._server.exchange("tasks/cancel", {"taskId": task["taskId"]})
                raise Failed(f"{call} did not end within {seconds:g} s (--seconds), and was cancelled")

        self._server.told = check_deadline
        try:
            result = self._server.follow(task, self._answer)
        except (Refused, OSError, ValueError) as error:  # the last two: no JSON-RPC response
            raise Failed(f"the task of {call} did not complete: {error}") from error
        if result.get("isError"):
            raise Failed(f"the task of {call} reported a tool error")
        return f"{call} was complete after {polls} polls"


def _tool_call(name: str, arguments: JSONValue, schema: Schema, *, is_named: bool = False) -> Call:
    return Call("tools/call", {"name": name, "arguments": arguments}, messages.header_parameters(schema), is_named)
