"""Errors of the commands. A `Problem` is one line that tells the user what to correct."""

import click


class Problem(click.ClickException):
    """The user has to change something. The command prints the line, and exits with 2."""


class DemoError(Exception):
    """The demo's conversation differed from the expected one; the text is one line."""


def not_installed(error: ModuleNotFoundError, extra: str) -> Problem:
    """Make a problem that names the missing package, and the extra of this project that installs it."""
    return Problem(f"{error.name} is not installed: pip install 'mcp-functions[{extra}]'")


def first_line(error: BaseException) -> str:
    """Return an exception's type and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
