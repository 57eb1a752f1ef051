"""The name that a client gave itself, made safe to show on the consent page."""

from __future__ import annotations

import re

MAX_CHARS = 80
# Characters that change the direction of a text or cannot be seen: a name with them could look like another name.
# They are control characters, Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt), and a few others.
INVISIBLE = (
    r"[\u0000-\u001f\u007f-\u009f"  # control characters
    r"\u00ad\u034f\u061c"  # soft hyphen, combining grapheme joiner, Arabic letter mark
    r"\u115f\u1160\u3164\uffa0"  # Hangul fillers
    r"\u17b4\u17b5\u180b-\u180f"  # inherent vowels of Khmer; selectors and separators of Mongolian
    r"\u200b-\u200f\u2028-\u202e"  # zero-width characters, separators of lines, marks and overrides of direction
    r"\u2060-\u206f\u2800"  # word joiner, invisible operators, isolates of direction; blank pattern of Braille
    r"\ufe00-\ufe0f\U000e0000-\U000e0fff"  # selectors of variation, tags
    r"\ufeff\ufff0-\ufffb"  # byte order mark, unassigned characters, interlinear annotation
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"  # format controls of shorthand and of musical notation
)


def read_name(name: object) -> str:
    """Return a name on one line, cut to MAX_CHARS and without invisible characters; "" if it is no text."""
    if not isinstance(name, str):
        return ""
    unicode = name.encode(errors="replace").decode()  # JSON can hold half of a surrogate pair, and UTF-8 cannot
    visible = re.sub(INVISIBLE, "", unicode)
    return " ".join(visible.split())[:MAX_CHARS]
