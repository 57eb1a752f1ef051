"""The pytest plugin in a project of an author: imports as on Lambda, and the traceback of what a function raised."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

APP = '''
import helpers
from mcp_functions import serve, tool

@tool
def {name}(x: int) -> str:
    """Say whose module this is."""
    if x:
        raise ValueError("boom happened")
    return helpers.WHOSE

handler = serve({name})
'''
TESTS = """
from functions.a.app import handler as a
from functions.b.app import handler as b

def test_each_function_has_its_own_module(converse):
    assert converse(a).call(x=0).text + converse(b).call(x=0).text == "ab"

def test_it_fails(converse):
    assert converse(a).call(x=1).text == "a"

def test_it_fails_in_a_fresh_process(converse):
    assert converse(b, fresh=True).call(x=1).text == "b"

def test_a_failure_that_is_meant_shows_nothing(converse):
    assert converse(a).call(x=1).result["isError"]

def test_another_folder_cannot_be_imported():
    import functions.c.app
"""
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = ["--import-mode=importlib"]\n',
    "functions/a/app.py": APP.format(name="a"),
    "functions/a/helpers.py": "WHOSE = 'a'\n",
    "functions/b/app.py": APP.format(name="b"),
    "functions/b/helpers.py": "WHOSE = 'b'\n",
    "functions/c/app.py": "from functions.a import helpers\n",
    "test_both.py": TESTS,
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run pytest in a project, and return its output."""
    root: Path = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly"]
    return subprocess.run(command, cwd=root, text=True, capture_output=True, check=False, timeout=120).stdout  # noqa: S603


def test_two_functions_have_modules_of_the_same_name(report: str) -> None:
    assert "3 failed, 2 passed" in report


def test_a_test_that_failed_shows_the_whole_traceback_of_its_function(report: str) -> None:
    shown = report.partition(" a raised ")[2].partition("____")[0]
    assert (
        'functions/a/app.py", line 9, in a\n    raise ValueError("boom happened")\nValueError: boom happened' in shown
    )
    assert "/mcp_functions/" not in shown
    assert report.count(" a raised ") == 1


def test_a_fresh_process_shows_it_too(report: str) -> None:
    shown = report.partition("_ test_it_fails_in_a_fresh_process _")[2].partition("____ test")[0]
    assert 'functions/b/app.py", line 9, in b\n    raise ValueError("boom happened")\nValueError: boom' in shown


def test_an_import_that_fails_on_lambda_fails_in_tests(report: str) -> None:
    assert "No module named 'functions' on Lambda: move functions to layers/common/python/" in report
