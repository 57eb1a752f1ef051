"""What a server offers, as data: the lists, `server/discover`, and which function answers a name.

The front door reads it from catalog.json; a handler's own Lambda makes one of its handlers. Both answer from it alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.protocol import headers, uri_templates
from mcp_functions.protocol.constants import CALLS, EXTENSION_TASKS, LISTS, SUPPORTED_VERSIONS, TASKS
from mcp_functions.protocol.errors import InvalidParams, MethodNotFound, ResourceNotFound, UnknownName, UnknownTask
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import Result, complete

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.handlers import Handler
    from mcp_functions.protocol.headers import HeaderParameters
    from mcp_functions.settings import Settings

# kind of handler -> the list it stands in
KINDS = {"tool": "tools", "prompt": "prompts", "resource": "resources", "resource_template": "resourceTemplates"}
CAPABILITIES = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}
REFERENCES = {"ref/prompt": ("name", "prompts/get"), "ref/resource": ("uri", "resources/read")}
EXTRAS = ("completions", "logging")


def of(handlers: Iterable[Handler[..., Any]], function: str = "") -> dict[str, Any]:
    """Describe handlers that live in one function.

    Args:
        handlers: tools, prompts, resources and templates.
        function: the folder they live in.

    Raises:
        ValueError: two of them have the same name.

    """
    found = _empty()
    for handler in handlers:
        listed = KINDS[handler.kind]
        if handler.key in found["functions"][listed]:
            message = f"two {listed} named {handler.key!r}: names are unique"
            raise ValueError(message)
        found[listed].append(handler.describe())
        found["functions"][listed][handler.key] = function
        found["completions"] |= bool(getattr(handler, "completes", ()))
        found["logging"] |= handler.logs
        _add_scopes(found, handler.scopes)
        _add_tasks(found, [function] if handler.task else ())
    return _sorted(found)


def merge(catalogs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Put the catalogs of several functions into one.

    Raises:
        ValueError: two functions offer the same name.

    """
    merged = _empty()
    for catalog in catalogs:
        for listed in KINDS.values():
            if twice := sorted(set(merged["functions"][listed]) & set(catalog["functions"][listed])):
                first, second = merged["functions"][listed][twice[0]], catalog["functions"][listed][twice[0]]
                message = f"two {listed} named {twice[0]!r}, in {first} and in {second}: names are unique"
                raise ValueError(message)
            merged[listed] += catalog[listed]
            merged["functions"][listed] |= catalog["functions"][listed]
        for extra in EXTRAS:
            merged[extra] |= catalog[extra]
        _add_scopes(merged, catalog.get("scopes", ()))
        _add_tasks(merged, catalog.get("tasks", ()))
    return _sorted(merged)


def discover(
    catalog: Mapping[str, Any],
    cache: Mapping[str, Any],
    instructions: str | None = None,
    *,
    dialects: Iterable[str] = (),
) -> dict[str, Any]:
    """Answer `server/discover`: "servers MUST implement server/discover" (server/discover)."""
    # Neither `listChanged` nor `subscribe`: nothing on Lambda lives long enough to tell.
    capabilities: dict[str, Any] = {CAPABILITIES[listed]: {} for listed in KINDS.values() if catalog[listed]}
    capabilities |= {extra: {} for extra in EXTRAS if catalog[extra]}
    if catalog.get("tasks"):
        capabilities["extensions"] = {EXTENSION_TASKS: {}}
    if spoken := {name: dict[str, Any]() for name in dialects}:
        capabilities["experimental"] = spoken
    more = {"instructions": instructions} if instructions else {}
    return {"supportedVersions": list(SUPPORTED_VERSIONS), "capabilities": capabilities, **more, **cache}


def page(
    catalog: Mapping[str, Any], method: str, params: Mapping[str, Any], cache: Mapping[str, Any], size: int
) -> dict[str, Any]:
    """Answer one page of one of the four lists (server/utilities/pagination).

    Args:
        catalog: what is offered.
        method: one of `LISTS`.
        params: of the request; `cursor` is one that this catalog gave out, or absent.
        cache: `ttlMs` and `cacheScope`, the same on every page.
        size: entries on a page.

    Raises:
        MethodNotFound: nothing of that kind is offered, so the capability was not advertised.
        UnknownName: a cursor that the current catalog does not give out: "Invalid cursors SHOULD result in … -32602".

    """
    listed = LISTS[method]
    _check_advertised(catalog, CAPABILITIES[listed])
    entries = catalog[listed]
    starts = {_cursor(entries, start): start for start in range(size, len(entries), size)}
    start = 0
    if "cursor" in params:
        if not isinstance(params["cursor"], str) or params["cursor"] not in starts:
            message = "Unknown cursor"
            raise UnknownName(message)
        start = starts[params["cursor"]]
    following = {"nextCursor": _cursor(entries, start + size)} if start + size < len(entries) else {}
    return {listed: entries[start : start + size], **following, **cache}


class Lists:
    """`server/discover` and the lists; what has no cursor is written once."""

    def __init__(self, catalog: Mapping[str, Any], settings: Settings, instructions: str | None = None) -> None:
        """Hold what is offered, and what a model should know about the server as a whole."""
        self._catalog, self._settings, self._instructions = catalog, settings, instructions
        self._written: dict[str, Result] = {}  # by method

    def answer(self, method: str, params: Mapping[str, Any]) -> Result:
        """Answer `server/discover` or a list.

        Raises:
            MethodNotFound: it is neither, or nothing of that kind is offered.
            UnknownName: a cursor that the current catalog does not give out.

        """
        if "cursor" not in params and method in self._written:
            return self._written[method]
        result = complete(self._result(method, params), self._settings.server_info)
        answer = Result(result, text=dumps(result))
        if "cursor" not in params:
            self._written[method] = answer
        return answer

    def _result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "server/discover":
            settings = self._settings
            return discover(self._catalog, settings.cache, self._instructions, dialects=settings.dialects)
        if method in LISTS:
            return page(self._catalog, method, params, self._settings.cache, self._settings.page_size)
        raise MethodNotFound


def declared(catalog: Mapping[str, Any], name: object) -> HeaderParameters:
    """Find the arguments of one tool that clients repeat in headers."""
    schemas = (entry["inputSchema"] for entry in catalog["tools"] if entry["name"] == name)
    return headers.declared(next(schemas, {}))


def check_parameters(found: HeaderParameters, params: Mapping[str, Any], received: Mapping[str, str]) -> None:
    """Check the `Mcp-Param-*` headers of a call, against what `declared` found in the schema of its tool.

    Raises:
        HeaderMismatch: one of them does not say what its argument says.

    """
    if found:
        arguments = params.get("arguments")
        headers.check_parameters(found, arguments if isinstance(arguments, dict) else {}, received)


def parameters(catalog: Mapping[str, Any]) -> list[str]:
    """List the `Mcp-Param-*` headers of all tools."""
    return sorted({name for entry in catalog["tools"] for name in headers.declared(entry["inputSchema"])})


def function_of(catalog: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> str:
    """Say which function answers a call.

    Raises:
        MethodNotFound: nothing of that kind is offered, so the capability was not advertised.
        InvalidParams: the params do not name anything.
        UnknownName: nothing here has that name.

    """
    _check_advertised(catalog, method.partition("/")[0])
    name = params.get(CALLS[method])
    if not isinstance(name, str):
        message = f"params.{CALLS[method]} must be a string"
        raise InvalidParams(message)
    functions: Mapping[str, Mapping[str, str]] = catalog["functions"]
    if method == "resources/read":
        return _resource(functions, name)
    listed = "tools" if method == "tools/call" else "prompts"
    if name not in functions[listed]:
        message = f"Unknown {listed.removesuffix('s')}"
        raise UnknownName(message)
    return functions[listed][name]


def name_of(catalog: Mapping[str, Any], method: str, called: str) -> str:
    """Name the handler that answers a call: a resource by its name too, not by the URI that a client wrote.

    Args:
        catalog: what is offered.
        method: one of `CALLS`.
        called: a name or URI that `function_of` has found in the catalog, or a template.

    """
    if method != "resources/read":
        return called
    for entry in catalog["resources"]:
        if entry["uri"] == called:
            return str(entry["name"])
    for entry in catalog["resourceTemplates"]:
        if entry["uriTemplate"] == called or uri_templates.match(entry["uriTemplate"], called) is not None:
            return str(entry["name"])
    return observability.UNKNOWN


def keeping(catalog: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> str:
    """Say which function keeps a task: it stands in the task's id, before the dot, and must be one of the catalog's.

    Raises:
        MethodNotFound: nothing here makes tasks, so the extension was not advertised.
        InvalidParams: the params do not name a task.
        UnknownTask: no function of that name makes tasks.

    """
    functions: list[str] = catalog.get("tasks", [])
    if not functions:
        raise MethodNotFound
    task_id = params.get(TASKS[method])
    if not isinstance(task_id, str):
        message = f"params.{TASKS[method]} must be a string"
        raise InvalidParams(message)
    function = task_id.partition(".")[0]
    if function not in functions:
        raise UnknownTask
    return function


def referred(params: Mapping[str, Any]) -> tuple[str, str]:
    """Read the `ref` of a `completion/complete`: the method that would call it, and its name.

    Raises:
        InvalidParams: it is neither a prompt nor a resource.

    """
    match params.get("ref"):
        case {"type": str(type_), **ref} if type_ in REFERENCES:
            key, method = REFERENCES[type_]
            if isinstance(name := ref.get(key), str):
                return method, name
    message = 'params.ref must be {"type": "ref/prompt", "name": …} or {"type": "ref/resource", "uri": …}'
    raise InvalidParams(message)


def completing(catalog: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """Say which function completes an argument; a resource is referred to by its template or by a URI.

    Raises:
        MethodNotFound: nothing here completes anything, so the capability was not advertised.
        InvalidParams: the reference has no shape, or nothing here has that name.

    """
    if not catalog["completions"]:
        raise MethodNotFound
    method, name = referred(params)
    templates: Mapping[str, str] = catalog["functions"]["resourceTemplates"]
    if method == "resources/read" and name in templates:
        return templates[name]
    return function_of(catalog, method, {CALLS[method]: name})


def _add_scopes(catalog: dict[str, Any], scopes: Iterable[str]) -> None:
    if together := sorted({*catalog.get("scopes", ()), *scopes}):
        catalog["scopes"] = together  # what clients may have to ask for; who needs which, the functions know


def _add_tasks(catalog: dict[str, Any], functions: Iterable[str]) -> None:
    if together := sorted({*catalog.get("tasks", ()), *functions}):
        catalog["tasks"] = together  # the functions whose calls may become tasks, and which then keep them


def _check_advertised(catalog: Mapping[str, Any], capability: str) -> None:
    if not any(catalog[listed] for listed in KINDS.values() if CAPABILITIES[listed] == capability):
        raise MethodNotFound


def _resource(functions: Mapping[str, Mapping[str, str]], uri: str) -> str:
    if uri in functions["resources"]:
        return functions["resources"][uri]
    for template, function in functions["resourceTemplates"].items():
        if uri_templates.match(template, uri) is not None:
            return function
    raise ResourceNotFound(uri)


def _empty() -> dict[str, Any]:
    lists: dict[str, Any] = {listed: [] for listed in KINDS.values()}
    return {**lists, "functions": {listed: {} for listed in KINDS.values()}, **dict.fromkeys(EXTRAS, False)}


def _sorted(catalog: dict[str, Any]) -> dict[str, Any]:
    # "SHOULD return tools in a deterministic order", so that a client's cached prompt stays valid
    for listed in KINDS.values():
        catalog[listed].sort(key=lambda entry: str(entry["name"]))
        catalog["functions"][listed] = dict(sorted(catalog["functions"][listed].items()))
    return catalog


def _cursor(entries: list[dict[str, Any]], start: int) -> str:
    # Of the entries themselves: a cursor from before a deployment that changed them is unknown, not off by some.
    import hashlib  # noqa: PLC0415 - most lists have one page

    names = hashlib.sha256(dumps([entry["name"] for entry in entries]).encode()).hexdigest()
    return f"{names[:12]}-{start}"
