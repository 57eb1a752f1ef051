"""Headers repeat the body, and the order of the checks is the specification's.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import base64
import json
from functools import cache
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions import Header, prompt, tool
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol import header_parameters, headers
from mcp_functions.protocol.errors import HeaderMismatch, InvalidParams, UnsupportedProtocolVersion
from tests.support import wire
from tests.support.placements import PLACEMENTS, place

CALL = {"name": "add", "arguments": {}}


def admit(message: Any, **changed: str | None) -> None:  # noqa: ANN401 - a message as it came
    sent = {**wire.headers(message), **{name.replace("_", "-"): value for name, value in changed.items()}}
    headers.check_request(message, {name: value for name, value in sent.items() if value is not None})


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", CALL),
        ("prompts/get", {"name": "brief"}),
        ("resources/read", {"uri": "a://b?c=ż"}),
        ("tools/list", {}),
        ("server/discover", {}),
        ("no/such/method", {"name": "x"}),
    ],
)
def test_a_request_with_matching_headers_is_admitted(method: str, params: dict[str, Any]) -> None:
    admit(wire.message(method, params))


@pytest.mark.parametrize("name", ["mcp_protocol_version", "mcp_method", "mcp_name"])
def test_a_missing_header_is_named(name: str) -> None:
    with pytest.raises(HeaderMismatch, match=r"^The header (MCP-Protocol-Version|Mcp-Method|Mcp-Name) is missing$"):
        admit(wire.message("tools/call", CALL), **{name: None})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mcp_protocol_version", "2025-11-25"),
        ("mcp_protocol_version", ""),
        ("mcp_method", "TOOLS/CALL"),
        ("mcp_method", "tools/list"),
        ("mcp_name", "Add"),
        ("mcp_name", "add,add"),  # sent twice
        ("mcp_name", ""),
    ],
)
def test_a_header_that_differs_from_the_body_is_refused(name: str, value: str) -> None:
    with pytest.raises(HeaderMismatch, match="does not say what the body says"):
        admit(wire.message("tools/call", CALL), **{name: value})


def test_blanks_around_a_value_do_not_count() -> None:
    admit(wire.message("tools/call", CALL), mcp_name=" \tadd ", mcp_method="tools/call\t")


def test_other_methods_have_no_name_to_repeat() -> None:
    admit(wire.message("tools/list", {"name": "x"}), mcp_name="whatever")


def test_the_method_judges_a_name_that_is_no_string() -> None:
    admit(wire.message("tools/call", {"name": 7}))


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        (None, "params must hold _meta"),
        ([], "params must hold _meta"),
        ({}, "params._meta must hold io.modelcontextprotocol/protocolVersion, a string"),
        ({"protocolVersion": 2}, "params._meta must hold io.modelcontextprotocol/protocolVersion, a string"),
        ({"protocolVersion": "x"}, "params._meta must hold io.modelcontextprotocol/clientCapabilities, an object"),
        (
            {"protocolVersion": "x", "clientCapabilities": []},
            "params._meta must hold io.modelcontextprotocol/clientCapabilities, an object",
        ),
    ],
)
def test_missing_members_of_meta_are_reported_before_headers_are_read(meta: Any, text: str) -> None:  # noqa: ANN401
    named = {wire.PREFIX + key: value for key, value in meta.items()} if isinstance(meta, dict) else meta
    with pytest.raises(InvalidParams) as caught:
        headers.check_request({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": named}}, {})
    assert caught.value.message.startswith(text)


def test_client_info_is_not_required() -> None:
    message = wire.message("tools/list")
    assert wire.PREFIX + "clientInfo" not in message["params"]["_meta"]
    admit(message)


def test_an_unsupported_revision_is_refused_with_the_supported_ones() -> None:
    with pytest.raises(UnsupportedProtocolVersion) as caught:
        admit(wire.message("tools/list", version="v999"))
    assert caught.value.data == {"supported": ["2026-07-28"], "requested": "v999"}


def test_a_header_that_disagrees_counts_before_an_unknown_revision() -> None:
    with pytest.raises(HeaderMismatch):
        admit(wire.message("tools/list", version="v999"), mcp_protocol_version="2026-07-28")


def test_a_missing_name_counts_before_an_unknown_revision() -> None:
    with pytest.raises(HeaderMismatch):
        admit(wire.message("tools/call", CALL, version="v999"), mcp_name=None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (" padded\t", "padded"),
        ("=?base64?xbzDs8WCdw==?=", "żółw"),
        ("=?base64??=", ""),
        ("=?BASE64?xbzDs8WCdw==?=", "=?BASE64?xbzDs8WCdw==?="),
        ("=?base64?xbzDs8WCdw==", "=?base64?xbzDs8WCdw=="),
        ("=?base64?=", "=?base64?="),
        ("=?utf-8?x?=", "=?utf-8?x?="),
    ],
)
def test_a_value_is_decoded_only_between_exact_markers(value: str, text: str) -> None:
    assert headers.decode(value) == text


@pytest.mark.parametrize(
    "encoded", ["YQ", "YQ=", "YQ===", "YR==", "Y Q==", "Y-_=", "YQ==YQ==", "=YQ=", "/w==", "ż", "Y"]
)
def test_base64_that_is_not_exact_is_refused(encoded: str) -> None:
    with pytest.raises(HeaderMismatch, match="The header Mcp-Name is not valid base64"):
        admit(wire.message("tools/call", {"name": "a"}), mcp_name=f"=?base64?{encoded}?=")


@given(st.text())
def test_every_text_travels_in_a_header(text: str) -> None:
    assert headers.decode(f"=?base64?{base64.b64encode(text.encode()).decode()}?=") == text
    assert headers.decode(wire.header(text)) == text


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limit": {"type": "integer", "x-mcp-header": "limit"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "where": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        "free": {"type": "string"},
    },
}


def test_annotated_arguments_are_found_with_their_paths() -> None:
    assert header_parameters.find(SCHEMA) == {
        "mcp-param-region": (("region",), "string"),
        "mcp-param-limit": (("limit",), "integer"),
        "mcp-param-dry-run": (("dry",), "boolean"),
        "mcp-param-zone": (("where", "zone"), "string"),
    }


@pytest.mark.parametrize(
    ("member", "rule"),
    [
        ({"type": "string", "x-mcp-header": ""}, "must be an RFC 9110 token"),
        ({"type": "string", "x-mcp-header": "a b"}, "must be an RFC 9110 token"),
        ({"type": "string", "x-mcp-header": "é"}, "must be an RFC 9110 token"),
        ({"type": "string", "x-mcp-header": 1}, "must be an RFC 9110 token"),
        ({"type": "number", "x-mcp-header": "a"}, "only strings, integers and booleans"),
        ({"type": ["string", "null"], "x-mcp-header": "a"}, "only strings, integers and booleans"),
        ({"type": "array", "items": {"type": "string", "x-mcp-header": "a"}}, "reached through `properties` alone"),
        ({"anyOf": [{"type": "string", "x-mcp-header": "a"}]}, "reached through `properties` alone"),
        (
            {"type": "object", "properties": {"x": {"type": "string", "x-mcp-header": "REGION"}}},
            "must be unique",
        ),
    ],
)
def test_an_annotation_that_clients_would_drop_the_tool_for_is_refused(member: dict[str, Any], rule: str) -> None:
    properties = {"region": SCHEMA["properties"]["region"], "other": member}
    with pytest.raises(ValueError, match=rule):
        header_parameters.find({"type": "object", "properties": properties})


def test_a_property_or_an_example_of_that_name_is_no_annotation() -> None:
    properties = {"x-mcp-header": {"type": "string"}, "a": {"type": "object", "default": {"x-mcp-header": "b"}}}
    assert header_parameters.find({"type": "object", "properties": properties}) == {}


def test_header_parameters_that_match_the_arguments_are_admitted() -> None:
    arguments = {"region": "żory", "limit": 42, "dry": True, "where": {"zone": "b"}, "free": "x"}
    sent = {
        "mcp-param-region": wire.header("żory"),
        "mcp-param-limit": "42",
        "mcp-param-dry-run": "true",
        "mcp-param-zone": "b",
        "mcp-param-unknown": "left alone",
    }
    header_parameters.check(header_parameters.find(SCHEMA), arguments, sent)


@pytest.mark.parametrize("written", ["42", "42.0", "42.000", " 42 "])
def test_integers_are_compared_as_numbers(written: str) -> None:
    header_parameters.check(header_parameters.find(SCHEMA), {"limit": 42}, {"mcp-param-limit": written})


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ({"region": "a"}, {}),
        ({"region": "a"}, {"mcp-param-region": "b"}),
        ({"region": "a"}, {"mcp-param-region": "=?base64?YQ?="}),
        ({"region": "1.0"}, {"mcp-param-region": "1"}),
        ({}, {"mcp-param-region": "a"}),
        ({"region": None}, {"mcp-param-region": "null"}),
        ({"limit": 42}, {"mcp-param-limit": "42.5"}),
        ({"limit": 42}, {"mcp-param-limit": "0x2a"}),
        ({"dry": True}, {"mcp-param-dry-run": "True"}),
        ({"dry": False}, {}),
        ({"where": {"zone": "b"}}, {}),
        ({"where": "not an object"}, {"mcp-param-zone": "b"}),
    ],
)
def test_header_parameters_that_differ_from_the_arguments_are_refused(
    arguments: dict[str, Any], sent: dict[str, str]
) -> None:
    with pytest.raises(HeaderMismatch, match=r"^The header mcp-param-"):
        header_parameters.check(header_parameters.find(SCHEMA), arguments, sent)


def test_an_argument_that_is_null_or_absent_needs_no_header() -> None:
    header_parameters.check(header_parameters.find(SCHEMA), {"region": None}, {})


def test_a_refusal_quotes_neither_header_nor_argument() -> None:
    with pytest.raises(HeaderMismatch) as caught:
        header_parameters.check(header_parameters.find(SCHEMA), {"region": "hunter2"}, {"mcp-param-region": "hunter3"})
    assert "hunter" not in f"{caught.value} {caught.value.data} {caught.value.reason}"


# --- headers that contradict the body, in every era and on every path ------------------------------------------------


@tool
def move(to: str, region: Annotated[str, Header("Region")] = "eu") -> str:
    return f"{to} in {region}"


@prompt
def brief(topic: str) -> str:
    return topic


REFERENCE = {"ref": {"type": "ref/prompt", "name": "brief"}, "argument": {"name": "topic", "value": ""}}
REQUESTS: list[tuple[str, dict[str, Any], str | None]] = [
    ("tools/call", {"name": "move", "arguments": {"to": "a", "region": "us"}}, "move"),
    ("prompts/get", {"name": "brief", "arguments": {"topic": "x"}}, "brief"),
    ("resources/read", {"uri": "notes://a"}, "notes://a"),
    ("completion/complete", REFERENCE, "brief"),
    ("tools/list", {}, None),
    ("no/such", {}, None),
]
EARLIER = [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
ERAS = ["2026-07-28", "2026-07-28 without its envelope", *EARLIER]
KINDS = ["request", "notification", "batch"]
others = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)


@cache
def deployed(placement: str) -> LambdaFunction:
    return place(placement, move, brief)


@st.composite
def sent(draw: st.DrawFn) -> tuple[Any, dict[str, str], dict[str, str]]:
    """Draw a body, the headers that its era needs, and those that repeat it: they may be left out, or be wrong."""
    method, params, name = draw(st.sampled_from(REQUESTS))
    era, kind = draw(st.sampled_from(ERAS)), draw(st.sampled_from(KINDS))
    message = wire.message(method, params, id=7)
    version = era and era.partition(" ")[0]
    if era != wire.VERSION:
        message["params"] = params
    if kind == "notification":
        del message["id"]
    needed = {"content-type": "application/json", **({"mcp-protocol-version": version} if version else {})}
    repeated = {"mcp-method": method, **({"mcp-name": wire.header(name)} if name else {})}
    if method == "tools/call" and kind != "notification" and "envelope" not in str(era):
        repeated["mcp-param-region"] = "us"
    is_batch = kind == "batch" and era in {None, "2024-11-05", "2025-03-26"}
    first = {"jsonrpc": "2.0", "id": 8, "method": method, "params": params}
    return [first, message] if is_batch else message, needed, repeated


def answer(placement: str, body: Any, named: dict[str, str]) -> tuple[int, Any]:  # noqa: ANN401 - JSON
    response = deployed(placement)(wire.event(json.dumps(body), headers=named), wire.Context("local_all"))
    return response["statusCode"], json.loads(response["body"]) if response["body"] else {}


@pytest.mark.parametrize("placement", PLACEMENTS)
@given(sent(), st.data())
def test_a_header_that_contradicts_the_body_is_refused_in_every_revision(
    placement: str, request_: tuple[Any, dict[str, str], dict[str, str]], data: st.DataObject
) -> None:
    body, needed, repeated = request_
    wrong = data.draw(st.sampled_from(sorted(repeated)))
    value = data.draw(others.filter(lambda text: headers_differ(text, repeated[wrong])))
    known = {name: text for name, text in repeated.items() if data.draw(st.booleans()) or "2026" in str(needed)}
    status, message = answer(placement, body, {**needed, **known, wrong: value})
    assert (status, message["error"]["code"]) == (400, -32020)
    assert message.get("id") == (body.get("id") if isinstance(body, dict) else None)


def headers_differ(one: str, other: str) -> bool:
    try:
        return headers.decode(one) != headers.decode(other)
    except ValueError:
        return True


@pytest.mark.parametrize("placement", PLACEMENTS)
@given(sent(), st.data())
def test_a_matching_header_is_never_refused_and_earlier_clients_need_none(
    placement: str, request_: tuple[Any, dict[str, str], dict[str, str]], data: st.DataObject
) -> None:
    body, needed, repeated = request_
    is_modern = needed.get("mcp-protocol-version") == wire.VERSION
    known = {name: text for name, text in repeated.items() if is_modern or data.draw(st.booleans())}
    _status, message = answer(placement, body, {**needed, **known})
    for each in message if isinstance(message, list) else [message]:
        assert each.get("error", {}).get("code") != -32020


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("version", [*EARLIER, "v999"])
def test_an_envelope_under_a_header_of_another_revision_is_refused_also_in_a_notification(
    placement: str, version: str | None
) -> None:
    message = wire.message("notifications/progress", {"progressToken": 1, "progress": 1})
    del message["id"]
    named = {"mcp-method": "notifications/progress", **({"mcp-protocol-version": version} if version else {})}
    status, told = answer(placement, message, named)
    assert (status, told.get("error", {}).get("code")) == ((400, -32020) if version else (202, None))


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_client_of_2025_that_sends_the_header_of_an_argument_must_send_the_argument(placement: str) -> None:
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "move", "arguments": {"to": "a"}}}
    assert answer(placement, body, {"mcp-param-region": "us"})[1]["error"]["code"] == -32020
    assert answer(placement, body, {"mcp-param-other": "us"})[1]["result"]["isError"] is False
