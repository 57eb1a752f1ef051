"""Forged values cost little, and those who sent them."""

from __future__ import annotations

import base64
import os
import struct
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from mcp_functions.seal.keys import kek_hint
from tests.oauth.test_provider import provider_with, signing_in
from tests.oauth.world import HOST_REDIRECT, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oauth.world import Browser

TIMES = 10_000
ATTACKER = "203.0.113.66"


def forged(world: World) -> str:
    """Make a value that only KMS can tell from a good one: its wrapped key is noise, and its header is right."""
    head = struct.pack(">BBI4sH", 1, 1, int(world.clock()), kek_hint(world.wrapping[0].id), 184)
    return "ks1." + base64.urlsafe_b64encode(head + os.urandom(184 + 24 + 32 + 90)).rstrip(b"=").decode()


def ids(world: World, attacker: Browser, _client: str) -> int:
    return attacker.get(world.authorize_url(forged(world))).status


def consents(world: World, attacker: Browser, _client: str) -> int:
    return attacker.post("/authorize", {"request": forged(world), "decision": "allow"}).status


def states(world: World, attacker: Browser, _client: str) -> int:
    return attacker.get(f"/callback?code=c&state={forged(world)}").status


def codes(world: World, _attacker: Browser, client: str) -> int:
    form = {"grant_type": "authorization_code", "client_id": client, "code": forged(world)}
    return world.send("POST", "/token", form={**form, "redirect_uri": HOST_REDIRECT}, address=ATTACKER).status


def refresh_tokens(world: World, _attacker: Browser, client: str) -> int:
    form = {"grant_type": "refresh_token", "client_id": client, "refresh_token": forged(world)}
    return world.send("POST", "/token", form=form, address=ATTACKER).status


def revoked_tokens(world: World, _attacker: Browser, client: str) -> int:
    form = {"client_id": client, "token": forged(world)}
    return world.send("POST", "/revoke", form=form, address=ATTACKER).status


def remembered_consents(world: World, attacker: Browser, client: str) -> int:
    attacker.jar["__Host-mcp-consents"] = forged(world)
    page = attacker.get(world.authorize_url(client))
    assert page.status != 200 or page.request  # no consent was given, so the page asks
    return page.status


REFUSED = frozenset({400, 401, 503})
# RFC 7009, 2.2: an unknown token counts as revoked. A browser that remembers nothing sees the page.
TRIED = dict.fromkeys([ids, consents, states, codes, refresh_tokens], REFUSED)
TRIED |= dict.fromkeys([revoked_tokens, remembered_consents], REFUSED | {200})


@pytest.mark.parametrize(("send", "expected"), TRIED.items())
def test_ten_thousand_forged_values_of_one_address_ask_kms_a_few_times_and_stop_nobody(
    world: World, send: Callable[[World, Browser, str], int], expected: set[int]
) -> None:
    world.stay_warm()
    client, attacker = world.register()["client_id"], world.browser(ATTACKER)
    attacker.get(world.authorize_url(client))
    before = len(world.kms.calls)
    statuses = {send(world, attacker, client) for _ in range(TIMES)}
    assert statuses <= expected
    assert len(world.kms.calls) - before < 10
    assert world.tokens(client)["access_token"]


def test_a_customers_many_addresses_have_one_budget(world: World) -> None:
    world.stay_warm()
    before = len(world.kms.calls)
    for number in range(200):
        browser = world.browser(f"2001:db8:1:2::{number:x}")
        browser.get(world.authorize_url(forged(world)))
    assert len(world.kms.calls) - before < 10


def test_one_address_cannot_make_the_front_ask_the_provider_without_end() -> None:
    with provider_with(lambda _path, _answer, _issuer: None) as world:
        world.stay_warm()
        client = world.register()["client_id"]
        browser = world.browser()
        state = browser.allow(browser.get(world.authorize_url(client))).parameters["state"]
        back = browser.get("/callback?" + urlencode({"state": state, "code": "junk", "iss": world.provider.url}))
        statuses = [world.redeem(client, back.parameters["code"]).status for _ in range(200)]
        assert statuses == [400] * 30 + [503] * 170
        assert [request.target for request in world.issuer.requests].count("/token") == 30
        world.clock.advance(60)
        assert world.redeem(client, back.parameters["code"]).status == 400
        assert signing_in(world) == (200, "")


def test_a_request_that_the_provider_accepts_costs_no_budget(world: World) -> None:
    world.stay_warm()
    client = world.register()["client_id"]
    token = world.tokens(client)["refresh_token"]
    for _ in range(40):
        answer = world.refresh(client, token)
        assert answer.status == 200
        token = answer.json["refresh_token"]


def test_values_of_other_containers_cost_one_call_for_each_of_their_keys(world: World) -> None:
    client = world.register()["client_id"]
    pages = [world.authorize_url(client) for _ in range(50)]
    world.stay_warm()
    before = world.kms.count("Decrypt")
    for page in pages:
        assert world.browser().get(page).status == 200
    assert world.kms.count("Decrypt") - before == 1


def test_a_value_that_was_changed_asks_kms_for_nothing_that_is_known(world: World) -> None:
    world.stay_warm()
    client = world.register()["client_id"]
    before = len(world.kms.calls)
    for at in range(len(client) - 40, len(client)):
        changed = client[:at] + ("A" if client[at] != "A" else "B") + client[at + 1 :]
        assert world.browser(ATTACKER).get(world.authorize_url(changed)).status == 400
    assert len(world.kms.calls) == before


def test_while_kms_does_not_answer_a_browser_sees_a_page_and_a_host_an_error(world: World) -> None:
    world.kms.weather = lambda _operation: OSError("down")
    page = world.browser().get(world.authorize_url(forged(world)))
    assert page.status == 503
    assert page.headers["content-type"].startswith("text/html")
    answer = world.send("POST", "/register", body={"redirect_uris": [HOST_REDIRECT]})
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
