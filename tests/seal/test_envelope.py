"""The envelope encrypts a payload into a token, and refuses a token that was changed or belongs to another scope.

`ENVELOPE` is the envelope of one container; it sealed `TOKEN` and has that token's data key in memory. A new container
has no data key, and asks KMS to decrypt the key inside the token. KMS is a fake that refuses what AWS refuses, and
records its calls.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import struct
from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_functions.protocol.errors import Misconfigured, StateTooLarge
from mcp_functions.seal import chunked_encryption
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS
from mcp_functions_harness.inspection.explain import describe
from tests.seal.refusals import assert_refused, refusal_reason, replace_character
from tests.support.strict_kms import BLOB_BYTES, SCOPE, START, Clock, StrictKms, make_envelope, make_keys

KMS = StrictKms()
KEY_ARN = KMS.create_key()
ENVELOPE = make_envelope(KMS, KEY_ARN)
PAYLOAD = b"plainly readable marker"
TOKEN = ENVELOPE.seal(PAYLOAD)


def refuse(token: str) -> str:
    """Assert that `ENVELOPE` refuses a token. Return the reason, which is only logged.

    A caller may cause few KMS calls, so each token comes from another caller.
    """
    return refusal_reason(lambda: ENVELOPE.unseal(token, caller=ascii(token)))


def refuse_in_new_container(token: str) -> tuple[str, int]:
    """Assert that a new container refuses a token. Return the reason, and how many KMS calls it took."""
    KMS.calls.clear()
    reason = refusal_reason(lambda: make_envelope(KMS, KEY_ARN).unseal(token))
    return reason, len(KMS.calls)


# Seal and open


def test_a_sealed_payload_is_opened_again() -> None:
    assert ENVELOPE.unseal(TOKEN) == PAYLOAD


def test_a_new_container_opens_a_token_with_one_kms_call() -> None:
    KMS.calls.clear()
    assert make_envelope(KMS, KEY_ARN).unseal(TOKEN) == PAYLOAD
    assert [call.outcome for call in KMS.calls] == ["ok"]


def test_a_changed_token_is_refused() -> None:
    middle = len(TOKEN) // 2
    refuse(replace_character(TOKEN, middle))


def test_a_token_of_another_service_is_refused() -> None:
    token = make_envelope(KMS, KEY_ARN, scope=Scope("demo/another_tool", "prod", "1")).seal(PAYLOAD)
    refuse(token)


def test_no_two_tokens_of_the_same_payload_are_equal() -> None:
    assert len({ENVELOPE.seal(b"state") for _ in range(200)}) == 200


# Limits of size

CHUNK_EDGES = [0, 1, 16383, 16384, 16385, 32767, 32768, 40000]  # the envelope encrypts chunks of 16 KiB


def make_limited_envelope(max_chars: int) -> Envelope:
    return Envelope(make_keys(KMS, KEY_ARN), max_chars=max_chars)


@pytest.mark.parametrize("size", CHUNK_EDGES)
def test_a_payload_of_any_size_comes_back(size: int) -> None:
    envelope, payload = make_limited_envelope(MAX_TOKEN_CHARS), os.urandom(size)
    assert envelope.unseal(envelope.seal(payload)) == payload


@pytest.mark.parametrize("size", CHUNK_EDGES)
def test_a_token_at_the_limit_is_sealed_and_opened(size: int) -> None:
    payload = b"x" * size
    token = make_limited_envelope(MAX_TOKEN_CHARS).seal(payload)
    envelope = make_limited_envelope(max_chars=len(token))
    assert len(envelope.seal(payload)) == len(token)
    assert envelope.unseal(token) == payload


@pytest.mark.parametrize("size", CHUNK_EDGES)
def test_a_token_over_the_limit_is_neither_sealed_nor_opened(size: int) -> None:
    payload = b"x" * size
    token = make_limited_envelope(MAX_TOKEN_CHARS).seal(payload)
    envelope = make_limited_envelope(max_chars=len(token) - 1)
    with pytest.raises(StateTooLarge):
        envelope.seal(payload)
    with assert_refused("length"):
        envelope.unseal(token)


def test_a_token_over_the_limit_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binascii, "a2b_base64", None)  # so that decoding would be a TypeError
    with assert_refused("length"):
        ENVELOPE.unseal("ks1." + "A" * 30_000)


def test_a_state_over_the_limit_is_refused_before_it_is_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked_encryption, "encrypt", None)  # so that encryption would be a TypeError
    with pytest.raises(StateTooLarge):
        make_limited_envelope(max_chars=24576).seal(b"x" * 6_000_000)


def test_the_error_of_a_large_state_shows_sizes_and_no_content() -> None:
    payload = b"secret" * 5000
    chars = len(make_limited_envelope(MAX_TOKEN_CHARS).seal(payload))
    with pytest.raises(StateTooLarge) as error:
        make_limited_envelope(max_chars=24576).seal(payload)
    assert error.value.reason == (
        f"the state is 30000 bytes, its token would have {chars} of at most 24576 characters:"
        " keep references in the state instead of documents, or raise MCP_MAX_STATE_CHARS (up to 4194304)"
    )
    assert error.value.status == 500
    assert error.value.message == "Internal error"


@pytest.mark.parametrize("max_chars", [0, -1, MAX_TOKEN_CHARS + 1])
def test_a_limit_outside_of_one_to_the_ceiling_is_a_misconfiguration(max_chars: int) -> None:
    with pytest.raises(Misconfigured):
        make_limited_envelope(max_chars)


# Damaged texts


@pytest.mark.parametrize("character", "A-_")
def test_every_replaced_character_is_refused(character: str) -> None:
    for place in range(len(TOKEN)):
        changed = TOKEN[:place] + character + TOKEN[place + 1 :]
        if changed != TOKEN:
            refuse(changed)


@pytest.mark.parametrize("character", ".=+/ \né\ud800", ids=ascii)
def test_a_character_outside_of_base64url_is_refused_as_such(character: str) -> None:
    for place in range(len(TOKEN)):
        changed = TOKEN[:place] + character + TOKEN[place + 1 :]
        if changed != TOKEN:
            assert refuse(changed) in {"prefix", "encoding"}


def test_every_truncated_token_is_refused() -> None:
    for length in range(len(TOKEN)):
        refuse(TOKEN[:length])


@pytest.mark.parametrize("text", [" {token}", "{token} ", "{token}\n", "{token}=", "{token}{token}"])
def test_a_text_around_the_token_is_refused(text: str) -> None:
    refuse(text.format(token=TOKEN))


@pytest.mark.parametrize(
    "token", [None, 1, b"ks1.AAAA", ["ks1."], {}, "", "ks1", "ks1.", "v1.abc", "KS1.AAAA"], ids=repr
)
def test_a_value_that_is_no_token_is_refused(token: object) -> None:
    assert refuse(token) in {"prefix", "truncated"}  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text("ks1.AZ_-=09").map("ks1.".__add__)))
def test_a_random_text_is_refused(token: str) -> None:
    refuse(token)


# Scopes, labels and keys

STATE_LABEL = b"ks1/request-state"
OTHER_SCOPES = {
    "another service": SCOPE._replace(service="demo/get_weather"),
    "another stage": SCOPE._replace(stage="dev"),
    "another generation": SCOPE._replace(generation="2"),
    "border moved to the right": SCOPE._replace(service="demo/update_work_itemp", stage="rod"),
    "border moved to the left": SCOPE._replace(service="demo/update_work_ite", stage="mprod"),
    "generation moved into the stage": SCOPE._replace(stage="prod1", generation=""),
    "empty": Scope("", "", ""),
}
SCOPES = {"home": SCOPE, **OTHER_SCOPES}


@pytest.mark.parametrize(("writer", "reader"), list(permutations(SCOPES, 2)))
def test_a_token_of_another_scope_is_refused_by_kms(writer: str, reader: str) -> None:
    token = make_envelope(KMS, KEY_ARN, scope=SCOPES[writer]).seal(b"state")
    with assert_refused("wrapped_key"):
        make_envelope(KMS, KEY_ARN, scope=SCOPES[reader]).unseal(token)


@pytest.mark.parametrize(("writer", "reader"), [(b"ks1/response", STATE_LABEL), (STATE_LABEL, b"ks1/response")])
def test_a_token_of_another_label_is_refused(writer: bytes, reader: bytes) -> None:
    token = make_envelope(KMS, KEY_ARN, label=writer).seal(b"state")
    with assert_refused("commitment"):
        make_envelope(KMS, KEY_ARN, label=reader).unseal(token)


def test_a_token_under_another_wrapping_key_is_refused_without_a_kms_call() -> None:
    token = make_envelope(KMS, KMS.create_key()).seal(b"state")
    assert refuse_in_new_container(token) == ("kek_unknown", 0)


class CarelessKms:
    """A KMS that ignores the context, so that it unwraps the keys of every scope."""

    id = "careless"

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        del context
        return b"\x07" * 32, b"wrapped"

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        del wrapped, context
        return b"\x07" * 32


def make_careless_envelope(scope: Scope, label: bytes = STATE_LABEL) -> Envelope:
    return Envelope(Keyring([CarelessKms()], scope), label=label)


@pytest.mark.parametrize("name", OTHER_SCOPES)
def test_the_encryption_binds_the_scope_even_if_kms_ignores_it(name: str) -> None:
    token = make_careless_envelope(SCOPE).seal(b"state")
    assert make_careless_envelope(SCOPE).unseal(token) == b"state"
    with assert_refused("commitment"):
        make_careless_envelope(OTHER_SCOPES[name]).unseal(token)


def test_a_new_generation_refuses_every_earlier_token_and_seals_under_the_same_policy() -> None:
    kms, clock = StrictKms(), Clock()
    arn = kms.create_key()
    kms.policy = lambda _operation, _key, context: context["service"] == SCOPE.service  # the condition of the role
    token = make_envelope(kms, arn, clock=clock).seal(b"state")
    new = make_envelope(kms, arn, scope=SCOPE._replace(generation="2"), clock=clock)
    with assert_refused("wrapped_key"):
        new.unseal(token)
    assert new.unseal(new.seal(b"state")) == b"state"


# The bytes of a token, which stand behind "ks1." in base64url:
#
#    0    suite          the version of the encryption
#    1    key kind       always 1
#    2    born           the second in which the data key was generated
#    6    kek            a hint at the wrapping key in KMS
#    10   wrapped bytes  the length of the wrapped key
#    12   wrapped key    the data key, encrypted by KMS: 184 bytes in these tests
#    196  message        salt, commitment to the key (220), encrypted payload (252), tags

KEK = slice(6, 10)
WRAPPED_KEY = slice(12, 196)
MESSAGE_START = 196
TOKEN_BYTES = 84 + BLOB_BYTES + len(PAYLOAD)


def encode(body: bytes) -> str:
    return "ks1." + base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def decode(token: str) -> bytes:
    text = token.removeprefix("ks1.")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def flip_bit(place: int, bit: int) -> str:
    """Return TOKEN with another bit in the byte at this place."""
    body = bytearray(decode(TOKEN))
    body[place] ^= 1 << bit
    return encode(bytes(body))


@pytest.mark.parametrize("token", [TOKEN, ENVELOPE.seal(PAYLOAD * 100)], ids=["short", "long"])
def test_no_part_of_the_payload_is_readable_in_the_token(token: str) -> None:
    assert PAYLOAD[3:9] not in decode(token)
    assert PAYLOAD.decode() not in token
    assert base64.urlsafe_b64encode(PAYLOAD).decode()[4:-4] not in token


def test_a_token_has_84_bytes_more_than_the_wrapped_key_and_the_payload() -> None:
    assert len(decode(ENVELOPE.seal(b""))) == 84 + BLOB_BYTES
    assert len(decode(ENVELOPE.seal(b"x" * 321))) == 84 + BLOB_BYTES + 321


@pytest.mark.parametrize(
    ("part", "refusals"),  # a refusal: its reason, and the number of KMS calls
    [
        pytest.param(range(1), {("suite", 0)}, id="suite"),
        pytest.param(range(1, 2), {("key_kind", 0)}, id="key kind"),
        pytest.param(range(2, 6), {("born_past", 0), ("born_future", 0), ("wrapped_key", 1)}, id="born"),
        pytest.param(range(6, 10), {("kek_unknown", 0)}, id="kek"),
        pytest.param(range(10, 12), {("truncated", 0), ("wrapped_key", 1), ("commitment", 1)}, id="wrapped bytes"),
        # The fake KMS does not authenticate the last bytes of a wrapped key, because AWS does not promise it.
        pytest.param(range(12, 196), {("wrapped_key", 1), ("commitment", 1)}, id="wrapped key"),
        pytest.param(range(196, TOKEN_BYTES), {("commitment", 1), ("tag", 1)}, id="message"),
    ],
)
def test_every_flipped_bit_is_refused_with_at_most_one_kms_call(part: range, refusals: set[tuple[str, int]]) -> None:
    damaged = [flip_bit(place, bit) for place in part for bit in range(8)]
    assert {refuse_in_new_container(token) for token in damaged} == refusals


def test_a_container_with_the_data_key_refuses_a_damaged_message_without_kms() -> None:
    KMS.calls.clear()
    for place in range(MESSAGE_START, TOKEN_BYTES):
        refuse(flip_bit(place, bit=6))
    assert not KMS.calls


@pytest.mark.parametrize("extra", [b"\0", b"\0" * 16, decode(TOKEN), os.urandom(16400)], ids=len)
def test_a_token_with_more_bytes_is_refused(extra: bytes) -> None:
    refuse(encode(decode(TOKEN) + extra))


@settings(max_examples=300, deadline=None)
@given(st.binary())
def test_random_bytes_are_refused(noise: bytes) -> None:
    refuse(encode(noise))


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=60, max_size=400), st.integers(0, 1100), st.integers(-2000, 100))
def test_random_bytes_behind_a_valid_header_are_refused(noise: bytes, wrapped_bytes: int, age: int) -> None:
    born = int(START) + age
    header = struct.pack(">BBI4sH", 1, 1, born, decode(TOKEN)[KEK], wrapped_bytes)
    refuse(encode(header + noise))


def test_no_mixture_of_the_parts_of_three_tokens_opens() -> None:
    other_container = make_envelope(KMS, KEY_ARN)
    tokens = [ENVELOPE.seal(b"state 0"), ENVELOPE.seal(b"state 1"), other_container.seal(b"state 2")]
    for token in tokens:
        ENVELOPE.unseal(token)  # now the envelope has both data keys, so no mixture costs a call of KMS
    bodies = [decode(token) for token in tokens]
    borders = [0, 2, 6, 10, 12, 196, 220, 252, len(bodies[0])]
    choices_for_each_part = [{body[start:end] for body in bodies} for start, end in pairwise(borders)]
    mixtures = [encode(b"".join(parts)) for parts in product(*choices_for_each_part)]
    for mixture in mixtures:
        if mixture not in tokens:
            refuse(mixture)


def test_a_header_of_another_data_key_is_refused_even_if_both_keys_are_in_memory() -> None:
    other_token = make_envelope(KMS, KEY_ARN).seal(b"other")
    ENVELOPE.unseal(other_token)
    header, message = decode(TOKEN)[:MESSAGE_START], decode(other_token)[MESSAGE_START:]
    with assert_refused("commitment"):
        ENVELOPE.unseal(encode(header + message))


def test_describe_returns_what_everybody_can_read_in_a_token() -> None:
    body = decode(TOKEN)
    assert describe(TOKEN) == {
        "born": int(START),
        "kek": body[KEK].hex(),
        "key": hashlib.sha256(body[WRAPPED_KEY]).hexdigest()[:16],
        "payload_bytes": len(PAYLOAD),
        "chars": len(TOKEN),
        "jti": base64.urlsafe_b64encode(body[220:236]).rstrip(b"=").decode(),  # the start of the commitment
    }


@pytest.mark.parametrize("size", CHUNK_EDGES)
def test_describe_computes_the_size_of_the_payload(size: int) -> None:
    token = make_limited_envelope(MAX_TOKEN_CHARS).seal(b"x" * size)
    assert describe(token)["payload_bytes"] == size
