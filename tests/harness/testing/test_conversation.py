"""`Conversation`, the client with which authors test their functions.

It sends each round as an event of API Gateway, answers the questions of the function, and shows what came back.
`handler` is the function here: its tool `greet` asks for a name, and whether the user is sure.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Log, Step, prompt, resource, serve, tool
from mcp_functions.protocol.messages import Principal
from mcp_functions_harness.testing import WITH_APPS, WITH_TASKS, Conversation, deployed
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcp_functions_harness.api_gateway.events import Moment

INVALID_REQUEST_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}

RUNS = Counter[str]()  # how often each function ran in this process


@tool
def greet(greeting: str, *, elicit: Elicit) -> str:
    """Greet a person by name."""
    RUNS["greet"] += 1
    name = elicit("name", "What is your name?", str)
    sure = elicit("sure", f"{name}, are you sure?", bool)
    return f"{greeting}, {name}! (sure: {sure}, {RUNS['greet']} runs in this process)"


handler = serve(greet)


@pytest.fixture(autouse=True)
def _no_runs() -> None:
    RUNS.clear()


# A conversation reads like a dialogue.


def test_a_conversation_shows_the_questions_and_the_result() -> None:
    talk = Conversation(handler).call(greeting="Hello")
    assert talk.asked == ["name"]
    assert talk.messages == {"name": "What is your name?"}
    talk.accept(name="Ann")
    assert talk.messages == {"sure": "Ann, are you sure?"}
    talk.accept(sure=True)
    assert talk.done
    assert talk.asked == []
    assert talk.text.startswith("Hello, Ann!")


def test_a_conversation_has_the_status_and_every_event_and_response() -> None:
    talk = Conversation(handler).call(greeting="Hello").accept(name="Ann")
    assert talk.status == 200
    (first_event, first_response), (second_event, second_response) = talk.rounds
    assert "requestState" not in first_event["body"]
    assert "What is your name?" in first_response["body"]
    assert "requestState" in second_event["body"]
    assert "Ann, are you sure?" in second_response["body"]


def test_a_conversation_shows_the_code_of_an_error() -> None:
    talk = Conversation(handler).read("nowhere://")
    assert talk.done
    assert talk.error["code"] == -32601


@tool
def ask_two(*, elicit: Elicit) -> str:
    """Ask two questions, one after the other."""
    first = elicit.outcome("a", "A?", bool)
    second = elicit.outcome("b", "B?", bool)
    return f"{first} {second}"


def test_decline_and_cancel_answer_the_named_questions() -> None:
    talk = Conversation(serve(ask_two)).call().cancel("a").decline("b")
    assert talk.text == "The user dismissed without answering: A? The user declined to answer: B?"


def test_decline_and_cancel_without_a_key_answer_all_open_questions() -> None:
    talk = Conversation(serve(ask_two)).call().decline().cancel()
    assert talk.text == "The user declined to answer: A? The user dismissed without answering: B?"


def test_any_handler_of_a_function_may_be_named() -> None:
    @tool
    def one() -> str:
        return "one"

    @tool
    def two() -> str:
        return "two"

    @prompt
    def brief(topic: str) -> str:
        return f"On {topic}"

    @resource("house://rules")
    def rules() -> str:
        return "No shoes."

    function = serve(one, two, brief, rules)
    assert Conversation(function).call().text == "one"
    assert Conversation(function).call("two").text == "two"
    assert Conversation(function).get("brief", topic="law").text == "On law"
    assert Conversation(function).read("house://rules").text == "No shoes."


def test_an_unknown_handler_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"no tool or prompt greeet; it has: greet$"):
        Conversation(handler).call("greeet")


def test_a_call_of_a_function_with_resources_only_is_a_value_error() -> None:
    @resource("house://rules")
    def rules() -> str:
        return "No shoes."

    with pytest.raises(ValueError, match=r"it has: none \(a resource is read: talk.read\(uri\)\)$"):
        Conversation(serve(rules)).call()
    with pytest.raises(ValueError, match=r"no tool or prompt rules; it has: none"):
        Conversation(serve(rules)).call("rules")


def test_the_last_message_of_a_stream_is_the_response() -> None:
    @tool
    def greet_with_log(*, log: Log) -> str:
        log.info("on my way")
        return "done"

    function = serve(greet_with_log)
    talk = Conversation(function).call()
    params = {"name": "greet_with_log", "arguments": {}}
    event: Any = wire.event(wire.message("tools/call", params, meta={wire.PREFIX + "logLevel": "info"}))
    talk.rounds.append((event, function(event, wire.Context("local_greet_with_log"))))
    assert "on my way" in talk.rounds[-1][1]["body"]
    assert talk.text == "done"


# Answers where nothing was asked.


@pytest.mark.parametrize("answer", [Conversation.decline, Conversation.cancel, lambda talk: talk.accept(name="Ann")])
def test_an_answer_where_nothing_was_asked_shows_the_result(answer: Callable[[Conversation], object]) -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    talk = Conversation(serve(add)).call(a=1, b=2)
    # The message ends with the first 200 characters of the response.
    message = r'nothing was asked: no question, but HTTP 200 \{"result": \{"resultType": "complete".*\.\.\.$'
    with pytest.raises(AssertionError, match=message):
        answer(talk)


def test_an_answer_before_the_first_round_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="nothing was asked: no question, because nothing was sent"):
        Conversation(handler).decline()


def test_a_missing_state_is_an_assertion_error_that_shows_the_message() -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    talk = Conversation(serve(add)).call(a=1, b=2)
    with pytest.raises(AssertionError, match=r'no requestState, but HTTP 200 \{"result": .*"complete"'):
        _ = talk.state


def test_the_status_before_the_first_round_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="no response, because nothing was sent"):
        _ = Conversation(handler).status


def test_an_answer_to_a_new_question_after_the_result_is_an_assertion_error() -> None:
    talk = Conversation(handler).call(greeting="Hello").accept(name="Ann").accept(sure=True)
    with pytest.raises(AssertionError, match="nothing was asked"):
        talk.accept(another=True)


def test_an_earlier_question_may_be_answered_again_after_the_result() -> None:
    talk = Conversation(handler).call(greeting="Hello").accept(name="Ann").accept(sure=True)
    assert talk.accept(sure=False).text.startswith("Hello, Ann! (sure: False")


def test_a_question_may_be_answered_after_an_error() -> None:
    talk = Conversation(handler).call(greeting="Hello").accept(name="Ann").tamper()
    assert talk.error == INVALID_REQUEST_STATE_ERROR
    assert talk.accept(sure=True).text.startswith("Hello, Ann!")


# Clients that repeat, change or omit something.


def test_a_client_may_repeat_a_round() -> None:
    talk = Conversation(handler).call(greeting="Hello").accept(name="Ann")
    messages = talk.messages
    assert talk.retry().messages == messages
    assert talk.accept(sure=True).text.startswith("Hello, Ann!")


def test_a_client_may_change_its_state() -> None:
    talk = Conversation(handler).call(greeting="Hello")
    assert talk.tamper().error == INVALID_REQUEST_STATE_ERROR
    assert talk.tamper(lambda token: token[:-1]).error == INVALID_REQUEST_STATE_ERROR


def test_a_conversation_goes_on_with_the_valid_state_after_a_changed_one() -> None:
    talk = Conversation(handler).call(greeting="Hello").tamper()
    assert talk.accept(name="Ann").asked == ["sure"]


def test_a_client_may_answer_a_question_that_was_not_asked() -> None:
    assert Conversation(handler).call(greeting="Hi").answer(other={"action": "accept"}).asked == ["name"]


def test_a_client_may_declare_no_capability() -> None:
    talk = Conversation(handler, capabilities={}).call(greeting="Hi")
    assert "this client declares no way to ask its user" in talk.text


def test_a_client_with_apps_answers_in_a_form() -> None:
    talk = Conversation(handler, capabilities=WITH_APPS).call(greeting="Hi")
    assert not talk.done
    assert talk.form["tool"] == "greet-form"
    assert talk.asked == ["name"]
    assert not talk.decline("name").form


def work_in_rounds(rounds: int) -> Conversation:
    """Call a tool that ends so many rounds without a question, and then asks one."""

    @tool(max_sheds=rounds)
    def work(*, step: Step, elicit: Elicit) -> str:
        for number in range(rounds):
            steps_before = RUNS["step"]
            step(f"part-{number}", RUNS.update, ["step"])
            if RUNS["step"] > steps_before:  # the step ran in this round
                step.shed()
        return str(elicit("ok", "Ok?", bool))

    return Conversation(serve(work)).call()


def test_go_on_repeats_the_rounds_without_a_question() -> None:
    talk = work_in_rounds(4).go_on()
    assert talk.asked == ["ok"]
    assert len(talk.rounds) == 5
    assert talk.accept(ok=True).text == "True"


def test_go_on_sends_nothing_if_there_is_a_question_or_a_result() -> None:
    talk = Conversation(handler).call(greeting="Hello").go_on().accept(name="Ann").accept(sure=True).go_on()
    assert len(talk.rounds) == 3


def test_go_on_stops_after_ten_rounds_without_a_question() -> None:
    with pytest.raises(AssertionError, match="10 rounds without a question: clients give up"):
        work_in_rounds(11).go_on()


# Callers.


def test_a_copy_of_a_conversation_may_have_another_caller() -> None:
    talk = Conversation(handler, principal="alice").call(greeting="Hello")
    assert talk.as_("mallory").accept(name="Mallory").error == INVALID_REQUEST_STATE_ERROR
    assert talk.accept(name="Ann").asked == ["sure"]
    assert len(talk.rounds) == 2


def test_a_caller_may_have_all_claims() -> None:
    alice = Principal("https://issuer", "alice", "one client")
    talk = Conversation(handler, principal=alice).call(greeting="Hello")
    assert talk.as_(alice._replace(client="another")).answer().error == INVALID_REQUEST_STATE_ERROR
    assert talk.as_(alice).accept(name="Ann").asked == ["sure"]


def test_a_conversation_without_a_caller_cannot_change_its_caller() -> None:
    with pytest.raises(ValueError, match='begin as somebody: Conversation\\(handler, principal="alice"\\)'):
        Conversation(handler).call(greeting="Hi").as_("mallory")


# Time.


def test_time_passes_for_the_function_and_for_api_gateway() -> None:
    talk = Conversation(handler).call(greeting="Hello").later(minutes=9).accept(name="Ann")
    assert talk.asked == ["sure"]
    first, second = (event["requestContext"]["timeEpoch"] for event, _response in talk.rounds)
    assert 9 * 60_000 <= second - first < 10 * 60_000
    assert talk.later(minutes=11).accept(sure=True).error == INVALID_REQUEST_STATE_ERROR


def test_days_may_pass() -> None:
    @tool(answer_within=4 * 86_400)  # seconds: four days
    def greet_later(*, elicit: Elicit) -> str:
        return elicit("name", "Who?", str)

    assert Conversation(serve(greet_later)).call().later(days=3).accept(name="Ann").text == "Ann"
    talk = Conversation(serve(greet_later)).call().later(days=3, hours=25)
    assert talk.accept(name="Ann").error == INVALID_REQUEST_STATE_ERROR


def test_the_clock_of_a_function_is_the_clock_of_api_gateway() -> None:
    @tool
    def tell_time(*, step: Step) -> str:
        return step.now().isoformat()

    talk = Conversation(serve(tell_time, now=lambda: 1_785_000_000.0))
    assert talk.call().text == "2026-07-25T17:20:00+00:00"
    assert talk.rounds[0][0]["requestContext"]["timeEpoch"] == 1_785_000_000_000
    assert talk.later(seconds=90).call().text == "2026-07-25T17:21:30+00:00"


def test_a_fixed_moment_makes_the_same_event_each_time(moment: Callable[[], Moment]) -> None:
    first, second = (Conversation(handler, moment=moment).call(greeting="Hi").rounds[0][0] for _ in range(2))
    assert first == second


# Versions and processes.


def test_another_version_may_get_the_next_round() -> None:
    @tool(name="greet")
    def greet_in_short(greeting: str, *, elicit: Elicit) -> str:
        return f"{greeting}, {elicit('name', 'What is your name?', str)}, in short!"

    talk = Conversation(handler).call(greeting="Hello").upgrade(serve(greet_in_short))
    assert talk.accept(name="Ann").text == "Hello, Ann, in short!"


@pytest.mark.parametrize(("fresh", "runs"), [(True, 1), (False, 3)], ids=["fresh processes", "one process"])
def test_each_round_may_have_a_process_of_its_own(*, fresh: bool, runs: int) -> None:
    talk = Conversation(handler, fresh=fresh).call(greeting="Hello").accept(name="Ann").accept(sure=True)
    assert talk.text == f"Hello, Ann! (sure: True, {runs} runs in this process)"


def test_a_fresh_process_gets_the_caller_and_the_time() -> None:
    talk = Conversation(handler, fresh=True, principal="alice").call(greeting="Hello")
    assert talk.as_("mallory").accept(name="Ann").error == INVALID_REQUEST_STATE_ERROR
    assert talk.later(minutes=11).accept(name="Ann").error == INVALID_REQUEST_STATE_ERROR


def test_a_fresh_process_needs_a_handler_in_a_module() -> None:
    with pytest.raises(ValueError, match="fresh=True needs `handler = serve"):
        Conversation(serve(greet), fresh=True)


def test_a_fresh_process_that_fails_is_an_error_with_its_output(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    talk = Conversation(handler, fresh=True)
    place = {"module": "gone", "file": str(tmp_path / "gone.py"), "variable": "handler"}
    monkeypatch.setattr("mcp_functions_harness.testing.containers.find_variable", lambda _handler: place)
    with pytest.raises(RuntimeError, match=r"a fresh process of .*gone.py ended with 1: see its stderr"):
        talk.call(greeting="Hi")
    assert "FileNotFoundError" in capfd.readouterr().err


def test_an_async_handler_may_be_tested_in_a_running_event_loop() -> None:
    @tool
    async def ask_name(*, elicit: Elicit) -> str:
        await asyncio.sleep(0)
        return elicit("name", "Who?", str)

    async def run_test() -> str:
        await asyncio.sleep(0)
        return Conversation(serve(ask_name)).call().accept(name="Ann").text

    assert asyncio.run(run_test()) == "Ann"


# Deployments.


def test_a_state_of_another_deployment_is_invalid() -> None:
    state = Conversation(handler).call(greeting="Hello").state
    with deployed():
        talk = Conversation(handler).call(greeting="Hello")
        assert talk.tamper(lambda _own: state).error == INVALID_REQUEST_STATE_ERROR


def test_one_function_may_be_in_one_deployment_after_another() -> None:
    for _ in range(2):
        with deployed():
            assert Conversation(handler).call(greeting="Hello").accept(name="Ann").asked == ["sure"]


def test_a_deployment_may_have_other_settings() -> None:
    with deployed(MCP_SERVER_NAME="another"):
        result = Conversation(serve(greet)).call(greeting="Hi").result
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "another"


def test_a_deployment_may_lack_a_setting() -> None:
    with deployed(MCP_KMS_KEYS=None):
        assert Conversation(serve(greet)).call(greeting="Hi").status == 500


@tool(task="required")
def audit(month: int) -> str:
    """Audit a month."""
    RUNS[f"audit {month}"] += 1
    return "audited"


def test_a_poll_works_on_the_task_of_its_conversation_alone() -> None:
    tasks = serve(audit)
    left = Conversation(tasks, capabilities=WITH_TASKS).call(month=1)
    assert Conversation(tasks, capabilities=WITH_TASKS).call(month=2).poll().text == "audited"
    assert (RUNS["audit 1"], RUNS["audit 2"]) == (0, 1)
    assert left.poll().text == "audited"
