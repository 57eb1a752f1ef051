"""A failure of KMS means a bad token, an outage, or a mistake of the operator (envelope.md §8).

InvalidRequestState     400: the token is bad
TemporarilyUnavailable  503: an outage; the client tries again
Misconfigured           500: the operator must act
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import botocore.exceptions
import pytest

from mcp_functions.protocol.errors import InvalidRequestState, McpError, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.kms import KmsKey
from tests.seal.refusals import assert_refused
from tests.support.strict_kms import SCOPE, START, StrictKms, kms_error, make_envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.seal.conftest import StartContainer
    from tests.support.strict_kms import Clock

OUTAGES = [
    "ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException", "LimitExceededException",
    "KMSInternalException", "DependencyTimeoutException", "KeyUnavailableException", "ServiceUnavailable",
    "ExpiredTokenException",
]  # fmt: skip
DENIALS = [
    "AccessDeniedException", "DisabledException", "KMSInvalidStateException", "NotFoundException",
    "InvalidKeyUsageException", "InvalidGrantTokenException", "UnrecognizedClientException", "SomethingNewException",
]  # fmt: skip
BAD_WRAPPED_KEYS = ["InvalidCiphertextException", "IncorrectKeyException", "ValidationException"]
CONNECTION_ERRORS = [
    botocore.exceptions.EndpointConnectionError(endpoint_url="https://kms"),
    botocore.exceptions.ConnectTimeoutError(endpoint_url="https://kms"),
    botocore.exceptions.ReadTimeoutError(endpoint_url="https://kms"),
    botocore.exceptions.ConnectionClosedError(endpoint_url="https://kms"),
    TimeoutError(),
    ConnectionResetError(),
]
EPOCH = 900  # seconds
GRACE = 225  # the longest grace period, in which a key of the previous epoch seals, in seconds


def fail_with(error: Exception) -> Callable[[str], Exception]:
    """Make every call of KMS fail."""
    return lambda _operation: error


def no_failure(_operation: str) -> None:
    return None


@pytest.fixture
def token(start_container: StartContainer) -> str:
    """Seal a state in a container that no test uses."""
    return start_container().seal(b"state")


# Outages


@pytest.mark.parametrize("error", [*map(kms_error, OUTAGES), *CONNECTION_ERRORS], ids=repr)
def test_an_outage_is_temporary_for_sealing_and_opening(
    kms: StrictKms, start_container: StartContainer, token: str, error: Exception
) -> None:
    kms.weather = fail_with(error)
    with pytest.raises(TemporarilyUnavailable) as opening:
        start_container().unseal(token)
    assert opening.value.status == 503
    assert opening.value.data == {"retryable": True}
    with pytest.raises(TemporarilyUnavailable):
        start_container().seal(b"state")


def test_an_outage_costs_the_caller_nothing(kms: StrictKms, start_container: StartContainer, token: str) -> None:
    container = start_container()
    kms.weather = fail_with(kms_error("ThrottlingException"))
    for _ in range(5):  # a caller may cause three failed unwraps
        with pytest.raises(TemporarilyUnavailable, match="Temporarily unavailable"):
            container.unseal(token, caller="alice")
    kms.weather = no_failure
    assert container.unseal(token, caller="alice") == b"state"


@pytest.mark.parametrize("code", OUTAGES)
def test_an_outage_of_the_second_wrapping_key_is_an_outage(kms: StrictKms, code: str) -> None:
    first, second = kms.create_key(), kms.create_key()
    token = make_envelope(kms, second).seal(b"state")
    kms.weather = fail_with(kms_error(code))
    with pytest.raises(TemporarilyUnavailable):
        make_envelope(kms, first, second).unseal(token)


def test_an_earlier_key_seals_until_the_next_epoch_ends_while_kms_fails(
    kms: StrictKms, start_container: StartContainer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    container = start_container()
    container.seal(b"state")
    kms.weather = fail_with(kms_error("ThrottlingException"))
    clock.at = START + 2 * EPOCH - 1
    assert container.seal(b"late")
    assert "ThrottlingException" in caplog.text
    clock.advance(1)
    with pytest.raises(TemporarilyUnavailable):
        container.seal(b"too late")


def test_a_token_under_an_earlier_key_opens_everywhere_for_its_whole_time(
    kms: StrictKms, start_container: StartContainer, clock: Clock
) -> None:
    container = start_container(max_age=600)
    container.seal(b"state")
    kms.weather = fail_with(kms_error("ThrottlingException"))
    clock.at = START + 2 * EPOCH - 1
    token = container.seal(b"late")
    kms.weather = no_failure
    clock.advance(600)
    assert start_container(max_age=600).unseal(token) == b"late"


def test_a_container_with_an_earlier_key_asks_a_failing_kms_every_five_seconds(
    kms: StrictKms, start_container: StartContainer, clock: Clock
) -> None:
    container = start_container()
    container.seal(b"state")
    kms.weather = fail_with(kms_error("ThrottlingException"))
    clock.at = START + EPOCH + GRACE
    for _ in range(10):
        container.seal(b"state")
    assert kms.count("GenerateDataKey") == 1 + 1
    clock.advance(5)
    container.seal(b"state")
    assert kms.count("GenerateDataKey") == 1 + 2


# Denials and mistakes


@pytest.mark.parametrize("code", DENIALS)
def test_a_denial_of_the_first_wrapping_key_is_a_misconfiguration(
    kms: StrictKms, start_container: StartContainer, token: str, code: str
) -> None:
    kms.weather = fail_with(kms_error(code))
    with pytest.raises(Misconfigured, match="Internal error") as opening:
        start_container().unseal(token)
    with pytest.raises(Misconfigured, match="Internal error") as sealing:
        start_container().seal(b"state")
    assert opening.value.reason == sealing.value.reason == f"kms:{code}"
    assert opening.value.status == sealing.value.status == 500


@pytest.mark.parametrize("code", DENIALS)
def test_a_denial_of_the_second_wrapping_key_refuses_its_tokens_without_an_alarm(kms: StrictKms, code: str) -> None:
    first, second = kms.create_key(), kms.create_key()
    token = make_envelope(kms, second).seal(b"state")
    kms.weather = fail_with(kms_error(code))
    with assert_refused("kek_retired"):
        make_envelope(kms, first, second).unseal(token)


@pytest.mark.parametrize("state", ["Disabled", "PendingDeletion"])
def test_a_disabled_wrapping_key_stops_sealing_even_if_an_earlier_data_key_is_left(
    kms: StrictKms, arn: str, start_container: StartContainer, clock: Clock, state: str
) -> None:
    container = start_container()
    container.seal(b"state")
    kms.set_state(arn, state)
    clock.at = START + EPOCH + GRACE
    with pytest.raises(Misconfigured):
        container.seal(b"state")


@pytest.mark.parametrize("code", BAD_WRAPPED_KEYS)
def test_a_wrapped_key_that_kms_refuses_is_a_bad_token(
    kms: StrictKms, start_container: StartContainer, token: str, code: str
) -> None:
    kms.weather = fail_with(kms_error(code))
    with assert_refused("wrapped_key"):
        start_container().unseal(token)


@pytest.mark.parametrize("code", BAD_WRAPPED_KEYS)
def test_the_same_kms_error_is_a_misconfiguration_when_sealing(
    kms: StrictKms, start_container: StartContainer, code: str
) -> None:
    kms.weather = fail_with(kms_error(code))
    with pytest.raises(Misconfigured) as error:
        start_container().seal(b"state")
    assert error.value.reason == f"kms:{code}"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"KeyId": "arn:aws:kms:eu-west-1:111122223333:key/another"}, id="another key"),
        pytest.param({"KeyId": "x00000000-0000-4000-8000-000000000001"}, id="an id that ends with the key's"),
        pytest.param({"Plaintext": b"\0" * 16}, id="a short data key"),
        pytest.param({"Plaintext": b""}, id="no data key"),
    ],
)
def test_an_unexpected_answer_of_kms_is_not_used(
    kms: StrictKms, start_container: StartContainer, token: str, change: dict[str, Any]
) -> None:
    kms.answer = lambda answer: answer | change
    with pytest.raises(Misconfigured):
        start_container().unseal(token)
    with pytest.raises(Misconfigured):
        start_container().seal(b"state")


def test_a_client_that_cannot_be_built_is_a_misconfiguration(arn: str) -> None:
    def build() -> object:
        raise botocore.exceptions.NoRegionError

    with pytest.raises(Misconfigured) as error:
        Keyring([KmsKey(arn, build)], SCOPE).key_to_seal()
    assert error.value.reason == "kms:NoRegionError"


def test_no_exception_text_of_kms_reaches_the_error(kms: StrictKms, start_container: StartContainer) -> None:
    kms.weather = fail_with(RuntimeError("the secret context"))
    with pytest.raises(Misconfigured) as caught:
        start_container().seal(b"state")
    error = caught.value
    assert "secret" not in f"{error!r} {error.reason}"
    assert error.__cause__ is None
    assert error.__suppress_context__


# An author's own wrapping of data keys, instead of AWS KMS


class OwnKms:
    """The pair of functions that an author writes: generate a data key, and unwrap it in the same context."""

    id = "own"

    def __init__(self) -> None:
        self.keys: dict[bytes, tuple[bytes, dict[str, str]]] = {}  # by their wrapped form, with their context
        self.error: Exception | None = None  # the failure of every call
        self.key_bytes = 32

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        if self.error:
            raise self.error
        plaintext, wrapped = os.urandom(self.key_bytes), os.urandom(20)
        self.keys[wrapped] = plaintext, context
        return plaintext, wrapped

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        if self.error:
            raise self.error
        plaintext, context_of_key = self.keys[wrapped]
        if context != context_of_key:
            raise InvalidRequestState(reason="wrapped_key")
        return plaintext


def test_an_own_wrapping_opens_a_token_in_its_scope_alone() -> None:
    own = OwnKms()
    token = Envelope(Keyring([own], SCOPE)).seal(b"state")
    assert Envelope(Keyring([own], SCOPE)).unseal(token) == b"state"
    with assert_refused("wrapped_key"):
        Envelope(Keyring([own], SCOPE._replace(stage="dev"))).unseal(token)


@pytest.mark.parametrize(
    ("error", "when_opening", "when_sealing"),
    [
        (TimeoutError(), TemporarilyUnavailable, TemporarilyUnavailable),
        (TemporarilyUnavailable("own"), TemporarilyUnavailable, TemporarilyUnavailable),
        (Misconfigured("own"), Misconfigured, Misconfigured),
        (ValueError("own"), InvalidRequestState, Misconfigured),
        (InvalidRequestState("own"), InvalidRequestState, Misconfigured),
    ],
    ids=repr,
)
def test_an_error_of_an_own_wrapping_means_what_the_specification_says(
    error: Exception, when_opening: type[McpError], when_sealing: type[McpError]
) -> None:
    own = OwnKms()
    token = Envelope(Keyring([own], SCOPE)).seal(b"state")
    own.error = error
    with pytest.raises(when_opening):
        Envelope(Keyring([own], SCOPE)).unseal(token)
    with pytest.raises(when_sealing):
        Envelope(Keyring([own], SCOPE)).seal(b"state")


def test_a_short_data_key_of_an_own_wrapping_is_not_used() -> None:
    own = OwnKms()
    own.key_bytes = 16
    with pytest.raises(Misconfigured):
        Envelope(Keyring([own], SCOPE)).seal(b"state")
