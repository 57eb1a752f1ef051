"""Fixtures of the tests of the seal: a fake KMS, one wrapping key in it, a clock, and containers that use them.

A container is one Lambda environment. For these tests it is an envelope, which seals and opens tokens, with a keyring
that has no data key in memory yet.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.strict_kms import START, Clock, StrictKms, make_envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.seal.envelope import Envelope

    StartContainer = Callable[..., Envelope]


@pytest.fixture
def kms() -> StrictKms:
    """Make a fake KMS, which refuses what AWS refuses and lists its calls."""
    return StrictKms()


@pytest.fixture
def arn(kms: StrictKms) -> str:
    """Create the wrapping key, which never leaves KMS and encrypts the data keys."""
    return kms.create_key()


@pytest.fixture
def clock() -> Clock:
    """Make the clock of all containers. It shows the tenth second of an epoch, and moves only when a test moves it."""
    return Clock(START + 10)


@pytest.fixture
def start_container(kms: StrictKms, arn: str, clock: Clock) -> StartContainer:
    """Return the function that starts a container under the wrapping key."""
    return partial(make_envelope, kms, arn, clock=clock)
