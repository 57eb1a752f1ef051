"""What one round leaves for the next, bound to the request it belongs to. Specification: envelope.md §9.

A state that opens only proves that this server sealed it. The claims inside say for whom, for which call with which
arguments, until when, and which questions were asked; `RequestStates.open` compares every one of them with the request
at hand. It works over any codec, and knows neither keys nor KMS.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mcp_functions import observability
from mcp_functions.protocol.constants import CALLS
from mcp_functions.protocol.errors import (
    DeveloperError,
    InvalidParams,
    InvalidRequestState,
    Misconfigured,
    TemporarilyUnavailable,
)
from mcp_functions.protocol.json_reader import CONTAINERS, is_deeper
from mcp_functions.protocol.json_writer import CHUNK, base64url, chunks, dumps, dumps_ascii

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.protocol.messages import Principal
    from mcp_functions.seal.envelope import Codec, Envelope

VERSION = 1
MAX_DEPTH = 64  # of arguments
MAX_RECORD_DEPTH = 200  # of what a round leaves: shallower than any parser's limit
FLOW_SECONDS = 3600
FLOW_FACTOR = 6  # a conversation may last as long as six answers, if an author allows a longer wait for one
SKEW_MS = 60_000
_FLOW_BYTES = 16
_CLAIMS: dict[str, set[type]] = {
    "v": {int}, "aud": {str}, "m": {str}, "t": {str}, "a": {str}, "p": {str, type(None)}, "iat": {int}, "exp": {int},
    "fx": {int}, "f": {str}, "r": {int}, "q": {dict}, "s": {dict},
}  # fmt: skip
_RUN = 256  # items of a list that are written at once
_SCALARS = frozenset({int, float, bool, type(None)})


class Reason(StrEnum):
    """Why claims are refused, as the log and the metric say it; the wire never does (§9.5)."""

    CODEC = "codec"
    CLAIMS = "claims"
    AUDIENCE = "audience"
    PRINCIPAL = "principal"
    METHOD = "method"
    TARGET = "target"
    ARGUMENTS = "arguments"
    ISSUED_FUTURE = "issued_future"
    LIFETIME = "lifetime"
    EXPIRED = "expired"
    ROUND = "round"


BOUND = {  # reason -> the field of a Binding that it is about, and its claim; in the order of §9.5
    Reason.AUDIENCE: ("audience", "aud"),
    Reason.PRINCIPAL: ("principal", "p"),
    Reason.METHOD: ("method", "m"),
    Reason.TARGET: ("target", "t"),
    Reason.ARGUMENTS: ("arguments_digest", "a"),
}


class RoundBudgetExceeded(Exception):
    """The conversation has used its rounds or its time. The text may be shown to the model and the user."""


class Binding(NamedTuple):
    """The request that a state belongs to."""

    audience: str
    method: str
    target: str
    arguments_digest: str
    principal: str | None


class Opened(NamedTuple):
    """What a verified state says.

    `flow` names the conversation, `round` counts its rounds from 1, `asked` maps wire keys to fingerprints of
    questions, `record` is what the engine left, `issued` and `flow_deadline` are unix milliseconds.
    """

    flow: str
    round: int
    asked: dict[str, str]
    record: dict[str, Any]
    issued: int
    flow_deadline: int


def longest(lifetime: int, flow: int = FLOW_SECONDS) -> int:
    """Say how many seconds a conversation may take, if one answer may take `lifetime` (§9.4)."""
    return max(flow, FLOW_FACTOR * lifetime)


def binding(audience: str, method: str, params: Mapping[str, Any], principal: Principal | None) -> Binding:
    """Say what a state for this request is bound to (§9.2).

    Args:
        audience: "<service>/<stage>".
        method: one of `CALLS`.
        params: of the request; only the target's name and `arguments` count, `_meta` and `inputResponses` may change.
        principal: who asks, or None on a server that knows nobody.

    Raises:
        InvalidParams: the arguments have no canonical form: nested too deep, or a number that is none.

    """
    arguments = params.get("arguments") if method != "resources/read" else None
    try:
        # Absent, null and an empty object are the same arguments: the handler sees none in each case.
        digest = base64url(digest_of(b"ks1/args\0", {} if arguments is None else arguments))
    except ValueError as error:
        message = f"Invalid arguments: {error}"
        raise InvalidParams(message) from None
    return Binding(audience, method, str(params.get(CALLS[method], "")), digest, principal_digest(principal))


def principal_digest(principal: Principal | None) -> str | None:
    """Return the name that stands for a principal in claims and logs; a length before each part (§9.2)."""
    return None if principal is None else _digest(b"ks1/principal\0", _joined(*principal))


def payer(principal: Principal | None, address: str) -> str:
    """Return the name under which the unwraps of a person are counted (§6.5). It is neither sealed nor logged.

    It leaves out the OAuth client: a person may register any number of them.

    Args:
        principal: who calls, or None on a server that knows nobody.
        address: of who calls; it is charged where there is no principal.

    """
    return address if principal is None else _digest(b"ks1/payer\0", _joined(principal.iss, principal.sub))


def digest_of(label: bytes, value: object) -> bytes:
    """Return the SHA-256 of a label and a value's canonical form.

    The form is never held as a whole: `1e308` has 309 digits in it, so 4 MiB of arguments would become 217 MB.

    Raises:
        ValueError: the value has no canonical form.

    """
    digest = hashlib.sha256(label)
    write_canonical(value, lambda text: digest.update(text.encode("ascii")))
    return digest.digest()


def write_canonical(value: object, write: Callable[[str], object]) -> None:
    """Write a JSON value in the one form that all its spellings share (§9.3), piece by piece.

    Integers are exact, integral floats are integers, keys are sorted, strings are ASCII with escapes. A long string is
    written in parts, so no piece is large.

    Raises:
        ValueError: nested deeper than 64, or a number that JSON does not have.

    """
    try:
        _write(value, write, MAX_DEPTH)
    except TypeError:
        message = "not a JSON value"
        raise ValueError(message) from None


def read_claims(payload: bytes) -> dict[str, Any]:
    """Read the claims by name (§9.1): all of them, nothing else, each of its type; no bool or float is an integer.

    Raises:
        InvalidRequestState: the payload is not such a document.

    """
    try:
        # Not as a request is read: what a step recorded comes back as it was, 2.0 and half a surrogate pair included.
        document, line, kept = payload.decode("utf-8", "surrogatepass").partition("\n")
        members = json.loads(document)
        claims = {name: members[name] for name in _CLAIMS}
    except (ValueError, RecursionError, KeyError, TypeError):
        raise InvalidRequestState(Reason.CLAIMS) from None
    typed = all(type(claims[name]) in types for name, types in _CLAIMS.items())
    if not typed or len(members) != len(claims) or claims["v"] != VERSION:
        raise InvalidRequestState(Reason.CLAIMS)
    if not all(isinstance(fingerprint, str) for fingerprint in claims["q"].values()):
        raise InvalidRequestState(Reason.CLAIMS)
    if line:
        claims["s"]["state"] = kept
    return claims


class RequestStates:
    """Seals what a round leaves, and opens it for the request that continues the conversation."""

    def __init__(  # noqa: PLR0913 - every limit of §9 is a parameter
        self,
        codec: Codec,
        *,
        now: Callable[[], float] = time.time,
        lifetime_seconds: int = 600,
        flow_seconds: int = FLOW_SECONDS,
        max_rounds: int = 16,
        anonymous: bool = False,
        rand: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Remember the limits.

        Args:
            codec: hides and authenticates bytes: an `Envelope`, or an author's own.
            now: unix seconds, wall clock.
            lifetime_seconds: how long one answer may take, where a handler does not say otherwise.
            flow_seconds: how long a whole conversation may take; at least six answers' time.
            max_rounds: how many states one conversation may leave.
            anonymous: whether states may be bound to nobody (a server without authentication).
            rand: `n` random bytes, for the name of a conversation.

        """
        self._codec, self._now, self._rand = codec, now, rand
        self._lifetime, self._flow, self._max_rounds = lifetime_seconds, flow_seconds, max_rounds
        self._anonymous = anonymous
        max_age: float | None = getattr(codec, "max_age", None)
        self._max_age = math.inf if max_age is None else max_age
        # An envelope charges callers for what it asks of KMS in vain; an own codec is told nothing but the token.
        self._envelope = cast("Envelope", codec) if getattr(codec, "knows_callers", False) else None

    def new_flow(self) -> str:
        """Name a conversation that begins now; nobody outside can guess it."""
        return base64url(self._rand(_FLOW_BYTES))

    def seal(  # noqa: PLR0913 - a conversation's name is given, or made up
        self,
        binding: Binding,
        previous: Opened | None,
        *,
        asked: Mapping[str, str],
        record: Mapping[str, Any],
        flow: str | None = None,
        lifetime: int | None = None,
    ) -> str:
        """Seal what a round leaves.

        Args:
            binding: the request of this round.
            previous: the state that this round began with, or None in the first.
            asked: wire key -> fingerprint of each question now open.
            record: JSON, as the engine left it.
            flow: names a conversation that begins here (`new_flow`); made up, if left out.
            lifetime: the handler's own, in seconds; up to days.

        Raises:
            RoundBudgetExceeded: the conversation has used its rounds or its time.
            DeveloperError: the record is not JSON.
            StateTooLarge, TemporarilyUnavailable, Misconfigured: the codec cannot seal it.

        """
        self._check_principal_mode(binding)
        issued = int(self._now() * 1000)
        lifetime_ms, flow_ms = self._limits(lifetime)
        number = previous.round + 1 if previous else 1
        # Not later than this clock would have it, or nobody would open it (§9.5).
        deadline = min(previous.flow_deadline, issued + flow_ms) if previous else issued + flow_ms
        if number > self._max_rounds:
            message = f"This conversation has used its {self._max_rounds} rounds. Start again."
            raise RoundBudgetExceeded(message)
        if deadline <= issued:
            message = "This conversation has used its time. Start again."
            raise RoundBudgetExceeded(message)
        bound = dict(zip(("aud", "m", "t", "a", "p"), binding, strict=True))
        times = {"iat": issued, "exp": min(issued + lifetime_ms, deadline), "fx": deadline}
        name = previous.flow if previous else flow or self.new_flow()
        claims = {"v": VERSION, **bound, **times, "f": name, "r": number, "q": dict(asked)}
        return self._codec.seal(_encode(claims, dict(record)))

    def open(self, token: str, binding: Binding, *, caller: str = "", lifetime: int | None = None) -> Opened:
        """Open a state for the request at hand, or refuse it.

        Args:
            token: what the client sent.
            binding: the request it came with.
            caller: who is charged if KMS has to be asked, as `payer` names it.
            lifetime: the handler's own, in seconds, as it is configured now.

        Raises:
            InvalidRequestState: it is not a state for this request; `reason` says why, for the log.
            TemporarilyUnavailable, Misconfigured: nobody can tell now.

        """
        self._check_principal_mode(binding)
        observability.current().payer = caller
        claims = read_claims(self._unseal(token, caller))
        opened = Opened(*(claims[name] for name in ("f", "r", "q", "s", "iat", "fx")))
        notes = observability.current()
        notes.flow, notes.round = opened.flow, opened.round + 1
        _same_request(claims, binding)
        self._in_time(claims, lifetime)
        if not 1 <= opened.round <= self._max_rounds:
            raise InvalidRequestState(Reason.ROUND)
        return opened

    def _unseal(self, token: str, caller: str) -> bytes:
        """Ask the codec. "Whatever an own codec raises, a state that did not open is a bad state": it fails closed."""
        try:
            envelope = self._envelope
            payload = envelope.unseal(token, caller=caller) if envelope else self._codec.unseal(token)
        except (InvalidRequestState, TemporarilyUnavailable, Misconfigured):
            raise
        except Exception:  # noqa: BLE001 - nobody knows what an own codec raises; its text may hold anything
            raise InvalidRequestState(Reason.CODEC) from None
        if not isinstance(payload, bytes):
            raise InvalidRequestState(Reason.CODEC)
        return payload

    def _in_time(self, claims: Mapping[str, Any], lifetime: int | None) -> None:
        now = int(self._now() * 1000)
        lifetime_ms, flow_ms = self._limits(lifetime)
        issued, expires, deadline = claims["iat"], claims["exp"], claims["fx"]
        if issued > now + SKEW_MS:
            raise InvalidRequestState(Reason.ISSUED_FUTURE)
        # "exp - iat is never over the lifetime that is configured now": shortening it takes effect at once. The
        # deadline is older than the state, so the clocks of two containers stand between them.
        if not 0 < expires - issued <= lifetime_ms or expires > deadline or deadline - issued > flow_ms + SKEW_MS:
            raise InvalidRequestState(Reason.LIFETIME)
        if now >= expires:
            raise InvalidRequestState(Reason.EXPIRED)

    def _limits(self, lifetime: int | None) -> tuple[int, int]:
        seconds = self._lifetime if lifetime is None else lifetime
        if seconds > self._max_age:
            message = f"a state may live {seconds} s, its envelope {self._max_age} s: raise Envelope(max_age=...)"
            raise Misconfigured(message)
        return seconds * 1000, longest(seconds, self._flow) * 1000

    def _check_principal_mode(self, binding: Binding) -> None:
        # "A missing principal is an error, unless the deployment says that it knows nobody."
        if binding.principal is None and not self._anonymous:
            message = "no principal: set RequestStates(anonymous=True) for a server without authentication"
            raise Misconfigured(message)


def _same_request(claims: Mapping[str, Any], binding: Binding) -> None:
    """Compare every claim about the request; the principal's drift counts both ways (None to some, some to None)."""
    for reason, (field, name) in BOUND.items():
        if not _equal(claims[name], getattr(binding, field)):
            raise InvalidRequestState(reason)


def _equal(claim: str | None, expected: str | None) -> bool:
    if claim is None or expected is None:
        return claim is expected
    return hmac.compare_digest(claim.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))


def _encode(claims: Mapping[str, Any], record: dict[str, Any]) -> bytes:
    """Write the claims as one line of JSON, and a text that the function keeps behind it, as it is (§9.1).

    A lone surrogate in an answer survives: it is encoded as it is.
    """
    kept = "\n" + record.pop("state") if isinstance(record.get("state"), str) else ""
    try:
        payload = (dumps({**claims, "s": record}) + kept).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError):
        message = "the state is not JSON: keep str, int, finite float, bool, None, list and dict with str keys in it"
        raise DeveloperError(message) from None
    if is_deeper(record, MAX_RECORD_DEPTH):
        rule = "the state is nested deeper than {most}"
        raise DeveloperError(rule, most=MAX_RECORD_DEPTH)
    return payload


def _write(value: object, write: Callable[[str], object], levels: int) -> None:
    """Write a value that may have that many levels of objects and arrays."""
    if isinstance(value, str):
        _write_string(value, write)
    elif type(value) is int:
        write(str(value))
    elif not isinstance(value, CONTAINERS):
        write(_scalars([value]))
    elif not levels:
        message = f"nested deeper than {MAX_DEPTH}"
        raise ValueError(message)
    elif isinstance(value, dict):
        _write_members(value, write, levels - 1)
    else:
        _write_items(value, write, levels - 1)


def _write_string(text: str, write: Callable[[str], object]) -> None:
    if len(text) <= CHUNK:
        write(dumps_ascii(text))
        return
    write('"')
    for part in chunks(text):
        write(dumps_ascii(part)[1:-1])
    write('"')


def _write_members(members: dict[str, Any], write: Callable[[str], object], levels: int) -> None:
    before = "{"
    for key in sorted(members):
        write(before)
        _write_string(key, write)
        write(":")
        _write(members[key], write, levels)
        before = ","
    write("}" if members else "{}")


def _write_items(items: Sequence[Any], write: Callable[[str], object], levels: int) -> None:
    before = "["
    for start in range(0, len(items), _RUN):
        run = items[start : start + _RUN]
        if len(run) == _RUN and _SCALARS.issuperset(map(type, run)):  # a long list of numbers takes few steps
            write(before + _scalars(run))
            before = ","
            continue
        for item in run:
            write(before)
            _write(item, write, levels)
            before = ","
    write("]" if items else "[]")


def _scalars(values: Sequence[Any]) -> str:
    """Write numbers, booleans and nulls with commas between them; an integral float is written as an integer."""
    exact = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    try:
        return dumps_ascii(exact)[1:-1]
    except ValueError:
        message = "not a JSON value"
        raise ValueError(message) from None


def _joined(*parts: str) -> bytes:
    """Write parts one after the other, each behind its length, so that no two lists of parts are the same bytes."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(len(part).to_bytes(2, "big") + part for part in encoded)


def _digest(label: bytes, content: bytes) -> str:
    return base64url(hashlib.sha256(label + content).digest())
