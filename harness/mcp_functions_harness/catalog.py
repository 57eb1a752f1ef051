"""`mcp-functions catalog`: lists the tools, prompts and resources of all functions in functions/mcp/catalog.json.

    {"tools": [{"name": "add", …}], …, "functions": {"tools": {"add": "<folder>"}, …}, …}

functions/mcp, the endpoint (or front door), reads it to answer lists, and to find the function of a name. The skills of
the project, in skills/, are in functions/mcp/skills.json.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from mcp_functions import skills as served_skills
from mcp_functions.handlers import catalog
from mcp_functions.protocol.catalog_types import Catalog
from mcp_functions_harness import environment, skills
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, Function, Functions
from mcp_functions_harness.loopback import json_object
from mcp_functions_harness.problems import Problem

FILE = "catalog.json"
MISSING = cast("Catalog", {})  # stands for a file that is not there


def generate(directory: Path) -> Catalog:
    """Import every function of a directory, and make the catalog.

    Raises:
        Problem: a function does not load, two tools, prompts or resources have the same name, or a skill is wrong.
    """
    with environment.applied(environment.CREDENTIALS), Functions(directory, without=frozenset({FRONT_DOOR})) as loaded:
        return describe(loaded.by_folder.values(), directory)


def describe(functions: Iterable[Function], directory: Path) -> Catalog:
    """Make the catalog of loaded functions, and of the skills beside their directory.

    Raises:
        Problem: two tools, prompts or resources have the same name, or a skill is wrong.
    """
    listed = {function.folder: function.handlers for function in functions if function.folder != FRONT_DOOR}
    examined = skills.examine(directory)
    if examined.complaints:
        raise Problem("\n".join(examined.complaints))
    try:
        return served_skills.Bundle.of(examined.content).add_to(catalog.build_project(listed))
    except ValueError as error:
        raise Problem(str(error)) from error


def text(catalog_: Catalog) -> str:
    """Return a catalog as text; equal catalogs have equal texts."""
    return json.dumps(catalog_, indent=2, ensure_ascii=False) + "\n"


def read(directory: Path) -> Catalog:
    """Read the catalog; it is empty if the file is missing or unreadable, and has other parts if it was damaged."""
    path = directory / FRONT_DOOR / FILE
    return cast("Catalog", json_object(path.read_bytes())) if path.is_file() else MISSING


def read_or_generate(directory: Path) -> Catalog:
    """Read the catalog of functions/mcp; without that folder, `generate` it."""
    return read(directory) if (directory / FRONT_DOOR).is_dir() else generate(directory)


def refresh(directory: Path) -> None:
    """Make the catalog of a directory, and write it; see `generate` and `write`."""
    write(directory, generate(directory))


def write(directory: Path, catalog_: Catalog) -> Path:
    """Write a catalog beside the front door's app.py, and skills.json if the project has skills.

    Raises:
        Problem: the project has no front door.
    """
    folder = directory / FRONT_DOOR
    if not folder.is_dir():
        raise Problem(f"there is no {folder}: the catalog belongs beside the front door's app.py")
    return write_to(folder, catalog_, directory)


def write_to(folder: Path, catalog_: Catalog, directory: Path) -> Path:
    """Write a catalog, and the skills of the project with this directory of functions, into a folder."""
    (folder / FILE).write_text(text(catalog_), encoding="utf-8")
    file = folder / served_skills.FILE
    if catalog_.get("skills"):
        file.write_text(skills.text(skills.examine(directory).content), encoding="utf-8")
    else:
        file.unlink(missing_ok=True)
    return folder / FILE


def folders(catalog_: Catalog) -> Mapping[str, Mapping[str, str]]:
    """Return, for each list, the folder of each name; {} if the catalog is missing."""
    return cast("Mapping[str, Mapping[str, str]]", catalog_.get("functions", {}))


def differences(old: Catalog, new: Catalog) -> list[str]:
    """Return one line for each difference.

    + tools add       a new name
    - prompts plan    a name that is gone
    ~ tools add       its entry or its folder has changed
    ~ scopes          another part of the catalog has changed
    """
    lines = []
    list_names = (*catalog.LISTS_BY_KIND.values(), "skills")
    for list_name in list_names:
        before, after = _by_name(old, list_name), _by_name(new, list_name)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                sign = "+" if name not in before else "-" if name not in after else "~"
                lines.append(f"{sign} {list_name} {name}")
    other_parts = (old.keys() | new.keys()) - {"functions", *list_names}
    changed_parts = [name for name in sorted(other_parts) if old.get(name) != new.get(name)]
    return lines + [f"~ {name}" for name in changed_parts]


def _by_name(catalog_: Any, list_name: str) -> dict[str, object]:  # noqa: ANN401
    """Return what a list has of each name, with its folder, or the digest of each skill; {} if the file is damaged."""
    try:
        if list_name == "skills":
            return {**catalog_.get("skills", {})}
        folders = catalog_["functions"][list_name]
        entries = {catalog.key_of(entry): entry for entry in catalog_[list_name]}
        return {name: (folders.get(name), entry) for name, entry in entries.items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
