"""The official Python client with features that no sample uses: progress, logs, sampling, roots, headers, completion.

The functions are those of the conformance suite, which checks less: here the client must read every message.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, MCPError
from mcp_types import (
    CreateMessageResult,
    ListRootsResult,
    PromptReference,
    Root,
    TextContent,
)
from pydantic import FileUrl

from mcp_functions_harness import Harness
from tests.clients.people import Person, accept, talk, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.client.session import ClientRequestContext
    from mcp_types import CompleteResult, CreateMessageRequestParams, LoggingMessageNotificationParams

FUNCTIONS = Path(__file__).parents[1] / "conformance" / "functions"
ASKS = "test_input_required_result_"


@pytest.fixture(scope="module", params=["functions", "one"], ids=["with a Lambda each", "with one Lambda for all"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Harness(FUNCTIONS.with_name(request.param), state_dir=tmp_path_factory.mktemp("state")) as harness:
        yield harness.url


async def model(context: ClientRequestContext, params: CreateMessageRequestParams) -> CreateMessageResult:  # noqa: ARG001
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris."), model="a-model")


async def roots(context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG001 - the client passes it by name
    return ListRootsResult(roots=[Root(uri=FileUrl("file:///home/alice/project"))])


def test_progress_arrives_before_the_result(url: str) -> None:
    seen: list[tuple[float, float | None]] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        seen.append((progress, total))

    result = talk(Client(url), lambda client: client.call_tool("test_tool_with_progress", progress_callback=watch))
    assert (text(result), seen) == ("Done.", [(0, 100), (50, 100), (100, 100)])


@pytest.mark.parametrize(("level", "count"), [("debug", 3), ("info", 3), ("warning", 0), (None, 0)])
def test_log_messages_of_the_requested_level_arrive(url: str, level: Any, count: int) -> None:  # noqa: ANN401
    seen: list[str] = []

    async def read(params: LoggingMessageNotificationParams) -> None:
        seen.append(params.level)

    client = Client(url, logging_callback=read, log_level=level)
    result = talk(client, lambda client: client.call_tool("test_logging_tool"))
    assert (text(result), seen) == ("Done.", ["info"] * count)


def test_the_clients_model_is_asked(url: str) -> None:
    client = Client(url, sampling_callback=model)
    assert text(talk(client, lambda client: client.call_tool(f"{ASKS}sampling"))) == "Paris."


def test_a_tool_gets_the_clients_roots(url: str) -> None:
    client = Client(url, list_roots_callback=roots)
    assert text(talk(client, lambda client: client.call_tool(f"{ASKS}list_roots"))) == "file:///home/alice/project"


def test_the_client_answers_three_requests_in_one_round(url: str) -> None:
    person = Person(accept(name="Alice"))
    client = Client(url, elicitation_callback=person.answer, sampling_callback=model, list_roots_callback=roots)
    result = talk(client, lambda client: client.call_tool(f"{ASKS}multiple_inputs"))
    assert text(result) == "Paris. Alice, in 1 folders."


def test_the_next_round_receives_the_typed_state(url: str) -> None:
    assert text(Person(accept(ok=True)).call_tool(url, f"{ASKS}request_state", {})) == "state-ok"


def test_three_rounds_end_with_both_answers(url: str) -> None:
    person = Person(accept(name="Alice"), accept(color="blue"))
    assert text(person.call_tool(url, f"{ASKS}multi_round", {})) == "Alice likes blue."


def test_a_client_without_a_model_learns_that_it_lacks_one(url: str) -> None:
    with pytest.raises(MCPError) as error:
        talk(Client(url), lambda client: client.call_tool("test_missing_capability"))
    assert (error.value.code, error.value.data) == (-32021, {"requiredCapabilities": {"sampling": {}}})


@pytest.mark.parametrize("region", ["eu-central-1", "Zürich", " around ", "=?base64?SGVsbG8=?="])
def test_an_argument_that_the_client_repeats_in_a_header_is_accepted(url: str, region: str) -> None:
    async def listed_then_called(client: Client) -> str:
        await client.list_tools()  # from here the client knows which argument goes into a header
        return text(await client.call_tool("test_x_mcp_header", {"region": region}))

    assert talk(Client(url), listed_then_called) == f"Working in {region}."


def test_arguments_that_violate_a_custom_schema_are_refused(url: str) -> None:
    async def call(client: Client) -> tuple[bool | None, bool | None]:
        fits = await client.call_tool(
            "json_schema_2020_12_tool", {"name": "Al", "contactMethod": "phone", "phone": "1"}
        )
        bad = await client.call_tool("json_schema_2020_12_tool", {"name": "Al", "contactMethod": "phone", "email": "a"})
        return fits.is_error, bad.is_error

    assert talk(Client(url), call) == (False, True)


def test_the_values_of_a_prompts_argument_are_suggested(url: str) -> None:
    async def complete(client: Client) -> CompleteResult:
        prompt = PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        return await client.complete(prompt, {"name": "arg1", "value": "par"})

    assert talk(Client(url), complete).completion.values == ["paris", "park", "party"]


def test_bytes_come_back_as_they_were(url: str) -> None:
    async def read(client: Client) -> str:
        (contents,) = (await client.read_resource("test://static-binary")).contents
        return str(contents.model_dump()["blob"])

    assert talk(Client(url), read).startswith("iVBORw0KGgo")
