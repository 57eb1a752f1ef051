"""A task is a call that continues after its response: the client polls it, answers its questions, and cancels it.

`deployment.run_workers()` runs the workers that continue the tasks. `STEP_HOOKS` are called while a step runs.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import wire
from tests.tasks.deployment import Client, Deployment, result_text
from tests.tasks.jobs import JOBS, STARTED_STEPS, STEP_HOOKS, Killed, kill_process

APPROVAL, REJECTION = {"yes": True}, {"yes": False}
SECRET = "secret of the author"  # noqa: S105 - what must stay in the function


# ---- A call becomes a task


def test_a_task_asks_a_question_and_completes_with_the_result_of_the_call(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("publish", title="Lisbon")
    assert alice.get(task)["status"] == "working"
    deployment.run_workers()
    waiting = alice.get(task)
    assert waiting["status"] == "input_required"
    assert list(waiting["inputRequests"]) == ["approve"]
    alice.accept(task, approve=APPROVAL)
    assert alice.get(task)["status"] == "working"
    deployment.run_workers()
    completed = alice.get(task)
    assert completed["status"] == "completed"
    assert result_text(completed["result"]) == "DRAFT LISBON, PUBLISH LISBON"
    assert STARTED_STEPS == ["draft Lisbon", "publish Lisbon"]


def test_the_call_returns_at_once_with_a_stored_task(deployment: Deployment, alice: Client) -> None:
    result = alice.call("publish", title="Lisbon")
    assert result["status"] == "working"
    assert STARTED_STEPS == []
    assert result.keys() & {"result", "error", "inputRequests", "requestState", "content"} == set()
    assert deployment.table.calls[-1] == "PutItem"
    assert alice.get(result["taskId"])["createdAt"] == result["createdAt"]


def test_a_client_without_the_extension_gets_the_result_itself(deployment: Deployment) -> None:
    plain = Client(deployment, capabilities=wire.FORM_CAPABILITIES)
    first = plain.call("publish", title="Lisbon")
    assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["approve"])
    assert not deployment.invocations


def test_a_tool_that_requires_a_task_refuses_a_client_without_the_extension(deployment: Deployment) -> None:
    error = Client(deployment, capabilities=wire.FORM_CAPABILITIES).error(
        "tools/call", {"name": "required", "arguments": {}}
    )
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {wire.TASKS: {}}}}
    assert STARTED_STEPS == []


@pytest.mark.parametrize(("count", "result_type"), [(1, "complete"), (3, "task")])
def test_an_author_decides_by_the_arguments(alice: Client, count: int, result_type: str) -> None:
    assert alice.call("counted", count=count)["resultType"] == result_type


def test_an_allowed_task_is_a_plain_call_for_a_client_without_the_extension(deployment: Deployment) -> None:
    client = Client(deployment, capabilities={})
    assert client.call("counted", count=3)["resultType"] == "complete"


def test_an_author_may_require_a_task_by_the_arguments(deployment: Deployment) -> None:
    params = {"name": "counted", "arguments": {"count": 9}}
    assert Client(deployment, capabilities={}).error("tools/call", params)["code"] == -32021


@pytest.mark.parametrize("name", ["counted", "publish", "scoped"])
def test_invalid_arguments_start_no_task(deployment: Deployment, name: str) -> None:
    result = Client(deployment, scope="work:write").call(name, count="many")
    assert result["resultType"] == "complete"
    assert result["isError"] is True
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
    for method in wire.TASK_METHODS:
        params = {"taskId": created["taskId"], "inputResponses": {}}
        assert alice.error(method, params) == {"code": -32602, "message": "Unknown task"}


def test_a_deployment_clips_how_long_a_task_is_kept() -> None:
    assert Client(Deployment(*JOBS, max_task_ttl=30)).call("publish", title="x")["ttlMs"] == 30_000


@pytest.mark.parametrize("method", wire.TASK_METHODS)
@pytest.mark.parametrize(
    "task_id", ["", "work", "work.", "work.0123456789abcdef012345", "other.0123456789abcdef012345", "../x", "work." * 9]
)
def test_a_task_id_that_was_never_issued_is_unknown(alice: Client, method: str, task_id: str) -> None:
    error = alice.error(method, {"taskId": task_id, "inputResponses": {}})
    assert error == {"code": -32602, "message": "Unknown task"}
    assert alice.response["statusCode"] == 200


@pytest.mark.parametrize("method", wire.TASK_METHODS)
def test_another_principals_task_is_unknown(deployment: Deployment, alice: Client, method: str) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    before = dict(deployment.table.items)
    mallory = Client(deployment, "mallory")
    params = {"taskId": task, "inputResponses": {"approve": {"action": "accept", "content": APPROVAL}}}
    assert mallory.error(method, params) == {"code": -32602, "message": "Unknown task"}
    assert deployment.table.items == before


@pytest.mark.parametrize("method", wire.TASK_METHODS)
def test_a_client_without_the_extension_is_refused_before_any_lookup(deployment: Deployment, method: str) -> None:
    error = Client(deployment, capabilities=wire.FORM_CAPABILITIES).error(
        method, {"taskId": "work.x", "inputResponses": {}}
    )
    assert (error["code"], deployment.table.calls) == (-32021, [])


@pytest.mark.parametrize("header", ["work.another", None])
@pytest.mark.parametrize("method", wire.TASK_METHODS)
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


@pytest.mark.parametrize("method", wire.TASK_METHODS)
def test_a_task_needs_the_scope_that_its_call_needed(deployment: Deployment, method: str) -> None:
    task = Client(deployment, scope="work:write").start_task("scoped")
    client = Client(deployment, scope="")
    error = client.error(method, {"taskId": task, "inputResponses": {}})
    assert client.response["statusCode"] == 403
    assert error["data"]["reason"] == "insufficient_scope"


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
    assert STARTED_STEPS.count("draft Lisbon") == 1


def test_a_declined_question_ends_the_task_with_a_result(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    alice.update(task, approve={"action": "decline"})
    deployment.run_workers()
    polled = alice.get(task)
    assert (polled["status"], polled["result"]["isError"]) == ("completed", True)


def test_an_answer_too_large_for_the_item_is_refused(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("both")
    deployment.run_workers()
    responses = {"a": {"action": "accept", "content": {"name": "x" * 500_000}}}
    alice.error("tasks/update", {"taskId": task, "inputResponses": responses})
    assert alice.response["statusCode"] == 413
    assert list(alice.get(task)["inputRequests"]) == ["a", "b"]


# ---- The scopes of an answer


YES = {"yes": True}


def work_on_granted(deployment: Deployment, *, first: str) -> str:
    """Begin the task `granted` with a token of these scopes, and let it come to its first two questions."""
    task = Client(deployment, scope=first).start_task("granted")
    deployment.run_workers()
    return task


@pytest.mark.parametrize("answered", ["read", "admin read write"], ids=["fewer", "more"])
def test_after_an_answer_a_task_has_the_scopes_of_the_token_that_answered(
    deployment: Deployment, answered: str
) -> None:
    task = work_on_granted(deployment, first="read write")
    client = Client(deployment, scope=answered)
    client.accept(task, a=YES, b=YES)
    deployment.run_workers()
    client.accept(task, c=YES)
    deployment.run_workers()
    assert result_text(client.get(task)["result"]) == f"read write | {answered} | {answered}"


def test_of_several_answers_the_scopes_of_the_last_one_count(deployment: Deployment) -> None:
    task = work_on_granted(deployment, first="read x")
    Client(deployment, scope="read write").accept(task, b=YES)
    last = Client(deployment, scope="read")
    last.accept(task, a=YES)
    deployment.run_workers()
    last.accept(task, c=YES)
    deployment.run_workers()
    assert result_text(last.get(task)["result"]) == "read x | read | read"


def test_a_request_that_answers_nothing_leaves_the_scopes_of_a_task(deployment: Deployment) -> None:
    task = work_on_granted(deployment, first="read")
    admin = Client(deployment, scope="admin read")
    items = dict(deployment.table.items)
    admin.get(task)
    admin.update(task)
    admin.accept(task, unknown=YES)
    assert deployment.table.items == items


def test_a_worker_after_a_dead_one_has_the_scopes_of_the_answer_and_not_of_the_poll(deployment: Deployment) -> None:
    task = work_on_granted(deployment, first="read write")
    Client(deployment, scope="read").accept(task, a=YES, b=YES)
    STEP_HOOKS.append(kill_process)
    with pytest.raises(Killed):
        deployment.run_workers()
    STEP_HOOKS.clear()
    deployment.clock.advance(60)
    wide = Client(deployment, scope="read write")
    wide.get(task)  # invokes another worker
    deployment.run_workers()
    wide.accept(task, c=YES)
    deployment.run_workers()
    assert result_text(wide.get(task)["result"]) == "read write | read | read write"


def test_an_answer_without_the_scope_of_the_tool_is_refused_and_loses_nothing(deployment: Deployment) -> None:
    task = work_on_granted(deployment, first="read write")
    items = dict(deployment.table.items)
    poor = Client(deployment, scope="write")
    responses = {"a": {"action": "accept", "content": YES}}
    error = poor.error("tasks/update", {"taskId": task, "inputResponses": responses})
    assert (poor.response["statusCode"], error["data"]["scope"]) == (403, "read")
    assert deployment.table.items == items
    client = Client(deployment, scope="read")
    client.accept(task, a=YES, b=YES)
    deployment.run_workers()
    assert list(client.get(task)["inputRequests"]) == ["c"]


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


def test_a_task_whose_question_the_client_cannot_show_ends_with_a_text(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("sampled")
    deployment.run_workers()
    polled = alice.get(task)
    assert (polled["status"], polled["result"]["isError"]) == ("completed", True)
    assert "It asks: a message of the client's model." in result_text(polled["result"])


def test_a_task_whose_tool_requires_what_the_client_lacks_fails_with_its_name(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("demanding")
    deployment.run_workers()
    polled = alice.get(task)
    assert (polled["status"], polled["error"]["code"]) == ("failed", -32021)
    assert polled["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    assert polled["error"]["message"] == (
        "The client lacks a required capability: sampling. The server would have asked: a message of the client's model"
    )


def test_the_arguments_of_a_task_are_deleted_when_it_ends(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    alice.update(task, approve={"action": "accept", "content": REJECTION})
    deployment.run_workers()
    (owner,) = (key.split("/")[3] for key in deployment.table.items if "/task/" in key)
    kept = deployment.store.get(task, owner)
    assert (kept.arguments, kept.record, kept.given, kept.asked) == ({}, {}, {}, {})


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
def test_a_finished_task_never_changes(deployment: Deployment, alice: Client, ending: str) -> None:
    task = alice.start_task("broken", how="large" if ending == "failed" else "well")
    if ending == "cancelled":
        alice.cancel(task)
    deployment.run_workers()
    polled = alice.get(task)
    assert polled["status"] == ending
    items = dict(deployment.table.items)
    alice.cancel(task)
    alice.accept(task, approve=APPROVAL)
    (owner,) = (key.split("/")[3] for key in items if "/task/" in key)
    deployment.run_worker((task, owner))
    deployment.clock.advance(3600)
    assert alice.get(task) == {**polled, "pollIntervalMs": 30_000}
    assert deployment.table.items == items


# ---- Cancelling


def test_a_task_that_waits_for_an_answer_is_cancelled_immediately(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    alice.cancel(task)
    polled = alice.get(task)
    assert polled["status"] == "cancelled"
    alice.accept(task, approve=APPROVAL)
    assert deployment.run_workers() == 0
    assert STARTED_STEPS == ["draft Lisbon"]


def test_a_cancellation_is_seen_at_the_next_step(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("counted", count=5)
    STEP_HOOKS.append(lambda steps: len(steps) == 2 and alice.cancel(task))
    deployment.run_workers()
    assert alice.get(task)["status"] == "cancelled"
    assert STARTED_STEPS == ["part 0", "part 1"]


def test_a_cancellation_is_seen_at_the_next_question(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("publish", title="Lisbon")
    STEP_HOOKS.append(lambda _steps: alice.cancel(task))
    deployment.run_workers()
    polled = alice.get(task)
    assert polled["status"] == "cancelled"
    assert "inputRequests" not in polled
    assert "statusMessage" not in polled  # the round had reported its progress before it asked


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
    assert STARTED_STEPS == []
