"""Reads and changes one environment of samconfig.toml; the comments of the file stay.

[prod.global.parameters]                the environment "prod", for every command of SAM
stack_name = "orders"
[prod.deploy.parameters]                for `sam deploy`; each setting replaces the same one of "global"
parameter_overrides = ["Stage=prod"]    the template's parameters, or one text: "Stage=prod Architecture=arm64"
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import tomlkit

from mcp_functions_harness.problems import Problem, first_line
from mcp_functions_harness.template import Template

Parameters = dict[str, str]

FILE = "samconfig.toml"
KEY = "parameter_overrides"


class Environment:
    """One environment of the file."""

    def __init__(self, path: Path, name: str) -> None:
        """Read the file, and the environment of this name, e.g. "prod".

        Raises:
            Problem: the file is missing or not TOML, or has no such environment, or no parameters for it.
        """
        self._path = path
        self._name = name
        self._document = _read(path)
        commands = self._document.get(name)
        if not isinstance(commands, dict):
            raise Problem(f"{FILE} has no environment {name}")
        # The settings of each command, those of "global" first. `change` changes them, and the document with them.
        commands_in_order = sorted(commands, key=lambda command: command != "global")
        self._tables = [commands[command].get("parameters", {}) for command in commands_in_order]
        self._tables_with_parameters = [table for table in self._tables if KEY in table]
        if not self._tables_with_parameters:
            raise Problem(f"{FILE} has no {KEY} for {name}")

    @property
    def parameters(self) -> Parameters:
        """The template's parameters by name; those for one command replace those of "global"."""
        parameters: Parameters = {}
        for table in self._tables_with_parameters:
            parameters |= _read_pairs(table[KEY])
        return parameters

    def setting(self, name: str) -> str | None:
        """Return a setting, e.g. "stack_name"; one for a command replaces that of "global". None if it is missing."""
        values = [table[name] for table in self._tables if name in table]
        return str(values[-1]) if values else None

    def change(self, changes: Parameters) -> None:
        """Change parameters in each table, because a command's list replaces that of "global", and write the file.

        Raises:
            Problem: an item of a list holds several parameters, and one of them changes.
        """
        for table in self._tables_with_parameters:
            if isinstance(table[KEY], str):
                table[KEY] = [_write_pair(name, value) for name, value in _read_pairs(table[KEY]).items()]
            for name, value in changes.items():
                self._set(table[KEY], name, _write_pair(name, value))
        self._path.write_text(tomlkit.dumps(self._document), encoding="utf-8", newline="\n")

    def _set(self, items: list[tomlkit.items.String], name: str, new_item: tomlkit.items.String) -> None:
        """Replace the items that set a parameter; without one, append the new item."""
        positions = [position for position, item in enumerate(items) if name in _read_pairs(item)]
        for position in positions:
            if len(_read_pairs(items[position])) > 1:
                several = f"an item of {KEY} of {self._name} in {FILE} holds several parameters"
                raise Problem(f"{several}: give each an item of its own")
            items[position] = new_item
        if not positions:
            items.append(new_item)


def without_value(root: Path, template: Template) -> dict[str, list[str]]:
    """Return the template's parameters that CloudFormation would miss, each with the environments that give no value.

    Without samconfig.toml nothing is missing: whoever deploys such a project gives the values elsewhere.

    Raises:
        Problem: samconfig.toml cannot be read.
    """
    path = root / FILE
    if not path.is_file():
        return {}
    names = environments(path)
    needed = [name for name, declared in template["Parameters"].items() if "Default" not in declared]
    given = {name: _given(path, name) for name in names} if needed else {}
    missing: dict[str, list[str]] = {}
    for parameter in needed:
        without = [name for name, parameters in given.items() if parameter not in parameters]
        if without:
            missing[parameter] = without
    return missing


def environments(path: Path) -> list[str]:
    """Return the names of the environments.

    Raises:
        Problem: the file is not TOML.
    """
    return [name for name, commands in _read(path).items() if isinstance(commands, dict)]


def _read(path: Path) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(f"{path} cannot be read: {first_line(error)}") from error


def _given(path: Path, environment: str) -> Parameters:
    """Return the parameters that an environment sets; {} if it sets none."""
    try:
        return Environment(path, environment).parameters
    except Problem:
        return {}


def remedy(parameter: str, without: Sequence[str]) -> str:
    """Return how a parameter gets its value in the environments that are without one."""
    commands = "; ".join(f"mcp-functions set {name} {parameter}=..." for name in without)
    return f"{commands}; or give it a Default in template.yaml"


def _read_pairs(overrides: str | list[str]) -> Parameters:
    """Read parameters from a list of "A=b", or from one text "A=b C=d", as `sam deploy --guided` writes it."""
    texts = [overrides] if isinstance(overrides, str) else overrides
    items = [item.partition("=") for text in texts for item in shlex.split(text)]
    return {name: value for name, _, value in items}


def _write_pair(name: str, value: str) -> tomlkit.items.String:
    """Write a parameter as an item of a list. SAM reads an empty value, or one with spaces, only in double quotes."""
    item = f"{name}={value}" if re.fullmatch(r"\S+", value) else f'{name}="{value}"'
    return tomlkit.string(item, literal='"' in item)  # a literal string of TOML needs no escapes
