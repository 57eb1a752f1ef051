"""Loads saved files while `serve` runs.

    a file of functions/<folder>/                this function is loaded again
    a file of layers/common, or template.yaml    every function is loaded again

Functions in this process are imported again; if one does not load, its version before the save stays. With `--runtime`,
new processes take the next requests. Calls that wait for an answer go on with the new version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.local import catalog, failures, template
from mcp_functions.local.lambdas.functions import FRONT_DOOR, find
from mcp_functions.local.lambdas.modules import common
from mcp_functions.local.problems import Problem
from mcp_functions.local.runtime import fingerprints

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.local.harness import Harness
    from mcp_functions.local.runtime.fingerprints import Fingerprint


class Files(NamedTuple):
    """The path, time and size of each file that a function may use."""

    functions: dict[str, Fingerprint]  # the files of each function, by its folder
    shared: Fingerprint  # the files of layers/common, and template.yaml


class Reloader:
    """Loads functions again when their files have changed. Each method returns lines for the author."""

    def __init__(self, harness: Harness) -> None:
        """Start with the files as they are now, which the harness has just loaded."""
        self._harness = harness
        self._directory = harness.directory.resolve()
        self._loaded = self._read_files()
        self._last_seen = self._loaded

    def reload(self) -> list[str]:
        """Load what was saved. Call this a few times in a second: it waits until two calls see the same files."""
        current = self._read_files()
        may_be_half_written = current != self._last_seen
        self._last_seen = current
        if may_be_half_written or current == self._loaded:
            return []
        before = self._loaded
        self._loaded = current
        lines = self._saved_requirements(before, current)
        lines += self._configure(current)
        for folder in sorted(before.functions.keys() - current.functions.keys()):
            self._harness.unload(folder)
            lines.append(f"{folder} is gone")
        lines += self._load(_changed_folders(before, current))
        return lines + self.refresh_catalog()

    def refresh_catalog(self) -> list[str]:
        """If catalog.json differs from the functions, write it, and load the front door again."""
        functions = self._harness.functions
        if FRONT_DOOR not in functions:
            return []
        lines = []
        try:
            new = catalog.describe(functions.values())
            differences = catalog.differences(catalog.read(self._harness.directory), new)
            if differences:
                path = catalog.write(self._harness.directory, new)
                lines.append(f"wrote {path}: {', '.join(differences)}")
                self._loaded.functions[FRONT_DOOR] = fingerprints.of_folder(self._directory / FRONT_DOOR)
                self._harness.load(FRONT_DOOR)
        except (Problem, OSError) as problem:
            lines.append(str(problem))
        return lines

    def _read_files(self) -> Files:
        functions = {folder.name: fingerprints.of_folder(folder) for folder in self._find_folders()}
        template_file = self._directory.with_name(template.FILE)
        shared = fingerprints.of_folder(common(self._directory)) + fingerprints.of_file(template_file)
        return Files(functions, shared)

    def _find_folders(self) -> list[Path]:
        try:
            return [app.parent for app in find(self._harness.directory, self._harness.skipped_folders)]
        except Problem:  # a folder cannot be a function, or none is left: the running functions stay
            return [self._directory / name for name in self._harness.functions]

    def _saved_requirements(self, before: Files, current: Files) -> list[str]:
        """Name each saved requirements.txt, because nothing here installs packages."""
        lines = []
        for folder in current.functions:
            path = self._directory / folder / "requirements.txt"
            saved_files = set(current.functions[folder]) - set(before.functions.get(folder, ()))
            if str(path) in {saved_path for saved_path, _time, _size in saved_files}:
                name = path.relative_to(self._directory.parent)
                install = f"pip install --requirement {name}"
                lines.append(f"{name} was saved: {install}; start again if a package was loaded already")
        return lines

    def _configure(self, current: Files) -> list[str]:
        try:
            return self._harness.configure(list(current.functions))
        except Problem as problem:  # template.yaml is broken: the functions load with the variables from before
            return [str(problem)]

    def _load(self, folders: list[str]) -> list[str]:
        lines = []
        loaded = []
        for folder in folders:
            try:
                self._harness.load(folder)
                loaded.append(folder)
            except Problem as problem:
                lines += self._explain_failure(folder, problem)
        if loaded:
            lines.append(f"reloaded {', '.join(loaded)}")
        return lines

    def _explain_failure(self, folder: str, problem: Problem) -> list[str]:
        lines = [str(problem)]
        if problem.__cause__:
            lines.insert(0, failures.whole_traceback(problem.__cause__).rstrip("\n"))
        if self._harness.runtime:
            return [*lines, f"{folder}: its requests fail until a saved version loads"]
        if folder in self._harness.functions:
            return [*lines, f"{folder}: the version before this save goes on"]
        return [*lines, f"{folder} is not served"]


def _changed_folders(before: Files, current: Files) -> list[str]:
    """Return the functions that are new, or whose files or shared files have changed."""
    if current.shared != before.shared:
        return list(current.functions)
    return [folder for folder, files in current.functions.items() if files != before.functions.get(folder)]
