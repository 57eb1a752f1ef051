"""A failing test shows why a result is missing, the exception of the function, and its log line.

A client does not get the exception of a function, and the log has no message of it; only a `Conversation` shows both.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, prompt, serve, tool
from mcp_functions_harness.testing import Conversation


@tool
def divide(number: int) -> str:
    """Divide one by a number."""
    return str(1 // number)


def test_a_missing_result_is_an_assertion_error_with_the_exception() -> None:
    @prompt
    def brief(number: str) -> str:
        return str(1 // int(number))

    talk = Conversation(serve(brief)).get(number="0")
    message = (
        r"no result, but HTTP 200 .*-32603.*; failed: ZeroDivisionError at .*in.*it raised ZeroDivisionError\('integer "
    )
    with pytest.raises(AssertionError, match=message):
        _ = talk.text


def test_a_missing_error_is_an_assertion_error_with_the_result() -> None:
    with pytest.raises(AssertionError, match=r'no error, but HTTP 200 .*"resultType": "complete"'):
        _ = Conversation(serve(divide)).call(number=1).error


def test_a_conversation_with_a_crashed_tool_shows_the_exception_and_not_to_the_client() -> None:
    talk = Conversation(serve(divide)).call(number=0)
    assert "divide, which raised ZeroDivisionError('integer division or modulo by zero')" in repr(talk)
    assert "ZeroDivisionError" not in talk.text
    assert "raised" not in repr(talk.call(number=1))


def test_a_conversation_has_the_exception_of_an_invalid_form() -> None:
    class Login(BaseModel):
        password: str

    @tool
    def sign_in(*, elicit: Elicit) -> str:
        return elicit("login", "Who are you?", Login).password

    talk = Conversation(serve(sign_in)).call()
    assert "Login.password: a form is no place for secrets" in str(talk.raised)


@pytest.mark.parametrize("exception", [KeyboardInterrupt, pytest.fail.Exception])
def test_ctrl_c_and_pytest_fail_end_a_test_inside_a_function(exception: type[BaseException]) -> None:
    @tool
    def end_test() -> str:
        raise exception

    with pytest.raises(exception):
        Conversation(serve(end_test)).call()


def test_without_a_deployment_the_error_says_how_to_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ.keys() & {"MCP_STACK", "MCP_KMS_KEYS"}:
        monkeypatch.delenv(name)
    message = r"MCP_STACK is not set.*no deployment is around it.*`with deployed\(\):`"
    with pytest.raises(AssertionError, match=message):
        _ = Conversation(serve(divide)).call(number=1).text


WITHOUT_LOGGING = """
from mcp_functions import serve, tool
from mcp_functions_harness.testing import Conversation, deployed

@tool
def divide(number: int) -> str:
    return str(1 // number)

with deployed():
    print(Conversation(serve(divide)).call(number=0).status)
"""


def test_a_failure_is_printed_once_if_no_logging_is_configured() -> None:
    command = [sys.executable, "-c", WITHOUT_LOGGING]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 - the lines above
    assert process.stdout == "200\n"
    assert process.stderr.count("failed: ZeroDivisionError at ") == 1
