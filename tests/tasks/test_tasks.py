"""A task is a call that continues after its response: the client polls it, answers its questions, and cancels it.

`deployment.run_workers()` runs the workers that continue the tasks. `STEP_HOOKS` are called while a step runs.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import serve, settings, tool
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog, lists
from mcp_functions.http.gateway import LambdaFunction, WorkFailed
from mcp_functions.protocol.errors import UnknownTask
from mcp_functions.protocol.messages import ForwardedResponse, Request
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.token_format import CEILING
from mcp_functions.settings import Settings
from mcp_functions.store import LABEL
from mcp_functions.testing import WITH_TASKS, Conversation, deployed
from tests.support import wire
from tests.support.placements import Lambdas
from tests.support.strict_kms import START, Clock, StrictKms, make_keys
from tests.tasks.deployment import Client, Deployment, result_text
from tests.tasks.jobs import FINISHED_STEPS, JOBS, STEP_HOOKS, publish

if TYPE_CHECKING:
    from mcp_functions.rounds.audit import AuditRecord

DAY = 24 * 3600
APPROVAL, REJECTION = {"yes": True}, {"yes": False}
SECRET = "secret of the author"  # noqa: S105 - what must stay in the function


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    FINISHED_STEPS.clear()
    STEP_HOOKS.clear()


@pytest.fixture
def deployment() -> Deployment:
    return Deployment(*JOBS)


@pytest.fixture
def alice(deployment: Deployment) -> Client:
    return Client(deployment)


# ---- A call becomes a task


def test_a_task_works_asks_is_answered_and_ends_with_what_the_call_would_have_returned(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("publish", title="Lisbon")
    assert alice.get(task)["status"] == "working"
    deployment.run_workers()
    asked = alice.get(task)
    assert (asked["status"], list(asked["inputRequests"])) == ("input_required", ["approve"])
    alice.accept(task, approve=APPROVAL)
    assert alice.get(task)["status"] == "working"
    deployment.run_workers()
    result = alice.get(task)
    assert (result["status"], result_text(result["result"])) == ("completed", "DRAFT LISBON, PUBLISH LISBON")
    assert FINISHED_STEPS == ["draft Lisbon", "publish Lisbon"]


def test_the_call_returns_at_once_with_a_stored_task(deployment: Deployment, alice: Client) -> None:
    result = alice.call("publish", title="Lisbon")
    assert result["status"] == "working"
    assert FINISHED_STEPS == []
    assert result.keys() & {"result", "error", "inputRequests", "requestState", "content"} == set()
    assert deployment.table.calls[-1] == "PutItem"
    assert alice.get(result["taskId"])["createdAt"] == result["createdAt"]


def test_a_client_without_the_extension_gets_the_result_itself(deployment: Deployment) -> None:
    plain = Client(deployment, capabilities=wire.FORMS)
    first = plain.call("publish", title="Lisbon")
    assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["approve"])
    assert not deployment.invocations


def test_a_tool_that_requires_a_task_refuses_a_client_without_the_extension(deployment: Deployment) -> None:
    error = Client(deployment, capabilities=wire.FORMS).error("tools/call", {"name": "required", "arguments": {}})
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {wire.TASKS: {}}}}
    assert FINISHED_STEPS == []


@pytest.mark.parametrize(("count", "plainly", "knowingly"), [(1, "complete", "complete"), (3, "complete", "task")])
def test_an_author_decides_by_the_arguments(deployment: Deployment, count: int, plainly: str, knowingly: str) -> None:
    assert Client(deployment, capabilities={}).call("counted", count=count)["resultType"] == plainly
    assert Client(deployment).call("counted", count=count)["resultType"] == knowingly


def test_an_author_may_require_a_task_by_the_arguments(deployment: Deployment) -> None:
    params = {"name": "counted", "arguments": {"count": 9}}
    assert Client(deployment, capabilities={}).error("tools/call", params)["code"] == -32021


def test_arguments_that_do_not_fit_make_no_task(deployment: Deployment) -> None:
    client = Client(deployment, scope="work:write")
    for name in ("counted", "publish", "scoped"):
        result = client.call(name, count="many")
        assert (result["resultType"], result["isError"]) == ("complete", True)
    assert deployment.table.items == {}


def test_a_task_request_of_the_client_is_ignored(alice: Client, deployment: Deployment) -> None:
    wish = {"task": {"ttl": 5}}
    assert "content" in alice.result("tools/call", {"name": "counted", "arguments": {"count": 1}, **wish})
    created = alice.result("tools/call", {"name": "publish", "arguments": {"title": "x"}, **wish})
    assert created["ttlMs"] == 86_400_000
    assert deployment.invocations


def test_declared_questions_are_asked_in_a_round_before_the_task(deployment: Deployment, alice: Client) -> None:
    call = {"name": "named", "arguments": {"greeting": "Hello"}}
    first = alice.result("tools/call", call)
    assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["who"])
    assert deployment.table.items == {}
    answer = {"inputResponses": {"who": {"action": "accept", "content": {"name": "Ann"}}}}
    created = alice.result("tools/call", {**call, **answer, "requestState": first["requestState"]})
    assert created["resultType"] == "task"
    assert (created["ttlMs"], "requestState" in created) == (86_400_000, False)
    deployment.run_workers()
    assert list(alice.get(created["taskId"])["inputRequests"]) == ["sure"]
    alice.accept(created["taskId"], sure=APPROVAL)
    deployment.run_workers()
    assert result_text(alice.get(created["taskId"])["result"]) == "Hello, Ann (alice): True"


def test_a_declined_question_before_a_task_starts_no_task(deployment: Deployment, alice: Client) -> None:
    call = {"name": "named", "arguments": {"greeting": "Hello"}}
    state = alice.result("tools/call", call)["requestState"]
    answer = {"inputResponses": {"who": {"action": "decline"}}, "requestState": state}
    assert "declined" in result_text(alice.result("tools/call", {**call, **answer}))
    assert deployment.table.items == {}


# ---- Polling


def test_a_poll_shows_the_progress(deployment: Deployment, alice: Client) -> None:
    messages: list[str] = []
    task = alice.start_task("counted", count=3)
    STEP_HOOKS.append(lambda _steps: messages.append(alice.get(task)["statusMessage"]))
    deployment.run_workers()
    assert messages == ["0 of 3", "1 of 3", "2 of 3"]


def test_the_poll_interval_grows_with_the_age_of_a_task(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    intervals = []
    for _ in range(3):
        deployment.clock.advance(100)
        intervals.append(alice.get(task)["pollIntervalMs"])
    assert intervals == [10_000, 20_000, 30_000]


def test_a_task_is_kept_for_its_tools_time_and_is_then_unknown(deployment: Deployment, alice: Client) -> None:
    created = alice.call("required")
    assert created["ttlMs"] == 60_000
    deployment.run_workers()
    deployment.clock.advance(59)
    assert alice.get(created["taskId"])["status"] == "completed"
    deployment.clock.advance(1)
    for method in wire.OF_TASKS:
        params = {"taskId": created["taskId"], "inputResponses": {}}
        assert alice.error(method, params) == {"code": -32602, "message": "Unknown task"}


def test_a_deployment_clips_how_long_a_task_is_kept() -> None:
    assert Client(Deployment(*JOBS, max_task_ttl=30)).call("publish", title="x")["ttlMs"] == 30_000


@pytest.mark.parametrize("method", wire.OF_TASKS)
@pytest.mark.parametrize(
    "task_id", ["", "work", "work.", "work.0123456789abcdef012345", "other.0123456789abcdef012345", "../x", "work." * 9]
)
def test_a_task_id_that_was_never_issued_is_unknown(alice: Client, method: str, task_id: str) -> None:
    error = alice.error(method, {"taskId": task_id, "inputResponses": {}})
    assert error == {"code": -32602, "message": "Unknown task"}
    assert alice.response["statusCode"] == 200


@pytest.mark.parametrize("method", wire.OF_TASKS)
def test_another_principals_task_is_unknown(deployment: Deployment, alice: Client, method: str) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    before = dict(deployment.table.items)
    mallory = Client(deployment, "mallory")
    params = {"taskId": task, "inputResponses": {"approve": {"action": "accept", "content": APPROVAL}}}
    assert mallory.error(method, params) == {"code": -32602, "message": "Unknown task"}
    assert deployment.table.items == before


@pytest.mark.parametrize("method", wire.OF_TASKS)
def test_a_client_without_the_extension_is_refused_before_any_lookup(deployment: Deployment, method: str) -> None:
    error = Client(deployment, capabilities=wire.FORMS).error(method, {"taskId": "work.x", "inputResponses": {}})
    assert (error["code"], deployment.table.calls) == (-32021, [])


@pytest.mark.parametrize("header", ["work.another", None])
@pytest.mark.parametrize("method", wire.OF_TASKS)
def test_the_header_names_the_task_too(alice: Client, method: str, header: str | None) -> None:
    params = {"taskId": "work.0123456789abcdef012345", "inputResponses": {}}
    message = alice.send(method, params, headers={"mcp-name": header})
    assert message["error"]["code"] == -32020


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tasks/get", {}),
        ("tasks/cancel", {"taskId": 7}),
        ("tasks/update", {"taskId": None}),
    ],
)
def test_malformed_params_are_refused(alice: Client, method: str, params: dict[str, Any]) -> None:
    assert alice.error(method, params)["code"] == -32602
    assert alice.response["statusCode"] == 400


@pytest.mark.parametrize("responses", [None, [], "yes", {"approve": "yes"}])
def test_malformed_answers_are_refused(deployment: Deployment, alice: Client, responses: object) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    assert alice.error("tasks/update", {"taskId": task, "inputResponses": responses})["code"] == -32602
    assert alice.get(task)["status"] == "input_required"


def test_a_task_needs_the_scope_that_its_call_needed(deployment: Deployment) -> None:
    task = Client(deployment, scope="work:write").start_task("scoped")
    for method in wire.OF_TASKS:
        poor = Client(deployment)
        assert poor.error(method, {"taskId": task, "inputResponses": {}})["data"]["reason"] == "insufficient_scope"
        assert poor.response["statusCode"] == 403


def test_a_client_without_a_capability_gets_no_question_that_needs_it(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    bare = Client(deployment, capabilities={"extensions": {wire.TASKS: {}}})
    error = bare.error("tasks/get", {"taskId": task})
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})


# ---- Answering


def test_answers_may_come_one_by_one(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("both")
    deployment.run_workers()
    alice.accept(task, a={"name": "Ann"})
    half = alice.get(task)
    assert (half["status"], list(half["inputRequests"])) == ("input_required", ["b"])
    assert not deployment.invocations
    alice.accept(task, b={"name": "Bob"})
    deployment.run_workers()
    assert result_text(alice.get(task)["result"]) == "Ann Bob"


def test_unknown_and_repeated_answers_are_acknowledged_and_ignored(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("both")
    deployment.run_workers()
    alice.accept(task, a={"name": "Ann"})
    items = dict(deployment.table.items)
    alice.accept(task, a={"name": "Zoe"}, unknown={"name": "nobody"})
    assert deployment.table.items == items


def test_a_repeated_answer_beside_a_new_one_is_ignored(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("both")
    deployment.run_workers()
    alice.accept(task, a={"name": "Ann"})
    alice.accept(task, a={"name": "Zoe"}, b={"name": "Bob"})
    deployment.run_workers()
    assert result_text(alice.get(task)["result"]) == "Ann Bob"


def test_an_answer_to_a_task_that_has_ended_is_acknowledged_and_ignored(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("both")
    deployment.run_workers()
    alice.accept(task, a={"name": "Ann"}, b={"name": "Bob"})
    alice.accept(task, b={"name": "Zoe"})
    deployment.run_workers()
    alice.accept(task, a={"name": "Zoe"})
    assert result_text(alice.get(task)["result"]) == "Ann Bob"


def test_a_question_with_an_invalid_answer_is_asked_again_under_a_new_key(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    for key in ("approve", "approve-2", "approve-3"):
        assert list(alice.get(task)["inputRequests"]) == [key]
        alice.accept(task, **{key: {"yes": "perhaps"}})
        alice.accept(task, approve=APPROVAL)  # an answer to the first question comes too late
        deployment.run_workers()
    assert "Please answer again" in alice.get(task)["inputRequests"]["approve-4"]["params"]["message"]
    alice.accept(task, **{"approve-4": APPROVAL})
    deployment.run_workers()
    assert alice.get(task)["status"] == "completed"
    assert FINISHED_STEPS.count("draft Lisbon") == 1


def test_a_declined_question_ends_the_task_with_a_result(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    alice.update(task, approve={"action": "decline"})
    deployment.run_workers()
    result = alice.get(task)
    assert (result["status"], result["result"]["isError"]) == ("completed", True)


def test_an_answer_too_large_for_the_item_is_refused(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("both")
    deployment.run_workers()
    responses = {"a": {"action": "accept", "content": {"name": "x" * 500_000}}}
    alice.error("tasks/update", {"taskId": task, "inputResponses": responses})
    assert alice.response["statusCode"] == 413
    assert list(alice.get(task)["inputRequests"]) == ["a", "b"]


# ---- Ending


CRASH_MESSAGE = "The tool broken failed unexpectedly. The server's log says why."


@pytest.mark.parametrize(
    ("how", "message"),
    [
        pytest.param("tool", "no paper", id="ToolError"),
        pytest.param("bug", CRASH_MESSAGE, id="another exception"),
        pytest.param("meta", CRASH_MESSAGE, id="a result that is no JSON"),
        pytest.param("exit", CRASH_MESSAGE, id="SystemExit"),
        pytest.param("rule", CRASH_MESSAGE, id="two steps with one key"),
        pytest.param("steps", "This call has more data than a task can keep. Answer more briefly.", id="large steps"),
    ],
)
def test_a_tool_that_fails_completes_its_task_with_a_tool_error(
    deployment: Deployment, alice: Client, how: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    task = alice.start_task("broken", how=how)
    deployment.run_workers()
    polled = alice.get(task)
    assert polled["status"] == "completed"
    assert polled["result"]["isError"] is True
    assert result_text(polled["result"]) == message
    assert SECRET not in caplog.text


def test_only_a_protocol_error_makes_a_task_failed(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("broken", how="large")
    deployment.run_workers()
    polled = alice.get(task)
    message = "The result is larger than a task can keep (about 290 KB)"
    assert polled["status"] == "failed"
    assert polled["error"] == {"code": -32603, "message": message}
    assert polled["statusMessage"] == message


def test_a_task_whose_question_the_calling_client_cannot_show_ends_in_words(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("sampled")
    deployment.run_workers()
    result = alice.get(task)
    assert (result["status"], result["result"]["isError"]) == ("completed", True)
    assert "It asks: a message of the client's model." in result_text(result["result"])


def test_a_task_whose_tool_requires_what_the_client_lacks_fails_with_its_name(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("demanding")
    deployment.run_workers()
    result = alice.get(task)
    assert (result["status"], result["error"]["code"]) == ("failed", -32021)
    assert result["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    assert result["error"]["message"] == (
        "The client lacks a required capability: sampling. The server would have asked: a message of the client's model"
    )


def test_the_arguments_of_a_task_are_deleted_when_it_ends(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    alice.update(task, approve={"action": "accept", "content": REJECTION})
    deployment.run_workers()
    kept = deployment.tasks.store.get(task, next(iter(deployment.table.items)).split("/")[3])
    assert (kept.arguments, kept.record, kept.given, kept.asked) == ({}, {}, {}, {})


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
def test_a_finished_task_never_changes(deployment: Deployment, alice: Client, ending: str) -> None:
    task = alice.start_task("broken", how="large" if ending == "failed" else "well")
    if ending == "cancelled":
        alice.cancel(task)
    deployment.run_workers()
    result = alice.get(task)
    assert result["status"] == ending
    items = dict(deployment.table.items)
    alice.cancel(task)
    alice.accept(task, approve=APPROVAL)
    deployment.run_worker((task, next(iter(items)).split("/")[3]))
    deployment.clock.advance(3600)
    assert alice.get(task) == {**result, "pollIntervalMs": 30_000}
    assert deployment.table.items == items


# ---- Cancelling


def test_a_task_that_waits_for_an_answer_is_cancelled_immediately(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    alice.cancel(task)
    result = alice.get(task)
    assert result["status"] == "cancelled"
    alice.accept(task, approve=APPROVAL)
    assert deployment.run_workers() == 0
    assert FINISHED_STEPS == ["draft Lisbon"]


def test_a_cancellation_is_seen_at_the_next_step(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("counted", count=5)
    STEP_HOOKS.append(lambda steps: len(steps) == 2 and alice.cancel(task))
    deployment.run_workers()
    assert alice.get(task)["status"] == "cancelled"
    assert FINISHED_STEPS == ["part 0", "part 1"]


def test_a_cancellation_is_seen_at_the_next_question(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    STEP_HOOKS.append(lambda _steps: alice.cancel(task))
    deployment.run_workers()
    result = alice.get(task)
    assert (result["status"], "inputRequests" in result) == ("cancelled", False)


def test_work_that_finishes_before_it_sees_the_cancellation_stays_completed(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("counted", count=5)
    STEP_HOOKS.append(lambda steps: len(steps) == 5 and alice.cancel(task))
    deployment.run_workers()
    assert alice.get(task)["status"] == "completed"


def test_a_task_that_is_cancelled_before_its_worker_starts_never_begins(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("required")
    alice.cancel(task)
    assert alice.get(task)["status"] == "cancelled"
    deployment.run_workers()
    assert FINISHED_STEPS == []


# ---- Limits


def test_open_tasks_are_counted_for_each_principal() -> None:
    deployment = Deployment(*JOBS, max_open_tasks=2)
    alice, bob = Client(deployment), Client(deployment, "bob")
    first, _second = alice.start_task("publish", title="1"), alice.start_task("publish", title="2")
    refused = alice.call("publish", title="3")
    assert refused["isError"]
    assert "2 tasks open" in result_text(refused)
    bob.start_task("publish", title="1")
    alice.cancel(first)
    alice.start_task("publish", title="3")
    assert alice.call("publish", title="4")["isError"]


def test_tasks_that_have_ended_or_expired_are_not_counted() -> None:
    deployment = Deployment(*JOBS, max_open_tasks=2)
    alice = Client(deployment)
    for _ in range(5):
        alice.start_task("required")
        alice.start_task("required")
        deployment.run_workers()
    alice.start_task("required")
    alice.start_task("required")
    assert alice.call("required")["isError"]
    deployment.clock.advance(60)
    deployment.table.expire(deployment.clock())
    alice.start_task("required")


def test_polling_tasks_under_many_data_keys_asks_kms_within_the_budget_of_the_person() -> None:
    kms, clock = StrictKms(), Clock(START + 450)  # the middle of an epoch, where no key of the one before seals
    keys = make_keys(kms, kms.create_key(), clock=clock)
    deployment = Deployment(
        *JOBS, max_open_tasks=100, clock=clock, seal=Envelope(keys, label=LABEL, max_chars=CEILING, max_age=DAY)
    )
    alice, tasks = Client(deployment), list[str]()
    for _ in range(70):
        clock.advance(900)  # an epoch: the next task is sealed under another key
        tasks.append(alice.start_task("counted", count=2))
        deployment.run_workers()
    keys.reset()
    assert kms.count("GenerateDataKey") == 70
    kms.calls.clear()
    for _ in range(3):
        told = [alice.send("tasks/get", {"taskId": task}) for task in tasks]
        assert ["result" in message for message in told] == [True] * 41 + [False] * 29
        assert alice.response["statusCode"] == 503
    assert kms.count("Decrypt") == 41


def test_a_call_too_large_for_an_item_gets_an_error_result(deployment: Deployment, alice: Client) -> None:
    result = alice.call("publish", title="x" * 500_000)
    assert result["isError"]
    assert not deployment.invocations


# ---- Clients that do not declare tasks


def test_no_text_of_a_client_or_an_author_is_logged(
    deployment: Deployment, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    task = alice.start_task("publish", title="confidential")
    deployment.run_workers()
    alice.accept(task, approve=APPROVAL)
    deployment.run_workers()
    alice.get(task)
    said = json.dumps([record.__dict__ for record in caplog.records], default=str)
    assert all(word not in said for word in ("confidential", "alice", task.partition(".")[2]))


def test_the_author_audits_the_rounds_of_a_task_too() -> None:
    told: list[AuditRecord] = []
    deployment = Deployment(*JOBS, audit=told.append)
    alice = Client(deployment)
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    alice.accept(task, approve=APPROVAL)
    deployment.run_workers()
    rounds = [(record.round, dict(record.asked), dict(record.answered)) for record in told if record.round]
    assert rounds == [
        (1, {}, {}),  # the call itself
        (1, {"approve": "Publish 'Lisbon'?"}, {}),
        (2, {}, {"approve": "accept"}),
    ]
    assert len({record.flow for record in told}) == 1


def test_a_gateway_event_is_never_a_worker_invocation(deployment: Deployment) -> None:
    event = wire.event(wire.message("tools/list"), context={"mcpTask": {"id": "x", "owner": None}})
    assert (
        deployment.function(event, wire.Context())["statusCode"] == 500
    )  # the caller has not signed in, so the message was read


def test_a_function_without_tasks_accepts_no_worker_invocations() -> None:
    with pytest.raises(WorkFailed, match=r"^$"):
        serve(greet)({"mcpTask": {"id": "x", "owner": None}}, wire.Context())


# ---- Where it is deployed


def test_the_endpoint_forwards_a_task_request_to_the_function_that_stores_it() -> None:
    offered = catalog.merge([catalog.build([publish], "books"), catalog.build([greet], "greet")])
    lambdas = Lambdas(books=LambdaFunction(lambda _name, _now: Deployment(*JOBS, auth_mode="none").endpoint))
    door = FrontDoor(offered, Settings(stack="local", auth_mode="none"), lambda: lambdas, None)

    def ask(task_id: str) -> object:
        sent = wire.message("tasks/get", {"taskId": task_id}, capabilities=wire.WITH_TASKS)
        event = wire.event(sent)
        return door.answer(Request(sent, event["headers"], None, "", time.time() + 20, event))  # type: ignore[arg-type]

    assert isinstance(ask("books.0123456789abcdef012345"), ForwardedResponse)
    assert lambdas.invoked == ["local_books"]
    for task_id in ("greet.0123456789abcdef012345", "mcp.x", "../books.x", ""):
        with pytest.raises(UnknownTask):
            ask(task_id)
    assert len(lambdas.invoked) == 1


def test_the_extension_is_advertised_where_a_tool_has_tasks() -> None:
    def capabilities(*handlers: Any) -> dict[str, Any]:  # noqa: ANN401
        answering = lists.Lists(catalog.build(handlers), Settings(stack="local"))
        told: dict[str, Any] = answering.answer("server/discover", {"_meta": {}}).result["capabilities"]
        return told

    assert capabilities(publish, greet) == {"tools": {}, "extensions": {wire.TASKS: {}}}
    assert "extensions" not in capabilities(greet)


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result", "tasks/input_response"])
def test_the_methods_of_older_tasks_are_unknown(alice: Client, method: str) -> None:
    assert alice.error(method, {"taskId": "work.0123456789abcdef012345"})["code"] == -32601
    assert alice.response["statusCode"] == 404


def test_a_function_with_tasks_and_no_table_names_the_missing_setting(caplog: pytest.LogCaptureFixture) -> None:
    for missing in ("MCP_TABLE", "MCP_KMS_KEYS"):
        with deployed(**{missing: None}):
            response = serve(publish)(wire.event(wire.message("tools/list")), wire.Context())
        assert response["statusCode"] == 500
        assert missing in caplog.text
        assert "is not set" in caplog.text


def test_without_sign_in_the_task_id_grants_access() -> None:
    deployment = Deployment(*JOBS, auth_mode="none")
    task = Client(deployment).start_task("publish", title="Lisbon")
    deployment.run_workers()
    assert Client(deployment, "bob").get(task)["status"] == "input_required"


def test_a_worker_opens_what_its_function_sealed() -> None:
    with deployed():
        talk = Conversation(serve(publish), capabilities=WITH_TASKS).call(title="Lisbon").poll()
        assert talk.asked == ["approve"]
        assert talk.accept(approve=APPROVAL).text == "DRAFT LISBON, PUBLISH LISBON"


@pytest.mark.parametrize(
    ("options", "complaint"), [({"task": "always"}, "task is"), ({"task": "allowed", "task_ttl": 0}, "task_ttl is")]
)
def test_an_invalid_task_option_is_refused_at_its_declaration(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        tool(**options)(publish.function)


def test_an_invalid_decision_of_the_author_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    @tool(task=lambda: "perhaps")  # type: ignore[arg-type, return-value]
    def undecided() -> str:
        """Be undecided."""
        return ""

    result = Client(Deployment(undecided)).result("tools/call", {"name": "undecided", "arguments": {}})
    assert result["isError"] is True
    assert "task=" in caplog.text


def test_every_setting_of_tasks_is_read() -> None:
    variables = {"MCP_MAX_OPEN_TASKS": "5", "MCP_MAX_TASK_TTL_SECONDS": "60", "MCP_TASK_LEASE_SECONDS": "9"}
    found = settings.read({"MCP_STACK": "shop", **variables})
    assert (found.max_open_tasks, found.max_task_ttl, found.task_lease) == (5, 60, 9)


@tool
def greet() -> str:
    """Return a greeting."""
    return "Hello"


# ---- Attacks that were tried by hand, and stay


def test_two_clients_with_different_answers_lead_to_one_answer_and_one_worker(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    rival = Client(deployment)

    def overtaken(operation: str) -> None:
        if operation == "PutItem":
            deployment.table.weather = lambda _operation: None
            rival.accept(task, approve={"yes": False})

    deployment.table.weather = overtaken
    alice.accept(task, approve=APPROVAL)
    assert deployment.run_workers() == 1
    assert result_text(alice.get(task)["result"]) == "Kept."  # the first that was written down, and no other


def test_an_answer_of_one_task_answers_no_other(deployment: Deployment, alice: Client) -> None:
    first, second = (alice.start_task("publish", title=title) for title in ("A", "B"))
    deployment.run_workers()
    alice.accept(first, approve=APPROVAL)
    deployment.run_workers()
    assert alice.get(first)["status"] == "completed"
    assert alice.get(second)["status"] == "input_required"


def test_a_worker_invocation_for_another_principals_task_does_nothing(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.invocations.clear()
    for owner in (None, "x" * 43, ""):
        deployment.run_worker((task, owner))
    for other in ("other.0123456789abcdef012345", f"{task}x", task.replace(".", "/"), ""):
        deployment.run_worker((other, None))
    assert alice.get(task)["status"] == "working"
    assert deployment.table.calls.count("PutItem") == 2  # the task, and the list of what is open


def test_an_answer_after_the_end_of_its_task_has_no_effect(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    deployment.clock.advance(24 * 3600 + 1)
    answer = {"taskId": task, "inputResponses": {"approve": {"action": "accept", "content": APPROVAL}}}
    assert alice.error("tasks/update", answer)["message"] == "Unknown task"
    assert not deployment.invocations


def test_restoring_an_old_item_does_not_undo_later_actions_in_its_name(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("counted", count=2)
    (key,) = (key for key in deployment.table.items if "/task/" in key)
    old = dict(deployment.table.items[key])
    deployment.run_workers()
    finished = dict(deployment.table.items[key])
    deployment.table.items[key] = {**old, "version": finished["version"]}  # an old row under the new number
    alice.error("tasks/get", {"taskId": task})
    deployment.table.items[key] = {
        **finished,
        "expires": {"N": str(int(finished["expires"]["N"]) + 1000)},
    }  # a longer life
    alice.error("tasks/get", {"taskId": task})
    deployment.table.items[key] = finished
    assert alice.get(task)["status"] == "completed"
