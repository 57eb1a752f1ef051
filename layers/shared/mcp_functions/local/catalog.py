"""`catalog`: writes the tools, prompts and resources of all functions to functions/mcp/catalog.json.

From it functions/mcp, the endpoint (or front door), answers lists without a call to a function, and finds the function
of a name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers import catalog
from mcp_functions.local import environment
from mcp_functions.local.lambdas.functions import FRONT_DOOR, Function, Functions
from mcp_functions.local.loopback import json_object
from mcp_functions.local.problems import stop

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FILE = "catalog.json"


def generate(directory: Path) -> dict[str, Any]:
    """Import every function and describe its handlers.

    Args:
        directory: contains a folder for each function.

    Returns:
        The catalog: the entries of each list by its name ("tools", …), and `functions`: the folder of each name.

    Raises:
        Problem: a function does not load, or two have the same name.
    """
    with environment.applied(environment.CREDENTIALS), Functions(directory, without=frozenset({FRONT_DOOR})) as loaded:
        return describe(loaded.by_folder.values())


def describe(functions: Iterable[Function]) -> dict[str, Any]:
    """Describe the handlers of loaded functions, without the front door's.

    Raises:
        Problem: two have the same name.
    """
    offering = [function for function in functions if function.folder != FRONT_DOOR]
    try:
        return catalog.merge(catalog.build(function.handlers, function.folder) for function in offering)
    except ValueError as error:
        stop(str(error), after=error)


def text(catalog_: Mapping[str, Any]) -> str:
    """Return a catalog as text; equal catalogs have equal texts."""
    return json.dumps(catalog_, indent=2, ensure_ascii=False) + "\n"


def read(directory: Path) -> dict[str, Any]:
    """Read the catalog; it is empty if the file is missing or unreadable."""
    path = directory / FRONT_DOOR / FILE
    return json_object(path.read_bytes()) if path.is_file() else {}


def write(directory: Path, catalog_: Mapping[str, Any]) -> Path:
    """Write a catalog beside the front door's app.py.

    Raises:
        Problem: the project has no front door.
    """
    folder = directory / FRONT_DOOR
    if not folder.is_dir():
        stop(f"there is no {folder}: the catalog belongs beside the front door's app.py")
    (folder / FILE).write_text(text(catalog_), encoding="utf-8")
    return folder / FILE


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one line for each different name: "+ tools add", "- prompts plan", "~ tools add" (entry or folder)."""
    lines = []
    for list_name in catalog.LISTS_BY_KIND.values():
        before, after = _entries_by_name(old, list_name), _entries_by_name(new, list_name)
        for name in sorted(before.keys() | after.keys()):
            if name not in before:
                lines.append(f"+ {list_name} {name}")
            elif name not in after:
                lines.append(f"- {list_name} {name}")
            elif before[name] != after[name]:
                lines.append(f"~ {list_name} {name}")
    others = (old.keys() | new.keys()) - {"functions", *catalog.LISTS_BY_KIND.values()}
    return lines + [f"~ {name}" for name in sorted(others) if name not in old or old[name] != new.get(name)]


def _entries_by_name(catalog_: Mapping[str, Any], list_name: str) -> dict[str, Any]:
    """Return the folder and the entry of each name in one list; {} if the value is no catalog."""
    try:
        folders = catalog_["functions"][list_name]
        keyed = {catalog.key_of(entry): entry for entry in catalog_[list_name]}
        return {key: (folders.get(key), entry) for key, entry in keyed.items()}
    except (KeyError, TypeError, AttributeError):
        return {}
