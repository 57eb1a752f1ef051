"""Calls tools, prompts and resources of a server, answers their questions, and follows a task to its end.

    round 1   the call                          -> questions and a state
    round 2   the call, the answers, the state  -> more questions, the result, or a task, which is polled

A call that asks shows that the server can encrypt a state and open it again, which needs its KMS key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import schema_values
from mcp_functions.local.task_client import ENDED
from mcp_functions.local.verification import candidates, lists
from mcp_functions.local.verification.report import Failed, Skipped
from mcp_functions.protocol.constants import EXTENSION_TASKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.attack.client import Response
    from mcp_functions.local.verification.candidates import Call
    from mcp_functions.local.verification.report import Patience
    from mcp_functions.local.verification.server import Server

MAX_ROUNDS = 20
SERVER_ERROR = 500  # the first HTTP status of an error of the server
REFUSALS = ("decline", "cancel")
NAME_A_TOOL = "name one: --tool NAME --arguments JSON"


@dataclass
class Calls:
    """The calls of one run; no tool is called twice.

    Attributes:
        server: the endpoint.
        named_tools: the tools that the user allows to call, with their arguments.
        answers: by the key of a question: the content of its form, "decline" or "cancel".
        tasks: the names of the tools whose calls may become tasks.
        patience: how long to wait for one task.
    """

    server: Server
    named_tools: Sequence[tuple[str, Mapping[str, Any]]]
    answers: Mapping[str, Any]
    tasks: Sequence[str]
    patience: Patience
    # the calls that became tasks, each with the result that named its task
    _task_calls: list[tuple[Call, Mapping[str, Any]]] = field(default_factory=list)

    def check_conversation(self) -> str:
        """Call every tool that the user named. If none asks a question, call others until one does.

        Raises:
            Failed: a call was refused, or the state of a round was not accepted.
            Skipped: no call asked.
        """
        calls = candidates.named_calls(self._lists, self.named_tools) if self.named_tools else []
        texts = [self._run_conversation(call) for call in calls]
        asked = [text for text in texts if text]
        if asked:
            return "; ".join(asked)
        for call in self._read_calls():
            text = self._run_conversation(call)
            if text:
                return text
        raise Skipped(message=f"no resource, prompt or read-only tool asks a question; {NAME_A_TOOL}")

    def check_task(self) -> str:
        """Follow a task to its end.

        Raises:
            Failed: the task failed, or did not end in time.
            Skipped: the server has no tasks, or no call became one.
        """
        discovered = self.server.call("server/discover", {}).result or {}
        if EXTENSION_TASKS not in discovered.get("capabilities", {}).get("extensions", {}):
            raise Skipped(message="the server has none")
        if not self._task_calls:
            for call in self._read_calls():
                if str(call) in self.tasks:
                    self._run_conversation(call)
        if not self._task_calls:
            raise Skipped(message=f"no read-only tool is a task; {NAME_A_TOOL}")
        return "; ".join(self._follow(call, task) for call, task in self._task_calls)

    def _run_conversation(self, call: Call) -> str:
        """Make a call, and answer its questions to the end.

        Returns:
            What was seen; "" if the call asked nothing, or became a task.

        Raises:
            Failed: the server did not accept a state, or refused the call.
        """
        rounds = 1
        response = self._send(call, {})
        while response.questions is not None and rounds < MAX_ROUNDS:
            rounds += 1
            response = self._send(call, self._next_params(response))
            if response.result is None:
                raise Failed(message=f"{call}: the state of round {rounds - 1} was not accepted: {response}")
        return self._judge(call, response, rounds)

    def _judge(self, call: Call, last_response: Response, rounds: int) -> str:
        """Judge the end of a conversation; the results are those of `_run_conversation`."""
        result = last_response.result or {}
        if result.get("resultType") == "task":
            self._task_calls.append((call, result))  # `check_task` polls it
            return ""
        if last_response.done:
            return f"{call} was complete after {rounds} rounds" if rounds > 1 else ""
        if call.is_named and result.get("isError"):
            error = f"{call} reported an error in round {rounds}"
            raise Failed(message=f"{error}: --arguments and --answers may not fit it")
        still_asks = last_response.questions is not None
        if call.is_named or still_asks or last_response.status >= SERVER_ERROR:
            raise Failed(message=f"{call}, round {rounds}: {last_response}")
        return ""  # the server refuses arguments that were invented here, which proves nothing

    def _send(self, call: Call, inputs: Mapping[str, Any]) -> Response:
        return self.server.call(call.method, {**call.params, **inputs}, header_parameters=call.header_parameters)

    def _next_params(self, response: Response) -> dict[str, Any]:
        if response.state is None:
            raise Failed(message="a round asked, and gave no requestState")
        return {"requestState": response.state, "inputResponses": self._answers(response.questions or {})}

    def _answers(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self._answer(key, request) for key, request in requests.items()}

    def _answer(self, key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.answers.get(key)
        if answer is None:
            return schema_values.answer(request)
        if answer in REFUSALS:
            return {"action": answer}
        return {"action": "accept", "content": answer}

    def _follow(self, call: Call, task: Mapping[str, Any]) -> str:
        """Poll a task to its end, and answer its questions."""
        polls = 0
        deadline = self.patience.now() + self.patience.seconds
        while task["status"] not in ENDED:
            if self.patience.now() >= deadline:
                self.server.call("tasks/cancel", {"taskId": task["taskId"]})
                limit = f"{self.patience.seconds:g} s (--seconds)"
                raise Failed(message=f"{call} did not end within {limit}, and was cancelled")
            if task.get("inputRequests"):
                self._call_with_task("tasks/update", call, task, inputResponses=self._answers(task["inputRequests"]))
            else:
                self.patience.sleep(task.get("pollIntervalMs", 1000) / 1000)
            task = self._call_with_task("tasks/get", call, task)
            polls += 1
        if task["status"] != "completed" or task.get("result", {}).get("isError"):
            outcome = "reported a tool error" if "result" in task else task["status"]
            raise Failed(message=f"the task of {call} {outcome}")
        return f"{call} was complete after {polls} polls"

    def _call_with_task(self, method: str, call: Call, task: Mapping[str, Any], **params: object) -> dict[str, Any]:
        response = self.server.call(method, {"taskId": task["taskId"], **params})
        if response.result is None:
            raise Failed(message=f"{method} of {call}: {response}")
        return response.result

    def _read_calls(self) -> list[Call]:
        """Return the calls that change nothing, without tools that the user named: those were called."""
        names = {name for name, _arguments in self.named_tools}
        calls = candidates.read_calls(self._lists)
        return [call for call in calls if call.method != "tools/call" or str(call) not in names]

    @cached_property
    def _lists(self) -> lists.Catalog:
        return lists.read(self.server, candidates.LISTS)
