"""An exception that an author's code raises by accident: what the client, the log and the author's tests show of it.

The client gets an error without details, the log has the exception's type and place, and only `Conversation.raised`,
in the author's tests, has the exception itself. The decorators read real annotations at run time, so this module does
not import `annotations` from `__future__`.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from mcp_functions import Elicit, Step, ToolError, prompt, resource, serve, tool
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction, WorkFailed
from mcp_functions_harness.testing import Conversation
from tests.legacy.clients import result_text as legacy_text
from tests.legacy.deployment import Deployment
from tests.support import wire
from tests.support.placements import PLACEMENTS

SECRET = "planted-unspeakable"  # noqa: S105 - tests/support/planted.py searches every response and log line for it
CRASH_TEXT = "The tool {} failed unexpectedly. The server's log says why."


class AuthorsException(BaseException):
    """An exception that is no Exception."""


class Name(BaseModel):
    name: str


EXCEPTIONS: list[BaseException] = [
    LookupError(SECRET),
    SystemExit(SECRET),
    KeyboardInterrupt(SECRET),
    asyncio.CancelledError(SECRET),
    GeneratorExit(SECRET),
    AuthorsException(SECRET),
    ExceptionGroup(SECRET, [ValueError(SECRET), ToolError("three")]),
    BaseExceptionGroup(SECRET, [AuthorsException(SECRET)]),
]


def log_fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return the fields of each request's log line."""
    return [vars(record) for record in caplog.records if hasattr(record, "outcome")]


def serve_tool(exception: BaseException) -> LambdaFunction:
    @tool
    def breaks() -> str:
        raise exception

    return serve(breaks)


def serve_conversation(exception: BaseException) -> LambdaFunction:
    @tool
    def breaks(*, elicit: Elicit) -> str:
        if elicit.possible:
            raise exception
        return ""

    return serve(breaks)


def serve_async_step(exception: BaseException) -> LambdaFunction:
    @tool
    async def breaks(*, step: Step) -> str:
        async def work() -> str:
            raise exception

        return await step.wait("work", work)

    return serve(breaks)


# ---- A tool


every_exception = pytest.mark.parametrize("exception", EXCEPTIONS, ids=lambda error: type(error).__name__)


@pytest.mark.parametrize("serve_crash", [serve_tool, serve_conversation, serve_async_step])
@every_exception
def test_a_tool_that_raises_is_a_tool_error_with_only_the_tools_name(
    serve_crash: Callable[[BaseException], LambdaFunction], exception: BaseException
) -> None:
    talk = Conversation(serve_crash(exception)).call()
    assert talk.status == 200
    assert talk.result["isError"]
    assert talk.text == CRASH_TEXT.format("breaks")


@pytest.mark.parametrize("serve_crash", [serve_tool, serve_conversation, serve_async_step])
@every_exception
def test_the_log_has_the_type_and_the_place_of_an_exception_but_not_its_text(
    serve_crash: Callable[[BaseException], LambdaFunction], exception: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    Conversation(serve_crash(exception)).call()
    (line,) = log_fields(caplog)
    assert line["outcome"] == "crashed"
    assert line["reason"] == type(exception).__name__
    assert line["levelname"] == "ERROR"
    assert f"failed: {type(exception).__name__} at " in caplog.text
    assert f"{__file__}:" in caplog.text
    assert SECRET not in caplog.text


def test_the_authors_test_gets_the_exception_itself() -> None:
    assert str(Conversation(serve_tool(LookupError("which"))).call().raised) == "which"


def test_a_keyboard_interrupt_on_lambda_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")
    assert Conversation(serve_tool(KeyboardInterrupt())).call().result["isError"] is True


def test_the_log_line_of_an_endless_recursion_is_short(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def breaks() -> str:
        return breaks.function()

    assert Conversation(serve(breaks)).call().text == CRASH_TEXT.format("breaks")
    assert len(caplog.messages[-1]) < 20 * 200
    assert "more < " in caplog.messages[-1]


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_client_of_2025_gets_the_same_tool_error(
    placement: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def breaks() -> str:
        """Break."""
        raise SystemExit(SECRET)

    client = Deployment(breaks, placement=placement).client()
    client.initialize(version)
    assert legacy_text(client.call("breaks")) == CRASH_TEXT.format("breaks")
    assert outcomes_of_errors(caplog) == ["crashed"]


def outcomes_of_errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line["outcome"] for line in log_fields(caplog) if line["levelname"] == "ERROR"]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_client_of_2025_gets_an_internal_error_for_a_crash_outside_tools(placement: str) -> None:
    @prompt
    def brief(topic: str) -> str:
        """Brief."""
        return topic

    @brief.complete("topic")
    def topics(_value: str, _arguments: Mapping[str, str]) -> list[str]:
        raise SystemExit(SECRET)

    client = Deployment(brief, placement=placement).client()
    client.initialize("2025-11-25")
    (event,) = client.send("completion/complete", COMPLETION)
    assert event.data["error"]["code"] == -32603
    assert client.response["statusCode"] == 200


def test_the_error_of_a_crashed_worker_has_no_text(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(WorkFailed, match=r"^$"):
        serve_broken_wiring(SystemExit(SECRET))({"mcpTask": {"id": "x", "owner": None}}, wire.Context())
    assert [line["outcome"] for line in log_fields(caplog)] == ["crashed"]
    assert SECRET not in caplog.text


# ---- Prompts, resources, completions, and code around the functions


def serve_prompt_and_resource(exception: BaseException) -> LambdaFunction:
    @prompt
    def brief(topic: str) -> str:  # noqa: ARG001 - of the prompt
        raise exception

    @brief.complete("topic")
    def topics(_value: str, _arguments: Mapping[str, str]) -> list[str]:
        raise exception

    @resource("notes://{owner}")
    def note(owner: str) -> str:  # noqa: ARG001 - of the URI
        raise exception

    return serve(brief, note)


def serve_broken_wiring(exception: BaseException) -> LambdaFunction:
    """Make a Lambda that fails before it knows its settings."""

    def wire_up(_name: str, _now: object) -> Endpoint:
        raise exception

    return LambdaFunction(wire_up)


def serve_audit(exception: BaseException) -> LambdaFunction:
    """Make a Lambda whose audit of a question fails."""

    @tool
    def asks(*, elicit: Elicit) -> str:
        return elicit("name", "Who?", Name).name

    def audit(_record: object) -> None:
        raise exception

    return serve(asks, audit=audit)


COMPLETION = {"ref": {"type": "ref/prompt", "name": "brief"}, "argument": {"name": "topic", "value": "x"}}


@dataclass(frozen=True)
class Crash:
    """A request that meets an exception outside of tools, and the HTTP status of the response."""

    serve: Callable[[BaseException], LambdaFunction]
    method: str
    params: dict[str, Any]
    status: int = 200


@every_exception
@pytest.mark.parametrize(
    "crash",
    [
        Crash(serve_prompt_and_resource, "prompts/get", {"name": "brief", "arguments": {"topic": "x"}}),
        Crash(serve_prompt_and_resource, "resources/read", {"uri": "notes://x"}),
        Crash(serve_prompt_and_resource, "completion/complete", COMPLETION),
        Crash(serve_audit, "tools/call", {"name": "asks"}),
        Crash(serve_broken_wiring, "tools/call", {"name": "asks"}, status=500),  # before the caller is known
    ],
    ids=lambda crash: f"{crash.serve.__name__}, {crash.method}",
)
def test_a_crash_outside_tools_is_an_internal_error(
    crash: Crash, exception: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    request = wire.event(wire.message(crash.method, crash.params))
    response = crash.serve(exception)(request, wire.Context())
    assert response["statusCode"] == crash.status
    assert json.loads(response["body"])["error"]["code"] == -32603
    (line,) = log_fields(caplog)
    assert line["outcome"] == "crashed"
    assert line["reason"] == type(exception).__name__
    assert SECRET not in caplog.text + response["body"]


# ---- Exceptions whose text is for the model


class Subclass(ValueError):
    """An exception whose base class is in `errors`."""


def raising(exception: BaseException) -> Callable[[], str]:
    """Make an author's function that raises the exception."""

    def breaks() -> str:
        raise exception

    return breaks


@pytest.mark.parametrize("kind", [ValueError, LookupError])
def test_the_model_gets_the_text_of_an_exception_in_errors(kind: type[Exception]) -> None:
    breaks = tool(errors=(ValueError, LookupError))(raising(kind("No flight on Sundays.")))
    talk = Conversation(serve(breaks)).call()
    assert talk.result["isError"]
    assert talk.text == "No flight on Sundays."
    assert talk.raised is None


def validate() -> str:
    return str(TypeAdapter(int).validate_python(SECRET))  # pydantic's ValidationError is a ValueError with the value


@pytest.mark.parametrize("function", [validate, raising(Subclass(SECRET)), raising(KeyError(SECRET))])
def test_the_model_does_not_get_the_text_of_a_subclass_of_an_exception_in_errors(function: Callable[[], str]) -> None:
    talk = Conversation(serve(tool(name="breaks", errors=(ValueError, LookupError))(function))).call()
    assert talk.text == CRASH_TEXT.format("breaks")


def test_the_errors_of_serve_are_added_to_those_of_each_tool() -> None:
    first = tool(name="first", errors=(ValueError,))(raising(LookupError("No such flight.")))
    second = tool(name="second", errors=(ValueError,))(raising(ValueError("No such hotel.")))
    function = serve(first, second, errors=(LookupError,))
    assert Conversation(function).call("first").text == "No such flight."
    assert Conversation(function).call("second").text == "No such hotel."


def test_the_errors_of_serve_do_not_change_another_function_with_the_same_tool() -> None:
    breaks = tool(raising(LookupError("No such flight.")))
    serve(breaks, errors=(LookupError,))
    assert Conversation(serve(breaks)).call().text == CRASH_TEXT.format("breaks")


def test_the_model_gets_the_type_of_an_exception_without_a_text() -> None:
    assert Conversation(serve(tool(errors=(ValueError,))(raising(ValueError())))).call().text == "ValueError"


def test_the_model_gets_the_text_of_an_exception_in_an_asyncio_task() -> None:
    @tool(errors=(ValueError,))
    async def books() -> str:
        async def fly() -> str:
            message = "No flight on Sundays."
            raise ValueError(message)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fly())
        return ""

    assert Conversation(serve(books)).call().text == "No flight on Sundays."


def tool_error_of(module: str) -> type[Exception]:
    return type("ToolError", (Exception,), {"__module__": module})


@pytest.mark.parametrize("module", ["mcp.server.fastmcp.exceptions", "fastmcp.exceptions"])
def test_the_model_gets_the_text_of_a_tool_error_of_another_sdk(module: str) -> None:
    assert Conversation(serve(tool(raising(tool_error_of(module)("No paper."))))).call().text == "No paper."


@pytest.mark.parametrize("module", ["mcp.server.fastmcp.exceptions", "fastmcp.exceptions"])
def test_the_model_gets_the_text_of_a_subclass_of_a_tool_error_of_another_sdk(module: str) -> None:
    subclass = type("Jam", (tool_error_of(module),), {})
    assert Conversation(serve(tool(raising(subclass("No ink."))))).call().text == "No ink."


def test_a_tool_error_of_any_other_library_is_a_crash() -> None:
    error = tool_error_of("acme.mcp")("x")
    assert Conversation(serve(tool(raising(error)))).call().text == CRASH_TEXT.format("breaks")


@pytest.mark.parametrize("errors", ["ValueError", (ValueError("x"),), (KeyboardInterrupt,), ("ValueError",), 7])
def test_errors_that_are_no_tuple_of_exception_classes_are_refused(errors: Any) -> None:  # noqa: ANN401 - anything
    with pytest.raises(TypeError, match=rf"{Path(__file__).name}.*errors is a tuple of exception classes"):
        tool(errors=errors)(raising(ValueError()))
    with pytest.raises(TypeError, match="errors is a tuple of exception classes"):
        serve(tool(raising(ValueError())), errors=errors)


@pytest.fixture(autouse=True)
def _log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mcp_functions")
