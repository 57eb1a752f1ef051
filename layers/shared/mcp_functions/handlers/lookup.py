"""Finds the handler of a catalog that a request names, and the function that serves the request.

The front door forwards the request to that function. A function finds its handlers in a smaller catalog. A
companion is a second tool, `<tool>-form` or `<tool>-answer`, that takes the answers for a tool that asks: a request to
it finds the tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.catalog import CAPABILITIES, COMPANIONS, LIST_NAMES, OTHERS
from mcp_functions.protocol import header_parameters
from mcp_functions.protocol.constants import CALL_METHODS, TASK_METHODS
from mcp_functions.protocol.errors import InvalidParams, MethodNotFound, ResourceNotFound, UnknownName, UnknownTask
from mcp_functions.protocol.messages import Result, complete
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.header_parameters import HeaderParameters
    from mcp_functions.settings import Settings

URI_KEYS = {"resources": "uri", "resourceTemplates": "uriTemplate"}  # list -> the member of an entry that requests name


class Target(NamedTuple):
    """The handler that a request names."""

    list_name: str  # the list that contains its entry
    key: str  # its name, URI or URI template; `OTHERS` if a foreign server (`adopt`) serves it without listing it
    function: str  # the folder of the function that serves it
    companion: str = ""  # the name in the request, if that is a companion of the tool


def find(catalog: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> Target:
    """Find the handler that a call names.

    Args:
        catalog: the catalog of a function, or of all functions.
        method: `tools/call`, `prompts/get` or `resources/read`.
        params: the params of the request.

    Raises:
        MethodNotFound: no handler of the catalog is of this kind.
        UnknownName: the catalog has no such tool or prompt.
        ResourceNotFound: no resource or template has this URI.
    """
    if method == "resources/read":
        check_advertised(catalog, "resources")
        return _find_resource(catalog["functions"], _text_param(params, "uri"))
    list_name = "tools" if method == "tools/call" else "prompts"
    functions: Mapping[str, str] = catalog["functions"][list_name]
    if not functions:
        raise MethodNotFound
    name = _text_param(params, "name")
    if name in functions:
        return Target(list_name, name, functions[name])
    if list_name == "tools" and name.endswith(COMPANIONS):
        tool = name.rpartition("-")[0]
        if tool in catalog.get("asks", ()):
            return Target(list_name, tool, functions[tool], companion=name)
    if OTHERS in functions:
        return Target(list_name, OTHERS, functions[OTHERS])
    raise UnknownName(message=f"Unknown {list_name.removesuffix('s')}")


def find_reference(catalog: Mapping[str, Any], params: Mapping[str, Any]) -> Target:
    """Find the handler that the `ref` of a `completion/complete` names: a prompt, a URI template, or a URI.

    Raises:
        MethodNotFound: no handler of the catalog completes arguments.
        InvalidParams: `ref` does not have the shape of the specification.
    """
    if not catalog["completions"]:
        raise MethodNotFound
    method, name = read_reference(params)
    templates: Mapping[str, str] = catalog["functions"]["resourceTemplates"]
    if method == "resources/read" and name in templates:
        return Target("resourceTemplates", name, templates[name])
    return find(catalog, method, {CALL_METHODS[method]: name})


def read_reference(params: Mapping[str, Any]) -> tuple[str, str]:
    """Read the `ref` of a `completion/complete`: the method that calls the handler, and its name or URI."""
    match params.get("ref"):
        case {"type": "ref/prompt", "name": str(name)}:
            return "prompts/get", name
        case {"type": "ref/resource", "uri": str(uri)}:
            return "resources/read", uri
    message = 'params.ref must be {"type": "ref/prompt", "name": …} or {"type": "ref/resource", "uri": …}'
    raise InvalidParams(message)


def task_function(catalog: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> str:
    """Return the function that keeps a task; the task's id begins with its name and a dot."""
    functions: list[str] = catalog.get("tasks", [])
    if not functions:
        raise MethodNotFound
    function = _text_param(params, TASK_METHODS[method]).partition(".")[0]
    if function not in functions:
        raise UnknownTask
    return function


def form_result(server: Mapping[str, str]) -> Result:
    """Return the page with the form for questions (MCP Apps). Every function that asks serves it."""
    from mcp_functions.apps import form  # noqa: PLC0415 - only hosts of apps read it

    return Result(complete(form.contents(), server))


def name_of(catalog: Mapping[str, Any], target: Target) -> str:
    """Return the name of a handler; the log names a resource by it, and never by a URI that a client sent."""
    if target.list_name not in URI_KEYS:
        return target.key
    uri_key = URI_KEYS[target.list_name]
    for entry in catalog[target.list_name]:
        if entry[uri_key] == target.key:
            return str(entry["name"])
    return target.key  # `OTHERS` is in no list


def header_arguments(catalog: Mapping[str, Any], name: object) -> HeaderParameters:
    """Find the arguments of one tool that clients must repeat in `Mcp-Param-*` headers."""
    for entry in catalog["tools"]:
        if entry["name"] == name:
            return header_parameters.find(entry["inputSchema"])
    return {}


def check_headers(declared: HeaderParameters, params: Mapping[str, Any], received: Mapping[str, str]) -> None:
    """Refuse a call whose `Mcp-Param-*` headers differ from its arguments.

    Args:
        declared: the arguments of the tool that clients must repeat, as `header_arguments` finds them.
        params: the params of the call.
        received: the headers of the call.
    """
    if declared:
        arguments = params.get("arguments")
        if not isinstance(arguments, dict):
            arguments = {}
        header_parameters.check(declared, arguments, received)


def cors_headers(catalog: Mapping[str, Any], settings: Settings) -> list[str]:
    """List the headers that a page in a browser may send for arguments; none if no page may call (CORS)."""
    return header_names(catalog) if settings.allowed_origins else []


def header_names(catalog: Mapping[str, Any]) -> list[str]:
    """List the `Mcp-Param-*` headers of all tools."""
    return sorted({name for entry in catalog["tools"] for name in header_parameters.find(entry["inputSchema"])})


def list_capabilities(catalog: Mapping[str, Any]) -> list[str]:
    """List the capabilities that the handlers of a catalog have: "tools", "prompts" or "resources"."""
    # An adopted server may leave out of its list what it serves. Then a function serves names, and there is no entry.
    lists = [list_name for list_name in LIST_NAMES if catalog[list_name] or catalog["functions"][list_name]]
    return [CAPABILITIES[list_name] for list_name in lists]


def check_advertised(catalog: Mapping[str, Any], capability: str) -> None:
    """Refuse a method of a capability that no handler of the catalog has, with MethodNotFound."""
    if capability not in list_capabilities(catalog):
        raise MethodNotFound


def _text_param(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise InvalidParams(message=f"params.{name} must be a string")
    return value


def _find_resource(functions: Mapping[str, Mapping[str, str]], uri: str) -> Target:
    """Find a resource: one with this URI, else a template that matches, else a server that serves unlisted URIs."""
    if uri in functions["resources"]:
        return Target("resources", uri, functions["resources"][uri])
    from mcp_functions.protocol import uri_templates  # noqa: PLC0415 - few functions are templates

    for template, function in functions["resourceTemplates"].items():
        if uri_templates.match(template, uri) is not None:
            return Target("resourceTemplates", template, function)
    for list_name in URI_KEYS:
        if OTHERS in functions[list_name]:
            return Target(list_name, OTHERS, functions[list_name][OTHERS])
    raise ResourceNotFound(uri)
