"""Data keys: which one seals, which one opens, what KMS may say, and what all of that may cost."""

from __future__ import annotations

import json
import os
import random
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unittest import mock

import botocore.exceptions
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.protocol.errors import InvalidRequestState, McpError, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal import budgets, data_keys, key_cache, resets
from mcp_functions.seal.data_keys import FAILED_UNWRAP_COST, FULL_BUDGET, REFILL_PER_SECOND, Keyring
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.key_choice import GRACE_RANDOM_BYTES, choose_key, draw_grace
from mcp_functions.seal.keys import DataKey, Header, kek_hint
from mcp_functions.seal.kms import KmsKey, kms_client
from tests.support.strict_kms import SCOPE, START, Clock, StrictKms, kms_error, make_envelope, make_keys, run_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EPOCH, GRACE, STALE = 900, 225, 900  # a key of the previous epoch may seal for STALE seconds while KMS fails


def key(born: float, name: bytes = b"w") -> DataKey:
    return DataKey(Header(int(born), b"kek1", name), b"\0" * 32)


def choose(keys: list[DataKey], now: float, grace: float = GRACE) -> DataKey | None:
    return choose_key(keys, now, grace)


# Which key seals


def test_the_oldest_key_of_the_current_epoch_seals() -> None:
    young, old = key(START + 200), key(START + 100)
    assert choose([young, old], START + 300) == old


def test_twins_are_chosen_alike_in_whatever_order_they_were_learnt() -> None:
    one, other = key(START, b"one"), key(START, b"other")
    assert choose([one, other], START) == choose([other, one], START)


def test_the_key_of_the_previous_epoch_seals_until_the_grace_ends_or_this_container_leaves_it_early() -> None:
    old, epoch = key(START), START + EPOCH
    for drawn in (b"123456", b"other!"):
        grace = draw_grace(drawn)
        assert 0 < grace < GRACE
        assert choose([old], epoch + grace - 0.1, grace) == old
        assert choose([old], epoch + grace + 0.1, grace) is None
    assert choose([old], epoch + GRACE) is None


def test_a_key_from_the_next_epoch_waits_for_it() -> None:
    assert choose([key(START + EPOCH)], START + EPOCH - 1) is None


BORN = st.integers(0, 4 * EPOCH).map(lambda seconds: key(START + seconds, b"%d" % seconds))


@given(st.lists(BORN, max_size=16), st.floats(0, 5 * EPOCH), st.floats(0, GRACE))
def test_no_choice_is_outside_of_its_window(keys: list[DataKey], at: float, grace: float) -> None:
    now = START + at
    choice = choose(keys, now, grace)
    if choice:
        end = (choice.header.born // EPOCH + 1) * EPOCH
        assert choice in keys
        assert now < end + GRACE
        assert choice.header.born // EPOCH <= now // EPOCH
    current = [known for known in keys if known.header.born // EPOCH == now // EPOCH]
    assert bool(current) <= (choice in current)


@given(st.lists(BORN, max_size=10), st.floats(0, 5 * EPOCH))
def test_a_container_chooses_among_the_keys_that_tokens_have_proven(keys: list[DataKey], at: float) -> None:
    kms, clock = StrictKms(), Clock(START + at)
    container = make_keys(kms, kms.create_key(), clock=clock)
    first = container._wrapping_keys.first_hint  # noqa: SLF001
    proven = [found._replace(header=found.header._replace(kek_hint=first)) for found in keys]
    for found in proven:
        container._cache.add(found, "alice")  # noqa: SLF001
    wanted = choose(proven, clock.at, container._choice.grace)  # noqa: SLF001
    made = container.key_to_seal()
    assert made == wanted or (wanted is None and made not in proven)


# A fleet


def test_a_fleet_adopts_the_key_of_the_sibling_whose_token_it_opens() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    fleet = [make_envelope(kms, arn, clock=clock) for _ in range(20)]
    token = fleet[0].seal(b"state")
    for container in fleet:
        assert container.unseal(token) == b"state"
        token = container.seal(b"state")
    assert kms.count("GenerateDataKey") == 1
    assert kms.count("Decrypt") == 19


def test_a_fleet_rolls_over_with_few_calls() -> None:
    kms, clock = StrictKms(), Clock(START)
    arn = kms.create_key()
    fleet = [make_envelope(kms, arn, clock=clock) for _ in range(20)]
    token, rounds = fleet[0].seal(b"state"), 3000
    for number in range(rounds):
        clock.advance(1)
        opener = fleet[(number * 7) % 20]
        assert opener.unseal(token) == b"state"
        token = opener.seal(b"state")
    epochs = rounds // EPOCH + 1
    assert kms.count("GenerateDataKey") <= 4 * epochs
    assert kms.count("Decrypt") <= 20 * 4 * epochs


def test_two_containers_and_one_that_is_reset_have_grace_periods_of_their_own() -> None:
    kms = StrictKms()
    arn = kms.create_key()
    one, other = make_keys(kms, arn), make_keys(kms, arn)
    periods = {one._choice.grace, other._choice.grace}  # noqa: SLF001
    one.reset()
    assert len(periods | {one._choice.grace}) == 3  # noqa: SLF001


def test_containers_leave_the_grace_period_early_by_the_mean_that_the_specification_says() -> None:
    chance = random.Random(1)  # noqa: S311 - chance that repeats
    early = [GRACE - draw_grace(chance.randbytes(GRACE_RANDOM_BYTES)) for _ in range(4000)]
    assert 0.9 < sum(early) / len(early) / (GRACE / 12) < 1.1
    assert min(early) >= 0


def test_the_least_and_the_greatest_random_bytes_make_a_grace_period_too() -> None:
    assert draw_grace(b"\xff" * GRACE_RANDOM_BYTES) == GRACE
    assert draw_grace(bytes(GRACE_RANDOM_BYTES)) < 0  # this container always generates its key at once


def test_a_key_that_no_token_has_proven_is_never_adopted() -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    container = make_envelope(kms, arn, clock=clock)
    with pytest.raises(InvalidRequestState):
        container.unseal(token[:-3] + "AAA")
    container.seal(b"state")
    assert kms.count("GenerateDataKey") == 2


def test_a_key_whose_token_is_still_being_opened_does_not_seal() -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    arn = kms.create_key()
    header = make_keys(kms, arn, clock=clock).key_to_seal().header
    container = make_keys(kms, arn, clock=clock)
    sealing: list[DataKey] = []

    def decrypt(opened: DataKey) -> bytes:
        sealing.append(container.key_to_seal())
        assert sealing != [opened]
        return b"state"

    assert container.open(header, decrypt, caller="alice", max_age=600) == b"state"
    assert sealing
    assert kms.count("GenerateDataKey") == 2


def test_a_key_under_another_than_the_first_wrapping_key_is_never_adopted() -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    old, new = kms.create_key(), kms.create_key()
    token = make_envelope(kms, old, clock=clock).seal(b"state")
    container = make_envelope(kms, new, old, clock=clock)
    assert container.unseal(token) == b"state"
    container.seal(b"state")
    assert kms.calls[-1].operation == "GenerateDataKey"
    assert kms.calls[-1].key_id == new


# Which key opens


@pytest.mark.parametrize("max_age", [600, 3 * 86400])
def test_a_data_key_opens_until_everything_sealed_under_it_has_ended_and_not_a_second_longer(max_age: int) -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    arn = kms.create_key()
    warm = make_envelope(kms, arn, clock=clock, max_age=max_age)
    token = warm.seal(b"state")
    clock.at = START + EPOCH + STALE + max_age + 60
    cold = make_envelope(kms, arn, clock=clock, max_age=max_age)
    assert warm.unseal(token) == cold.unseal(token) == b"state"
    clock.advance(1)
    calls = len(kms.calls)
    for container in (warm, cold, make_envelope(kms, arn, clock=clock, max_age=max_age)):
        with pytest.raises(InvalidRequestState) as refused:
            container.unseal(token)
        assert refused.value.reason == "born_past"
    assert len(kms.calls) == calls


def test_a_data_key_from_the_future_is_refused_before_kms_is_asked() -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    clock.advance(-60)
    assert make_envelope(kms, arn, clock=clock).unseal(token) == b"state"
    clock.advance(-1)
    calls = len(kms.calls)
    with pytest.raises(InvalidRequestState, match="Invalid or expired requestState") as refused:
        make_envelope(kms, arn, clock=clock).unseal(token)
    assert refused.value.reason == "born_future"
    assert len(kms.calls) == calls


def test_a_stolen_data_key_cannot_be_made_younger() -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    arn = kms.create_key()
    thief = make_keys(kms, arn, clock=clock)
    stolen = thief.key_to_seal()
    clock.advance(86400)
    rejuvenated = stolen._replace(header=stolen.header._replace(born=int(clock.at)))
    with mock.patch.object(thief, "key_to_seal", return_value=rejuvenated):  # the thief runs code of his own
        forged = Envelope(thief).seal(b"forged")
    with pytest.raises(InvalidRequestState) as refused:
        make_envelope(kms, arn, clock=clock).unseal(forged)
    assert refused.value.reason == "wrapped_key"


def test_a_data_key_wrapped_under_a_foreign_key_is_refused_by_the_key_id() -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    ours, theirs = kms.create_key(), kms.create_key()
    attacker = make_keys(kms, theirs, clock=clock)
    key_of_theirs = attacker.key_to_seal()
    header = key_of_theirs.header._replace(kek_hint=kek_hint(ours.rpartition("/")[2]))
    disguised = key_of_theirs._replace(header=header)
    with mock.patch.object(attacker, "key_to_seal", return_value=disguised):
        forged = Envelope(attacker).seal(b"forged")
    with pytest.raises(InvalidRequestState) as refused:
        make_envelope(kms, ours, clock=clock).unseal(forged)
    assert refused.value.reason == "wrapped_key"
    assert kms.calls[-1].outcome == "IncorrectKeyException"


def test_the_list_of_opened_keys_is_bounded_and_what_falls_out_is_asked_for_again() -> None:
    kms, clock = StrictKms(), Clock(START)
    arn = kms.create_key()
    tokens = [make_envelope(kms, arn, clock=clock).seal(b"%d" % number) for number in range(6)]
    reader = bounded(kms, arn, clock, max_keys=4)
    for token in tokens:
        reader.unseal(token)
    before = kms.count("Decrypt")
    reader.unseal(tokens[-1])
    assert kms.count("Decrypt") == before
    reader.unseal(tokens[0])
    assert kms.count("Decrypt") == before + 1
    assert len(reader._keys._cache.all()) == 4  # noqa: SLF001


# Errors of KMS

OUTAGES = [
    "ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException", "LimitExceededException",
    "KMSInternalException", "DependencyTimeoutException", "KeyUnavailableException", "ServiceUnavailable",
    "ExpiredTokenException",
]  # fmt: skip
DENIALS = [
    "AccessDeniedException", "DisabledException", "KMSInvalidStateException", "NotFoundException",
    "InvalidKeyUsageException", "InvalidGrantTokenException", "UnrecognizedClientException", "SomethingNewException",
]  # fmt: skip
CONNECTION = [
    botocore.exceptions.EndpointConnectionError(endpoint_url="https://kms"),
    botocore.exceptions.ConnectTimeoutError(endpoint_url="https://kms"),
    botocore.exceptions.ReadTimeoutError(endpoint_url="https://kms"),
    botocore.exceptions.ConnectionClosedError(endpoint_url="https://kms"),
    TimeoutError(),
    ConnectionResetError(),
]


def says(error: Exception, operation: str | None = None) -> Callable[[str], Exception | None]:
    return lambda asked: error if operation in {None, asked} else None


@pytest.mark.parametrize("error", [*map(kms_error, OUTAGES), *CONNECTION], ids=repr)
def test_an_outage_is_503_for_sealing_and_opening_and_costs_the_caller_nothing(error: Exception) -> None:
    kms, clock = StrictKms(), Clock()
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    container = make_envelope(kms, arn, clock=clock)
    kms.weather = says(error)
    for _ in range(5):
        with pytest.raises(TemporarilyUnavailable) as opening:
            container.unseal(token, caller="someone")
        with pytest.raises(TemporarilyUnavailable) as sealing:
            container.seal(b"state")
    assert opening.value.status == sealing.value.status == 503
    assert opening.value.data == {"retryable": True}
    kms.weather = says(error, "nothing")
    assert container.unseal(token, caller="someone") == b"state"


@pytest.mark.parametrize("code", DENIALS)
def test_a_denial_on_the_first_key_is_the_operators_work(code: str) -> None:
    kms = StrictKms()
    arn = kms.create_key()
    token = make_envelope(kms, arn).seal(b"state")
    kms.weather = says(kms_error(code))
    container = make_envelope(kms, arn)
    for attempt in (lambda: container.unseal(token), lambda: container.seal(b"state")):
        with pytest.raises(Misconfigured) as refused:
            attempt()
        assert refused.value.reason == f"kms:{code}"
        assert refused.value.status == 500
        assert refused.value.message == "Internal error"


@pytest.mark.parametrize("code", DENIALS)
def test_a_denial_on_another_key_refuses_its_tokens_and_pages_nobody(code: str) -> None:
    kms = StrictKms()
    new, old = kms.create_key(), kms.create_key()
    token = make_envelope(kms, old).seal(b"state")
    kms.weather = says(kms_error(code), "Decrypt")
    with pytest.raises(InvalidRequestState) as refused:
        make_envelope(kms, new, old).unseal(token)
    assert refused.value.reason == "kek_retired"


@pytest.mark.parametrize("code", OUTAGES)
def test_an_outage_of_another_key_is_an_outage(code: str) -> None:
    kms = StrictKms()
    new, old = kms.create_key(), kms.create_key()
    token = make_envelope(kms, old).seal(b"state")
    kms.weather = says(kms_error(code))
    with pytest.raises(TemporarilyUnavailable):
        make_envelope(kms, new, old).unseal(token)


@pytest.mark.parametrize("code", ["InvalidCiphertextException", "IncorrectKeyException", "ValidationException"])
def test_what_kms_says_about_the_bytes_is_a_bad_token_when_opening_and_an_alarm_when_sealing(code: str) -> None:
    kms = StrictKms()
    arn = kms.create_key()
    token = make_envelope(kms, arn).seal(b"state")
    kms.weather = says(kms_error(code))
    with pytest.raises(InvalidRequestState) as refused:
        make_envelope(kms, arn).unseal(token)
    assert refused.value.reason == "wrapped_key"
    with pytest.raises(Misconfigured) as alarm:
        make_envelope(kms, arn).seal(b"state")
    assert alarm.value.reason == f"kms:{code}"


@pytest.mark.parametrize("state", ["Disabled", "PendingDeletion"])
def test_disabling_the_first_key_stops_sealing_visibly_even_where_an_older_data_key_is_left(state: str) -> None:
    kms, clock = StrictKms(), Clock(START + 800)
    arn = kms.create_key()
    container = make_envelope(kms, arn, clock=clock)
    container.seal(b"state")
    kms.set_state(arn, state)
    clock.advance(400)
    with pytest.raises(Misconfigured):
        container.seal(b"state")


@pytest.mark.parametrize(
    "lie",
    [
        {"KeyId": "arn:aws:kms:eu-west-1:111122223333:key/another"},
        {"KeyId": "x00000000-0000-4000-8000-000000000001"},
        {"Plaintext": b"\0" * 16},
        {"Plaintext": b""},
    ],
    ids=str,
)
def test_an_answer_about_another_key_or_of_another_length_is_not_used(lie: dict[str, Any]) -> None:
    kms = StrictKms()
    arn = kms.create_key()
    token = make_envelope(kms, arn).seal(b"state")
    kms.answer = lambda answer: answer | lie
    for attempt in (lambda: make_envelope(kms, arn).unseal(token), lambda: make_envelope(kms, arn).seal(b"state")):
        with pytest.raises(Misconfigured, match="Internal error"):
            attempt()


def test_a_client_that_cannot_be_built_is_the_operators_work() -> None:
    def broken() -> object:
        raise botocore.exceptions.NoRegionError

    with pytest.raises(Misconfigured) as refused:
        Keyring([KmsKey("arn:aws:kms:eu-west-1:1:key/k", broken)], SCOPE).key_to_seal()
    assert refused.value.reason == "kms:NoRegionError"


def test_no_exception_text_of_kms_goes_on() -> None:
    kms = StrictKms()
    arn = kms.create_key()
    kms.weather = says(RuntimeError("the secret context"))
    with pytest.raises(Misconfigured) as refused:
        make_envelope(kms, arn).seal(b"state")
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
    assert "secret" not in f"{refused.value!r} {refused.value.reason}"


def test_the_whole_scope_and_the_birth_time_stand_in_the_context_and_nothing_else() -> None:
    kms, clock = StrictKms(), Clock(START + 5)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    make_envelope(kms, arn, clock=clock).unseal(token)
    for call in kms.calls:
        assert call.key_id == arn
        assert call.context == {
            "purpose": "mcp-request-state",
            "service": "demo/update_work_item",
            "stage": "prod",
            "generation": "1",
            "born": "1767225605",
        }


def test_a_policy_per_service_stops_a_function_that_claims_another_scope() -> None:
    kms = StrictKms()
    arn = kms.create_key()
    kms.policy = lambda _operation, _key_id, context: context["service"] == "demo/update_work_item"
    make_envelope(kms, arn).seal(b"state")
    with pytest.raises(Misconfigured):
        make_envelope(kms, arn, scope=SCOPE._replace(service="demo/other")).seal(b"state")


# Outages


def test_while_kms_cannot_answer_a_warm_container_seals_for_an_epoch_more_and_no_longer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    arn = kms.create_key()
    warm, sibling = make_envelope(kms, arn, clock=clock), make_envelope(kms, arn, clock=clock)
    sibling.unseal(warm.seal(b"state"))
    kms.weather = says(kms_error("ThrottlingException"))
    clock.at = START + EPOCH + STALE - 1
    assert sibling.unseal(warm.seal(b"late")) == b"late"
    assert "ThrottlingException" in caplog.text
    clock.advance(1)
    with pytest.raises(TemporarilyUnavailable):
        warm.seal(b"too late")
    kms.weather = says(kms_error("ThrottlingException"), "nothing")
    assert warm.seal(b"again")


def test_after_a_failure_an_earlier_key_serves_without_asking_for_a_few_seconds() -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    arn = kms.create_key()
    container = make_envelope(kms, arn, clock=clock)
    container.seal(b"state")
    kms.weather = says(kms_error("ThrottlingException"))
    clock.at = START + EPOCH + GRACE
    for _ in range(10):
        container.seal(b"state")
    assert kms.count("GenerateDataKey") == 2
    clock.advance(5)
    container.seal(b"state")
    assert kms.count("GenerateDataKey") == 3


def test_a_token_sealed_in_the_last_second_of_an_earlier_key_lives_out_its_time_everywhere() -> None:
    kms, clock = StrictKms(), Clock(START + 100)
    arn = kms.create_key()
    warm = make_envelope(kms, arn, clock=clock, max_age=600)
    warm.seal(b"state")
    kms.weather = says(kms_error("KMSInternalException"), "GenerateDataKey")
    clock.at = START + EPOCH + STALE - 1
    token = warm.seal(b"late")
    clock.advance(600)
    assert make_envelope(kms, arn, clock=clock, max_age=600).unseal(token) == b"late"


# Budgets


def noise_in_the_wrapped_key(token: str, number: int) -> str:
    """Damage the wrapped key (behind its malleable-looking head), so that the token costs one Decrypt."""
    place = 130 + number % 60
    return token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]


def test_one_caller_may_waste_three_unwraps_and_then_one_every_thirty_seconds() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    container, outcomes = make_envelope(kms, arn, clock=clock), []
    for number in range(500):
        with pytest.raises((InvalidRequestState, TemporarilyUnavailable)) as refused:
            container.unseal(noise_in_the_wrapped_key(token, number), caller="mallory")
        outcomes.append(refused.value.reason)
    assert outcomes == ["wrapped_key"] * 3 + ["unwrap_budget"] * 497
    assert kms.count("Decrypt") == 3
    clock.advance(30)
    for reason in ("wrapped_key", "unwrap_budget"):
        with pytest.raises((InvalidRequestState, TemporarilyUnavailable)) as refused:
            container.unseal(noise_in_the_wrapped_key(token, 7), caller="mallory")
        assert refused.value.reason == reason


def test_over_budget_there_is_no_verdict_on_a_good_token_and_a_known_key_opens_as_ever() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    container = make_envelope(kms, arn, clock=clock)
    for number in range(3):
        with pytest.raises(InvalidRequestState):
            container.unseal(noise_in_the_wrapped_key(token, number), caller="mallory")
    with pytest.raises(TemporarilyUnavailable):
        container.unseal(token, caller="mallory")
    assert container.unseal(token, caller="alice") == b"state"
    assert container.unseal(token, caller="mallory") == b"state"


def test_a_key_that_kms_opens_but_whose_token_is_forged_is_charged_too() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    container, reasons = make_envelope(kms, arn, clock=clock), []
    malleable = 4 + (12 + 180) * 4 // 3  # the last bytes of a wrapped key are not authenticated by this KMS
    for letter in "BCDEFGHIJ":
        with pytest.raises((InvalidRequestState, TemporarilyUnavailable)) as refused:
            container.unseal(token[:malleable] + letter + token[malleable + 1 :], caller="mallory")
        reasons.append(refused.value.reason)
    assert reasons == ["commitment"] * 3 + ["unwrap_budget"] * 6
    assert [call.outcome for call in kms.calls[1:]] == ["ok"] * 3
    assert not container._keys._cache.all()  # noqa: SLF001 - nothing unproven is kept


def test_a_forged_token_under_a_proven_key_costs_neither_kms_nor_budget() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    container = make_envelope(kms, arn, clock=clock)
    token = container.seal(b"state")
    for _ in range(10):
        with pytest.raises(InvalidRequestState):
            container.unseal(token[:-2] + "AA", caller="mallory")
    assert kms.count("Decrypt") == 0
    other = make_envelope(kms, arn, clock=clock).seal(b"other")
    assert container.unseal(other, caller="mallory") == b"other"


def test_good_tokens_cost_little_of_the_budget() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    tokens = [make_envelope(kms, arn, clock=clock).seal(b"%d" % number) for number in range(20)]
    container = make_envelope(kms, arn, clock=clock)
    assert [container.unseal(token, caller="alice") for token in tokens] == [b"%d" % number for number in range(20)]


def under_keys_of_their_own(kms: StrictKms, arn: str, clock: Clock, count: int) -> list[str]:
    """Seal tokens that are all authentic, each in a new container and so under its own data key."""
    return [make_envelope(kms, arn, clock=clock).seal(b"%d" % number) for number in range(count)]


def bounded(kms: StrictKms, arn: str, clock: Clock, max_keys: int) -> Envelope:
    with mock.patch.object(data_keys, "MAX_KEYS", max_keys):
        return make_envelope(kms, arn, clock=clock)


def opens(container: Envelope, token: str, caller: str) -> bool:
    """Present a token; False if the container gives no verdict because the caller's budget is spent."""
    try:
        container.unseal(token, caller=caller)
    except TemporarilyUnavailable as error:
        return (error.reason, error.headers) != ("unwrap_budget", {"retry-after": "2"})
    return True


def test_authentic_tokens_under_many_keys_are_bounded_too_and_known_keys_open_as_ever() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    tokens, container = under_keys_of_their_own(kms, arn, clock, 270), make_envelope(kms, arn, clock=clock)
    rounds = [[opens(container, token, "mallory") for token in tokens] for _ in range(3)]
    assert rounds == [[True] * 41 + [False] * 229] * 3
    assert kms.count("Decrypt") == 41
    clock.advance(30)  # 20 more: an unwrap that succeeds costs a twentieth of one in vain
    assert [opens(container, token, "mallory") for token in tokens] == [True] * 61 + [False] * 209
    assert opens(container, tokens[-1], "alice")
    assert kms.count("Decrypt") == 62


def test_one_callers_keys_drop_its_own_from_a_full_list_and_not_those_of_others() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    container, tokens = bounded(kms, arn, clock, 8), under_keys_of_their_own(kms, arn, clock, 45)
    others = list(zip(tokens, ["alice", "alice", "bob", "carol", "carol"], strict=False))
    assert all(opens(container, token, caller) for token, caller in others)
    assert all(opens(container, token, "mallory") for token in tokens[5:])
    before = kms.count("Decrypt")
    assert all(opens(container, token, caller) for token, caller in others)
    assert kms.count("Decrypt") == before == 45


def test_a_denial_costs_as_much_as_an_unwrap_in_vain_and_is_named_each_time_it_is_heard() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    tokens, container = under_keys_of_their_own(kms, arn, clock, 100), make_envelope(kms, arn, clock=clock)
    kms.policy = lambda _operation, _key_id, _context: False

    def reasons() -> list[str | None]:
        told = list[str | None]()
        for token in tokens:
            with pytest.raises((Misconfigured, TemporarilyUnavailable)) as refused:
                container.unseal(token, caller="alice")
            told.append(refused.value.reason)
        return told

    denied = "kms:AccessDeniedException"
    assert reasons() == [denied] * 3 + ["unwrap_budget"] * 97
    clock.advance(30)
    assert reasons() == [denied] + ["unwrap_budget"] * 99
    assert kms.count("Decrypt") == 4
    kms.policy = lambda _operation, _key_id, _context: True
    clock.advance(30)
    assert opens(container, tokens[0], "alice")


STEPS = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 40)),
    st.tuples(st.sampled_from(["good", "damaged", "forged"]), st.integers(0, 59)),
    st.tuples(st.just("denied"), st.integers(0, 1)),
)


@given(st.lists(STEPS, max_size=200), st.integers(4, 64))
def test_whatever_one_person_presents_costs_no_more_than_the_budget(steps: list[tuple[str, int]], most: int) -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    tokens, container = under_keys_of_their_own(kms, arn, clock, 60), bounded(kms, arn, clock, most)
    malleable, spent = 4 + (12 + 180) * 4 // 3, 0  # the last bytes of a wrapped key are not authenticated by this KMS
    for step, number in steps:
        token, before, price = tokens[number], kms.count("Decrypt"), FAILED_UNWRAP_COST
        if step == "wait":
            clock.advance(number)
        elif step == "denied":
            kms.policy = (lambda _operation, _key_id, _context: False) if number else lambda *_asked: True
        else:
            if step == "damaged":
                token = noise_in_the_wrapped_key(token, number)
            if step == "forged":
                token = token[:malleable] + "B" + token[malleable + 1 :]
            try:
                container.unseal(token, caller="mallory")
                price = 1
            except McpError:
                pass
            spent += price * (kms.count("Decrypt") - before)
        seconds = clock() - START - 10
        assert spent <= FULL_BUDGET + seconds * REFILL_PER_SECOND


def test_ten_thousand_callers_cannot_lock_out_one_more_and_do_not_fill_the_memory() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    container = make_envelope(kms, arn, clock=clock)
    buckets = container._keys._budgets  # noqa: SLF001
    for number in range(10_000):
        for _ in range(4):
            buckets.take(f"caller {number}", 20, clock())
    assert len(buckets._buckets) == budgets.MAX_CALLERS == 4096  # noqa: SLF001
    assert container.unseal(token, caller="alice") == b"state"


# Threads


class HeldCall:
    """Holds calls of a KMS until the test lets them go on."""

    def __init__(self, kms: StrictKms, error: Exception | None = None, *, only_first: bool = False) -> None:
        self._kms = kms
        self._error = error  # how a held call fails; None if it succeeds
        self._only_first = only_first
        self._began, self._may_go_on = threading.Event(), threading.Event()
        kms.weather = self._hold

    def _hold(self, _operation: str) -> Exception | None:
        if self._only_first:
            self._kms.weather = lambda _operation: None
        self._began.set()
        assert self._may_go_on.wait(10)
        return self._error

    def wait(self) -> None:
        """Wait until a thread calls KMS."""
        assert self._began.wait(10)

    def release(self, *threads: threading.Thread) -> None:
        """Let the calls go on, and wait for the end of the threads."""
        self._may_go_on.set()
        for thread in threads:
            thread.join(10)


@pytest.mark.parametrize("opening", [True, False], ids=["opening", "sealing"])
def test_threads_that_need_the_same_key_ask_kms_once(*, opening: bool) -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    container, results = make_envelope(kms, arn, clock=clock), list[object]()

    def work() -> None:
        results.append(container.unseal(token, caller="alice") if opening else container.seal(b"state"))

    held = HeldCall(kms)
    kms.calls.clear()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    held.wait()
    held.release(*threads)
    assert len(results) == 8
    assert len(kms.calls) == 1


def test_threads_that_wait_for_a_failing_call_all_hear_of_the_failure() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    reasons = list[str]()
    held = HeldCall(kms, kms_error("ThrottlingException"))
    container = make_envelope(kms, arn, clock=clock)

    def seal() -> None:
        try:
            container.seal(b"state")
        except TemporarilyUnavailable as error:
            reasons.append(error.reason)

    threads = [threading.Thread(target=seal) for _ in range(4)]
    for thread in threads:
        thread.start()
    held.wait()
    held.release(*threads)
    assert reasons == ["kms:ThrottlingException"] * 4


@pytest.mark.parametrize("opening", [True, False], ids=["opening", "sealing"])
def test_a_thread_does_not_wait_long_while_another_waits_for_kms(
    monkeypatch: pytest.MonkeyPatch, *, opening: bool
) -> None:
    monkeypatch.setattr(key_cache, "WAIT_SECONDS", 0.05)
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    container, results = make_envelope(kms, arn, clock=clock), list[object]()

    def work() -> object:
        return container.unseal(token, caller="alice") if opening else container.seal(b"state")

    held = HeldCall(kms)
    first = threading.Thread(target=lambda: results.append(work()))
    first.start()
    held.wait()
    with pytest.raises(TemporarilyUnavailable) as refused:
        work()
    assert refused.value.reason == "kms:NoTurn"
    held.release(first)
    assert len(results) == 1
    assert work()


def test_a_slow_call_stops_only_the_threads_that_need_the_same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_cache, "WAIT_SECONDS", 0.05)
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    slow_token, other_token = (make_envelope(kms, arn, clock=clock).seal(b"state") for _ in range(2))
    container, results = make_envelope(kms, arn, clock=clock), list[bytes]()
    held = HeldCall(kms, only_first=True)
    first = threading.Thread(target=lambda: results.append(container.unseal(slow_token, caller="alice")))
    first.start()
    held.wait()
    assert container.unseal(other_token, caller="bob") == b"state"
    held.release(first)
    assert results == [b"state"]


def test_a_thread_that_gets_no_turn_to_generate_seals_with_an_earlier_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_cache, "WAIT_SECONDS", 0.05)
    kms, clock = StrictKms(), Clock(START + 10)
    container = make_envelope(kms, kms.create_key(), clock=clock)
    container.seal(b"state")
    clock.at = START + EPOCH + STALE / 2
    held = HeldCall(kms, kms_error("ThrottlingException"))
    first = threading.Thread(target=container.seal, args=[b"state"])
    first.start()
    held.wait()
    assert container.unseal(container.seal(b"other")) == b"other"
    held.release(first)


def test_a_slow_call_of_a_caller_refills_its_budget_only_once() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    tokens = [make_envelope(kms, arn, clock=clock).seal(b"state") for _ in range(2)]
    container = make_envelope(kms, arn, clock=clock)
    budgets_of_all = container._keys._budgets  # noqa: SLF001
    assert budgets_of_all.take("alice", 60, clock())
    clock.advance(60)  # 40 units

    def slow(_operation: str) -> None:
        kms.weather = lambda _operation: None
        clock.advance(15)  # 10 more units, while the first call of this caller goes on
        assert container.unseal(tokens[1], caller="alice") == b"state"

    kms.weather = slow
    assert container.unseal(tokens[0], caller="alice") == b"state"
    assert budgets_of_all.take("alice", 48, clock())
    assert not budgets_of_all.take("alice", 1, clock())


# Rotation


def test_rotation_in_three_deploys_breaks_no_conversation_at_any_mixture_of_old_and_new_containers() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    old, new = kms.create_key(), kms.create_key()
    deploys = [(old,), (old, new), (new, old), (new,)]
    for before, after in pairwise(deploys):
        here, there = make_envelope(kms, *before, clock=clock), make_envelope(kms, *after, clock=clock)
        if after == (new,):
            continue
        assert there.unseal(here.seal(b"state")) == b"state"
        assert here.unseal(there.seal(b"state")) == b"state"
    last = make_envelope(kms, old, new, clock=clock).seal(b"state")
    clock.at = START + EPOCH + STALE + 600 + 60
    assert make_envelope(kms, new, old, clock=clock).unseal(last) == b"state"
    clock.advance(1)  # from here on, dropping the old key loses nothing that would still be accepted
    with pytest.raises(InvalidRequestState) as refused:
        make_envelope(kms, new, old, clock=clock).unseal(last)
    assert refused.value.reason == "born_past"


def test_promoting_a_minter_first_fails_visibly_and_says_why() -> None:
    kms = StrictKms()
    old, new = kms.create_key(), kms.create_key()
    early = make_envelope(kms, new, old).seal(b"state")
    with pytest.raises(InvalidRequestState) as refused:
        make_envelope(kms, old).unseal(early)
    assert refused.value.reason == "kek_unknown"


def test_rotation_of_the_material_inside_kms_needs_nothing() -> None:
    kms, clock = StrictKms(), Clock(START + 10)
    arn = kms.create_key()
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    kms.rotate(arn)
    container = make_envelope(kms, arn, clock=clock)
    container.seal(b"new material")
    assert container.unseal(token) == b"state"


def test_a_token_travels_between_regions_under_a_multi_region_key() -> None:
    ireland, frankfurt = StrictKms("eu-west-1"), StrictKms("eu-central-1")
    primary = ireland.create_key(multi_region=True)
    replica = ireland.replicate(primary, frankfurt)
    there = make_envelope(frankfurt, replica)
    assert there.unseal(make_envelope(ireland, primary).seal(b"state")) == b"state"
    assert make_envelope(ireland, primary).unseal(there.seal(b"back")) == b"back"
    ireland.set_state(primary, "Disabled")  # a state of the Region, not of the key
    assert make_envelope(frankfurt, replica).seal(b"state")


@pytest.mark.parametrize("arn", ["arn:aws:kms:eu-west-1:111122223333:alias/seal", "alias/seal", ""])
def test_an_alias_is_refused_when_it_is_configured(arn: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        KmsKey(arn)
    assert "key ARNs" in str(refused.value.reason)


def test_no_key_or_the_same_key_twice_is_refused_when_it_is_configured() -> None:
    twice = KmsKey("arn:aws:kms:eu-west-1:1:key/k")
    for wrappings in ([], [twice, twice]):
        with pytest.raises(Misconfigured):
            Keyring(wrappings, SCOPE)


# Own crypto


class OwnKms:
    """A codec as an author writes it: two functions. This one fails on demand."""

    id = "own"

    def __init__(self) -> None:
        self.keys: dict[bytes, tuple[bytes, dict[str, str]]] = {}
        self.trouble: Exception | None = None
        self.length = 32

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        if self.trouble:
            raise self.trouble
        plaintext, wrapped = os.urandom(self.length), os.urandom(20)
        self.keys[wrapped] = plaintext, context
        return plaintext, wrapped

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        if self.trouble:
            raise self.trouble
        plaintext, sealed_context = self.keys[wrapped]
        if context != sealed_context:
            raise InvalidRequestState(reason="wrapped_key")
        return plaintext


def test_an_own_pair_of_functions_wraps_data_keys() -> None:
    own = OwnKms()
    token = Envelope(Keyring([own], SCOPE)).seal(b"state")
    assert Envelope(Keyring([own], SCOPE)).unseal(token) == b"state"
    with pytest.raises(InvalidRequestState):
        Envelope(Keyring([own], SCOPE._replace(stage="dev"))).unseal(token)


@pytest.mark.parametrize(
    ("trouble", "opening", "sealing"),
    [
        (TimeoutError(), TemporarilyUnavailable, TemporarilyUnavailable),
        (TemporarilyUnavailable("own"), TemporarilyUnavailable, TemporarilyUnavailable),
        (Misconfigured("own"), Misconfigured, Misconfigured),
        (ValueError("own"), InvalidRequestState, Misconfigured),
        (InvalidRequestState("own"), InvalidRequestState, Misconfigured),
    ],
    ids=repr,
)
def test_what_an_own_pair_raises_means_what_the_specification_says(
    trouble: Exception, opening: type[McpError], sealing: type[McpError]
) -> None:
    own = OwnKms()
    token = Envelope(Keyring([own], SCOPE)).seal(b"state")
    own.trouble = trouble
    with pytest.raises(opening):
        Envelope(Keyring([own], SCOPE)).unseal(token)
    with pytest.raises(sealing):
        Envelope(Keyring([own], SCOPE)).seal(b"state")


def test_an_own_key_of_another_length_is_not_used() -> None:
    own = OwnKms()
    own.length = 16
    with pytest.raises(Misconfigured):
        Envelope(Keyring([own], SCOPE)).seal(b"state")


# Secrets, snapshots, forks


def test_a_data_key_does_not_print_itself() -> None:
    found = DataKey(Header(1, b"kek1", b"wrapped"), b"\xc0\xff\xee" * 10 + b"\0\0")
    for text in (repr(found), str(found), f"{found}"):
        assert "xc0" not in text
        assert "c0ffee" not in text


def test_reset_forgets_keys_budgets_jitter_and_the_client() -> None:
    kms, built = StrictKms(), []
    arn = kms.create_key()

    def build() -> StrictKms:
        built.append(1)
        return kms

    keys = Keyring([KmsKey(arn, build)], SCOPE, now=Clock())
    envelope = Envelope(keys)
    token, before = envelope.seal(b"state"), keys._cache  # noqa: SLF001
    assert len(built) == 1
    resets._reset_all()  # noqa: SLF001 - as the hooks of a snapshot do
    assert keys._cache is not before  # noqa: SLF001
    assert envelope.unseal(token) == b"state"
    assert kms.count("Decrypt") == 1
    assert len(built) == 2


HOOKS = """
import json, os, sys, types
sys.modules["snapshot_restore_py"] = runtime = types.ModuleType("snapshot_restore_py")
before, after = [], []
runtime.register_before_snapshot, runtime.register_after_restore = before.append, after.append
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.data_keys import Keyring, Scope
at_import = len(before) + len(after)
class Own:
    id, n = "own", 0
    def generate(self, context):
        Own.n += 1
        return b"%032d" % Own.n, b"%d" % Own.n
    def unwrap(self, wrapped, context):
        return b"%032d" % int(wrapped)
keys = [Keyring([Own()], Scope("s", "t", "1")) for _ in range(3)]
first = [of.key_to_seal().header.wrapped for of in keys]
warm = [of.key_to_seal().header.wrapped for of in keys]
before[0]()
held = [len(of._cache.all()) for of in keys]
again = keys[0].key_to_seal()
after[0]()
restored = len(keys[0]._cache.all())
keys[0].key_to_seal()
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, b"%d" % len(keys[0]._cache.all()))
    os._exit(0)
os.wait()
print(json.dumps({"at_import": at_import, "hooks": [len(before), len(after)], "stable": first == warm, "held": held,
                  "restored": restored, "child": int(os.read(read, 9)), "parent": len(keys[0]._cache.all())}))
"""


def test_everything_is_forgotten_around_snapshots_and_in_forked_children_and_hooks_are_registered_once() -> None:
    assert json.loads(run_python(HOOKS)) == {
        "at_import": 0,
        "hooks": [1, 1],
        "stable": True,
        "held": [0, 0, 0],
        "restored": 0,
        "child": 0,
        "parent": 1,
    }


def test_importing_the_seal_imports_nothing_of_aws_and_building_it_makes_no_client() -> None:
    code = (
        "import sys; from mcp_functions.seal import data_keys, envelope, keys, kms, request_state\n"
        "k = data_keys.Keyring([kms.KmsKey('arn:aws:kms:eu-west-1:1:key/k')], keys.Scope('s', 't', '1'))\n"
        "request_state.RequestStates(envelope.Envelope(k))\n"
        "print([name for name in ('boto3', 'botocore', 'pydantic', 'random') if name in sys.modules])"
    )
    assert run_python(code).strip() == "[]"


# Wiring: boto3 over HTTP to moto


@pytest.fixture(scope="module")
def moto_kms() -> Iterator[str]:
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - a second of imports, for these tests alone

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _host, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture(params=["lean", "boto3"])
def aws(moto_kms: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:  # noqa: ANN401 - a boto3 client
    for name in ("AWS_PROFILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "MCP_AWS_CLIENT": request.param,
        "AWS_ENDPOINT_URL_KMS": moto_kms,
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)
    with monkeypatch.context() as asked:
        asked.setenv("MCP_AWS_CLIENT", "boto3")
        return kms_client()


def test_the_client_is_bounded_in_time_and_follows_the_endpoint_of_the_environment(aws: Any, moto_kms: str) -> None:  # noqa: ANN401
    assert aws.meta.endpoint_url == moto_kms
    config = aws.meta.config
    assert (config.connect_timeout, config.read_timeout) == (0.5, 1)
    assert config.retries["total_max_attempts"] == 3


def test_the_confusion_matrix_once_more_over_boto3_and_http(aws: Any) -> None:  # noqa: ANN401
    arns = [aws.create_key()["KeyMetadata"]["Arn"] for _ in range(2)]
    home = (SCOPE, arns[0])
    away = [
        (SCOPE._replace(service="demo/get_weather"), arns[0]),
        (SCOPE._replace(stage="dev"), arns[0]),
        (SCOPE._replace(generation="2"), arns[0]),
        (SCOPE, arns[1]),
    ]

    def fresh(scope: Any, arn: str) -> Envelope:  # noqa: ANN401
        return Envelope(Keyring([KmsKey(arn)], scope))

    token = fresh(*home).seal(b"state")
    assert fresh(*home).unseal(token) == b"state"
    for scope, arn in away:
        with pytest.raises(InvalidRequestState):
            fresh(scope, arn).unseal(token)
        with pytest.raises(InvalidRequestState):
            fresh(*home).unseal(fresh(scope, arn).seal(b"state"))


def test_an_endpoint_that_does_not_answer_is_an_outage(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    arn = aws.create_key()["KeyMetadata"]["Arn"]
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    with pytest.raises(TemporarilyUnavailable) as unavailable:
        Envelope(Keyring([KmsKey(arn)], SCOPE)).seal(b"state")
    assert unavailable.value.reason == "kms:EndpointConnectionError"
