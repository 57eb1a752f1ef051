"""The catalog as one caller sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.handlers.catalog import LIST_NAMES, PROPERTIES_OF_TOOLS, key_of
from mcp_functions.protocol import scopes

if TYPE_CHECKING:
    from collections.abc import Collection

    from mcp_functions.protocol.catalog_types import Catalog, Folders, Server
    from mcp_functions.settings import Settings


def show_to(held: Collection[str], catalog: Catalog, settings: Settings) -> Catalog:
    """Return a catalog as a caller sees it; `held` has the scopes of the caller's access token.

    With AuthMode none everybody may call everything, so nothing is hidden. With AuthMode iam nobody has scopes.
    """
    if settings.auth_mode == "none":
        return catalog
    return show(catalog, scopes.expand(held, settings.scope_hierarchy))


def show(catalog: Catalog, held: Collection[str]) -> Catalog:
    """Return a catalog without what needs scopes that are not in `held`.

    The member "hidden" stays, because it says that lists differ between callers. No client gets it.
    """
    hidden = {
        list_name: {key for key, needed in catalog["hidden"].get(list_name, {}).items() if not held_all(needed, held)}
        for list_name in LIST_NAMES
    }
    if not any(hidden.values()):
        return catalog
    shown = catalog.copy()
    functions: Folders = {"tools": {}, "prompts": {}, "resources": {}, "resourceTemplates": {}}
    for list_name, keys in hidden.items():
        shown[list_name] = [entry for entry in catalog[list_name] if key_of(entry) not in keys]
        folders = catalog["functions"][list_name]
        functions[list_name] = {key: folder for key, folder in folders.items() if key not in keys}
    shown["functions"] = functions
    for member in PROPERTIES_OF_TOOLS:
        shown[member] = [name for name in catalog.get(member, ()) if name not in hidden["tools"]]
    shown["tasks"] = [folder for folder in catalog.get("tasks", ()) if folder in functions["tools"].values()]
    shown_folders = {folder for list_name in LIST_NAMES for folder in functions[list_name].values()}
    methods = catalog.get("methods", {})
    shown["methods"] = {method: folder for method, folder in methods.items() if folder in shown_folders}
    skills = catalog.get("skills", {})
    shown["skills"] = {uri: digest for uri, digest in skills.items() if uri not in hidden["resources"]}
    shown["servers"] = _shown_servers(catalog, held)
    return shown


def _shown_servers(catalog: Catalog, held: Collection[str]) -> list[Server]:
    """Return what authors wrote about the servers of which the caller sees a handler: their instructions, for example.

    The member "hidden" has the index of each server whose handlers are all hidden, with the scopes of each handler.
    """
    servers = []
    for index, server in enumerate(catalog.get("servers", ())):
        alternatives = catalog["hidden"].get("servers", {}).get(str(index))
        if alternatives is None or any(held_all(needed, held) for needed in alternatives):
            servers.append(server)
    return servers


def held_all(needed: Collection[str], held: Collection[str]) -> bool:
    """Tell whether all needed scopes are held."""
    return all(scope in held for scope in needed)
