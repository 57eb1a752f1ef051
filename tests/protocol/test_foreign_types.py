"""A function may return types of the official SDK and of FastMCP. Any other value is JSON, or an error names its class.

Each test makes a handler that returns one value, and sends it a request; the official types check the response
(`wire.Reply`). The decorators read real annotations at run time, so this module does not import `annotations` from
`__future__`.
"""

import base64
import io
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import mcp_types as sdk
import pytest
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Audio as SdkAudio
from mcp.server.mcpserver import Image as SdkImage
from mcp.server.mcpserver.prompts.base import AssistantMessage, UserMessage
from pydantic import BaseModel

from mcp_functions import Sample, prompt, resource, tool
from mcp_functions.content import CallToolResult, Image, PromptMessage, ResourceContents, Text
from mcp_functions.handlers.base import Handler
from mcp_functions.protocol.errors import DeveloperError
from tests.legacy.deployment import Deployment
from tests.support.dispatching import Client

PNG = b"\x89PNG"
DATA = base64.b64encode(PNG).decode()
ABSENT: Any = ...  # no return annotation, or no structuredContent in the result


def send(handler: Handler[..., Any], method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send one request to a function with this handler; return the result."""
    return Client(handler).send(method, params).result


def tool_returning(value: object, annotation: object = ABSENT) -> Handler[..., Any]:
    """Make a tool that returns this value, with this return annotation."""

    def returner():  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line says it
        return value

    if annotation is not ABSENT:
        returner.__annotations__["return"] = annotation
    return tool(returner)


def call(value: object, annotation: object = ABSENT) -> dict[str, Any]:
    return send(tool_returning(value, annotation), "tools/call", {"name": "returner"})


def resource_returning(value: object) -> Handler[..., Any]:
    """Make a resource that returns this value."""

    @resource("a://b")
    def read() -> object:
        return value

    return read


def text(words: str) -> dict[str, Any]:
    """Write a text block as JSON."""
    return {"type": "text", "text": words}


IMAGE = Image(PNG, "image/png")
IMAGE_JSON = {"type": "image", "data": DATA, "mimeType": "image/png"}
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
    (sdk.ImageContent(type="image", data=DATA, mime_type="image/png"), IMAGE_JSON),
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
    (SdkImage(data=PNG, format="png"), IMAGE_JSON),
    (SdkAudio(data=PNG, format="wav"), {"type": "audio", "data": DATA, "mimeType": "audio/wav"}),
]


every_block = pytest.mark.parametrize(("value", "block"), BLOCKS)


@every_block
def test_a_tool_may_return_one_block_of_the_sdk(value: object, block: dict[str, Any]) -> None:
    result = call(value)
    assert result["content"] == [block]
    assert "structuredContent" not in result


@every_block
def test_a_tool_may_return_a_block_of_the_sdk_among_others(value: object, block: dict[str, Any]) -> None:
    content: list[Any] = ["see:", value, IMAGE]
    expected = [text("see:"), block, IMAGE_JSON]
    assert call(content)["content"] == expected
    assert call(tuple(content))["content"] == expected
    assert call(CallToolResult(content))["content"] == expected


@every_block
def test_a_return_annotation_may_name_a_type_of_the_sdk(value: object, block: dict[str, Any]) -> None:
    assert call(value, type(value))["content"] == [block]
    assert call(("a", value), tuple[str, type(value)])["content"] == [text("a"), block]  # type: ignore[misc]


@every_block
def test_a_prompt_may_return_a_block_of_the_sdk(value: Any, block: dict[str, Any]) -> None:  # noqa: ANN401
    @prompt
    def page() -> object:
        return [value, PromptMessage("assistant", value)]

    messages = send(page, "prompts/get", {"name": "page"})["messages"]
    assert messages == [{"role": "user", "content": block}, {"role": "assistant", "content": block}]


def test_a_tool_may_return_a_whole_result_of_the_sdk() -> None:
    result = call(
        sdk.CallToolResult(
            content=[sdk.ImageContent(type="image", data=DATA, mime_type="image/png")],
            structured_content={"a": None, "when": date(2026, 7, 28)},
            _meta={"example.com/k": 1},
        )
    )
    assert result["content"] == [IMAGE_JSON]
    assert result["structuredContent"] == {"a": None, "when": "2026-07-28"}
    assert result["isError"] is False
    assert result["_meta"]["example.com/k"] == 1


def test_an_error_of_the_sdk_has_no_structured_content() -> None:
    result = call(sdk.CallToolResult(content=[], structured_content=None, is_error=True))
    assert result["isError"] is True
    assert "structuredContent" not in result


def test_a_whole_result_of_the_official_sdk_must_match_the_return_type() -> None:
    class Total(BaseModel):
        total: int

    right = sdk.CallToolResult(content=[], structured_content={"total": 1})
    assert call(right, Total)["structuredContent"] == {"total": 1}
    wrong = sdk.CallToolResult(content=[], structured_content={"total": "one"})
    with pytest.raises(DeveloperError, match="returned something else than its signature promises"):
        tool_returning(wrong, Total).call({}, None)


class Sdk1Model(BaseModel, extra="allow"):
    """A base like that of the SDK's models in version 1."""

    model_config = {"populate_by_name": True}


def sdk_1_model(name: str, **fields: object) -> Any:  # noqa: ANN401 - a model
    """Make a value of a model of version 1 of the SDK, which has camelCase names and keeps unknown members."""
    model = type(name, (Sdk1Model,), {"__module__": "mcp.types", "__annotations__": dict.fromkeys(fields, Any)})
    return model(**fields)


def test_a_tool_may_return_types_of_version_1_of_the_sdk() -> None:
    image = sdk_1_model("ImageContent", type="image", data=DATA, mimeType="image/png", annotations=None)
    result = call(sdk_1_model("CallToolResult", content=[image, "a"], structuredContent=None, isError=True, meta=None))
    assert result["content"] == [IMAGE_JSON, text("a")]
    assert result["isError"] is True
    assert "structuredContent" not in result


def fastmcp_helper(name: str, **members: object) -> Any:  # noqa: ANN401 - an object of any class
    """Make an object of a class as FastMCP has it."""
    return type(name, (), {"__module__": "fastmcp.utilities.types", **members})()


def test_a_helper_of_fastmcp_is_converted_by_its_own_method() -> None:
    embedded = sdk.EmbeddedResource(type="resource", resource=sdk.TextResourceContents(uri="a://b", text="hi"))
    file = fastmcp_helper("File", to_resource_content=lambda _self: embedded)
    assert call([file])["content"] == [{"type": "resource", "resource": {"uri": "a://b", "text": "hi"}}]


def test_a_tool_may_return_a_whole_result_of_fastmcp() -> None:
    content = [sdk.TextContent(type="text", text="hi")]
    result = call(fastmcp_helper("ToolResult", content=content, structured_content={"a": 1}, meta=None))
    assert result["content"] == [text("hi")]
    assert result["structuredContent"] == {"a": 1}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(fastmcp_helper("File"), id="no conversion"),
        pytest.param(fastmcp_helper("ResourceResult", contents=[]), id="no result of a tool"),
    ],
)
def test_the_error_names_the_class_of_an_unknown_helper_of_fastmcp(value: object) -> None:
    with pytest.raises(DeveloperError, match=r"fastmcp\.utilities\.types\."):
        tool_returning(value).call({}, None)


class TextContent(BaseModel):
    """A model of an author, with the fields of the protocol's TextContent."""

    type: Literal["text"] = "text"
    text: str


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        (TextContent(text="hi"), text("hi")),
        ([TextContent(text="hi")], [text("hi")]),
        (text("hi"), text("hi")),
        ({"content": [text("hi")]}, {"content": [text("hi")]}),
    ],
)
def test_an_authors_model_or_dict_is_a_value_whatever_its_fields_are_named(value: object, structured: object) -> None:
    result = call(value)
    assert result["structuredContent"] == structured
    assert result["content"][0]["text"] != "hi"


def test_an_authors_class_with_a_method_named_wire_is_no_content() -> None:
    class Bank:
        def wire(self) -> dict[str, Any]:
            return {"type": "text", "text": "sent"}

    with pytest.raises(DeveloperError, match="Bank"):
        tool_returning(Bank()).call({}, None)


HI = sdk.TextContent(type="text", text="hi")


@pytest.mark.parametrize(
    ("value", "role", "content"),
    [
        (sdk.PromptMessage(role="assistant", content=HI), "assistant", text("hi")),
        (UserMessage("hi"), "user", text("hi")),
        (AssistantMessage(SdkImage(data=PNG)), "assistant", IMAGE_JSON),
    ],
)
def test_a_prompt_may_return_a_message_of_the_sdk(value: object, role: str, content: dict[str, Any]) -> None:
    @prompt
    def greeting() -> object:
        return [value]

    messages = send(greeting, "prompts/get", {"name": "greeting"})["messages"]
    assert messages == [{"role": role, "content": content}]


def test_each_block_of_a_sampling_message_is_a_message_of_a_prompt() -> None:
    @prompt
    def greeting() -> object:
        return sdk.SamplingMessage(role="user", content=[HI, HI])

    messages = send(greeting, "prompts/get", {"name": "greeting"})["messages"]
    assert messages == [{"role": "user", "content": text("hi")}] * 2


def test_a_prompt_may_return_a_whole_result_of_the_sdk() -> None:
    @prompt
    def greeting() -> object:
        return sdk.GetPromptResult(description="Says hi", messages=[sdk.PromptMessage(role="user", content=HI)])

    result = send(greeting, "prompts/get", {"name": "greeting"})
    assert result["description"] == "Says hi"
    assert result["messages"] == [{"role": "user", "content": text("hi")}]


def test_a_whole_result_of_a_prompt_may_have_one_message_that_stands_in_no_list() -> None:
    @prompt
    def greeting() -> object:
        return sdk.GetPromptResult.model_construct(messages="hi")  # the SDK checks no type here

    assert send(greeting, "prompts/get", {"name": "greeting"})["messages"] == [{"role": "user", "content": text("hi")}]


@pytest.mark.parametrize("value", [sdk.GetPromptResult(messages=[]), sdk.ReadResourceResult(contents=[])])
def test_a_tool_that_returns_the_result_of_a_prompt_or_resource_is_told_what_a_tool_returns(value: object) -> None:
    with pytest.raises(DeveloperError, match="a tool returns text, content, a list with"):
        tool_returning(value).call({}, None)


CONTENTS = sdk.TextResourceContents(uri="a://c", text="hi", mime_type="text/plain")
CONTENTS_JSON = {"uri": "a://c", "mimeType": "text/plain", "text": "hi"}


@pytest.mark.parametrize(
    ("value", "contents"),
    [
        (CONTENTS, [CONTENTS_JSON]),
        ([CONTENTS, ResourceContents("a://d", PNG)], [CONTENTS_JSON, {"uri": "a://d", "blob": DATA}]),
        (sdk.ReadResourceResult(contents=[CONTENTS]), [CONTENTS_JSON]),
        ([ReadResourceContents(PNG, "image/png")], [{"uri": "a://b", "mimeType": "image/png", "blob": DATA}]),
        (bytearray(PNG), [{"uri": "a://b", "blob": DATA}]),
    ],
)
def test_a_resource_may_return_contents_of_the_sdk(value: object, contents: list[dict[str, Any]]) -> None:
    assert send(resource_returning(value), "resources/read", {"uri": "a://b"})["contents"] == contents


@pytest.mark.parametrize(
    "handler",
    [
        tool_returning(sdk.PromptMessage(role="user", content=sdk.TextContent(type="text", text="hunter2"))),
        tool_returning(PromptMessage("user", "hunter2")),
        tool_returning([ResourceContents("a://hunter2", "hunter2")]),
        tool_returning(sdk.GetPromptResult(messages=[])),
        resource_returning(sdk.TextContent(type="text", text="hunter2")),
        resource_returning([ResourceContents("a://b", "x"), "hunter2"]),
        resource_returning(CallToolResult("hunter2")),
        resource_returning(Text("hunter2")),
    ],
)
def test_a_message_in_a_tool_or_content_in_a_resource_is_refused(handler: Handler[..., Any]) -> None:
    with pytest.raises(DeveloperError) as caught:
        handler.call({"uri": "a://b"}, None)
    assert "hunter2" not in str(caught.value)


class Unknown:
    """A class that pydantic cannot serialize."""

    def __repr__(self) -> str:
        return "hunter2"


@dataclass
class Photo:
    """A value with content inside."""

    image: Image


def generate() -> Any:  # noqa: ANN401 - a generator
    yield "hunter2"


async def coroutine() -> str:
    return "hunter2"


CYCLIC_LIST: list[Any] = []
CYCLIC_LIST.append(CYCLIC_LIST)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (Unknown(), r"\(tests\.protocol\.test_foreign_types\.Unknown\)"),
        ({"a": [Unknown()]}, r"\(dict that holds tests\.protocol\.test_foreign_types\.Unknown\)"),
        (b"hunter2", "bytes: binary data goes into Image, Audio or ResourceContents"),
        ({"a": memoryview(b"hunter2")}, "dict that holds memoryview: binary data"),
        ({1: "a", "1": "b"}, "two keys that are the same in JSON"),
        ({(b"hunter2",): 1}, "dict that holds bytes"),
        (generate(), "a generator: return a list of what it yields"),
        ([generate], "a function itself"),
        (Unknown, "a type itself"),
        ({"a": IMAGE}, r"dict that holds mcp_functions\.protocol\.content\.Image"),
        ([[sdk.ImageContent(type="image", data=DATA, mime_type="image/png")]], "is not a JSON value"),
        (Photo(IMAGE), r"Photo that holds mcp_functions\.protocol\.content\.Image"),
        ([Text("a"), {"b": Unknown()}], "dict that holds"),
        (Text(5), "a member is missing or of a wrong type"),  # type: ignore[arg-type]
        (Image("hunter2", "image/png"), "its data must be bytes"),  # type: ignore[arg-type]
        (Text("a", annotations={"priority": 7}), "priority must be a number from 0 to 1"),
        (Text("a", meta={"example.com/k": Unknown()}), "Text is no content as the protocol has it"),
        (sdk.TextContent.model_construct(type="text"), "a member is missing"),
        (CallToolResult("a", structured_content=Unknown()), "Unknown"),
        (CallToolResult("a", meta={"example.com/k": Unknown()}), "Unknown"),
        (CYCLIC_LIST, "nested too deep, or holds itself"),
        (io.StringIO("hunter2"), "a StringIO: return a list of what it yields"),
        ({"a": map(str, [1])}, "dict that holds a map: return a list"),
        (deque([b"hunter2"]), "deque that holds bytes"),
        (memoryview(b"hunter2"), "memoryview: binary data"),
        pytest.param(10**5000, "int with NaN, Infinity or too many digits", id="an integer of 5001 digits"),
    ],
)
def test_the_error_for_an_unsupported_value_names_its_class_but_does_not_quote_it(value: object, error: str) -> None:
    with pytest.raises(DeveloperError, match=error) as caught:
        tool_returning(value).call({}, None)
    assert "hunter2" not in str(caught.value)
    assert DATA not in str(caught.value)


def test_an_error_names_a_coroutine_that_was_not_awaited() -> None:
    value = coroutine()
    with closing(value), pytest.raises(DeveloperError, match="list that holds a coroutine that nobody awaited"):
        tool_returning([value]).call({}, None)


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        (date(2026, 7, 28), "2026-07-28"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Path("a") / "b", "a/b"),
        (Decimal("1.50"), "1.50"),
        ({3}, [3]),
        ({date(2026, 7, 28): {2.5: None, True: 1}}, {"2026-07-28": {"2.5": None, "true": 1}}),
        (
            sdk.Tool(name="a", input_schema={"type": "object", "default": None}),
            {"name": "a", "inputSchema": {"type": "object", "default": None}},
        ),
    ],
)
def test_every_value_that_pydantic_serializes_is_structured_content(value: object, structured: object) -> None:
    assert call(value)["structuredContent"] == structured


def test_a_date_and_an_image_import_neither_pydantic_nor_the_sdk() -> None:
    program = (
        "import datetime, sys\n"
        "from mcp_functions import tool\nfrom mcp_functions.content import Image\n"
        "def when(): return [datetime.date(2026, 7, 28)]\n"
        "def shown(): return [Image(b'a', 'image/png'), 'b']\n"
        "assert 'pydantic_core' not in sys.modules\n"
        "print(tool(when).call({}, None)['structuredContent'], len(tool(shown).call({}, None)['content']))\n"
        "assert not {'mcp', 'mcp_types', 'fastmcp', 'pydantic'} & {*sys.modules}\n"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603
    assert (process.stdout, process.stderr) == ("['2026-07-28'] 2\n", "")


@pytest.mark.parametrize(
    ("annotation", "value", "content", "structured"),
    [
        (list, ["a", IMAGE], [text("a"), IMAGE_JSON], ABSENT),
        (list, [1], [text("[1]")], [1]),
        (list, [], [text("[]")], []),
        (tuple, ("a", IMAGE), [text("a"), IMAGE_JSON], ABSENT),
        (list[Image], [], [], ABSENT),
        (list[sdk.ImageContent], [], [], ABSENT),
        (list[sdk.ContentBlock], [], [], ABSENT),
        (Sequence[sdk.ContentBlock], [], [], ABSENT),
        (list[SdkImage], [SdkImage(data=PNG)], [IMAGE_JSON], ABSENT),
        (tuple[Image, ...], (), [], ABSENT),
        (tuple[str, Image], ("a", IMAGE), [text("a"), IMAGE_JSON], ABSENT),
        (list[str | Image], ["a"], [text("a")], ABSENT),
        (list[str | Image | None], ["a", None], [text("a")], ABSENT),
        (Annotated[list[str | Image], "what was found"], [], [], ABSENT),
        (list[Image] | None, None, [], ABSENT),
        (list[Image] | None, [], [], ABSENT),
        (str | Image | None, "a", [text("a")], ABSENT),
        (str | Image | None, IMAGE, [IMAGE_JSON], ABSENT),
        (str | Image | None, None, [], ABSENT),
        (Image | dict[str, int], {"a": 1}, [text('{"a":1}')], {"a": 1}),
        (Image | dict[str, int], IMAGE, [IMAGE_JSON], ABSENT),
        (Image | list[int], [], [text("[]")], []),
        (Image | list[int], IMAGE, [IMAGE_JSON], ABSENT),
        (list[Image] | list[int], [1], [text("[1]")], [1]),
        (list[int], [], [text("[]")], []),
        (list[int], [1], [text("[1]")], [1]),
        (str | list[str], ["a"], [text('["a"]')], ["a"]),
        (sdk.CallToolResult | str, "a", [text("a")], ABSENT),
    ],
)
def test_the_return_annotation_decides_whether_a_list_or_a_union_is_content(
    annotation: object, value: object, content: list[dict[str, Any]], structured: object
) -> None:
    result = call(value, annotation)
    assert result["content"] == content
    assert result.get("structuredContent", ABSENT) == structured


@pytest.mark.parametrize("annotation", [list, list[Image], Image | list[int], list[Image] | list[int]])
def test_a_return_annotation_that_allows_content_publishes_no_output_schema(annotation: object) -> None:
    assert "outputSchema" not in tool_returning(None, annotation).describe()


@pytest.mark.parametrize(
    "annotation", [dict[str, Image], list[list[Image]], list[dict[str, sdk.TextContent]], str | dict[str, list[Image]]]
)
def test_a_return_annotation_with_content_inside_a_value_is_refused(annotation: object) -> None:
    with pytest.raises(
        TypeError, match=r"test_foreign_types\.py:\d+: returner\(\): .*content is returned by itself or in a list"
    ):
        tool_returning(None, annotation)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (
            ["a", sdk.ImageContent(type="image", data=DATA, mime_type="image/png")],
            {"content": [text("a"), IMAGE_JSON], "isError": False},
        ),
        (
            sdk.CallToolResult(content=[sdk.TextContent(type="text", text="no")], is_error=True),
            {"content": [text("no")], "isError": True},
        ),
    ],
)
def test_a_client_of_2025_gets_the_same_content(value: object, result: dict[str, Any]) -> None:
    client = Deployment(tool_returning(value)).client()
    client.initialize()
    assert client.result("tools/call", {"name": "returner", "arguments": {}}) == result


def test_a_sampling_request_accepts_messages_and_tools_of_the_sdk() -> None:
    hi = sdk.SamplingMessage(role="user", content=sdk.TextContent(type="text", text="hi"))
    look = sdk.Tool(name="look", input_schema={"type": "object"})

    @tool
    def think(*, sample: Sample) -> str:
        messages: list[Any] = [hi, {"role": "assistant", "content": text("yes")}]
        return str(sample("q", messages, max_tokens=9, tools=[look], toolChoice=sdk.ToolChoice(mode="auto")))

    request = Client(think).call("think", capabilities={"sampling": {"tools": {}}}).result["inputRequests"]["q"]
    assert request["params"] == {
        "messages": [{"role": "user", "content": text("hi")}, {"role": "assistant", "content": text("yes")}],
        "tools": [{"name": "look", "inputSchema": {"type": "object"}}],
        "toolChoice": {"mode": "auto"},
        "maxTokens": 9,
    }


def test_a_wrong_message_of_a_sampling_request_is_not_quoted() -> None:
    @tool
    def think(*, sample: Sample) -> str:
        return str(sample("q", ["hunter2"], max_tokens=9))  # type: ignore[list-item]

    assert "hunter2" not in str(Client(think).call("think", capabilities={"sampling": {}}))


def test_a_result_of_the_sdk_causes_no_warning_of_fastmcp() -> None:
    pytest.importorskip("fastmcp")  # its import changes the models of the SDK
    value = sdk.CallToolResult(content=[], structured_content={"a": 1}, is_error=True)
    assert tool_returning(value).call({}, None) == {"content": [], "structuredContent": {"a": 1}, "isError": True}
