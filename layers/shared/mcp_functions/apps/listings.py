"""The lists as one client sees them, by the capabilities that it declares.

A catalog has the same entries for everybody (`handlers.catalog`). A view adds entries to it, and leaves entries out:

    the client declares      tools that ask users             tools that only apps may call
    elicitation              are unchanged                    are left out
    MCP Apps                 get the form and `<tool>-form`   stay
    both                     are unchanged                    stay
    neither                  may get `<tool>-answer`          are left out

`<tool>-form` and `<tool>-answer` are companions: second tools that take the answers. A tool gets `<tool>-answer` if its
author lets the model pass on answers. If the client does not continue a call whose time was up (`apps.hosts`), each
tool that asks gets it, so that the model can continue the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps import form
from mcp_functions.apps.companions import form_companion, model_companion
from mcp_functions.apps.hosts import continues_calls
from mcp_functions.protocol.constants import APP_FORM_URI, META_CLIENT_CAPABILITIES
from mcp_functions.protocol.messages import shows_apps, shows_forms
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class View(NamedTuple):
    """What a client can do; clients with the same view get the same lists."""

    has_elicitation: bool
    has_apps: bool  # MCP Apps
    continues_calls: bool  # whether it repeats a request whose time was up

    @property
    def has_form(self) -> bool:
        """Whether the form asks the questions."""
        return self.has_apps and not self.has_elicitation


def view_of(catalog: Mapping[str, Any], meta: Mapping[str, Any]) -> View | None:
    """Return a client's view, by the `_meta` of its request; None if the client sees the catalog unchanged."""
    declared = meta.get(META_CLIENT_CAPABILITIES)
    if not isinstance(declared, dict):
        declared = {}
    has_apps = shows_apps(declared)
    view = View(
        has_elicitation=shows_forms(declared),
        has_apps=has_apps,
        continues_calls=has_apps or continues_calls(meta, declared),
    )
    has_app_tools = bool(catalog.get("apps"))
    adds_companions = view.has_form or bool(_tools_answered_by_model(catalog, view))
    return view if has_app_tools or adds_companions else None


def show(catalog: Mapping[str, Any], view: View) -> dict[str, Any]:
    """Return a catalog as the clients of a view see it."""
    answered_by_form: set[str] = set()
    if view.has_form:  # a tool with an author's own app has no form
        answered_by_form = set(catalog.get("asks", ())) - set(catalog.get("formless", ()))
    answered_by_model = _tools_answered_by_model(catalog, view)
    tools = []
    for entry in catalog["tools"]:
        if is_app_only(entry) and not view.has_apps:
            continue
        name = entry["name"]
        if name in answered_by_form:
            tools += [_with_form(entry), form_companion(name)]
        elif name in answered_by_model:
            tools += [entry, model_companion(name)]
        else:
            tools.append(entry)
    resources = list(catalog["resources"])
    has_form = view.has_form and bool(catalog.get("asks"))
    if has_form:
        resources.append(form.entry())
    return {**catalog, "tools": _by_name(tools), "resources": _by_name(resources), "has_form": has_form}


def is_app_only(entry: Mapping[str, Any]) -> bool:
    """Tell whether only apps may call a tool."""
    ui = _ui(entry)
    return "visibility" in ui and "model" not in ui["visibility"]


def _tools_answered_by_model(catalog: Mapping[str, Any], view: View) -> set[str]:
    """Return the names of the tools whose calls the model may continue for a client."""
    if view.has_elicitation:
        return set()
    if view.continues_calls:
        return set(catalog.get("relays", ()))  # their authors let the model pass on answers
    return set(catalog.get("asks", ()))


def _by_name(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: str(entry["name"]))


def _ui(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    ui = entry.get("_meta", {}).get("ui")
    return ui if isinstance(ui, dict) else {}


def _with_form(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Link a tool to the form. It promises no structured content, because a result that asks has none."""
    linked = {name: value for name, value in entry.items() if name != "outputSchema"}
    linked["_meta"] = {**entry.get("_meta", {}), "ui": {**_ui(entry), "resourceUri": APP_FORM_URI}}
    return linked
