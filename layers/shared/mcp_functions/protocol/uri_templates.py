"""URI templates with `{name}` and `{+name}` of RFC 6570, matched against a URI to read their variables.

    template    note://{author}/{+path}
    URI         note://ann/2026/may%20day
    values      {"author": "ann", "path": "2026/may day"}

A value has at least one character, and is percent-decoded. `{name}` is a part of one segment; `{+name}` may hold
slashes, and is the last variable.

A variable ends at the first place where the text behind it follows. So for `{name}.{format}` and "log.tar.gz", name is
"log" and format is "tar.gz". A later end would match no more URIs, because it only takes text from the next variable.
"""

from __future__ import annotations

import re

# Characters. The header Mcp-Name repeats the URI, and API Gateway accepts 10,240 bytes of headers. So the other headers
# keep 2 KB.
MAX_URI = 8192
DELIMITERS = frozenset("/?#&=,;")  # each of these characters ends a segment
EXPRESSION = r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}"  # two groups: a plus or "", and the name of the variable


def list_variables(template: str) -> tuple[str, ...]:
    """List the variables of a URI template, in order.

    Raises:
        ValueError: the template uses a part of RFC 6570 that cannot be matched, or a variable twice, or puts variables
            where nothing tells their values apart.
    """
    literals = re.sub(EXPRESSION, "", template)
    if "{" in literals or "}" in literals:
        message = f"{template!r}: only {{name}} and {{+name}} can be matched back from a URI"
        raise ValueError(message)
    expressions = re.findall(EXPRESSION, template)
    names = tuple(name for _plus, name in expressions)
    if len(set(names)) != len(names):
        message = f"{template!r} uses a variable twice"
        raise ValueError(message)
    if "}{" in template:
        message = f"{template!r}: two variables need text between them"
        raise ValueError(message)
    if any(plus for plus, _name in expressions[:-1]):
        message = f"{template!r}: {{+name}} must be the last variable"
        raise ValueError(message)
    return names


def match(template: str, uri: str) -> dict[str, str] | None:
    """Read the variables of a template from a URI. The cost grows linearly with the URI, which a client writes.

    Returns:
        The values by name; None if the URI does not match, or is longer than MAX_URI.
    """
    prefix, *rest = re.split(EXPRESSION, template)
    if len(uri) > MAX_URI or not uri.startswith(prefix):
        return None
    values: dict[str, str] = {}
    start = len(prefix)
    while rest:
        plus, name, literal, *rest = rest  # an expression, and the text behind it
        end = uri.find(literal, start + 1)
        if not rest and uri.endswith(literal):  # the last variable takes the rest of the URI
            end = len(uri) - len(literal)
        value = uri[start:end]
        if end <= start or (not plus and DELIMITERS.intersection(value)):
            return None
        values[name] = value
        start = end + len(literal)
    return _decode(values) if start == len(uri) else None


def _decode(values: dict[str, str]) -> dict[str, str] | None:
    """Percent-decode values; None if one is not UTF-8."""
    from urllib.parse import unquote  # noqa: PLC0415 - few resources are templates

    try:
        return {name: unquote(value, errors="strict") for name, value in values.items()}
    except UnicodeDecodeError:
        return None
