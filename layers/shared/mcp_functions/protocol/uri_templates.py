"""URI templates with `{name}` and `{+name}` of RFC 6570, matched against a URI to read their variables.

    template    note://{author}/{+path}
    URI         note://ann/2026/may%20day
    values      {"author": "ann", "path": "2026/may day"}

`{name}` matches one segment; `{+name}` may hold reserved characters, slashes included. Both are percent-decoded. A URI
may fit in several ways. Then each variable is as long as possible, earlier ones first. For `{x}-{y}` and "a-b-c", x is
"a-b":

    {x} may start at 0
    {y} may start at 2 (then x is "a") or at 4 (then x is "a-b"), behind each "-"
    the URI ends at 5: the latest start, 4, makes x longest, so y is "c"

A client writes the URI, so a regular expression is not used: it tries one way after the other, which can take hours for
a long URI. `_read_expression` follows all ways together, so each expression costs one pass over the URI.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    # Each place of a URI where the next expression may start, with the values of the expressions before it.
    Starts: TypeAlias = Mapping[int, tuple[slice, ...]]

# Characters of a URI. The header Mcp-Name repeats it, and API Gateway accepts 10,240 bytes of headers, so that 2 KB
# remain for the others.
MAX_URI = 8192
DELIMITERS = frozenset("/?#&=,;")  # each of these characters ends a segment
EXPRESSION = r"\{(?P<plus>\+?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"  # `{name}` or `{+name}`
LITERAL = r"(?P<literal>[^{]*)"  # the text behind an expression


def list_variables(template: str) -> tuple[str, ...]:
    """List the variables of a URI template, in order.

    Raises:
        ValueError: the template uses a part of RFC 6570 that a server cannot match, or a variable twice.
    """
    rest = re.sub(EXPRESSION, "", template)
    if "{" in rest or "}" in rest:
        message = f"{template!r}: only {{name}} and {{+name}} can be matched back from a URI"
        raise ValueError(message)
    names = tuple(expression["name"] for expression in re.finditer(EXPRESSION, template))
    if len(set(names)) != len(names):
        message = f"{template!r} uses a variable twice"
        raise ValueError(message)
    return names


def match(template: str, uri: str) -> dict[str, str] | None:
    """Read the variables of a template from a URI.

    Args:
        template: a template that `list_variables` accepts.
        uri: the URI.

    Returns:
        The values by name; None if the URI does not match, or is longer than MAX_URI.
    """
    prefix = template.partition("{")[0]
    if len(uri) > MAX_URI or not uri.startswith(prefix):
        return None
    names = []
    starts: Starts = {len(prefix): ()}
    for expression in re.finditer(EXPRESSION + LITERAL, template):
        names.append(expression["name"])
        starts = _read_expression(uri, starts, expression["literal"], may_hold_delimiters=expression["plus"] == "+")
    if len(uri) not in starts:
        return None
    from urllib.parse import unquote  # noqa: PLC0415 - few resources are templates

    values = [uri[part] for part in starts[len(uri)]]
    try:
        return {name: unquote(value, errors="strict") for name, value in zip(names, values, strict=True)}
    except UnicodeDecodeError:  # a percent-encoded value that is not UTF-8 matches nothing
        return None


def _read_expression(uri: str, starts: Starts, literal: str, *, may_hold_delimiters: bool) -> Starts:
    """Read an expression and the literal behind it, at every place of a URI where both fit.

    A value has at least one character.

    Args:
        uri: the whole URI.
        starts: where this expression may start.
        literal: the text behind the expression.
        may_hold_delimiters: True for `{+name}`.

    Returns:
        Where the next expression may start. The start len(uri) means that the URI ends there.
    """
    next_starts = {}
    start = None  # the latest start that can reach the present character
    for place, character in enumerate(uri):
        if place in starts:
            start = place  # of all starts before an end, the latest makes the earlier variables longest
        if character in DELIMITERS and not may_hold_delimiters:
            start = None
        end = place + 1
        if start is not None and uri.startswith(literal, end):
            value = slice(start, end)
            next_starts[end + len(literal)] = (*starts[start], value)
    return next_starts
