"""What the person at the terminal can put right, in one line that names the fix."""

from __future__ import annotations


class Problem(Exception):
    """A user's mistake or a machine's state; its text is one line. The command line prints it and exits with 2."""


class Surprise(Exception):
    """The demo's conversation did not go as it must; the text is one line."""


def not_installed(error: ModuleNotFoundError, extra: str) -> Problem:
    """Say which package is missing, and the extra of this project that brings it."""
    return Problem(f"{error.name} is not installed: pip install 'mcp-functions[{extra}]'")


def first_line(error: BaseException) -> str:
    """Say an exception in one line: its type, and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
