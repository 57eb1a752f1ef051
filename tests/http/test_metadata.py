"""A client learns from the metadata of RFC 9728, Protected Resource Metadata, where it gets a token.

`function` is a deployment with tokens, once as one Lambda and once as the endpoint of a catalog. Anybody may read the
metadata, and it depends on the configuration alone. RFC 9728 puts the path of the resource behind the well-known path,
so the document is at two paths.

Without `from __future__ import annotations`, because most authors' modules have none.
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
MCP_PATH = f"{ROOT}/mcp"
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
    listed = catalog.build_project({"close": [close], "look": [look]})
    (folder / "catalog.json").write_text(json.dumps(listed), encoding="utf-8")
    return serve_catalog(folder / "catalog.json")


def get(function: LambdaFunction, path: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    event = {**wire.event("", http_method=method, headers=headers), "rawPath": path}
    return function(event, wire.Context("local_mcp"))


@pytest.mark.parametrize("path", [ROOT, MCP_PATH])
def test_anybody_may_read_the_metadata_at_both_paths(path: str, function: LambdaFunction) -> None:
    response = get(function, path)
    assert response["statusCode"] == 200
    assert response["headers"]["content-type"] == "application/json"
    assert json.loads(response["body"]) == DOCUMENT


def test_behind_the_oauth_front_the_document_of_a_functions_own_path_names_that_path(
    function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_front(monkeypatch, "")
    document = json.loads(get(function, f"{MCP_PATH}/look")["body"])
    expected = {"resource": "https://mcp.example/mcp/look", "authorization_servers": ["https://mcp.example"]}
    assert document == {**DOCUMENT, **expected}
    for path in (f"{MCP_PATH}/", f"{MCP_PATH}/look/more", f"{MCP_PATH}/Look", f"{ROOT}/look", f"{MCP_PATH}look"):
        assert get(function, path)["statusCode"] == 404, path


def test_the_head_of_the_document_has_no_body(function: LambdaFunction) -> None:
    head, whole = get(function, MCP_PATH, method="HEAD"), get(function, MCP_PATH)
    assert (head["statusCode"], head["body"]) == (200, "")
    assert head["headers"] == whole["headers"]


@pytest.mark.parametrize("url", ["https://mcp.example", "https://mcp.example/", ""])
def test_behind_the_oauth_front_the_front_is_the_authorization_server(
    url: str, function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_front(monkeypatch, url)
    document = json.loads(get(function, MCP_PATH)["body"])
    assert document == {**DOCUMENT, "authorization_servers": ["https://mcp.example"]}


def test_behind_the_oauth_front_a_refused_token_leads_to_the_metadata(
    function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_front(monkeypatch, "")
    event = gateways.by_jwt(wire.event(wire.message("tools/list")), iss="https://id.example", sub="ann", aud="another")
    response = function(event, wire.Context("local_mcp"))
    assert response["statusCode"] == 401
    assert f'resource_metadata="https://mcp.example{MCP_PATH}"' in response["headers"]["www-authenticate"]


def set_front(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Put the function behind the OAuth front."""
    monkeypatch.setenv("MCP_AUTH_MODE", "oauth")
    monkeypatch.setenv("MCP_OAUTH_URL", url)
    monkeypatch.setenv("MCP_OAUTH_CLIENT_ID", "front")


def test_the_official_client_understands_the_metadata(function: LambdaFunction) -> None:
    metadata = ProtectedResourceMetadata.model_validate_json(get(function, MCP_PATH)["body"])
    assert str(metadata.resource) == "https://mcp.example/mcp"
    assert [str(server) for server in metadata.authorization_servers] == ["https://id.example"]


@pytest.mark.parametrize("name", ["HTTP API", "HTTP API, sam local"])
def test_each_gateway_passes_the_path(name: str, function: LambdaFunction) -> None:
    event = GATEWAYS[name](HttpRequest(b"", (("Host", "h"), ("User-Agent", "u")), "GET"))
    event["rawPath"] = ROOT
    response = function(event, wire.Context("local_mcp"))
    assert response["statusCode"] == 200
    assert json.loads(response["body"]) == DOCUMENT


@pytest.mark.parametrize("domain", ["abc.execute-api.eu-west-1.amazonaws.com", "mcp.shop.example"])
def test_without_a_configured_url_the_resource_is_at_the_domain_of_each_request(
    domain: str, function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCP_RESOURCE_URL")
    get(function, ROOT)  # a request to another domain, which may not decide for the next one
    event = {**wire.event("", http_method="GET", headers={"host": "evil.example"}), "rawPath": MCP_PATH}
    event["requestContext"]["domainName"] = domain
    response = function(event, wire.Context("local_mcp"))
    assert json.loads(response["body"])["resource"] == f"https://{domain}/mcp"


def test_without_a_configured_url_a_refused_token_leads_to_the_domain_of_its_request(
    function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCP_RESOURCE_URL")
    event = gateways.by_jwt(wire.event(wire.message("tools/list")), iss="https://id.example", aud="another")
    event["requestContext"]["domainName"] = "mcp.shop.example"
    response = function(event, wire.Context("local_mcp"))
    challenge = response["headers"]["www-authenticate"]
    assert challenge.endswith(f'resource_metadata="https://mcp.shop.example{MCP_PATH}"')


def test_the_host_header_does_not_change_the_resource(function: LambdaFunction) -> None:
    forged = {"host": "evil.example", "x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
    assert "evil" not in json.dumps(get(function, ROOT, **forged))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_get_is_allowed_for_the_metadata(method: str, function: LambdaFunction) -> None:
    response = get(function, ROOT, method)
    assert response["statusCode"] == 405
    assert response["headers"]["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    [
        f"{ROOT}/",
        f"{ROOT}/mcp/",
        f"{ROOT}/mcp/add",
        f"{ROOT}/other",
        "/.well-known/",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
    ],
)
def test_other_well_known_paths_are_not_found(path: str, function: LambdaFunction) -> None:
    response = get(function, path)
    assert response["statusCode"] == 404
    assert response["body"] == ""


@pytest.mark.parametrize("mode", ["iam", "none"])
@pytest.mark.parametrize("path", [ROOT, MCP_PATH])
def test_a_deployment_without_tokens_has_no_metadata(
    mode: str, path: str, function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", mode)
    assert get(function, path)["statusCode"] == 404


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


def test_an_operator_may_configure_the_scopes_of_the_first_token(
    function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_SCOPES_SUPPORTED", "work:read")
    assert json.loads(get(function, ROOT)["body"])["scopes_supported"] == ["work:read"]


def test_the_metadata_of_a_server_without_scopes_lists_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in JWT_SETTINGS.items():
        monkeypatch.setenv(name, value)
    assert "scopes_supported" not in json.loads(get(serve(look), ROOT)["body"])


def test_a_catalog_without_scopes_does_not_mention_them() -> None:
    assert "scopes" not in catalog.build([look], "look")
    both = catalog.build_project({"look": [look], "close": [close]})
    assert both["scopes"] == ["work:read", "work:write"]


def test_the_refusal_of_a_token_names_the_metadata(function: LambdaFunction) -> None:
    event = gateways.by_jwt(wire.event(wire.message("tools/list")), iss="https://id.example", sub="ann", aud="another")
    response = function(event, wire.Context("local_mcp"))
    assert response["statusCode"] == 401
    assert response["headers"]["www-authenticate"] == (
        f'Bearer error="invalid_token", resource_metadata="https://mcp.example{MCP_PATH}"'
    )
    assert wire.read(response, "tools/list")["error"]["data"] == {"reason": "invalid_token"}
