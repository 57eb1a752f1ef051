"""Authors test with a `Conversation`, which reads like a dialogue, and with the fixtures of a pytest plugin."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, Log, Step, prompt, resource, serve, tool
from mcp_functions.protocol.messages import Principal
from mcp_functions.testing import WITH_APPS, Context, Conversation, deployed, plugin

if TYPE_CHECKING:
    from mcp_functions.local.api_gateway.events import Moment

FROZEN = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}
ROOT = Path(__file__).parents[2]


class Name(BaseModel):
    name: str


class Ok(BaseModel):
    ok: bool


ANN, YES = {"name": "Ann"}, {"ok": True}
CALLS: list[str] = []


@tool
def greet(greeting: str, *, elicit: Elicit) -> str:
    """Greet a person by name."""
    CALLS.append(greeting)
    name = elicit("name", "What is your name?", Name).name
    sure = elicit("sure", f"{name}, are you sure?", Ok).ok
    return f"{greeting}, {name}! ({len(CALLS)} calls in this process, sure: {sure})"


handler = serve(greet)


@pytest.fixture(autouse=True)
def _nobody_called() -> None:
    CALLS.clear()


# A dialogue.


def test_a_conversation_reads_like_a_dialogue() -> None:
    talk = Conversation(handler).call(greeting="Hello")
    assert talk.asked == ["name"]
    assert talk.messages == {"name": "What is your name?"}
    talk.accept(name=ANN)
    assert talk.messages == {"sure": "Ann, are you sure?"}
    talk.accept(sure=YES)
    assert talk.text.startswith("Hello, Ann!")
    assert (talk.done, talk.asked, talk.status) == (True, [], 200)
    assert len(talk.rounds) == 3


def test_a_conversation_may_be_chained() -> None:
    assert Conversation(handler).call(greeting="Hi").accept(name=ANN).decline().text == (
        "The user declined to answer: Ann, are you sure?"
    )


def test_an_answer_where_nothing_was_asked_is_an_assertion_that_shows_the_result() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    complete = r'nothing was asked: no question, but HTTP 200 \{"result": \{"resultType": "complete".*\.\.\.$'
    for answer in (Conversation.decline, Conversation.cancel, partial(Conversation.accept, seat="window")):
        with pytest.raises(AssertionError, match=complete):
            answer(Conversation(serve(add)).call(a=1, b=2))
        with pytest.raises(AssertionError, match="nothing was asked: no question, because nothing was sent"):
            answer(Conversation(serve(add)))


def test_a_question_too_many_is_an_assertion_but_a_replay_and_an_answer_after_an_error_are_sent() -> None:
    talk = Conversation(handler).call(greeting="Hello").accept(name=ANN)
    assert talk.tamper().accept(sure=YES).done
    assert talk.accept(sure=YES).text.startswith("Hello, Ann!")
    with pytest.raises(AssertionError, match="nothing was asked"):
        talk.accept(another=YES)
    with pytest.raises(AssertionError, match="nothing was asked"):
        talk.decline()


def test_decline_and_cancel_answer_all_open_questions_or_the_named_ones() -> None:
    @tool
    def asks(*, elicit: Elicit) -> str:
        return f"{elicit.outcome('a', 'A?', Ok)} {elicit.outcome('b', 'B?', Ok)}"

    talk = Conversation(serve(asks)).call().cancel("a")
    assert talk.asked == ["b"]
    assert talk.decline().text == "The user dismissed without answering: A? The user declined to answer: B?"


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


def test_an_unknown_handler_is_an_error_at_once() -> None:
    @resource("house://rules")
    def rules() -> str:
        return "No shoes."

    with pytest.raises(ValueError, match=r"no tool or prompt greeet; it has: greet$"):
        Conversation(handler).call("greeet")
    with pytest.raises(ValueError, match=r"it has: none \(a resource is read: talk.read\(uri\)\)$"):
        Conversation(serve(rules)).call()


def test_a_conversation_shows_code_and_message_of_an_error() -> None:
    talk = Conversation(handler).read("nowhere://")
    assert talk.done
    assert talk.error["code"] == -32601


def test_the_last_message_of_a_stream_is_the_response() -> None:
    @tool
    def talkative(*, log: Log) -> str:
        log.info("on my way")
        return "done"

    talk = Conversation(serve(talkative))
    meta = "io.modelcontextprotocol/logLevel"
    talk.call()
    sent = json.loads(json.dumps(talk.rounds[0][0]))
    body = json.loads(sent["body"])
    body["params"]["_meta"][meta] = "info"
    response = serve(talkative)({**sent, "body": json.dumps(body)}, Context("local_talkative"))
    talk.rounds.append((sent, response))
    assert response["headers"]["content-type"] == "text/event-stream"
    assert talk.text == "done"


# Clients that repeat, alter or omit something.


def test_a_client_may_send_a_round_again() -> None:
    talk = Conversation(handler).call(greeting="Hello").accept(name=ANN)
    asked = talk.messages
    assert talk.retry().messages == asked
    assert talk.retry().accept(sure=YES).text.startswith("Hello, Ann!")


def test_a_client_may_change_its_state() -> None:
    talk = Conversation(handler).call(greeting="Hello")
    assert talk.tamper().error == FROZEN
    assert talk.tamper(lambda token: token[:-1]).error == FROZEN
    assert talk.accept(name=ANN).asked == ["sure"]  # the conversation still holds the state that the server sent


def test_a_client_may_answer_a_question_that_was_not_asked() -> None:
    assert Conversation(handler).call(greeting="Hi").answer(other={"action": "accept"}).asked == ["name"]


def test_a_client_may_declare_no_elicitation() -> None:
    talk = Conversation(handler, capabilities={}).call(greeting="Hi")
    assert "this client declares no way to ask its user" in talk.text


def test_a_client_with_apps_answers_in_the_form() -> None:
    talk = Conversation(handler, capabilities=WITH_APPS).call(greeting="Hi")
    assert (talk.done, talk.form["tool"], talk.asked) == (False, f"{talk.function}-form", list(talk.form["questions"]))
    first, *_others = talk.asked
    assert not talk.decline(first).form


def test_a_client_repeats_a_round_that_asked_nothing() -> None:
    @tool(max_sheds=9)
    def long(parts: int, *, step: Step, elicit: Elicit) -> str:
        for n in range(parts):
            before = len(CALLS)
            step(f"part-{n}", CALLS.append, str(n))
            if len(CALLS) > before:
                step.shed()
        return str(elicit("ok", "Ok?", Ok).ok)

    talk = Conversation(serve(long)).call(parts=4).go_on()
    assert (talk.asked, CALLS, len(talk.rounds)) == (["ok"], ["0", "1", "2", "3"], 5)
    assert talk.go_on().accept(ok=YES).go_on().text == "True"


def test_a_conversation_stops_after_ten_rounds_without_a_question() -> None:
    @tool(max_sheds=99)
    def endless(*, step: Step) -> str:
        for n in range(99):
            before = len(CALLS)
            step(f"part-{n}", CALLS.append, str(n))
            if len(CALLS) > before:
                step.shed()
        return "done"

    talk = Conversation(serve(endless)).call()
    with pytest.raises(AssertionError, match="10 rounds without a question: clients give up"):
        talk.go_on()


# Callers.


def test_a_conversation_belongs_to_its_caller() -> None:
    talk = Conversation(handler, principal="alice").call(greeting="Hello")
    thief = talk.as_("mallory").accept(name={"name": "Mallory"})
    assert thief.error == FROZEN
    assert talk.accept(name=ANN).accept(sure=YES).text.startswith("Hello, Ann!")
    assert len(thief.rounds) == 2


def test_a_caller_may_have_all_claims() -> None:
    alice = Principal("https://issuer", "alice", "one client")
    talk = Conversation(handler, principal=alice).call(greeting="Hello")
    assert talk.as_(alice._replace(client="another")).answer().error == FROZEN
    assert talk.as_(alice).accept(name=ANN).asked == ["sure"]


def test_a_conversation_without_a_caller_cannot_change_its_caller() -> None:
    with pytest.raises(ValueError, match='begin as somebody: Conversation\\(handler, principal="alice"\\)'):
        Conversation(handler).call(greeting="Hi").as_("mallory")


# Time.


def test_time_passes_for_the_function_and_for_the_gateway() -> None:
    talk = Conversation(handler).call(greeting="Hello")
    talk.later(minutes=9).accept(name=ANN)
    assert talk.asked == ["sure"]
    before, after = (sent["requestContext"]["timeEpoch"] for sent, _response in talk.rounds)
    assert 0 <= after - before - 9 * 60_000 < 60_000
    assert talk.later(minutes=11).accept(sure=YES).error == FROZEN


def test_a_handler_that_waits_for_days_may_be_answered_after_days() -> None:
    @tool(answer_within=4 * 86_400)
    def patient(*, elicit: Elicit) -> str:
        return elicit("name", "Who?", Name).name

    assert Conversation(serve(patient)).call().later(days=3).accept(name=ANN).text == "Ann"
    assert Conversation(serve(patient)).call().later(days=3, hours=25).accept(name=ANN).error == FROZEN


def test_a_clock_may_stand_still() -> None:
    @tool
    def timed(*, step: Step) -> str:
        return step.now().isoformat()

    talk = Conversation(serve(timed, now=lambda: 1_785_000_000.0))
    assert talk.call().text == "2026-07-25T17:20:00+00:00"
    assert talk.rounds[0][0]["requestContext"]["timeEpoch"] == 1_785_000_000_000
    assert talk.later(seconds=90).call().text == "2026-07-25T17:21:30+00:00"


# Versions and processes.


def test_another_version_may_answer_the_next_round() -> None:
    @tool(name="greet")
    def shorter(greeting: str, *, elicit: Elicit) -> str:
        return f"{greeting}, {elicit('name', 'What is your name?', Name).name}, in short!"

    talk = Conversation(handler).call(greeting="Hello").upgrade(serve(shorter))
    assert talk.accept(name=ANN).text == "Hello, Ann, in short!"


def test_each_round_may_be_a_process_of_its_own() -> None:
    talk = Conversation(handler, fresh=True).call(greeting="Hello").accept(name=ANN).accept(sure=YES)
    assert talk.text == "Hello, Ann! (1 calls in this process, sure: True)"
    assert CALLS == []
    warm = Conversation(handler).call(greeting="Hello").accept(name=ANN).accept(sure=YES)
    assert warm.text == "Hello, Ann! (3 calls in this process, sure: True)"


def test_a_process_gets_the_caller_and_the_time() -> None:
    talk = Conversation(handler, fresh=True, principal="alice").call(greeting="Hello")
    assert talk.as_("mallory").accept(name=ANN).error == FROZEN
    assert talk.later(minutes=11).accept(name=ANN).error == FROZEN


def test_a_process_cannot_import_a_handler_that_is_in_no_module() -> None:
    with pytest.raises(ValueError, match="fresh=True needs `handler = serve"):
        Conversation(serve(greet), fresh=True)


def test_a_failed_process_is_reported_with_its_output(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    talk = Conversation(handler, fresh=True)
    place = talk._target._answer.place  # type: ignore[attr-defined]  # noqa: SLF001 - a module that was deleted meanwhile
    place["file"] = str(tmp_path / "gone.py")
    with pytest.raises(RuntimeError, match=r"a fresh process of .*gone.py ended with 1: see its stderr"):
        talk.call(greeting="Hi")
    assert "FileNotFoundError" in capfd.readouterr().err


def test_async_handlers_may_be_tested_in_async_tests() -> None:
    @tool
    async def asks(*, elicit: Elicit) -> str:
        await asyncio.sleep(0)
        return elicit("name", "Who?", Name).name

    async def in_a_loop() -> str:
        await asyncio.sleep(0)
        return Conversation(serve(asks)).call().accept(name=ANN).text

    assert asyncio.run(in_a_loop()) == "Ann"


# Deployments.


def test_one_function_may_live_in_one_deployment_after_the_other() -> None:
    state = Conversation(handler).call(greeting="Hello").state
    for _ in range(2):
        with deployed():
            talk = Conversation(handler).call(greeting="Hello")
            assert talk.tamper(lambda _own: state).error == FROZEN
            assert talk.accept(name=ANN).accept(sure=YES).text.startswith("Hello, Ann!")


def test_a_deployment_may_have_other_settings() -> None:
    with deployed(MCP_KMS_KEYS=None):
        assert Conversation(serve(greet)).call(greeting="Hi").status == 500
    with deployed(MCP_SERVER_NAME="another"):
        result = Conversation(serve(greet)).call(greeting="Hi").result
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "another"


def test_a_fixed_moment_makes_the_same_event_each_time(moment: Moment) -> None:
    one, other = (Conversation(handler, moment=moment).call(greeting="Hi").rounds[0][0] for _ in range(2))  # type: ignore[arg-type]  # a fixture that gives moments
    assert one == other


# The pytest plugin.


TEST = """
from mcp_functions import serve
from tests.testing.test_conversation import ANN, greet

handler = serve(greet)

def test_somebody_is_greeted(converse):
    talk = converse(handler).call(greeting="Hello").accept(name=ANN).accept(sure={"ok": True})
    assert talk.text.startswith("Hello, Ann!")

def test_a_state_is_somebodys(converse):
    talk = converse(handler, principal="alice").call(greeting="Hello")
    assert talk.as_("somebody else").accept(name=ANN).status == 400
"""


def test_the_plugin_provides_a_fixture_that_begins_conversations(tmp_path: Path) -> None:
    file = tmp_path / "test_greet.py"
    file.write_text(TEST)
    names = [name for name in os.environ if name.startswith(("MCP_", "AWS_", "COV_"))]
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", plugin.__name__, "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_pytest_finds_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"mcp_functions": plugin.__name__}


def test_the_plugin_costs_nothing_until_it_is_used() -> None:
    loaded = "import sys, mcp_functions.testing.plugin; print(*(sys.modules.keys() & {'boto3', 'moto', 'pydantic'}))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == ""


def test_a_misspelled_name_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Convresation'"):
        from mcp_functions.testing import Convresation  # type: ignore[attr-defined]  # noqa: F401, PLC0415


# Failures.


def test_reading_a_result_that_is_missing_shows_why(converse: type[Conversation]) -> None:
    @tool
    def divides(number: int) -> str:
        """Divide."""
        return str(1 // number)

    @prompt
    def brief(number: str) -> str:
        """Brief."""
        return str(1 // int(number))

    talk = converse(serve(divides, brief)).call("brief", number="0")
    why = (
        r"no result, but HTTP 200 .*-32603.*; failed: ZeroDivisionError at .*in.*it raised ZeroDivisionError\('integer "
    )
    with pytest.raises(AssertionError, match=why):
        _ = talk.text
    assert talk.error["code"] == -32603


def test_comparing_the_text_of_a_crashed_tool_shows_its_exception(converse: type[Conversation]) -> None:
    @tool
    def divides(number: int) -> str:
        """Divide."""
        return str(1 // number)

    talk = converse(serve(divides)).call(number=0)
    assert "ZeroDivisionError" not in talk.text
    assert "divides, which raised ZeroDivisionError('integer division or modulo by zero')" in repr(
        talk
    )  # pytest shows it
    assert "raised" not in repr(talk.call(number=1))


@pytest.mark.parametrize("ends", [KeyboardInterrupt, pytest.fail.Exception])
def test_ctrl_c_and_pytests_exit_end_a_test_inside_a_function_too(
    converse: type[Conversation], ends: type[BaseException]
) -> None:
    @tool
    def divides() -> str:
        """Divide."""
        raise ends

    with pytest.raises(ends):
        converse(serve(divides)).call()


def test_reading_a_result_shows_which_form_is_invalid(converse: type[Conversation]) -> None:
    class Login(BaseModel):
        password: str

    @tool
    def asks(*, elicit: Elicit) -> str:
        """Ask."""
        return elicit("login", "Who are you?", Login).password

    talk = converse(serve(asks)).call()
    assert "Login.password: a form is no place for secrets" in str(talk.raised)


def test_reading_an_error_that_is_missing_shows_the_result(converse: type[Conversation]) -> None:
    with pytest.raises(AssertionError, match=r'no error, but HTTP 200 .*"inputRequests"'):
        _ = converse(handler).call(greeting="Hello").error


def test_a_failure_is_printed_when_no_logging_is_configured() -> None:
    code = (
        "from mcp_functions import serve, tool\n"
        "from mcp_functions.testing import Conversation, deployed\n"
        "@tool\n"
        "def divides(number: int) -> str:\n"
        "    return str(1 // number)\n"
        "with deployed():\n"
        "    print(Conversation(serve(divides)).call(number=0).status)\n"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 - ours
    assert ran.stdout == "200\n"
    assert ran.stderr.count("failed: ZeroDivisionError at ") == 1


def test_a_conversation_without_a_deployment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MCP_")]:
        monkeypatch.delenv(name)

    @tool
    def asks(*, elicit: Elicit) -> str:
        """Ask."""
        return elicit("name", "Who are you?", Name).name

    with pytest.raises(AssertionError, match=r"MCP_STACK is not set.*no deployment is around it.*`with deployed\(\):`"):
        _ = Conversation(serve(asks)).call().text
