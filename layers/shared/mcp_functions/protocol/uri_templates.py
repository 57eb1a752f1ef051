"""Reads the variables of a URI template (RFC 6570) from a URI.

    template = UriTemplate("note://{author}/{+path}")
    template.variables                                 ("author", "path")
    template.match("note://ann/2026/may%20day")        {"author": "ann", "path": "2026/may day"}

`{name}` ends at the next delimiter, such as a slash. `{+name}` may hold delimiters. Both are percent-decoded.

A client writes the URI, and could make a regular expression try its ways to match one by one, for hours. So `match`
reads the URI once for each expression, from the last one to the first: where does the rest of the template match?
Then it takes the values from the first one to the last, each as long as the rest allows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# The most characters of a URI. The header Mcp-Name repeats the URI. API Gateway accepts 10,240 bytes of headers, so
# 2 KB remain for the other headers.
MAX_URI = 8192
DELIMITERS = frozenset("/?#&=,;")  # each of these characters ends the value of a `{name}`
EXPRESSION = r"\{(?P<plus>\+?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"  # `{name}` or `{+name}`
LITERAL = r"(?P<literal>[^{]*)"  # the text between an expression and the next one


class UriTemplate:
    """A template that URIs can be matched with. `variables` has the names of its variables, in order."""

    def __init__(self, text: str) -> None:
        """Parse a template.

        Raises:
            ValueError: the template has an expression of RFC 6570 that a server cannot match, or uses a variable twice.
        """
        without_expressions = re.sub(EXPRESSION, "", text)
        if "{" in without_expressions or "}" in without_expressions:
            message = f"{text!r}: only {{name}} and {{+name}} can be matched back from a URI"
            raise ValueError(message)
        self._prefix = text.partition("{")[0]
        self._expressions = list(re.finditer(EXPRESSION + LITERAL, text))
        self.variables = tuple(expression["name"] for expression in self._expressions)
        if len(set(self.variables)) != len(self.variables):
            message = f"{text!r} uses a variable twice"
            raise ValueError(message)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values of the variables by name; None if the URI does not match, or is longer than MAX_URI.

        If there are several ways to match, the first variable is as long as possible, then the second, and so on.
        """
        if len(uri) > MAX_URI or not uri.startswith(self._prefix):
            return None
        from urllib.parse import unquote  # noqa: PLC0415 - few resources are templates

        values = {}
        place = len(self._prefix)
        for expression, ends in zip(self._expressions, self._find_ends(uri), strict=True):
            if place not in ends:
                return None
            try:
                values[expression["name"]] = unquote(uri[place : ends[place]], errors="strict")
            except UnicodeDecodeError:  # a percent-encoded value that is not UTF-8 matches nothing
                return None
            place = ends[place] + len(expression["literal"])
        return values if place == len(uri) else None

    def _find_ends(self, uri: str) -> list[dict[int, int]]:
        """Return the result of `_find_ends_of` for each expression, in the order of the template."""
        ends_by_expression = []
        rest = {len(uri): len(uri)}  # behind the last literal, the URI must end
        for expression in reversed(self._expressions):
            rest = _find_ends_of(expression, uri, rest)
            ends_by_expression.append(rest)
        return ends_by_expression[::-1]


def _find_ends_of(expression: re.Match[str], uri: str, rest: Collection[int]) -> dict[int, int]:
    """Find where the value of an expression may start and end, so that the rest of the template matches.

    Args:
        expression: a match of EXPRESSION and LITERAL.
        uri: the whole URI.
        rest: the places of the URI where the template behind the literal matches.

    Returns:
        For each place where a value may start, the last place where it may end. A value has at least one character.
    """
    literal = expression["literal"]
    ends = {}
    end = None  # the last possible end of a value that holds the present character; None if there is none
    for place in reversed(range(len(uri))):
        behind = place + 1
        if end is None and behind + len(literal) in rest and uri.startswith(literal, behind):
            end = behind
        if uri[place] in DELIMITERS and not expression["plus"]:
            end = None
        if end is not None:
            ends[place] = end
    return ends
