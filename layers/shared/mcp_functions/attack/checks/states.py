"""Checks with states that the server did not issue in this form: forged, damaged, re-encoded, edited, too large.

A function of type `Variants` makes such states from a valid one. A check sends each of them with correct answers in
the place of the valid state. A hole is found if the call is completed all the same.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.attack import schema_values
from mcp_functions.attack.findings import Basis, Check, Proof, Severity, SkipCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcp_functions.attack.client import Exchange, Response
    from mcp_functions.attack.scan import Scan

    # Makes states, each with a description, from a valid state and the canary of the run.
    Variants: TypeAlias = Callable[[str, str], Iterable[tuple[str, Any]]]

MRTR = "basic/patterns/mrtr, Server Requirements"
REJECT = "servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification."
PLACES = 16  # how many characters of a state are changed, one at a time
# A changed character is of the same class, so that the state still looks right.
CLASSES = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "-_", "+/")
SIGNED_PARTS = 3  # header, payload and signature, as in a JWT
SIZES = (100_000, 1_000_000)  # characters that are added to a state


def _forged(valid: str, canary: str) -> Iterator[tuple[str, str]]:
    length = len(valid)
    yield "an empty text", ""
    yield "the word null", "null"
    yield "an empty object", "{}"
    yield "a number", "0"
    yield "noise of the right length", _noise(length)
    yield "one letter, as often", "A" * length
    yield "a JWT without a signature", "eyJhbGciOiJub25lIn0.e30."
    yield "a path", f"../../../etc/{canary}"
    yield "a text of its own", canary
    yield "letters that are not ASCII", "é☃" * 32
    yield "a NUL", "\x00" * 8
    yield "half of a surrogate pair", "\ud800"
    yield "blanks", "   "
    yield "dots", "." * length


def _wrong_types(valid: str, _canary: str) -> Iterator[tuple[str, Any]]:
    yield "a number", 7
    yield "a fraction", 0.5
    yield "true", True
    yield "a list that holds the valid state", [valid]
    yield "an object that holds the valid state", {"requestState": valid}
    yield "an empty list", []
    yield "an empty object", {}


def _oversized(valid: str, _canary: str) -> Iterator[tuple[str, str]]:
    for size in SIZES:
        yield f"the valid state with {size} characters more", valid + "A" * size


def _invalid(valid: str, canary: str) -> Iterator[tuple[str, str]]:
    yield "noise", _noise(len(valid))
    yield "a word", "word"
    yield from _damaged(valid, canary)


def _damaged(valid: str, _canary: str) -> Iterator[tuple[str, str]]:
    """Yield the state with one change each, which no decoder can ignore.

    The last character of a base64 text may hold bits that decoders ignore, so it stays.
    """
    places = [at for at in range(len(valid) - 2) if _neighbour(valid[at]) and valid[at + 1] not in ".=:"]
    step = max(1, len(places) // PLACES)
    for at in places[::step]:
        yield f"character {at} of {len(valid)} changed", valid[:at] + str(_neighbour(valid[at])) + valid[at + 1 :]
    for cut in (4, len(valid) // 4, len(valid) // 2, len(valid) - 8):
        if 0 < cut < len(valid):
            yield f"{cut} characters cut off", valid[:-cut]
    yield "8 characters more", valid + "AAAAAAAA"
    yield "twice", valid + valid
    yield "its first 8 characters gone", valid[8:]
    if valid.swapcase() != valid:
        yield "capitals and small letters swapped", valid.swapcase()
    yield "reversed", valid[::-1]
    for separator in ".:":
        parts = valid.split(separator)
        if len(parts) >= SIGNED_PARTS:
            yield "its last part gone", separator.join(parts[:-1]) + separator
            yield "its last part gone, with what divides it", separator.join(parts[:-1])


def _respelled(valid: str, _canary: str) -> Iterator[tuple[str, str]]:
    """Yield the same state in another encoding, which lenient base64 decoders accept."""
    yield "with padding", valid + "="
    yield "with a line's end", valid + "\n"
    yield "with a blank before it", " " + valid
    yield "with a blank in it", valid[: len(valid) // 2] + " " + valid[len(valid) // 2 :]
    swapped = valid.translate(str.maketrans("-_+/", "+/-_"))
    if swapped != valid:
        yield "in the other alphabet of base64", swapped
    if valid.rstrip("=") != valid:
        yield "without padding", valid.rstrip("=")
    else:
        for last in _siblings(valid):
            yield f"with {last} as its last character", valid[:-1] + last


def _edited(valid: str, _canary: str) -> Iterator[tuple[str, str]]:
    """Yield the state with one JSON value changed, if it is JSON or JSON in base64."""
    has_edits = False
    for name, read, write in (("JSON", str, str), ("JSON in base64", _unwrapped, _wrapped)):
        try:
            value = json.loads(read(valid))
        except (ValueError, UnicodeDecodeError):
            continue
        for path, other in schema_values.edits(value):
            has_edits = True
            yield f"{path} of its {name} changed", write(json.dumps(other, separators=(",", ":")))
    if not has_edits:
        raise SkipCheck(reason="the state is no readable JSON")


def _send_variants(scan: Scan, variants: Variants) -> Iterator[tuple[Exchange, str]]:
    """Send states in the place of a valid one, with correct answers; yield each exchange and its description.

    At the end the valid state must be accepted. Otherwise another cause refused them all, and the check proves nothing.
    """
    victim = scan.require_victim_needing_state()
    valid, answers = scan.last_round(victim)
    for what, state in variants(valid, scan.canary):
        yield scan.call(victim, requestState=state, inputResponses=answers), what
    control = scan.call(victim, requestState=valid, inputResponses=answers).response
    if not control.done:
        raise SkipCheck(reason=f"the valid state was not accepted either: {control}")


def _completes(variants: Variants) -> Callable[[Scan], Iterator[Proof]]:
    """Make a check that none of these states completes a call."""

    def run(scan: Scan) -> Iterator[Proof]:
        for exchange, what in _send_variants(scan, variants):
            if exchange.response.done:
                yield Proof(exchange, f"the state was {what}, and the call was completed: {exchange.response}")

    return run


def _not_refused(scan: Scan) -> Iterator[Proof]:
    """Prove that an invalid state is ignored instead of rejected."""
    for exchange, what in _send_variants(scan, lambda valid, canary: islice(_invalid(valid, canary), 3)):
        response = exchange.response
        if response.result is not None and not response.done:
            yield Proof(exchange, f"the state was {what}, and it was answered with {response}, not with an error")


def _oracle(scan: Scan) -> Iterator[Proof]:
    """Prove that errors for invalid states differ."""
    first: tuple[Response, str] | None = None
    for exchange, what in _send_variants(scan, _invalid):
        response = exchange.response
        if response.error is None or response.undecided:
            continue
        if first is None:
            first = response, what
        elif (response.status, response.error) != (first[0].status, first[0].error):
            yield Proof(exchange, f"{what}: {response}; but {first[1]}: {first[0]}")


def _readable(scan: Scan) -> Iterator[Proof]:
    """Prove that the client can read the state."""
    exchange = scan.call(scan.require_victim_with_state())
    state = exchange.response.state or ""
    for text in (state, *map(_decoded, re.split(r"[.:]", state))):
        members = re.findall(r'"([A-Za-z_]{2,})"\s*:', text)
        if members:
            yield Proof(exchange, f"the state can be read without a key; it has members {', '.join(members[:5])}")
            return


def _noise(length: int) -> str:
    return secrets.token_urlsafe(length)[:length]


def _neighbour(character: str) -> str | None:
    """Return another character of the same class; None if the character is in no class."""
    for letters in CLASSES:
        if character in letters:
            return letters[(letters.index(character) + 1) % len(letters)]
    return None


def _siblings(valid: str) -> list[str]:
    """Return the last characters that a lenient base64 decoder reads as the same bytes.

    The last group of a base64 text may have 2 or 3 characters of 6 bits for 1 or 2 bytes. Then 4 or 2 bits of the last
    character are not used, and decoders may ignore them.
    """
    tail = re.split(r"[.:]", valid)[-1]
    free = {2: 4, 3: 2}.get(len(tail) % 4, 0)
    letters = CLASSES[1] + CLASSES[0] + CLASSES[2] + "-_"  # in the order of their values in base64url
    if not free or valid[-1] not in letters:
        return []
    start = letters.index(valid[-1]) >> free << free  # the unused bits become 0
    return [letters[at] for at in range(start, start + (1 << free)) if letters[at] != valid[-1]]


def _unwrapped(text: str) -> str:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def _wrapped(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(part: str) -> str:
    """Return the text in a part of a state, in either alphabet of base64; "" if there is none."""
    try:
        return _unwrapped(part.translate(str.maketrans("+/", "-_")).rstrip("="))
    except ValueError:
        return ""


CHECKS = (
    Check("state-readable", Severity.INFORMATION, Basis.OPINION, MRTR,
          "an unencrypted state shows the client all the data that the server keeps in it.", _readable),
    Check("state-forged", Severity.HOLE, Basis.MUST, MRTR, REJECT, _completes(_forged)),
    Check("state-of-another-type", Severity.HOLE, Basis.MUST, MRTR, REJECT, _completes(_wrong_types)),
    Check("state-edited", Severity.HOLE, Basis.MUST, MRTR, REJECT, _completes(_edited)),
    Check("state-oversized", Severity.HOLE, Basis.MUST, MRTR, REJECT, _completes(_oversized)),
    Check("state-respelled", Severity.INFORMATION, Basis.OPINION, MRTR,
          "a state needs a single spelling: a second one evades a list of used states.", _completes(_respelled)),
    Check("state-not-refused", Severity.DEVIATION, Basis.MUST, MRTR, REJECT, _not_refused),
    Check("state-oracle", Severity.DEVIATION, Basis.OPINION, MRTR,
          "refusals that differ show a forger which check failed.", _oracle),
    Check("state-damaged", Severity.HOLE, Basis.MUST, MRTR, REJECT, _completes(_damaged)),
)  # fmt: skip
