"""A sealed value opens for its purpose alone, and only with the texts that it is bound to."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_functions.dispatch.seal_factory import STATES, SealFactory
from mcp_functions.oauth import sealed_values
from mcp_functions.oauth.sealed_values import PURPOSES, Purpose, SealedValues
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.seal.kms import KmsKey
from mcp_functions.settings import Settings
from tests.seal.test_envelope import about_of, payload_of, read_vector, reader_of
from tests.support.strict_kms import Clock, StrictKms

if TYPE_CHECKING:
    from tests.oauth.oauth_server import OAuthServer

VECTORS = Path(__file__).parent.parent / "seal" / "vectors" / "envelope"


@pytest.fixture
def values() -> SealedValues:
    return SealedValues(factory(Clock()), Clock())


def factory(clock: Clock) -> SealFactory:
    kms = StrictKms()
    return SealFactory(Settings("shop"), "shop/oauth", [KmsKey(kms.create_key(), lambda: kms)], now=clock)


@pytest.mark.parametrize("purpose", PURPOSES, ids=lambda purpose: purpose.label.decode())
def test_a_value_opens_for_its_own_purpose_alone(values: SealedValues, purpose: Purpose) -> None:
    value = values.seal(purpose, {"a": 1}, ("bound",))
    assert values.open(purpose, value, "ann", ("bound",)) == {"a": 1, "exp": Clock()() + purpose.lifetime_seconds}
    for other in PURPOSES:
        if other is not purpose:
            assert values.open(other, value, "ann", ("bound",)) is None


def test_no_value_is_a_request_state() -> None:
    clock = Clock()
    seals = factory(clock)
    values = SealedValues(seals, clock)
    states = seals.seal(STATES, max_age=600, max_chars=8192)
    for purpose in PURPOSES:
        with pytest.raises(InvalidRequestState):
            states.unseal(values.seal(purpose, {}))


@pytest.mark.parametrize("bound", [(), ("a",), ("b", "a"), ("a", "b", ""), ("ab", ""), ("", "ab"), ("a\0b",)])
def test_a_value_opens_only_with_all_that_it_was_bound_to(values: SealedValues, bound: tuple[str, ...]) -> None:
    value = values.seal(sealed_values.CODE, {}, ("a", "b"))
    assert values.open(sealed_values.CODE, value, "ann", bound) is None


@pytest.mark.parametrize("purpose", PURPOSES, ids=lambda purpose: purpose.label.decode())
def test_a_value_ends_with_its_lifetime(purpose: Purpose) -> None:
    clock = Clock()
    values = SealedValues(factory(clock), clock)
    value = values.seal(purpose, {})
    clock.advance(purpose.lifetime_seconds - 1)
    assert values.open(purpose, value, "ann") == {"exp": clock() + 1}
    clock.advance(1)
    assert values.open(purpose, value, "ann") is None


def test_what_a_value_is_bound_to_has_one_spelling() -> None:
    texts = ["", "a", "b", "ab", "a\0b", "é"]
    spelt = {sealed_values.encode_binding(each) for size in range(4) for each in permutations(texts, size)}
    assert len(spelt) == sum(len(list(permutations(texts, size))) for size in range(4))


@pytest.mark.parametrize("purpose", PURPOSES, ids=lambda purpose: purpose.label.decode())
def test_each_purpose_has_a_vector_that_another_implementation_can_check(purpose: Purpose) -> None:
    name = purpose.label.decode().removeprefix("ks1/")
    vector = read_vector(VECTORS / f"accept-{name}.txt")
    assert vector["label"] == purpose.label.decode()
    assert (int(vector["max-age"]), int(vector["max-chars"])) == (purpose.lifetime_seconds, purpose.max_chars)
    claims = json.loads(payload_of(vector))
    assert reader_of(vector).unseal(vector["token"], about=about_of(vector)) == payload_of(vector)
    assert claims["exp"] > float(vector["now"])


def test_a_vector_has_the_claims_that_the_front_writes(server: OAuthServer, monkeypatch: pytest.MonkeyPatch) -> None:
    seal, written = SealedValues.seal, {}

    def noted(self: SealedValues, purpose: Purpose, claims: dict[str, object], bound: tuple[str, ...] = ()) -> str:
        written[purpose.label.decode().removeprefix("ks1/")] = ({*claims, "exp"}, bound)
        return seal(self, purpose, claims, bound)

    monkeypatch.setattr(SealedValues, "seal", noted)
    client, browser = server.new_client(), server.new_browser()
    browser.allow(browser.authorize(client), remember="yes")
    server.get_tokens(client)
    for name, (claims, bound) in written.items():
        vector = read_vector(VECTORS / f"accept-{name}.txt")
        assert set(json.loads(payload_of(vector))) == claims, name
        assert len(about_of(vector)) > 0 or not bound, name
    assert len(written) == len(PURPOSES)
