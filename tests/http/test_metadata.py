"""Where a client gets a token: the metadata of RFC 9728, for anybody, at both paths, from the configuration alone.

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.auth import ProtectedResourceMetadata

from mcp_functions import serve, serve_catalog, tool
from mcp_functions.handlers import catalog
from mcp_functions.http.gateway import LambdaFunction
from tests.support import gateways, wire
from tests.support.gateways import GATEWAYS, JWT_SETTINGS, HttpRequest

ROOT = "/.well-known/oauth-protected-resource"
PATHS = [ROOT, f"{ROOT}/mcp"]
DOCUMENT = {
    "resource": "https://mcp.example/mcp",
    "authorization_servers": ["https://id.example"],
    "bearer_methods_supported": ["header"],
    "resource_name": "shop",
    "scopes_supported": ["work:read", "work:write"],
}


@tool(scopes=["work:write", "work:read"])
def close() -> str:
    """Close a work item."""
    return "closed"


@tool
def look() -> str:
    """Look around."""
    return "nothing to see"


@pytest.fixture(params=["the endpoint", "one Lambda"])
def function(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LambdaFunction:
    for name, value in (JWT_SETTINGS | {"MCP_SERVER_NAME": "shop"}).items():
        monkeypatch.setenv(name, value)
    return deploy(request.param, tmp_path)


def deploy(placement: str, folder: Path) -> LambdaFunction:
    if placement == "one Lambda":
        return serve(close, look)
    listed = catalog.merge([catalog.build([close], "close"), catalog.build([look], "look")])
    (folder / "catalog.json").write_text(json.dumps(listed), encoding="utf-8")
    return serve_catalog(folder / "catalog.json")


def get(function: LambdaFunction, path: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    event = {**wire.event("", http_method=method, headers=headers), "rawPath": path}
    return function(event, wire.Context("local_mcp"))


@pytest.mark.parametrize("path", PATHS)
def test_anybody_may_read_the_metadata_at_both_paths(path: str, function: LambdaFunction) -> None:
    response = get(function, path)
    assert (response["statusCode"], response["headers"]["content-type"]) == (200, "application/json")
    assert json.loads(response["body"]) == DOCUMENT


def test_behind_the_front_clients_are_sent_to_the_front(
    function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = {"MCP_AUTH_MODE": "oauth", "MCP_OAUTH_URL": "https://mcp.example", "MCP_OAUTH_CLIENT_ID": "front"}
    for name, value in front.items():
        monkeypatch.setenv(name, value)
    expected = {**DOCUMENT, "authorization_servers": ["https://mcp.example"]}
    assert json.loads(get(function, PATHS[1])["body"]) == expected
    monkeypatch.setenv("MCP_OAUTH_URL", "")  # the front shares the API, and so the origin
    assert json.loads(get(function.fresh(), PATHS[1])["body"]) == expected
    event = {**wire.event(wire.message("tools/list")), "requestContext": {"http": {"method": "POST"}}}
    claims = {"iss": "https://id.example", "sub": "ann", "aud": "another", "exp": "1e12"}
    event["requestContext"]["authorizer"] = {"jwt": {"claims": claims}}
    refused = function(event, wire.Context("local-mcp"))
    assert refused["statusCode"] == 401
    assert f'resource_metadata="https://mcp.example{PATHS[1]}"' in refused["headers"]["www-authenticate"]


def test_the_official_client_understands_it(function: LambdaFunction) -> None:
    read = ProtectedResourceMetadata.model_validate_json(get(function, PATHS[1])["body"])
    assert (str(read.resource), [str(server) for server in read.authorization_servers]) == (
        "https://mcp.example/mcp",
        ["https://id.example"],
    )


@pytest.mark.parametrize("name", ["HTTP API", "HTTP API, sam local"])
def test_every_gateway_brings_the_path(name: str, function: LambdaFunction) -> None:
    event = GATEWAYS[name](HttpRequest(b"", (("Host", "h"), ("User-Agent", "u")), "GET"))
    event["rawPath"] = PATHS[0]
    response = function(event, wire.Context("local_mcp"))
    assert (response["statusCode"], json.loads(response["body"])) == (200, DOCUMENT)


@pytest.mark.parametrize("name", ["abc.execute-api.eu-west-1.amazonaws.com", "mcp.shop.example"])
def test_without_a_configured_url_the_resource_is_at_the_domain_of_each_request(
    name: str, function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCP_RESOURCE_URL")
    get(function, PATHS[0])  # of another domain: no request decides for the next
    event = wire.event(wire.message("tools/list"), headers={"host": "evil.example"})
    event["requestContext"]["domainName"] = name
    read = function({**event, "rawPath": PATHS[1], "requestContext": _gets(event)}, wire.Context("local_mcp"))
    assert json.loads(read["body"])["resource"] == f"https://{name}/mcp"
    refused = function(gateways.by_jwt(event, iss="https://id.example", aud="another"), wire.Context("local_mcp"))
    assert refused["headers"]["www-authenticate"].endswith(f'resource_metadata="https://{name}{PATHS[1]}"')


def _gets(event: dict[str, Any]) -> dict[str, Any]:
    return {**event["requestContext"], "http": {**event["requestContext"]["http"], "method": "GET"}}


def test_the_host_header_says_nothing_about_the_resource(function: LambdaFunction) -> None:
    forged = {"host": "evil.example", "x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
    assert "evil" not in json.dumps(get(function, PATHS[0], **forged))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_metadata_is_only_read(method: str, function: LambdaFunction) -> None:
    response = get(function, PATHS[0], method)
    assert (response["statusCode"], response["headers"]["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path",
    [
        *(f"{ROOT}/", f"{ROOT}/mcp/", f"{ROOT}/mcp/add", f"{ROOT}/other", "/.well-known/"),
        *("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"),
    ],
)
def test_nothing_else_is_well_known(path: str, function: LambdaFunction) -> None:
    response = get(function, path)
    assert (response["statusCode"], response["body"]) == (404, "")


@pytest.mark.parametrize("mode", ["iam", "none"])
@pytest.mark.parametrize("path", PATHS)
def test_a_deployment_without_tokens_has_no_metadata(
    mode: str, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", mode)
    for placement in ("the endpoint", "one Lambda"):
        assert get(deploy(placement, tmp_path), path)["statusCode"] == 404


def test_the_endpoint_itself_still_requires_a_token(function: LambdaFunction) -> None:
    event = wire.event(wire.message("tools/list"))
    assert function(event, wire.Context("local_mcp"))["statusCode"] == 500  # a route without its authorizer
    assert get(function, "/mcp")["statusCode"] == 405


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://mcp.example", ROOT),
        ("https://mcp.example/", ROOT),
        ("https://mcp.example:8443/a/b", f"{ROOT}/a/b"),
        ("https://mcp.example/mcp/", f"{ROOT}/mcp"),
    ],
)
def test_the_path_of_the_resource_follows_the_well_known_one(
    url: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (JWT_SETTINGS | {"MCP_RESOURCE_URL": url}).items():
        monkeypatch.setenv(name, value)
    function = serve(close)
    assert json.loads(get(function, path)["body"])["resource"] == url
    assert get(function, ROOT)["statusCode"] == 200


def test_an_operator_may_name_the_scopes_to_begin_with(
    function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_SCOPES_SUPPORTED", "work:read")
    assert json.loads(get(function, PATHS[0])["body"])["scopes_supported"] == ["work:read"]


def test_a_server_without_scopes_lists_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in JWT_SETTINGS.items():
        monkeypatch.setenv(name, value)
    assert "scopes_supported" not in json.loads(get(serve(look), PATHS[0])["body"])


def test_a_catalog_without_scopes_does_not_mention_them() -> None:
    assert "scopes" not in catalog.build([look], "look")
    both = catalog.merge([catalog.build([look], "look"), catalog.build([close], "close")])
    assert both["scopes"] == ["work:read", "work:write"]


def test_a_refused_token_is_shown_the_way(function: LambdaFunction) -> None:
    event = gateways.by_jwt(wire.event(wire.message("tools/list")), iss="https://id.example", sub="ann", aud="another")
    response = function(event, wire.Context("local_mcp"))
    assert response["statusCode"] == 401
    assert response["headers"]["www-authenticate"] == (
        f'Bearer error="invalid_token", resource_metadata="https://mcp.example{PATHS[1]}"'
    )
    assert wire.read(response, "tools/list")["error"]["data"] == {"reason": "invalid_token"}
