"""The environment variables that template.yaml gives to each function, for functions in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.local import template
from mcp_functions.local.environment import STACK
from mcp_functions.local.problems import Problem
from mcp_functions.local.runtime.configuration import Template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mcp_functions.local.environment import Variables
    from mcp_functions.local.lambdas.own_variables import OwnVariables


class TemplateVariables:
    """Reads the variables from the template, and sets them for their functions."""

    def __init__(self, directory: Path, settings: Variables, shell: Mapping[str, str], target: OwnVariables) -> None:
        """Set nothing yet.

        Args:
            directory: contains the functions' folders; the template is in its parent.
            settings: the variables that the harness decides; the template's values of them do not count.
            shell: the developer's variables, which replace those of the template.
            target: takes the variables of each function.
        """
        self._directory = directory
        self._settings = settings
        self._shell = shell
        self._target = target
        self._reported: set[str] = set()  # the lines that the last `load` found, so that no line is repeated

    def load(self, folders: Sequence[str]) -> list[str]:
        """Set the variables of these functions as the template has them now.

        Returns:
            A new line for each variable that has no value here, because only a deployment knows it.

        Raises:
            Problem: the template cannot be read.
        """
        variables, unknown = self._read(folders)
        new_lines = [line for line in dict.fromkeys(unknown) if line not in self._reported]
        self._reported = set(unknown)
        self._target.set(variables)
        return new_lines

    def _read(self, folders: Sequence[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
        """Return the variables by folder, and a line for each variable that only a deployment knows."""
        path = template.find(self._directory)
        if path is None:
            return {}, []
        harness_values = {name: value for name, value in self._settings.items() if value is not None}
        configurations = Template(path, harness_values, stack=STACK, shell=self._shell)
        variables: dict[str, dict[str, str]] = {}
        unknown: list[str] = []
        for folder in folders:
            try:
                known, lines = configurations.variables(self._directory / folder)
            except Problem as problem:  # the block has a condition or a name that only a deployment knows
                known = {}
                lines = [str(problem)]
            variables[folder] = {name: value for name, value in known.items() if name not in self._settings}
            unknown += lines
        return variables, unknown
