r"""Reads the variables of a URI template (RFC 6570) from a URI.

    template = UriTemplate("note://{author}/{+path}")
    template.variables                                 ("author", "path")
    template.match("note://ann/2026/may%20day")        {"author": "ann", "path": "2026/may day"}

`{name}` ends at the next delimiter, such as a slash. `{+name}` may hold delimiters. Both are percent-decoded.

The client writes the URI, and a hostile one could make a regular expression backtrack for hours. `match` goes over the
URI once for each expression. It begins with the last one, because then it knows where the rest of the template fits:

    note://ann/b    {+path} may start at any character, and ends at the end
                    {author} may start at "a" or a later letter of "ann", and ends before "/", where the rest fits
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

# The most characters of a URI. The header Mcp-Name repeats the URI. API Gateway accepts 10,240 bytes of headers, so
# 2 KB remain for the other headers.
MAX_URI = 8192
EXPRESSION = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}")  # `{name}` or `{+name}`
# A value lies within one run of characters that the pattern of its expression matches.
WITHOUT_DELIMITERS = re.compile(r"[^/?#&=,;]+")
ANYTHING = re.compile(r".+", re.DOTALL)


class Expression(NamedTuple):
    """An expression of a template."""

    name: str
    runs: re.Pattern[str]  # WITHOUT_DELIMITERS, or ANYTHING for `{+name}`
    literal: str  # the text between this expression and the next one


class UriTemplate:
    """A template that URIs can be matched with. `variables` has the names of its variables, in order."""

    def __init__(self, text: str) -> None:
        """Parse a template.

        Raises:
            ValueError: the template has an expression of RFC 6570 that a server cannot match, or uses a variable twice.
        """
        self._prefix, *parts = EXPRESSION.split(text)
        self._expressions = [
            Expression(name, ANYTHING if plus else WITHOUT_DELIMITERS, literal)
            for plus, name, literal in zip(parts[0::3], parts[1::3], parts[2::3], strict=True)
        ]
        literals = self._prefix + "".join(parts[2::3])
        if "{" in literals or "}" in literals:
            message = f"{text!r}: only {{name}} and {{+name}} can be matched back from a URI"
            raise ValueError(message)
        self.variables = tuple(parts[1::3])
        if len(set(self.variables)) != len(self.variables):
            message = f"{text!r} uses a variable twice"
            raise ValueError(message)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values of the variables by name; None if the URI does not match, or is longer than MAX_URI.

        If there are several ways to match, the first variable is as long as possible, then the second, and so on.
        """
        if len(uri) > MAX_URI or not uri.startswith(self._prefix):
            return None
        # Most functions have no template, and this import would slow down their cold start.
        from urllib.parse import unquote  # noqa: PLC0415

        ends_by_expression: list[dict[int, int]] = []  # what `_find_ends` returns, from the last expression on
        rest_starts: Collection[int] = {len(uri)}  # after the last literal, nothing may follow
        for expression in reversed(self._expressions):
            ends_by_expression.append(_find_ends(expression, uri, rest_starts))
            rest_starts = ends_by_expression[-1].keys()
        values = {}
        start = len(self._prefix)
        for expression, ends in zip(self._expressions, reversed(ends_by_expression), strict=True):
            if start not in ends:
                return None
            end = ends[start]
            try:
                values[expression.name] = unquote(uri[start:end], errors="strict")
            except UnicodeDecodeError:  # a percent-encoded value that is not UTF-8 matches nothing
                return None
            start = end + len(expression.literal)
        return values if start == len(uri) else None


def _find_ends(expression: Expression, uri: str, rest_starts: Collection[int]) -> dict[int, int]:
    """Return the last end of a value, for each index where the value may start.

    `rest_starts` has each index where the template after this expression's literal may start to match.
    """
    ends = {}
    for run in expression.runs.finditer(uri):
        first, behind = run.span()
        for end in range(behind, first, -1):  # a value has at least one character
            if end + len(expression.literal) in rest_starts and uri.startswith(expression.literal, end):
                ends.update(dict.fromkeys(range(first, end), end))
                break
    return ends
