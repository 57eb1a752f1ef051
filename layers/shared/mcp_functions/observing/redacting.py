"""What an author is told of a mistake, without what the client sent: keys and messages are made from arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTEST = 3  # characters of what is hidden: less gives nothing away, and stands in every word
HIDDEN = "…"


def redacted(text: str, *values: object) -> str:
    """Hide in a text every string and number that stands in some values, and every name in their inner objects."""
    found = {leaf for value in values for leaf in _leaves(value) if len(leaf) >= SHORTEST}
    for leaf in sorted(found, key=len, reverse=True):
        text = text.replace(leaf, HIDDEN).replace(repr(leaf)[1:-1], HIDDEN)
    return text


def _leaves(value: object, *, inside: bool = False) -> Iterator[str]:
    match value:
        case dict():
            for name, member in value.items():
                if inside:
                    yield str(name)
                yield from _leaves(member, inside=True)
        case list() | tuple():
            for item in value:
                yield from _leaves(item, inside=True)
        case None | bool():
            pass
        case _:
            yield str(value)
