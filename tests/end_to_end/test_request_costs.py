"""What one request costs, whatever its client sends: units of the table, calls to KMS and invocations of Lambda.

`tests.support.request_costs.MOST` has the most for each kind of request. Each case here makes a request of this kind as
expensive as a client can, and counts. Each request finds new containers, which know no data key.
"""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, Question, Step, prompt, resource, tool
from mcp_functions.assembly import assemble
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.constants import CALL_METHODS, METHODS
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.store.sealed_table import LARGE_READS, MAX_CLIENT_BYTES
from mcp_functions_harness.testing import MemoryBucket
from tests.legacy import deployment as legacy_deployment
from tests.legacy.clients import Client, read_question
from tests.legacy.handlers import note, plain
from tests.support import wire
from tests.support.dispatching import make_parts
from tests.support.metered_table import MeteredTable
from tests.support.request_costs import LEGACY, MODERN, MOST, Case, Cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EPOCH = 900  # seconds in which containers seal with one data key
DAY = 86_400
ALWAYS = 1000  # more conflicts than any request survives
STEPS: list[int] = []  # that `work` and `slow` have run
PAUSES: list[Callable[[], None]] = []  # the last one lets time pass, until a request has no time left
FULL = "x" * 295_000  # nearly fills an item


class Text(BaseModel):
    text: str


@tool(answer_within=DAY)
def ask(text: str, *, elicit: Elicit) -> str:
    """Ask two things at once, and then one more."""
    elicit.together(Question("A?", Text, key="a"), Question("B?", Text, key="b"))
    return elicit("c", "C?", Text).text + text[:1]


@tool(single_use="replay", answer_within=DAY)
def once(text: str, *, elicit: Elicit) -> str:
    """Ask twice, each time once only."""
    return elicit("a", "A?", Text).text[:1] + elicit("b", "B?", Text).text[:1] + text[:1]


@tool(single_use="replay", answer_within=DAY)
def fill_once(*, elicit: Elicit) -> str:
    """Return as much as an item keeps."""
    return FULL + elicit("a", "A?", Text).text


@tool(answer_within=DAY)
def fill(*, elicit: Elicit) -> str:
    """Return as much as an item keeps, to a client of 2025."""
    return FULL + elicit("a", "A?", Text).text


@tool(answer_within=DAY)
def work(text: str, *, step: Step, elicit: Elicit) -> str:
    """Work in as many rounds as a handler has by default, and ask."""
    for number in range(2):
        began = len(STEPS)
        step(f"step-{number}", STEPS.append, number)
        if len(STEPS) > began:  # not a replay
            step.shed()
    return elicit("a", "A?", Text).text + text[:1]


@tool(answer_within=DAY)
def slow(text: str, *, step: Step, elicit: Elicit) -> str:
    """Work for longer than a request has time, and ask."""
    began = len(STEPS)
    step("work", PAUSES[-1])
    if len(STEPS) > began:  # not a replay
        step.shed()
    return elicit("a", "A?", Text).text + text[:1]


@prompt
def brief(text: str, *, elicit: Elicit) -> str:
    """Write a briefing."""
    return elicit("a", "A?", Text).text + text[:1]


@resource("secrets://{text}")
def secret(text: str, *, elicit: Elicit) -> str:
    """Read a secret."""
    return elicit("a", "A?", Text).text + text[:1]


@tool(task="allowed")
def job(text: str, *, elicit: Elicit) -> str:
    """Ask two things; after the text "fill" the first question fills the item."""
    elicit.together(Question(FULL if text == "fill" else "A?", Text, key="a"), Question("B?", Text, key="b"))
    return text


HANDLERS = (ask, once, fill, fill_once, work, slow, job, note, plain, brief, secret)


class CountingKms(legacy_deployment.MemoryKms):
    """A KMS that refuses what it has not wrapped, as AWS does."""

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        try:
            return super().unwrap(wrapped, context)
        except (KeyError, AssertionError):
            raise InvalidRequestState(reason="wrapped_key") from None


class Deployment(legacy_deployment.Deployment):
    """An endpoint, one function with all handlers, and the worker of its tasks, which share a metered table."""

    table: MeteredTable

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - more settings
        self.orders: deque[tuple[str, str | None]] = deque()  # of workers that were invoked and have not run
        self.invocations = 0
        super().__init__(*HANDLERS, placement="behind the front door", question_seconds=DAY, **options)
        self.table = MeteredTable()
        self.kms = CountingKms()
        self.replace_containers()

    def _make_function(self) -> LambdaFunction:
        seals = self._make_seal_factory("all")
        parts = make_parts(self.handlers, self.settings, "all", seals, now=self.clock)
        parts.invoke_worker = self._order_worker
        endpoint = assemble(parts)
        return LambdaFunction(lambda _name, _now: endpoint, now=self.clock)

    def _order_worker(self, task_id: str, owner: str | None) -> None:
        self.invocations += 1
        self.orders.append((task_id, owner))

    def invoke_function(self, event: Mapping[str, Any]) -> dict[str, Any]:
        self.invocations += 1
        return super().invoke_function(event)

    def run_workers(self) -> None:
        while self.orders:
            task_id, owner = self.orders.popleft()
            self._function({"mcpTask": {"id": task_id, "owner": owner}}, wire.Context("local_all-worker", 900_000))

    def cost_of(self, request: Callable[[], object], *, new_containers: bool = True) -> Cost:
        """Count what a request costs."""
        if new_containers:
            self.replace_containers()
        self.table.reset()
        self.kms.calls.clear()
        self.invocations = 0
        request()
        return Cost(self.table.reads, self.table.writes, len(self.kms.calls), self.invocations)

    def next_key(self) -> None:
        """Let time pass, so that what is sealed from now on has another data key."""
        self.clock.advance(EPOCH)


class Modern:
    """A client of 2026-07-28 with tasks and forms."""

    def __init__(self, deployment: Deployment, name: str = "alice") -> None:
        self.deployment = deployment
        self.claims = Client(deployment, name, now=deployment.clock).authorizer_context

    def send(self, method: str, params: Mapping[str, Any], **options: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Send a request; return the JSON-RPC response. Options: those of `wire.message`."""
        capabilities = options.pop("capabilities", wire.FORM_CAPABILITIES)
        message = wire.message(method, params, capabilities=capabilities, **options)
        response = self.deployment(wire.event(message, context=self.claims()), wire.Context("local_mcp", 28_000))
        answer: dict[str, Any] = json.loads(response["body"])
        return answer

    def call(self, name: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Call a tool; return the result."""
        result: dict[str, Any] = self.send("tools/call", {"name": name, **params})["result"]
        return result

    def start(self, text: str = "") -> dict[str, Any]:
        """Call `job`; return the task, or the result that refuses it."""
        params = {"name": "job", "arguments": {"text": text}}
        result: dict[str, Any] = self.task("tools/call", params)["result"]
        return result

    def task(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return self.send(method, params, capabilities=wire.TASK_CAPABILITIES)


def accept(**texts: str) -> dict[str, Any]:
    return {key: {"action": "accept", "content": {"text": text}} for key, text in texts.items()}


def largest(accepts: Callable[[str], bool]) -> str:
    """Return the longest text that a server accepts."""
    low, high = 0, MAX_CLIENT_BYTES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepts("x" * middle) else (low, middle)
    return "x" * low


CASES: dict[Case, Callable[[], Cost]] = {}


def case(
    revision: str, method: str, how: str, *, own: bool = False
) -> Callable[[Callable[[], Cost]], Callable[[], Cost]]:
    """Add a case: what makes its request expensive, and whether these are the function's own data."""

    def add(function: Callable[[], Cost]) -> Callable[[], Cost]:
        CASES[Case(revision, method, how, own)] = function
        return function

    return add


# ---- Conversations of 2026-07-28


@case(MODERN, "tools/call", "that answers")
def answer_a_conversation() -> Cost:
    deployment = Deployment()
    alice = Modern(deployment)
    state = alice.call("ask", arguments={"text": ""})["requestState"]
    deployment.next_key()
    answers = accept(a="x", b="y")
    params = {"arguments": {"text": ""}, "requestState": state, "inputResponses": answers}
    return deployment.cost_of(lambda: alice.call("ask", **params))


def second_answer_of_once(conflicts: int = 0) -> Cost:
    """Answer a conversation whose item has the largest state, under a key of its own."""
    deployment = Deployment()
    alice = Modern(deployment)
    call = partial(alice.call, "once", arguments={"text": ""})
    first = call()["requestState"]

    def grows(text: str) -> bool:
        trial = Modern(deployment).call("once", arguments={"text": ""})["requestState"]
        asked = alice.call("once", arguments={"text": ""}, requestState=trial, inputResponses=accept(a=text))
        return "requestState" in asked

    text = largest(grows)
    deployment.next_key()
    second = call(requestState=first, inputResponses=accept(a=text))["requestState"]
    deployment.next_key()
    deployment.table.conflicts = conflicts
    return deployment.cost_of(lambda: alice.send("tools/call", {
        "name": "once", "arguments": {"text": ""}, "requestState": second, "inputResponses": accept(b="y"),
    }))  # fmt: skip


@case(MODERN, "tools/call", "that answers a round of single use, after the largest state")
def answer_once() -> Cost:
    return second_answer_of_once()


@case(MODERN, "tools/call", "that answers a round of single use, while others do")
def answer_once_while_others_do() -> Cost:
    return second_answer_of_once(conflicts=ALWAYS)


def filled_once() -> tuple[Deployment, Callable[[], object]]:
    deployment = Deployment()
    alice = Modern(deployment)
    state = alice.call("fill_once", arguments={})["requestState"]
    return deployment, lambda: alice.call("fill_once", arguments={}, requestState=state, inputResponses=accept(a="x"))


@case(MODERN, "tools/call", "that answers a round of single use, with the largest result", own=True)
def answer_once_with_a_large_result() -> Cost:
    deployment, answer = filled_once()
    return deployment.cost_of(answer)


@case(MODERN, "tools/call", "that repeats a round of single use with the largest result", own=True)
def repeat_a_large_result() -> Cost:
    deployment, answer = filled_once()
    answer()
    return deployment.cost_of(answer)


# ---- Tasks


@case(MODERN, "tools/call", "that begins a task with the largest arguments")
def begin_a_task() -> Cost:
    deployment = Deployment()
    alice = Modern(deployment)
    text = largest(lambda text: Modern(deployment, text[-1:] + str(len(text))).start(text)["resultType"] == "task")
    for _ in range(deployment.settings.max_open_tasks - 1):
        alice.start()
    deployment.next_key()
    return deployment.cost_of(lambda: alice.start(text))


@case(MODERN, "tools/call", "that begins a task, while others do")
def begin_a_task_while_others_do() -> Cost:
    deployment = Deployment()
    alice = Modern(deployment)
    for _ in range(deployment.settings.max_open_tasks - 1):
        alice.start()
    deployment.next_key()
    deployment.table.conflicts = ALWAYS
    return deployment.cost_of(lambda: alice.task("tools/call", {"name": "job", "arguments": {"text": ""}}))


@case(MODERN, "tools/call", "that is refused, because 100 tasks are open")
def refuse_a_task() -> Cost:
    deployment = Deployment()
    alice = Modern(deployment)
    for _ in range(deployment.settings.max_open_tasks):
        alice.start("x" * 10_000)
    deployment.next_key()
    return deployment.cost_of(lambda: refused(alice.start("x" * 10_000)))


def refused(result: Mapping[str, Any]) -> None:
    assert result["isError"]
    assert "100 tasks open" in result["content"][0]["text"]


def waiting_task(text: str = "", answered: str = "") -> tuple[Deployment, Modern, str]:
    """Begin a task that waits for its client, which has answered one of two questions if it has a text for it."""
    deployment = Deployment()
    alice = Modern(deployment)
    task_id = alice.start(text)["taskId"]
    deployment.run_workers()
    if answered:
        message = alice.task("tasks/update", {"taskId": task_id, "inputResponses": accept(a=answered)})
        assert "result" in message
    deployment.next_key()
    return deployment, alice, task_id


LARGE = "x" * 31_800  # nearly MAX_CLIENT_BYTES, with the members around it


def task_cost(method: str, *, conflicts: int = 0, end: bool = False, answer: str = "", **task: Any) -> Cost:  # noqa: ANN401
    """Send one of the three methods for a task that waits for its client, or has ended (`end`)."""
    deployment, alice, task_id = waiting_task(**task)
    if end:
        alice.task("tasks/update", {"taskId": task_id, "inputResponses": accept(a="x", b="y")})
        deployment.run_workers()
        deployment.next_key()
        alice.start()  # its item of open tasks has another key
    deployment.table.conflicts = conflicts
    params = {"taskId": task_id, "inputResponses": accept(b=answer)}
    return deployment.cost_of(lambda: alice.task(method, params))


@case(MODERN, "tasks/get", "of a task with the largest arguments and answers")
def poll() -> Cost:
    return task_cost("tasks/get", text=LARGE, answered=LARGE)


@case(MODERN, "tasks/get", "of a task that has ended with the largest arguments")
def poll_an_ended_task() -> Cost:
    return task_cost("tasks/get", text=LARGE, end=True)


@case(MODERN, "tasks/get", "of a task whose own question fills its item", own=True)
def poll_a_full_task() -> Cost:
    return task_cost("tasks/get", text="fill")


def cost_of_polling_a_lost_task(conflicts: int = 0) -> Cost:
    deployment = Deployment()
    alice = Modern(deployment)
    task_id = alice.start(LARGE)["taskId"]
    deployment.orders.clear()
    deployment.next_key()
    deployment.table.conflicts = conflicts
    return deployment.cost_of(lambda: alice.task("tasks/get", {"taskId": task_id}))


@case(MODERN, "tasks/get", "of a task whose worker has died")
def poll_a_lost_task() -> Cost:
    return cost_of_polling_a_lost_task()


@case(MODERN, "tasks/get", "of a task whose worker has died, while others change it")
def poll_a_lost_task_while_others_change_it() -> Cost:
    return cost_of_polling_a_lost_task(ALWAYS)


@case(MODERN, "tasks/update", "with the largest answers")
def update() -> Cost:
    return task_cost("tasks/update", text=LARGE, answer="x" * 31_000)


@case(MODERN, "tasks/update", "with the largest answers, while others answer")
def update_while_others_do() -> Cost:
    return task_cost("tasks/update", text=LARGE, answer="x" * 31_000, conflicts=ALWAYS)


@case(MODERN, "tasks/update", "of a task whose own question fills its item", own=True)
def update_a_full_task() -> Cost:
    return task_cost("tasks/update", text="fill", answer="x")


@case(MODERN, "tasks/cancel", "of a task with the largest arguments")
def cancel() -> Cost:
    return task_cost("tasks/cancel", text=LARGE)


@case(MODERN, "tasks/cancel", "of a task with the largest arguments, while others change it")
def cancel_while_others_change_it() -> Cost:
    return task_cost("tasks/cancel", text=LARGE, conflicts=ALWAYS)


@case(MODERN, "tasks/cancel", "of a task whose own question fills its item", own=True)
def cancel_a_full_task() -> Cost:
    return task_cost("tasks/cancel", text="fill")


# ---- Clients of 2025


def legacy_client(deployment: Deployment) -> Client:
    client = deployment.initialized_client()
    deployment.next_key()
    return client


def params_of(method: str, text: str) -> dict[str, Any]:
    """Return the params of a call that asks."""
    if method == "resources/read":
        return {"uri": f"secrets://{text}"}
    return {"name": "ask" if method == "tools/call" else "brief", "arguments": {"text": text}}


def large_call(method: str = "tools/call") -> tuple[Deployment, Client, str]:
    """Return a client, and the longest argument with which it can be asked."""
    deployment = Deployment()
    client = legacy_client(deployment)
    return deployment, client, largest(lambda text: len(client.send(method, params_of(method, text))) > 1)


@case(LEGACY, "initialize", "")
def initialize() -> Cost:
    deployment = Deployment()
    return deployment.cost_of(lambda: deployment.client().result("initialize", {"protocolVersion": "2025-11-25"}))


@case(LEGACY, "logging/setLevel", "")
def set_level() -> Cost:
    deployment = Deployment()
    client = legacy_client(deployment)
    return deployment.cost_of(lambda: client.send("logging/setLevel", {"level": "debug"}))


def ask_in_2025(method: str) -> Cost:
    deployment, client, text = large_call(method)
    deployment.next_key()
    return deployment.cost_of(lambda: read_question(client.send(method, params_of(method, text))))


for called in CALL_METHODS:
    case(LEGACY, called, "that asks, with the largest arguments")(partial(ask_in_2025, called))


@case(LEGACY, "tools/call", "that asks, and has the id of a call that waits")
def ask_again_in_2025() -> Cost:
    deployment, client, text = large_call()
    read_question(client.call("ask", text=text))
    client.request_id -= 1
    deployment.next_key()
    return deployment.cost_of(lambda: read_question(client.call("ask", text=text)))


@case(LEGACY, "tools/call", "that works without a question, in several rounds")
def work_in_2025() -> Cost:
    deployment = Deployment()
    client = legacy_client(deployment)
    return deployment.cost_of(lambda: read_question(client.call("work", text="")))


def answered(tool_name: str, *answers: str, repeated: bool = False, **text: str) -> Cost:
    """Answer the questions of a call; count the last answer."""
    deployment = Deployment()
    client = legacy_client(deployment)
    question = read_question(client.call(tool_name, **text))
    for answer in answers[:-1]:
        deployment.next_key()
        client.accept(question["id"], text=answer)
        question = read_question(client.resume())
    send = partial(client.accept, question["id"], text=answers[-1])
    if repeated:
        send()
    deployment.next_key()
    return deployment.cost_of(send)


def large_text() -> str:
    _deployment, _client, text = large_call()
    return text


@case(LEGACY, "answer", "to one of two questions of the largest call")
def answer_one_of_two_in_2025() -> Cost:
    return answered("ask", "", text=large_text())


@case(LEGACY, "answer", "that runs a round of the largest call")
def answer_in_2025() -> Cost:
    return answered("ask", "", "", text=large_text()[:-1000])


@case(LEGACY, "answer", "that was sent before")
def repeat_an_answer_in_2025() -> Cost:
    return answered("ask", "", text=large_text(), repeated=True)


@case(LEGACY, "answer", "whose call has the largest result", own=True)
def answer_with_a_large_result_in_2025() -> Cost:
    return answered("fill", "x")


def resumed(tool_name: str, *, ended: bool = False, **text: str) -> Cost:
    deployment = Deployment()
    client = legacy_client(deployment)
    question = read_question(client.call(tool_name, **text))
    if ended:
        client.accept(question["id"], text="x")
    deployment.next_key()
    return deployment.cost_of(client.resume)


@case(LEGACY, "resume", "of the largest call")
def resume() -> Cost:
    return resumed("ask", text=large_text())


@case(LEGACY, "resume", "of a call with the largest result", own=True)
def resume_a_large_result() -> Cost:
    return resumed("fill", ended=True)


@case(LEGACY, "resume", "that runs another round of the largest call")
def resume_a_slow_call() -> Cost:
    deployment = Deployment()
    client = legacy_client(deployment)

    def take_time() -> None:
        STEPS.append(0)
        deployment.clock.advance(20)

    PAUSES.append(take_time)
    client.call("slow", text="x" * 30_000)
    deployment.next_key()
    return deployment.cost_of(lambda: read_question(client.resume()))


@case(LEGACY, "notifications/cancelled", "for the largest call")
def cancel_in_2025() -> Cost:
    deployment, client, text = large_call()
    read_question(client.call("ask", text=text))
    deployment.next_key()
    return deployment.cost_of(client.cancel)


# ---- What holds for all of them


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_functions.legacy.call_store.sleep", lambda _seconds: None)


@pytest.mark.parametrize("how", CASES, ids=lambda how: " ".join(how[:3]).strip())
def test_a_request_costs_what_the_table_says(how: Case) -> None:
    assert CASES[how]() == MOST[how]


def test_every_expensive_request_of_the_table_is_counted() -> None:
    assert {how for how in MOST if how.how} == {how for how in CASES if how.how}


def most(revision: str, method: str) -> Cost:
    """Return the most that a request of a method costs."""
    rows = [cost for how, cost in MOST.items() if (how.revision, how.method) == (revision, method)]
    assert rows, f"how much does {method} of {revision} cost?"
    return most_of(*rows)


def hostile_params(deployment: Deployment) -> dict[str, Any]:
    """Return params with which every method has something to do, and 4 MB of them."""
    state: str = Modern(deployment, "mallory").call("ask", arguments={"text": ""})["requestState"]
    forged = f"{state[:60]}{'A' * 9}{state[69:]}"  # another wrapped data key
    return {
        "name": "job",
        "uri": "secrets://x",
        "taskId": "all.0123456789abcdef012345",
        "cursor": "x",
        "ref": {"type": "ref/prompt", "name": "plain"},
        "argument": {"name": "topic", "value": "x"},
        "level": "debug",
        "requestId": 1,
        "arguments": {"text": "x" * (deployment.settings.max_body_bytes - 10_000)},
        "requestState": forged,
        "inputResponses": accept(a="x"),
    }


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_hostile_request_of_any_method_costs_no_more_than_the_table_says(method: str) -> None:
    deployment = Deployment()
    alice = Modern(deployment)
    params = hostile_params(deployment)
    cost = deployment.cost_of(lambda: alice.task(method, params))
    assert most_of(cost, most(MODERN, method)) == most(MODERN, method)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_hostile_request_of_2025_costs_no_more_than_the_table_says(method: str) -> None:
    deployment = Deployment()
    client = legacy_client(deployment)
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": hostile_params(deployment)}
    if method.startswith("notifications/"):
        del message["id"]
    cost = deployment.cost_of(lambda: client.http("POST", message))
    assert most_of(cost, most(LEGACY, method)) == most(LEGACY, method)


def most_of(*costs: Cost) -> Cost:
    """Return the largest number of each column."""
    return Cost._make(map(max, zip(*costs, strict=True)))


def test_forged_states_of_one_caller_cost_three_calls_to_kms() -> None:
    deployment = Deployment()
    alice = Modern(deployment)
    state = alice.call("ask", arguments={"text": ""})["requestState"]
    deployment.replace_containers()
    costs = []
    for number in range(20):
        forged = f"{state[:60]}{number:09}{state[69:]}"
        params = {"name": "ask", "arguments": {"text": ""}, "requestState": forged}
        costs.append(deployment.cost_of(partial(alice.send, "tools/call", params), new_containers=False))
    assert [cost.kms for cost in costs] == [1] * 3 + [0] * 17


def test_one_caller_reads_a_large_item_20_times_and_then_twice_in_a_second() -> None:
    deployment, alice, task_id = waiting_task("fill")

    def poll() -> dict[str, Any]:
        return alice.task("tasks/get", {"taskId": task_id})

    costs = [deployment.cost_of(poll, new_containers=False) for _ in range(LARGE_READS + 20)]
    assert [cost.reads for cost in costs] == [97] * LARGE_READS + [0] * 20
    assert "error" in poll()
    deployment.clock.advance(1)
    assert [deployment.cost_of(poll, new_containers=False).reads for _ in range(3)] == [97, 97, 0]
    bob = Modern(deployment, "bob")
    assert bob.start()["status"] == "working"


def test_beside_a_bucket_no_row_is_large() -> None:
    deployment = Deployment(bucket=MemoryBucket())
    client = legacy_client(deployment)
    question = read_question(client.call("ask", text="x" * 500_000))
    cost = deployment.cost_of(lambda: client.accept(question["id"], text="x"))
    assert (cost.reads, cost.writes) == (1, 1)
