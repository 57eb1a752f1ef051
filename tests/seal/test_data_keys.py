"""Which data keys a container adopts, how long each opens tokens, and how an operator rotates wrapping keys.

A wrapping key never leaves KMS. A data key encrypts tokens; each token carries it, wrapped by KMS. A container adopts a
data key, so that it also seals with it, once it has opened an authentic token under that key.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.seal import keyring
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import DataKey, WrappedKey, kek_hint
from mcp_functions.seal.kms import KmsKey
from tests.seal.refusals import assert_refused, replace_character
from tests.support.strict_kms import SCOPE, StrictKms, make_envelope, make_keys

if TYPE_CHECKING:
    from tests.seal.conftest import StartContainer
    from tests.support.strict_kms import Clock

EPOCH = 900  # seconds
SKEW = 60  # how far two clocks may differ, in seconds
DAY = 86_400


# Which key is adopted


def test_a_key_is_not_adopted_from_a_forged_token(kms: StrictKms, start_container: StartContainer) -> None:
    token, container = start_container().seal(b"state"), start_container()
    with assert_refused("tag"):
        container.unseal(replace_character(token, -2))
    container.seal(b"state")
    assert kms.count("GenerateDataKey") == 2


def test_a_key_does_not_seal_before_its_token_is_opened(kms: StrictKms, arn: str, clock: Clock) -> None:
    wrapped_key = make_keys(kms, arn, clock=clock).key_to_seal().wrapped_key
    container = make_keys(kms, arn, clock=clock)

    def decrypt(opened: DataKey) -> bytes:
        assert container.key_to_seal() != opened
        return b"state"

    assert container.open(wrapped_key, decrypt, caller="alice", max_age=600) == b"state"
    assert kms.count("GenerateDataKey") == 2


def test_a_key_under_the_second_wrapping_key_is_never_adopted(kms: StrictKms, clock: Clock) -> None:
    old, new = kms.create_key(), kms.create_key()
    token = make_envelope(kms, old, clock=clock).seal(b"state")
    container = make_envelope(kms, new, old, clock=clock)
    assert container.unseal(token) == b"state"
    container.seal(b"state")
    assert kms.calls[-1].operation == "GenerateDataKey"
    assert kms.calls[-1].key_id == new


def test_a_data_key_does_not_print_itself() -> None:
    key = DataKey(WrappedKey(1, b"kek1", b"wrapped"), b"\xc0\xff\xee" * 10 + b"\0\0")
    for text in (repr(key), str(key), f"{key}"):
        assert "xc0" not in text
        assert "c0ffee" not in text


# Which key opens


@pytest.mark.parametrize("max_age", [600, 3 * DAY])
@pytest.mark.parametrize("is_warm", [True, False], ids=["warm", "cold"])
def test_a_data_key_opens_until_every_token_under_it_has_ended(
    start_container: StartContainer, clock: Clock, max_age: int, *, is_warm: bool
) -> None:
    writer = start_container(max_age=max_age)
    reader = writer if is_warm else start_container(max_age=max_age)
    token = writer.seal(b"state")
    last_use = (int(clock.at) // EPOCH + 2) * EPOCH  # no container seals under the key any more
    clock.at = last_use + max_age + SKEW
    assert reader.unseal(token) == b"state"
    clock.advance(1)
    with assert_refused("born_past"):
        reader.unseal(token)


def test_an_old_data_key_is_refused_before_kms_is_asked(
    kms: StrictKms, start_container: StartContainer, clock: Clock
) -> None:
    token = start_container().seal(b"state")
    clock.advance(DAY)
    with assert_refused("born_past"):
        start_container().unseal(token)
    assert kms.count("Decrypt") == 0


def test_a_data_key_from_the_future_is_refused_before_kms_is_asked(
    kms: StrictKms, start_container: StartContainer, clock: Clock
) -> None:
    token = start_container().seal(b"state")
    clock.advance(-SKEW)
    assert start_container().unseal(token) == b"state"
    clock.advance(-1)
    with assert_refused("born_future"):
        start_container().unseal(token)
    assert kms.count("Decrypt") == 1


def forge(keys: Keyring, key: DataKey) -> str:
    """Seal as an attacker who runs code of his own, under a data key that he has changed."""
    with mock.patch.object(keys, "key_to_seal", return_value=key):
        return Envelope(keys).seal(b"forged")


def test_a_stolen_data_key_cannot_be_made_younger(kms: StrictKms, arn: str, clock: Clock) -> None:
    keys = make_keys(kms, arn, clock=clock)
    stolen = keys.key_to_seal()
    clock.advance(DAY)
    rejuvenated = stolen._replace(wrapped_key=stolen.wrapped_key._replace(born=int(clock.at)))
    forged = forge(keys, rejuvenated)
    with assert_refused("wrapped_key"):
        make_envelope(kms, arn, clock=clock).unseal(forged)


def test_a_data_key_wrapped_under_a_foreign_key_is_refused_by_the_key_id(kms: StrictKms, clock: Clock) -> None:
    ours, theirs = kms.create_key(), kms.create_key()
    keys = make_keys(kms, theirs, clock=clock)
    key = keys.key_to_seal()
    wrapped_key = key.wrapped_key._replace(kek_hint=kek_hint(ours.rpartition("/")[2]))
    forged = forge(keys, key._replace(wrapped_key=wrapped_key))
    with assert_refused("wrapped_key"):
        make_envelope(kms, ours, clock=clock).unseal(forged)
    assert kms.calls[-1].outcome == "IncorrectKeyException"


def test_a_full_cache_drops_the_key_that_was_used_least_recently(
    kms: StrictKms, start_container: StartContainer
) -> None:
    tokens = [start_container().seal(b"%d" % number) for number in range(6)]
    with mock.patch.object(keyring, "MAX_KEYS", 4):
        reader = start_container()
    for token in tokens:
        reader.unseal(token)
    for token in tokens[-4:]:
        reader.unseal(token)
    assert kms.count("Decrypt") == 6
    reader.unseal(tokens[0])
    assert kms.count("Decrypt") == 7


def test_every_call_of_kms_names_the_key_the_scope_and_the_birth_time(
    kms: StrictKms, arn: str, start_container: StartContainer
) -> None:
    start_container().unseal(start_container().seal(b"state"))
    for call in kms.calls:
        assert call.key_id == arn
        assert call.context == {
            "purpose": "mcp-request-state",
            "service": "demo/update_work_item",
            "stage": "prod",
            "generation": "1",
            "born": "1767225610",
        }


def test_a_policy_for_a_service_stops_a_function_of_another_service(
    kms: StrictKms, start_container: StartContainer
) -> None:
    kms.policy = lambda _operation, _key_id, context: context["service"] == SCOPE.service
    assert start_container().seal(b"state")
    with pytest.raises(Misconfigured):
        start_container(scope=SCOPE._replace(service="demo/other")).seal(b"state")


# Rotation of the wrapping key, in three deploys


@pytest.mark.parametrize(("before", "after"), list(pairwise([["old"], ["old", "new"], ["new", "old"]])), ids=str)
def test_containers_of_two_successive_deploys_open_each_others_tokens(
    kms: StrictKms, clock: Clock, before: list[str], after: list[str]
) -> None:
    arns = {"old": kms.create_key(), "new": kms.create_key()}
    one = make_envelope(kms, *[arns[name] for name in before], clock=clock)
    other = make_envelope(kms, *[arns[name] for name in after], clock=clock)
    assert other.unseal(one.seal(b"state")) == b"state"
    assert one.unseal(other.seal(b"state")) == b"state"


def test_a_wrapping_key_can_be_dropped_when_its_last_token_has_ended(kms: StrictKms, clock: Clock) -> None:
    old, new = kms.create_key(), kms.create_key()
    token = make_envelope(kms, old, new, clock=clock).seal(b"state")
    clock.advance(2 * EPOCH - 10 + 600 + SKEW)
    assert make_envelope(kms, new, old, clock=clock).unseal(token) == b"state"
    clock.advance(1)
    with assert_refused("born_past"):
        make_envelope(kms, new, old, clock=clock).unseal(token)


def test_a_container_without_the_new_wrapping_key_refuses_its_tokens(kms: StrictKms) -> None:
    old, new = kms.create_key(), kms.create_key()
    token = make_envelope(kms, new, old).seal(b"state")  # the deploy that lists [old, new] was left out
    with assert_refused("kek_unknown"):
        make_envelope(kms, old).unseal(token)


def test_a_rotation_inside_kms_changes_nothing(kms: StrictKms, arn: str, start_container: StartContainer) -> None:
    token = start_container().seal(b"state")
    kms.rotate(arn)
    container = start_container()
    assert container.seal(b"new material")
    assert container.unseal(token) == b"state"


def test_a_token_travels_between_regions_under_a_multi_region_key() -> None:
    ireland, frankfurt = StrictKms("eu-west-1"), StrictKms("eu-central-1")
    primary = ireland.create_key(multi_region=True)
    replica = ireland.replicate(primary, frankfurt)
    here, there = make_envelope(ireland, primary), make_envelope(frankfurt, replica)
    assert there.unseal(here.seal(b"state")) == b"state"
    assert here.unseal(there.seal(b"state")) == b"state"


def test_a_replica_works_while_its_primary_is_disabled() -> None:
    ireland, frankfurt = StrictKms("eu-west-1"), StrictKms("eu-central-1")
    primary = ireland.create_key(multi_region=True)
    replica = ireland.replicate(primary, frankfurt)
    ireland.set_state(primary, "Disabled")
    assert make_envelope(frankfurt, replica).seal(b"state")


# Configuration


@pytest.mark.parametrize("arn", ["arn:aws:kms:eu-west-1:111122223333:alias/seal", "alias/seal", ""])
def test_an_alias_is_refused_when_it_is_configured(arn: str) -> None:
    with pytest.raises(Misconfigured) as error:
        KmsKey(arn)
    assert "key ARNs" in str(error.value.reason)


@pytest.mark.parametrize("count", [0, 2], ids=["no key", "the same key twice"])
def test_a_list_of_keys_is_neither_empty_nor_has_a_key_twice(count: int) -> None:
    with pytest.raises(Misconfigured):
        Keyring([KmsKey("arn:aws:kms:eu-west-1:1:key/k")] * count, SCOPE)
