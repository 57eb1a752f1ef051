"""The options of `serve` for authors who port a server: server_info, instructions and the hook `around`.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.server.mcpserver import MCPServer

from mcp_functions import Elicit, ToolError, prompt, resource, serve, serve_catalog, tool
from mcp_functions.adopt import adopt
from mcp_functions.handlers import catalog
from mcp_functions.hooks import Call
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions_harness.testing import Conversation, deployed
from tests.support import wire
from tests.support.conversations import author_error

ICON: dict[str, Any] = {"src": "https://example.com/icon.png", "sizes": ["48x48"]}
INFO: Any = {"title": "Little Shop", "websiteUrl": "https://example.com", "icons": [ICON]}
SEEN_CALLS: list[Call] = []


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def order(article: str, *, elicit: Elicit) -> str:
    """Order an article."""
    return f"{elicit('number', 'How many?', int)} of {article}"


@tool
async def fails(how: str) -> str:
    """Fail."""
    raise LookupError(how)


@prompt
def brief(topic: str) -> str:
    """Brief."""
    return topic


@resource("notes://{owner}")
def note(owner: str) -> str:
    """Read a note."""
    return owner


def ask(function: LambdaFunction, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Send one request of 2026-07-28, and return its result."""
    with deployed():
        response = function(wire.event(wire.message(method, params)), wire.Context("local_add"))
    result: dict[str, Any] = wire.read(response, method)["result"]
    return result


def server_info_of(result: Mapping[str, Any]) -> dict[str, Any]:
    info: dict[str, Any] = result["_meta"]["io.modelcontextprotocol/serverInfo"]
    return info


# The description of the server


def test_each_result_has_the_server_info_of_its_function() -> None:
    function = serve(add, server_info=INFO)
    for result in (
        ask(function, "server/discover"),
        ask(function, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}),
    ):
        info = server_info_of(result)
        assert {"name", "version"} < info.keys()
        assert {name: info[name] for name in INFO} == INFO


def test_server_info_may_be_a_model_of_the_sdk() -> None:
    info: Any = mcp_types.Icon(src=ICON["src"])
    assert server_info_of(ask(serve(add, server_info={"icons": [info]}), "tools/list"))["icons"] == [
        {"src": ICON["src"]}
    ]


def test_the_endpoint_has_its_own_server_info_and_the_instructions_of_its_functions(tmp_path: Path) -> None:
    offered = catalog.build_project(
        {
            "add": serve(add, instructions="Add with care.").handlers,
            "order": serve(order).handlers,
            "notes": serve(brief, note, instructions="Notes are short.").handlers,
        }
    )
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(offered))
    discovered = ask(serve_catalog(path, instructions="Be nice.", server_info=INFO), "server/discover")
    assert discovered["instructions"] == "Be nice.\n\nAdd with care.\n\nNotes are short."
    assert server_info_of(discovered)["title"] == "Little Shop"


def test_a_function_with_instructions_keeps_the_form_of_a_tool_that_asks() -> None:
    plain, described = serve(order), serve(order, instructions="Order one by one.")
    assert catalog.build(described.handlers)["asks"] == catalog.build(plain.handlers)["asks"] == ["order"]


def test_the_server_info_of_functions_does_not_change_that_of_the_endpoint() -> None:
    sums = serve(add, server_info={"title": "Sums"})
    letters = serve(brief, server_info={"title": "Letters"})
    offered = catalog.build_project({"add": sums.handlers, "brief": letters.handlers})
    assert catalog.server_info(offered, {"name": "shop"}) == {"name": "shop"}


def test_serve_does_not_change_the_decorated_handler() -> None:
    serve(add, instructions="Add with care.", around=record_calls, errors=(LookupError,))
    assert (add.server_description, add.around, add.errors) == ({}, None, frozenset())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"instructions": 7}, "instructions is text"),
        ({"server_info": {"website": "https://example.com"}}, "it says 'website', which is not known"),
        ({"server_info": {"websiteUrl": "example.com"}}, "websiteUrl must be an http:// or https:// URL"),
        ({"server_info": {"icons": [{}]}}, "an icon needs src"),
        ({"around": "hook"}, "around is a function that takes a Call"),
    ],
)
def test_an_invalid_option_of_serve_is_refused_before_the_first_event(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        serve(add, **options)


# The hook around calls


@contextmanager
def record_calls(call: Call) -> Iterator[None]:
    """Note each round, and how it ended."""
    SEEN_CALLS.append(call)
    try:
        yield
    except LookupError as error:
        text = f"{call.name} found nothing"
        raise ToolError(text) from error


@pytest.fixture(autouse=True)
def _empty() -> None:
    SEEN_CALLS.clear()


def test_the_hook_runs_around_each_round_and_gets_the_call() -> None:
    talk = Conversation(serve(add, order, around=record_calls), principal="ann")
    assert talk.call("add", a=1, b=2).text == "3"
    assert talk.call("order", article="tea").accept(number={"number": 2}).text == "2 of tea"
    assert [(call.kind, call.name, dict(call.arguments), call.round) for call in SEEN_CALLS] == [
        ("tool", "add", {"a": 1, "b": 2}, 1),
        ("tool", "order", {"article": "tea"}, 1),
        ("tool", "order", {"article": "tea"}, 2),
    ]
    assert {call.caller.subject for call in SEEN_CALLS} == {"ann"}


def test_the_hook_gets_only_the_arguments_that_the_client_sent() -> None:
    @tool
    def convert(euros: int, to: str = "USD") -> str:
        return f"{euros} {to}"

    Conversation(serve(convert, around=record_calls)).call(euros=3)
    assert dict(SEEN_CALLS[0].arguments) == {"euros": 3}


def test_the_hook_runs_around_prompts_and_resources() -> None:
    talk = Conversation(serve(brief, note, around=record_calls))
    talk.call("brief", topic="tea")
    talk.read("notes://ann")
    assert [(call.kind, call.name, dict(call.arguments)) for call in SEEN_CALLS] == [
        ("prompt", "brief", {"topic": "tea"}),
        ("resource_template", "note", {"owner": "ann"}),
    ]


def test_the_hook_may_write_the_error_that_the_model_reads() -> None:
    talk = Conversation(serve(fails, around=record_calls)).call(how="badly")
    assert (talk.text, talk.result["isError"]) == ("fails found nothing", True)


def test_the_hook_may_refuse_a_call_before_it_runs() -> None:
    @contextmanager
    def closed(call: Call) -> Iterator[None]:
        if call.arguments.get("a") == 13:
            text = "Not with 13."
            raise ToolError(text)
        yield

    talk = Conversation(serve(add, around=closed))
    assert talk.call(a=13, b=1).text == "Not with 13."
    assert talk.call(a=12, b=1).text == "13"


def test_the_hook_cannot_change_the_arguments() -> None:
    @contextmanager
    def meddling(call: Call) -> Iterator[None]:
        arguments: Any = call.arguments
        arguments["a"] = 100
        yield

    assert Conversation(serve(add, around=meddling)).call(a=1, b=1).text == "2"


def test_the_hook_does_not_run_for_invalid_arguments() -> None:
    assert Conversation(serve(add, around=record_calls)).call(a="one", b=1).result["isError"] is True
    assert SEEN_CALLS == []


def test_a_question_runs_finally_of_the_hook_but_not_except_exception() -> None:
    seen = []

    @contextmanager
    def watching(_call: Call) -> Iterator[None]:
        try:
            yield
        except Exception:
            seen.append("exception")
            raise
        finally:
            seen.append("finally")

    talk = Conversation(serve(order, around=watching)).call(article="tea")
    assert (talk.asked, seen) == (["number"], ["finally"])


def test_a_hook_that_swallows_an_exception_is_the_authors_error(caplog: pytest.LogCaptureFixture) -> None:
    talk = Conversation(serve(fails, around=lambda _call: suppress(LookupError))).call(how="badly")
    assert "swallowed an exception" in author_error(talk, caplog)


def test_a_hook_that_swallows_everything_does_not_swallow_a_question() -> None:
    talk = Conversation(serve(order, around=lambda _call: suppress(BaseException))).call(article="tea")
    assert talk.asked == ["number"]
    assert talk.accept(number={"number": 1}).text == "1 of tea"


def test_a_hook_that_is_no_context_manager_is_the_authors_error(caplog: pytest.LogCaptureFixture) -> None:
    hook: Any = lambda _call: None  # noqa: E731 - it is wrong on purpose
    talk = Conversation(serve(add, around=hook)).call(a=1, b=1)
    assert "returned no context manager" in author_error(talk, caplog)


def test_an_adopted_server_keeps_the_middleware_of_its_library() -> None:
    server: MCPServer[Any] = MCPServer("sums")
    server.add_tool(add.function)
    with pytest.raises(TypeError, match="an adopted server has the middleware of its library"):
        serve(*adopt(server), around=record_calls)
