"""Changes the parameters of an environment in samconfig.toml, where each later deployment finds them; comments stay."""

from __future__ import annotations

import re
import shlex
import tomllib
from typing import TYPE_CHECKING, Any

from mcp_functions.local.problems import Problem, first_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Parameters = dict[str, str]

FILE = "samconfig.toml"
KEY = "parameter_overrides"
TEXT = r""""(?:\\.|[^"\\\n])*"|'[^'\n]*'"""
OVERRIDES = re.compile(rf"""^({KEY} *= *)(\[(?:{TEXT}|[^]"'])*]|{TEXT})""", re.MULTILINE)
BY_HAND = f"{FILE} is not as init wrote it: write {{changes}} by hand, in {KEY} of {{environment}}"


def read(path: Path) -> str:
    """Return the text of the file.

    Raises:
        Problem: it is missing, or is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tomllib.loads(text)
    except (OSError, ValueError) as error:
        unread = f"{path} cannot be read: {first_line(error)}"
        raise Problem(unread) from error
    return text


def setting(text: str, environment: str, name: str) -> str | None:
    """Return what every command has of an option, e.g. "stack_name"; None if the file does not say it."""
    values = [table[name] for table in _tables(text, environment).values() if name in table]
    return str(values[-1]) if values else None


def parameters(text: str, environment: str) -> dict[str, Parameters]:
    """Return the template's parameters of an environment, by the command that gets them ("global": each).

    Raises:
        Problem: the environment has none.
    """
    found = {command: _pairs(table[KEY]) for command, table in _tables(text, environment).items() if KEY in table}
    if not found:
        missing = f"{FILE} has no {KEY} for {environment}"
        raise Problem(missing)
    return found


def with_parameters(text: str, environment: str, changes: Mapping[str, str]) -> str:
    """Return the text with other parameters in each table of an environment, because a command's own table counts.

    Raises:
        Problem: the environment has no parameters, or is written in another way.
    """
    table = re.compile(rf"^\[{re.escape(environment)}\.\w+\.parameters\](?:\n(?!\[).*)*", re.MULTILINE)
    written = table.sub(lambda found: OVERRIDES.sub(lambda one: one[1] + _overrides(one[2], changes), found[0]), text)
    expected = {command: {**before, **changes} for command, before in parameters(text, environment).items()}
    try:
        found = parameters(written, environment)
    except ValueError:
        found = {}
    if found != expected:
        items = " ".join(_item(name, value) for name, value in changes.items())
        raise Problem(BY_HAND.format(changes=items, environment=environment))
    return written


def _tables(text: str, environment: str) -> dict[str, dict[str, Any]]:
    commands = tomllib.loads(text).get(environment)
    if not isinstance(commands, dict):
        unknown = f"{FILE} has no environment {environment}"
        raise Problem(unknown)
    return {name: command.get("parameters", {}) for name, command in commands.items()}


def _pairs(overrides: str | list[str]) -> Parameters:
    """Read `A=b`, also several in a text, as `sam deploy --guided` writes them."""
    texts = [overrides] if isinstance(overrides, str) else overrides
    items = [item.partition("=") for text in texts for item in shlex.split(text)]
    return {name: value for name, _, value in items}


def _overrides(written: str, changes: Mapping[str, str]) -> str:
    """Return an array of parameters with changes; the text of the others stays."""
    if not written.startswith("["):
        pairs = _pairs(tomllib.loads(f"{KEY} = {written}")[KEY])
        written = f"[{', '.join(_quoted(name, value) for name, value in pairs.items())}]"
    for name, value in changes.items():
        new = _quoted(name, value)
        old = re.search(rf"""(["']){name}=(?:\\.|(?!\1).)*\1""", written)
        written = written.replace(old[0], new) if old else f"[{new}, {written[1:]}"
    return written


def _quoted(name: str, value: str) -> str:
    item = _item(name, value)
    return f"'{item}'" if '"' in item else f'"{item}"'


def _item(name: str, value: str) -> str:
    return f"{name}={value}" if re.fullmatch(r"\S+", value) else f'{name}="{value}"'
