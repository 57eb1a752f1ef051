"""Finds which handler a request names, and which Lambda function serves it, in a catalog (`handlers.catalog`).

    tools/call             {"name": "book"}                                     the tool of that name
                           {"name": "book-answer"}                              the tool `book`, if it asks its user
    prompts/get            {"name": "review"}                                   the prompt of that name
    resources/read         {"uri": "notes://today"}                             the resource, or a matching template
    completion/complete    {"ref": {"type": "ref/prompt", "name": "review"}}    the prompt, resource or template

`book-answer` is an answer tool: a second tool, which takes the answers of a client that cannot show questions.

The front door forwards a request to the function that it finds. A function finds the handler in its own catalog.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.catalog import ANSWER_TOOL_SUFFIXES, UNLISTED_KEY, key_of
from mcp_functions.protocol import header_parameters
from mcp_functions.protocol.constants import APP_FORM_URI, SKILL_METHODS, SKILL_SCHEME
from mcp_functions.protocol.errors import InvalidParams, MethodNotFound, ResourceNotFound, UnknownName
from mcp_functions.protocol.messages import Result, complete
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.protocol.catalog_types import Catalog, ListName
    from mcp_functions.protocol.header_parameters import HeaderParameters
    from mcp_functions.protocol.wire_types import Implementation, Params


class Target(NamedTuple):
    """The handler that a request names."""

    list_name: ListName  # the list with its entry: "tools", for example
    # its name, URI or URI template; UNLISTED_KEY if an adopted server serves it, and does not list it
    key: str
    folder: str  # the folder of the Lambda function that serves it
    # the name in the request, if the request names an answer tool of the tool
    answer_tool: str = ""


def find(catalog: Catalog, method: str, params: Params) -> Target:
    """Find the handler that a `tools/call`, `prompts/get` or `resources/read` names.

    Raises:
        MethodNotFound: the catalog has no handler for this method.
        InvalidParams: `name` or `uri` is missing, or is not text.
        UnknownName: the catalog has no such tool or prompt.
        ResourceNotFound: no resource or template has this URI.
    """
    if method == "resources/read":
        return _find_resource(catalog, params)
    list_name: ListName = "tools" if method == "tools/call" else "prompts"
    folders = catalog["functions"][list_name]
    if not folders:
        raise MethodNotFound
    name = _text_param(params, "name")
    if name in folders:
        return Target(list_name, name, folders[name])
    tool = name.rpartition("-")[0]  # "book" of its answer tool "book-answer"
    if list_name == "tools" and tool in catalog.get("asks", ()) and name.endswith(ANSWER_TOOL_SUFFIXES):
        return Target("tools", tool, folders[tool], answer_tool=name)
    if UNLISTED_KEY in folders:
        return Target(list_name, UNLISTED_KEY, folders[UNLISTED_KEY])
    raise UnknownName(message=f"Unknown {list_name.removesuffix('s')}")


def _find_resource(catalog: Catalog, params: Params) -> Target:
    """Find the resource with a URI, or else the first template that matches it."""
    resources: Mapping[str, str] = catalog["functions"]["resources"]
    templates: Mapping[str, str] = catalog["functions"]["resourceTemplates"]
    # A skill is a resource without a function.
    if not resources and not templates and not catalog.get("skills"):
        raise MethodNotFound
    uri = _text_param(params, "uri")
    if uri in resources:
        return Target("resources", uri, resources[uri])
    key = _find_equal(resources, uri)
    if key:
        return Target("resources", key, resources[key])
    for template, folder in templates.items():
        if _matches(template, uri):
            return Target("resourceTemplates", template, folder)
    if UNLISTED_KEY in resources:
        return Target("resources", UNLISTED_KEY, resources[UNLISTED_KEY])
    if UNLISTED_KEY in templates:
        return Target("resourceTemplates", UNLISTED_KEY, templates[UNLISTED_KEY])
    raise ResourceNotFound(uri)


def _find_equal(uris: Iterable[str], uri: str) -> str:
    """Return the one of some URIs or templates that has the same normal form; "" if there is none."""
    # few functions have resources
    from mcp_functions.protocol.uris import normal_form

    normal = normal_form(uri)
    # An adopted server lists its URIs in any form.
    return next((each for each in uris if each != UNLISTED_KEY and normal_form(each) == normal), "")


# The expressions in a template whose values a URI may leave out: `{?page}` in `data://{name}{?page}`. Only templates of
# adopted servers have them.
OPTIONAL = r"\{[?&#/.;][^}]*\}"


def _matches(template: str, uri: str) -> bool:
    """Tell whether a URI is one of a template's; false also if only an adopted server can match the template."""
    # few functions are templates
    from mcp_functions.protocol.uri_templates import UriTemplate

    try:
        return UriTemplate(re.sub(OPTIONAL, "", template)).match(uri) is not None
    except ValueError:
        return False


def find_reference(catalog: Catalog, params: Params) -> Target:
    """Find the handler that the `ref` of a `completion/complete` names: a prompt, a URI template, or a URI.

    Raises:
        MethodNotFound: no handler of the catalog completes arguments, or there is no handler of this kind.
        InvalidParams: `ref` does not have the shape of the specification.
        UnknownName: the catalog has no such prompt.
        ResourceNotFound: no resource or template has this URI.
    """
    if not catalog["completions"]:
        raise MethodNotFound
    ref: Any = params.get("ref")
    match ref:
        case {"type": "ref/prompt", "name": str()}:
            # a `ref` names its handler as the params of a call do
            return find(catalog, "prompts/get", ref)
        case {"type": "ref/resource", "uri": str(uri)}:
            templates = catalog["functions"]["resourceTemplates"]
            template = _find_equal(templates, uri)
            if template:
                return Target("resourceTemplates", template, templates[template])
            return find(catalog, "resources/read", ref)
    message = 'params.ref must be {"type": "ref/prompt", "name": …} or {"type": "ref/resource", "uri": …}'
    raise InvalidParams(message=message)


def _text_param(params: Params, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise InvalidParams(message=f"params.{name} must be a string")
    return value


def asks_for_form(catalog: Catalog, method: str, params: Params) -> bool:
    """Tell whether a request reads the toolkit's form. Each function has the form if one of its tools asks its user."""
    return method == "resources/read" and params.get("uri") == APP_FORM_URI and bool(catalog.get("asks"))


def asks_for_skill(method: str, params: Params) -> bool:
    """Tell whether a request is about skills, or may read a file of one."""
    uri = params.get("uri")
    is_read = method == "resources/read" and isinstance(uri, str) and uri.startswith(SKILL_SCHEME)
    return is_read or method in SKILL_METHODS


def form_result(server: Implementation) -> Result:
    """Write the answer to `resources/read` of the toolkit's form, an app that shows questions (MCP Apps)."""
    # only hosts of apps read it
    from mcp_functions.apps import form

    return Result(complete(form.contents(), server))


def name_of(catalog: Catalog, target: Target) -> str:
    """Return the name of a handler. The log has this name, because the URI of a request may contain private values."""
    for entry in catalog[target.list_name]:
        if key_of(entry) == target.key:
            return str(entry["name"])
    return target.key  # UNLISTED_KEY, which no entry has


def header_arguments(catalog: Catalog, name: object) -> HeaderParameters:
    """Find the arguments of one tool that clients must repeat in `Mcp-Param-*` headers."""
    for entry in catalog["tools"]:
        if entry["name"] == name:
            return header_parameters.find(entry["inputSchema"])
    return {}


def check_headers(declared: HeaderParameters, params: Params, received: Mapping[str, str]) -> None:
    """Refuse a call whose `Mcp-Param-*` headers differ from its arguments; see `header_arguments` for `declared`."""
    arguments = params.get("arguments")
    # The function refuses a call later whose arguments are no object.
    header_parameters.check(declared, arguments if isinstance(arguments, dict) else {}, received)


def header_names(catalog: Catalog) -> list[str]:
    """List the `Mcp-Param-*` headers of all tools."""
    return sorted({name for entry in catalog["tools"] for name in header_parameters.find(entry["inputSchema"])})
