"""Clients of 2025 get questions as requests in an event stream, and no function waits for the answer.

A client answers with an HTTP request of its own, and then resumes the stream to get the next question or the result.
The tool `resolve` asks one question or two. The fixtures deploy it directly, and behind the front door.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from mcp_functions import Caller, Elicit, ListRoots, Progress, Step, serve, tool
from mcp_functions.annotated import Titles
from mcp_functions_harness.testing import deployed
from tests.legacy import handlers
from tests.legacy.clients import Client, read_question, read_retry, result_text
from tests.legacy.deployment import Deployment
from tests.legacy.handlers import start_resolving

if TYPE_CHECKING:
    from collections.abc import Mapping


def resolve_as_duplicate(client: Client) -> str:
    """Call `resolve`, answer both questions, and return the text of the result."""
    first_id = start_resolving(client)
    assert client.accept(first_id, why="Duplicate")["statusCode"] == 202
    second = read_question(client.resume())
    assert client.accept(second["id"], number=3)["statusCode"] == 202
    return result_text(client.resume())


# ---- Answers


def test_a_tool_asks_two_questions_one_after_the_other(client: Client, deployment: Deployment) -> None:
    assert resolve_as_duplicate(client) == "7 duplicates 3"
    assert deployment.rounds_run == 3  # as many as for a client of 2026-07-28


def test_every_request_of_a_conversation_may_reach_a_new_container(client: Client, deployment: Deployment) -> None:
    def run_in_new_container(event: Mapping[str, Any], context: object) -> dict[str, Any]:
        deployment.replace_containers()
        return deployment(event, context)

    client.function = run_in_new_container
    assert resolve_as_duplicate(client) == "7 duplicates 3"


def test_the_result_has_the_id_of_the_call(client: Client) -> None:
    client.accept(start_resolving(client), why="Fixed")
    assert client.resume()[-1].data["id"] == client.request_id


@pytest.mark.parametrize(("action", "exception"), [("decline", "Declined"), ("cancel", "Cancelled")])
def test_the_function_learns_that_the_user_declined(client: Client, action: str, exception: str) -> None:
    client.answer(start_resolving(client), {"action": action})
    assert result_text(client.resume()) == f"7 stays: {exception}"


def test_an_invalid_answer_repeats_the_question(client: Client) -> None:
    client.accept(start_resolving(client), why="Because")
    repeated = read_question(client.resume())
    assert "Please answer again" in repeated["params"]["message"]
    client.accept(repeated["id"], why="Fixed")
    assert result_text(client.resume()) == "7 fixed"


def test_an_option_has_a_title_in_the_form_of_its_revision(placement: str) -> None:
    class Seat(BaseModel):
        seat: Annotated[Literal["w", "a"], Titles("Window", "Aisle")] = "w"

    @tool
    def choose_seat(*, elicit: Elicit) -> str:
        return elicit("seat", "Where?", Seat).seat

    client = Deployment(choose_seat, placement=placement, questions_since="2025-06-18").client()
    client.initialize("2025-06-18")
    question = read_question(client.call("choose_seat"))
    assert question["params"]["requestedSchema"] == {
        "type": "object",
        "properties": {"seat": {"type": "string", "enum": ["w", "a"], "enumNames": ["Window", "Aisle"]}},
    }
    client.accept(question["id"], seat="a")
    assert result_text(client.resume()) == "a"


# ---- Errors of the client


@pytest.mark.parametrize(
    ("response", "hint"),
    [
        pytest.param(
            {"error": {"code": -32603, "message": "SECRET"}},
            " (it answered with JSON-RPC error -32603)",
            id="JSON-RPC error",
        ),
        pytest.param({"error": {"code": "SECRET", "message": ""}}, "", id="error with a text as its code"),
        pytest.param({"error": "SECRET"}, "", id="error that is no object"),
        pytest.param({"result": "SECRET"}, "", id="result that is no object"),
    ],
)
def test_a_client_that_cannot_ask_its_user_gets_the_question_in_an_error(
    client: Client, deployment: Deployment, response: dict[str, Any], hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    id_ = start_resolving(client)
    with caplog.at_level("DEBUG"):
        assert client.answer(id_, **response)["statusCode"] == 202
    result = client.resume()[-1].data["result"]
    assert result["isError"] is True
    message = result["content"][0]["text"]
    question = "How was bug 7 resolved?"
    assert message.startswith(f"Not finished: the client could not ask its user{hint}. It asks: {question}")
    assert "SECRET" not in message + str([vars(record) for record in caplog.records])
    assert deployment.rounds_run == 1  # the function gets no answer


def test_an_error_of_the_client_is_logged_at_level_info(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    id_ = start_resolving(client)
    caplog.clear()
    with caplog.at_level("INFO", "mcp_functions"):
        client.answer(id_, error={"code": -32603, "message": "no"})
    assert [vars(record)["reason"] for record in caplog.records if "reason" in vars(record)] == ["client_error"]
    assert {record.levelname for record in caplog.records} == {"INFO"}


def test_a_response_without_result_and_error_is_refused(client: Client) -> None:
    assert client.answer(start_resolving(client))["statusCode"] == 400


def test_a_client_that_refuses_sampling_gets_an_explanation(client: Client) -> None:
    id_ = read_question(client.call("ask_model"))["id"]
    client.answer(id_, error={"code": -1, "message": "User rejected sampling request"})
    result = client.resume()[-1].data["result"]
    assert result["isError"] is True
    message = result["content"][0]["text"]
    assert (
        "the client refused (it answered with JSON-RPC error -1). It asks: a message of the client's model." in message
    )


# ---- Kinds of handlers and of questions


def test_a_prompt_asks_its_user(client: Client) -> None:
    question = read_question(client.send("prompts/get", {"name": "brief", "arguments": {"topic": "x"}}))
    client.accept(question["id"], why="Fixed")
    assert client.resume()[-1].data["result"]["messages"][0]["content"]["text"] == "x: Fixed"


def test_a_resource_asks_its_user(client: Client) -> None:
    question = read_question(client.send("resources/read", {"uri": "secrets://ann"}))
    client.accept(question["id"], why="Fixed")
    assert client.resume()[-1].data["result"]["contents"][0]["text"] == "ann: Fixed"


def test_a_tool_asks_its_user_to_open_a_page(client: Client) -> None:
    question = read_question(client.call("sign_in"))
    assert question["params"]["mode"] == "url"
    assert question["params"]["elicitationId"]
    client.answer(question["id"], {"action": "accept"})
    assert result_text(client.resume()) == "signed in"


def test_a_tool_asks_the_model_of_the_client(client: Client) -> None:
    request = read_question(client.call("ask_model"))
    assert request["method"] == "sampling/createMessage"
    assert request["params"]["maxTokens"] == 9
    content = {"type": "text", "text": "word"}
    client.answer(request["id"], {"role": "assistant", "content": content, "model": "m"})
    assert result_text(client.resume()) == "word"


def test_a_tool_asks_the_client_for_its_roots(placement: str) -> None:
    @tool
    def read_roots(*, list_roots: ListRoots) -> str:
        return ", ".join(root["uri"] for root in list_roots())

    client = Deployment(read_roots, placement=placement).initialized_client()
    request = read_question(client.call("read_roots"))
    assert request["method"] == "roots/list"
    client.answer(request["id"], {"roots": [{"uri": "file:///a"}]})
    assert result_text(client.resume()) == "file:///a"


# ---- Rounds


def test_questions_of_one_round_come_one_after_the_other(client: Client, deployment: Deployment) -> None:
    first = read_question(client.call("ask_both"))
    client.accept(first["id"], why="Fixed")
    second = read_question(client.resume())
    assert deployment.rounds_run == 1  # the second question's id holds the first answer
    client.accept(second["id"], number=4)
    assert result_text(client.resume()) == "Fixed 4"
    assert deployment.rounds_run == 2


def test_each_round_sends_its_progress(placement: str) -> None:
    @tool
    def report_and_ask(*, elicit: Elicit, progress: Progress) -> str:
        progress(0.5)
        why = elicit("why", "Go on?", handlers.Why).why
        progress(1)
        return why

    client = Deployment(report_and_ask, placement=placement).initialized_client()
    _, progress, question = client.send("tools/call", {"name": "report_and_ask", "_meta": {"progressToken": "p"}})
    assert progress.data["method"] == "notifications/progress"
    client.accept(question.data["id"], why="Fixed")
    _, progress, result = client.resume()
    assert progress.data["method"] == "notifications/progress"
    assert result.data["result"]["content"][0]["text"] == "Fixed"


def test_every_round_gets_the_arguments_as_the_client_sent_them(placement: str) -> None:
    @tool
    def pack(bag: list[str], *, elicit: Elicit) -> str:
        bag.append("soap")
        elicit("why", "Go on?", handlers.Why)
        return ", ".join(bag)

    client = Deployment(pack, placement=placement).initialized_client()
    question = read_question(client.call("pack", bag=["map"]))
    client.accept(question["id"], why="Fixed")
    assert result_text(client.resume()) == "map, soap"


def test_long_work_continues_when_the_client_resumes(deployment: Deployment) -> None:
    finished: list[str] = []

    @tool(max_sheds=3)
    def work_for_a_minute(*, elicit: Elicit, step: Step) -> str:
        def work(part: str) -> None:
            finished.append(part)
            deployment.clock.advance(20)

        for part in "abc":
            step(part, work, part)
        return elicit("why", "Go on?", handlers.Why).why

    deployment.handlers = (work_for_a_minute,)
    deployment.replace_containers()
    client = deployment.initialized_client()
    assert read_retry(client.call("work_for_a_minute")) == 500
    assert read_retry(client.resume()) == 500
    client.accept(read_question(client.resume())["id"], why="Fixed")
    assert result_text(client.resume()) == "Fixed"
    assert finished == ["a", "b", "c"]


# ---- The access token of an answer


def assert_scope_missing(response: Mapping[str, Any]) -> None:
    assert response["statusCode"] == 403
    assert 'scope="work"' in response["headers"]["www-authenticate"]


@pytest.fixture
def worker(deployment: Deployment) -> Client:
    """Return a client of a tool that needs the scope `work` in each of its rounds."""

    @tool(scopes=["work"], max_sheds=3)
    def work(*, caller: Caller, elicit: Elicit, step: Step) -> str:
        for part in "ab":
            step(part, deployment.clock.advance, 20)  # there is time for one part in each round
        elicit("why", "Go on?", handlers.Why)
        return " ".join(sorted(caller.scopes))

    deployment.handlers = (work,)
    deployment.replace_containers()
    client = deployment.initialized_client()
    client.scope = "all work"
    return client


def test_an_answer_without_the_scope_of_the_tool_is_refused_and_loses_nothing(worker: Client) -> None:
    read_retry(worker.call("work"))
    question = read_question(worker.resume())
    worker.scope = "all"
    assert_scope_missing(worker.accept(question["id"], why="Fixed"))
    read_retry(worker.resume())  # the question is still open
    worker.scope = "work"
    assert worker.accept(question["id"], why="Fixed")["statusCode"] == 202
    assert result_text(worker.resume()) == "work"


def test_a_poll_without_the_scope_of_the_tool_runs_no_round_and_loses_nothing(worker: Client) -> None:
    read_retry(worker.call("work"))
    worker.scope = ""
    assert_scope_missing(worker.http("GET", last_event_id=worker.event_ids[-1]))
    worker.scope = "work"
    assert read_question(worker.resume())["params"]["message"] == "Go on?"


def test_a_token_that_expires_between_two_rounds_of_a_request_loses_nothing() -> None:
    deployment = Deployment(placement="behind the front door")  # there, each round checks the token
    done: list[str] = []

    @tool
    def work(*, elicit: Elicit, step: Step) -> str:
        is_first_round = not done
        step("slow", done.append, "slow")
        deployment.clock.advance(5)
        if is_first_round:
            step.shed()
        return elicit("why", "Go on?", handlers.Why).why

    deployment.handlers = (work,)
    deployment.replace_containers()
    client = deployment.initialized_client()
    client.token_seconds = 3
    read_retry(client.call("work"))
    client.token_seconds = 60
    client.accept(read_question(client.resume())["id"], why="Fixed")
    assert result_text(client.resume()) == "Fixed"
    assert done == ["slow"]


# ---- Deployments


def test_a_question_costs_the_documented_table_requests(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    assert deployment.table.calls == ["PutItem"]
    client.resume()
    assert deployment.table.calls[1:] == ["GetItem"]
    client.accept(id_, why="Fixed")
    assert deployment.table.calls[2:] == ["GetItem", "PutItem", "PutItem"]


def test_a_function_without_a_front_door_asks_with_its_own_key_and_table() -> None:
    with deployed():
        client = Client(serve(handlers.resolve))
        client.initialize()
        client.accept(start_resolving(client), why="Fixed")
        assert result_text(client.resume()) == "7 fixed"
