"""How often one caller can make a container call KMS (envelope.md §6.5).

A cold container must ask KMS to unwrap the data key of a token, and anyone can send tokens. So each caller has a
budget of 60 units: a failed unwrap costs 20, one for an authentic token costs 1, and 20 units come back in 30 seconds.
A caller over budget gets a 503, which says nothing about the token. Mallory is the attacker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.protocol.errors import McpError, TemporarilyUnavailable
from mcp_functions.seal import budgets, keyring
from mcp_functions.seal.binding import caller_id
from mcp_functions.seal.keyring import AUTHENTIC_UNWRAP_COST, FAILED_UNWRAP_COST, FULL_BUDGET, REFILL_PER_SECOND
from tests.seal.refusals import replace_character
from tests.support.strict_kms import BLOB_BYTES, START, Clock, StrictKms, make_envelope

if TYPE_CHECKING:
    from mcp_functions.seal.envelope import Envelope
    from tests.seal.conftest import StartContainer

OVER_BUDGET = "unwrap_budget"
# Where a character of a token belongs to the last bytes of the wrapped key. The fake KMS does not authenticate these,
# so it unwraps the key, and only the encrypted message shows that the token is forged.
LAST_BYTES_OF_WRAPPED_KEY = len("ks1.") + (12 + BLOB_BYTES - 4) * 4 // 3


def damage_wrapped_key(token: str, number: int) -> str:
    """Damage the wrapped key, so that a call of KMS fails. Each number of 60 gives another token."""
    return replace_character(token, 130 + number % 60)


def unseal_outcome(container: Envelope, token: str, caller: str) -> str:
    """Open a token; return "opened", or the reason for the error."""
    try:
        container.unseal(token, caller=caller)
    except McpError as error:
        return str(error.reason)
    return "opened"


def seal_under_many_keys(start_container: StartContainer, count: int) -> list[str]:
    """Seal authentic tokens. Each is sealed in a new container, and so under another data key."""
    return [start_container().seal(b"%d" % number) for number in range(count)]


def test_a_caller_may_cause_three_failed_unwraps_and_one_more_every_30_seconds(
    kms: StrictKms, clock: Clock, start_container: StartContainer
) -> None:
    token, container = start_container().seal(b"state"), start_container()
    damaged = [damage_wrapped_key(token, number) for number in range(60)]
    outcomes = [unseal_outcome(container, text, "mallory") for text in damaged]
    assert outcomes == ["wrapped_key"] * 3 + [OVER_BUDGET] * 57
    clock.advance(30)
    outcomes = [unseal_outcome(container, text, "mallory") for text in damaged]
    assert outcomes == ["wrapped_key"] + [OVER_BUDGET] * 59
    assert kms.count("Decrypt") == 4


def test_over_budget_a_good_token_gets_no_verdict_until_its_key_is_in_memory(start_container: StartContainer) -> None:
    token, container = start_container().seal(b"state"), start_container()
    for number in range(3):
        unseal_outcome(container, damage_wrapped_key(token, number), "mallory")
    with pytest.raises(TemporarilyUnavailable) as error:
        container.unseal(token, caller="mallory")
    assert error.value.headers == {"retry-after": "2"}
    assert container.unseal(token, caller="alice") == b"state"
    assert container.unseal(token, caller="mallory") == b"state"


def test_a_forged_token_whose_key_kms_unwraps_costs_the_full_price(
    kms: StrictKms, start_container: StartContainer
) -> None:
    token, container = start_container().seal(b"state"), start_container()
    forged = replace_character(token, LAST_BYTES_OF_WRAPPED_KEY)
    outcomes = [unseal_outcome(container, forged, "mallory") for _ in range(9)]
    assert outcomes == ["commitment"] * 3 + [OVER_BUDGET] * 6
    assert [call.outcome for call in kms.calls[1:]] == ["ok"] * 3


def test_a_forged_token_under_a_key_in_memory_costs_nothing(kms: StrictKms, start_container: StartContainer) -> None:
    container = start_container()
    forged = replace_character(container.seal(b"state"), -2)
    outcomes = [unseal_outcome(container, forged, "mallory") for _ in range(10)]
    assert outcomes == ["tag"] * 10
    assert kms.count("Decrypt") == 0
    assert container.unseal(start_container().seal(b"other"), caller="mallory") == b"other"


def test_a_caller_may_cause_41_authentic_unwraps_and_20_more_every_30_seconds(
    kms: StrictKms, clock: Clock, start_container: StartContainer
) -> None:
    tokens, container = seal_under_many_keys(start_container, 100), start_container()
    for _ in range(3):  # the keys in memory open their tokens as often as the caller likes
        outcomes = [unseal_outcome(container, token, "mallory") for token in tokens]
        assert outcomes == ["opened"] * 41 + [OVER_BUDGET] * 59
    clock.advance(30)
    outcomes = [unseal_outcome(container, token, "mallory") for token in tokens]
    assert outcomes == ["opened"] * 61 + [OVER_BUDGET] * 39
    assert kms.count("Decrypt") == 61
    assert container.unseal(tokens[-1], caller="alice")


def start_small_container(kms: StrictKms, arn: str, clock: Clock, max_keys: int) -> Envelope:
    with mock.patch.object(keyring, "MAX_KEYS", max_keys):
        return make_envelope(kms, arn, clock=clock)


def test_a_caller_with_many_keys_drops_none_of_other_callers_from_the_cache(
    kms: StrictKms, arn: str, clock: Clock, start_container: StartContainer
) -> None:
    container = start_small_container(kms, arn, clock, max_keys=8)
    alices, mallorys = seal_under_many_keys(start_container, 3), seal_under_many_keys(start_container, 40)
    for token in alices:
        container.unseal(token, caller="alice")
    for token in mallorys:
        container.unseal(token, caller="mallory")
    assert kms.count("Decrypt") == 43
    for token in alices:
        container.unseal(token, caller="alice")
    assert kms.count("Decrypt") == 43


def test_a_denial_costs_the_full_price_and_is_reported_each_time(
    kms: StrictKms, clock: Clock, start_container: StartContainer
) -> None:
    tokens, container = seal_under_many_keys(start_container, 10), start_container()
    denial = "kms:AccessDeniedException"
    kms.policy = lambda _operation, _key_id, _context: False
    assert [unseal_outcome(container, token, "alice") for token in tokens] == [denial] * 3 + [OVER_BUDGET] * 7
    clock.advance(30)
    assert [unseal_outcome(container, token, "alice") for token in tokens] == [denial] + [OVER_BUDGET] * 9
    kms.policy = lambda _operation, _key_id, _context: True
    clock.advance(30)
    assert container.unseal(tokens[0], caller="alice")


@pytest.mark.parametrize(
    ("token_is", "costs"),
    [
        pytest.param("authentic", ("opened", AUTHENTIC_UNWRAP_COST), id="the token is authentic"),
        pytest.param("forged", ("commitment", FAILED_UNWRAP_COST), id="KMS unwraps the key of a forged token"),
        pytest.param("damaged", ("wrapped_key", FAILED_UNWRAP_COST), id="KMS refuses a damaged key"),
        pytest.param("denied", ("kms:AccessDeniedException", FAILED_UNWRAP_COST), id="a policy denies the key"),
        pytest.param("unanswered", ("kms:TimeoutError", 0), id="KMS is not available"),
        pytest.param("sealed here", ("opened", 0), id="the key is in memory"),
    ],
)
def test_what_a_token_costs_its_caller(
    token_is: str, costs: tuple[str, int], kms: StrictKms, clock: Clock, start_container: StartContainer
) -> None:
    token, container = start_container().seal(b"state"), start_container()
    match token_is:
        case "forged":
            token = replace_character(token, LAST_BYTES_OF_WRAPPED_KEY)
        case "damaged":
            token = damage_wrapped_key(token, 0)
        case "denied":
            kms.policy = lambda _operation, _key_id, _context: False
        case "unanswered":
            kms.weather = lambda _operation: TimeoutError()
        case "sealed here":
            token = container.seal(b"state")
    outcome, cost = costs
    assert unseal_outcome(container, token, "alice") == outcome
    buckets = container._keys._budgets  # noqa: SLF001
    assert buckets.take("alice", FULL_BUDGET - cost, clock())
    assert not buckets.take("alice", 1, clock())


ACTIONS = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 40)),
    st.tuples(st.sampled_from(["authentic", "damaged", "forged"]), st.integers(0, 59)),
    st.tuples(st.sampled_from(["deny", "allow"]), st.just(0)),
)


@given(st.lists(ACTIONS, max_size=200), st.integers(4, 64))
def test_no_sequence_of_tokens_costs_more_than_the_budget(actions: list[tuple[str, int]], max_keys: int) -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    tokens = seal_under_many_keys(lambda: make_envelope(kms, arn, clock=clock), 60)
    container = start_small_container(kms, arn, clock, max_keys)
    spent = 0
    for action, number in actions:
        calls_before, price = kms.count("Decrypt"), FAILED_UNWRAP_COST
        match action:
            case "wait":
                clock.advance(number)
            case "deny":
                kms.policy = lambda _operation, _key_id, _context: False
            case "allow":
                kms.policy = lambda _operation, _key_id, _context: True
            case "damaged":
                unseal_outcome(container, damage_wrapped_key(tokens[number], number), "mallory")
            case "forged":
                forged = replace_character(tokens[number], LAST_BYTES_OF_WRAPPED_KEY)
                unseal_outcome(container, forged, "mallory")
            case "authentic":
                if unseal_outcome(container, tokens[number], "mallory") == "opened":
                    price = AUTHENTIC_UNWRAP_COST
        spent += price * (kms.count("Decrypt") - calls_before)
        assert spent <= FULL_BUDGET + (clock.at - START - 10) * REFILL_PER_SECOND


def test_ten_thousand_callers_neither_lock_out_another_nor_fill_the_memory(
    clock: Clock, start_container: StartContainer
) -> None:
    token, container = start_container().seal(b"state"), start_container()
    buckets = container._keys._budgets  # noqa: SLF001
    for number in range(10_000):
        buckets.take(f"caller {number}", FULL_BUDGET, clock())
    assert len(buckets._buckets) == budgets.MAX_CALLERS == 4096  # noqa: SLF001
    assert container.unseal(token, caller="alice") == b"state"


def test_callers_whose_charge_was_returned_do_not_replace_one_who_pays(
    clock: Clock, start_container: StartContainer
) -> None:
    buckets = start_container()._keys._budgets  # noqa: SLF001
    buckets.take("mallory", FULL_BUDGET, clock())
    for number in range(budgets.MAX_CALLERS + 1):
        buckets.take(f"caller {number}", FAILED_UNWRAP_COST, clock())
        buckets.put_back(f"caller {number}", FAILED_UNWRAP_COST, clock())
    assert not buckets.take("mallory", 1, clock())


def test_a_second_call_during_a_slow_one_does_not_refill_the_budget_twice(
    kms: StrictKms, clock: Clock, start_container: StartContainer
) -> None:
    tokens, container = seal_under_many_keys(start_container, 2), start_container()
    buckets = container._keys._budgets  # noqa: SLF001
    assert buckets.take("alice", 60, clock())
    clock.advance(60)  # refills 40 units

    def open_the_other_token(_operation: str) -> None:
        kms.weather = lambda _operation: None
        clock.advance(15)  # refills 10 more units, while KMS works on the first token
        assert container.unseal(tokens[1], caller="alice")

    kms.weather = open_the_other_token
    assert container.unseal(tokens[0], caller="alice")
    assert buckets.take("alice", 40 + 10 - 2, clock())
    assert not buckets.take("alice", 1, clock())


# ---- Without a sign-in, a caller is the network of an address


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("2001:db8:1:2::9", "2001:db8:1:2:ffff:ffff:ffff:ffff", id="64 bits of IPv6"),
        pytest.param("2001:db8:1:2::9", "2001:0DB8:0001:0002:0:0:0:9", id="two spellings"),
        pytest.param("fe80::1%eth0", "fe80::2%eth1", id="two network cards"),
        pytest.param("198.51.100.7", "::ffff:198.51.100.7", id="IPv4 mapped to IPv6"),
        pytest.param("198.51.100.7", "64:ff9b::c633:6407", id="IPv4 behind NAT64"),
        pytest.param("2002:c633:6407:1::1", "2002:c633:6407:2::1", id="two networks of one 6to4 site"),
        pytest.param("198.51.100.7", "2002:c633:6407::1", id="IPv4 and its 6to4 site"),
        pytest.param("2001:0:4136:e378:8000:63bf:39cc:9bf8", "2001:0:1:2:0:0:39cc:9bf8", id="two relays of Teredo"),
    ],
)
def test_the_addresses_of_one_network_are_one_caller(first: str, second: str) -> None:
    assert caller_id(None, first) == caller_id(None, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("198.51.100.7", "198.51.100.8", id="IPv4"),
        pytest.param("2001:db8:1:2::9", "2001:db8:1:3::9", id="IPv6"),
        pytest.param("::ffff:198.51.100.7", "::ffff:198.51.100.8", id="IPv4 mapped to IPv6"),
        pytest.param("64:ff9b::c633:6407", "64:ff9b::c633:6408", id="IPv4 behind NAT64"),
        pytest.param("2002:c633:6407::1", "2002:c633:6408::1", id="6to4"),
        pytest.param("2001:0:1:2::39cc:9bf8", "2001:0:1:2::39cc:9bf9", id="Teredo"),
        pytest.param("", "no:address", id="no addresses"),
    ],
)
def test_the_addresses_of_two_networks_are_two_callers(first: str, second: str) -> None:
    assert caller_id(None, first) != caller_id(None, second)
