"""The page on identity: its code runs, and does what the page says."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import anyio
import httpx2

from tests.conformance import node
from tests.docs.pages import FENCED, Page

if TYPE_CHECKING:
    import pytest

PAGE = Page.named("identity.md")
URL = "https://abc.execute-api.eu-central-1.amazonaws.com/mcp"
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105 - AWS's own example
EDGE_SCRIPT = """
const asked = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
exports.handler(asked).then((response) => console.log(JSON.stringify(response)));
"""


def test_the_statements_about_scopes_on_the_identity_page_are_true() -> None:
    names = PAGE.run()
    names["test_closing_needs_its_scope"]()


def test_the_signed_request_of_the_page_has_the_signature_that_botocore_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    arrived: list[httpx2.Request] = []

    def api(request: httpx2.Request) -> httpx2.Response:
        arrived.append(request)
        return httpx2.Response(202)

    async def post() -> None:
        transport = httpx2.MockTransport(api)
        async with httpx2.AsyncClient(auth=PAGE.run()["Signed"]("eu-central-1"), transport=transport) as client:
            await client.post(URL, json={"jsonrpc": "2.0", "method": "x"}, headers={"mcp-method": "x"})

    anyio.run(post)
    (request,) = arrived
    assert request.headers["authorization"].endswith(f"Signature={signature(request)}")


def signature(request: httpx2.Request) -> str:
    """Sign what arrived once more, as "Create a signed AWS API request" says, without the code that signed it."""
    named = re.findall(r"SignedHeaders=([^,]+)", request.headers["authorization"])[0].split(";")
    assert "host" in named
    listed = "".join(f"{name}:{request.headers[name]}\n" for name in named)
    body = hashlib.sha256(request.content).hexdigest()
    canonical = "\n".join([request.method, request.url.path, "", listed, ";".join(named), body])
    time = request.headers["x-amz-date"]
    scope = [time[:8], "eu-central-1", "execute-api", "aws4_request"]
    signed = "\n".join(["AWS4-HMAC-SHA256", time, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{SECRET}".encode()
    for part in (*scope, signed):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def run_edge_function(status: str, **headers: str) -> dict[str, Any]:
    """Run the page's function for one response of the origin, and return the headers that leave."""
    (code,) = [block for kind, block in FENCED.findall(PAGE.text) if kind == "js"]
    written = {name.replace("_", "-"): [{"key": name, "value": value}] for name, value in headers.items()}
    event = {"Records": [{"cf": {"response": {"status": status, "headers": written}}}]}
    command = [str(node.needed()), "-e", f"{code}{EDGE_SCRIPT}"]
    done = subprocess.run(command, input=json.dumps(event), capture_output=True, text=True, check=True)  # noqa: S603
    return {name: values[0]["value"] for name, values in json.loads(done.stdout)["headers"].items()}


def test_the_edge_function_restores_the_challenge_header_and_its_metadata_url() -> None:
    challenge = f'Bearer error="insufficient_scope", scope="a", resource_metadata="{METADATA}"'
    assert run_edge_function("403", x_amzn_remapped_www_authenticate=challenge)["www-authenticate"] == challenge
    bare = f'Bearer resource_metadata="{METADATA}"'
    assert (
        run_edge_function("401", www_authenticate='Bearer scope="" error="invalid_token"')["www-authenticate"] == bare
    )
    assert run_edge_function("401")["www-authenticate"] == bare
    assert run_edge_function("200", content_type="application/json").keys() == {"content-type"}
