"""Forged values cause few calls of KMS and of the provider, and a limit stops only those who send them.

`server` seals its client ids, codes and tokens in envelopes, so it asks KMS about each sealed value whose data key it
does not know. An attacker may therefore send forged values to make it call KMS. The server gives each address, or
network of IPv6, a budget of such calls.
"""

from __future__ import annotations

import base64
import os
import struct
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from mcp_functions.seal.keys import kek_hint
from tests.oauth.oauth_server import HOST_REDIRECT, OAuthServer
from tests.oauth.test_provider import sign_in
from tests.seal.refusals import replace_character

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oauth.browser import Browser

ATTACKER = "203.0.113.66"


def forge_value(server: OAuthServer) -> str:
    """Make a sealed value that only KMS can refuse: its header is valid, and its wrapped key is noise."""
    header = struct.pack(">BBI4sH", 1, 1, int(server.clock()), kek_hint(server.wrapping_keys[0].id), 184)
    message_bytes = 24 + 32 + 90  # salt, commitment, encrypted payload
    return "ks1." + base64.urlsafe_b64encode(header + os.urandom(184 + message_bytes)).rstrip(b"=").decode()


def tagged(server: OAuthServer, attacker: Browser) -> str:
    """Make a sealed value as `forge_value` does, with the tag of the attacker's browser."""
    (name,) = (name for name in attacker.cookies if "mcp-browser" in name)
    return f"{forge_value(server)}~{name[-8:]}"


def send_client_id(server: OAuthServer, attacker: Browser, _client: str) -> int:
    return attacker.authorize(forge_value(server)).status


def send_consent_request(server: OAuthServer, attacker: Browser, _client: str) -> int:
    return attacker.post("/authorize", {"request": tagged(server, attacker), "decision": "allow"}).status


def send_provider_state(server: OAuthServer, attacker: Browser, _client: str) -> int:
    return attacker.get(f"/callback?code=c&state={tagged(server, attacker)}").status


def send_code(server: OAuthServer, _attacker: Browser, client: str) -> int:
    form = {
        "grant_type": "authorization_code",
        "client_id": client,
        "code": forge_value(server),
        "redirect_uri": HOST_REDIRECT,
    }
    return server.send("POST", "/token", form=form, address=ATTACKER).status


def send_refresh_token(server: OAuthServer, _attacker: Browser, client: str) -> int:
    form = {"grant_type": "refresh_token", "client_id": client, "refresh_token": forge_value(server)}
    return server.send("POST", "/token", form=form, address=ATTACKER).status


def revoke_token(server: OAuthServer, _attacker: Browser, client: str) -> int:
    form = {"client_id": client, "token": forge_value(server)}
    return server.send("POST", "/revoke", form=form, address=ATTACKER).status


def send_consent_cookie(server: OAuthServer, attacker: Browser, client: str) -> int:
    attacker.cookies["__Host-mcp-consents"] = tagged(server, attacker)
    page = attacker.authorize(client)
    assert page.status != 200 or page.consent_request  # no consent was given, so the page asks
    return page.status


REFUSED = frozenset({400, 401, 503})


@pytest.mark.parametrize(
    ("send", "statuses"),
    [
        pytest.param(send_client_id, REFUSED, id="client ids"),
        pytest.param(send_consent_request, REFUSED, id="consent requests"),
        pytest.param(send_provider_state, REFUSED, id="states of the provider"),
        pytest.param(send_code, REFUSED, id="codes"),
        pytest.param(send_refresh_token, REFUSED, id="refresh tokens"),
        # RFC 7009, 2.2: an unknown token counts as revoked.
        pytest.param(revoke_token, REFUSED | {200}, id="revoked tokens"),
        # A browser whose cookie is forged sees the consent page, as one without a cookie.
        pytest.param(send_consent_cookie, REFUSED | {200}, id="cookies of consents"),
    ],
)
def test_a_thousand_forged_values_cause_few_kms_calls_and_block_no_other_address(
    server: OAuthServer, send: Callable[[OAuthServer, Browser, str], int], statuses: set[int]
) -> None:
    server.keep_process()
    client = server.new_client()
    attacker = server.new_browser(ATTACKER)
    attacker.authorize(client)
    before = len(server.kms.calls)
    assert {send(server, attacker, client) for _ in range(1000)} <= statuses
    assert len(server.kms.calls) - before < 10
    assert server.get_tokens(client)["access_token"]


def test_many_addresses_of_one_network_share_a_budget(server: OAuthServer) -> None:
    server.keep_process()
    before = len(server.kms.calls)
    for number in range(200):
        browser = server.new_browser(f"2001:db8:1:2::{number:x}")
        browser.authorize(forge_value(server))
    assert len(server.kms.calls) - before < 10


def test_the_number_of_provider_calls_is_limited_for_each_address(server: OAuthServer) -> None:
    server.keep_process()
    client = server.new_client()
    browser = server.new_browser()
    state = browser.allow(browser.authorize(client)).parameters["state"]
    # The provider's own code is junk, so the provider refuses each redemption of the server's code.
    callback = browser.get("/callback?" + urlencode({"state": state, "code": "junk", "iss": server.provider.url}))
    code = callback.parameters["code"]
    statuses = [server.redeem(client, code).status for _ in range(200)]
    assert statuses == [400] * 30 + [503] * 170
    assert [request.target for request in server.provider.requests].count("/token") == 30
    server.clock.advance(60)  # the budget is for a minute
    assert server.redeem(client, code).status == 400
    assert sign_in(server) == (200, "")


def test_a_successful_provider_call_costs_no_budget(server: OAuthServer) -> None:
    server.keep_process()
    client = server.new_client()
    token = server.get_tokens(client)["refresh_token"]
    for _ in range(40):
        answer = server.refresh(client, token)
        assert answer.status == 200
        token = answer.json["refresh_token"]


def test_values_of_another_container_cost_one_kms_call_for_its_key(server: OAuthServer) -> None:
    client = server.new_client()
    pages = [server.authorize_url(client) for _ in range(50)]
    server.keep_process()
    before = server.kms.count("Decrypt")
    for page in pages:
        assert server.new_browser().get(page).status == 200
    assert server.kms.count("Decrypt") - before == 1


def test_a_changed_value_causes_no_kms_call_if_its_data_key_is_known(server: OAuthServer) -> None:
    server.keep_process()
    client = server.new_client()
    before = len(server.kms.calls)
    for place in range(len(client) - 40, len(client)):
        changed = replace_character(client, place)
        assert server.new_browser(ATTACKER).authorize(changed).status == 400
    assert len(server.kms.calls) == before


def test_during_an_outage_of_kms_a_browser_gets_a_page_and_a_client_an_error(server: OAuthServer) -> None:
    server.kms.weather = lambda _operation: OSError("down")
    page = server.authorize(forge_value(server))
    assert page.status == 503
    assert page.headers["content-type"].startswith("text/html")
    answer = server.send("POST", "/register", body={"redirect_uris": [HOST_REDIRECT]})
    assert answer.status == 503
    assert answer.json["error"] == "temporarily_unavailable"
