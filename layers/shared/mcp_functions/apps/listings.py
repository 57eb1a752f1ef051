"""The lists for clients that need other entries than the catalog has (`handlers.catalog`).

A tool may ask its user, and a client without elicitation cannot show the question. Its lists get an answer tool for
such a tool: a second tool that takes the answers (`answer_tools`). Its capabilities decide which one:

    MCP Apps    `<tool>-form`. The tool gets a link to the form, which shows the questions.
    nothing     `<tool>-answer`, if the author lets the model pass on answers

Some clients stop a call that takes several requests, though it asks nothing (`apps.hosts`). They get `<tool>-answer`
for each tool that asks: with it, the model continues the call.

Some tools are for apps alone. Clients without MCP Apps do not see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.apps import form
from mcp_functions.apps.answer_tools import describe_form_tool, describe_model_tool
from mcp_functions.apps.hosts import continues_calls
from mcp_functions.protocol.constants import APP_FORM_URI, META_CLIENT_CAPABILITIES
from mcp_functions.protocol.messages import shows_apps, shows_forms, value_at
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.wire_types import ListEntry, Meta


class View(NamedTuple):
    """How the lists of some clients differ from the catalog. Clients with the same view get the same lists."""

    hides_app_tools: bool  # True if they leave out the tools that only apps may call
    has_form: bool = False  # True if the form is among the resources
    form_tools: frozenset[str] = frozenset()  # the tools that get the form and `<tool>-form`
    model_tools: frozenset[str] = frozenset()  # the tools that get `<tool>-answer`


def view_of(catalog: Catalog, meta: Meta) -> View | None:
    """Return a client's view, by the `_meta` of its request; None if the client sees the catalog unchanged."""
    view = _choose_view(catalog, meta)
    is_changed = view.has_form or view.model_tools or catalog.get("apps")
    return view if is_changed else None


def _choose_view(catalog: Catalog, meta: Meta) -> View:
    declared = meta.get(META_CLIENT_CAPABILITIES)
    if not isinstance(declared, dict):
        declared = {}
    has_apps = shows_apps(declared)
    if shows_forms(declared):
        return View(hides_app_tools=not has_apps)
    asking = frozenset(catalog.get("asks", ()))
    passed_on = frozenset(catalog.get("relays", ()))  # their authors let the model pass on answers
    if has_apps:
        # a tool with an author's own app has no form
        form_tools = asking.difference(catalog.get("formless", ()))
        model_tools = passed_on - form_tools
        return View(hides_app_tools=False, has_form=bool(asking), form_tools=form_tools, model_tools=model_tools)
    return View(hides_app_tools=True, model_tools=passed_on if continues_calls(meta, declared) else asking)


def show(catalog: Catalog, view: View) -> Catalog:
    """Return a catalog as the clients of a view see it."""
    tools: list[ListEntry] = []
    for entry in catalog["tools"]:
        name = entry["name"]
        if view.hides_app_tools and is_app_only(entry):
            continue
        if name in view.form_tools:
            tools += [_with_form(entry), describe_form_tool(name)]
        elif name in view.model_tools:
            tools += [entry, describe_model_tool(name)]
        else:
            tools.append(entry)
    resources = list(catalog["resources"])
    if view.has_form:
        resources.append(form.entry())
    return {**catalog, "tools": _by_name(tools), "resources": _by_name(resources), "has_form": view.has_form}


def is_app_only(entry: ListEntry) -> bool:
    """Tell whether only apps may call a tool."""
    visibility = value_at(entry, "_meta", "ui", "visibility")
    return visibility is not None and "model" not in visibility


def _by_name(entries: list[ListEntry]) -> list[ListEntry]:
    return sorted(entries, key=lambda entry: str(entry["name"]))


def _with_form(entry: ListEntry) -> ListEntry:
    """Link a tool to the form. The linked entry has no `outputSchema`: a result that asks has no structured content."""
    linked = entry.copy()
    linked.pop("outputSchema", None)
    ui = value_at(entry, "_meta", "ui")
    if not isinstance(ui, dict):
        ui = {}
    linked["_meta"] = {**entry.get("_meta", {}), "ui": {**ui, "resourceUri": APP_FORM_URI}}
    return linked
