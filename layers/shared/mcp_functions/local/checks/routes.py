"""Checks that every function is deployed, listed, and reached by its own route behind the authorizer.

MCP_AUTH_MODE says how the API knows who calls: by nothing, by IAM, by a JWT, or by a JWT of functions/oauth, the
sign-in front. The API and the functions must agree on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.local import template
from mcp_functions.local.api_gateway.api import METADATA_PATHS, SIGN_IN_PATHS
from mcp_functions.local.checks.project import pascal
from mcp_functions.local.lambdas.functions import FRONT_DOOR, SIGN_IN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.checks.project import Project

API = {"Ref": "HttpApi"}  # the API of the project, by its logical id
ROUTE = "HttpApi"  # the type of an event that is a route (AWS SAM, "EventSource")
NO_AUTHORIZER = {"Authorizer": "NONE"}
PREFLIGHT = frozenset({"OPTIONS /mcp"})
DOCUMENTS = frozenset(f"ANY {path}" for path in METADATA_PATHS)
# MCP_AUTH_MODE -> the routes without authorization; their answers are public. With "none", every route is open.
OPEN = {
    "iam": PREFLIGHT,
    "jwt": PREFLIGHT | DOCUMENTS,
    "oauth": PREFLIGHT | DOCUMENTS,
    "none": frozenset[str](),
}
SIGN_IN_ROUTES = frozenset(f"ANY {path}" for path in SIGN_IN_PATHS)

# folder -> the routes that it must have, and the routes that may be without authorization; other folders have one route
ROUTES = {FRONT_DOOR: (frozenset({"ANY /mcp"}), OPEN["jwt"]), SIGN_IN: (SIGN_IN_ROUTES, SIGN_IN_ROUTES)}


def every_folder_is_deployed(project: Project) -> Iterator[str]:
    """Check that every folder of functions/ has a block with the right names, and every block has a folder.

    The sign-in front may lack a block: only mode oauth needs one.
    """
    for folder, block in project.partial.items():
        line = template.line_of(project.root / template.FILE, block.logical_id)
        missing = ", ".join(project.missing_properties(folder, block))
        yield (
            f"template.yaml:{line}: the block {block.logical_id} lacks {missing}:"
            f" replace it by what `mcp-functions block {folder}` prints"
        )
    for folder in sorted(project.folders - project.functions.keys() - project.partial.keys() - {SIGN_IN}):
        yield (
            f"functions/{folder} has no block in template.yaml: add {pascal(folder)} with CodeUri functions/{folder}/"
            f" and an event of type HttpApi"
        )
    for folder in sorted(project.functions.keys() - project.folders):
        yield f"template.yaml deploys functions/{folder}, but there is no functions/{folder}/app.py"
    for folder, (logical_id, properties) in project.functions.items():
        name = properties.get("FunctionName")
        if name != {"Fn::Sub": f"${{AWS::StackName}}_{folder}"}:
            yield f"{logical_id} must have FunctionName: !Sub ${{AWS::StackName}}_{folder}, not {name}"
        if logical_id != pascal(folder):
            yield f"functions/{folder} is {logical_id} in template.yaml: call it {pascal(folder)}"


def every_folder_is_listed(project: Project) -> Iterator[str]:
    """Check that catalog.json lists every folder, and no other."""
    listed_folders = {folder for names in project.catalog.get("functions", {}).values() for folder in names.values()}
    for folder in sorted(project.folders - listed_folders - {FRONT_DOOR, SIGN_IN}):
        yield f"functions/{folder} offers nothing in functions/mcp/catalog.json: run make catalog"
    for folder in sorted(listed_folders - project.folders):
        yield f"functions/mcp/catalog.json lists functions/{folder}, which is gone: run make catalog"


def every_function_has_its_route_behind_the_authorizer(project: Project) -> Iterator[str]:
    """Check that every function answers at its own path, and that no other path of it is open."""
    for folder, (logical_id, properties) in project.functions.items():
        routes = _routes(properties)
        needed, may_be_open = ROUTES.get(folder, (frozenset({f"ANY /mcp/{folder}"}), frozenset[str]()))
        for key in sorted(needed - routes.keys()):
            yield f"{logical_id} has no route: add an event of type HttpApi with {key}"
        for key, route in routes.items():
            if route.get("ApiId") != API:
                yield f"the route {key} of {logical_id} must have ApiId: !Ref HttpApi"
            if "Auth" in route and key not in may_be_open:
                yield f"the route {key} of {logical_id} must have no Auth of its own: the API's decides who may call"


def the_api_enforces_what_functions_believe(project: Project) -> Iterator[str]:
    """Check that the API's authorizer, the open routes and MCP_AUTH_MODE are those of one mode."""
    mode = str(project.variable("MCP_AUTH_MODE"))
    api = project.of_type("AWS::Serverless::HttpApi").get(API["Ref"], {})
    enforced = _enforced_mode(api.get("Auth") or {})
    needed_of_api = "jwt" if mode == "oauth" else mode  # the sign-in front issues JWTs
    if enforced != needed_of_api:
        yield f"the API enforces {enforced}, but functions believe MCP_AUTH_MODE {mode}: run mcp-functions auth {mode}"
    has_front = SIGN_IN in project.functions
    needs_front = mode == "oauth"
    if has_front != needs_front:
        yield f"the sign-in front is for MCP_AUTH_MODE oauth alone, and needed there: run mcp-functions auth {mode}"
    for name, block in project.functions.items():
        if block.variable("MCP_AUTH_MODE") is not None:
            yield f"functions/{name} must not set MCP_AUTH_MODE: the API decides for all"
    needed = {FRONT_DOOR: OPEN.get(mode, frozenset[str]()), SIGN_IN: SIGN_IN_ROUTES}
    for folder in needed.keys() & project.functions.keys():
        block = project.functions[folder]
        open_routes = {key for key, route in _routes(block.properties).items() if route.get("Auth") == NO_AUTHORIZER}
        if open_routes != needed[folder]:
            yield f"{block.logical_id} has other open routes than {mode} needs: run mcp-functions auth {mode}"


def the_sign_in_front_grants_the_scopes_that_handlers_need(project: Project) -> Iterator[str]:
    """Check MCP_SCOPES_SUPPORTED in mode oauth: the front refuses every other scope (docs/identity.md)."""
    granted = project.variable("MCP_SCOPES_SUPPORTED")
    if SIGN_IN not in project.functions or not isinstance(granted, str):
        return
    needed = set(project.catalog.get("scopes", ()))
    missing = sorted(needed - set(granted.replace(",", " ").split()))
    if missing:
        yield f"the sign-in front grants no scope {', '.join(missing)}: add it to MCP_SCOPES_SUPPORTED in Globals"


def _enforced_mode(auth: dict[str, Any]) -> str:
    """Return the mode that an API enforces, by its property Auth; of an unknown authorizer, its name."""
    default = auth.get("DefaultAuthorizer")
    if default is None:
        return "none"
    if default == "AWS_IAM" and auth.get("EnableIamAuthorizer") is True:
        return "iam"
    if "JwtConfiguration" in auth.get("Authorizers", {}).get(default, {}):
        return "jwt"
    return str(default)


def _routes(properties: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the routes of a function by their keys, such as "ANY /mcp/add"."""
    routes: dict[str, dict[str, Any]] = {}
    for event in (properties.get("Events") or {}).values():
        if event and event["Type"] == ROUTE:
            route = event.get("Properties", {})
            routes[f"{route.get('Method', 'ANY')} {route.get('Path')}"] = route
    return routes
