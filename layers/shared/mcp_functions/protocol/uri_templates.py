"""URI templates of resources: the expressions `{name}` and `{+name}` of RFC 6570, matched against a URI.

`{name}` matches one segment and is percent-decoded. `{+name}` may match reserved characters, including slashes. The URI
is not trusted, so no regular expression reads it: the cost of a match is linear in the length of the URI.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_URI = 8192  # characters; API Gateway takes 10 240 bytes of headers, and Mcp-Name repeats the URI there
DELIMITERS = frozenset("/?#&=,;")  # that end a segment
EXPRESSION = r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}"


def variables(template: str) -> tuple[str, ...]:
    """Return the names of a URI template's variables, in order.

    Raises:
        ValueError: the template uses more of RFC 6570 than a server can match back.

    """
    rest = re.sub(EXPRESSION, "", template)
    if "{" in rest or "}" in rest:
        message = f"{template!r}: only {{name}} and {{+name}} can be matched back from a URI"
        raise ValueError(message)
    names = tuple(name for _plus, name in re.findall(EXPRESSION, template))
    if len(set(names)) != len(names):
        message = f"{template!r} uses a variable twice"
        raise ValueError(message)
    return names


def match(template: str, uri: str) -> dict[str, str] | None:
    """Read the variables of `template` from `uri`. Each is as long as possible, the first before the second.

    Returns:
        None if the URI does not match, or is longer than MAX_URI.

    """
    literals, expressions = _parts(template)
    if not expressions:
        return {} if uri == template else None
    if len(uri) > MAX_URI or not uri.startswith(literals[0]) or not uri.endswith(literals[-1]):
        return None
    stops = {True: [len(uri)] * (len(uri) + 1), False: _segments(uri)}
    found, start = {}, len(literals[0])
    for (plus, name), literal, latest in zip(expressions, literals[1:], _latest(template, uri, stops), strict=True):
        end = latest[stops[plus][start]]
        if end <= start:
            return None
        found[name] = uri[start:end]
        start = end + len(literal)
    from urllib.parse import unquote  # noqa: PLC0415 - only templates have variables

    try:
        return {name: unquote(value, errors="strict") for name, value in found.items()}
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=256)
def _parts(template: str) -> tuple[tuple[str, ...], tuple[tuple[bool, str], ...]]:
    """Split a template into its literals (before, between and after the expressions) and its expressions."""
    pieces = re.split(EXPRESSION, template)
    return tuple(pieces[::3]), tuple((plus == "+", name) for plus, name in zip(pieces[1::3], pieces[2::3], strict=True))


def _segments(uri: str) -> list[int]:
    """Return, for each position in a URI, the end of its segment."""
    ends = [len(uri)]
    for place in range(len(uri) - 1, -1, -1):
        ends.append(place if uri[place] in DELIMITERS else ends[-1])
    return ends[::-1]


def _latest(template: str, uri: str, stops: Mapping[bool, Sequence[int]]) -> list[list[int]]:
    """Return, for each expression and position, the last position up to there from which the rest matches, or -1."""
    literals, expressions = _parts(template)
    last = len(uri) - len(literals[-1])
    rows = [[-1] * last + [last] * (len(uri) + 1 - last)]
    for (plus, _name), literal in zip(expressions[:0:-1], literals[-2:0:-1], strict=True):
        after, row, fits = rows[-1], [], -1
        for place in range(len(uri) + 1):
            start = place + len(literal)
            if start <= len(uri) and uri.startswith(literal, place) and after[stops[plus][start]] > start:
                fits = place
            row.append(fits)
        rows.append(row)
    return rows[::-1]
