"""Which data key seals (envelope.md §6.2): few calls of KMS, although many containers share no memory.

An epoch is a quarter of an hour. A container seals with the oldest key of the current epoch. In the grace period, the
first minutes of an epoch, it may still seal with a key of the previous one. Each container draws the end of its grace
period at random, so that they do not all generate a key in the same second.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.seal.key_choice import GRACE_RANDOM_BYTES, choose_key, draw_grace
from mcp_functions.seal.keys import DataKey, WrappedKey
from tests.support.strict_kms import START, make_keys

if TYPE_CHECKING:
    from tests.seal.conftest import StartContainer
    from tests.support.strict_kms import Clock, StrictKms

EPOCH = 900  # seconds
GRACE = 225  # the longest grace period, in seconds


def make_key(born: float, wrapped: bytes = b"wrapped") -> DataKey:
    return DataKey(WrappedKey(int(born), b"kek1", wrapped), b"\0" * 32)


def test_the_oldest_key_of_the_current_epoch_seals() -> None:
    young, old = make_key(START + 200), make_key(START + 100)
    assert choose_key([young, old], START + 300, GRACE) == old


def test_the_order_of_keys_born_in_the_same_second_does_not_count() -> None:
    one, other = make_key(START, b"one"), make_key(START, b"other")
    assert choose_key([one, other], START, GRACE) == choose_key([other, one], START, GRACE)


def test_a_key_of_the_previous_epoch_seals_until_the_grace_period_ends() -> None:
    old = make_key(START)
    assert choose_key([old], START + EPOCH + 99, grace=100) == old
    assert choose_key([old], START + EPOCH + 101, grace=100) is None


def test_a_key_of_the_next_epoch_does_not_seal_yet() -> None:
    assert choose_key([make_key(START + EPOCH)], START + EPOCH - 1, GRACE) is None


KEYS = st.lists(st.integers(0, 4 * EPOCH).map(lambda second: make_key(START + second, b"%d" % second)), max_size=16)
SECONDS = st.floats(0, 5 * EPOCH)


@given(KEYS, SECONDS, st.floats(0, GRACE))
def test_a_chosen_key_is_of_this_epoch_or_of_the_last_one_in_the_grace_period(
    keys: list[DataKey], second: float, grace: float
) -> None:
    now = START + second
    key = choose_key(keys, now, grace)
    if key:
        end_of_its_epoch = (key.wrapped_key.born // EPOCH + 1) * EPOCH
        assert key in keys
        assert key.wrapped_key.born // EPOCH <= now // EPOCH
        assert now < end_of_its_epoch + GRACE


@given(KEYS, SECONDS, st.floats(0, GRACE))
def test_a_key_of_the_current_epoch_is_always_preferred(keys: list[DataKey], second: float, grace: float) -> None:
    now = START + second
    current = [key for key in keys if key.wrapped_key.born // EPOCH == now // EPOCH]
    if current:
        assert choose_key(keys, now, grace) in current


def test_the_grace_periods_end_early_by_a_twelfth_on_average() -> None:
    generator = random.Random(1)  # noqa: S311 - the same numbers in every run
    early = [GRACE - draw_grace(generator.randbytes(GRACE_RANDOM_BYTES)) for _ in range(4000)]
    mean = sum(early) / len(early)
    assert 0.9 * GRACE / 12 < mean < 1.1 * GRACE / 12
    assert min(early) >= 0


def test_the_greatest_random_bytes_draw_the_longest_grace_period() -> None:
    assert draw_grace(b"\xff" * GRACE_RANDOM_BYTES) == GRACE


def test_the_least_random_bytes_draw_no_grace_period() -> None:
    assert draw_grace(bytes(GRACE_RANDOM_BYTES)) < 0  # this container generates a key as soon as an epoch begins


def test_each_container_draws_its_own_grace_period(kms: StrictKms, arn: str) -> None:
    one, other = make_keys(kms, arn), make_keys(kms, arn)
    assert one._grace != other._grace  # noqa: SLF001


def test_a_container_seals_with_the_key_of_a_token_that_it_opened(
    kms: StrictKms, start_container: StartContainer
) -> None:
    token = start_container().seal(b"state")
    for _ in range(20):
        container = start_container()
        assert container.unseal(token) == b"state"
        token = container.seal(b"state")
    assert kms.count("GenerateDataKey") == 1
    assert kms.count("Decrypt") == 20


def test_twenty_containers_generate_at_most_four_keys_in_an_epoch(
    kms: StrictKms, clock: Clock, start_container: StartContainer
) -> None:
    containers = [start_container() for _ in range(20)]
    token = containers[0].seal(b"state")
    for second in range(3 * EPOCH):
        clock.advance(1)
        container = containers[(second * 7) % 20]  # the token visits all of them
        assert container.unseal(token) == b"state"
        token = container.seal(b"state")
    generated = kms.count("GenerateDataKey")
    epochs = 4  # three, and the end of the first one
    assert generated <= 4 * epochs
    assert kms.count("Decrypt") <= 20 * generated
