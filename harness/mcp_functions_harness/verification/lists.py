"""Checks that the endpoint, and each function, list what this project's catalog has.

functions/mcp/catalog.json has all tools, prompts and resources of a project, and the folder of each. A difference means
that another version of the project was deployed.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from mcp_functions.handlers.catalog import LIST_NAMES, key_of
from mcp_functions.protocol.catalog_types import Catalog
from mcp_functions.protocol.constants import LIST_METHODS
from mcp_functions.protocol.errors import MethodNotFound
from mcp_functions.protocol.wire_types import ListEntry, Params
from mcp_functions_harness import catalog
from mcp_functions_harness.verification.report import Failed, Skipped, comma_list
from mcp_functions_harness.verification.server import Server

Lists = dict[str, list[ListEntry]]  # each list by its name in the catalog, e.g. "tools"
MAX_PAGES = 100  # pages of one list that are read
METHODS: Mapping[str, str] = {list_name: method for method, list_name in LIST_METHODS.items()}


def check_lists(server: Server, project: Catalog) -> str:
    """Check that the endpoint lists what the catalog has."""
    _require_catalog(project)
    differences = catalog.differences(project, _with_lists(project, read(server, LIST_NAMES)))
    if differences:
        difference = f"the endpoint differs from the catalog ({comma_list(differences)})"
        raise Failed(f"{difference}: deploy again, or write the catalog again")
    count = sum(map(len, _lists_of(project).values()))
    return f"{count} handlers, as in the catalog"


def check_functions(server: Server, project: Catalog) -> str:
    """Check that each function answers at its own route, and lists its part of the catalog."""
    _require_catalog(project)
    complaints = []
    for folder in folders(project):
        expected = _part_of(folder, project)
        try:
            deployed = read(server, [name for name, entries in _lists_of(expected).items() if entries], folder)
        except Failed as failed:
            complaints.append(f"{folder} ({failed})")
            continue
        differences = catalog.differences(expected, _with_lists(expected, deployed))
        if differences:
            complaints.append(f"{folder} ({comma_list(differences)})")
    if complaints:
        raise Failed(comma_list(complaints))
    return f"{len(folders(project))} functions answer at /mcp/<folder>, and list what the catalog has of them"


def folders(project: Catalog) -> list[str]:
    """Return the folders of the functions in a catalog."""
    return sorted({folder for names in catalog.folders(project).values() for folder in names.values()})


def read(server: Server, list_names: Iterable[str], folder: str = "") -> Lists:
    """Return lists of the endpoint, or of the function in a folder, with all their pages.

    Raises:
        Failed: the server does not answer a list.
    """
    return {list_name: _pages(server, list_name, folder) for list_name in list_names}


def _pages(server: Server, list_name: str, folder: str) -> list[ListEntry]:
    entries: list[ListEntry] = []
    params: Params = {}
    for _ in range(MAX_PAGES):
        response = server.exchange(METHODS[list_name], params, folder)
        if response.code == MethodNotFound.code:
            break  # the server has no such list
        if response.result is None:
            raise Failed(f"{METHODS[list_name]}: {response}")
        result: Mapping[str, Any] = response.result
        entries += result.get(list_name, [])
        if "nextCursor" not in response.result:
            break
        params = {"cursor": response.result["nextCursor"]}
    return entries


def _part_of(folder: str, project: Catalog) -> Catalog:
    """Return the part of a catalog that one function serves."""
    parts: Lists = {}
    for list_name, entries in _lists_of(project).items():
        folders_by_key = catalog.folders(project)[list_name]
        parts[list_name] = [entry for entry in entries if folders_by_key.get(key_of(entry)) == folder]
    return _with_lists(project, parts)


def _lists_of(project: Catalog) -> Lists:
    return {list_name: cast("Lists", project)[list_name] for list_name in LIST_NAMES}


def _with_lists(project: Catalog, lists: Lists) -> Catalog:
    return cast("Catalog", {**project, **lists})


def _require_catalog(project: Catalog) -> None:
    if not {"functions", *LIST_NAMES} <= project.keys():  # it is {} where the file is missing
        raise Skipped("there is no functions/mcp/catalog.json here; --functions names the folder")
