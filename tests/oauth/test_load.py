"""Forged values cost little, and those who sent them."""

from __future__ import annotations

import base64
import os
import struct
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from mcp_functions.seal.keys import kek_hint
from tests.oauth.oauth_server import HOST_REDIRECT, Browser, OAuthServer
from tests.oauth.test_provider import sign_in

if TYPE_CHECKING:
    from collections.abc import Callable


TIMES = 10_000
ATTACKER = "203.0.113.66"


def forged(server: OAuthServer) -> str:
    """Make a value that only KMS can tell from a good one: its wrapped key is noise, and its header is right."""
    head = struct.pack(">BBI4sH", 1, 1, int(server.clock()), kek_hint(server.wrapping_keys[0].id), 184)
    return "ks1." + base64.urlsafe_b64encode(head + os.urandom(184 + 24 + 32 + 90)).rstrip(b"=").decode()


def ids(server: OAuthServer, attacker: Browser, _client: str) -> int:
    return attacker.authorize(forged(server)).status


def consents(server: OAuthServer, attacker: Browser, _client: str) -> int:
    return attacker.post("/authorize", {"request": forged(server), "decision": "allow"}).status


def states(server: OAuthServer, attacker: Browser, _client: str) -> int:
    return attacker.get(f"/callback?code=c&state={forged(server)}").status


def codes(server: OAuthServer, _attacker: Browser, client: str) -> int:
    form = {"grant_type": "authorization_code", "client_id": client, "code": forged(server)}
    return server.send("POST", "/token", form={**form, "redirect_uri": HOST_REDIRECT}, address=ATTACKER).status


def refresh_tokens(server: OAuthServer, _attacker: Browser, client: str) -> int:
    form = {"grant_type": "refresh_token", "client_id": client, "refresh_token": forged(server)}
    return server.send("POST", "/token", form=form, address=ATTACKER).status


def revoked_tokens(server: OAuthServer, _attacker: Browser, client: str) -> int:
    form = {"client_id": client, "token": forged(server)}
    return server.send("POST", "/revoke", form=form, address=ATTACKER).status


def remembered_consents(server: OAuthServer, attacker: Browser, client: str) -> int:
    attacker.cookies["__Host-mcp-consents"] = forged(server)
    page = attacker.authorize(client)
    assert page.status != 200 or page.consent_request  # no consent was given, so the page asks
    return page.status


REFUSED = frozenset({400, 401, 503})
# RFC 7009, 2.2: an unknown token counts as revoked. A browser that remembers nothing sees the page.
TRIED = dict.fromkeys([ids, consents, states, codes, refresh_tokens], REFUSED)
TRIED |= dict.fromkeys([revoked_tokens, remembered_consents], REFUSED | {200})


@pytest.mark.parametrize(("send", "expected"), TRIED.items())
def test_ten_thousand_forged_values_of_one_address_ask_kms_a_few_times_and_stop_nobody(
    server: OAuthServer, send: Callable[[OAuthServer, Browser, str], int], expected: set[int]
) -> None:
    server.keep_process()
    client, attacker = server.new_client(), server.new_browser(ATTACKER)
    attacker.authorize(client)
    before = len(server.kms.calls)
    statuses = {send(server, attacker, client) for _ in range(TIMES)}
    assert statuses <= expected
    assert len(server.kms.calls) - before < 10
    assert server.get_tokens(client)["access_token"]


def test_a_customers_many_addresses_have_one_budget(server: OAuthServer) -> None:
    server.keep_process()
    before = len(server.kms.calls)
    for number in range(200):
        browser = server.new_browser(f"2001:db8:1:2::{number:x}")
        browser.authorize(forged(server))
    assert len(server.kms.calls) - before < 10


def test_one_address_cannot_make_the_front_ask_the_provider_without_end(server: OAuthServer) -> None:
    server.keep_process()
    client = server.new_client()
    browser = server.new_browser()
    state = browser.allow(browser.authorize(client)).parameters["state"]
    back = browser.get("/callback?" + urlencode({"state": state, "code": "junk", "iss": server.provider.url}))
    statuses = [server.redeem(client, back.parameters["code"]).status for _ in range(200)]
    assert statuses == [400] * 30 + [503] * 170
    assert [request.target for request in server.provider.requests].count("/token") == 30
    server.clock.advance(60)
    assert server.redeem(client, back.parameters["code"]).status == 400
    assert sign_in(server) == (200, "")


def test_a_request_that_the_provider_accepts_costs_no_budget(server: OAuthServer) -> None:
    server.keep_process()
    client = server.new_client()
    token = server.get_tokens(client)["refresh_token"]
    for _ in range(40):
        answer = server.refresh(client, token)
        assert answer.status == 200
        token = answer.json["refresh_token"]


def test_values_of_other_containers_cost_one_call_for_each_of_their_keys(server: OAuthServer) -> None:
    client = server.new_client()
    pages = [server.authorize_url(client) for _ in range(50)]
    server.keep_process()
    before = server.kms.count("Decrypt")
    for page in pages:
        assert server.new_browser().get(page).status == 200
    assert server.kms.count("Decrypt") - before == 1


def test_a_value_that_was_changed_asks_kms_for_nothing_that_is_known(server: OAuthServer) -> None:
    server.keep_process()
    client = server.new_client()
    before = len(server.kms.calls)
    for at in range(len(client) - 40, len(client)):
        changed = client[:at] + ("A" if client[at] != "A" else "B") + client[at + 1 :]
        assert server.new_browser(ATTACKER).authorize(changed).status == 400
    assert len(server.kms.calls) == before


def test_while_kms_does_not_answer_a_browser_sees_a_page_and_a_host_an_error(server: OAuthServer) -> None:
    server.kms.weather = lambda _operation: OSError("down")
    page = server.authorize(forged(server))
    assert page.status == 503
    assert page.headers["content-type"].startswith("text/html")
    answer = server.send("POST", "/register", body={"redirect_uris": [HOST_REDIRECT]})
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
