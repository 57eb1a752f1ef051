"""`mcp-functions call`: a client at the terminal that takes answers from options or asks the user."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.command import run
from mcp_functions_harness.loopback import Loopback, json_response
from mcp_functions_harness.terminal import long_rounds
from tests.harness.conftest import write_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mcp_functions_harness.loopback import HttpRequest, HttpResponse

MODULES = {
    "book": '''
from typing import Annotated, Literal
from mcp_functions import Elicit, serve, tool
from mcp_functions.annotated import Header

@tool
def book(city: str, nights: int = 1, *, elicit: Elicit) -> str:
    """Book a room."""
    print("a line of the function")
    view = elicit("view", f"Which view in {city}?", Literal["sea", "city"])
    if not elicit("sure", f"{nights} nights with a {view} view?", bool):
        return "Nothing was booked."
    return f"Booked {city}, {view}, {nights}."

handler = serve(book)
''',
    "profile": '''
from dataclasses import dataclass, field
from typing import Annotated, Literal
from mcp_functions import Elicit, serve, tool
from mcp_functions.annotated import Between, Format

@dataclass
class Profile:
    mail: Annotated[str, Format("email")]
    age: Annotated[int, Between(18, 120)]
    colours: list[Literal["red", "blue"]]
    news: bool = True
    nickname: str | None = None

@tool
def profile(*, elicit: Elicit) -> str:
    """Make a profile."""
    one = elicit("who", "Who are you?", Profile)
    return f"{one.mail} {one.age} {one.colours} {one.news} {one.nickname}"

handler = serve(profile)
''',
    "sign": '''
from mcp_functions import Elicit, serve, tool

@tool
def sign(*, elicit: Elicit) -> str:
    """Sign a contract."""
    elicit.url("contract", "Please sign.", "https://sign.example/7")
    return "signed"

handler = serve(sign)
''',
    "sum_up": '''
from mcp_functions import ListRoots, Sample, serve, tool

@tool
def sum_up(*, list_roots: ListRoots, sample: Sample) -> str:
    """Sum up the folders."""
    names = ", ".join(str(root["name"]) for root in list_roots())
    return str(sample("words", f"Sum up {names}", max_tokens=9)["content"]["text"])

handler = serve(sum_up)
''',
    "count": '''
import time
from mcp_functions import Elicit, Progress, serve, tool

@tool(task="allowed")
def count(most: int, *, elicit: Elicit, progress: Progress) -> str:
    """Count."""
    progress(1, total=2, message="halfway")
    return f"counted {most}" if elicit("sure", "Are you sure?", bool) else "stopped"

handler = serve(count)
''',
    "fail": '''
from mcp_functions import Log, Progress, ToolError, prompt, resource, serve, tool

@tool
def fail(*, progress: Progress, log: Log) -> str:
    """Fail."""
    progress(1, total=4, message="began")
    log.warning("about to fail")
    raise ToolError("There is no room.")

@prompt
def plan(day: str, hour: int = 9) -> str:
    """Plan a day."""
    return f"Plan {day}."

@plan.complete("day")
def days(typed: str, filled_in: dict[str, str]) -> list[str]:
    at = f" at {filled_in['hour']}" if filled_in else ""
    return [day + at for day in ("Monday", "Tuesday", "Thursday") if day.startswith(typed)]

@resource("note://{number}")
def note(number: int) -> str:
    """Read a note."""
    return f"note {number}"

@note.complete("number")
def numbers(typed: str, filled_in: dict[str, str]) -> list[int]:
    return [int(typed + digit) for digit in "12"]

handler = serve(fail, plan, note)
''',
    "logs": '''
import os
import time
import boto3
from aws_lambda_powertools import Logger
from mcp_functions import serve, tool

logger = Logger(service=f"logs-{time.time_ns()}")  # a Logger of an earlier call keeps the stdout of that call

def read_secret():
    try:
        boto3.client("secretsmanager").get_secret_value(SecretId="a")
    except Exception as error:
        raise RuntimeError("no secret") from error

@tool
def logs(how: str) -> str:
    """Log."""
    logger.info("reading", extra={"order": 7})
    if how == "variable":
        return os.environ["NOT_SET_HERE"]
    return read_secret() if how == "secret" else "read"

handler = serve(logs, logger=logger)
''',
}
FILES = {f"{name}/app.py": text for name, text in MODULES.items()}
HELP = "  (/decline or /cancel instead of an answer)\n"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_functions(tmp_path_factory.mktemp("call") / "functions", FILES)


@pytest.fixture
def call(functions: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Call, with lines of a user on stdin."""

    def called(*words: str, typed: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = run(["call", *words] if "--url" in words else ["call", "--functions", str(functions), *words])
        return Ran(code, *capsys.readouterr())

    return called


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Harness]:
    front = "from pathlib import Path\nfrom mcp_functions import serve_catalog\n"
    front += "handler = serve_catalog(Path(__file__).with_name('catalog.json'))\n"
    directory = write_functions(tmp_path / "functions", {**FILES, "mcp/app.py": front})
    assert run(["catalog", "--functions", str(directory)]) == 0
    with Harness(directory, state_dir=tmp_path) as harness:
        yield harness


def one_line(ran: Ran) -> str:
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran
    return ran.err.removeprefix("mcp-functions: ").rstrip("\n")


# ---- A conversation at the terminal


def test_call_asks_questions_at_the_terminal_and_repeats_one_after_an_invalid_answer(call: Callable[..., Ran]) -> None:
    ran = call("book", "city=Lisbon", "nights=2", typed="river\nSEA\nyes\n")
    assert (ran.code, ran.err) == (0, "a line of the function\n" * 3)
    assert ran.out == (
        f"\nWhich view in Lisbon?\n{HELP}"
        "  view (sea | city): \n  'river' is none of: sea, city\n  view (sea | city): \n"
        f"\n2 nights with a sea view?\n{HELP}  sure (yes | no): \nBooked Lisbon, sea, 2.\n"
    )


def test_call_asks_for_a_missing_required_argument_but_not_for_one_with_a_default(call: Callable[..., Ran]) -> None:
    ran = call("book", "--answer", "view=city", "--answer", "sure=y", typed="Porto\n")
    assert (ran.code, ran.out) == (0, "  city: \nBooked Porto, city, 1.\n")


@pytest.mark.parametrize("word", ["/decline", "/cancel"])
def test_a_user_declines_or_cancels_at_the_terminal(word: str, call: Callable[..., Ran]) -> None:
    ran = call("book", "city=Lisbon", typed=f"{word}\n")
    assert ran.code == 1
    assert {"/decline": "declined", "/cancel": "dismissed"}[word] in ran.out


def test_a_form_at_the_terminal_has_all_types_defaults_and_optional_fields(call: Callable[..., Ran]) -> None:
    typed = "nobody\nann@example.org\n7\n30\nred, blue\n\n\n"
    ran = call("profile", typed=typed)
    assert ran.code == 0, ran.err
    assert "  'nobody' is not a 'email'\n" in ran.out
    assert "  7 is less than the minimum of 18\n" in ran.out
    assert "colours (red | blue): " in ran.out
    assert "(yes | no; Enter: True): " in ran.out
    assert "nickname (Enter: none): " in ran.out
    assert ran.out.endswith("ann@example.org 30 ['red', 'blue'] True None\n")


def test_a_url_question_shows_the_url_and_waits(call: Callable[..., Ran]) -> None:
    ran = call("sign", typed="\n")
    assert "\nPlease sign.\n  https://sign.example/7\n  open it in a browser, then press Enter " in ran.out
    assert ran.out.endswith("signed\n")
    assert call("sign", "--answer", "contract=done").out == "signed\n"
    assert call("sign", "--decline", "contract").code == 1


def test_the_user_at_the_terminal_answers_sampling_and_roots_requests(
    call: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = call("sum_up", typed="one, two\nTwo folders.\n")
    assert "The server asks which folders it may know." in ran.out
    assert "  user: Sum up one, two\n" in ran.out
    assert ran.out.endswith("Two folders.\n")
    assert call("sum_up", typed="\n/decline\n").code in {1, 2}


def test_an_empty_answer_option_for_sampling_is_an_empty_message(call: Callable[..., Ran]) -> None:
    ran = call("sum_up", "--answer", "words=", typed="one\nOne folder.\n")
    assert ran.out.endswith("  what the model says: \nOne folder.\n")


def test_call_follows_a_task_and_answers_its_question(call: Callable[..., Ran]) -> None:
    ran = call("count", "most=3", typed="yes\n")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("  task count.")
    assert "Are you sure?" in ran.out
    assert ran.out.endswith("counted 3\n")


def test_progress_and_log_are_shown_and_an_error_of_the_tool_is_exit_code_1(call: Callable[..., Ran]) -> None:
    assert call("fail") == (1, "  25 %  began\n  warning: about to fail\nThere is no room.\n", "")


def test_prompts_and_resources_are_called_too(call: Callable[..., Ran]) -> None:
    assert call("plan", "day=Monday").out == "user: Plan Monday.\n"
    assert call("note://7").out == "note 7\n"


def test_call_shows_what_a_function_logs_as_text_and_a_crash_once(call: Callable[..., Ran], functions: Path) -> None:
    assert call("logs", "how=well") == (0, "read\n", "reading order=7\n")
    ran = call("logs", "how=secret")
    path = functions / "logs/app.py"
    assert ran.err.startswith(
        f'reading order=7\nlogs raised\nTraceback (most recent call last):\n  File "{path}", line'
    )
    assert ran.err.count("RuntimeError: no secret") == 1
    assert "ResourceNotFoundException" in ran.err
    assert len(ran.err.splitlines()) < 40
    missing = call("logs", "how=variable").err
    assert missing.count("NOT_SET_HERE") == 3  # the line, the exception, and the remedy
    assert "set it in your shell" in missing


def test_call_is_silent_about_variables_that_only_a_deployment_knows(functions: Path, call: Callable[..., Ran]) -> None:
    block = "Type: AWS::Serverless::Function, Properties: {CodeUri: functions/fail/, Environment: {Variables: {A: "
    text = f"Resources: {{Fail: {{{block}!ImportValue a}}}}}}}}}}\n"
    (functions.parent / "template.yaml").write_text(text, encoding="utf-8")
    try:
        assert call("logs", "how=well").err == "reading order=7\n"
    finally:
        (functions.parent / "template.yaml").unlink()


@pytest.mark.parametrize("how", ["folder", "url"])
def test_completions_of_prompts_and_templates_are_listed(
    how: str, call: Callable[..., Ran], request: pytest.FixtureRequest
) -> None:
    url = ["--url", request.getfixturevalue("served").url] if how == "url" else []
    request.getfixturevalue("capsys").readouterr()
    assert call("plan", "day=T", "--complete", "day", *url) == (0, "Tuesday\nThursday\n", "")
    assert call("plan", "day=M", "hour=7", "--complete", "day", *url) == (0, "Monday at 7\n", "")
    assert call("note://{number}", "number=4", "--complete", "number", *url) == (0, "41\n42\n", "")
    assert json.loads(call("plan", "day=T", "--complete", "day", "--json", *url).out) == ["Tuesday", "Thursday"]
    assert one_line(call("book", "--complete", "city", *url)).startswith("book is a tool: MCP completes arguments of")
    assert one_line(call("plan", "--complete", "dya", *url)) == "plan has no argument dya; did you mean day?"
    assert one_line(call("plan", "dya=1", "--complete", "day", *url)) == "plan has no argument dya; did you mean day?"
    assert "other://{a}" in one_line(call("other://{a}", "--complete", "a", *url)) or url


def test_json_is_the_result_alone_on_stdout(call: Callable[..., Ran]) -> None:
    ran = call("book", '{"city": "Lisbon"}', "--json", "--answer", "view=sea", typed="no\n")
    assert json.loads(ran.out)["content"][0]["text"] == "Nothing was booked."
    assert "1 nights with a sea view?" in ran.err


# ---- Without a user


@pytest.mark.parametrize(
    "given",
    [
        ["who.mail=ann@example.org", "who.age=30", "who.colours=red"],
        ['who={"mail": "ann@example.org", "age": 30, "colours": ["red"]}'],
    ],
)
def test_a_form_with_several_fields_is_answered_by_options(given: list[str], call: Callable[..., Ran]) -> None:
    ran = call("profile", *(word for text in given for word in ("--answer", text)))
    assert (ran.code, ran.out) == (0, "ann@example.org 30 ['red'] True None\n")


def test_call_reports_an_answer_option_without_a_question(call: Callable[..., Ran]) -> None:
    ran = call("plan", "day=Monday", "--answer", "colour=red")
    assert ran.out == "  not asked: colour\nuser: Plan Monday.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bok"], "there is no tool or prompt bok; did you mean book?"),
        (["xyz"], "there is no tool or prompt xyz; there are: book, count, fail, logs, profile, sign, sum_up, plan"),
        (["other://7"], "Resource not found: other://7"),
        (["book", "citty=Lisbon"], "book has no argument citty; did you mean city?"),
        (["book", "city=x", "nights=two"], "nights of book: 'two' is no integer"),
        (["book", "city=x", "nights=2.5"], "the arguments of book do not fit: nights: 2.5 is not of type 'integer'"),
        (["book", "Lisbon"], "'Lisbon' is no argument of book: write arguments as key=value or as a JSON object"),
        (["book"], "book needs city: add city=..."),
        (["book", "city=x"], "view has no answer: --answer view=..., --decline view, or type it at a terminal"),
        (["book", "city=x", "--answer", "view=lake"], "the answer to view does not fit: 'lake' is none of: sea, city"),
        (["profile", "--answer", "who=Ann"], "the answer to who does not fit: give who.FIELD=VALUE for: mail, age"),
        (["profile", "--answer", "who.size=3"], "the form has no size; it has: mail, age, colours, news, nickname"),
        (["profile", "--answer", "who.age=30"], "the answer to who does not fit: 'mail' is a required property"),
        (["book", "--answer", "view"], "write KEY=VALUE, not 'view'. See mcp-functions call --help"),
        (["book", "--url", "http://127.0.0.1:9/mcp"], "http://127.0.0.1:9/mcp is no MCP endpoint of 2026-07-28"),
    ],
)
def test_an_invalid_command_line_is_reported_in_one_line(
    words: list[str], message: str, call: Callable[..., Ran]
) -> None:
    ran = call(*words)
    assert message in one_line(Ran(ran.code, ran.out, ran.err.replace("a line of the function\n", "")))


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """Write a function whose question says something else in every round, as one with a clock does."""
    app = """
from mcp_functions import Elicit, serve, tool

ROUNDS = iter(range(100))

@tool
def pay(*, elicit: Elicit) -> str:
    \"\"\"Pay.\"\"\"
    return str(elicit("sure", f"It is second {next(ROUNDS)}. Pay?", bool))

handler = serve(pay)
"""
    return write_functions(tmp_path / "functions", {"pay/app.py": app})


def test_a_question_with_a_clock_is_named_with_both_texts_and_the_remedy(
    clock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["call", "--functions", str(clock), "pay", "--answer", "sure=yes"]) == 2
    told = capsys.readouterr().err
    assert "the question sure changed between two rounds, so its answer does not count: 'It is second 0. Pay?'" in told
    assert "then 'It is second 1. Pay?'; make its words from the arguments and from recorded values (step" in told


def test_a_call_that_takes_too_long_for_lambda_names_the_limit_and_the_remedies(
    call: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_rounds, "LONGEST_ROUND", -1.0)
    told = call("book", "city=Lisbon", "--answer", "view=sea", "--answer", "sure=no").err
    assert "a round of book took 0 s: Lambda ends it after the Timeout of template.yaml, 28 s; divide" in told


# ---- Over HTTP


def test_a_running_server_is_called_by_its_url(served: Harness, call: Callable[..., Ran]) -> None:
    given = ["--answer", "view=sea", "--answer", "sure=yes"]
    ran = call("--url", served.url, "book", "city=Lisbon", *given)
    assert (ran.code, ran.out.endswith("\nBooked Lisbon, sea, 1.\n")) == (0, True)  # after what the function prints
    assert call("--url", served.url, "count", "most=2", "--answer", "sure=yes").out.endswith("counted 2\n")
    assert call("--url", served.url, "note://7").out == "note 7\n"
    unknown = one_line(call("--url", served.url, "boook"))
    assert unknown == "there is no tool or prompt boook; did you mean book?"


def test_call_reports_that_a_server_requires_a_token(
    functions: Path, tmp_path: Path, call: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCP_FUNCTIONS_TOKEN", raising=False)
    with Harness(functions, state_dir=tmp_path, auth="jwt") as harness:
        assert harness.issuer
        url = f"{harness.url}/fail"
        assert "set MCP_FUNCTIONS_TOKEN, or pass --token" in one_line(call("--url", url, "plan", "day=Monday"))
        token = harness.issuer.token()
        assert call("--url", url, "plan", "day=Monday", "--token", token).out == "user: Plan Monday.\n"


@contextlib.contextmanager
def hostile(*results: dict[str, Any] | None) -> Iterator[str]:
    """Serve results that a server of the toolkit would not send, after a list with two tools of one name.

    For None, the server closes the connection without a response.
    """
    first = {"name": "t", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    second = {"name": "t", "inputSchema": {"type": "object"}}
    left = iter([{"resultType": "complete"}, {"tools": [first, second]}, *results])

    def answer(_request: HttpRequest) -> HttpResponse:
        result = next(left)
        if result is None:
            raise ConnectionResetError
        return json_response(200, {"jsonrpc": "2.0", "id": 1, "result": result})

    with Loopback(max_body=10_000) as server:
        server.start(answer)
        yield f"{server.url}/mcp"


def test_call_reports_a_dropped_connection_in_one_line(call: Callable[..., Ran]) -> None:
    with hostile(None) as url:
        assert one_line(call("--url", url, "t")) == "no answer (RemoteDisconnected)"


def test_the_first_of_two_tools_with_one_name_is_called(call: Callable[..., Ran]) -> None:
    with hostile({"content": []}) as url:
        assert call("--url", url, "t", "n=1").code == 0


def test_a_content_block_without_a_type_is_printed_as_data(call: Callable[..., Ran]) -> None:
    with hostile({"content": [{"type": None}, {"type": "", "mimeType": "a/b"}]}) as url:
        assert call("--url", url, "t").out == "[data]\n[data a/b]\n"


def test_call_shows_the_valid_parts_of_malformed_sampling_messages(call: Callable[..., Ran]) -> None:
    messages = [{"role": "user", "content": "text"}, {"content": ["text", {"text": "shown"}]}, {}]
    question = {"method": "sampling/createMessage", "params": {"messages": messages}}
    asks = {"resultType": "input_required", "inputRequests": {"words": question}}
    with hostile(asks, {"content": []}) as url:
        ran = call("--url", url, "t", typed="said\n")
    assert ran.code == 0
    assert "  user: \n  None: shown\n  None: \n" in ran.out


def test_call_reports_an_answer_to_a_malformed_form_in_one_line(call: Callable[..., Ran]) -> None:
    form = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    question = {"method": "elicitation/create", "params": {"requestedSchema": form}}
    with hostile({"resultType": "input_required", "inputRequests": {"who": question}}) as url:
        assert "the answer to who does not fit: " in one_line(call("--url", url, "t", "--answer", "who=Ann"))


def test_ctrl_c_at_a_question_ends_call_without_a_traceback(functions: Path) -> None:
    command = [sys.executable, "-m", "mcp_functions_harness", "call", "--functions", str(functions), "sign"]
    process = subprocess.Popen(  # noqa: S603 - our own words
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    while "sign.example" not in process.stdout.readline():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=60)
    assert (process.returncode, err.strip()) == (130, "")
