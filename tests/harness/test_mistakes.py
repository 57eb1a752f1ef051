"""Mistakes of new users: the harness reports the file, the line and the fix of each in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import checks, template
from mcp_functions_harness.command import run as main
from mcp_functions_harness.lambdas import failures
from mcp_functions_harness.lambdas.functions import Functions
from mcp_functions_harness.problems import Problem

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
    "a_capability_among_the_arguments": (
        APP.format(imports="", parameters="elicit: Elicit", value="1"),
        "functions/f/app.py:5: f(): elicit: a capability is a parameter after *, as in",
    ),
}


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
    assert said.startswith(
        f"template.yaml:{line}: the block BookFlight lacks Tags, Policies, Events: replace it by what"
    )


def test_a_partly_copied_block_does_not_hide_the_complete_one(new_project: Path) -> None:
    project = checks.read(new_project)
    copy = {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "functions/book_flight/"}}
    project.template["Resources"]["Copy"] = copy
    assert project.functions["book_flight"].logical_id == "BookFlight"
    assert [block.logical_id for block in project.partial] == ["Copy"]


def test_invalid_yaml_is_reported_with_its_line(new_project: Path) -> None:
    path = new_project / template.FILE
    path.write_text(f"A: b\nC: d: e\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    with pytest.raises(Problem, match=r"template\.yaml is no template: line 2: mapping values are not allowed"):
        template.read(path)
