"""Changes the parameters of an environment in samconfig.toml, where each later deployment finds them; comments stay.

[prod.deploy.parameters]                the table of a command in an environment; "global" is every command
stack_name = "orders"                   a setting
parameter_overrides = ["Stage=prod"]    the template's parameters
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import tomlkit

from mcp_functions.local.problems import first_line, stop

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tomlkit import TOMLDocument

    Parameters = dict[str, str]

FILE = "samconfig.toml"
KEY = "parameter_overrides"


def read(path: Path) -> TOMLDocument:
    """Read the file.

    Raises:
        Problem: it is missing, or is not TOML.
    """
    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        stop(f"{path} cannot be read: {first_line(error)}", after=error)


def setting(document: TOMLDocument, environment: str, name: str) -> str | None:
    """Return a setting of an environment, e.g. "stack_name", from its last table; None if no table has it."""
    values = [table[name] for table in _tables(document, environment).values() if name in table]
    return str(values[-1]) if values else None


def parameters(document: TOMLDocument, environment: str) -> dict[str, Parameters]:
    """Return the template's parameters of an environment, by the command that gets them ("global": each).

    Raises:
        Problem: the environment has none.
    """
    tables = _tables(document, environment)
    by_command = {command: _pairs(table[KEY]) for command, table in tables.items() if KEY in table}
    if not by_command:
        stop(f"{FILE} has no {KEY} for {environment}")
    return by_command


def set_parameters(document: TOMLDocument, environment: str, changes: Mapping[str, str]) -> None:
    """Change parameters in each table of an environment, because a command's own table replaces the global one.

    Raises:
        Problem: an item of a list holds several parameters.
    """
    expected = {command: {**before, **changes} for command, before in parameters(document, environment).items()}
    for table in _tables(document, environment).values():
        if isinstance(table.get(KEY), str):
            table[KEY] = [_item(name, value) for name, value in _pairs(table[KEY]).items()]
        if KEY in table:
            _change(table[KEY], changes)
    if parameters(document, environment) != expected:
        stop(f"an item of {KEY} of {environment} in {FILE} holds several parameters: give each an item of its own")


def _change(items: list[tomlkit.items.String], changes: Mapping[str, str]) -> None:
    for name, value in changes.items():
        names = [item.partition("=")[0] for item in items]
        if name in names:
            items[names.index(name)] = _item(name, value)
        else:
            items.insert(0, _item(name, value))


def _tables(document: TOMLDocument, environment: str) -> dict[str, Any]:
    """Return the tables of an environment by their commands."""
    commands = document.get(environment)
    if not isinstance(commands, dict):
        stop(f"{FILE} has no environment {environment}")
    return {name: command.get("parameters", {}) for name, command in commands.items()}


def _pairs(overrides: str | list[str]) -> Parameters:
    """Read `A=b`, also several in a text, as `sam deploy --guided` writes them."""
    texts = [overrides] if isinstance(overrides, str) else overrides
    items = [item.partition("=") for text in texts for item in shlex.split(text)]
    return {name: value for name, _, value in items}


def _item(name: str, value: str) -> tomlkit.items.String:
    """Write one parameter, in quotes if it has spaces, or is empty."""
    item = f"{name}={value}" if re.fullmatch(r"\S+", value) else f'{name}="{value}"'
    return tomlkit.string(item, literal='"' in item)
