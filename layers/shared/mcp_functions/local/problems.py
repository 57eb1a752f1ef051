"""What the person at the terminal can put right, in one line that names the fix."""

from __future__ import annotations


class Problem(Exception):  # noqa: N818 - not an error of the program: something for its user to put right
    """A user's mistake or a machine's state; its text is one line. The command line prints it and exits with 2."""


class Surprise(Exception):  # noqa: N818 - what happened is not what the demo shows
    """The demo's conversation did not go as it must; the text is one line."""


def first_line(error: BaseException) -> str:
    """Say an exception in one line: its type, and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
