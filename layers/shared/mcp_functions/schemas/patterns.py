r"""Patterns of JSON Schema, translated for Python's `re`.

JSON Schema 2020-12, core §6.4: a pattern "SHOULD be a valid regular expression, according to the ECMA-262 regular
expression dialect". Python's `$` also matches before a trailing newline, and its `\d` and `\w` know every script.
"""

from __future__ import annotations

import re
from typing import NoReturn

BLANKS = "\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
# All other characters: inside a class, nothing but ranges can say them.
REST = (
    "\0-\x08\x0e-\x1f!-\x9f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    "\u3001-\ufefe\uff00-\U0010ffff"
)
ESCAPE = (
    r"\\(?:u\{[0-9a-fA-F]{1,6}\}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}"
    r"|x[0-9a-fA-F]{2}|c[A-Za-z]|k<\w+>|[0-9]+|.)"
)
OUTSIDE = re.compile(
    rf"{ESCAPE}|\[\^?(?:\\.|[^\]\\])*\]|\(\?(?:<?[=!]|<\w+>|.)|(?:[*+?]|\{{[0-9]+(?:,[0-9]*)?\}})\+?|.", re.DOTALL
)
INSIDE = re.compile(rf"{ESCAPE}|.", re.DOTALL)
GROUPS = {"(?:", "(?=", "(?!", "(?<=", "(?<!"}
LITERAL = {".": "[^\n\r\u2028\u2029]", "$": r"\Z", "{": r"\{"}  # Python reads these differently outside of a class
NESTED = set("[&~|")  # Python warns that it may read these differently inside of a class one day


def translate(pattern: str) -> str:
    """Write a pattern of ECMA-262 so that `re.search` finds what ECMA-262 would find.

    Raises:
        TypeError: the pattern is not ECMA-262, or Python cannot say it.
    """
    try:
        translated = f"(?a:{OUTSIDE.sub(_outside, pattern)})"
        re.compile(translated)
    except (ValueError, re.error, OverflowError, RecursionError) as error:
        reason = error.msg if isinstance(error, re.error) else error  # without a place in the translation
        message = f"the pattern {pattern!r} cannot be understood as ECMA-262: {reason}"
        raise TypeError(message) from None
    return translated


def _outside(token: re.Match[str]) -> str:
    text = token[0]
    if text == "\\":
        _refuse("it ends with half an escape")
    if text[0] == "\\":
        return _escape(text[1:], inside=False)
    if text[0] == "[" and text[-1] == "]":
        return _class(text[1:-1])
    if text[:2] == "(?" and text not in GROUPS:
        return _named(text)
    if len(text) > 1 and text[-1] == "+":
        _refuse(f"{text} repeats a repetition")
    return LITERAL.get(text, text)


def _class(members: str) -> str:
    negated = members[:1] == "^"
    body = INSIDE.sub(_inside, members[negated:])
    if not body:
        return "[\0-\U0010ffff]" if negated else "(?!)"
    return f"[{'^' * negated}{body}]"


def _inside(token: re.Match[str]) -> str:
    text = token[0]
    if text[0] == "\\":
        return _escape(text[1:], inside=True)
    return f"\\{text}" if text in NESTED else text


def _named(text: str) -> str:
    if not text.startswith("(?<"):
        _refuse(f"{text} begins no group")
    return f"(?P{text[2:]}"


def _escape(name: str, *, inside: bool) -> str:
    r"""Translate an escape, given without its backslash. Inside a class there are no references, and no `\B`."""
    if name in ("s", "S"):
        blanks = BLANKS if name == "s" else REST
        return blanks if inside else f"[{blanks}]"
    if re.fullmatch("[dDwWfnrtvb]|x..", name) or (name == "B" and not inside):
        return f"\\{name}"
    if not inside and name.startswith("k<"):
        return f"(?P={name[2:-1]})"
    if not inside and re.fullmatch("[1-9][0-9]?", name):  # Python reads three digits as one character
        return rf"(?:\{name})"
    return re.escape(_character(name))


def _character(name: str) -> str:
    r"""Read `0`, `cJ`, `u{1F600}`, `u00e9`, a pair of surrogates (`ud83d\ude00`), or an escaped punctuation mark."""
    if name == "0":
        return "\0"
    if len(name) > 1 and name[0] == "c":
        return chr(ord(name[1]) % 32)
    if len(name) == 1 or name[0] != "u":
        if name.isascii() and name.isalnum():
            _refuse(f"\\{name} is not supported")
        return name
    if "\\" in name:
        high, low = int(name[1:5], 16), int(name[7:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    return chr(int(name[1:].strip("{}"), 16))


def _refuse(reason: str) -> NoReturn:
    raise ValueError(reason)
