"""Functions may return types of the official SDK. Values that can be no result are refused with an error naming them.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import base64
import io
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import mcp_types as sdk
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Audio as SdkAudio
from mcp.server.mcpserver import Image as SdkImage
from mcp.server.mcpserver.prompts.base import AssistantMessage, UserMessage
from pydantic import BaseModel

from mcp_functions import (
    CallToolResult,
    Image,
    PromptMessage,
    ResourceContents,
    Sample,
    Text,
    prompt,
    resource,
    tool,
)
from mcp_functions.handlers.base import Handler
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.settings import Settings
from tests.dispatch.test_dispatcher import App
from tests.legacy.world import World
from tests.support import wire
from tests.support.dispatching import dispatcher

PNG = b"\x89PNG"
DATA = base64.b64encode(PNG).decode()
SETTINGS = Settings(stack="local", auth_mode="none", server_name="test", server_version="1")


def send(handler: Handler[..., Any], method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send one event, and have the official types judge the response."""
    server = dispatcher([handler], SETTINGS, "local/test/local", None)
    function = LambdaFunction(lambda _name, _now: Endpoint(SETTINGS, server.answer), (handler,))
    response = function(wire.event(wire.message(method, params)), wire.Context())
    result: dict[str, Any] = wire.read(response, method)["result"]
    return result


def returning(value: object, annotation: object = ...) -> Handler[..., Any]:
    """Make a tool that returns a value."""

    def returner():  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line says it
        return value

    if annotation is not ...:
        returner.__annotations__["return"] = annotation
    return tool(returner)


def call(value: object, annotation: object = ...) -> dict[str, Any]:
    return send(returning(value, annotation), "tools/call", {"name": "returner"})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


PICTURE = {"type": "image", "data": DATA, "mimeType": "image/png"}
BLOCKS: list[tuple[Any, dict[str, Any]]] = [
    (sdk.TextContent(type="text", text="hi"), text("hi")),
    (
        sdk.TextContent(
            type="text",
            text="hi",
            annotations=sdk.Annotations(audience=["user"], last_modified="2026-07-28"),
            _meta={"example.com/k": 1},
        ),
        {
            **text("hi"),
            "annotations": {"audience": ["user"], "lastModified": "2026-07-28"},
            "_meta": {"example.com/k": 1},
        },
    ),
    (sdk.ImageContent(type="image", data=DATA, mime_type="image/png"), PICTURE),
    (
        sdk.AudioContent(type="audio", data=DATA, mime_type="audio/wav"),
        {"type": "audio", "data": DATA, "mimeType": "audio/wav"},
    ),
    (
        sdk.ResourceLink(type="resource_link", uri="a://b", name="b", icons=[sdk.Icon(src="https://x.example/i")]),
        {"type": "resource_link", "uri": "a://b", "name": "b", "icons": [{"src": "https://x.example/i"}]},
    ),
    (
        sdk.EmbeddedResource(type="resource", resource=sdk.TextResourceContents(uri="a://b", text="hi")),
        {"type": "resource", "resource": {"uri": "a://b", "text": "hi"}},
    ),
    (
        sdk.EmbeddedResource(type="resource", resource=sdk.BlobResourceContents(uri="a://b", blob=DATA)),
        {"type": "resource", "resource": {"uri": "a://b", "blob": DATA}},
    ),
    (SdkImage(data=PNG, format="png"), PICTURE),
    (SdkAudio(data=PNG, format="wav"), {"type": "audio", "data": DATA, "mimeType": "audio/wav"}),
]


@pytest.mark.parametrize(("value", "written"), BLOCKS)
def test_content_of_the_official_sdk_is_content_wherever_ours_is(value: Any, written: dict[str, Any]) -> None:  # noqa: ANN401
    alone, beside = {"content": [written]}, {"content": [text("see:"), written, PICTURE]}
    image = Image(PNG, "image/png")
    assert call(value)["content"] == alone["content"]
    assert call(value, type(value))["content"] == alone["content"]
    assert call(["see:", value, image])["content"] == beside["content"]
    assert call(("see:", value, image), tuple[str, type(value), Image])["content"] == beside["content"]  # type: ignore[misc]
    assert call(CallToolResult(["see:", value, image]))["content"] == beside["content"]
    assert call(["see:", value, image], list)["content"] == beside["content"]
    assert "structuredContent" not in call([value])

    @prompt
    def page() -> object:
        return [value, PromptMessage("assistant", value)]

    messages = send(page, "prompts/get", {"name": "page"})["messages"]
    assert messages == [{"role": "user", "content": written}, {"role": "assistant", "content": written}]


def test_a_whole_result_of_the_official_sdk_is_the_result() -> None:
    failed = sdk.CallToolResult(content=[sdk.TextContent(type="text", text="no")], is_error=True)
    assert call(failed)["isError"] is True
    assert "structuredContent" not in call(failed)
    assert "structuredContent" not in call(sdk.CallToolResult(content=[], structured_content=None))
    whole = sdk.CallToolResult(
        content=[sdk.ImageContent(type="image", data=DATA, mime_type="image/png")],
        structured_content={"a": None, "when": date(2026, 7, 28)},
        _meta={"example.com/k": 1},
    )
    result = call(whole, sdk.CallToolResult)
    assert result["content"] == [PICTURE]
    assert (result["isError"], result["structuredContent"]) == (False, {"a": None, "when": "2026-07-28"})
    assert result["_meta"]["example.com/k"] == 1


def test_a_whole_result_of_the_official_sdk_must_match_the_return_type() -> None:
    class Total(BaseModel):
        total: int

    assert call(sdk.CallToolResult(content=[], structured_content={"total": 1}), Total)["structuredContent"] == {
        "total": 1
    }
    with pytest.raises(DeveloperError, match="returned something else than its signature promises"):
        returning(sdk.CallToolResult(content=[], structured_content={"total": "1"}), Total).call({}, None)


class Elder(BaseModel, extra="allow"):
    """As the models of the official SDK were in 1.x."""

    model_config = {"populate_by_name": True}


def elder(name: str, **fields: object) -> Any:  # noqa: ANN401 - a model
    """Make a value of a model of the official SDK 1.x, which has camelCase names and keeps undefined members."""
    kind = type(name, (Elder,), {"__module__": "mcp.types", "__annotations__": dict.fromkeys(fields, Any)})
    return kind(**fields)


def test_models_of_the_official_sdk_1_are_accepted_too() -> None:
    image = elder("ImageContent", type="image", data=DATA, mimeType="image/png", annotations=None)
    whole = elder("CallToolResult", content=[image], structuredContent=None, isError=True, meta=None)
    assert call([image, "a"])["content"] == [PICTURE, text("a")]
    assert call(whole) == {**call(whole), "content": [PICTURE], "isError": True}
    assert "structuredContent" not in call(whole)

    def describe_nothing() -> None:
        """Do nothing."""

    misspelt = elder("ToolAnnotations", readonlyHint=True)
    with pytest.raises(TypeError, match="readonlyHint"):
        tool(annotations=misspelt)(describe_nothing)


def test_helpers_of_fastmcp_are_accepted_by_their_conversions() -> None:
    def helper(name: str, **members: object) -> Any:  # noqa: ANN401 - a stand-in for a class of FastMCP
        return type(name, (), {"__module__": "fastmcp.utilities.types", **members})()

    embedded = sdk.EmbeddedResource(type="resource", resource=sdk.TextResourceContents(uri="a://b", text="hi"))
    file = helper("File", to_resource_content=lambda _self: embedded)
    assert call([file])["content"] == [{"type": "resource", "resource": {"uri": "a://b", "text": "hi"}}]
    whole = helper(
        "ToolResult", content=[sdk.TextContent(type="text", text="hi")], structured_content={"a": 1}, meta=None
    )
    assert call(whole)["content"] == [text("hi")]
    assert call(whole)["structuredContent"] == {"a": 1}
    for unknown in (helper("File"), helper("ResourceResult", contents=[])):
        with pytest.raises(DeveloperError, match=r"fastmcp\.utilities\.types\."):
            returning(unknown).call({}, None)


class TextContent(BaseModel):
    """An author's own: a page of a content management system, with the very members of the protocol's."""

    type: Literal["text"] = "text"
    text: str


@pytest.mark.parametrize(
    "value",
    [TextContent(text="hi"), [TextContent(text="hi")], {"type": "text", "text": "hi"}, {"content": [text("hi")]}],
)
def test_an_authors_model_or_dict_is_a_value_whatever_its_fields_are_named(value: object) -> None:
    result = call(value, type(value) if isinstance(value, BaseModel) else ...)
    assert result["structuredContent"] in (text("hi"), [text("hi")], {"content": [text("hi")]})
    assert result["content"][0]["text"] != "hi"


def test_an_authors_class_with_a_method_named_wire_is_no_content() -> None:
    class Bank:
        def wire(self) -> dict[str, Any]:
            return {"type": "text", "text": "sent"}

    with pytest.raises(DeveloperError, match="Bank"):
        returning(Bank()).call({}, None)


def test_messages_of_the_official_sdk_are_messages_of_a_prompt() -> None:
    said = sdk.TextContent(type="text", text="hi")

    @prompt
    def greeting() -> object:
        return [
            sdk.PromptMessage(role="assistant", content=said),
            sdk.SamplingMessage(role="user", content=[said, said]),
            UserMessage("hi"),
            AssistantMessage(SdkImage(data=PNG)),
        ]

    @prompt
    def whole() -> object:
        return sdk.GetPromptResult(description="Says hi", messages=[sdk.PromptMessage(role="user", content=said)])

    messages = send(greeting, "prompts/get", {"name": "greeting"})["messages"]
    assert [message["role"] for message in messages] == ["assistant", "user", "user", "user", "assistant"]
    assert [message["content"] for message in messages] == [*[text("hi")] * 4, PICTURE]
    result = send(whole, "prompts/get", {"name": "whole"})
    assert (result["description"], len(result["messages"])) == ("Says hi", 1)


def test_a_resource_may_return_contents_of_the_official_sdk() -> None:
    held = sdk.TextResourceContents(uri="a://c", text="hi", mime_type="text/plain")
    expected = {"uri": "a://c", "mimeType": "text/plain", "text": "hi"}
    values: list[tuple[object, list[dict[str, Any]]]] = [
        (held, [expected]),
        ([held, ResourceContents("a://d", PNG)], [expected, {"uri": "a://d", "blob": DATA}]),
        (sdk.ReadResourceResult(contents=[held]), [expected]),
        ([ReadResourceContents(PNG, "image/png")], [{"uri": "a://b", "mimeType": "image/png", "blob": DATA}]),
        (bytearray(PNG), [{"uri": "a://b", "blob": DATA}]),
    ]
    for value, contents in values:
        assert send(reading(value), "resources/read", {"uri": "a://b"})["contents"] == contents


def reading(value: object) -> Handler[..., Any]:
    """Make a resource that holds a value."""

    @resource("a://b")
    def read() -> object:
        return value

    return read


@pytest.mark.parametrize(
    "handler",
    [
        returning(sdk.PromptMessage(role="user", content=sdk.TextContent(type="text", text="hunter2"))),
        returning(PromptMessage("user", "hunter2")),
        returning([ResourceContents("a://hunter2", "hunter2")]),
        returning(sdk.GetPromptResult(messages=[])),
        reading(sdk.TextContent(type="text", text="hunter2")),
        reading([ResourceContents("a://b", "x"), "hunter2"]),
        reading(CallToolResult("hunter2")),
        reading(Text("hunter2")),
    ],
)
def test_a_type_of_the_protocol_is_accepted_only_in_its_place(handler: Handler[..., Any]) -> None:
    with pytest.raises(DeveloperError) as caught:
        handler.call({"uri": "a://b"}, None)
    assert "hunter2" not in str(caught.value)


class Dull:
    """An object of an unknown class."""

    def __repr__(self) -> str:
        return "hunter2"


@dataclass
class Shot:
    """A value with a picture in it."""

    picture: Image


def produce() -> Any:  # noqa: ANN401 - a generator
    yield "hunter2"


async def later() -> str:
    return "hunter2"


LOOPED: list[Any] = []
LOOPED.append(LOOPED)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Dull(), r"\(tests\.protocol\.test_foreign_types\.Dull\)"),
        ({"a": [Dull()]}, r"\(dict that holds tests\.protocol\.test_foreign_types\.Dull\)"),
        (b"hunter2", "bytes: binary data goes into Image, Audio or ResourceContents"),
        ({"a": memoryview(b"hunter2")}, "dict that holds memoryview: binary data"),
        ({1: "a", "1": "b"}, "two keys that are the same in JSON"),
        ({(b"hunter2",): 1}, "dict that holds bytes"),
        (produce(), "a generator: return a list of what it yields"),
        ([produce], "a function itself"),
        (Dull, "a type itself"),
        ({"a": Image(PNG, "image/png")}, r"dict that holds mcp_functions\.protocol\.content\.Image"),
        ([[sdk.ImageContent(type="image", data=DATA, mime_type="image/png")]], "which cannot stand there"),
        (Shot(Image(PNG, "image/png")), r"Shot that holds mcp_functions\.protocol\.content\.Image"),
        ([Text("a"), {"b": Dull()}], "dict that holds"),
        (Text(5), "a member is missing or of a wrong type"),  # type: ignore[arg-type]
        (Image("hunter2", "image/png"), "its data must be bytes"),  # type: ignore[arg-type]
        (Text("a", annotations={"priority": 7}), "priority must be a number from 0 to 1"),
        (Text("a", meta={"example.com/k": Dull()}), "Text is no content as the protocol has it"),
        (sdk.TextContent.model_construct(type="text"), "a member is missing"),
        (CallToolResult("a", structured_content=Dull()), "Dull"),
        (CallToolResult("a", meta={"example.com/k": Dull()}), "Dull"),
        (LOOPED, "nested too deep, or holds itself"),
        (range(3), "range"),
        (io.StringIO("hunter2"), "a StringIO: return a list of what it yields"),
        ({"a": map(str, [1])}, "dict that holds a map: return a list"),
        (deque([b"hunter2"]), "deque that holds bytes"),
        (memoryview(b"hunter2"), "memoryview: binary data"),
        pytest.param(10**5000, "int with NaN, Infinity or too many digits", id="digits"),
    ],
)
def test_an_unsupported_result_is_refused_with_its_type_and_the_supported_ones(value: object, words: str) -> None:
    with pytest.raises(DeveloperError, match=words) as caught:
        returning(value).call({}, None)
    assert "hunter2" not in str(caught.value)
    assert DATA not in str(caught.value)


def test_an_error_names_a_coroutine_that_was_not_awaited() -> None:
    left = later()
    try:
        with pytest.raises(DeveloperError, match="list that holds a coroutine that nobody awaited"):
            returning([left]).call({}, None)
    finally:
        left.close()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (date(2026, 7, 28), "2026-07-28"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Path("a") / "b", "a/b"),
        (Decimal("1.50"), "1.50"),
        ({3}, [3]),
        ({date(2026, 7, 28): {2.5: None, True: 1}}, {"2026-07-28": {"2.5": None, "true": 1}}),
        (sdk.Tool(name="a", input_schema={"type": "object", "default": None}), None),
    ],
)
def test_every_value_that_pydantic_serializes_is_structured_content(value: object, plain: object) -> None:
    plain = plain or {"name": "a", "inputSchema": {"type": "object", "default": None}}
    assert call(value)["structuredContent"] == plain


def test_a_date_needs_no_import_of_pydantic_and_no_content_an_import_of_mcp() -> None:
    program = (
        "import datetime, sys\n"
        "from mcp_functions import Image, tool\n"
        "def when(): return [datetime.date(2026, 7, 28)]\n"
        "def shown(): return [Image(b'a', 'image/png'), 'b']\n"
        "assert 'pydantic_core' not in sys.modules\n"
        "print(tool(when).call({}, None)['structuredContent'], len(tool(shown).call({}, None)['content']))\n"
        "assert not {'mcp', 'mcp_types', 'fastmcp', 'pydantic'} & {*sys.modules}\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603
    assert (ran.stdout, ran.stderr) == ("['2026-07-28'] 2\n", "")


SHOT = Image(PNG, "image/png")


@pytest.mark.parametrize(
    ("annotation", "value", "content", "structured"),
    [
        (list, ["a", SHOT], [text("a"), PICTURE], ...),
        (list, [1], [text("[1]")], [1]),
        (list, [], [text("[]")], []),
        (tuple, ("a", SHOT), [text("a"), PICTURE], ...),
        (list[Image], [], [], ...),
        (list[sdk.ImageContent], [], [], ...),
        (list[sdk.ContentBlock], [], [], ...),
        (Sequence[sdk.ContentBlock], [], [], ...),
        (list[SdkImage], [SdkImage(data=PNG)], [PICTURE], ...),
        (tuple[Image, ...], (), [], ...),
        (tuple[str, Image], ("a", SHOT), [text("a"), PICTURE], ...),
        (list[str | Image], ["a"], [text("a")], ...),
        (list[str | Image | None], ["a", None], [text("a")], ...),
        (Annotated[list[str | Image], "what was found"], [], [], ...),
        (list[Image] | None, None, [], ...),
        (list[Image] | None, [], [], ...),
        (str | Image | None, "a", [text("a")], ...),
        (str | Image | None, SHOT, [PICTURE], ...),
        (str | Image | None, None, [], ...),
        (Image | dict[str, int], {"a": 1}, [text('{"a":1}')], {"a": 1}),
        (Image | dict[str, int], SHOT, [PICTURE], ...),
        (Image | list[int], [], [text("[]")], []),
        (Image | list[int], SHOT, [PICTURE], ...),
        (list[Image] | list[int], [1], [text("[1]")], [1]),
        (list[int], [], [text("[]")], []),
        (list[int], [1], [text("[1]")], [1]),
        (str | list[str], ["a"], [text('["a"]')], ["a"]),
        (sdk.CallToolResult | str, "a", [text("a")], ...),
    ],
)
def test_lists_and_unions_follow_the_return_annotation(
    annotation: object,
    value: object,
    content: list[dict[str, Any]],
    structured: object,
) -> None:
    handler = returning(value, annotation)
    result = send(handler, "tools/call", {"name": "returner"})
    assert result["content"] == content
    assert result.get("structuredContent", ...) == structured
    assert result["isError"] is False
    assert ("outputSchema" in handler.describe()) == (annotation == list[int])


@pytest.mark.parametrize(
    "annotation", [dict[str, Image], list[list[Image]], list[dict[str, sdk.TextContent]], str | dict[str, list[Image]]]
)
def test_content_inside_a_value_is_refused_where_it_is_promised(annotation: object) -> None:
    with pytest.raises(
        TypeError, match=r"test_foreign_types\.py:\d+: returner\(\): .*content is returned by itself or in a list"
    ):
        returning(None, annotation)


def test_a_client_of_2025_gets_the_same_content() -> None:
    @tool
    def shown(which: int) -> list:  # type: ignore[type-arg]
        return [["a", sdk.ImageContent(type="image", data=DATA, mime_type="image/png")], []][which]

    @tool
    def failed() -> sdk.CallToolResult:
        return sdk.CallToolResult(content=[sdk.TextContent(type="text", text="no")], is_error=True)

    @tool
    def pictures() -> list[Image]:
        return []

    client = World(shown, failed, pictures).client()
    client.initialize()

    def called(name: str, **arguments: int) -> dict[str, Any]:
        return client.result("tools/call", {"name": name, "arguments": arguments})

    assert called("shown", which=0)["content"] == [text("a"), PICTURE]
    assert called("shown", which=1) == {"content": [text("[]")], "isError": False}
    assert called("failed") == {"content": [text("no")], "isError": True}
    assert called("pictures") == {"content": [], "isError": False}


# Hints


@tool
def plain() -> str:
    """Return an empty text."""
    return ""


HINTS = {
    "title": "T",
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}


@pytest.mark.parametrize(
    "annotations",
    [
        HINTS,
        sdk.ToolAnnotations.model_validate(HINTS),
    ],
)
def test_hints_are_a_dict_or_a_model_and_appear_in_the_list(annotations: Any) -> None:  # noqa: ANN401
    handler = tool(annotations=annotations)(plain.function)
    (entry,) = send(handler, "tools/list", {})["tools"]
    assert entry["annotations"] == HINTS


def test_icons_and_annotations_of_the_official_sdk_appear_in_the_list() -> None:
    icon = sdk.Icon(src="https://x.example/i.png", mime_type="image/png", sizes=["48x48", "any"], theme="dark")
    marked = sdk.Annotations(audience=["user"], priority=1, last_modified="2026-07-28T12:00:00Z")
    expected = icon.model_dump(by_alias=True)

    @resource("a://b", icons=[icon], annotations=marked, meta={"example.com/k": date(2026, 7, 28)})
    def read() -> str:
        return ""

    (entry,) = send(read, "resources/list", {})["resources"]
    assert entry["icons"] == [expected]
    assert entry["annotations"] == {"audience": ["user"], "priority": 1, "lastModified": "2026-07-28T12:00:00Z"}
    assert entry["_meta"] == {"example.com/k": "2026-07-28"}
    (entry,) = send(tool(icons=(icon,))(plain.function), "tools/list", {})["tools"]
    assert entry["icons"] == [expected]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            {"annotations": {"readonlyHint": True}},
            "it says 'readonlyHint', which is not known; known are: title, readOnly",
        ),
        (
            {"annotations": sdk.ToolAnnotations.model_validate({"readonlyHint": True})},
            "a dict or a model with these members is needed: title, readOnlyHint",
        ),
        ({"annotations": sdk.Annotations(priority=1)}, "it says 'priority', which is not known"),
        (
            {"annotations": {"readOnlyHint": True, "read_only_hint": False}},
            "it says 'read_only_hint', which is not known",
        ),
        ({"annotations": {"readOnlyHint": "yes"}}, "readOnlyHint must be True or False"),
        ({"annotations": {"readOnlyHint": 1}}, "readOnlyHint must be True or False"),
        ({"annotations": {"title": 5}}, "title must be text"),
        ({"annotations": [("readOnlyHint", True)]}, "a dict or a model with these members is needed: title"),
        ({"annotations": sdk.ToolAnnotations}, "a dict or a model with these members is needed: title"),
        ({"icons": {"src": "https://x.example/i"}}, "icons is a list"),
        ({"icons": "https://x.example/i"}, "icons is a list"),
        ({"icons": ["https://x.example/i"]}, "an icon: a dict or a model with these members is needed: src"),
        ({"icons": [{"mimeType": "image/png"}]}, "an icon needs src"),
        ({"icons": [{"src": "javascript:alert(1)"}]}, "src must be an https:// or data: URI"),
        ({"icons": [{"src": "data:,", "sizes": "48x48"}]}, "sizes must be a list of sizes"),
        ({"icons": [{"src": "data:,", "sizes": ["48"]}]}, "sizes must be a list of sizes"),
        ({"icons": [{"src": "data:,", "theme": "blue"}]}, 'theme must be "light" or "dark"'),
        ({"icons": [{"src": "data:,", "mimetype": "image/png"}]}, "it says 'mimetype', which is not known"),
        ({"meta": [1]}, "meta is a dict"),
        ({"meta": {1: 1}}, "_meta key 1"),
        ({"meta": {"example.com/k": Dull()}}, "JSON cannot carry meta"),
        ({"meta": {"example.com/k": float("nan")}}, "JSON cannot carry meta"),
        ({"title": 5}, "title and description are text"),
        ({"description": b"x"}, "title and description are text"),
    ],
)
def test_an_invalid_option_of_a_decorator_is_refused_at_its_line(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint) as caught:
        tool(**options)(plain.function)
    assert f"{Path(__file__).name}:" in str(caught.value)


@pytest.mark.parametrize(
    ("annotations", "complaint"),
    [
        ({"audience": "user"}, 'audience must be a list of "user" and "assistant"'),
        ({"audience": ["model"]}, "audience must be"),
        ({"priority": 2}, "priority must be a number from 0 to 1"),
        ({"priority": True}, "priority must be a number from 0 to 1"),
        ({"lastModified": "yesterday"}, "lastModified must be a date"),
        ({"readOnlyHint": True}, "it says 'readOnlyHint', which is not known; known are: audience, priority"),
    ],
)
def test_invalid_annotations_of_a_resource_are_refused_too(annotations: Any, complaint: str) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=complaint):
        resource("a://b", annotations=annotations)(plain.function)


drawn = st.fixed_dictionaries(
    {},
    optional={
        "src": st.sampled_from(["https://x.example/i", "data:,", 5, None, ""]),
        "mimeType": st.sampled_from(["image/png", 5, None]),
        "sizes": st.sampled_from([["48x48"], ["any"], [], "48x48", [5], None]),
        "theme": st.sampled_from(["light", "dark", "blue", None]),
    },
)


@given(drawn)
def test_the_official_types_take_every_icon_that_a_decorator_takes(icon: dict[str, Any]) -> None:
    given_ = {name: value for name, value in icon.items() if value is not None}
    try:
        handler = tool(icons=[icon])(plain.function)  # type: ignore[list-item]
    except TypeError:
        if given_.get("src"):
            with pytest.raises(ValueError, match="validation error"):
                sdk.Icon.model_validate(given_)
        return
    (entry,) = send(handler, "tools/list", {})["tools"]
    assert entry["icons"] == [given_]


# Sampling


def test_a_question_to_the_model_takes_messages_and_tools_of_the_official_sdk() -> None:
    said = sdk.SamplingMessage(role="user", content=sdk.TextContent(type="text", text="hi"))
    known = sdk.Tool(name="look", input_schema={"type": "object"})

    @tool
    def think(*, sample: Sample) -> str:
        options = {"tools": [known], "toolChoice": sdk.ToolChoice(mode="auto")}
        return str(sample("q", [said, {"role": "assistant", "content": text("yes")}], max_tokens=9, **options)["role"])

    @tool
    def wrong(*, sample: Sample) -> str:
        return str(sample("q", ["hunter2"], max_tokens=9)["role"])  # type: ignore[list-item]

    asked = App(think).call("think", capabilities={"sampling": {"tools": {}}})["result"]["inputRequests"]["q"]
    assert asked["params"] == {
        "messages": [{"role": "user", "content": text("hi")}, {"role": "assistant", "content": text("yes")}],
        "tools": [{"name": "look", "inputSchema": {"type": "object"}}],
        "toolChoice": {"mode": "auto"},
        "maxTokens": 9,
    }
    assert "hunter2" not in str(App(wrong).call("wrong", capabilities={"sampling": {}}))


def test_a_result_of_the_sdk_is_read_by_its_new_names_because_fastmcp_warns_of_the_old_ones() -> None:
    pytest.importorskip("fastmcp")  # its import changes the models of the SDK

    @tool
    def both() -> Any:  # noqa: ANN401
        return sdk.CallToolResult(content=[], structured_content={"a": 1}, is_error=True)

    assert both.call({}, None) == {"content": [], "structuredContent": {"a": 1}, "isError": True}
