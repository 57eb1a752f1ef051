"""URI templates, as far as resources need them: RFC 6570's `{name}` and `{+name}`, matched back from a URI.

`{name}` stands for one segment and is percent-decoded; `{+name}` may hold reserved characters, slashes included.
"""

from __future__ import annotations

import re
from functools import lru_cache

EXPRESSION = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}")


def variables(template: str) -> tuple[str, ...]:
    """Name the variables of a URI template, in order.

    Raises:
        ValueError: the template uses more of RFC 6570 than a server can match back.

    """
    rest = EXPRESSION.sub("", template)
    if "{" in rest or "}" in rest:
        message = f"{template!r}: only {{name}} and {{+name}} can be matched back from a URI"
        raise ValueError(message)
    names = tuple(name for _plus, name in EXPRESSION.findall(template))
    if len(set(names)) != len(names):
        message = f"{template!r} uses a variable twice"
        raise ValueError(message)
    return names


def match(template: str, uri: str) -> dict[str, str] | None:
    """Read the variables of `template` out of `uri`; None if it does not fit."""
    if (found := _pattern(template).fullmatch(uri)) is None:
        return None
    from urllib.parse import unquote  # noqa: PLC0415 - only templates have variables

    try:
        return {name: unquote(value, errors="strict") for name, value in found.groupdict().items()}
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=256)
def _pattern(template: str) -> re.Pattern[str]:
    parts, end = [], 0
    for expression in EXPRESSION.finditer(template):
        plus, name = expression.groups()
        parts += [re.escape(template[end : expression.start()]), f"(?P<{name}>{'.+' if plus else '[^/?#&=,;]+'})"]
        end = expression.end()
    return re.compile("".join([*parts, re.escape(template[end:])]), re.DOTALL)
