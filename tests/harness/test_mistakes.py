"""Mistakes of new users: the harness reports the file, the line and the fix of each in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import checks, template
from mcp_functions_harness.command import run as main
from mcp_functions_harness.lambdas import failures, habits
from mcp_functions_harness.lambdas.functions import Functions
from mcp_functions_harness.problems import Problem
from tests.harness.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

APP = '''from __future__ import annotations
from mcp_functions import Elicit, serve, tool
{imports}

@tool
def f({parameters}) -> str:
    """Do it."""
    return str({value})

handler = serve(f)
'''
NESTED = "from pydantic import BaseModel\nclass In(BaseModel): a: int\nclass Form(BaseModel): inner: In"
MISTAKES = {
    "an_unknown_type": (
        APP.format(imports="import socket", parameters="x: socket.socket", value="x"),
        "functions/f/app.py:5: f(): parameter 'x': <class 'socket.socket'> cannot be written as JSON; use text",
    ),
    "an_undefined_type": (
        APP.format(imports="", parameters="x: Undefined", value="x"),
        "functions/f/app.py:5: f(): an annotation cannot be read: name 'Undefined' is not defined; import it in app.py",
    ),
    "a_nested_form": (
        APP.format(imports=NESTED, parameters="*, elicit: Elicit", value='elicit("q", "Which?", Form)'),
        "functions/f/app.py:10: the form Form cannot be sent: Form.inner: a form holds strings, numbers, booleans and",
    ),
    "a_syntax_error": ("import os\ndef f(:\n", "does not load: SyntaxError: invalid syntax (functions/f/app.py:2)"),
    "a_missing_variable": (
        APP.format(imports="import os\nKEY = os.environ['API_KEY']", parameters="x: int", value="x"),
        "KeyError: 'API_KEY' (functions/f/app.py:4); add API_KEY to Environment: Variables of the function in template",
    ),
    "a_missing_package": (
        APP.format(imports="import nothing_of_this_name", parameters="x: int", value="x"),
        "(functions/f/app.py:3); a package belongs in functions/f/requirements.txt, shared code in layers/common",
    ),
    "a_relative_import": (
        APP.format(imports="from . import helpers", parameters="x: int", value="x"),
        "no known parent package: Lambda loads app.py without a package (functions/f/app.py:3)",
    ),
    "an_import_of_another_functions_folder": (
        APP.format(imports="from functions.g import helpers", parameters="x: int", value="x"),
        "No module named 'functions' on Lambda: move functions to layers/common/python/ (functions/f/app.py:3)",
    ),
    "a_context_among_the_arguments": (
        APP.format(imports="from fastmcp import Context", parameters="x: str, ctx: Context | None = None", value="x"),
        "functions/f/app.py:6: ctx: there is no Context here; write what it may do after *: *, elicit: Elicit, step:",
    ),
    "a_context_of_the_sdk_under_another_name": (
        APP.format(
            imports="from mcp.server.mcpserver import Context as C", parameters="x: str, *, c: C[int]", value="x"
        ),
        "functions/f/app.py:6: c: there is no Context here; write what it may do after *: *, elicit: Elicit, step: S",
    ),
    "a_question_of_a_context": (
        APP.format(imports="", parameters="x: str", value='ctx.elicit("Which?", str)'),
        "functions/f/app.py:8: there is no Context here: add `*, elicit: Elicit` to the parameters, and write elicit",
    ),
    "progress_of_a_context_that_is_looked_up": (
        APP.format(
            imports="from fastmcp.server.dependencies import get_context", parameters="x: int", value="x"
        ).replace("return", "get_context().report_progress(1)\n    return"),
        "functions/f/app.py:8: there is no Context here: add `*, progress: Progress` to the parameters, and write pr",
    ),
    "an_awaited_question": (
        APP.format(
            imports="", parameters="x: str, *, elicit: Elicit", value='await elicit("a", "Which?", str)'
        ).replace("def f", "async def f"),
        "functions/f/app.py:8: without await: elicit('a', 'Which?', str) returns the value itself, in this round or a",
    ),
    "an_awaited_step_in_a_helper": (
        APP.format(
            imports="async def g(step: 'Step'):\n    await step.keyed('pay', str)", parameters="x: int", value="x"
        ),
        "functions/f/app.py:4: without await: step.keyed('pay', str) returns the value itself, in this round or a la",
    ),
    "a_question_without_a_key": (
        APP.format(imports="", parameters="*, elicit: Elicit", value='elicit("Which?", str)'),
        'functions/f/app.py:8: a question needs a key, a message and a form: elicit("seat", "Which seat?", Form)',
    ),
    "a_question_with_a_response_type": (
        APP.format(imports="", parameters="*, elicit: Elicit", value='elicit("Which?", "?", response_type=str)'),
        'functions/f/app.py:8: a question needs a key, a message and a form: elicit("seat", "Which seat?", Form)',
    ),
    "a_decorator_of_a_server": (
        APP.format(imports="from fastmcp import FastMCP\nmcp = FastMCP('x')", parameters="x: int", value="x").replace(
            "@tool", "@mcp.tool()"
        ),
        "functions/f/app.py:6: write @tool of mcp_functions, and handler = serve(f); a whole server runs unchanged w",
    ),
    "a_decorator_of_nothing": (
        APP.format(imports="", parameters="x: int", value="x").replace("@tool", "@mcp.resource('a://b')"),
        'functions/f/app.py:5: write @resource("uri") of mcp_functions, and handler = serve(f); a whole server runs ',
    ),
    "a_dependency": (
        APP.format(imports="from fastapi import Depends", parameters="x: int, db: Db = Depends(open_db)", value="x"),
        "functions/f/app.py:6: db: Depends injects nothing here; after * write db: Annotated[Db, Shared(open_db)]",
    ),
    "a_dependency_in_the_annotation": (
        APP.format(imports="", parameters="db: Annotated[Db, fastmcp.Depends(open_db)]", value="x"),
        "functions/f/app.py:6: db: Depends injects nothing here; after * write db: Annotated[Db, Shared(open_db)]",
    ),
    "a_token_of_a_dependency": (
        APP.format(imports="", parameters="token: str = CurrentAccessToken()", value="token"),
        "functions/f/app.py:6: token: CurrentAccessToken injects nothing here; after * write caller: Caller",
    ),
    "a_tool_that_is_not_served": (
        APP.format(imports="", parameters="x: int", value="x").replace(
            "handler", '@tool(name="other")\ndef g() -> None:\n    """Do it."""\n\nhandler'
        ),
        "functions/f/app.py: no client sees the tool g: handler = serve(…, g)",
    ),
    "a_capability_among_the_arguments": (
        APP.format(imports="", parameters="elicit: Elicit", value="1"),
        "functions/f/app.py:5: f(): elicit: a capability is a parameter after *, as in",
    ),
}


NO_MISTAKES = {
    "a_step_that_is_waited_for": "await step.wait('a', g); await step.keyed.wait('b', g)",
    "awaited_work_beside_a_question": "await g(elicit('a', 'Which?', str)); await client.elicit(1)",
    "a_question_with_keywords": "elicit(key='a', message='Which?', form=str); elicit(*question); elicit('a', **rest)",
    "a_method_of_another_object": "logger.info('a'); session.report_progress(1); self.context.log(1)",
}


@pytest.mark.parametrize("lines", NO_MISTAKES.values(), ids=NO_MISTAKES)
def test_a_line_that_works_is_not_taken_for_a_habit(lines: str) -> None:
    text = APP.format(imports="", parameters="x: int, *, elicit: Elicit, step: Step", value="x").replace(
        "    return", f"    {lines}\n    return"
    )
    habits.check(text.replace("def f", "async def f").encode(), "app.py")


def test_a_server_that_is_adopted_is_written_as_its_library_wants() -> None:
    server = "from mcp_functions.adopt import adopt\nfrom fastmcp import Context, FastMCP\nmcp = FastMCP('x')\n"
    habits.check(f"{server}@mcp.tool\nasync def f(ctx: Context): await ctx.elicit('a', str)\n".encode(), "app.py")
    habits.check(b"async def f(ctx): await ctx.elicit('mcp_functions', str)\n", "helper.py")


def test_no_sample_has_a_habit_of_another_library() -> None:
    samples = [*ROOT.glob("functions/*/*.py"), *ROOT.glob("harness/mcp_functions_harness/scaffold/samples/*/app.py.in")]
    for path in samples:
        habits.check(path.read_bytes().replace(b"@name@", b"name"), str(path))
    assert len(samples) > 15


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_function_is_reported_in_one_line_with_its_place_and_fix(
    mistake: str, project: Callable[[dict[str, str]], Path]
) -> None:
    app, said = MISTAKES[mistake]
    directory = project({"f/app.py": app, "f/helpers.py": "", "g/app.py": "handler = print\n", "g/helpers.py": ""})
    with pytest.raises(Problem) as error:
        Functions(directory)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "message",
    ['Could not connect to the endpoint URL: "https://x"', "The security token included in the request is invalid."],
)
def test_a_call_of_an_aws_service_without_a_local_one_is_reported_with_a_fix(message: str) -> None:
    told = failures.whole_traceback(RuntimeError(message)).splitlines()[-1]
    assert told.startswith("To mend it: no AWS answers here: a test replaces this call")


def test_a_package_that_is_in_a_folder_may_import_relatively(project: Callable[[dict[str, str]], Path]) -> None:
    files = {"deep/__init__.py": "from .down import X\n", "deep/down.py": "from . import other\nX = other.Y\n"}
    app = "from deep import X\nhandler = lambda event, context: X\n"
    files = {f"a/{name}": text for name, text in files.items()}
    directory = project({"a/app.py": app, "a/deep/other.py": "Y = 1\n", **files})
    with Functions(directory) as functions:
        assert functions.by_folder["a"].handler({}, None) == 1


@pytest.fixture
def new_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Make a project with `init`."""
    monkeypatch.chdir(tmp_path)
    assert main(["init", "."]) == 0
    capsys.readouterr()
    return tmp_path


def test_a_partly_copied_block_is_reported_once_with_its_line(new_project: Path) -> None:
    path = new_project / template.FILE
    text = path.read_text(encoding="utf-8")
    block = text[
        text.index("      Tags:\n        mcp-function: book_flight") : text.index("  # ---- What a function that asks")
    ]
    path.write_text(text.replace(block, "\n"), encoding="utf-8")
    line = text[: text.index("  BookFlight:")].count("\n") + 1
    [said] = checks.complaints(checks.read(new_project))
    lacks = f"template.yaml:{line}: the block BookFlight lacks Tags, Policies, Events"
    assert said == f"{lacks}: mcp-functions block --write book_flight"
    mine = "      CodeUri: functions/book_flight/\n      MemorySize: 2048 # mine\n"
    path.write_text(path.read_text("utf-8").replace("      CodeUri: functions/book_flight/\n", mine), encoding="utf-8")
    assert main(["block", "--write", "book_flight"]) == 0
    assert path.read_text("utf-8") == text.replace("      CodeUri: functions/book_flight/\n", mine)
    assert checks.complaints(checks.read(new_project)) == []


def test_a_partly_copied_block_does_not_hide_the_complete_one(new_project: Path) -> None:
    project = checks.read(new_project)
    copied = {"CodeUri": "functions/book_flight/"}
    project.template["Resources"]["Copy"] = {"Type": "AWS::Serverless::Function", "Properties": copied}
    assert project.functions["book_flight"].logical_id == "BookFlight"
    assert [block.logical_id for block in project.partial] == ["Copy"]


def run_tests(project: Path) -> str:
    """Run the project's tests as `make test` does."""
    ours = ("MCP_", "AWS_", "PYTEST_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "--color=no"]
    done = subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, check=False)  # noqa: S603 - the command above
    assert done.returncode
    return done.stdout.partition("= short test summary")[0]


def test_a_broken_line_of_the_template_is_one_message_of_make_test(new_project: Path) -> None:
    path = new_project / template.FILE
    path.write_text(path.read_text("utf-8").replace("\n  Mcp:\n", "\n   Mcp:\n"), encoding="utf-8")
    output = run_tests(new_project)
    assert output.count("template.yaml is no template: line ") == 1
    assert "Traceback" not in output
    assert len(output.splitlines()) < 20


def test_a_broken_line_of_shared_code_is_one_message_however_many_tests_import_it(new_project: Path) -> None:
    assert main(["new", "tool", "other"]) == main(["new", "tool", "third"]) == 0
    shared = new_project / "layers/common/python/money.py"
    shared.parent.mkdir(parents=True)
    shared.write_text("def euros(amount)\n    return amount\n", encoding="utf-8")
    for name in ("book_flight", "other", "third"):
        app = new_project / f"functions/{name}/app.py"
        app.write_text(f"import money\n{app.read_text('utf-8')}", encoding="utf-8")
    output = run_tests(new_project)
    place = "SyntaxError: expected ':' (layers/common/python/money.py:1)"
    assert output.count(f"functions/book_flight/app.py does not load: {place}") == 1
    assert output.count("SyntaxError") == 1
    assert output.count("does not load, as said above (layers/common/python/money.py:1)") == 2
    assert len(output.splitlines()) < 25


def test_a_typo_in_a_test_shows_the_conversation(new_project: Path) -> None:
    tests = new_project / "tests/functions/test_book_flight.py"
    tests.write_text(
        """
import pytest
from mcp_functions_harness.testing import Conversation
from mcp_functions import Elicit, serve, tool
from functions.book_flight.app import handler

def test_a_key():
    Conversation(handler).call(city="Lisbon").accept(saet="window")

def test_a_value():
    talk = Conversation(handler).call(city="Lisbon").accept(seat="roof")
    assert talk.text == "Booked: Lisbon, roof seat."

def test_an_argument():
    assert Conversation(handler).call(town="Lisbon").text == "Booked: Lisbon, aisle seat."

def test_an_answer():
    talk = Conversation(handler).call(city="Lisbon").answer(saet={"action": "decline"})
    assert talk.tamper().text == "Booked: Lisbon, aisle seat."

def test_a_decline():
    assert "Booked" in Conversation(handler).call(city="Lisbon").decline().text

ROUNDS = iter("abc")

@tool
def pay(*, elicit: Elicit) -> str:
    return str(elicit("sure", f"It is {next(ROUNDS)}. Pay?", bool))

def test_a_clock():
    talk = Conversation(serve(pay)).call().accept(sure=True)
    assert talk.text == "True"
""",
        encoding="utf-8",
    )
    output = run_tests(new_project)
    assert "AssertionError: nobody asked saet, but seat; did you mean seat?" in output
    asks = "     asks seat: Where would you like to sit on the way to Lisbon? (seat: window | aisle)\n"
    call = f'1  tools/call book_flight {{"city": "Lisbon"}}\n{asks}'
    assert output.count(call) == 4
    again = '(Please answer again: seat must be one of "window", "aisle".)\n'
    assert f'{call}2  answers seat: {{"seat": "roof"}}\n     refuses seat: Where would you like' in output
    assert again in output
    unknown = "     ends with a tool error: Unknown argument 'town'; known are: city\n"
    assert f'1  tools/call book_flight {{"town": "Lisbon"}}\n{unknown}' in output
    assert f"{call}2  declines saet, which nobody asked\n{asks}3  goes on without an answer\n" in output
    assert "     refuses the request: -32602 Invalid or expired requestState\n" in output
    assert "2  declines seat\n     ends with a tool error: The user declined to answer: Where would" in output
    changed = "     asks sure in other words, so the answer does not count; make its words from the arguments and from"
    assert f'2  answers sure: {{"sure": true}}\n{changed}' in output
    assert "def check_asked" not in output
    assert "__tracebackhide__" not in output


def test_invalid_yaml_is_reported_with_its_line(new_project: Path) -> None:
    path = new_project / template.FILE
    path.write_text(f"A: b\nC: d: e\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    with pytest.raises(Problem, match=r"template\.yaml is no template: line 2: mapping values are not allowed"):
        template.read(path)
