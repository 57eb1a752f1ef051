"""Threads of one container share its data keys: one thread calls KMS for a key, and no other waits long.

`HeldCall` stops the calls of KMS until the test releases them, so that the test decides what happens meanwhile.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.seal import keys
from tests.support.strict_kms import START, StrictKms, kms_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.seal.conftest import StartContainer
    from tests.support.strict_kms import Clock

NEXT_EPOCH = START + 900
GRACE = 225  # the longest grace period, in which a key of the previous epoch seals, in seconds


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a thread wait 0.05 seconds for another thread's call of KMS, not 5."""
    monkeypatch.setattr(keys, "WAIT_SECONDS", 0.05)


class HeldCall:
    """Holds calls of KMS until the test releases them."""

    def __init__(self, kms: StrictKms, error: Exception | None = None, *, only_first: bool = False) -> None:
        self._kms = kms
        self._error = error  # how a held call fails; None if it succeeds
        self._only_first = only_first
        self._has_begun, self._may_end = threading.Event(), threading.Event()
        kms.weather = self._hold

    def _hold(self, _operation: str) -> Exception | None:
        if self._only_first:
            self._kms.weather = lambda _operation: None
        self._has_begun.set()
        assert self._may_end.wait(60)
        return self._error

    def wait(self) -> None:
        """Wait until a thread calls KMS."""
        assert self._has_begun.wait(60)

    def release(self, *threads: threading.Thread) -> None:
        """Let the calls end, and wait for the end of the threads."""
        self._may_end.set()
        for thread in threads:
            thread.join(60)


def start_threads(count: int, work: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_threads_that_open_tokens_under_one_key_call_kms_once(kms: StrictKms, start_container: StartContainer) -> None:
    token, container = start_container().seal(b"state"), start_container()
    payloads: list[bytes] = []
    held = HeldCall(kms)
    threads = start_threads(8, lambda: payloads.append(container.unseal(token)))
    held.wait()
    held.release(*threads)
    assert payloads == [b"state"] * 8
    assert kms.count("Decrypt") == 1


def test_threads_that_seal_without_a_key_call_kms_once(kms: StrictKms, start_container: StartContainer) -> None:
    container = start_container()
    tokens: list[str] = []
    held = HeldCall(kms)
    threads = start_threads(8, lambda: tokens.append(container.seal(b"state")))
    held.wait()
    held.release(*threads)
    assert len(tokens) == 8
    assert kms.count("GenerateDataKey") == 1


def test_a_failed_call_fails_every_thread_that_waited_for_it(kms: StrictKms, start_container: StartContainer) -> None:
    container = start_container()
    reasons: list[str] = []

    def seal() -> None:
        try:
            container.seal(b"state")
        except TemporarilyUnavailable as error:
            reasons.append(error.reason)

    held = HeldCall(kms, kms_error("ThrottlingException"))
    threads = start_threads(4, seal)
    held.wait()
    held.release(*threads)
    assert reasons == ["kms:ThrottlingException"] * 4


@pytest.mark.usefixtures("short_wait")
def test_a_thread_gives_up_when_another_opens_a_token_under_the_same_key_for_long(
    kms: StrictKms, start_container: StartContainer
) -> None:
    token, container = start_container().seal(b"state"), start_container()
    held = HeldCall(kms)
    threads = start_threads(1, lambda: container.unseal(token))
    held.wait()
    with pytest.raises(TemporarilyUnavailable) as error:
        container.unseal(token)
    assert error.value.reason == "kms:LockTimeout"
    held.release(*threads)
    assert container.unseal(token) == b"state"


@pytest.mark.usefixtures("short_wait")
def test_a_thread_gives_up_when_another_generates_a_key_for_long(
    kms: StrictKms, start_container: StartContainer
) -> None:
    container = start_container()
    held = HeldCall(kms)
    threads = start_threads(1, lambda: container.seal(b"state"))
    held.wait()
    with pytest.raises(TemporarilyUnavailable) as error:
        container.seal(b"state")
    assert error.value.reason == "kms:LockTimeout"
    held.release(*threads)
    assert container.seal(b"state")


@pytest.mark.usefixtures("short_wait")
def test_a_thread_that_gives_up_seals_with_an_earlier_key(
    kms: StrictKms, start_container: StartContainer, clock: Clock
) -> None:
    container = start_container()
    container.seal(b"state")
    clock.at = NEXT_EPOCH + GRACE
    held = HeldCall(kms, kms_error("ThrottlingException"))
    threads = start_threads(1, lambda: container.seal(b"state"))
    held.wait()
    assert container.unseal(container.seal(b"other")) == b"other"
    held.release(*threads)


@pytest.mark.usefixtures("short_wait")
def test_a_slow_call_does_not_stop_a_thread_that_needs_another_key(
    kms: StrictKms, start_container: StartContainer
) -> None:
    slow_token, other_token = start_container().seal(b"slow"), start_container().seal(b"other")
    container = start_container()
    held = HeldCall(kms, only_first=True)
    threads = start_threads(1, lambda: container.unseal(slow_token))
    held.wait()
    assert container.unseal(other_token) == b"other"
    held.release(*threads)
    assert container.unseal(slow_token) == b"slow"
