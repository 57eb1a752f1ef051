r"""Reads the variables of a URI template (RFC 6570) from a URI.

    template = UriTemplate("note://{author}/{+path}")
    template.variables                                 ("author", "path")
    template.match("note://ann/2026/may%20day")        {"author": "ann", "path": "2026/may day"}

`{name}` ends at the next delimiter, such as a slash. `{+name}` may hold delimiters. Both are percent-decoded.

The client writes the URI, and a hostile one could make a regular expression backtrack for hours. `match` goes over the
URI once for each expression. It begins with the last one, and notes for each index of the URI how the rest of the
template matches from there. The template "{author}/{+path}" and the URI "ann/b/c", whose end is 7, as an example:

    rest of the template    index where it matches, with the ends of its values
    (nothing)               7 ()
    {+path}                 0 to 6 (7)
    {author}/{+path}        0 to 2 (3, 7)    4 (5, 7)

The whole template matches from index 0: `author` ends at 3, and `path` at 7.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from mcp_functions.protocol.uris import normal_form
from mcp_functions.tuples import NamedTuple

# The most characters of a URI. The header Mcp-Name repeats the URI. API Gateway accepts 10,240 bytes of headers, so
# 2 KB remain for the other headers.
MAX_URI = 8192
EXPRESSION = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}")  # `{name}` or `{+name}`
DELIMITERS = "/?#&=,;"  # the value of `{name}` has none of them
# How a part of a template matches: by the index where a match starts, the index behind each of its values.
Matches: TypeAlias = dict[int, tuple[int, ...]]


class Expression(NamedTuple):
    """An expression of a template, the delimiters that its value must not have, and the literal text behind it."""

    variable: str
    delimiters: str
    literal: str


class UriTemplate:
    """A template that URIs can be matched with. `variables` has the names of its variables, in order."""

    def __init__(self, text: str) -> None:
        """Parse a template; raise a ValueError if an expression cannot be matched, or a variable is used twice."""
        without_expressions = EXPRESSION.sub("", text)
        if "{" in without_expressions or "}" in without_expressions:
            raise ValueError(f"{text!r}: only {{name}} and {{+name}} can be matched back from a URI")
        self._prefix, *parts = EXPRESSION.split(normal_form(text))
        self._expressions = [
            Expression(variable, "" if plus else DELIMITERS, literal)
            for plus, variable, literal in zip(parts[0::3], parts[1::3], parts[2::3], strict=True)
        ]
        self.variables = tuple(parts[1::3])
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"{text!r} uses a variable twice")

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values of the variables by name; None if the URI does not match, or is longer than MAX_URI.

        If there are several ways to match, the first variable is as long as possible, then the second, and so on.
        """
        if len(uri) > MAX_URI:
            return None
        uri = normal_form(uri)
        if not uri.startswith(self._prefix):
            return None
        from urllib.parse import unquote

        matches: Matches = {len(uri): ()}  # nothing may follow the last literal
        for expression in reversed(self._expressions):
            matches = _match_from_each_index(uri, expression, matches)
        start = len(self._prefix)
        if start not in matches:
            return None
        values = {}
        for expression, end in zip(self._expressions, matches[start], strict=True):
            try:
                values[expression.variable] = unquote(uri[start:end], errors="strict")
            except UnicodeDecodeError:  # a percent-encoded value that is not UTF-8 matches nothing
                return None
            start = end + len(expression.literal)
        return values


def _match_from_each_index(uri: str, expression: Expression, rest_matches: Matches) -> Matches:
    """Match an expression and the rest of the template, whose matches are given; each value is as long as possible."""
    matches = {}
    match = None  # the match whose first value may begin at `start`
    for start in reversed(range(len(uri))):
        end = start + 1  # of the shortest value
        after_literal = end + len(expression.literal)
        if uri[start] in expression.delimiters:
            match = None
        elif match is None and uri.startswith(expression.literal, end) and after_literal in rest_matches:
            match = (end, *rest_matches[after_literal])
        if match is not None:
            matches[start] = match
    return matches
