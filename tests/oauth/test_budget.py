"""A sign-in needs a limited number of imported modules, KMS calls and requests to the provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oauth.test_provider import sign_in
from tests.support.strict_kms import run_python

if TYPE_CHECKING:
    from tests.oauth.oauth_server import OAuthServer

# The CPU of a cold start is mostly the import of modules: none of these is on the way.
FORBIDDEN = {
    "aiohttp", "asyncio", "boto3", "botocore", "httpx", "jsonschema", "mcp_functions.handlers", "mcp_functions_harness",
    "mcp_functions.rounds", "pydantic", "requests", "urllib.request", "urllib3", "yaml",
}  # fmt: skip
MOST_MODULES = 260


def test_a_cold_start_of_the_server_imports_no_framework() -> None:
    loaded = run_python("import sys; from mcp_functions import serve_oauth; serve_oauth(); print(*sys.modules)").split()
    own = {name for name in loaded if name in FORBIDDEN}
    assert own == set()
    assert len(loaded) <= MOST_MODULES


def test_other_functions_do_not_import_the_server() -> None:
    code = "import sys; from mcp_functions import serve, serve_catalog, tool; print(*sys.modules)"
    assert not [name for name in run_python(code).split() if name.startswith("mcp_functions.oauth")]


def test_a_sign_in_calls_kms_once_and_the_provider_three_times(server: OAuthServer) -> None:
    server.keep_process()
    assert sign_in(server) == (200, "")
    assert len(server.kms.calls) == 1
    paths = [request.target.partition("?")[0] for request in server.provider.requests]
    assert paths == [
        "/.well-known/openid-configuration",
        "/authorize",
        "/token",
        "/jwks",
    ]  # the second is the browser's


def test_a_second_sign_in_calls_only_the_token_endpoint_of_the_provider(server: OAuthServer) -> None:
    server.keep_process()
    sign_in(server)
    kms_calls, provider_requests = len(server.kms.calls), len(server.provider.requests)
    assert sign_in(server) == (200, "")
    assert len(server.kms.calls) == kms_calls
    paths = [request.target.partition("?")[0] for request in server.provider.requests[provider_requests:]]
    assert paths == ["/authorize", "/token"]
