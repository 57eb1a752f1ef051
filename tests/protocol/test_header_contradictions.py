"""A header that contradicts the body is refused, in every protocol version and on every path through the deployment.

Hypothesis draws a message of any protocol version, with the headers that repeat parts of it. `function` is a Lambda
with a tool and a prompt, called directly or through the front door. The decorators read real annotations at run time,
so this module does not import `annotations` from `__future__`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp_functions import prompt, tool
from mcp_functions.annotated import Header
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol import headers
from tests.support import wire
from tests.support.placements import PLACEMENTS, place

HEADER_MISMATCH = -32020
NO_META = "2026-07-28 without _meta"
CURRENT_VERSIONS = [wire.VERSION, NO_META]
EARLIER_VERSIONS = [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]  # None: the header is absent
REQUESTS: list[tuple[str, dict[str, Any], str | None]] = [  # method, params, the value of Mcp-Name
    ("tools/call", {"name": "move", "arguments": {"to": "a", "region": "us"}}, "move"),
    ("prompts/get", {"name": "brief", "arguments": {"topic": "x"}}, "brief"),
    ("resources/read", {"uri": "notes://a"}, "notes://a"),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "brief"}, "argument": {"name": "topic", "value": ""}},
        "brief",
    ),
    ("tools/list", {}, None),
    ("no/such", {}, None),
]
HEADER_VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)


@tool
def move(to: str, region: Annotated[str, Header("Region")] = "eu") -> str:
    return f"{to} in {region}"


@prompt
def brief(topic: str) -> str:
    return topic


@dataclass(frozen=True)
class Post:
    """A body, the headers that its version requires, and the headers that repeat parts of the body."""

    body: dict[str, Any]
    required: dict[str, str]
    repeated: dict[str, str]


@st.composite
def posts(draw: st.DrawFn, versions: Sequence[str | None]) -> Post:
    method, params, name = draw(st.sampled_from(REQUESTS))
    version = draw(st.sampled_from(versions))
    kind = draw(st.sampled_from(["request", "notification"]))

    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    if version == wire.VERSION:
        message = wire.message(method, params, id=7)
    if kind == "notification":
        del message["id"]

    required = {"content-type": "application/json"}
    if version is not None:
        required["mcp-protocol-version"] = version.removesuffix(" without _meta")

    repeated = {"mcp-method": method}
    if name is not None:
        repeated["mcp-name"] = wire.header(name)
    if method == "tools/call" and kind != "notification" and version != NO_META:
        repeated["mcp-param-region"] = "us"

    return Post(message, required, repeated)


def some(headers: dict[str, str]) -> st.SearchStrategy[dict[str, str]]:
    """Draw some of the headers."""
    optional = {name: st.just(value) for name, value in headers.items()}
    return st.fixed_dictionaries({}, optional=optional)


@pytest.fixture(scope="module", params=PLACEMENTS)
def function(request: pytest.FixtureRequest) -> LambdaFunction:
    return place(request.param, move, brief)


def send(function: LambdaFunction, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and the JSON-RPC response, {} if there is none."""
    response = function(wire.event(json.dumps(body), headers=headers), wire.Context("local_all"))
    return response["statusCode"], json.loads(response["body"] or "{}")


def assert_no_header_mismatch(response: dict[str, Any]) -> None:
    assert response.get("error", {}).get("code") != HEADER_MISMATCH


def is_same_text(one: str, other: str) -> bool:
    try:
        return headers.decode(one) == headers.decode(other)
    except ValueError:
        return False


@given(posts([*CURRENT_VERSIONS, *EARLIER_VERSIONS]), HEADER_VALUES, st.data())
def test_a_header_that_contradicts_the_body_is_refused_in_every_version(
    function: LambdaFunction, post: Post, value: str, data: st.DataObject
) -> None:
    header = data.draw(st.sampled_from(sorted(post.repeated)))
    assume(not is_same_text(value, post.repeated[header]))
    status, response = send(function, post.body, {**post.required, **data.draw(some(post.repeated)), header: value})
    assert status == 400
    assert response["error"]["code"] == HEADER_MISMATCH
    assert response.get("id") == post.body.get("id")


@given(posts(CURRENT_VERSIONS))
def test_matching_headers_are_accepted(function: LambdaFunction, post: Post) -> None:
    _status, response = send(function, post.body, {**post.required, **post.repeated})
    assert_no_header_mismatch(response)


@given(posts(EARLIER_VERSIONS), st.data())
def test_a_client_of_an_earlier_version_needs_none_of_the_headers(
    function: LambdaFunction, post: Post, data: st.DataObject
) -> None:
    _status, response = send(function, post.body, {**post.required, **data.draw(some(post.repeated))})
    assert_no_header_mismatch(response)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "v999"])
def test_a_notification_whose_version_header_differs_from_its_meta_is_refused(
    version: str, function: LambdaFunction
) -> None:
    message = wire.message("notifications/progress", {"progressToken": 1, "progress": 1})
    del message["id"]
    headers = {"mcp-method": "notifications/progress", "mcp-protocol-version": version}
    status, response = send(function, message, headers)
    assert status == 400
    assert response["error"]["code"] == HEADER_MISMATCH


def test_a_client_of_2025_that_sends_the_header_of_an_argument_must_send_the_argument(function: LambdaFunction) -> None:
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "move", "arguments": {"to": "a"}}}
    _status, response = send(function, call, {"mcp-param-region": "us"})
    assert response["error"]["code"] == HEADER_MISMATCH
    _status, response = send(function, call, {"mcp-param-other": "us"})
    assert response["result"]["isError"] is False
