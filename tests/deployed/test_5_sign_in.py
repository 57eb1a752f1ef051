"""`auth oauth`, by an update of the stack that serves: people sign in at Cognito, and clients have tokens."""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from mcp_functions_harness.client import messages
from tests.deployed.browser import Browser

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import Params
    from tests.deployed.browser import Page
    from tests.deployed.stack import Stack

BACK = "http://127.0.0.1:1/callback"
ANN, PASSWORD = "ann@example.com", "Correct-horse-9"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Host:
    """An application of a person, which calls the server with a token.

    Attributes:
        browser: sends its requests too.
        url: of the MCP endpoint.
    """

    browser: Browser
    url: str

    @property
    def origin(self) -> str:
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.url))

    def call(self, token: str, method: str = "tools/call", **params: Any) -> Page:  # noqa: ANN401 - JSON
        """Send a message of MCP."""
        asked = messages.write(messages.message(method, cast("Params", params), 1, messages.EVERYTHING))
        return self.browser.request(
            "POST", self.url, asked.body, {**dict(asked.headers), "authorization": f"Bearer {token}"}
        )

    def tokens(self, **form: str) -> dict[str, Any]:
        """Send a form to the token endpoint."""
        page = self.browser.request("POST", f"{self.origin}/token", urlencode(form).encode(), FORM)
        return {"status": page.status, **json.loads(page.text)}


@pytest.fixture(scope="module")
def signed_in(shop: Stack) -> Stack:
    """Change the stack that serves from iam to oauth, with a user pool of its own and one person in it."""
    shop.project.mcp_functions("auth", "oauth")
    shop.project.mcp_functions("set", "default", "JwtIssuer=new", f"ResourceUrl={shop.outputs['Endpoint']}")
    shop.project.build()
    shop.project.deploy()
    shop.__dict__.pop("functions", None)  # there is one more
    cognito, pool = shop.account.client("cognito-idp"), shop.resources["UserPool"]["PhysicalResourceId"]
    cognito.admin_create_user(UserPoolId=pool, Username=ANN, MessageAction="SUPPRESS")
    cognito.admin_set_user_password(UserPoolId=pool, Username=ANN, Password=PASSWORD, Permanent=True)
    return shop


@pytest.fixture(scope="module")
def host(signed_in: Stack) -> Host:
    return Host(Browser(signed_in.account), signed_in.outputs["Endpoint"])


@pytest.fixture(scope="module")
def tokens(host: Host) -> dict[str, Any]:
    """Register, consent, sign in at the login page, and come back with a code."""
    client = json.dumps({"redirect_uris": [BACK], "client_name": "desk", "token_endpoint_auth_method": "none"})
    registered = host.browser.request(
        "POST", f"{host.origin}/register", client.encode(), {"content-type": "application/json"}
    )
    assert registered.status == 201, registered.text
    client_id, verifier = json.loads(registered.text)["client_id"], secrets.token_urlsafe(48)
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": BACK,
        "state": "of the host",
        "resource": host.url,
        "code_challenge": urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    consent = host.browser.get(f"{host.origin}/authorize?{urlencode(asked)}")
    assert "desk" in consent.text, consent
    login = host.browser.submit(consent, decision="allow")
    assert "cognito-idp" in login.url, login
    back = host.browser.submit(login, username=ANN, password=PASSWORD)
    assert back.url.startswith(BACK), back
    brought = {name: values[0] for name, values in parse_qs(urlsplit(back.url).query).items()}
    assert brought["state"] == "of the host"
    form = {"redirect_uri": BACK, "client_id": client_id, "code_verifier": verifier, "resource": host.url}
    found = host.tokens(grant_type="authorization_code", code=brought["code"], **form)
    assert found["status"] == 200, found
    return {**found, "client_id": client_id}


def test_a_call_without_a_token_learns_where_to_sign_in(host: Host) -> None:
    refused = host.call("")
    assert refused.status == 401
    document = json.loads(host.browser.get(f"{host.origin}/.well-known/oauth-protected-resource/mcp").text)
    assert (document["resource"], document["authorization_servers"]) == (host.url, [host.origin])


def test_a_person_who_signed_in_calls_a_tool(host: Host, tokens: dict[str, Any]) -> None:
    answered = host.call(tokens["access_token"], name="add", arguments={"a": 2, "b": 3})
    assert answered.status == 200, answered
    assert json.loads(answered.text)["result"]["content"][0]["text"] == "5"


def test_a_token_with_another_signature_is_refused(host: Host, tokens: dict[str, Any]) -> None:
    head, claims, signature = tokens["access_token"].split(".")
    other = signature[:-8] + ("AAAAAAAA" if not signature.endswith("AAAAAAAA") else "BBBBBBBB")
    assert host.call(f"{head}.{claims}.{other}", name="add", arguments={"a": 2, "b": 3}).status == 401


def test_a_refreshed_token_calls_too(host: Host, tokens: dict[str, Any]) -> None:
    form = {"refresh_token": tokens["refresh_token"], "client_id": tokens["client_id"], "resource": host.url}
    later = host.tokens(grant_type="refresh_token", **form)
    assert later["status"] == 200, later
    assert host.call(later["access_token"], name="add", arguments={"a": 2, "b": 3}).status == 200


def test_verify_finds_the_sign_in_as_it_is_meant(signed_in: Stack, tokens: dict[str, Any]) -> None:
    words = ("verify", signed_in.name, "--auth", "oauth", "--token", tokens["access_token"], "--seconds", "60")
    said = signed_in.project.mcp_functions(*words)
    assert "FAILED" not in said
    assert "mode oauth" in said


def test_the_scopes_are_there_before_the_client_that_names_them(signed_in: Stack) -> None:
    pages = signed_in.account.client("cloudformation").get_paginator("describe_stack_events")
    events = [event for page in pages.paginate(StackName=signed_in.name) for event in page["StackEvents"]]
    # The newest comes first. AWS says CREATE_COMPLETE, and MiniStack UPDATE_COMPLETE, of what an update adds.
    steps = [(event["LogicalResourceId"], event["ResourceStatus"].partition("_")[2]) for event in reversed(events)]
    assert steps.index(("UserPoolResourceServer", "COMPLETE")) < steps.index(("UserPoolClient", "IN_PROGRESS"))


def test_the_sign_in_leaves_by_one_update_and_its_tokens_still_call(
    signed_in: Stack, host: Host, tokens: dict[str, Any]
) -> None:
    people = signed_in.resources["UserPool"]["PhysicalResourceId"]
    issuer, audience = (_claims(tokens["access_token"])[name] for name in ("iss", "aud"))
    signed_in.project.mcp_functions("auth", "jwt")
    signed_in.project.mcp_functions("set", "default", f"JwtIssuer={issuer}", f"JwtAudience={audience}")
    signed_in.project.build()
    signed_in.project.deploy()
    signed_in.__dict__.pop("functions", None)  # there is one fewer
    assert host.browser.get(f"{host.origin}/authorize").status == 404
    assert host.call(tokens["access_token"], name="add", arguments={"a": 2, "b": 3}).status == 200
    cognito = signed_in.account.client("cognito-idp")
    try:
        assert cognito.describe_user_pool(UserPoolId=people), "the people are kept"
    finally:  # whoever pays for the account does not pay for them
        cognito.delete_user_pool(UserPoolId=people)


def _claims(token: str) -> dict[str, Any]:
    claims = token.split(".")[1]
    return dict(json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4))))
