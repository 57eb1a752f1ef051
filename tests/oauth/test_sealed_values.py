"""The authorization server seals its client ids, codes and tokens in envelopes, with a label for each purpose.

A sealed value opens for its own purpose alone, and only with the texts that it is bound to: a code is bound to its
client. The published vectors in tests/seal/vectors hold one sealed value of each purpose.
"""

from __future__ import annotations

import json
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mcp_functions.dispatch.seal_factory import STATES, SealFactory
from mcp_functions.oauth import sealed_values
from mcp_functions.oauth.sealed_values import PURPOSES, Purpose, SealedValues
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.seal.kms import KmsKey
from tests.support.envelope_vectors import VECTORS
from tests.support.settings import make_settings
from tests.support.strict_kms import Clock, StrictKms

if TYPE_CHECKING:
    from tests.oauth.oauth_server import OAuthServer


@pytest.fixture
def values() -> SealedValues:
    return SealedValues(make_factory(Clock()), Clock())


def make_factory(clock: Clock) -> SealFactory:
    kms = StrictKms()
    return SealFactory(make_settings(stack="shop"), "shop/oauth", [KmsKey(kms.create_key(), lambda: kms)], now=clock)


def name_of(purpose: Purpose) -> str:
    """Return the name of a purpose in the vectors."""
    return purpose.label.decode().removeprefix("ks1/")


@pytest.mark.parametrize("purpose", PURPOSES, ids=name_of)
def test_a_sealed_value_opens_only_for_its_own_purpose(values: SealedValues, purpose: Purpose) -> None:
    value = values.seal(purpose, {"a": 1}, "bound")
    assert values.open(purpose, value, "ann", "bound") == {"a": 1, "exp": Clock()() + purpose.lifetime_seconds}
    other_purposes = [other for other in PURPOSES if other is not purpose]
    for other in other_purposes:
        assert values.open(other, value, "ann", "bound") is None


def test_a_sealed_value_of_the_server_does_not_open_as_a_request_state() -> None:
    clock = Clock()
    seals = make_factory(clock)
    values = SealedValues(seals, clock)
    states = seals.seal(STATES, max_age=600, max_chars=8192)
    for purpose in PURPOSES:
        with pytest.raises(InvalidRequestState):
            states.unseal(values.seal(purpose, {}))


@pytest.mark.parametrize(
    "bound",
    [
        pytest.param((), id="no text"),
        pytest.param(("a",), id="one text"),
        pytest.param(("b", "a"), id="another order"),
        pytest.param(("a", "b", ""), id="one text more"),
        pytest.param(("ab", ""), id="a border moved to the right"),
        pytest.param(("", "ab"), id="a border moved to the left"),
        pytest.param(("a\0b",), id="the two texts joined"),
    ],
)
def test_a_sealed_value_opens_only_with_all_values_that_it_is_bound_to(
    values: SealedValues, bound: tuple[str, ...]
) -> None:
    value = values.seal(sealed_values.CODE, {}, "a", "b")
    assert values.open(sealed_values.CODE, value, "ann", *bound) is None


@pytest.mark.parametrize("purpose", PURPOSES, ids=name_of)
def test_a_sealed_value_expires(purpose: Purpose) -> None:
    clock = Clock()
    values = SealedValues(make_factory(clock), clock)
    value = values.seal(purpose, {})
    clock.advance(purpose.lifetime_seconds - 1)
    assert values.open(purpose, value, "ann") == {"exp": clock() + 1}
    clock.advance(1)
    assert values.open(purpose, value, "ann") is None


def test_no_two_bindings_are_encoded_to_the_same_bytes() -> None:
    texts = ["", "a", "b", "ab", "a\0b", "é"]
    bindings = [binding for size in range(4) for binding in permutations(texts, size)]
    encoded = {sealed_values.encode_binding(binding) for binding in bindings}
    assert len(encoded) == len(bindings)


@pytest.mark.parametrize("purpose", PURPOSES, ids=name_of)
def test_each_purpose_has_a_vector_that_another_implementation_can_check(purpose: Purpose) -> None:
    vector = VECTORS[f"accept-{name_of(purpose)}"]
    assert vector["label"] == purpose.label.decode()
    assert int(vector["max-age"]) == purpose.lifetime_seconds
    assert int(vector["max-chars"]) == purpose.max_chars
    assert vector.envelope().unseal(vector["token"], about=vector.about) == vector.payload
    assert json.loads(vector.payload)["exp"] > float(vector["now"])


class SealedValue(NamedTuple):
    """A value that the server has sealed."""

    purpose: Purpose
    claims: dict[str, object]
    binding: tuple[str, ...]


def test_the_vectors_have_the_claims_that_the_server_writes(
    server: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    values: list[SealedValue] = []
    seal = SealedValues.seal

    def record(self: SealedValues, purpose: Purpose, claims: dict[str, object], *binding: str) -> str:
        values.append(SealedValue(purpose, claims, binding))
        return seal(self, purpose, claims, *binding)

    monkeypatch.setattr(SealedValues, "seal", record)
    client = server.new_client()
    browser = server.new_browser()
    browser.allow(browser.authorize(client), remember="yes")
    server.get_tokens(client)

    assert {value.purpose for value in values} == set(PURPOSES)
    for value in values:
        vector = VECTORS[f"accept-{name_of(value.purpose)}"]
        assert json.loads(vector.payload).keys() == {*value.claims, "exp"}
        if value.binding:
            assert vector.about
