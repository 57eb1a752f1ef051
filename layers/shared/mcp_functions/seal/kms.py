"""Wrapping of data keys by AWS KMS, or by an author's own pair of functions (envelope.md §5, envelope.md §8).

    context    the purpose of a data key: its server, and the second in which it was born. KMS unwraps a data key only
               with the same context
    hint       four bytes of a token that tell which wrapping key wrapped its data key

Everything that fails becomes one of three errors:

    InvalidRequestState       the token is bad: the client gets error 400
    TemporarilyUnavailable    an outage: 503, and the client may try again
    Misconfigured             the operator must act: 500, and an alarm
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mcp_functions import aws, observability
from mcp_functions.aws.errors import read_failure
from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, TemporarilyUnavailable, service_error
from mcp_functions.seal.keys import KEY_BYTES, MAX_WRAPPED, DataKey, WrappedKey, kek_hint
from mcp_functions.seal.resets import PerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypedDict

    from mcp_functions.seal.keys import Scope

    class KmsAnswer(TypedDict, total=False):
        """The response of an operation of KMS. Each has some of these members."""

        KeyId: str
        Plaintext: bytes
        CiphertextBlob: bytes
        Mac: bytes


PURPOSE = "mcp-request-state"  # part of every EncryptionContext
LIMITS = aws.CallLimits(connect_seconds=0.5, read_seconds=1.0, attempts=3)
# Error codes of `kms:Decrypt` for bytes that KMS did not wrap, or wrapped under another key or with another context.
_BAD_WRAPPED_KEY = {"InvalidCiphertextException", "IncorrectKeyException", "ValidationException"}


class Wrapping(Protocol):
    """An author's replacement of AWS KMS: a pair of functions that wrap and unwrap a 32-byte data key.

    `context` is authenticated: `unwrap` must fail if it differs. Raise `InvalidRequestState` for a wrapped key that is
    damaged or not yours, `TemporarilyUnavailable` during an outage, `Misconfigured` if the operator must act. An
    OSError counts as an outage. Anything else, such as an `InvalidRequestState` of `generate`, counts as a bad token in
    `unwrap` and as a misconfiguration in `generate`.
    """

    @property
    def id(self) -> str:
        """The id of the wrapping key; every token carries its hash."""

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        """Return a new 32-byte key and its wrapped form, at most 1024 bytes."""

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        """Return the 32-byte key."""


def kms_client() -> Any:  # noqa: ANN401 - see make_client
    """Build a KMS client with short timeouts."""
    return aws.make_client("kms", LIMITS)


class KmsKey:
    """A KMS key, by ARN."""

    def __init__(self, arn: str, client: Callable[[], object] = kms_client) -> None:
        """Keep the key's ARN, without a call. `client` builds a KMS client with boto3's methods.

        Raises:
            Misconfigured: the ARN names no key, or an alias: if an alias moved, no older token could be opened.
        """
        self.arn = arn
        self.id = arn.rpartition("/")[2]  # of "arn:aws:kms:<region>:<account>:key/<id>"
        if "alias/" in arn or not self.id:
            message = "MCP_KMS_KEYS must hold key ARNs (arn:aws:kms:...:key/...), and no alias, which may be moved"
            raise Misconfigured(message)
        self._client = PerProcess(client)

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        """Have KMS generate a data key: `kms:GenerateDataKey`."""
        answer = self._call_kms("generate_data_key", KeyId=self.arn, KeySpec="AES_256", EncryptionContext=context)
        return self._plaintext(answer), bytes(answer["CiphertextBlob"])

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        """Have KMS unwrap a data key: `kms:Decrypt`."""
        # Without `KeyId`, KMS would also unwrap what an attacker wrapped under their own KMS key (envelope.md §5).
        answer = self._call_kms("decrypt", KeyId=self.arn, CiphertextBlob=wrapped, EncryptionContext=context)
        return self._plaintext(answer)

    def mac(self, message: bytes) -> bytes:
        """Have an HMAC key compute the code of a message: `kms:GenerateMac`."""
        answer = self._call_kms("generate_mac", KeyId=self.arn, MacAlgorithm="HMAC_SHA_256", Message=message)
        return bytes(answer["Mac"])

    def _call_kms(self, operation: str, **arguments: object) -> KmsAnswer:
        try:
            method = getattr(self._client(), operation)
            answer: KmsAnswer = method(**arguments)
        except Exception as error:  # noqa: BLE001 - botocore's classes are not imported
            # `from None` below: the text of the error may quote the context, and must not reach the log.
            failure = read_failure(error)
            if operation == "decrypt" and failure.code in _BAD_WRAPPED_KEY:
                raise InvalidRequestState(reason="wrapped_key") from None
            raise service_error(service="kms", failure=failure) from None
        return answer

    def _plaintext(self, answer: KmsAnswer) -> bytes:
        """Return the plaintext key of an answer, after a check that our own KMS key made it (envelope.md §5)."""
        if str(answer.get("KeyId", "")).rpartition("/")[2] != self.id:
            raise Misconfigured(reason="kms:UnexpectedAnswer")
        return bytes(answer.get("Plaintext", b""))


class WrappingKeys:
    """The wrapping keys of one scope, by their hints. The first one generates data keys. Each unwraps its own."""

    def __init__(self, wrappings: Sequence[Wrapping], scope: Scope) -> None:
        """Keep the wrapping keys, without a call; Misconfigured if there is none, or tokens cannot tell two apart."""
        self.by_hint = {kek_hint(wrapping.id): wrapping for wrapping in wrappings}
        if not wrappings or len(self.by_hint) != len(wrappings):
            raise Misconfigured(reason="MCP_KMS_KEYS must list at least one KMS key ARN, and none twice")
        self.first_hint = kek_hint(wrappings[0].id)
        self._scope = scope

    def generate(self, born: int) -> DataKey:
        """Generate a data key. `born` is the current time in unix seconds."""
        with observability.kms_call():
            wrapping = self.by_hint[self.first_hint]
            try:
                plaintext, wrapped = wrapping.generate(self._context(born))
            except (TemporarilyUnavailable, Misconfigured):
                raise
            except OSError as error:
                raise TemporarilyUnavailable(reason=f"wrapping:{type(error).__name__}") from None
            except Exception as error:  # noqa: BLE001 - no client's fault, whatever it is
                raise Misconfigured(reason=f"wrapping:{type(error).__name__}") from None
            return _check_length(DataKey(WrappedKey(born, self.first_hint, wrapped), plaintext))

    def unwrap(self, wrapped_key: WrappedKey) -> DataKey:
        """Unwrap the data key of a token. `Keyring.open` has checked that its hint is in `by_hint`."""
        with observability.kms_call():
            wrapping = self.by_hint[wrapped_key.kek_hint]
            try:
                plaintext = wrapping.unwrap(wrapped_key.encrypted, self._context(wrapped_key.born))
            except (TemporarilyUnavailable, InvalidRequestState):
                raise
            except OSError as error:
                raise TemporarilyUnavailable(reason=f"wrapping:{type(error).__name__}") from None
            except Misconfigured:
                if wrapped_key.kek_hint == self.first_hint:
                    raise
                # The operator disabled a key that no longer seals. Its conversations start again, without an alarm.
                raise InvalidRequestState(reason="kek_retired") from None
            except Exception:  # noqa: BLE001 - damaged bytes may raise anything: it fails closed
                raise InvalidRequestState(reason="wrapped_key") from None
            return _check_length(DataKey(wrapped_key, plaintext))

    def _context(self, born: int) -> dict[str, str]:
        """Return the EncryptionContext (envelope.md §5). CloudTrail shows it in clear, so it holds nothing personal."""
        return {"purpose": PURPOSE, **self._scope._asdict(), "born": str(born)}


def _check_length(key: DataKey) -> DataKey:
    if len(key.plaintext) != KEY_BYTES or not 1 <= len(key.wrapped_key.encrypted) <= MAX_WRAPPED:
        raise Misconfigured(reason="wrapping:KeyLength")
    return key
