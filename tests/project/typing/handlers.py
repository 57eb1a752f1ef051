"""Decorating keeps a function's own types. This file is read by type checkers and never runs."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, assert_type

from pydantic import BaseModel

from mcp_functions import (
    Caller,
    Elicit,
    Log,
    Progress,
    Shared,
    ToolError,
    prompt,
    resource,
    serve,
    serve_catalog,
    serve_oauth,
    tool,
)
from mcp_functions.annotated import Header, Number
from mcp_functions.content import (
    Audio,
    CallToolResult,
    EmbeddedResource,
    Image,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Text,
)
from mcp_functions.handlers.prompts import Prompt
from mcp_functions.handlers.resources import Resource
from mcp_functions.handlers.tools import Tool
from mcp_functions.hooks import AuditRecord, Call
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.oauth.function import OAuthFunction
from mcp_functions.protocol.wire_types import ListEntry


class Point(BaseModel):
    x: float
    y: float = 0


# Tools: bare, with options, with capabilities, async.


@tool
def add(a: int, b: int = 0) -> int:
    return a + b


assert_type(add(1), int)
assert_type(add(a=1, b=2), int)
assert_type(add.function(1, 2), int)
assert_type(add.name, str)
added: Tool[[int, int], int]


@tool(scopes=["sums:write"])
def mine(a: int, *, caller: Caller) -> str:
    assert_type(caller.scopes, frozenset[str])
    return f"{a} for {caller.subject} of {caller.issuer} in {caller.client}" if caller.known else f"{a} for nobody"


@tool(name="sum", title="Sum", annotations={"readOnlyHint": True}, icons=[{"src": "data:,"}], answer_within=60)
def total(numbers: list[Number], *, scale: Progress) -> Point:
    scale(1, total=2, message="half")
    return Point(x=sum(numbers))


assert_type(total.describe(), ListEntry)


@tool(camel_case=True)
def place(
    city: Annotated[str, "Which city", Header("City")], near: Point | None = None, *, elicit: Elicit, log: Log
) -> list[Text | Point]:
    log.info({"city": city})
    log("debug", near, logger="places")
    return [elicit("p", "Where?", Point), Text(city)]


def asked(elicit: Elicit, log: Log) -> None:
    assert_type(place("Rome", elicit=elicit, log=log), list[Text | Point])
    assert_type(place(city="Rome", near=None, elicit=elicit, log=log), list[Text | Point])


@tool
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


async def awaited() -> None:
    assert_type(await slow(1), str)


@tool(input_schema={"type": "object"})
def raw(arguments: dict[str, Any]) -> dict[str, int]:
    return {key: len(str(value)) for key, value in arguments.items()}


assert_type(raw({"a": 1}), dict[str, int])


@tool
def show(name: str) -> CallToolResult:
    if not name:
        reason = "there is nothing to show"
        raise ToolError(reason)
    image, sound = Image(b"", "image/png"), Audio(b"", "audio/wav", annotations={"audience": ["user"]})
    linked = ResourceLink("https://example.com", name, icons=[{"src": "data:,", "theme": "dark"}])
    embedded = EmbeddedResource(ResourceContents("a://b", b"", meta={"a": 1}))
    return CallToolResult([name, image, sound, linked, embedded], structured_content=[1], is_error=True)


assert_type(show("map"), CallToolResult)


# Prompts and resources.


@prompt
def brief(topic: str, minutes: int = 5) -> str:
    return f"{topic} in {minutes}"


@prompt(title="Chat")
def chat(topic: str) -> list[PromptMessage]:
    return [PromptMessage("assistant", topic)]


assert_type(brief("tea", minutes=3), str)
assert_type(chat("tea"), list[PromptMessage])
briefed: Prompt[[str, int], str]


@brief.complete("topic")
def topics(value: str, arguments: Mapping[str, str]) -> list[str]:
    return [topic for topic in ("tea", "coffee") if topic.startswith(value) and topic not in arguments.values()]


@brief.complete("topic")
async def fetched_topics(value: str, _arguments: Mapping[str, str]) -> list[str]:
    return [value]


@resource("config://app", mime_type="application/json", ttl_ms=1000, cache_scope="public")
def config() -> dict[str, int]:
    return {"a": 1}


@resource("points://{x}/{y}")
def point(x: int, y: int) -> ResourceContents | bytes:
    return b"" if x == y else ResourceContents("points://0/0", "x")


assert_type(config(), dict[str, int])
assert_type(point(1, y=2), ResourceContents | bytes)
configured: Resource[[], dict[str, int]] = config
assert_type(config.uri, str)


# Entry points.

assert_type(serve(add, total, place, slow, raw, brief, chat, config, point), LambdaFunction)
assert_type(serve_catalog("catalog.json", instructions="Be nice"), LambdaFunction)
assert_type(serve_oauth(), OAuthFunction)
records: list[AuditRecord] = []
assert_type(serve(place, audit=records.append), LambdaFunction)
assert_type(records[0].asked, Mapping[str, str])


@contextmanager
def timed(call: Call) -> Generator[None, None, None]:
    assert_type(call.arguments, Mapping[str, Any])
    yield


@contextmanager
def open_numbers() -> Generator[list[int], None, None]:
    yield [1]


@tool
def largest(*, numbers: Annotated[list[int], Shared(open_numbers)]) -> int:
    return max(assert_type(numbers, list[int]))


assert_type(serve(largest, around=timed), LambdaFunction)
