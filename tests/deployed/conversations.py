"""The conversations that hold a deployed stack to its word. The mutants (mutants.py) must turn one of them red.

Between two rounds every process of every function is killed: whatever a round needs of the one before comes from the
client's state, the key and the table. A conversation without the kill proves no permission to decrypt.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from mcp_types import ElicitResult

from mcp_functions_harness.client.http import Request
from mcp_functions_harness.client.tasks import TaskClient
from tests.clients.earlier import SPEAKERS
from tests.clients.people import Person, accept, text
from tests.clients.talks import BRIEFING, RULES, TALKS, TICKET, end

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp import Client
    from mcp.client.session import ClientRequestContext
    from mcp_types import CallToolResult, ElicitRequestParams

    from mcp_functions.protocol.wire_types import Params, ResultObject
    from mcp_functions_harness.client.http import Response
    from tests.deployed.stack import Stack

RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
RESOLVED = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
TASK_SECONDS = 25  # the task of the samples works for five seconds; a lease has 30
LISTED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def policy(*statements: Mapping[str, Any]) -> str:
    """Write a policy of statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


class Forgetful(Person):
    """A person who answers after every process of every function is gone."""

    def __init__(self, stack: Stack, *answers: ElicitResult) -> None:
        super().__init__(*answers)
        self._stack = stack

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self._stack.forget()
        return await super().answer(context, params)


def lists(stack: Stack) -> None:
    """Find in the lists what catalog.json names."""
    catalog = json.loads((stack.project.folder / "functions/mcp/catalog.json").read_text(encoding="utf-8"))
    written = sorted(entry["name"] for kind in LISTED.values() for entry in catalog[kind])
    server = stack.server()
    results: dict[str, Any] = {kind: server.exchange(method, {}).result or {} for method, kind in LISTED.items()}
    assert sorted(entry["name"] for kind, result in results.items() for entry in result[kind]) == written


def add(stack: Stack) -> None:
    """Call a tool without a question."""
    assert text(Person().call_tool(stack.url, "add", {"a": 2, "b": 3})) == "5"


def every_function(stack: Stack) -> None:
    """Each function is an endpoint of its own, and says what it has."""
    server = stack.server()
    for name in stack.functions:
        folder = name.removeprefix(f"{stack.name}_")
        if folder == "mcp" or folder.endswith("-worker"):
            continue
        listed: list[Any] = [server.exchange(method, {}, folder).result or {} for method in LISTED]
        names = [one["name"] for result in listed for kind in LISTED.values() for one in result.get(kind, ())]
        assert folder in names, names


def three_rounds(stack: Stack) -> None:
    """Hold the demo's conversation at the official client; each round is a cold start, with one call of KMS."""
    person = Forgetful(stack, accept(resolution="Duplicate"), accept(duplicateOfId=4301))
    stack.forget()
    before = len(stack.lines(handler="update_work_item"))
    assert text(person.call_tool(stack.url, "update_work_item", RESOLVE)) == RESOLVED
    rounds = [line for line in stack.lines(handler="update_work_item")[before:] if line["outcome"] != "forwarded"]
    assert [(line["round"], line["cold_start"], line["kms_calls"]) for line in rounds] == [
        (1, True, 1),
        (2, True, 1),
        (3, True, 1),
    ]


def samples(stack: Stack) -> None:
    """Every sample, as its conversation ends where nobody declines; each at its own endpoint."""
    for name, talk in TALKS.items():
        method, function, _arguments = talk.call
        if name.startswith(("decline", "cancel")):
            continue
        person = Person(*(ElicitResult(**answer) for answer in talk.answers))
        url, params = f"{stack.url}/{function}", talk.params
        result: Any
        if method == "tools/call":
            result = person.call_tool(url, params["name"], params["arguments"])
        elif method == "prompts/get":
            result = person.get_prompt(url, params["name"], params["arguments"])
        else:
            result = person.read_resource(url, params["uri"])
        assert end({"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}) == talk.end, name
        assert [question for question, _schema in person.asked] == talk.asked


def stream(stack: Stack) -> None:
    """Get the progress of a tool with its result, in one stream."""
    reported: list[float] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        assert (total, bool(message)) == (12, True)
        reported.append(progress)

    def called(client: Client) -> Awaitable[CallToolResult]:
        return client.call_tool("summarize_year", {"year": 2025}, progress_callback=progress)

    assert "tickets in 2025" in text(Person().use(f"{stack.url}/summarize_year", called))
    assert reported == list(range(1, 13))


def prompt(stack: Stack) -> None:
    """Get a prompt that asks."""
    person = Forgetful(stack, accept(audience="customers"))
    assert text(person.get_prompt(stack.url, "briefing", {"topic": "floor 3"})) == BRIEFING


def resources(stack: Stack) -> None:
    """Read a resource and a resource template, which both ask."""
    person = Forgetful(stack, accept(reader="Português"))
    assert text(person.read_resource(stack.url, "house://rules")) == RULES["Português"]
    person = Forgetful(stack, accept(reason="curious"))
    assert text(person.read_resource(stack.url, "tickets://IT/42")) == TICKET


def task(stack: Stack) -> None:
    """Run a task: a worker works, asks, and goes on, and no lease has to end for it."""
    deadline = time.monotonic() + TASK_SECONDS

    def told(polled: Mapping[str, Any]) -> None:
        assert time.monotonic() < deadline, polled

    assert "2025 is audited" in str(run_task(stack, told)["content"])


def run_task(stack: Stack, told: Callable[[Mapping[str, Any]], object] = lambda _task: None) -> ResultObject:
    """Run the task of the samples to its end; its question is answered with yes."""

    def answer(_key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        (field,) = request["params"]["requestedSchema"]["properties"]
        return {"action": "accept", "content": {field: True}}

    return TaskClient(stack.url, timeout=60, told=told).run("audit_year", {"year": 2025}, answer)


def paid_once(stack: Stack) -> None:
    """One approval is sent seven times, six of them at once: the round runs once, and all get its result."""
    server = stack.server()
    asked = server.exchange("tools/call", {"name": "pay_invoice", "arguments": {"number": "2026-001"}})
    assert asked.questions, asked
    assert asked.state, asked
    (key,) = asked.questions
    (field,) = asked.questions[key]["params"]["requestedSchema"]["properties"]
    approved: Params = {
        "name": "pay_invoice",
        "arguments": {"number": "2026-001"},
        "requestState": asked.state,
        "inputResponses": {key: {"action": "accept", "content": {field: True}}},
    }

    def send(_number: int) -> Response:
        return stack.server().exchange("tools/call", approved)

    stack.forget()
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(6)))
    while any(answer.undecided for answer in answers):  # who came while the round ran is told to come again
        answers = [send(0) if answer.undecided else answer for answer in answers]
    answers.append(send(6))
    results = {json.dumps((answer.result or {}).get("content")) for answer in answers}
    assert len(results) == 1, results
    assert "Paid: transfer " in results.pop()


def client_of_2025(stack: Stack) -> None:
    """Let the last official client of 2025 answer two questions, which the endpoint keeps in the table."""
    call = {"name": "update_work_item", "arguments": RESOLVE}
    answers = [
        {"action": "accept", "content": {"resolution": "Duplicate"}},
        {"action": "accept", "content": {"duplicateOfId": 4301}},
    ]
    functions = [name for name in stack.functions if name != f"{stack.name}_mcp"]  # the endpoint waits for the answers

    def before(body: bytes) -> None:
        if b'"result"' in body:  # an answer
            stack.account.kill(*functions)

    with stack.account.served(stack.outputs["Endpoint"], before=before) as url:
        (held,) = SPEAKERS["Python `mcp` 1.30"].say(
            [{"url": url, "method": "tools/call", "params": call, "answers": answers}]
        )
    assert held["revision"] == "2025-11-25"
    assert [one["text"] for one in held["result"]["content"]] == [RESOLVED], held


def closed(stack: Stack) -> None:
    """Check that a call needs a signature, and a browser's preflight none."""
    with stack.account.served(stack.outputs["Endpoint"], signed=False) as url:
        server = stack.server(url)
        assert [server.discover_anonymously(folder).status for folder in ("", "add")] == [403, 403]
        preflight = server.send(url, Request(b"", method="OPTIONS"))
    assert (preflight.status, preflight.headers["allow"]) == (405, "POST"), "the function answers, not API Gateway"
