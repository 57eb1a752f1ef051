"""A call that outlives its request, as its client sees it: events in, responses out, a worker when it comes."""

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
from tests.tasks.jobs import DONE, JOBS, MEANWHILE, publish
from tests.tasks.world import Client, World, text

if TYPE_CHECKING:
    from mcp_functions.rounds.audit import AuditRecord

DAY = 24 * 3600
YES, NO = {"yes": True}, {"yes": False}
SECRET = "secret of the author"  # noqa: S105 - what must stay in the function


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()
    MEANWHILE.clear()


@pytest.fixture
def world() -> World:
    return World(*JOBS)


@pytest.fixture
def alice(world: World) -> Client:
    return Client(world)


# ---- A call becomes a task


def test_a_task_works_asks_is_answered_and_ends_with_what_the_call_would_have_returned(
    world: World, alice: Client
) -> None:
    task = alice.begin("publish", title="Lisbon")
    assert alice.get(task)["status"] == "working"
    world.work()
    asked = alice.get(task)
    assert (asked["status"], list(asked["inputRequests"])) == ("input_required", ["approve"])
    alice.accept(task, approve=YES)
    assert alice.get(task)["status"] == "working"
    world.work()
    ended = alice.get(task)
    assert (ended["status"], text(ended["result"])) == ("completed", "DRAFT LISBON, PUBLISH LISBON")
    assert DONE == ["draft Lisbon", "publish Lisbon"]


def test_the_call_returns_at_once_with_a_stored_task(world: World, alice: Client) -> None:
    result = alice.call("publish", title="Lisbon")
    assert result["status"] == "working"
    assert DONE == []
    assert result.keys() & {"result", "error", "inputRequests", "requestState", "content"} == set()
    assert world.table.calls[-1] == "PutItem"
    assert alice.get(result["taskId"])["createdAt"] == result["createdAt"]


def test_a_client_without_the_extension_gets_the_result_itself(world: World) -> None:
    plain = Client(world, capabilities=wire.FORMS)
    first = plain.call("publish", title="Lisbon")
    assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["approve"])
    assert not world.summoned


def test_a_tool_that_requires_a_task_refuses_a_client_without_the_extension(world: World) -> None:
    error = Client(world, capabilities=wire.FORMS).error("tools/call", {"name": "required", "arguments": {}})
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {wire.TASKS: {}}}}
    assert DONE == []


@pytest.mark.parametrize(("count", "plainly", "knowingly"), [(1, "complete", "complete"), (3, "complete", "task")])
def test_an_author_decides_by_the_arguments(world: World, count: int, plainly: str, knowingly: str) -> None:
    assert Client(world, capabilities={}).call("counted", count=count)["resultType"] == plainly
    assert Client(world).call("counted", count=count)["resultType"] == knowingly


def test_an_author_may_require_a_task_by_the_arguments(world: World) -> None:
    params = {"name": "counted", "arguments": {"count": 9}}
    assert Client(world, capabilities={}).error("tools/call", params)["code"] == -32021


def test_arguments_that_do_not_fit_make_no_task(world: World) -> None:
    client = Client(world, scope="work:write")
    for name in ("counted", "publish", "scoped"):
        result = client.call(name, count="many")
        assert (result["resultType"], result["isError"]) == ("complete", True)
    assert world.table.items == {}


def test_a_task_request_of_the_client_is_ignored(alice: Client, world: World) -> None:
    wish = {"task": {"ttl": 5}}
    assert "content" in alice.result("tools/call", {"name": "counted", "arguments": {"count": 1}, **wish})
    created = alice.result("tools/call", {"name": "publish", "arguments": {"title": "x"}, **wish})
    assert created["ttlMs"] == 86_400_000
    assert world.summoned


def test_declared_questions_are_asked_in_a_round_before_the_task(world: World, alice: Client) -> None:
    call = {"name": "named", "arguments": {"greeting": "Hello"}}
    first = alice.result("tools/call", call)
    assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["who"])
    assert world.table.items == {}
    answer = {"inputResponses": {"who": {"action": "accept", "content": {"name": "Ann"}}}}
    created = alice.result("tools/call", {**call, **answer, "requestState": first["requestState"]})
    assert created["resultType"] == "task"
    assert (created["ttlMs"], "requestState" in created) == (86_400_000, False)
    world.work()
    assert list(alice.get(created["taskId"])["inputRequests"]) == ["sure"]
    alice.accept(created["taskId"], sure=YES)
    world.work()
    assert text(alice.get(created["taskId"])["result"]) == "Hello, Ann (alice): True"


def test_a_declined_question_before_a_task_starts_no_task(world: World, alice: Client) -> None:
    call = {"name": "named", "arguments": {"greeting": "Hello"}}
    state = alice.result("tools/call", call)["requestState"]
    answer = {"inputResponses": {"who": {"action": "decline"}}, "requestState": state}
    assert "declined" in text(alice.result("tools/call", {**call, **answer}))
    assert world.table.items == {}


# ---- Looking at it


def test_a_poll_shows_the_progress(world: World, alice: Client) -> None:
    said = list[str]()
    task = alice.begin("counted", count=3)
    MEANWHILE.append(lambda _done: said.append(alice.get(task)["statusMessage"]))
    world.work()
    assert said == ["0 of 3", "1 of 3", "2 of 3"]


def test_the_poll_interval_grows_with_the_age_of_a_task(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    intervals = []
    for _ in range(3):
        world.clock.advance(100)
        intervals.append(alice.get(task)["pollIntervalMs"])
    assert intervals == [10_000, 20_000, 30_000]


def test_a_task_is_kept_for_its_tools_time_and_is_then_unknown(world: World, alice: Client) -> None:
    created = alice.call("required")
    assert created["ttlMs"] == 60_000
    world.work()
    world.clock.advance(59)
    assert alice.get(created["taskId"])["status"] == "completed"
    world.clock.advance(1)
    for method in wire.OF_TASKS:
        params = {"taskId": created["taskId"], "inputResponses": {}}
        assert alice.error(method, params) == {"code": -32602, "message": "Unknown task"}


def test_a_deployment_clips_how_long_a_task_is_kept() -> None:
    assert Client(World(*JOBS, max_task_ttl=30)).call("publish", title="x")["ttlMs"] == 30_000


@pytest.mark.parametrize("method", wire.OF_TASKS)
@pytest.mark.parametrize(
    "task_id", ["", "work", "work.", "work.0123456789abcdef012345", "other.0123456789abcdef012345", "../x", "work." * 9]
)
def test_a_task_id_that_was_never_issued_is_unknown(alice: Client, method: str, task_id: str) -> None:
    error = alice.error(method, {"taskId": task_id, "inputResponses": {}})
    assert error == {"code": -32602, "message": "Unknown task"}
    assert alice.response["statusCode"] == 200


@pytest.mark.parametrize("method", wire.OF_TASKS)
def test_another_principals_task_is_unknown(world: World, alice: Client, method: str) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    before = dict(world.table.items)
    mallory = Client(world, "mallory")
    params = {"taskId": task, "inputResponses": {"approve": {"action": "accept", "content": YES}}}
    assert mallory.error(method, params) == {"code": -32602, "message": "Unknown task"}
    assert world.table.items == before


@pytest.mark.parametrize("method", wire.OF_TASKS)
def test_a_client_without_the_extension_is_refused_before_any_lookup(world: World, method: str) -> None:
    error = Client(world, capabilities=wire.FORMS).error(method, {"taskId": "work.x", "inputResponses": {}})
    assert (error["code"], world.table.calls) == (-32021, [])


@pytest.mark.parametrize("method", wire.OF_TASKS)
def test_the_header_names_the_task_too(alice: Client, method: str) -> None:
    params = {"taskId": "work.0123456789abcdef012345", "inputResponses": {}}
    for header in ("work.another", None):
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
def test_malformed_answers_are_refused(world: World, alice: Client, responses: object) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    assert alice.error("tasks/update", {"taskId": task, "inputResponses": responses})["code"] == -32602
    assert alice.get(task)["status"] == "input_required"


def test_a_task_needs_the_scope_that_its_call_needed(world: World) -> None:
    task = Client(world, scope="work:write").begin("scoped")
    for method in wire.OF_TASKS:
        poor = Client(world)
        assert poor.error(method, {"taskId": task, "inputResponses": {}})["data"]["reason"] == "insufficient_scope"
        assert poor.response["statusCode"] == 403


def test_a_client_without_a_capability_gets_no_question_that_needs_it(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    bare = Client(world, capabilities={"extensions": {wire.TASKS: {}}})
    error = bare.error("tasks/get", {"taskId": task})
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})


# ---- Answering


def test_answers_may_come_one_by_one(world: World, alice: Client) -> None:
    task = alice.begin("both")
    world.work()
    alice.accept(task, a={"name": "Ann"})
    half = alice.get(task)
    assert (half["status"], list(half["inputRequests"])) == ("input_required", ["b"])
    assert not world.summoned
    alice.accept(task, b={"name": "Bob"})
    world.work()
    assert text(alice.get(task)["result"]) == "Ann Bob"


def test_unknown_and_repeated_answers_are_acknowledged_and_ignored(world: World, alice: Client) -> None:
    task = alice.begin("both")
    world.work()
    alice.accept(task, a={"name": "Ann"}, c={"name": "nobody"})
    before = dict(world.table.items)
    alice.accept(task, a={"name": "Zoe"}, c={"name": "nobody"})
    assert world.table.items == before
    alice.accept(task, a={"name": "Zoe"}, b={"name": "Bob"})
    alice.accept(task, b={"name": "Zoe"})
    world.work()
    assert text(alice.get(task)["result"]) == "Ann Bob"
    alice.accept(task, a={"name": "Zoe"})


def test_a_question_with_an_invalid_answer_is_asked_again_under_a_new_key(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    for key in ("approve", "approve-2", "approve-3"):
        (asked,) = alice.get(task)["inputRequests"].items()
        assert asked[0] == key
        alice.accept(task, **{key: {"yes": "perhaps"}})
        alice.accept(task, approve=YES)  # of a question that is over
        world.work()
    assert "Please answer again" in alice.get(task)["inputRequests"]["approve-4"]["params"]["message"]
    alice.accept(task, **{"approve-4": YES})
    world.work()
    assert alice.get(task)["status"] == "completed"
    assert DONE.count("draft Lisbon") == 1


def test_a_declined_question_ends_the_task_with_a_result(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    alice.update(task, approve={"action": "decline"})
    world.work()
    ended = alice.get(task)
    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)


def test_an_answer_too_large_for_the_item_is_refused(world: World, alice: Client) -> None:
    task = alice.begin("both")
    world.work()
    responses = {"a": {"action": "accept", "content": {"name": "x" * 500_000}}}
    alice.error("tasks/update", {"taskId": task, "inputResponses": responses})
    assert alice.response["statusCode"] == 413
    assert list(alice.get(task)["inputRequests"]) == ["a", "b"]


# ---- Ending


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("tool", "completed", "no paper"),
        ("bug", "completed", "The tool broken failed unexpectedly. The server's log says why."),
        ("meta", "completed", "The tool broken failed unexpectedly. The server's log says why."),
        ("exit", "completed", "The tool broken failed unexpectedly. The server's log says why."),
        ("rule", "completed", "The tool broken failed unexpectedly. The server's log says why."),
        ("large", "failed", "The result is larger than a task can keep (about 290 KB)"),
        ("steps", "completed", "This call has more data than a task can keep. Answer more briefly."),
    ],
)
def test_only_a_protocol_error_makes_a_task_failed(
    alice: Client, how: str, status: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = alice.world
    task = alice.begin("broken", how=how)
    world.work()
    ended = alice.get(task)
    assert ended["status"] == status
    if status == "failed":
        assert ended["error"] == {"code": -32603, "message": said}
        assert ended["statusMessage"] == said
    else:
        assert (ended["result"]["isError"], text(ended["result"])) == (True, said)
    assert SECRET not in caplog.text


def test_a_task_whose_question_the_calling_client_cannot_show_ends_in_words(world: World, alice: Client) -> None:
    task = alice.begin("sampled")
    world.work()
    ended = alice.get(task)
    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)
    assert "It asks: a message of the client's model." in text(ended["result"])


def test_a_task_whose_tool_requires_what_the_client_lacks_fails_with_its_name(world: World, alice: Client) -> None:
    task = alice.begin("demanding")
    world.work()
    ended = alice.get(task)
    assert (ended["status"], ended["error"]["code"]) == ("failed", -32021)
    assert ended["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    assert ended["error"]["message"] == (
        "The client lacks a required capability: sampling. The server would have asked: a message of the client's model"
    )


def test_the_arguments_of_a_task_are_deleted_when_it_ends(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    alice.update(task, approve={"action": "accept", "content": NO})
    world.work()
    kept = world.tasks.store.get(task, next(iter(world.table.items)).split("/")[3])
    assert (kept.arguments, kept.record, kept.given, kept.asked) == ({}, {}, {}, {})


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
def test_a_finished_task_never_changes(world: World, alice: Client, ending: str) -> None:
    task = alice.begin("broken", how="large" if ending == "failed" else "well")
    if ending == "cancelled":
        alice.cancel(task)
    world.work()
    ended = alice.get(task)
    assert ended["status"] == ending
    items = dict(world.table.items)
    alice.cancel(task)
    alice.accept(task, approve=YES)
    world.come((task, next(iter(items)).split("/")[3]))
    world.clock.advance(3600)
    assert alice.get(task) == {**ended, "pollIntervalMs": 30_000}
    assert world.table.items == items


# ---- Cancelling


def test_a_task_that_waits_for_an_answer_is_cancelled_immediately(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    alice.cancel(task)
    ended = alice.get(task)
    assert ended["status"] == "cancelled"
    alice.accept(task, approve=YES)
    assert world.work() == 0
    assert DONE == ["draft Lisbon"]


def test_a_cancellation_is_seen_at_the_next_step(world: World, alice: Client) -> None:
    task = alice.begin("counted", count=5)
    MEANWHILE.append(lambda done: len(done) == 2 and alice.cancel(task))
    world.work()
    assert alice.get(task)["status"] == "cancelled"
    assert DONE == ["part 0", "part 1"]


def test_a_cancellation_is_seen_at_the_next_question(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    MEANWHILE.append(lambda _done: alice.cancel(task))
    world.work()
    ended = alice.get(task)
    assert (ended["status"], "inputRequests" in ended) == ("cancelled", False)
    assert "statusMessage" not in ended  # the round had reported its progress before it asked


def test_work_that_finishes_before_it_sees_the_cancellation_stays_completed(world: World, alice: Client) -> None:
    task = alice.begin("counted", count=5)
    MEANWHILE.append(lambda done: len(done) == 5 and alice.cancel(task))
    world.work()
    assert alice.get(task)["status"] == "completed"


def test_a_task_that_is_cancelled_before_its_worker_starts_never_begins(world: World, alice: Client) -> None:
    task = alice.begin("required")
    alice.cancel(task)
    assert alice.get(task)["status"] == "cancelled"
    world.work()
    assert DONE == []


# ---- Limits


def test_open_tasks_are_counted_for_each_principal() -> None:
    world = World(*JOBS, max_open_tasks=2)
    alice, bob = Client(world), Client(world, "bob")
    first, _second = alice.begin("publish", title="1"), alice.begin("publish", title="2")
    refused = alice.call("publish", title="3")
    assert refused["isError"]
    assert "2 tasks open" in text(refused)
    bob.begin("publish", title="1")
    alice.cancel(first)
    alice.begin("publish", title="3")
    assert alice.call("publish", title="4")["isError"]


def test_tasks_that_have_ended_or_expired_are_not_counted() -> None:
    world = World(*JOBS, max_open_tasks=2)
    alice = Client(world)
    for _ in range(5):
        alice.begin("required")
        alice.begin("required")
        world.work()
    alice.begin("required")
    alice.begin("required")
    assert alice.call("required")["isError"]
    world.clock.advance(60)
    world.table.expire(world.clock())
    alice.begin("required")


def test_polling_tasks_under_many_data_keys_asks_kms_within_the_budget_of_the_person() -> None:
    kms, clock = StrictKms(), Clock(START + 450)  # the middle of an epoch, where no key of the one before seals
    keys = make_keys(kms, kms.create_key(), clock=clock)
    world = World(
        *JOBS, max_open_tasks=100, clock=clock, seal=Envelope(keys, label=LABEL, max_chars=CEILING, max_age=DAY)
    )
    alice, tasks = Client(world), list[str]()
    for _ in range(70):
        clock.advance(900)  # an epoch: the next task is sealed under another key
        tasks.append(alice.begin("counted", count=2))
        world.work()
    keys.reset()
    assert kms.count("GenerateDataKey") == 70
    kms.calls.clear()
    for _ in range(3):
        told = [alice.send("tasks/get", {"taskId": task}) for task in tasks]
        assert ["result" in message for message in told] == [True] * 41 + [False] * 29
        assert alice.response["statusCode"] == 503
    assert kms.count("Decrypt") == 41


def test_a_call_too_large_for_an_item_gets_an_error_result(world: World, alice: Client) -> None:
    result = alice.call("publish", title="x" * 500_000)
    assert result["isError"]
    assert not world.summoned


# ---- Clients that do not declare tasks


def test_no_text_of_a_client_or_an_author_is_logged(
    world: World, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    task = alice.begin("publish", title="confidential")
    world.work()
    alice.accept(task, approve=YES)
    world.work()
    alice.get(task)
    said = json.dumps([record.__dict__ for record in caplog.records], default=str)
    assert all(word not in said for word in ("confidential", "alice", task.partition(".")[2]))


def test_the_author_audits_the_rounds_of_a_task_too() -> None:
    told: list[AuditRecord] = []
    world = World(*JOBS, audit=told.append)
    alice = Client(world)
    task = alice.begin("publish", title="Lisbon")
    world.work()
    alice.accept(task, approve=YES)
    world.work()
    rounds = [(record.round, dict(record.asked), dict(record.answered)) for record in told if record.round]
    assert rounds == [
        (1, {}, {}),  # the call itself
        (1, {"approve": "Publish 'Lisbon'?"}, {}),
        (2, {}, {"approve": "accept"}),
    ]
    assert len({record.flow for record in told}) == 1


def test_a_gateway_event_is_never_a_worker_invocation(world: World) -> None:
    event = wire.event(wire.message("tools/list"), context={"mcpTask": {"id": "x", "owner": None}})
    assert (
        world.function(event, wire.Context())["statusCode"] == 500
    )  # the caller has not signed in, so the message was read


def test_a_function_without_tasks_accepts_no_worker_invocations() -> None:
    with pytest.raises(WorkFailed, match=r"^$"):
        serve(greet)({"mcpTask": {"id": "x", "owner": None}}, wire.Context())


# ---- Where it is deployed


def test_the_endpoint_forwards_a_task_request_to_the_function_that_stores_it() -> None:
    offered = catalog.merge([catalog.build([publish], "books"), catalog.build([greet], "greet")])
    lambdas = Lambdas(books=LambdaFunction(lambda _name, _now: World(*JOBS, auth_mode="none").endpoint))
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
    world = World(*JOBS, auth_mode="none")
    task = Client(world).begin("publish", title="Lisbon")
    world.work()
    assert Client(world, "bob").get(task)["status"] == "input_required"


def test_a_worker_opens_what_its_function_sealed() -> None:
    with deployed():
        talk = Conversation(serve(publish), capabilities=WITH_TASKS).call(title="Lisbon").poll()
        assert talk.asked == ["approve"]
        assert talk.accept(approve=YES).text == "DRAFT LISBON, PUBLISH LISBON"


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

    result = Client(World(undecided)).result("tools/call", {"name": "undecided", "arguments": {}})
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


def test_two_clients_with_different_answers_lead_to_one_answer_and_one_worker(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    rival = Client(world)

    def overtaken(operation: str) -> None:
        if operation == "PutItem":
            world.table.weather = lambda _operation: None
            rival.accept(task, approve={"yes": False})

    world.table.weather = overtaken
    alice.accept(task, approve=YES)
    assert world.work() == 1
    assert text(alice.get(task)["result"]) == "Kept."  # the first that was written down, and no other


def test_an_answer_of_one_task_answers_no_other(world: World, alice: Client) -> None:
    first, second = (alice.begin("publish", title=title) for title in ("A", "B"))
    world.work()
    alice.accept(first, approve=YES)
    world.work()
    assert alice.get(first)["status"] == "completed"
    assert alice.get(second)["status"] == "input_required"


def test_a_worker_invocation_for_another_principals_task_does_nothing(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.summoned.clear()
    for owner in (None, "x" * 43, ""):
        world.come((task, owner))
    for other in ("other.0123456789abcdef012345", f"{task}x", task.replace(".", "/"), ""):
        world.come((other, None))
    assert alice.get(task)["status"] == "working"
    assert world.table.calls.count("PutItem") == 2  # the task, and the list of what is open


def test_an_answer_after_the_end_of_its_task_has_no_effect(world: World, alice: Client) -> None:
    task = alice.begin("publish", title="Lisbon")
    world.work()
    world.clock.advance(24 * 3600 + 1)
    answer = {"taskId": task, "inputResponses": {"approve": {"action": "accept", "content": YES}}}
    assert alice.error("tasks/update", answer)["message"] == "Unknown task"
    assert not world.summoned


def test_restoring_an_old_item_does_not_undo_later_actions_in_its_name(world: World, alice: Client) -> None:
    task = alice.begin("counted", count=2)
    (key,) = (key for key in world.table.items if "/task/" in key)
    old = dict(world.table.items[key])
    world.work()
    ended = dict(world.table.items[key])
    world.table.items[key] = {**old, "version": ended["version"]}  # an old row under the new number
    alice.error("tasks/get", {"taskId": task})
    world.table.items[key] = {**ended, "expires": {"N": str(int(ended["expires"]["N"]) + 1000)}}  # a longer life
    alice.error("tasks/get", {"taskId": task})
    world.table.items[key] = ended
    assert alice.get(task)["status"] == "completed"
