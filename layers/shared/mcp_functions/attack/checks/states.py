"""States that the server never left, or not like this: forged, damaged, written differently, changed, too large."""

from __future__ import annotations

import base64
import json
import re
import secrets
from typing import TYPE_CHECKING, Any

from mcp_functions.attack.findings import Basis, Check, NotTried, Proof, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.attack.hunt import Hunt
    from mcp_functions.attack.sending import Exchange

MRTR = "basic/patterns/mrtr, Server Requirements"
REJECT = "servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification."
PLACES = 16
CLASSES = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "-_", "+/")
UNSEALED = "e30"  # {}
SIZES = (100_000, 1_000_000)  # characters


def forged(canary: str, length: int) -> dict[str, str]:
    """Write states out of nothing, each with what it is."""
    return {
        "an empty text": "",
        "the word null": "null",
        "an empty object": "{}",
        "a number": "0",
        "noise of the right length": base64.urlsafe_b64encode(secrets.token_bytes(length))[:length].decode(),
        "one letter, as often": "A" * length,
        "a JWT without a signature": f"eyJhbGciOiJub25lIn0.{UNSEALED}.",
        "a path": f"../../../etc/{canary}",
        "a text of its own": canary,
        "letters that are not ASCII": "é☃" * 32,
        "a NUL": "\x00" * 8,
        "half of a surrogate pair": "\ud800",
        "blanks": "   ",
        "dots": "." * length,
    }


def wrong_types(good: str) -> dict[str, Any]:
    """Write states that are no text."""
    return {
        "a number": 7,
        "a fraction": 0.5,
        "true": True,
        "a list with the good one": [good],
        "an object with the good one": {"requestState": good},
        "an empty list": [],
        "an empty object": {},
    }


def damaged(good: str) -> Iterator[tuple[str, str]]:
    """Write the state with one wound each, everywhere: no two readers may take it for the same bytes."""
    safe = [
        at for at in range(len(good) - 1) if _neighbour(good[at]) and good[at + 1] not in ".=:" and at < len(good) - 2
    ]
    step = max(1, len(safe) // PLACES)
    for at in safe[::step]:
        yield f"character {at} of {len(good)} changed", good[:at] + str(_neighbour(good[at])) + good[at + 1 :]
    for cut in (4, len(good) // 4, len(good) // 2, len(good) - 8):
        if 0 < cut < len(good):
            yield f"{cut} characters cut off", good[:-cut]
    yield "8 characters more", good + "AAAAAAAA"
    yield "twice", good + good
    yield "its first 8 characters gone", good[8:]
    if good.swapcase() != good:
        yield "capitals and small letters swapped", good.swapcase()
    yield "reversed", good[::-1]
    for separator in ".:":
        parts = good.split(separator)
        if len(parts) > 2:  # noqa: PLR2004 - something signed
            yield "its last part gone", separator.join(parts[:-1]) + separator
            yield "its last part gone, with what divides it", separator.join(parts[:-1])


def respelled(good: str) -> Iterator[tuple[str, str]]:
    """Write the same state in another spelling, as lenient decoders of base64 read it."""
    yield "with padding", good + "="
    yield "with a line's end", good + "\n"
    yield "with a blank before it", " " + good
    yield "with a blank in it", good[: len(good) // 2] + " " + good[len(good) // 2 :]
    swapped = good.translate(str.maketrans("-_+/", "+/-_"))
    if swapped != good:
        yield "in the other alphabet of base64", swapped
    if good.rstrip("=") != good:
        yield "without padding", good.rstrip("=")
    else:
        yield from ((f"with {last} as its last character", good[:-1] + last) for last in _siblings(good))


def edited(good: str) -> Iterator[tuple[str, str]]:
    """Write the state with one value of its JSON changed, if that is what it is, with or without base64 around it."""
    for name, read, write in (("JSON", str, str), ("JSON in base64", _unwrapped, _wrapped)):
        try:
            value = json.loads(read(good))
        except (ValueError, UnicodeDecodeError):
            continue
        for path, other in _edits(value):
            yield f"{path} of its {name} changed", write(json.dumps(other, separators=(",", ":")))


def _tried(hunt: Hunt, states: Callable[[str], Iterator[tuple[str, Any]]]) -> Iterator[tuple[Exchange, str]]:
    """Present states in the place of a good one, with the right answers to its questions."""
    victim = hunt.needed
    good, responses = hunt.fresh(victim)
    for what, state in states(good):
        yield hunt.call(victim, requestState=state, inputResponses=responses), what
    control = hunt.call(victim, requestState=good, inputResponses=responses).answer
    if not control.done:
        text = f"the good state was not taken either, after all: {control}"
        raise NotTried(text)


def _bad(states: Callable[[Hunt, str], Iterator[tuple[str, Any]]]) -> Callable[[Hunt], Iterator[Proof]]:
    """Make a check: no such state completes a call."""

    def run(hunt: Hunt) -> Iterator[Proof]:
        for exchange, what in _tried(hunt, lambda good: states(hunt, good)):
            if exchange.answer.done:
                yield Proof(exchange, f"the state was {what}, and the call was completed: {exchange.answer}")

    return run


def _not_refused(hunt: Hunt) -> Iterator[Proof]:
    """Look whether a state that does not verify is refused with an error, and not passed over."""

    def some(good: str) -> Iterator[tuple[str, str]]:
        yield "noise", secrets.token_urlsafe(len(good))[: len(good)]
        yield from list(damaged(good))[:2]

    for exchange, what in _tried(hunt, some):
        answer = exchange.answer
        if answer.result is not None and not answer.done:
            yield Proof(exchange, f"the state was {what}, and it was answered with {answer}, not with an error")


def _oracle(hunt: Hunt) -> Iterator[Proof]:
    """Look whether refusals of states can be told apart."""
    first: tuple[Exchange, str] | None = None

    def all_bad(good: str) -> Iterator[tuple[str, str]]:
        known = forged(hunt.canary, len(good))
        yield "noise", known["noise of the right length"]
        yield "a word", "word"
        yield from damaged(good)

    for exchange, what in _tried(hunt, all_bad):
        answer = exchange.answer
        if answer.error is None or answer.undecided:
            continue
        first = first or (exchange, what)
        if (answer.status, answer.error) != (first[0].answer.status, first[0].answer.error):
            yield Proof(exchange, f"{what}: {answer}; but {first[1]}: {first[0].answer}")


def _readable(hunt: Hunt) -> Iterator[Proof]:
    """Look whether what the server remembers can be read by the client that carries it."""
    victim = hunt.stateful
    first = hunt.call(victim)
    state = first.answer.state or ""
    texts = [state, *(_decoded(part) for part in re.split(r"[.:]", state))]
    for text in texts:
        words = re.findall(r'"[A-Za-z_]{2,}"\s*:', text)
        if words:
            shown = ", ".join(word.split('"')[1] for word in words[:5])
            yield Proof(first, f"the state can be read without a key; it has members {shown}")
            return


def _oversized(_hunt: Hunt, good: str) -> Iterator[tuple[str, str]]:
    for size in SIZES:
        yield f"the good one with {size} characters more", good + "A" * size


def _types(_hunt: Hunt, good: str) -> Iterator[tuple[str, Any]]:
    yield from wrong_types(good).items()


def _forged(hunt: Hunt, good: str) -> Iterator[tuple[str, str]]:
    yield from forged(hunt.canary, len(good)).items()


def _edited(_hunt: Hunt, good: str) -> Iterator[tuple[str, str]]:
    every = list(edited(good))
    if not every:
        text = "the state is no readable JSON"
        raise NotTried(text)
    yield from every


def _neighbour(character: str) -> str | None:
    for letters in CLASSES:
        if character in letters:
            return letters[(letters.index(character) + 1) % len(letters)]
    return None


def _siblings(good: str) -> list[str]:
    """Name the last characters of base64 that a lenient decoder reads as the same bytes."""
    tail = re.split(r"[.:]", good)[-1]
    free = {2: 4, 3: 2}.get(len(tail) % 4, 0)
    letters = CLASSES[1] + CLASSES[0] + CLASSES[2] + "-_"
    if not free or good[-1] not in letters:
        return []
    start = letters.index(good[-1]) >> free << free
    return [letters[at] for at in range(start, start + (1 << free)) if letters[at] != good[-1]]


def _unwrapped(text: str) -> str:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def _wrapped(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(part: str) -> str:
    try:
        return _unwrapped(part.translate(str.maketrans("+/", "-_")).rstrip("="))
    except ValueError:
        return ""


def _edits(value: Any, path: str = "the whole") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    match value:
        case dict():
            for key, member in value.items():
                yield from ((where, {**value, key: other}) for where, other in _edits(member, str(key)))
        case list():
            for at, member in enumerate(value):
                yield from ((w, [*value[:at], other, *value[at + 1 :]]) for w, other in _edits(member, f"{path}[{at}]"))
        case bool():
            yield path, not value
        case int() | float():
            yield path, value + 1
        case str():
            yield path, value + "x"


CHECKS = (
    Check("state-readable", Severity.INFORMATION, Basis.OPINION, MRTR,
          "an unencrypted state shows the client all the data that the server keeps in it.", _readable),
    Check("state-forged", Severity.HOLE, Basis.MUST, MRTR, REJECT, _bad(_forged)),
    Check("state-of-another-type", Severity.HOLE, Basis.MUST, MRTR, REJECT, _bad(_types)),
    Check("state-edited", Severity.HOLE, Basis.MUST, MRTR, REJECT, _bad(_edited)),
    Check("state-oversized", Severity.HOLE, Basis.MUST, MRTR, REJECT, _bad(_oversized)),
    Check("state-respelled", Severity.INFORMATION, Basis.OPINION, MRTR,
          "a state needs a single spelling: a second one evades a list of used states.",
          _bad(lambda _hunt, good: respelled(good))),
    Check("state-not-refused", Severity.DEVIATION, Basis.MUST, MRTR, REJECT, _not_refused),
    Check("state-oracle", Severity.DEVIATION, Basis.OPINION, MRTR,
          "refusals that differ show a forger which check failed.", _oracle),
    Check("state-damaged", Severity.HOLE, Basis.MUST, MRTR, REJECT, _bad(lambda _hunt, good: damaged(good))),
)  # fmt: skip
