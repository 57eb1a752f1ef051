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
    from collections.abc import Iterable, Iterator, Mapping

    from mcp_functions.local.harness import Harness
    from mcp_functions.local.runtime.fingerprints import Fingerprint


class Files(NamedTuple):
    """The path, time and size of each file that a function may use."""

    functions: Mapping[str, Fingerprint]  # the files of each function, by its folder
    shared: Fingerprint  # the files of layers/common, and template.yaml


class Reloader:
    """Loads functions again when their files have changed."""

    def __init__(self, harness: Harness) -> None:
        """Start with the files as they are now, which the harness has just loaded."""
        self._harness = harness
        self._loaded = self._read_files()
        self._seen = self._loaded  # the files at the last look

    def changes(self) -> Iterator[str]:
        """Load what was saved, and yield lines for the author. Call it a few times in a second."""
        current = self._read_files()
        if current != self._seen:  # a file may be half written: wait until two looks see the same
            self._seen = current
            return
        if current == self._loaded:
            return
        before = self._loaded
        self._loaded = current
        yield from self._saved_requirements(before, current)
        try:
            yield from self._harness.configure(list(current.functions))
        except Problem as problem:
            yield str(problem)
        for folder in before.functions:
            if folder not in current.functions:
                self._harness.unload(folder)
                yield f"{folder} is gone"
        yield from self._load(_changed_folders(before, current))
        yield from self.refresh_catalog()

    def refresh_catalog(self) -> Iterator[str]:
        """If catalog.json differs from the functions, write it, load the front door again, and yield a line."""
        directory = self._harness.directory
        if FRONT_DOOR not in self._harness.functions:
            return
        try:
            new = catalog.describe(self._harness.functions.values())
            differences = catalog.differences(catalog.read(directory), new)
            if not differences:
                return
            path = catalog.write(directory, new)
            yield f"wrote {path}: {', '.join(differences)}"
            self._harness.load(FRONT_DOOR)
        except (Problem, OSError) as problem:
            yield str(problem)
        self._loaded = self._read_files()  # catalog.json is one of the files
        self._seen = self._loaded

    def _read_files(self) -> Files:
        directory = self._harness.directory
        try:
            folders = [app.parent for app in find(directory, self._harness.skipped_folders)]
        except Problem:  # a folder cannot be a function, or none is left: the running functions stay
            folders = [directory.resolve() / name for name in self._harness.functions]
        functions = {folder.name: fingerprints.of_folder(folder) for folder in folders}
        template_file = directory.resolve().with_name(template.FILE)
        shared = fingerprints.of_folder(common(directory)) + fingerprints.of_file(template_file)
        return Files(functions, shared)

    def _saved_requirements(self, before: Files, current: Files) -> Iterator[str]:
        """Yield a line for each saved requirements.txt, because nothing here installs packages."""
        directory = self._harness.directory.resolve()
        for folder, files in current.functions.items():
            requirements = directory / folder / "requirements.txt"
            saved_files = set(files) - set(before.functions.get(folder, ()))
            if str(requirements) in {path for path, _time, _size in saved_files}:
                path = requirements.relative_to(directory.parent)
                yield f"{path} was saved: pip install --requirement {path}; start again if a package was loaded already"

    def _load(self, folders: Iterable[str]) -> Iterator[str]:
        loaded = []
        for folder in folders:
            try:
                self._harness.load(folder)
            except Problem as problem:
                yield from self._explain_failure(folder, problem)
            else:
                loaded.append(folder)
        if loaded:
            yield f"reloaded {', '.join(loaded)}"

    def _explain_failure(self, folder: str, problem: Problem) -> Iterator[str]:
        if problem.__cause__:
            yield failures.whole_traceback(problem.__cause__).rstrip("\n")
        yield str(problem)
        if self._harness.runtime:
            yield f"{folder}: its requests fail until a saved version loads"
        elif folder in self._harness.functions:
            yield f"{folder}: the version before this save goes on"
        else:
            yield f"{folder} is not served"


def _changed_folders(before: Files, current: Files) -> list[str]:
    """Return the functions that are new, or whose files or shared files have changed."""
    if current.shared != before.shared:
        return list(current.functions)
    return [folder for folder, files in current.functions.items() if files != before.functions.get(folder)]
