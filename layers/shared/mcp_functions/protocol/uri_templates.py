"""Reads the variables of a URI template (RFC 6570) from a URI.

    template    note://{author}/{+path}
    URI         note://ann/2026/may%20day
    values      {"author": "ann", "path": "2026/may day"}

`{name}` ends at the next delimiter, such as a slash. `{+name}` may hold delimiters. Both are percent-decoded.

Sometimes there are several ways to match. Then the first variable is as long as possible, after that the second, and so
on. For example, "a-b-c" matches `{x}-{y}` in two ways:

    {x} starts at 0
    {y} starts at 2 if x is "a", or at 4 if x is "a-b"
    both ways end at 5; the second is chosen, because it has the longer x

A client writes the URI, so a regular expression is not used: it tries the ways one after the other, which can take
hours for a long URI. `_read_expression` follows all ways at once, in one pass over the URI for each expression.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    # The places of a URI where the next expression may start. For each place: where the values of the expressions
    # before it are, in the best way to this place.
    Starts: TypeAlias = Mapping[int, tuple[slice, ...]]

# The most characters of a URI. The header Mcp-Name repeats the URI. API Gateway accepts 10,240 bytes of headers, so
# 2 KB remain for the other headers.
MAX_URI = 8192
DELIMITERS = frozenset("/?#&=,;")  # each of these characters ends the value of a `{name}`
EXPRESSION = r"\{(?P<plus>\+?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"  # `{name}` or `{+name}`
LITERAL = r"(?P<literal>[^{]*)"  # the text between an expression and the next one


def list_variables(template: str) -> tuple[str, ...]:
    """List the variables of a URI template, in order.

    Raises:
        ValueError: the template has an expression of RFC 6570 that a server cannot match, or uses a variable twice.
    """
    without_expressions = re.sub(EXPRESSION, "", template)
    if "{" in without_expressions or "}" in without_expressions:
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
        may_hold_delimiters = expression["plus"] == "+"
        starts = _read_expression(uri, starts, expression["literal"], may_hold_delimiters=may_hold_delimiters)
    if len(uri) not in starts:  # no way ends where the URI ends
        return None
    from urllib.parse import unquote  # noqa: PLC0415 - few resources are templates

    values = {}
    for name, part in zip(names, starts[len(uri)], strict=True):
        try:
            values[name] = unquote(uri[part], errors="strict")
        except UnicodeDecodeError:  # a percent-encoded value that is not UTF-8 matches nothing
            return None
    return values


def _read_expression(uri: str, starts: Starts, literal: str, *, may_hold_delimiters: bool) -> Starts:
    """Read an expression and the literal behind it, from each place where the expression may start.

    Args:
        uri: the whole URI.
        starts: where this expression may start.
        literal: the text behind the expression.
        may_hold_delimiters: True for `{+name}`.

    Returns:
        Where the next expression may start: behind each literal that a value can reach. A value has at least one
        character.
    """
    next_starts = {}
    # The start of the value that holds the present character; None if there is no such value. Of several starts, the
    # latest is right, because then the variables before this one are as long as possible.
    start = None
    for place, character in enumerate(uri):
        if place in starts:
            start = place
        if character in DELIMITERS and not may_hold_delimiters:
            start = None
        end = place + 1
        if start is not None and uri.startswith(literal, end):
            value = slice(start, end)
            next_starts[end + len(literal)] = (*starts[start], value)
    return next_starts
