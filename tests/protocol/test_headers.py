"""The headers MCP-Protocol-Version, Mcp-Method and Mcp-Name repeat parts of a request's body.

`wire.message` writes a request and `wire.headers` the headers that a client sends with it. `check` changes some of
these headers, and calls `headers.check_request`, which raises an error if a header and the body differ.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.protocol import headers
from mcp_functions.protocol.errors import HeaderMismatch, InvalidParams, UnsupportedProtocolVersion
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

CALL = wire.message("tools/call", {"name": "add", "arguments": {}})
VERSION = wire.PREFIX + "protocolVersion"
CAPABILITIES = wire.PREFIX + "clientCapabilities"
NO_META_ERROR = "params must hold _meta"
NO_VERSION_ERROR = f"params._meta must hold {VERSION}, a string"
NO_CAPABILITIES_ERROR = f"params._meta must hold {CAPABILITIES}, an object"


def check(message: Any, changes: Mapping[str, str] | None = None) -> None:  # noqa: ANN401 - JSON
    """Check a request whose headers match its body, but for some changes.

    Args:
        message: the request.
        changes: other values of headers, by their lower-case names.

    Raises:
        McpError: as `headers.check_request` does.
    """
    sent_headers = wire.headers(message)
    sent_headers.update(changes or {})
    headers.check_request(message, sent_headers)


def check_without(header: str, message: Any) -> None:  # noqa: ANN401 - JSON
    """Check a request that lacks this header."""
    sent_headers = wire.headers(message)
    del sent_headers[header]
    headers.check_request(message, sent_headers)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "add", "arguments": {}}),
        ("prompts/get", {"name": "brief"}),
        pytest.param("resources/read", {"uri": "a://b?c=ż"}, id="a URI that needs base64"),
        ("tools/list", {}),
        ("server/discover", {}),
        ("no/such/method", {"name": "x"}),
    ],
)
def test_a_request_with_matching_headers_is_accepted(method: str, params: dict[str, Any]) -> None:
    check(wire.message(method, params))


@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_the_error_names_the_missing_header(header: str) -> None:
    with pytest.raises(HeaderMismatch, match=f"^The header {header} is missing$"):
        check_without(header.lower(), CALL)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", ""),
        ("mcp-method", "tools/list"),
        pytest.param("mcp-method", "TOOLS/CALL", id="a method in capitals"),
        pytest.param("mcp-name", "Add", id="a name in another case"),
        pytest.param("mcp-name", "add,add", id="a header that was sent twice"),
        ("mcp-name", ""),
    ],
)
def test_a_header_that_differs_from_the_body_is_refused(header: str, value: str) -> None:
    with pytest.raises(HeaderMismatch, match="does not say what the body says"):
        check(CALL, {header: value})


def test_whitespace_around_a_header_value_is_ignored() -> None:
    check(CALL, {"mcp-name": " \tadd ", "mcp-method": "tools/call\t"})


def test_mcp_name_is_ignored_for_a_list() -> None:
    check(wire.message("tools/list", {"name": "add"}), {"mcp-name": "subtract"})


def test_the_header_check_ignores_a_name_that_is_no_string() -> None:
    check(wire.message("tools/call", {"name": 7}))  # the method itself refuses this name


@pytest.mark.parametrize(
    ("meta", "error"),
    [
        pytest.param(None, NO_META_ERROR, id="_meta is null"),
        pytest.param([], NO_META_ERROR, id="_meta is an array"),
        pytest.param({}, NO_VERSION_ERROR, id="no version"),
        pytest.param({VERSION: 2}, NO_VERSION_ERROR, id="the version is a number"),
        pytest.param({VERSION: "x"}, NO_CAPABILITIES_ERROR, id="a version, but no capabilities"),
        pytest.param({VERSION: "x", CAPABILITIES: []}, NO_CAPABILITIES_ERROR, id="the capabilities are an array"),
    ],
)
def test_a_missing_member_of_meta_is_reported_before_a_missing_header(meta: object, error: str) -> None:
    message: Any = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": meta}}
    with pytest.raises(InvalidParams) as caught:
        headers.check_request(message, {})
    assert caught.value.message.startswith(error)


def test_client_info_is_not_required() -> None:
    message = wire.message("tools/list")
    assert wire.PREFIX + "clientInfo" not in message["params"]["_meta"]
    check(message)


def test_the_error_for_an_unsupported_version_lists_the_supported_ones() -> None:
    with pytest.raises(UnsupportedProtocolVersion) as caught:
        check(wire.message("tools/list", version="v999"))
    assert caught.value.data == {"supported": ["2026-07-28"], "requested": "v999"}


def test_a_version_that_differs_from_the_header_is_reported_before_an_unsupported_one() -> None:
    with pytest.raises(HeaderMismatch):
        check(wire.message("tools/list", version="v999"), {"mcp-protocol-version": "2026-07-28"})


def test_a_missing_header_is_reported_before_an_unsupported_version() -> None:
    with pytest.raises(HeaderMismatch):
        check_without("mcp-name", wire.message("tools/call", {"name": "add"}, version="v999"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (" padded\t", "padded"),
        ("=?base64?xbzDs8WCdw==?=", "żółw"),
        ("=?base64??=", ""),
        pytest.param("=?BASE64?xbzDs8WCdw==?=", "=?BASE64?xbzDs8WCdw==?=", id="capitals are no marker"),
        pytest.param("=?base64?xbzDs8WCdw==", "=?base64?xbzDs8WCdw==", id="no second marker"),
        pytest.param("=?base64?=", "=?base64?=", id="the markers overlap"),
        pytest.param("=?utf-8?x?=", "=?utf-8?x?=", id="another encoding of RFC 2047"),
    ],
)
def test_a_header_value_is_decoded_only_between_exact_markers(value: str, text: str) -> None:
    assert headers.decode(value) == text


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param("YQ", id="no padding"),
        pytest.param("YQ=", id="too little padding"),
        pytest.param("YQ===", id="too much padding"),
        pytest.param("=YQ=", id="padding in front"),
        pytest.param("YR==", id="bits after the last byte"),
        pytest.param("Y Q==", id="a blank"),
        pytest.param("Y-_=", id="the alphabet of URLs"),
        pytest.param("YQ==YQ==", id="two texts"),
        pytest.param("/w==", id="bytes that are not UTF-8"),
        pytest.param("ż", id="a character outside ASCII"),
        pytest.param("Y", id="a quarter of a group"),
    ],
)
def test_base64_that_is_not_canonical_is_refused(encoded: str) -> None:
    with pytest.raises(HeaderMismatch, match="The header Mcp-Name is not valid base64"):
        check(CALL, {"mcp-name": f"=?base64?{encoded}?="})


@given(st.text())
def test_every_text_can_be_sent_as_base64(text: str) -> None:
    encoded = base64.b64encode(text.encode()).decode()
    assert headers.decode(f"=?base64?{encoded}?=") == text


@given(st.text())
def test_the_decoder_reads_every_header_that_a_client_writes(text: str) -> None:
    assert headers.decode(wire.header(text)) == text
