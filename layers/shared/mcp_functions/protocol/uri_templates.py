"""URI templates with `{name}` and `{+name}` of RFC 6570, matched against a URI to read their variables.

`{name}` matches one segment and is percent-decoded; `{+name}` may hold reserved characters, slashes included. A client
writes the URI, so no regular expression reads it: the time of a match is linear in its length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_URI = 8192  # characters; API Gateway accepts 10,240 bytes of headers, and Mcp-Name repeats the URI there
DELIMITERS = frozenset("/?#&=,;")  # each ends a segment
EXPRESSION = r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}"


def list_variables(template: str) -> tuple[str, ...]:
    """List the variables of a URI template, in order.

    Raises:
        ValueError: the template uses a part of RFC 6570 that a server cannot match, or a variable twice.
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
    """Read the variables of a template from a URI. Each is as long as possible, earlier ones first.

    Returns:
        The values by name; None if the URI does not match, or is longer than MAX_URI.
    """
    pieces = re.split(EXPRESSION, template)  # a literal, then by turns a plus or "", a name, and the next literal
    literals, pluses, names = pieces[::3], pieces[1::3], pieces[2::3]
    if not names:
        return {} if uri == template else None
    if len(uri) > MAX_URI or not uri.startswith(literals[0]) or not uri.endswith(literals[-1]):
        return None
    limits = {"+": [len(uri)] * (len(uri) + 1), "": _segment_ends(uri)}
    expressions = [limits[plus] for plus in pluses]
    values = {}
    start = len(literals[0])
    rows = _last_ends(literals, expressions, uri)
    for name, limit, literal, ends in zip(names, expressions, literals[1:], rows, strict=True):
        end = ends[limit[start]]
        if end <= start:
            return None
        values[name] = uri[start:end]
        start = end + len(literal)
    from urllib.parse import unquote  # noqa: PLC0415 - only a template has variables

    try:
        return {name: unquote(value, errors="strict") for name, value in values.items()}
    except UnicodeDecodeError:
        return None


def _segment_ends(uri: str) -> list[int]:
    """Find the end of the segment around each place in a URI."""
    ends = [len(uri)]
    for place in range(len(uri) - 1, -1, -1):
        ends.append(place if uri[place] in DELIMITERS else ends[-1])
    return ends[::-1]


def _last_ends(literals: Sequence[str], limits: Sequence[Sequence[int]], uri: str) -> list[list[int]]:
    """Find where each expression may end, so that the rest of the template matches the rest of the URI.

    Args:
        literals: the texts around the expressions.
        limits: for each expression, how far it reaches from each place.
        uri: the URI, which begins with the first literal and ends with the last.

    Returns:
        A row for each expression. At each place, it has the last possible end up to there; -1 if there is none.
    """
    last = len(uri) - len(literals[-1])
    rows = [[-1] * last + [last] * (len(uri) + 1 - last)]
    for limit, literal in zip(limits[:0:-1], literals[-2:0:-1], strict=True):
        row = []
        end = -1
        for place in range(len(uri) + 1):
            start = place + len(literal)
            if start <= len(uri) and uri.startswith(literal, place) and rows[-1][limit[start]] > start:
                end = place
            row.append(end)
        rows.append(row)
    return rows[::-1]
