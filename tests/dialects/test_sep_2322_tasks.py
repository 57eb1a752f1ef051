"""SEP-2322's persistent workflow as it was proposed: its examples message by message, its client, and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import environment
from mcp_functions_harness.testing import Context, deployed
from mcp_functions_harness.testing.deployment import take_invocations
from tests.dialects.clients import EVERYTHING, RELATED, Client, PersistentClient, accept
from tests.dialects.functions import TASKS
from tests.dialects.wires import ISSUER, Events
from tests.support import wire
from tests.support.placements import PLACEMENTS, place
from tests.support.strict_kms import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.http.gateway import LambdaFunction

DIALECTS = "sep-2322-tasks"
EXAMPLES = Path(__file__).with_name("examples")
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
HELLO = {"inputResponses": {"echo_input": accept(input="Hello World!")}}
UNKNOWN = {"code": -32602, "message": "Unknown task"}


class World:
    """The functions of these tests, reached in one placement, and their worker, which comes when a test says so."""

    def __init__(self, placement: str, clock: Clock | None = None) -> None:
        self.placement, self.clock = placement, clock or Clock(1_767_225_600.0)
        self.reached = place(placement, *TASKS, now=self.clock)
        self.own: LambdaFunction = place("direct", *TASKS, now=self.clock)

    def client(self, who: str = "alice") -> PersistentClient:
        return PersistentClient(Events(self.reached, who))

    def work(self) -> None:
        for order in take_invocations("local_all-worker"):
            from_resource = environment.for_tokens(issuer=ISSUER, resource="https://mcp.example/mcp")
            with environment.applied(from_resource):
                assert self.own(order, Context("local_all-worker", 900_000)) == {}

    def asked(self, client: PersistentClient, name: str = "echo") -> str:
        """Begin a task and let it come to its question; return its id."""
        task_id: str = client.call(name)["task"]["taskId"]
        self.work()
        assert client.get(task_id)["status"] == "input_required"
        return task_id


@pytest.fixture(scope="module", params=PLACEMENTS)
def world(request: pytest.FixtureRequest, _speaking: None) -> World:
    return World(request.param)


@pytest.fixture(autouse=True)
def _nobody_waits() -> Iterator[None]:
    yield
    for _order in take_invocations("local_all-worker"):
        pass  # of a task that a test has left


# ---- The examples


def example(name: str) -> list[dict[str, Any]]:
    document: list[dict[str, Any]] = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return document


class Replay:
    """Sends the requests of an example with the task's real id, and judges the responses.

    Only these members may differ: the task's id and times; `pollInterval`, because the server chooses it; `_meta` of
    requests and `serverInfo` in that of results, as in tests/seeds; `requestState`, because "Servers MAY include" it.
    In one place the document writes `_meta` beside a result; here it is inside the result.
    """

    def __init__(self, client: PersistentClient) -> None:
        self.client, self.task_id = client, ""

    def request(self, shown: dict[str, Any]) -> dict[str, Any]:
        sent = self._named(shown)
        (received,) = self.client.request(sent["method"], sent["params"]).messages
        result = received["result"]
        self.task_id = result.get("task", result).get("taskId", self.task_id)
        return received

    def judge(self, shown: dict[str, Any], received: dict[str, Any]) -> None:
        expected = self._named(shown)
        result, got = expected["result"], received["result"]
        result["_meta"] = {**result.get("_meta", {}), **expected.pop("_meta", {})}
        result["_meta"][SERVER_INFO] = got["_meta"][SERVER_INFO]
        if result.get("resultType") == "input_required":
            result["requestState"] = got["requestState"]
        told, shown_task = got.get("task", got), result.get("task", result)
        for differs in ("createdAt", "lastUpdatedAt", "pollInterval"):
            if differs in shown_task:
                shown_task[differs] = told[differs]
        assert {**received, "id": 0} == {**expected, "id": 0}

    def _named(self, shown: dict[str, Any]) -> dict[str, Any]:
        theirs = "echo_dc792e24-01b5-4c0a-abcb-0559848ca3c5"
        named: dict[str, Any] = json.loads(json.dumps(shown).replace(theirs, self.task_id))
        return named


def test_the_echo_task_equals_the_messages_of_sep_2322(world: World) -> None:
    replay, shown = Replay(world.client()), example("sep-2322-echo")
    for request, response in zip(shown[::2], shown[1::2], strict=True):
        received = replay.request(request)
        replay.judge(response, received)
        world.work()
    assert replay.client.get(replay.task_id)["status"] == "completed"


def test_an_answer_that_was_not_requested_is_acknowledged_and_the_task_keeps_waiting(world: World) -> None:
    replay, shown = Replay(world.client()), example("sep-2322-echo")
    for request in shown[:2:2]:
        replay.request(request)
    world.work()
    request, response = example("sep-2322-echo-unexpected")
    replay.judge(response, replay.request(request))
    world.work()
    # "leaves the Task status as `input_required`. The next time the client calls `tasks/result`, the server responds
    # with a new `inputRequest` requesting the necessary information again."
    assert replay.client.get(replay.task_id)["status"] == "input_required"
    replay.judge(shown[5], replay.request(shown[4]))


# ---- A wish for a task


def test_the_client_chooses_a_tasks_lifetime_within_the_servers_limit(world: World) -> None:
    client = world.client()
    assert client.call("echo", ttl=5_000)["task"]["ttl"] == 5_000
    assert client.call("echo", ttl=None)["task"]["ttl"] == 86_400_000
    assert client.call("echo", ttl=10**15)["task"]["ttl"] == 86_400_000


@pytest.mark.parametrize("wish", [[], "x", None, True, {"ttl": 0}, {"ttl": -1}, {"ttl": True}, {"ttl": "60"}])
def test_malformed_task_params_are_refused_with_an_explanation(world: World, wish: object) -> None:
    error = world.client().told("tools/call", {"name": "echo", "arguments": {}, "task": wish})
    assert error["code"] == -32602
    assert "params.task" in error["message"]


def test_a_call_without_a_task_is_answered_at_once(world: World) -> None:
    result = world.client().told("tools/call", {"name": "plain", "arguments": {"number": 7}, "task": {"ttl": 5}})
    assert (result["resultType"], result["content"][0]["text"]) == ("complete", "7")


def test_a_call_without_task_params_runs_in_rounds(world: World) -> None:
    result = world.client().told("tools/call", {"name": "echo", "arguments": {}})
    assert (result["resultType"], list(result["inputRequests"])) == ("input_required", ["echo_input"])


def test_a_tool_that_requires_a_task_explains_how_to_request_one(world: World) -> None:
    error = world.client().told("tools/call", {"name": "paid", "arguments": {}})
    assert error["code"] == -32602
    assert "params.task" in error["message"]
    assert world.client().call("paid")["task"]["status"] == "working"


def test_declared_questions_are_asked_in_rounds_before_the_task(world: World) -> None:
    client = world.client()
    call = {"name": "signed", "arguments": {}, "task": {"ttl": 60_000}}
    first = client.told("tools/call", call)
    assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["who"])
    answers = {"inputResponses": {"who": accept(name="Ann")}, "requestState": first["requestState"]}
    task_id = client.told("tools/call", {**call, **answers})["task"]["taskId"]
    world.work()
    assert client.result(task_id)["content"][0]["text"] == "signed by Ann"


# ---- The four methods


def test_tasks_result_of_a_working_task_is_an_error_and_does_not_wait(world: World) -> None:
    client = world.client()
    task_id = client.call("echo")["task"]["taskId"]
    error = client.result(task_id)
    assert error["code"] == -32602
    assert "poll tasks/get" in error["message"]
    assert (error["data"]["task"]["taskId"], error["data"]["task"]["status"]) == (task_id, "working")


def test_the_status_of_a_task_omits_its_question_and_result(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    keys = {"taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttl", "pollInterval", "_meta"}
    assert client.get(task_id).keys() == keys
    client.answer(task_id, **HELLO)
    world.work()
    assert client.get(task_id).keys() == keys
    assert client.get(task_id)["status"] == "completed"


def test_tasks_result_of_a_crashed_task_is_the_result_of_the_call(world: World) -> None:
    client = world.client()
    task_id = client.call("broken")["task"]["taskId"]
    world.work()
    assert client.get(task_id)["status"] == "completed"
    assert client.result(task_id)["isError"] is True


def test_tasks_result_of_a_failed_tool_is_a_tool_error(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    client.answer(task_id, inputResponses={"echo_input": {"action": "decline"}})
    world.work()
    assert client.result(task_id)["isError"] is True


def test_a_cancelled_task_has_no_result(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    assert client.cancel(task_id)["status"] == "cancelled"
    assert client.cancel(task_id)["status"] == "cancelled"
    assert client.result(task_id)["message"] == "The task was cancelled, so it has no result"


def test_a_client_without_elicitation_gets_the_error_only_at_the_question(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    client.capabilities = {"experimental": client.capabilities["experimental"]}
    assert client.get(task_id)["status"] == "input_required"
    assert client.result(task_id)["code"] == -32021


@pytest.mark.parametrize("responses", [None, [], "x", {"echo_input": "Hello"}, {"echo_input": []}])
def test_malformed_answers_are_an_error(world: World, responses: object) -> None:
    client = world.client()
    task_id = world.asked(client)
    sent = {} if responses is None else {"inputResponses": responses}
    error = client.answer(task_id, **sent)
    assert (error["code"], client.replies[-1].status) == (-32602, 400)
    assert "inputResponses" in error["message"]
    assert client.get(task_id)["status"] == "input_required"


@pytest.mark.parametrize(
    "response",
    [accept(), accept(input=7), accept(input=["Hello"]), {"action": "accept"}, {"action": "accept", "content": None}],
)
def test_an_answer_without_a_required_field_does_not_continue_the_task(world: World, response: dict[str, Any]) -> None:
    client = world.client()
    task_id = world.asked(client)
    assert client.answer(task_id, inputResponses={"echo_input": response})["_meta"][RELATED] == {"taskId": task_id}
    world.work()
    assert client.get(task_id)["status"] == "input_required"
    assert list(client.result(task_id)["inputRequests"]) == ["echo_input"]


def test_a_repeated_or_late_answer_is_acknowledged_and_ignored(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    for said in ("Hello World!", "Good bye"):
        client.answer(task_id, inputResponses={"echo_input": accept(input=said)})
    world.work()
    client.answer(task_id, inputResponses={"echo_input": accept(input="Good night")})
    assert client.result(task_id)["content"][0]["text"] == "Echo: Hello World!"


def test_the_params_may_repeat_the_task_id_but_not_name_another_task(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    error = client.told("tasks/input_response", {"taskId": task_id, **HELLO, "_meta": {RELATED: {"taskId": "all.x"}}})
    assert error["code"] == -32602
    client.told("tasks/input_response", {"taskId": task_id, **HELLO})
    assert client.get(task_id)["status"] == "working"


@pytest.mark.parametrize("about", [{}, {RELATED: {}}, {RELATED: "x"}, {RELATED: {"taskId": 7}}])
def test_an_answer_without_a_task_id_gets_an_error_that_names_its_place(world: World, about: dict[str, Any]) -> None:
    error = world.client().told("tasks/input_response", {**HELLO, "_meta": about})
    assert error["code"] == -32602
    assert RELATED in error["message"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel", "tasks/input_response"])
@pytest.mark.parametrize("task_id", ["all.0123456789abcdef012345", "other.0123456789abcdef012345", "x", ""])
def test_a_task_id_that_was_never_issued_is_unknown(world: World, method: str, task_id: str) -> None:
    assert world.client().told(method, {"taskId": task_id, **HELLO}) == UNKNOWN


def test_a_header_that_names_the_task_must_match(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    sent = wire.message("tasks/get", {"taskId": task_id}, capabilities=client.capabilities)
    for named, code in ((task_id, None), ("all.other", -32020)):
        reply = client.post(sent, {"mcp-method": "tasks/get", "mcp-name": named})
        assert reply.messages[0].get("error", {}).get("code") == code


# ---- Whose it is


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel", "tasks/input_response"])
def test_another_principals_task_is_unknown(world: World, method: str) -> None:
    task_id = world.asked(world.client("alice"))
    assert world.client("bob").told(method, {"taskId": task_id, **HELLO}) == UNKNOWN
    assert world.client("alice").get(task_id)["status"] == "input_required"


def test_the_state_of_a_question_comes_back_with_its_answer(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    state = client.result(task_id)["requestState"]
    client.answer(task_id, **HELLO, requestState=state)
    world.work()
    assert client.result(task_id)["content"][0]["text"] == "Echo: Hello World!"


def refused(told: dict[str, Any]) -> None:
    assert told == {
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"},
    }


@pytest.mark.parametrize("forge", [lambda state: f"{state}A", lambda _: "x", lambda _: "", lambda _: None, lambda _: 7])
def test_a_forged_state_is_refused(world: World, forge: Callable[[str], object]) -> None:
    client = world.client()
    task_id = world.asked(client)
    refused(client.answer(task_id, **HELLO, requestState=forge(client.result(task_id)["requestState"])))
    assert client.get(task_id)["status"] == "input_required"


def test_the_state_of_another_task_or_person_or_kind_is_refused(world: World) -> None:
    alice, bob = world.client("alice"), world.client("bob")
    task_id, other, theirs = world.asked(alice), world.asked(alice), world.asked(bob)
    call = alice.told("tools/call", {"name": "echo", "arguments": {}})
    for state in (
        alice.result(other)["requestState"],
        bob.result(theirs)["requestState"],
        call["requestState"],
    ):
        refused(alice.answer(task_id, **HELLO, requestState=state))


def test_a_state_expires(world: World) -> None:
    client = world.client()
    task_id = world.asked(client)
    state = client.result(task_id)["requestState"]
    began = world.clock.at
    world.clock.advance(8 * 24 * 3600)
    try:
        refused(client.answer(task_id, **HELLO, requestState=state))
        assert client.get(task_id) == UNKNOWN
    finally:
        world.clock.at = began


def test_an_answer_to_an_earlier_question_does_not_answer_a_later_one(world: World) -> None:
    client = world.client()
    task_id = world.asked(client, "paid")
    state = client.result(task_id)["requestState"]
    # it has the shape that the form asks for, and is not what the function takes
    client.answer(task_id, inputResponses={"amount": accept(amount=-1)}, requestState=state)
    world.work()
    (key,) = client.result(task_id)["inputRequests"]
    assert key != "amount"
    client.answer(task_id, inputResponses={key: accept(amount=5)}, requestState=state)
    assert client.get(task_id)["status"] == "input_required"
    client.answer(task_id, inputResponses={key: accept(amount=5)}, requestState=client.result(task_id)["requestState"])
    world.work()
    assert client.result(task_id)["content"][0]["text"] == "5"


# ---- Who asked for it, and who did not


@pytest.mark.parametrize("method", ["tasks/result", "tasks/input_response"])
def test_a_client_without_the_declaration_gets_method_not_found(world: World, method: str) -> None:
    task_id = world.asked(world.client())
    for capabilities in (EVERYTHING, wire.TASK_CAPABILITIES):
        client = Client(world.client().over, None)
        client.capabilities = dict(capabilities)
        reply = client.request(method, {"taskId": task_id, **HELLO})
        assert (reply.status, reply.messages[0]["error"]["code"]) == (404, -32601)


def test_the_released_extension_works_beside_the_dialect(world: World) -> None:
    task_id = world.asked(world.client())
    released = Client(world.client().over, None)
    released.capabilities = dict(wire.TASK_CAPABILITIES)
    sent = wire.message("tasks/get", {"taskId": task_id}, capabilities=wire.TASK_CAPABILITIES)
    reply = released.post(sent, {"mcp-method": "tasks/get", "mcp-name": task_id})
    assert list(reply.messages[0]["result"]["inputRequests"]) == ["echo_input"]
    wire.check(reply.messages[0], "tasks/get")
    # "params.task MUST be ignored"
    call = {"name": "echo", "arguments": {}, "task": {"ttl": 5}}
    (created,) = released.request("tools/call", call).messages
    assert (created["result"]["resultType"], created["result"]["ttlMs"]) == ("task", 86_400_000)


def test_with_the_dialect_off_its_methods_are_unknown(world: World) -> None:
    with deployed(MCP_DIALECTS=None):
        client = World(world.placement).client()
        for method in ("tasks/result", "tasks/input_response"):
            reply = client.request(method, {"taskId": "all.0123456789abcdef012345", **HELLO})
            assert (reply.status, reply.messages[0]["error"]["code"]) == (404, -32601)
        call = {"name": "echo", "arguments": {}, "task": {"ttl": 5}}
        (message,) = client.request("tools/call", call).messages
        assert message["result"]["resultType"] == "input_required"
        wire.check(message, "tools/call")


def test_a_function_without_tasks_has_no_tasks_in_the_dialect(world: World) -> None:
    from tests.dialects.functions import plain

    client = PersistentClient(Events(place(world.placement, plain)))
    reply = client.request("tasks/get", {"taskId": "all.0123456789abcdef012345"})
    assert (reply.status, reply.messages[0]["error"]["code"]) == (404, -32601)
