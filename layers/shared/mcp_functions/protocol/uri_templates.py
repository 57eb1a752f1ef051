"""URI templates, as far as resources need them: RFC 6570's `{name}` and `{+name}`, matched back from a URI.

`{name}` stands for one segment and is percent-decoded; `{+name}` may hold reserved characters, slashes included. The
URI is a stranger's, so no regular expression reads it: what a match costs grows with its length, and no faster.
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


def list_variables(template: str) -> tuple[str, ...]:
    """Name the variables of a URI template, in order.

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
    """Read the variables of `template` out of `uri`, each as long as it can be, the first before the second.

    Returns:
        None if it does not fit, or is longer than MAX_URI.

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
    """Take a template apart: what stands literally before, between and behind its expressions; and these."""
    pieces = re.split(EXPRESSION, template)
    return tuple(pieces[::3]), tuple((plus == "+", name) for plus, name in zip(pieces[1::3], pieces[2::3], strict=True))


def _segments(uri: str) -> list[int]:
    """Say for each place in a URI where the segment ends that it stands in."""
    ends = [len(uri)]
    for place in range(len(uri) - 1, -1, -1):
        ends.append(place if uri[place] in DELIMITERS else ends[-1])
    return ends[::-1]


def _latest(template: str, uri: str, stops: Mapping[bool, Sequence[int]]) -> list[list[int]]:
    """Say for each expression and each place the last place up to there from which the rest fits; -1 for none."""
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
