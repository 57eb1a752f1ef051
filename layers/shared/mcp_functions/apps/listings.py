"""The lists as one client sees them: the forms, companions and apps that its capabilities allow.

A catalog has the same entries for everybody (`handlers.catalog`). A view of it adds the companions of the tools that
ask (`<tool>-form` or `<tool>-answer`, which take the answers), links these tools to the form, and leaves out what only
apps may call. An answer from a view is private, because it depends on the client.

    the client declares             its view
    elicitation                     "forms"
    elicitation and MCP Apps        "forms and apps"
    MCP Apps                        "apps"
    neither                         "words": companions where the author lets the model relay answers
    neither, and its host stops     "words, and rounds by the model": companions of every tool that asks, because the
    at a round without a question       model has to continue the call
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mcp_functions.apps import companions, form
from mcp_functions.apps.hosts import carries_empty_rounds
from mcp_functions.apps.rungs import APP, WORDS
from mcp_functions.protocol.constants import APP_FORM, META_CLIENT_CAPABILITIES
from mcp_functions.protocol.messages import shows_apps, shows_forms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

View: TypeAlias = Literal["forms", "forms and apps", "apps", "words", "words, and rounds by the model"]

BY_MODEL: View = "words, and rounds by the model"


def view_of(catalog: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    """Return which view a client gets, by the `_meta` of its request; "" if it shows the catalog as it is."""
    kind = _kind_of(meta)
    adds_companions = kind in ("apps", BY_MODEL) or (kind == "words" and catalog.get("relays"))
    leaves_out_tools = catalog.get("apps")
    return kind if adds_companions or leaves_out_tools else ""


def _kind_of(meta: Mapping[str, Any]) -> View:
    declared = meta.get(META_CLIENT_CAPABILITIES)
    declared = declared if isinstance(declared, dict) else {}
    if shows_forms(declared):
        return "forms and apps" if shows_apps(declared) else "forms"
    if shows_apps(declared):
        return "apps"
    return "words" if carries_empty_rounds(meta, declared) else BY_MODEL


def view(catalog: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return a catalog as the clients of a view see it.

    Args:
        catalog: the catalog of all handlers.
        kind: the name of the view, from `view_of`.

    """
    tools = sorted(_tools(catalog, kind), key=lambda entry: str(entry["name"]))
    has_form = kind == "apps" and bool(catalog.get("asks"))
    resources = list(catalog["resources"])
    if has_form:
        resources.append(form.entry())
    resources.sort(key=lambda entry: str(entry["name"]))
    return {**catalog, "tools": tools, "resources": resources, "has_form": has_form}


def _tools(catalog: Mapping[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of `tools/list`, each followed by its companion, if it has one in this view."""
    asks = catalog.get("asks", ())
    formless = catalog.get("formless", ())
    relays = asks if kind == BY_MODEL else catalog.get("relays", ())
    for entry in catalog["tools"]:
        if "apps" not in kind and is_app_only(entry):
            continue
        has_form = kind == "apps" and entry["name"] in asks and entry["name"] not in formless
        yield _with_form(entry) if has_form else entry
        if has_form:
            yield companions.describe(APP, entry)
        elif "forms" not in kind and entry["name"] in relays:
            yield companions.describe(WORDS, entry)


def is_app_only(entry: Mapping[str, Any]) -> bool:
    """Tell whether only apps may call a tool."""
    return "visibility" in _ui(entry) and "model" not in _ui(entry)["visibility"]


def _ui(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    ui = entry.get("_meta", {}).get("ui")
    return ui if isinstance(ui, dict) else {}


def _with_form(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Link a tool to the form. It promises no structured content, because a pending result has none."""
    meta = entry.get("_meta", {})
    linked = {**meta, "ui": {**_ui(entry), "resourceUri": APP_FORM}}
    return {**{name: value for name, value in entry.items() if name != "outputSchema"}, "_meta": linked}
