"""URI templates with `{name}` and `{+name}` of RFC 6570, matched against a URI to read their variables.

    template    note://{author}/{+path}         literals "note://", "/" and ""; expressions {author} and {+path}
    URI         note://ann/2026/may%20day
    values      {"author": "ann", "path": "2026/may day"}

`{name}` matches one segment; `{+name}` may hold reserved characters, slashes included. Both are percent-decoded.

A client writes the URI, so no regular expression reads it, which could try very many splits. Two passes make the time
linear in its length. The first goes from the end of the URI to its start, and finds for each expression the places
where it may end (`_last_ends`). The second goes forward, and takes for each variable the last such place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_URI = 8192  # characters; API Gateway accepts 10,240 bytes of headers, and Mcp-Name repeats the URI there
DELIMITERS = frozenset("/?#&=,;")  # each of these characters ends a segment
EXPRESSION = r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}"  # two groups: a plus or "", and the name of the variable


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
    literals = pieces[::3]
    pluses = pieces[1::3]
    names = pieces[2::3]
    if not names:
        return {} if uri == template else None
    if len(uri) > MAX_URI or not uri.startswith(literals[0]) or not uri.endswith(literals[-1]):
        return None
    to_uri_end = [len(uri)] * (len(uri) + 1)
    to_segment_end = _segment_ends(uri)
    limits = [to_uri_end if plus else to_segment_end for plus in pluses]
    rows = _last_ends(literals, limits, uri)
    values = {}
    start = len(literals[0])
    for name, limit, literal, last_end in zip(names, limits, literals[1:], rows, strict=True):
        end = last_end[limit[start]]
        if end <= start:  # no place fits, or the value would be empty
            return None
        values[name] = uri[start:end]
        start = end + len(literal)
    from urllib.parse import unquote  # noqa: PLC0415 - only a template has variables

    try:
        return {name: unquote(value, errors="strict") for name, value in values.items()}
    except UnicodeDecodeError:  # a percent-encoded value that is not UTF-8 matches nothing
        return None


def _segment_ends(uri: str) -> list[int]:
    """Find the end of the segment at each place in a URI: the next delimiter, or the end of the URI."""
    ends = [len(uri)]
    for place in reversed(range(len(uri))):
        ends.append(place if uri[place] in DELIMITERS else ends[-1])
    return ends[::-1]


def _last_ends(literals: Sequence[str], limits: Sequence[Sequence[int]], uri: str) -> list[list[int]]:
    """Find where each expression may end, so that the rest of the template matches the rest of the URI.

    Args:
        literals: the texts around the expressions, one more than these.
        limits: for each expression, the last place that it may reach if it starts at a place.
        uri: the URI, which begins with the first literal and ends with the last.

    Returns:
        A row for each expression. At each place, it has the last possible end up to there; -1 if there is none.
    """
    last = len(uri) - len(literals[-1])
    rows = [[-1] * last + [last] * (len(uri) + 1 - last)]  # the last expression ends where the last literal starts
    # Each other expression may end where the literal behind it stands, if the next expression then finds its own end.
    for next_limit, literal in zip(limits[:0:-1], literals[-2:0:-1], strict=True):
        next_row = rows[-1]
        row = []
        end = -1
        for place in range(len(uri) + 1):
            start = place + len(literal)  # the next expression starts here
            if start <= len(uri) and uri.startswith(literal, place) and next_row[next_limit[start]] > start:
                end = place
            row.append(end)
        rows.append(row)
    return rows[::-1]
