"""Reads and changes one environment of samconfig.toml; the comments of the file stay.

[prod.global.parameters]                the environment "prod", for every command of SAM
stack_name = "orders"
[prod.deploy.parameters]                for `sam deploy`; each setting replaces the same one of "global"
parameter_overrides = ["Stage=prod"]    the template's parameters, or one text: "Stage=prod Architecture=arm64"
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

    Parameters = dict[str, str]

FILE = "samconfig.toml"
KEY = "parameter_overrides"


class Environment:
    """One environment of the file."""

    def __init__(self, path: Path, name: str) -> None:
        """Read the file.

        Args:
            path: the file.
            name: the environment, e.g. "prod".

        Raises:
            Problem: the file is missing or not TOML, or has no such environment, or no parameters for it.
        """
        self._path = path
        self._name = name
        try:
            self._document = tomlkit.parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            stop(f"{path} cannot be read: {first_line(error)}", after=error)
        commands = self._document.get(name)
        if not isinstance(commands, dict):
            stop(f"{FILE} has no environment {name}")
        self._tables: dict[str, Any] = {
            command: table.get("parameters", {}) for command, table in commands.items()
        }  # by command, or "global"
        if not self._read_parameters():
            stop(f"{FILE} has no {KEY} for {name}")

    @property
    def parameters(self) -> Parameters:
        """The template's parameters by name; those for one command replace those of "global"."""
        by_command = self._read_parameters()
        parameters = by_command.pop("global", {})
        for of_command in by_command.values():
            parameters = parameters | of_command
        return parameters

    def setting(self, name: str) -> str | None:
        """Return a setting, e.g. "stack_name", from the last table that has it; None if it is missing."""
        values = [table[name] for table in self._tables.values() if name in table]
        return str(values[-1]) if values else None

    def change(self, changes: Parameters) -> None:
        """Change parameters in each table, because a command's list replaces that of "global", and write the file.

        Raises:
            Problem: an item of a list holds several parameters.
        """
        expected = {command: old | changes for command, old in self._read_parameters().items()}
        for table in self._tables.values():
            if isinstance(table.get(KEY), str):
                table[KEY] = [_item(name, value) for name, value in _read_pairs(table[KEY]).items()]
            if KEY in table:
                _set_items(table[KEY], changes)
        # `_set_items` expects one parameter in each item, but an item may be "A=1 B=2".
        if self._read_parameters() != expected:
            stop(f"an item of {KEY} of {self._name} in {FILE} holds several parameters: give each an item of its own")
        self._path.write_text(tomlkit.dumps(self._document), encoding="utf-8", newline="\n")

    def _read_parameters(self) -> dict[str, Parameters]:
        return {command: _read_pairs(table[KEY]) for command, table in self._tables.items() if KEY in table}


def _set_items(items: list[tomlkit.items.String], changes: Mapping[str, str]) -> None:
    for name, value in changes.items():
        names = [item.partition("=")[0] for item in items]
        if name in names:
            items[names.index(name)] = _item(name, value)
        else:
            items.insert(0, _item(name, value))


def _read_pairs(overrides: str | list[str]) -> Parameters:
    """Read parameters from a list of "A=b", or from one text "A=b C=d", as `sam deploy --guided` writes it."""
    texts = [overrides] if isinstance(overrides, str) else overrides
    items = [item.partition("=") for text in texts for item in shlex.split(text)]
    return {name: value for name, _, value in items}


def _item(name: str, value: str) -> tomlkit.items.String:
    """Write one parameter, in quotes if it has spaces, or is empty."""
    item = f"{name}={value}" if re.fullmatch(r"\S+", value) else f'{name}="{value}"'
    return tomlkit.string(item, literal='"' in item)
