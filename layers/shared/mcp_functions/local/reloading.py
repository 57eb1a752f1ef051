"""Loads a saved function, shared code or template.yaml while `serve` runs.

Functions in this process are imported again; with `--runtime`, new processes take the next requests. If a file does not
load, the version before the save goes on. Conversations go on too: a call's state works with any version of the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.local import catalog, failures, template
from mcp_functions.local.lambdas.functions import FRONT_DOOR, find
from mcp_functions.local.lambdas.modules import common
from mcp_functions.local.problems import Problem
from mcp_functions.local.runtime import fingerprints

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from mcp_functions.local.harness import Harness
    from mcp_functions.local.runtime.fingerprints import Fingerprint


class Files(NamedTuple):
    """The path, time and size of each file that a function may use."""

    functions: Mapping[str, Fingerprint]  # the files of each function, by its folder
    of_all: Fingerprint  # the files that every function may use: layers/common and template.yaml


class Reloader:
    """Compares the files with those that were loaded."""

    def __init__(self, harness: Harness) -> None:
        """Start with the files as they are now, which the harness has just loaded."""
        self._harness = harness
        self._loaded = self._read_files()  # the files that are loaded
        self._last_look = self._loaded  # the files at the last look

    def changes(self) -> Iterator[str]:
        """Load what was saved, and yield lines for the author. Call it a few times in a second.

        A file that is just being written has another size the next time. So a change counts when it is seen twice.
        """
        current = self._read_files()
        if current != self._last_look or current == self._loaded:
            self._last_look = current
            return
        before = self._loaded
        self._loaded = current
        changed = list(current.functions)
        if current.of_all == before.of_all:
            changed = [name for name in changed if current.functions[name] != before.functions.get(name)]
        for name in changed:
            saved = set(current.functions[name]) - set(before.functions.get(name, ()))
            yield from self._requirements(name, [path for path, _time, _size in saved])
        yield from self._reload(changed, [name for name in before.functions if name not in current.functions])
        yield from self.refresh_catalog()

    def refresh_catalog(self) -> Iterator[str]:
        """Write catalog.json and load the front door, if the functions offer something else than it lists."""
        directory = self._harness.directory
        if FRONT_DOOR not in self._harness.functions:
            return
        try:
            offered = catalog.describe(self._harness.functions.values())
            differences = catalog.differences(catalog.read(directory), offered)
            if not differences:
                return
            catalog.write(directory, offered)
            yield f"wrote {directory / FRONT_DOOR / catalog.FILE}: {', '.join(differences)}"
            self._harness.load(FRONT_DOOR)
        except (Problem, OSError) as problem:
            yield str(problem)
        self._loaded = self._read_files()
        self._last_look = self._loaded

    def _read_files(self) -> Files:
        directory = self._harness.directory
        try:
            folders = [app.parent for app in find(directory, self._harness.skipped_folders)]
        except Problem:  # a folder cannot be a function, or none is left: the functions that run go on
            folders = [directory.resolve() / name for name in self._harness.functions]
        functions = {folder.name: fingerprints.of_folder(folder) for folder in folders}
        template_file = fingerprints.of_file(directory.resolve().with_name(template.FILE))
        return Files(functions, fingerprints.of_folder(common(directory)) + template_file)

    def _reload(self, changed: list[str], removed: list[str]) -> Iterator[str]:
        try:
            yield from self._harness.configure(list(self._loaded.functions))
        except Problem as problem:
            yield str(problem)
        for name in removed:
            self._harness.unload(name)
            yield f"{name} is gone"
        loaded = []
        for name in changed:
            try:
                self._harness.load(name)
            except Problem as problem:
                yield from self._failure(name, problem)
            else:
                loaded.append(name)
        if loaded:
            yield f"reloaded {', '.join(loaded)}"

    def _requirements(self, name: str, saved: Collection[str]) -> Iterator[str]:
        """Yield a line if a function's requirements.txt was saved, because nothing here installs packages."""
        directory = self._harness.directory.resolve()
        file = directory / name / "requirements.txt"
        if str(file) in saved:
            short = file.relative_to(directory.parent)
            yield f"{short} was saved: pip install --requirement {short}; start again if a package was loaded already"

    def _failure(self, name: str, problem: Problem) -> Iterator[str]:
        if problem.__cause__:
            yield failures.whole_traceback(problem.__cause__).rstrip("\n")
        yield str(problem)
        if self._harness.runtime:
            yield f"{name}: its processes fail until a save loads"
        elif name in self._harness.functions:
            yield f"{name}: the version before this save goes on"
        else:
            yield f"{name} is not served"
