"""Loads saved files while `serve` runs.

    a file of functions/<folder>/                this function is loaded again
    a file of layers/common, or template.yaml    every function is loaded again
    a file of skills/                            the endpoint is loaded again

functions/mcp, the front door, answers lists from its file catalog.json. So this file is written anew when the other
functions or the skills change.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mcp_functions_harness import catalog, skills, template
from mcp_functions_harness.harness import Harness
from mcp_functions_harness.lambdas import failures
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, find
from mcp_functions_harness.lambdas.modules import common
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.runtime import fingerprints
from mcp_functions_harness.runtime.fingerprints import Fingerprint


class Files(NamedTuple):
    """The path, time and size of each file that a function may use."""

    functions: dict[str, Fingerprint]  # the files of each function, by its folder
    shared: Fingerprint  # the files of layers/common, and template.yaml
    skills: Fingerprint  # the files of skills/


class Reloader:
    """Loads functions again when their files have changed."""

    def __init__(self, harness: Harness, report: Callable[[str], None]) -> None:
        """Start with the files as they are now, which the harness has loaded; `report` gets lines for the author."""
        self._harness = harness
        self._report = report
        self._directory = harness.directory.resolve()
        self._loaded = self._read_files()  # as the harness has loaded them
        self._last_seen = self._loaded  # as the last call of `reload` saw them

    def reload(self) -> bool:
        """Load what was saved, and return whether anything was.

        Call this a few times in a second: it waits until two calls see the same files, because a file may be half
        written.
        """
        current = self._read_files()
        if current != self._last_seen:
            self._last_seen = current
            return False
        if current == self._loaded:
            return False
        before = self._loaded
        self._loaded = current
        self._load_changes(before, current)
        self.refresh_catalog()
        return True

    def _load_changes(self, before: Files, current: Files) -> None:
        """Bring the harness from the files that it has loaded before to the current ones."""
        self._report_requirements(before, current)
        self._configure(current)
        for folder in sorted(before.functions.keys() - current.functions.keys()):
            self._harness.unload(folder)
            self._report(f"{folder} is gone")
        self._load(_changed_folders(before, current))
        if current.skills != before.skills:
            self._harness.forget_catalog()

    def refresh_catalog(self) -> None:
        """If catalog.json differs from the functions, write it, and load the front door again.

        Without functions/mcp there is no such file, but two functions may still offer the same name.
        """
        functions = self._harness.functions
        try:
            new = catalog.describe(functions.values(), self._harness.directory)
            differences = catalog.differences(catalog.read(self._harness.directory), new)
            if differences and FRONT_DOOR in functions:
                path = catalog.write(self._harness.directory, new)
                self._report(f"wrote {path}: {', '.join(differences)}")
                self._note_loaded(FRONT_DOOR)
                self._harness.load(FRONT_DOOR)
        except (Problem, OSError) as problem:
            self._report(str(problem))

    def _note_loaded(self, folder: str) -> None:
        """Note the files of a function that the reloader itself has written: they must not start another reload."""
        written = fingerprints.of_folder(self._directory / folder)
        self._loaded = self._loaded._replace(functions={**self._loaded.functions, folder: written})

    def _read_files(self) -> Files:
        functions = {folder.name: fingerprints.of_folder(folder) for folder in self._find_folders()}
        template_file = self._directory.with_name(template.FILE)
        shared = fingerprints.of_folder(common(self._directory)) + fingerprints.of_file(template_file)
        return Files(functions, shared, fingerprints.of_folder(self._directory.with_name(skills.FOLDER)))

    def _find_folders(self) -> list[Path]:
        """Find the folders of functions; if one of them cannot be a function, return those that run."""
        try:
            return [app.parent for app in find(self._harness.directory, self._harness.skipped_folders)]
        except Problem:
            return [self._directory / name for name in self._harness.functions]

    def _report_requirements(self, before: Files, current: Files) -> None:
        """Name each saved requirements.txt, because nothing here installs packages."""
        for folder in current.functions:
            path = self._directory / folder / "requirements.txt"
            saved_files = set(current.functions[folder]) - set(before.functions.get(folder, ()))
            if str(path) in {saved_path for saved_path, _time, _size in saved_files}:
                name = path.relative_to(self._directory.parent)
                install = f"pip install --requirement {name}"
                self._report(f"{name} was saved: {install}; start again if a package was loaded already")

    def _configure(self, current: Files) -> None:
        try:
            lines = self._harness.configure(list(current.functions))
        except Problem as problem:  # template.yaml is broken: the variables from before stay
            lines = [str(problem)]
        for line in lines:
            self._report(line)

    def _load(self, folders: list[str]) -> None:
        loaded = []
        for folder in folders:
            try:
                self._harness.load(folder)
                loaded.append(folder)
            except Problem as problem:
                self._report_failure(folder, problem)
        if loaded:
            self._report(f"reloaded {', '.join(loaded)}")

    def _report_failure(self, folder: str, problem: Problem) -> None:
        if problem.__cause__:
            self._report(failures.whole_traceback(problem.__cause__).rstrip("\n"))
        self._report(str(problem))
        if self._harness.runtime:
            self._report(f"{folder}: its requests fail until a saved version loads")
        elif folder in self._harness.functions:
            self._report(f"{folder}: the version before this save goes on")
        else:
            self._report(f"{folder} is not served")


def _changed_folders(before: Files, current: Files) -> list[str]:
    """Return the functions that are new, or whose files or shared files have changed."""
    if current.shared != before.shared:
        return list(current.functions)
    return [folder for folder, files in current.functions.items() if files != before.functions.get(folder)]
