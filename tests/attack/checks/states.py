"""Checks with states that the server did not issue in this form.

    _forged         texts that the server never issued
    _wrong_types    JSON values that are no text
    _oversized      a valid state, and many characters more
    _damaged        a valid state with a changed character, without a part, …
    _respelled      the same bytes in another base64 text
    _edited         a state with a changed value, if the client can read the state

These functions make states from a valid state. A check sends each in the place of the valid state, with correct
answers. If the server completes the call, it does not protect its states.

The docstring of a check is the sentence that it tests.
"""

import base64
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from string import ascii_lowercase, ascii_uppercase, digits
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.attack import other_values
from tests.attack.findings import Basis, Proof, Severity, check
from tests.attack.scan import Exchange, Scan, SkipCheck

if TYPE_CHECKING:
    from mcp_functions_harness.client.http import Response

States: TypeAlias = Iterable[tuple[str, Any]]  # states, each with a description

MRTR = "basic/patterns/mrtr, Server Requirements"
MAX_CHANGES = 16  # how many characters of a state are changed, one at a time
# Each character and the next one of its class, which replaces it: so a changed state still looks right.
NEIGHBOURS: dict[str, str] = {}
for characters in (ascii_lowercase, ascii_uppercase, digits, "-_", "+/"):
    NEIGHBOURS.update(zip(characters, characters[1:] + characters[0], strict=True))
BASE64URL = ascii_uppercase + ascii_lowercase + digits + "-_"  # in the order of their values
SIGNED_PARTS = 3  # header, payload and signature, as in a JWT


@check(Severity.INFORMATION, Basis.OPINION, MRTR)
def state_readable(scan: Scan) -> Iterator[Proof]:
    """Search a state for the data of its call.

    an unencrypted state shows the client all the data that the server keeps in it.
    """
    exchange = scan.call(scan.require_victim_with_state())
    state = exchange.response.state or ""
    parts = re.split(r"[.:]", state)  # those of a JWT, for example
    for text in [state, *map(_text_of, parts)]:
        members = re.findall(r'"([A-Za-z_]{2,})"\s*:', text)
        if members:
            yield Proof(exchange, f"the state can be read without a key; it has members {', '.join(members[:5])}")
            return


@check(Severity.HOLE, Basis.MUST, MRTR)
def state_forged(scan: Scan) -> Iterator[Proof]:
    """Send states that no server has made.

    servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification.
    """
    return _completed(scan, lambda valid: _forged(valid, scan.canary))


@check(Severity.HOLE, Basis.MUST, MRTR)
def state_of_another_type(scan: Scan) -> Iterator[Proof]:
    """Send JSON values other than text as the state.

    servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification.
    """
    return _completed(scan, _wrong_types)


@check(Severity.HOLE, Basis.MUST, MRTR)
def state_edited(scan: Scan) -> Iterator[Proof]:
    """Send states of which one part was changed.

    servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification.
    """
    return _completed(scan, _edited)


@check(Severity.HOLE, Basis.MUST, MRTR)
def state_oversized(scan: Scan) -> Iterator[Proof]:
    """Send a state that is far too long.

    servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification.
    """
    return _completed(scan, _oversized)


@check(Severity.INFORMATION, Basis.OPINION, MRTR)
def state_respelled(scan: Scan) -> Iterator[Proof]:
    """Send other spellings of a valid state.

    a state needs a single spelling: a second one evades a list of used states.
    """
    return _completed(scan, _respelled)


@check(Severity.DEVIATION, Basis.MUST, MRTR)
def state_not_refused(scan: Scan) -> Iterator[Proof]:
    """Look for responses that ignore a bad state.

    servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification.
    """
    for description, exchange in _send_variants(scan, _invalid, limit=3):
        response = exchange.response
        if response.result is not None and not response.done:
            yield Proof(exchange, f"the state was {description}, and was answered with {response}, not with an error")


@check(Severity.DEVIATION, Basis.OPINION, MRTR)
def state_oracle(scan: Scan) -> Iterator[Proof]:
    """Compare the refusals of bad states.

    refusals that differ show a forger which check failed.
    """
    first: Response | None = None
    first_description = ""
    for description, exchange in _send_variants(scan, _invalid):
        response = exchange.response
        if response.error is None or response.undecided:
            continue
        if first is None:
            first = response
            first_description = description
        elif (response.status, response.error) != (first.status, first.error):
            yield Proof(exchange, f"{description}: {response}; but {first_description}: {first}")


@check(Severity.HOLE, Basis.MUST, MRTR)
def state_damaged(scan: Scan) -> Iterator[Proof]:
    """Change each kind of character in a state.

    servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification.
    """
    return _completed(scan, _damaged)


def _completed(scan: Scan, make_states: Callable[[str], States]) -> Iterator[Proof]:
    """Prove that one of these states completes a call."""
    for description, exchange in _send_variants(scan, make_states):
        if exchange.response.done:
            yield Proof(exchange, f"the state was {description}, and the call was completed: {exchange.response}")


def _send_variants(
    scan: Scan, make_states: Callable[[str], States], limit: int | None = None
) -> Iterator[tuple[str, Exchange]]:
    """Send states in the place of a valid one, with correct answers; yield a description and the exchange.

    Raises:
        SkipCheck: at the end the valid state was refused too, so the refusals before prove nothing.
    """
    victim = scan.require_victim_needing_state()
    valid, answers = scan.reach_last_round(victim)
    for description, state in islice(make_states(valid), limit):
        yield description, scan.call(victim, requestState=state, inputResponses=answers)
    control = scan.call(victim, requestState=valid, inputResponses=answers).response
    if not control.done:
        raise SkipCheck(reason=f"the valid state was not accepted either: {control}")


def _forged(valid: str, canary: str) -> States:
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


def _wrong_types(valid: str) -> States:
    yield "a number", 7
    yield "a fraction", 0.5
    yield "true", True
    yield "a list that holds the valid state", [valid]
    yield "an object that holds the valid state", {"requestState": valid}
    yield "an empty list", []
    yield "an empty object", {}


def _oversized(valid: str) -> States:
    for size in (100_000, 1_000_000):
        yield f"the valid state with {size} characters more", valid + "A" * size


def _invalid(valid: str) -> States:
    yield "noise", _noise(len(valid))
    yield "a word", "word"
    yield from _damaged(valid)


def _damaged(valid: str) -> States:
    """Yield the state with one change each, which no decoder can ignore."""
    # The last character of a base64 text may have bits that decoders ignore, so that one stays.
    places = [at for at in range(len(valid) - 2) if valid[at] in NEIGHBOURS and valid[at + 1] not in ".=:"]
    step = max(1, len(places) // MAX_CHANGES)
    for at in places[::step]:
        yield f"character {at} of {len(valid)} changed", f"{valid[:at]}{NEIGHBOURS[valid[at]]}{valid[at + 1 :]}"
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


def _respelled(valid: str) -> States:
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
        for last in _equal_last_characters(valid):
            yield f"with {last} as its last character", valid[:-1] + last


def _edited(valid: str) -> States:
    """Yield the state with one JSON value changed, if it is JSON or JSON in base64."""
    has_edits = False
    for name, decode, encode in (("JSON", str, str), ("JSON in base64", _from_base64, _in_base64)):
        try:
            value = json.loads(decode(valid))
        except (ValueError, UnicodeDecodeError):
            continue
        for path, other in other_values.edits(value):
            has_edits = True
            yield f"{path} of its {name} changed", encode(json.dumps(other, separators=(",", ":")))
    if not has_edits:
        raise SkipCheck(reason="the state is no readable JSON")


def _noise(length: int) -> str:
    return secrets.token_urlsafe(length)[:length]


def _equal_last_characters(valid: str) -> list[str]:
    """Return the other last characters with which a base64 text has the same bytes.

    A base64 character has 6 bits. The last one may have bits that belong to no byte, which lenient decoders ignore.
    """
    part = re.split(r"[.:]", valid)[-1]
    unused_bits = {2: 4, 3: 2}.get(len(part) % 4)
    if unused_bits is None or part[-1] not in BASE64URL:
        return []
    used = BASE64URL.index(part[-1]) >> unused_bits
    return [last for value, last in enumerate(BASE64URL) if value >> unused_bits == used and last != part[-1]]


def _from_base64(text: str) -> str:
    padding = "=" * (-len(text) % 4)
    return base64.urlsafe_b64decode(text + padding).decode()


def _in_base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _text_of(part: str) -> str:
    """Return the text in a part of a state, in either alphabet of base64; "" if there is none."""
    try:
        return _from_base64(part.translate(str.maketrans("+/", "-_")).rstrip("="))
    except ValueError:
        return ""
