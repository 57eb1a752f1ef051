"""The environment variables that template.yaml gives to each function, for functions in this process."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mcp_functions.local import template
from mcp_functions.local.environment import STACK, Variables
from mcp_functions.local.lambdas.own_variables import OwnVariables
from mcp_functions.local.problems import Problem
from mcp_functions.local.runtime.configuration import Template


class TemplateVariables:
    """Reads the variables from the template, and sets them for the functions."""

    def __init__(
        self, directory: Path, settings: Variables, shell: Mapping[str, str], own_variables: OwnVariables
    ) -> None:
        """Set nothing yet.

        Args:
            directory: contains the functions' folders; the template is in its parent.
            settings: the harness's own values, which replace those of the template.
            shell: the developer's environment variables, which replace those of the template too.
            own_variables: sets the variables of each function.
        """
        self._directory = directory
        self._settings = settings
        self._shell = shell
        self._own_variables = own_variables
        self._last_lines: set[str] = set()  # what the last `load` has found, so that no line is repeated

    def load(self, folders: Sequence[str]) -> list[str]:
        """Set the variables of functions as the template has them now.

        Returns:
            A line for each variable that is not set here, because only a deployment knows its value; without the lines
            of the last time.

        Raises:
            Problem: the template cannot be read.
        """
        variables, lines = self._read(folders)
        new_lines = [line for line in dict.fromkeys(lines) if line not in self._last_lines]
        self._last_lines = set(lines)
        self._own_variables.set(variables)
        return new_lines

    def _read(self, folders: Sequence[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
        """Return the variables of each function, by folder, and the lines about those that are not set."""
        path = template.find(self._directory)
        if path is None:
            return {}, []
        harness_values = {name: value for name, value in self._settings.items() if value is not None}
        configurations = Template(path, harness_values, stack=STACK, shell=self._shell)
        variables: dict[str, dict[str, str]] = {}
        all_lines: list[str] = []
        for folder in folders:
            try:
                of_function, lines = configurations.variables(self._directory / folder)
            except Problem as problem:  # the function's block has a condition that only a deployment knows
                of_function, lines = {}, [str(problem)]
            variables[folder] = {name: value for name, value in of_function.items() if name not in self._settings}
            all_lines += lines
        return variables, all_lines
