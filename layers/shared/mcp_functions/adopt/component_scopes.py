"""The scopes that FastMCP requires for single tools, prompts and resources, or for all of them.

    @server.tool(auth=require_scopes("write"))                          for this tool
    AuthMiddleware(auth=restrict_tag("admin", scopes=["admin"]))        for every tool with the tag

FastMCP runs all such checks at each call. A check that is a scope also becomes a scope of the handler: then the error
of a caller without it says which scope to ask for, and an AuthMode without tokens refuses the call with a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# For each list: the method of FastMCP that returns its components, the attribute with the key of a component, and the
# private attribute with the key that a component of a mounted server has in that server.
LISTS = {
    "tools": ("list_tools", "name", "_original_name"),
    "prompts": ("list_prompts", "name", "_original_name"),
    "resources": ("list_resources", "uri", "_original_uri"),
    "resourceTemplates": ("list_resource_templates", "uri_template", "_original_uri_template"),
}


async def read_scopes(server: Any) -> dict[tuple[str, str], set[str]]:  # noqa: ANN401 - a FastMCP
    """Return the scopes that a server requires for each entry, by the entry's list and key."""
    scopes = {}
    for list_name in LISTS:
        for key, versions in (await _read_list(server, list_name)).items():
            # FastMCP looks for a version that the caller may use, so only what each version requires is required here.
            scopes[list_name, key] = set.intersection(*versions)
    return scopes


async def _read_list(server: Any, list_name: str) -> dict[str, list[set[str]]]:  # noqa: ANN401
    """Return the scopes of each version of the components in one list, by their keys."""
    method, key_attribute, inner_key_attribute = LISTS[list_name]
    mounted: dict[int, dict[str, list[set[str]]]] = {}  # what mounted servers require, by their ids
    found: dict[str, list[set[str]]] = {}
    for component in await getattr(server, method)(run_middleware=False):
        checks = [*as_list(component.auth), *middleware_checks(server)]
        scopes = _scopes_of(checks, component.tags)
        inner = getattr(component, "_server", None)
        if inner is not None:
            if id(inner) not in mounted:
                mounted[id(inner)] = await _read_list(inner, list_name)
            versions = mounted[id(inner)].get(str(getattr(component, inner_key_attribute)))
            scopes |= set.intersection(*versions) if versions else set()
        found.setdefault(str(getattr(component, key_attribute)), []).append(scopes)
    return found


def scopes_of_all(server: object) -> set[str]:
    """Return the scopes that the middleware of a FastMCP server requires for every component, whatever its tags."""
    return _scopes_of(middleware_checks(server), ())


def middleware_checks(server: Any) -> list[object]:  # noqa: ANN401 - of three libraries
    """Return the checks of `AuthMiddleware(auth=…)`."""
    found: list[object] = []
    for middleware in getattr(server, "middleware", ()):
        if any(each.__name__ == "AuthMiddleware" for each in type(middleware).__mro__):
            found += as_list(getattr(middleware, "auth", None))  # a subclass may have none
    return found


def as_list(checks: object) -> Sequence[object]:
    """Return checks as a list: `auth=` takes one check, a list, or None."""
    if isinstance(checks, list):
        return checks
    return [] if checks is None else [checks]


def _scopes_of(checks: Iterable[object], tags: Iterable[str]) -> set[str]:
    """Return the scopes in checks for a component with these tags. A check that is no scope has none here."""
    found: set[str] = set()
    for check in checks:
        tag = getattr(check, "tag", None)
        if tag is None or tag in tags:
            found |= set(getattr(check, "required_scopes", ()))
    return found
