"""The envelope: vectors, a second reader, another implementation, and everything that may be done to a token."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import struct
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor
from cryptography.exceptions import InvalidTag
from hypothesis import given, settings
from hypothesis import strategies as st

import mcp_functions
from mcp_functions.local.inspection.public_part import describe
from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, StateTooLarge, TemporarilyUnavailable
from mcp_functions.seal import chunked_encryption
from mcp_functions.seal.data_keys import Keyring
from mcp_functions.seal.envelope import Codec, Envelope
from mcp_functions.seal.keys import Scope, TokenReason
from mcp_functions.seal.token_format import CEILING
from tests.support.strict_kms import SCOPE, START, Clock, StrictKms, make_envelope, make_keys

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(mcp_functions.__file__).parent
VECTORS = sorted((Path(__file__).parent / "vectors" / "envelope").glob("*.txt"))
SIZES = [0, 1, 16383, 16384, 16385, 32767, 32768, 40000]
HEAD = 12
KEY = b"\x07" * 32
CONTEXT = b"ks1/request-state\0any context"


def b64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def body_of(token: str) -> bytes:
    return base64.urlsafe_b64decode(token[4:] + "=" * (-len(token[4:]) % 4))


def refused(open_it: Callable[[], object]) -> str:
    """Return the reason for the log, having checked that the wire gets the same bytes as for any other refusal."""
    with pytest.raises(InvalidRequestState) as error:
        open_it()
    found = error.value
    wire = json.dumps({"status": found.status, "code": found.code, "message": found.message, "data": found.data})
    assert wire == (
        '{"status": 400, "code": -32602, "message": "Invalid or expired requestState",'
        ' "data": {"reason": "invalid_request_state"}}'
    )
    return str(found.reason)


# Vectors


class Recorded:
    """The KMS of a vector: opens one blob, under one context."""

    def __init__(self, vector: dict[str, str]) -> None:
        self.vector, self.id = vector, vector["key-id"]

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        assert context["born"] == self.vector["born"]
        return bytes.fromhex(self.vector["data-key"]), bytes.fromhex(self.vector["wrapped"])

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        if wrapped.hex() != self.vector["wrapped"] or context["born"] != self.vector["born"]:
            raise InvalidRequestState(reason="wrapped_key")
        return bytes.fromhex(self.vector["data-key"])


def read_vector(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def payload_of(vector: dict[str, str]) -> bytes:
    written, _, times = vector.get("payload", "").partition(" * ")
    return bytes.fromhex(written) * int(times or 1)


def about_of(vector: dict[str, str]) -> bytes:
    return bytes.fromhex(vector.get("about", ""))


def reader_of(vector: dict[str, str], at: str = "now") -> Envelope:
    scope = Scope(vector["service"], vector["stage"], vector["generation"])
    keys = Keyring([Recorded(vector)], scope, now=lambda: float(vector[at]))
    return Envelope(
        keys,
        label=vector["label"].encode(),
        max_age=int(vector["max-age"]),
        max_chars=int(vector["max-chars"]),
        rand=lambda _size: bytes.fromhex(vector["entropy"]),
    )


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_every_vector_is_accepted_or_refused_for_the_reason_it_expects(path: Path) -> None:
    vector = read_vector(path)
    reader = reader_of(vector)
    if vector["expect"] == "accept":
        assert reader.unseal(vector["token"], about=about_of(vector)) == payload_of(vector)
    else:
        opening = partial(reader.unseal, vector["token"], about=about_of(vector))
        assert vector["expect"] == f"refuse {refused(opening)}"


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_sealing_again_with_the_recorded_entropy_gives_the_recorded_token(path: Path) -> None:
    vector = read_vector(path)
    if "entropy" in vector:
        assert reader_of(vector, "born").seal(payload_of(vector), about=about_of(vector)) == vector["token"]


def test_the_vectors_cover_every_reason_of_the_specification() -> None:
    spec = (PACKAGE / "seal" / "envelope.md").read_text(encoding="utf-8")
    reasons = {word for row in spec.split("## 7.")[1].split("## 8.")[0].splitlines() for word in row.split("`")[1::2]}
    expected = {read_vector(path)["expect"].removeprefix("refuse ") for path in VECTORS}
    assert {str(reason) for reason in TokenReason} - expected == {"kek_retired"}  # takes two keys: test_keys
    assert {str(reason) for reason in TokenReason} <= reasons
    assert sum("entropy" not in read_vector(path) for path in VECTORS if path.stem.startswith("accept")) == 2


def second_reader(vector: dict[str, str]) -> bytes:  # noqa: C901 - one branch per rule of the table
    """Open a vector as envelope.md says, with nothing of the package and another implementation of the AEAD."""
    token, now, born = vector["token"], float(vector["now"]), int(vector["born"])
    if not token.startswith("ks1."):
        raise ValueError("prefix")  # noqa: EM101
    if len(token) > int(vector["max-chars"]):
        raise ValueError("length")  # noqa: EM101
    body = body_of(token)
    if b64url(body) != token[4:]:
        raise ValueError("encoding")  # noqa: EM101
    if len(body) < HEAD:
        raise ValueError("truncated")  # noqa: EM101
    suite, kind, said_born, kek, wlen = struct.unpack(">BBI4sH", body[:HEAD])
    if (suite, kind) != (1, 1):
        raise ValueError("suite" if suite != 1 else "key_kind")
    if not 1 <= wlen <= 1024 or len(body) < HEAD + wlen + 72:
        raise ValueError("truncated")  # noqa: EM101
    if kek != hashlib.sha256(b"ks1/kek\0" + vector["key-id"].encode()).digest()[:4]:
        raise ValueError("kek_unknown")  # noqa: EM101
    if said_born > now + 60:
        raise ValueError("born_future")  # noqa: EM101
    if now > (said_born // 900 + 1) * 900 + 900 + int(vector["max-age"]) + 60:
        raise ValueError("born_past")  # noqa: EM101
    head = body[: HEAD + wlen]
    if head[HEAD:].hex() != vector["wrapped"] or said_born != born:
        raise ValueError("wrapped_key")  # noqa: EM101
    scope = [vector[name].encode() for name in ("service", "stage", "generation")]
    context = vector["label"].encode() + b"\0" + b"".join(struct.pack(">H", len(p)) + p for p in scope)
    context += bytes.fromhex(vector.get("about", "")) + head
    reader = Cobblestone256Decryptor(bytes.fromhex(vector["data-key"]), context)
    try:
        return reader.update(body[len(head) :]) + reader.finalize()
    except (InvalidTag, ValueError):
        message = "commitment tag"  # Cobblestone does not say which
        raise ValueError(message) from None


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_second_reader_written_from_the_specification_agrees_on_every_vector(path: Path) -> None:
    vector = read_vector(path)
    if vector["expect"] == "accept":
        assert second_reader(vector) == payload_of(vector)
    else:
        with pytest.raises(ValueError, match=r".") as error:
            second_reader(vector)
        assert vector["expect"].removeprefix("refuse ") in str(error.value).split()


# Another implementation


@pytest.mark.parametrize("size", SIZES)
def test_cobblestone_reads_what_we_write_and_we_read_what_cobblestone_writes(size: int) -> None:
    payload = os.urandom(size)
    reader = Cobblestone256Decryptor(KEY, CONTEXT)
    assert (
        reader.update(chunked_encryption.encrypt(KEY, CONTEXT, payload, os.urandom(32))) + reader.finalize() == payload
    )
    writer = Cobblestone256Encryptor(KEY, CONTEXT)
    message = writer.update(payload) + writer.finalize()
    assert chunked_encryption.decrypt(KEY, CONTEXT, message) == payload


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 70_000), st.binary(max_size=40), st.data())
def test_both_refuse_the_same_damage(size: int, context: bytes, data: st.DataObject) -> None:
    message = bytearray(chunked_encryption.encrypt(KEY, context, b"p" * size, b"e" * 32))
    place = data.draw(st.integers(0, len(message) - 1))
    message[place] ^= data.draw(st.integers(1, 255))
    refused(lambda: chunked_encryption.decrypt(KEY, context, bytes(message)))
    reader = Cobblestone256Decryptor(KEY, context)
    with pytest.raises((InvalidTag, ValueError)):
        reader.update(bytes(message)) + reader.finalize()


# Round trips, sizes, caps


@pytest.mark.parametrize("size", SIZES)
def test_what_was_sealed_comes_out_at_every_size_around_a_chunk(size: int) -> None:
    envelope, payload = _wide(), os.urandom(size)
    assert envelope.unseal(envelope.seal(payload)) == payload


@given(st.binary(max_size=2000))
def test_what_was_sealed_comes_out(payload: bytes) -> None:
    assert WARM.unseal(WARM.seal(payload)) == payload


def test_any_two_seals_of_the_same_differ() -> None:
    assert len({WARM.seal(b"state") for _ in range(200)}) == 200


def _wide() -> Envelope:
    kms = StrictKms()
    return Envelope(make_keys(kms, kms.create_key()), max_chars=CEILING)


KMS = StrictKms()
WARM = make_envelope(KMS, KMS.create_key())
TOKEN = WARM.seal(b"plainly readable marker")


@pytest.mark.parametrize("cap", [512, 513, 4094, 24 * 1024, 100_001])
def test_no_token_is_minted_that_would_be_refused_and_none_is_refused_that_would_fit(cap: int) -> None:
    kms = StrictKms()
    envelope = Envelope(make_keys(kms, kms.create_key()), max_chars=cap)
    fits, payload = 0, cap
    while payload - fits > 1:
        middle = (fits + payload) // 2
        try:
            token = envelope.seal(b"x" * middle)
        except StateTooLarge:
            payload = middle
        else:
            fits = middle
            assert len(token) <= cap
            assert envelope.unseal(token) == b"x" * middle
    assert cap - 3 <= len(envelope.seal(b"x" * fits)) <= cap
    longer = _wide().seal(b"x" * (fits + 1))
    assert len(longer) > cap
    assert refused(lambda: envelope.unseal(longer)) == "length"


def test_a_state_too_large_says_what_to_do_and_shows_only_sizes() -> None:
    with pytest.raises(StateTooLarge) as error:
        WARM.seal(b"secret" * 5000)
    assert error.value.reason == (
        "the state is 30000 bytes, its token would have 40383 of at most 24576 characters:"
        " keep references in the state instead of documents, or raise MCP_MAX_STATE_CHARS (up to 4194304)"
    )
    assert error.value.status == 500
    assert error.value.message == "Internal error"


@pytest.mark.parametrize("cap", [0, -1, CEILING + 1])
def test_a_cap_over_the_ceiling_is_refused_when_it_is_configured(cap: int) -> None:
    with pytest.raises(Misconfigured):
        Envelope(make_keys(StrictKms(), "arn:aws:kms:eu-west-1:1:key/k"), max_chars=cap)


def test_a_token_of_a_megabyte_works_where_the_cap_allows_it() -> None:
    envelope, payload = _wide(), os.urandom(1024 * 1024)
    assert envelope.unseal(envelope.seal(payload)) == payload


def test_the_fixed_cost_of_a_seal_is_84_bytes_and_the_wrapped_key() -> None:
    assert len(body_of(WARM.seal(b""))) == 84 + 184
    assert len(WARM.seal(b"x" * 321)) == 790


def test_nothing_of_the_payload_can_be_read_in_a_token() -> None:
    marker = b"plainly readable marker"
    for text in (TOKEN, WARM.seal(marker * 100)):
        raw = body_of(text)
        assert marker not in raw
        assert marker[3:9] not in raw
        assert marker.decode() not in text
        assert b64url(marker)[4:-4] not in text


def test_describe_says_what_everybody_can_see() -> None:
    assert describe(TOKEN) == {
        "suite": 1,
        "kd": 1,
        "born": int(START),
        "kek": body_of(TOKEN)[6:10].hex(),
        "key": hashlib.sha256(body_of(TOKEN)[12:196]).hexdigest()[:16],
        "wrapped_bytes": 184,
        "payload_bytes": 23,
        "chars": len(TOKEN),
        "jti": b64url(body_of(TOKEN)[220:236]),
    }
    for size in SIZES:
        assert describe(_wide().seal(b"x" * size))["payload_bytes"] == size
    assert refused(lambda: describe("ks1.AAAA")) == "truncated"


# Everything that may be done to a token


def cold() -> Envelope:
    """Make a container that knows no key yet, so that every question that reaches KMS is seen."""
    KMS.calls.clear()
    return make_envelope(KMS, next(KMS.arn(key_id) for key_id in KMS.keys))


def cost(token: str, reader: Envelope | None = None) -> tuple[str, int]:
    """Return the reason for which a token is refused, and how many KMS calls that took."""
    reader = reader or cold()
    before = len(KMS.calls)
    reason = refused(lambda: reader.unseal(token))
    return reason, len(KMS.calls) - before


def test_the_token_that_is_mutated_below_is_good() -> None:
    assert cold().unseal(TOKEN) == b"plainly readable marker"
    assert [call.outcome for call in KMS.calls] == ["ok"]


def test_every_bit_of_every_byte_counts_and_only_the_wrapped_key_and_its_birth_cost_a_call() -> None:
    raw, costs = body_of(TOKEN), dict[str, set[int]]()
    for place, bit in product(range(len(raw)), range(8)):
        mutant = bytearray(raw)
        mutant[place] ^= 1 << bit
        reason, calls = cost("ks1." + b64url(bytes(mutant)))
        part = (
            "suite kd" if place < 2
            else "born" if place < 6
            else "kek" if place < 10
            else "wlen" if place < HEAD
            else "wrapped" if place < HEAD + 184
            else "sealed"
        )  # fmt: skip
        costs.setdefault(f"{part}: {reason}", set()).add(calls)
    assert costs == {
        "suite kd: suite": {0},
        "suite kd: key_kind": {0},
        "born: born_past": {0},
        "born: born_future": {0},
        "born: wrapped_key": {1},
        "kek: kek_unknown": {0},
        "wlen: truncated": {0},
        "wlen: wrapped_key": {1},
        "wlen: commitment": {1},  # this KMS does not authenticate a blob's last bytes
        "wrapped: wrapped_key": {1},
        "wrapped: commitment": {1},
        "sealed: commitment": {1},
        "sealed: tag": {1},
    }


def test_every_character_counts() -> None:
    for place, letter in product(range(len(TOKEN)), "A-_.=+/ \né\ud800"):
        mutant = TOKEN[:place] + letter + TOKEN[place + 1 :]
        if mutant != TOKEN:
            reason = refused(lambda: WARM.unseal(mutant, caller=str(place)))  # noqa: B023
            assert letter in "A-_" or reason in {"prefix", "encoding"}


def test_a_warm_container_refuses_mutants_of_what_is_sealed_without_kms() -> None:
    reader, raw = cold(), body_of(TOKEN)
    reader.unseal(TOKEN)
    for place in range(HEAD + 184, len(raw)):
        mutant = raw[:place] + bytes([raw[place] ^ 0x40]) + raw[place + 1 :]
        assert cost("ks1." + b64url(mutant), reader)[1] == 0


def test_every_truncation_and_extension_is_refused() -> None:
    raw, reader = body_of(TOKEN), cold()
    reader.unseal(TOKEN)
    for length in range(len(TOKEN)):
        refused(lambda: reader.unseal(TOKEN[:length], caller=str(length)))  # noqa: B023
    for length in range(len(raw)):
        refused(lambda: reader.unseal("ks1." + b64url(raw[:length]), caller=str(length)))  # noqa: B023
    for extra in (b"\0", b"\0" * 16, raw, os.urandom(16400)):
        refused(lambda: reader.unseal("ks1." + b64url(raw + extra)))  # noqa: B023
    for text in (" " + TOKEN, TOKEN + " ", TOKEN + "\n", TOKEN + "=", TOKEN + TOKEN, TOKEN.upper(), TOKEN.lower()):
        refused(lambda: reader.unseal(text))  # noqa: B023


def test_parts_of_two_good_tokens_make_no_third() -> None:
    kms, clock = StrictKms(), Clock(START)
    arn = kms.create_key()
    one, other = make_envelope(kms, arn, clock=clock), make_envelope(kms, arn, clock=clock)
    tokens = [body_of(seal(b"state %d" % n)) for n, seal in enumerate((one.seal, one.seal, other.seal))]
    cuts = [0, 2, 6, 10, 12, 196, 220, 252, len(tokens[0])]
    pieces = [[raw[start:end] for start, end in pairwise(cuts)] for raw in tokens]
    reader, spliced = make_envelope(kms, arn, clock=clock), 0
    for raw in tokens:
        reader.unseal("ks1." + b64url(raw))
    for choice in product((0, 1, 2), repeat=len(cuts) - 1):
        raw = b"".join(pieces[which][part] for part, which in enumerate(choice))
        if raw not in tokens:
            spliced += 1
            refused(lambda: reader.unseal("ks1." + b64url(raw)))  # noqa: B023
    assert spliced > 1000


def test_a_header_from_another_key_is_refused_though_both_keys_are_warm() -> None:
    kms, clock = StrictKms(), Clock(START)
    arn = kms.create_key()
    first, second = make_envelope(kms, arn, clock=clock), make_envelope(kms, arn, clock=clock)
    here, there = body_of(first.seal(b"one")), body_of(second.seal(b"two"))
    reader = make_envelope(kms, arn, clock=clock)
    reader.unseal("ks1." + b64url(here))
    reader.unseal("ks1." + b64url(there))
    assert refused(lambda: reader.unseal("ks1." + b64url(here[:196] + there[196:]))) == "commitment"


@pytest.mark.parametrize(
    "token", [None, 1, b"ks1.AAAA", ["ks1."], {}, "", "ks1", "ks1.", "v1.abc", "KS1.AAAA"], ids=repr
)
def test_what_is_no_token_at_all_is_refused(token: object) -> None:
    assert refused(lambda: WARM.unseal(token)) in {"prefix", "truncated"}  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.text(), st.text("ks1.AZ_-=09").map("ks1.".__add__), st.binary().map(lambda raw: "ks1." + b64url(raw)))
)
def test_noise_raises_nothing_but_the_refusal(token: str) -> None:
    refused(lambda: WARM.unseal(token))


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=60, max_size=400), st.integers(0, 1100), st.integers(-2000, 100))
def test_noise_behind_a_plausible_header_raises_nothing_but_the_three_errors(noise: bytes, wlen: int, age: int) -> None:
    kek = body_of(TOKEN)[6:10]
    raw = struct.pack(">BBI4sH", 1, 1, int(START) + age, kek, wlen) + noise
    with pytest.raises((InvalidRequestState, TemporarilyUnavailable)):
        WARM.unseal("ks1." + b64url(raw), caller="mallory")


def test_a_long_text_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base64, "urlsafe_b64decode", None)
    assert refused(lambda: WARM.unseal("ks1." + "A" * 30_000)) == "length"


# The confusion matrix of scopes


def test_no_scope_label_or_key_opens_what_another_has_sealed() -> None:
    kms, clock = StrictKms(), Clock(START + 5)
    arns = [kms.create_key(), kms.create_key()]
    homes = [
        (SCOPE, b"ks1/request-state", arns[0]),
        (SCOPE._replace(service="demo/get_weather"), b"ks1/request-state", arns[0]),
        (SCOPE._replace(stage="dev"), b"ks1/request-state", arns[0]),
        (SCOPE._replace(generation="2"), b"ks1/request-state", arns[0]),
        (SCOPE._replace(service="demo/update_work_itemp", stage="rod"), b"ks1/request-state", arns[0]),
        (SCOPE._replace(service="demo/update_work_ite", stage="mprod"), b"ks1/request-state", arns[0]),
        (SCOPE._replace(stage="prod1", generation=""), b"ks1/request-state", arns[0]),
        (SCOPE._replace(service="", stage="", generation=""), b"ks1/request-state", arns[0]),
        (SCOPE, b"ks1/response", arns[0]),
        (SCOPE, b"ks1/request-state", arns[1]),
    ]
    tokens = []
    for scope, label, arn in homes:
        tokens.append(make_envelope(kms, arn, scope=scope, clock=clock, label=label).seal(b"state"))
    for (here, (scope, label, arn)), (there, token) in product(enumerate(homes), enumerate(tokens)):
        kms.calls.clear()
        reader = make_envelope(kms, arn, scope=scope, clock=clock, label=label)
        if here == there:
            assert reader.unseal(token) == b"state"
            continue
        reason = refused(lambda: reader.unseal(token))  # noqa: B023
        other_key, other_label_only = {here, there} & {9}, {here, there} == {0, 8}
        assert reason == ("kek_unknown" if other_key else "commitment" if other_label_only else "wrapped_key")
        assert len(kms.calls) == (0 if other_key else 1)


def test_scopes_differ_even_where_kms_would_not_tell() -> None:
    """The derivation binds the scope a second time: a KMS that ignored contexts would not open the door."""

    class Careless:
        id = "careless"

        def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
            del context
            return KEY, b"wrapped"

        def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
            del wrapped, context
            return KEY

    token = Envelope(Keyring([Careless()], SCOPE)).seal(b"state")
    assert Envelope(Keyring([Careless()], SCOPE)).unseal(token) == b"state"
    for other in (
        SCOPE._replace(service="demo/other"),
        SCOPE._replace(stage="dev"),
        SCOPE._replace(generation="2"),
        SCOPE._replace(service="demo/update_work_itemp", stage="rod"),
    ):
        assert refused(lambda: Envelope(Keyring([Careless()], other)).unseal(token)) == "commitment"  # noqa: B023
    other_label = Envelope(Keyring([Careless()], SCOPE), label=b"ks1/response")
    assert refused(lambda: other_label.unseal(token)) == "commitment"


def test_raising_the_generation_kills_every_token_and_nothing_else() -> None:
    kms, clock = StrictKms(), Clock(START + 5)
    arn = kms.create_key()
    kms.policy = lambda _operation, _key, context: context["service"] == SCOPE.service  # the role's condition
    before = make_envelope(kms, arn, clock=clock).seal(b"state")
    after = make_envelope(kms, arn, scope=SCOPE._replace(generation="2"), clock=clock)
    assert refused(lambda: after.unseal(before)) == "wrapped_key"
    assert after.unseal(after.seal(b"state")) == b"state"


# Randomness


def test_with_entropy_that_repeats_different_payloads_still_get_different_salts() -> None:
    salts = {chunked_encryption.hedged_salt(KEY, CONTEXT, b"%d" % number, b"\0" * 32) for number in range(100)}
    assert len(salts) == 100
    other_context = chunked_encryption.hedged_salt(KEY, CONTEXT + b"x", b"0", b"\0" * 32)
    other_key = chunked_encryption.hedged_salt(b"\x08" * 32, CONTEXT, b"0", b"\0" * 32)
    moved_border = chunked_encryption.hedged_salt(KEY, CONTEXT + b"0", b"", b"\0" * 32)
    assert len({*salts, other_context, other_key, moved_border}) == 103


def test_with_a_payload_that_repeats_different_entropy_gives_different_salts() -> None:
    assert len({chunked_encryption.hedged_salt(KEY, CONTEXT, b"same", os.urandom(32)) for _ in range(100)}) == 100


def test_every_seal_asks_for_32_bytes_of_entropy() -> None:
    asked: list[int] = []

    def rand(size: int) -> bytes:
        asked.append(size)
        return b"\0" * size

    kms = StrictKms()
    envelope = Envelope(make_keys(kms, kms.create_key()), rand=rand)
    assert envelope.seal(b"a") == envelope.seal(b"a") != envelope.seal(b"b")
    assert asked == [32, 32, 32]


FORBIDDEN = {
    "generate_key",
    "Cobblestone128Encryptor",
    "Cobblestone256Encryptor",
    "RAND_bytes",
    "RAND_add",
    "RAND_status",
}


def repeating_generators(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names} & {"random"}
            case ast.ImportFrom(module="random"):
                found.add("random")
            case ast.ImportFrom(names=names):
                found |= {alias.name for alias in names} & FORBIDDEN
            case ast.Attribute(attr=attr) if attr in FORBIDDEN:
                found.add(attr)
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_uses_a_generator_that_repeats_in_clones(path: Path) -> None:
    assert not repeating_generators(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "line",
    [
        "import random",
        "import os, random as r",
        "from random import choice",
        "AESGCM.generate_key(256)",
        "from cryptography.cobblestone import Cobblestone256Encryptor",
        "cobblestone.Cobblestone256Encryptor(key, b'')",
        "ssl.RAND_bytes(8)",
    ],
)
def test_the_lint_rule_sees_what_it_forbids(line: str) -> None:
    assert repeating_generators(line)


def test_an_envelope_is_a_codec() -> None:
    codec: Codec = WARM
    assert codec.unseal(codec.seal(b"state")) == b"state"
