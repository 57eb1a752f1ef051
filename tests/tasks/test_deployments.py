"""Tasks in a deployment: limits, settings, the front door, worker invocations, and attacks."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import serve, settings, tool
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog, lists
from mcp_functions.http.gateway import LambdaFunction, WorkFailed
from mcp_functions.protocol.errors import UnknownTask
from mcp_functions.protocol.messages import ForwardedResponse, Request
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS
from mcp_functions.store import LABEL
from mcp_functions.store.sealed_table import MAX_CLIENT_BYTES
from mcp_functions_harness.testing import WITH_TASKS, Conversation, deployed
from tests.support import wire
from tests.support.placements import Lambdas
from tests.support.settings import make_settings
from tests.support.strict_kms import START, Clock, StrictKms, make_keys
from tests.tasks.deployment import Client, Deployment, result_text
from tests.tasks.jobs import JOBS, publish

if TYPE_CHECKING:
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions_harness.testing.dynamodb import Fault

DAY = 24 * 3600
APPROVAL = {"yes": True}


@tool
def greet() -> str:
    """Return a greeting."""
    return "Hello"


# ---- Limits


@pytest.fixture
def deployment_of_two_tasks() -> Deployment:
    """Return a deployment in which each user may have two open tasks."""
    return Deployment(*JOBS, max_open_tasks=2)


def start_two_tasks(client: Client) -> str:
    """Return the id of the first task."""
    first = client.start_task("required")
    client.start_task("required")
    return first


def test_a_user_with_too_many_open_tasks_gets_an_error(deployment_of_two_tasks: Deployment) -> None:
    alice = Client(deployment_of_two_tasks)
    start_two_tasks(alice)
    refusal = alice.call("required")
    assert refusal["isError"]
    assert "2 tasks open" in result_text(refusal)


def test_open_tasks_are_counted_for_each_user(deployment_of_two_tasks: Deployment) -> None:
    start_two_tasks(Client(deployment_of_two_tasks, "alice"))
    start_two_tasks(Client(deployment_of_two_tasks, "bob"))


def test_a_cancelled_task_is_not_counted(deployment_of_two_tasks: Deployment) -> None:
    alice = Client(deployment_of_two_tasks)
    alice.cancel(start_two_tasks(alice))
    alice.start_task("required")
    assert alice.call("required")["isError"]


def test_completed_tasks_are_not_counted(deployment_of_two_tasks: Deployment) -> None:
    alice = Client(deployment_of_two_tasks)
    for _ in range(5):
        start_two_tasks(alice)
        deployment_of_two_tasks.run_workers()


def test_a_person_with_two_oauth_clients_has_no_more_tasks_than_with_one(deployment_of_two_tasks: Deployment) -> None:
    start_two_tasks(Client(deployment_of_two_tasks))
    elsewhere = Client(deployment_of_two_tasks)
    elsewhere.oauth_client = "another"
    assert elsewhere.call("required")["isError"]


def test_without_sign_in_the_tasks_of_one_address_leave_those_of_another() -> None:
    deployment = Deployment(*JOBS, max_open_tasks=2, auth_mode="none")
    stranger = Client(deployment)
    stranger.address = "198.51.100.7"
    start_two_tasks(stranger)
    assert stranger.call("required")["isError"]
    Client(deployment).start_task("required")
    assert "198.51.100.7" not in " ".join(deployment.table.items)


def fail_open_tasks(deployment: Deployment, operation: str) -> None:
    """Let each later operation of this name fail, except the first, which is one of the task itself."""
    seen = count()
    deployment.before_table_operation(lambda name: "denied" if name == operation and next(seen) else None)


def test_a_task_that_is_counted_after_its_end_is_not_counted_after_the_next_poll(
    deployment_of_two_tasks: Deployment,
) -> None:
    alice = Client(deployment_of_two_tasks)
    task = start_two_tasks(alice)
    fail_open_tasks(deployment_of_two_tasks, "PutItem")
    alice.cancel(task)
    deployment_of_two_tasks.repair_table()
    assert alice.call("required")["isError"]
    assert alice.get(task)["status"] == "cancelled"
    alice.start_task("required")


def test_a_task_that_could_not_be_stored_is_not_counted(deployment_of_two_tasks: Deployment) -> None:
    alice = Client(deployment_of_two_tasks)
    alice.start_task("required")
    seen = count()
    deployment_of_two_tasks.before_table_operation(
        lambda name: "denied" if name == "PutItem" and next(seen) == 1 else None
    )
    assert alice.error("tools/call", {"name": "required", "arguments": {}})["code"] == -32603
    deployment_of_two_tasks.repair_table()
    alice.start_task("required")
    assert alice.call("required")["isError"]


def test_open_tasks_that_nobody_can_read_limit_nobody(deployment_of_two_tasks: Deployment) -> None:
    alice = Client(deployment_of_two_tasks)
    start_two_tasks(alice)
    (key,) = (key for key in deployment_of_two_tasks.table.items if "/open-tasks/" in key)
    deployment_of_two_tasks.table.items[key]["sealed"]["S"] = "sealed under another MCP_GENERATION"
    alice.start_task("required")


def test_tasks_that_begin_and_end_at_the_same_time_are_all_counted(deployment_of_two_tasks: Deployment) -> None:
    alice = Client(deployment_of_two_tasks)
    first = alice.start_task("required")

    def cancel_before_the_write(operation: str) -> Fault:
        if operation == "PutItem":
            deployment_of_two_tasks.repair_table()
            alice.cancel(first)
        return None

    deployment_of_two_tasks.before_table_operation(cancel_before_the_write)
    Client(deployment_of_two_tasks).start_task("required")
    alice.start_task("required")
    assert alice.call("required")["isError"]


def test_a_task_of_a_release_that_counted_otherwise_is_continued_and_not_counted(
    deployment_of_two_tasks: Deployment,
) -> None:
    alice = Client(deployment_of_two_tasks)
    task = alice.start_task("required")
    ((_task, owner),) = deployment_of_two_tasks.invocations
    deployment_of_two_tasks.store.change(task, owner, lambda state: replace(state, caller=None))
    deployment_of_two_tasks.table.items = {
        key: item for key, item in deployment_of_two_tasks.table.items.items() if "/open-tasks/" not in key
    }
    deployment_of_two_tasks.run_workers()
    assert alice.get(task)["status"] == "completed"
    start_two_tasks(alice)


def test_expired_tasks_are_not_counted(deployment_of_two_tasks: Deployment) -> None:
    alice = Client(deployment_of_two_tasks)
    start_two_tasks(alice)
    deployment_of_two_tasks.clock.advance(60)
    deployment_of_two_tasks.table.expire(deployment_of_two_tasks.clock())
    alice.start_task("required")


def test_polling_tasks_under_many_data_keys_asks_kms_within_the_budget_of_the_person() -> None:
    kms = StrictKms()
    clock = Clock(START + 450)  # the middle of an epoch (900 s): each task is sealed under the key of its own epoch
    keys = make_keys(kms, kms.create_key(), clock=clock)
    deployment = Deployment(
        *JOBS, max_open_tasks=100, clock=clock, seal=Envelope(keys, label=LABEL, max_chars=MAX_TOKEN_CHARS, max_age=DAY)
    )
    alice = Client(deployment)
    tasks: list[str] = []
    for _ in range(70):
        clock.advance(900)  # an epoch: the next task is sealed under another key
        tasks.append(alice.start_task("counted", count=2))
        deployment.run_workers()
    keys.reset()
    assert kms.count("GenerateDataKey") == 70
    kms.calls.clear()
    for _ in range(3):
        messages = [alice.send("tasks/get", {"taskId": task}) for task in tasks]
        # 41 keys are within a person's budget of calls to KMS: those of 40 tasks, and that of the item of open tasks,
        # which the last task shares. A task under another key is not read.
        assert ["result" in message for message in messages] == [True] * 40 + [False] * 29 + [True]
        alice.send("tasks/get", {"taskId": tasks[-2]})
        assert alice.response["statusCode"] == 503
    assert kms.count("Decrypt") == 41


@pytest.mark.parametrize("characters", [MAX_CLIENT_BYTES, 500_000, 3_500_000])
def test_a_call_too_large_to_be_kept_gets_an_error_result_and_is_not_counted(
    deployment: Deployment, alice: Client, characters: int
) -> None:
    result = alice.call("publish", title="x" * characters)
    assert result["isError"]
    assert "Call with less" in result_text(result)
    assert deployment.table.items == {}
    assert not deployment.invocations


# ---- The log, the audit, and worker invocations


def test_no_text_of_a_client_or_an_author_is_logged(
    deployment: Deployment, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    task = alice.start_task("publish", title="confidential")
    deployment.run_workers()
    alice.accept(task, approve=APPROVAL)
    deployment.run_workers()
    alice.get(task)
    log = json.dumps([record.__dict__ for record in caplog.records], default=str)
    secret_part_of_id = task.partition(".")[2]
    assert not [secret for secret in ("confidential", "alice", secret_part_of_id) if secret in log]


def test_the_author_audits_the_rounds_of_a_task_too() -> None:
    records: list[AuditRecord] = []
    deployment = Deployment(*JOBS, audit=records.append)
    alice = Client(deployment)
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    alice.accept(task, approve=APPROVAL)
    deployment.run_workers()
    rounds = [(record.round, dict(record.asked), dict(record.answered)) for record in records if record.round]
    assert rounds == [
        (1, {}, {}),  # the call itself
        (1, {"approve": "Publish 'Lisbon'?"}, {}),
        (2, {}, {"approve": "accept"}),
    ]
    assert len({record.flow for record in records}) == 1


def test_a_gateway_event_is_never_a_worker_invocation(deployment: Deployment) -> None:
    event = wire.event(wire.message("tools/list"), context={"mcpTask": {"id": "x", "owner": None}})
    response = deployment.function(event, wire.Context())
    assert response["statusCode"] == 500  # the error of a message without authentication: it was read as a message


def test_a_function_without_tasks_accepts_no_worker_invocations() -> None:
    with pytest.raises(WorkFailed, match=r"^$"):
        serve(greet)({"mcpTask": {"id": "x", "owner": None}}, wire.Context())


# ---- Where it is deployed


def send_through_front_door(lambdas: Lambdas, task_id: str) -> object:
    """Send tasks/get to a front door with two functions: `books` has tasks, `greet` has none."""
    offered = catalog.build_project({"books": [publish], "greet": [greet]})
    front_door = FrontDoor(offered, make_settings(auth_mode="none"), lambda: lambdas)
    message = wire.message("tasks/get", {"taskId": task_id}, capabilities=wire.TASK_CAPABILITIES)
    event = wire.event(message)
    return front_door.answer(Request(message, event["headers"], None, "", time.time() + 20, event))  # type: ignore[arg-type]


def test_the_front_door_forwards_a_task_request_to_the_function_of_the_task() -> None:
    lambdas = Lambdas(books=LambdaFunction(lambda _name, _now: Deployment(*JOBS, auth_mode="none").endpoint))
    assert isinstance(send_through_front_door(lambdas, "books.0123456789abcdef012345"), ForwardedResponse)
    assert lambdas.invoked == ["local_books"]


@pytest.mark.parametrize("task_id", ["greet.0123456789abcdef012345", "mcp.x", "../books.x", ""])
def test_the_front_door_forwards_no_task_id_of_a_function_without_tasks(task_id: str) -> None:
    with pytest.raises(UnknownTask):
        send_through_front_door(Lambdas(), task_id)


def server_capabilities(*handlers: Any) -> dict[str, Any]:  # noqa: ANN401 - handlers
    server_lists = lists.Lists(catalog.build(handlers), make_settings())
    return dict(server_lists.answer("server/discover", {"_meta": {}}).result["capabilities"])


def test_the_extension_is_advertised_where_a_tool_has_tasks() -> None:
    assert server_capabilities(publish, greet) == {"tools": {}, "extensions": {wire.TASKS: {}}}


def test_the_extension_is_not_advertised_without_tasks() -> None:
    assert "extensions" not in server_capabilities(greet)


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result", "tasks/input_response"])
def test_the_methods_of_older_tasks_are_unknown(alice: Client, method: str) -> None:
    assert alice.error(method, {"taskId": "work.0123456789abcdef012345"})["code"] == -32601
    assert alice.response["statusCode"] == 404


@pytest.mark.parametrize("variable", ["MCP_TABLE", "MCP_KMS_KEYS"])
def test_a_function_with_tasks_logs_the_name_of_a_missing_variable(
    variable: str, caplog: pytest.LogCaptureFixture
) -> None:
    with deployed(**{variable: None}):
        response = serve(publish)(wire.event(wire.message("tools/list")), wire.Context())
    assert response["statusCode"] == 500
    assert variable in caplog.text
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
    ("options", "message"), [({"task": "always"}, "task is"), ({"task": "allowed", "task_ttl": 0}, "task_ttl is")]
)
def test_an_invalid_task_option_is_refused_at_its_declaration(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tool(**options)(publish.function)


def test_an_invalid_decision_of_the_author_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    @tool(task=lambda: "perhaps")  # type: ignore[arg-type, return-value]
    def undecided() -> str:
        """Be undecided."""
        return ""

    result = Client(Deployment(undecided)).result("tools/call", {"name": "undecided", "arguments": {}})
    assert result["isError"] is True
    assert "task=" in caplog.text


def test_the_decision_about_a_task_gets_the_arguments_that_the_client_sent() -> None:
    @tool(task=lambda chapters: "allowed" if chapters > 3 else None)
    def write(chapters: int, style: str = "plain") -> str:
        """Write a book."""
        return f"{chapters} chapters, {style}"

    client = Client(Deployment(write))
    story = client.result("tools/call", {"name": "write", "arguments": {"chapters": 1}})
    assert result_text(story) == "1 chapters, plain"
    book = client.result("tools/call", {"name": "write", "arguments": {"chapters": 4}})
    assert book["resultType"] == "task"


def test_every_setting_of_tasks_is_read() -> None:
    variables = {"MCP_MAX_OPEN_TASKS": "5", "MCP_MAX_TASK_TTL_SECONDS": "60", "MCP_TASK_LEASE_SECONDS": "9"}
    values = settings.Settings({"MCP_STACK": "shop", **variables})
    assert (values.max_open_tasks, values.max_task_ttl, values.task_lease) == (5, 60, 9)


# ---- Attacks


def test_two_clients_with_different_answers_lead_to_one_answer_and_one_worker(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("publish", title="Lisbon")
    deployment.run_workers()
    rival = Client(deployment)

    def answer_before_alice_writes(operation: str) -> None:
        if operation == "PutItem":
            deployment.repair_table()
            rival.accept(task, approve={"yes": False})

    deployment.before_table_operation(answer_before_alice_writes)
    alice.accept(task, approve=APPROVAL)
    assert deployment.run_workers() == 1
    assert result_text(alice.get(task)["result"]) == "Kept."  # the answer that was written first


def test_an_answer_of_one_task_answers_no_other(deployment: Deployment, alice: Client) -> None:
    first, second = (alice.start_task("publish", title=title) for title in ("A", "B"))
    deployment.run_workers()
    alice.accept(first, approve=APPROVAL)
    deployment.run_workers()
    assert alice.get(first)["status"] == "completed"
    assert alice.get(second)["status"] == "input_required"


@pytest.mark.parametrize("owner", [None, "x" * 43, ""])
def test_a_worker_invocation_for_another_principals_task_does_nothing(
    deployment: Deployment, alice: Client, owner: str | None
) -> None:
    task = alice.start_task("publish", title="Lisbon")
    items = dict(deployment.table.items)
    deployment.run_worker((task, owner))
    assert alice.get(task)["status"] == "working"
    assert deployment.table.items == items


@pytest.mark.parametrize("task_id", ["other.0123456789abcdef012345", "work/0123456789abcdef012345", ""])
def test_a_worker_invocation_for_an_unknown_task_does_nothing(deployment: Deployment, task_id: str) -> None:
    deployment.run_worker((task_id, None))
    assert deployment.table.items == {}


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
    later = str(int(finished["expires"]["N"]) + 1000)
    for forged in ({**old, "version": finished["version"]}, {**finished, "expires": {"N": later}}):
        deployment.table.items[key] = forged
        assert alice.error("tasks/get", {"taskId": task})["message"] == "Unknown task"
    deployment.table.items[key] = finished
    assert alice.get(task)["status"] == "completed"
