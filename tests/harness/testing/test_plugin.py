"""The pytest plugin, in a project of an author: its fixture, imports as on Lambda, and tracebacks of functions.

The fixture `report` runs pytest once in the project of PROJECT, whose tests are TESTS; three of them must fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mcp_functions_harness.testing import plugin

FUNCTION = '''
import helpers
from mcp_functions import serve, tool

@tool
def {name}(x: int) -> str:
    """Return the name of this function's module."""
    if x:
        raise ValueError("boom happened")
    return helpers.NAME

handler = serve({name})
'''
TESTS = """
from functions.a.app import handler as a
from functions.b.app import handler as b

def test_each_function_has_its_own_module(converse):
    assert converse(a).call(x=0).text + converse(b).call(x=0).text == "ab"

def test_a_caller_may_have_a_name(converse):
    assert converse(a, principal="alice").call(x=0).text == "a"

def test_it_fails(converse):
    assert converse(a).call(x=1).text == "a"

def test_it_fails_in_a_fresh_process(converse):
    assert converse(b, fresh=True).call(x=1).text == "b"

def test_an_expected_failure_shows_nothing(converse):
    assert converse(a).call(x=1).result["isError"]

def test_it_fails_on_lambda():
    import functions.c.app
"""
PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = ["--import-mode=importlib"]\n',
    "functions/a/app.py": FUNCTION.format(name="a"),
    "functions/a/helpers.py": "NAME = 'a'\n",
    "functions/b/app.py": FUNCTION.format(name="b"),
    "functions/b/helpers.py": "NAME = 'b'\n",
    "functions/c/app.py": "from functions.a import helpers\n",
    "test_both.py": TESTS,
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run pytest in the project, without the settings of a deployment, and return its output."""
    root = tmp_path_factory.mktemp("project")
    for name, text in PROJECT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_", "AWS_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly"]
    process = subprocess.run(  # noqa: S603 - the command above
        command, cwd=root, env=environment, text=True, capture_output=True, check=False, timeout=120
    )
    return process.stdout


def test_each_function_of_a_project_has_its_own_modules(report: str) -> None:
    assert "3 failed, 3 passed" in report


def test_a_test_that_fails_shows_the_traceback_of_its_function_once(report: str) -> None:
    traceback = report.partition(" a raised ")[2].partition("____")[0]
    line = 'functions/a/app.py", line 9, in a\n    raise ValueError("boom happened")\nValueError: boom happened'
    assert line in traceback
    assert "/mcp_functions/" not in traceback
    assert report.count(" a raised ") == 1


def test_a_test_with_a_fresh_process_shows_the_traceback_too(report: str) -> None:
    traceback = report.partition("_ test_it_fails_in_a_fresh_process _")[2].partition("____ test")[0]
    assert 'functions/b/app.py", line 9, in b\n    raise ValueError("boom happened")\n' in traceback


def test_an_import_that_fails_on_lambda_fails_in_tests(report: str) -> None:
    assert "No module named 'functions' on Lambda: move functions to layers/common/python/" in report


def test_pytest_finds_the_plugin() -> None:
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"mcp_functions": plugin.__name__}


def test_the_plugin_imports_nothing_heavy_until_it_is_used() -> None:
    code = (
        "import sys, mcp_functions_harness.testing.plugin; print(*(sys.modules.keys() & {'boto3', 'moto', 'pydantic'}))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert process.stdout.strip() == ""


def test_a_misspelled_name_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Convresation'"):
        from mcp_functions_harness.testing import Convresation  # type: ignore[attr-defined]  # noqa: F401
