"""A client that cannot be asked never passes the gate of an adopted handler, whether `replay` names the handler or not.

The original runs in this process, beside the adopted server. The client of both is the official one. Without a callback
it declares no elicitation, and answers each question with the error -32600.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitResult, InputRequiredResult

from mcp_functions import serve
from mcp_functions.adopt import adopt
from mcp_functions_harness import Harness
from mcp_functions_harness import catalog as catalog_file
from mcp_functions_harness.testing import Conversation
from tests.adopt import gates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

# Clients without elicitation. In two of them only a model, or a form of ours, could ask.
UNASKABLE: dict[str, dict[str, Any]] = {
    "declares nothing": {},
    "declares other capabilities": {"sampling": {}, "roots": {}},
    "shows apps": {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}},
}
REFUSING = (*gates.OWN_WAY, *gates.IN_THE_MIDDLE, *gates.BOTH)
ALL = (*REFUSING, *gates.CATCHING)


def names_of(server: Any) -> list[str]:  # noqa: ANN401 - a server of three kinds
    """Return the names that `replay` accepts."""
    return [handler.key for handler in adopt(server) if handler.key != "*"]


def begin(talk: Conversation, maker: Callable[..., Any]) -> Conversation:
    return talk.read("gate://passed") if maker is gates.resource else talk.call(maker.__name__)


def ask_official(target: object, maker: Callable[..., Any], mode: str, answer: dict[str, Any] | None) -> str:
    """Use a gate with the official client; return the text of its result, or the code of its error.

    Without an answer, the client cannot be asked.
    """

    async def elicited(context: object, params: object) -> ElicitResult:
        del context, params
        return ElicitResult(**(answer or {}))

    async def talk() -> str:
        options: dict[str, Any] = {"elicitation_callback": elicited} if answer else {}
        original: Any = getattr(target, "_mcp_server", target)
        async with Client(original, mode=mode, **options) as client:
            try:
                result: Any
                if maker is gates.resource:
                    result = await client.read_resource("gate://passed")
                elif maker is gates.prompt:
                    result = await client.get_prompt("prompt")
                else:
                    result = await client.call_tool(maker.__name__)
            except MCPError as refused:
                return str(refused.code)
            if getattr(result, "is_error", False):
                return "an error"
            return str(result)

    return anyio.run(talk)


@pytest.mark.parametrize("capabilities", UNASKABLE.values(), ids=UNASKABLE)
@pytest.mark.parametrize("maker", ALL, ids=lambda maker: maker.__name__)
def test_a_client_of_2026_that_cannot_be_asked_never_passes(
    maker: Callable[..., Any], capabilities: dict[str, Any]
) -> None:
    done: list[str] = []
    server = maker(done)
    for replay in ([], names_of(server)):
        if maker is gates.fast_catching and not replay:
            continue  # FastMCP refuses at this revision, so the tool goes on as the original does: the next test
        talk = begin(Conversation(serve(*adopt(server, replay=replay)), capabilities=capabilities), maker)
        assert talk.done
        assert "error" in talk.body or talk.result["isError"]
    assert done == []


@pytest.mark.parametrize("maker", REFUSING, ids=lambda maker: maker.__name__)
def test_the_original_refuses_this_client_too(maker: Callable[..., Any]) -> None:
    done: list[str] = []
    server = maker(done)
    answered = ask_official(server, maker, "2026-07-28", None)
    assert answered in ("-32600", "-32603", "-32021", "an error")
    assert done == []


def test_a_tool_of_fastmcp_that_is_not_named_and_goes_on_without_an_answer_does_so_as_the_original() -> None:
    expected: list[str] = []
    adopted: list[str] = []
    original, server = gates.fast_catching(expected), gates.fast_catching(adopted)
    assert "deleted" in ask_official(original, gates.fast_catching, "2026-07-28", None)
    assert Conversation(serve(*adopt(server)), capabilities={}).call().text == "deleted"
    assert adopted == expected


@pytest.mark.parametrize("maker", ALL, ids=lambda maker: maker.__name__)
def test_a_client_that_can_be_asked_passes_once_if_it_agrees(maker: Callable[..., Any]) -> None:
    done: list[str] = []
    server = maker(done)
    talk = begin(Conversation(serve(*adopt(server, replay=names_of(server)))), maker)
    answered = 0
    while not talk.done:
        talk.accept(**dict.fromkeys(talk.asked, True))
        answered += 1
    assert "deleted" in str(talk.body)
    assert answered == (2 if maker in gates.BOTH else 1)
    assert len(done) == 1


@pytest.mark.parametrize("maker", ALL, ids=lambda maker: maker.__name__)
def test_a_client_that_declines_does_not_pass(maker: Callable[..., Any]) -> None:
    done: list[str] = []
    server = maker(done)
    talk = begin(Conversation(serve(*adopt(server, replay=names_of(server)))), maker).decline()
    if not talk.done:  # a gate that returns its question asks again until somebody agrees, as the original does
        assert maker in gates.OWN_WAY
    assert done == []


async def gather(ask: Callable[[], Any]) -> object:
    return (await asyncio.gather(ask(), return_exceptions=True))[0]


async def wait(ask: Callable[[], Any]) -> object:
    asked = asyncio.create_task(ask())
    await asyncio.wait([asked])
    return asked.exception()


@pytest.mark.parametrize("wait_for", [gather, wait])
@pytest.mark.parametrize("replay", [[], ["gate"]])
def test_a_gate_that_asks_in_a_task_and_gets_its_end_as_a_value_is_not_passed(
    wait_for: Callable[[Callable[[], Any]], Any], replay: list[str]
) -> None:
    server = MCPServer("tasks")
    done: list[str] = []

    @server.tool()
    async def gate(ctx: Context) -> str:
        outcome = await wait_for(lambda: ctx.elicit("Delete it?", gates.Ok))
        if isinstance(outcome, BaseException):  # the client cannot be asked
            done.append("passed")
        return "deleted"

    askable: dict[str, Any] = {"elicitation": {}}
    for capabilities in ({}, askable):
        talk = Conversation(serve(*adopt(server, replay=replay)), capabilities=capabilities).call()
        assert talk.result["isError"]
    assert done == []


def test_a_returned_question_with_a_key_of_the_toolkit_ends_the_call_of_a_handler_that_replays() -> None:
    server = MCPServer("keys")

    async def gate(ctx: Context) -> str | InputRequiredResult:
        asked = gates.returned_question("Sure?")
        if (ctx.input_responses or {}).get("question-1"):
            return "answered"
        return asked.model_copy(update={"input_requests": {"question-1": (asked.input_requests or {})["sure"]}})

    gate.__annotations__ = {"ctx": Context}
    server.add_tool(gate)
    assert Conversation(serve(*adopt(server))).call().accept(**{"question-1": True}).text == "answered"
    talk = Conversation(serve(*adopt(server, replay=["gate"]))).call()
    assert talk.result["isError"]
    assert "a question with the key 'question-1'" in talk.text


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """Serve all gates behind one endpoint, each with `replay`."""
    root = tmp_path_factory.mktemp("gates")
    functions = root / "functions"
    apps = {
        maker.__name__: "from tests.adopt import gates\nfrom mcp_functions import serve\n"
        "from mcp_functions.adopt import adopt\n\n"
        f"server = gates.{maker.__name__}([])\n"
        "names = [handler.key for handler in adopt(server) if handler.key != '*']\n"
        "handler = serve(*adopt(server, replay=names))\n"
        for maker in ALL
    }
    apps["mcp"] = (
        "from pathlib import Path\nfrom mcp_functions import serve_catalog\n\n"
        'handler = serve_catalog(Path(__file__).with_name("catalog.json"))\n'
    )
    for name, text in apps.items():
        (functions / name).mkdir(parents=True)
        (functions / name / "app.py").write_text(text, encoding="utf-8")
    catalog_file.write(functions, catalog_file.generate(functions))
    with Harness(functions, state_dir=root / "state") as running:
        yield running


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
@pytest.mark.parametrize("maker", ALL, ids=lambda maker: maker.__name__)
def test_the_official_client_passes_behind_the_endpoint_only_if_its_user_agrees(
    endpoint: Harness, maker: Callable[..., Any], mode: str
) -> None:
    assert "deleted" not in ask_official(endpoint.url, maker, mode, None)
    agreed = {"action": "accept", "content": {"ok": True, "value": True}}
    assert "deleted" in ask_official(endpoint.url, maker, mode, agreed)
