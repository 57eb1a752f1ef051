"""The lists as one client sees them: the forms, companions and apps that its capabilities allow.

A catalog has the same entries for everybody (`handlers.catalog`). A view of it adds the companions of the tools that
ask (`<tool>-form` or `<tool>-answer`, which take the answers), links these tools to the form, and leaves out what only
apps may call. An answer from a view is private, because it depends on the client.

    the client declares             its view
    elicitation                     no companions
    MCP Apps                        the form, with the companion `<tool>-form`; it sees what only apps may call
    both                            no companions; it sees what only apps may call
    neither                         `<tool>-answer` of each tool that lets the model relay answers
    neither, and its host stops     `<tool>-answer` of each tool that asks, because the model has to continue the call
    at a round without a question
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps import companions, form
from mcp_functions.apps.channels import APP, WORDS
from mcp_functions.apps.hosts import carries_empty_rounds
from mcp_functions.protocol.constants import APP_FORM_URI, META_CLIENT_CAPABILITIES
from mcp_functions.protocol.messages import shows_apps, shows_forms
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class View(NamedTuple):
    """What a client can do; clients with the same view get the same lists."""

    has_elicitation: bool
    has_apps: bool  # MCP Apps
    continues_calls: bool  # whether it repeats a request whose round ended without a question

    @property
    def has_form(self) -> bool:
        """Whether an app, which is the form, asks the questions."""
        return self.has_apps and not self.has_elicitation


def view_of(catalog: Mapping[str, Any], meta: Mapping[str, Any]) -> View | None:
    """Return which view a client gets, by the `_meta` of its request; None if it shows the catalog as it is."""
    declared = meta.get(META_CLIENT_CAPABILITIES)
    if not isinstance(declared, dict):
        declared = {}
    has_apps = shows_apps(declared)
    view = View(
        has_elicitation=shows_forms(declared),
        has_apps=has_apps,
        continues_calls=has_apps or carries_empty_rounds(meta, declared),
    )
    leaves_out_tools = bool(catalog.get("apps"))
    adds_companions = view.has_form or bool(_relays(catalog, view))
    return view if adds_companions or leaves_out_tools else None


def show(catalog: Mapping[str, Any], view: View) -> dict[str, Any]:
    """Return a catalog as the clients of a view see it."""
    asks = catalog.get("asks", ())
    with_form = set(asks) - set(catalog.get("formless", ())) if view.has_form else set()
    relays = _relays(catalog, view)
    tools = []
    for entry in catalog["tools"]:
        if is_app_only(entry) and not view.has_apps:
            continue
        if entry["name"] in with_form:
            tools += [_with_form(entry), companions.describe(APP, entry)]
        elif entry["name"] in relays:
            tools += [entry, companions.describe(WORDS, entry)]
        else:
            tools.append(entry)
    has_form = view.has_form and bool(asks)
    resources = [*catalog["resources"], form.entry()] if has_form else catalog["resources"]
    return {**catalog, "tools": _by_name(tools), "resources": _by_name(resources), "has_form": has_form}


def is_app_only(entry: Mapping[str, Any]) -> bool:
    """Tell whether only apps may call a tool."""
    return "visibility" in _ui(entry) and "model" not in _ui(entry)["visibility"]


def _relays(catalog: Mapping[str, Any], view: View) -> list[str]:
    """Return the names of the tools whose answers the model relays for a client."""
    if view.has_elicitation:
        return []
    names: list[str] = catalog.get("relays" if view.continues_calls else "asks", [])
    return names


def _by_name(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: str(entry["name"]))


def _ui(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    ui = entry.get("_meta", {}).get("ui")
    return ui if isinstance(ui, dict) else {}


def _with_form(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Link a tool to the form. It promises no structured content, because a pending result has none."""
    meta = entry.get("_meta", {})
    linked = {**meta, "ui": {**_ui(entry), "resourceUri": APP_FORM_URI}}
    return {**{name: value for name, value in entry.items() if name != "outputSchema"}, "_meta": linked}
