"""Checks that every function is deployed, listed, and reached by its own route behind the authorizer.

MCP_AUTH_MODE says how the API knows who calls: by nothing, by IAM, by a JWT, or by a JWT of functions/oauth, the
sign-in front. The API and the functions must agree on it.
"""

from collections.abc import Iterator

from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions_harness import catalog, template
from mcp_functions_harness.api_gateway.api import METADATA_OF_FUNCTION, METADATA_PATHS, SIGN_IN_PATHS
from mcp_functions_harness.checks import iam
from mcp_functions_harness.checks.project import Block, Project, pascal
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, SIGN_IN

API = {"Ref": "HttpApi"}  # the API of the project, by its logical id
ROUTE = "HttpApi"  # the type of an event that is a route (AWS SAM, "EventSource")
MOVE = "a plain SAM function outside functions/ takes events, without a route (docs/own-resources.md)"
NO_AUTHORIZER = {"Authorizer": "NONE"}
PREFLIGHT = {"OPTIONS /mcp"}
DOCUMENTS = {f"ANY {path}" for path in METADATA_PATHS}
DOCUMENT_OF_FUNCTION = {f"ANY {METADATA_OF_FUNCTION}"}
SIGN_IN_ROUTES = {f"ANY {path}" for path in SIGN_IN_PATHS}
# The routes that a function must have. Every other function has one route.
NEEDED = {FRONT_DOOR: {"ANY /mcp"}, SIGN_IN: SIGN_IN_ROUTES}
# The routes that may be without authorization, because their answers are public, by the function's folder.
MAY_BE_OPEN = {FRONT_DOOR: PREFLIGHT | DOCUMENTS | DOCUMENT_OF_FUNCTION, SIGN_IN: SIGN_IN_ROUTES}
# MCP_AUTH_MODE -> those that the front door must have. With "none", every route is open.
OPEN = {"iam": PREFLIGHT, "jwt": PREFLIGHT | DOCUMENTS, "oauth": PREFLIGHT | DOCUMENTS | DOCUMENT_OF_FUNCTION}


def every_folder_is_deployed(project: Project) -> Iterator[str]:
    """Check that every folder of functions/ has a block with the right names, and every block has a folder.

    The sign-in front may lack a block: only mode oauth needs one.
    """
    for block in project.partial:
        line = template.line_of(project.root / template.FILE, block.logical_id)
        missing = ", ".join(project.missing_properties(block))
        remedy = f"mcp-functions block --write {block.folder}"
        yield f"template.yaml:{line}: the block {block.logical_id} lacks {missing}: {remedy}"
    deployed = project.functions.keys() | {block.folder for block in project.partial}
    for folder in sorted(project.folders - project.plain - deployed - {SIGN_IN}):
        block_text = f"{pascal(folder)} with CodeUri functions/{folder}/ and an event of type HttpApi"
        yield f"functions/{folder} has no block in template.yaml: add {block_text}"
    for folder in sorted(project.functions.keys() - project.folders):
        yield f"template.yaml deploys functions/{folder}, but there is no functions/{folder}/app.py"
    for folder, block in project.functions.items():
        name = block.properties.get("FunctionName")
        if name != {"Fn::Sub": f"${{AWS::StackName}}_{folder}"}:
            yield f"{block.logical_id} must have FunctionName: !Sub ${{AWS::StackName}}_{folder}, not {name}"
        if block.logical_id != pascal(folder):
            yield f"functions/{folder} is {block.logical_id} in template.yaml: call it {pascal(folder)}"


def every_function_is_mcp_and_takes_http_alone(project: Project) -> Iterator[str]:
    """Check that functions/ has no function of a schedule or a queue, which belongs into a folder of its own."""
    for folder in sorted(project.plain):
        yield f"functions/{folder} has no tool, prompt or resource: {MOVE}"
    for block in project.functions.values():
        for name, kind in _other_events(block).items():
            given = f"{block.logical_id} gets events of type {kind} ({name})"
            yield f"{given}, and an MCP function takes HTTP alone: {MOVE}"


def every_folder_is_listed(project: Project) -> Iterator[str]:
    """Check that catalog.json lists every folder, and no other."""
    listed_folders = {folder for names in catalog.folders(project.catalog).values() for folder in names.values()}
    for folder in sorted(project.folders - project.plain - listed_folders - {FRONT_DOOR, SIGN_IN}):
        yield f"functions/{folder} offers nothing in functions/mcp/catalog.json: run make catalog"
    for folder in sorted(listed_folders - project.folders):
        yield f"functions/mcp/catalog.json lists functions/{folder}, which is gone: run make catalog"


def every_function_has_its_route_behind_the_authorizer(project: Project) -> Iterator[str]:
    """Check that every function answers at its own path, unless it is hidden, and that no other path is open."""
    for folder, block in project.functions.items():
        routes = _routes(block)
        if not routes and _other_events(block):
            continue  # another check says where it belongs
        needed = NEEDED.get(folder, {f"ANY /mcp/{folder}"})
        if folder in project.hidden:
            for key in sorted(routes):
                reason = f"its path gives {folder} away to callers without its scopes"
                yield f"remove the route {key} of {block.logical_id}: {reason}, from whom it is hidden"
            needed = set()
        for key in sorted(needed - routes.keys()):
            yield f"{block.logical_id} has no route: add an event of type HttpApi with {key}"
        for key, route in routes.items():
            if route.get("ApiId") != API:
                yield f"the route {key} of {block.logical_id} must have ApiId: !Ref HttpApi"
            if "Auth" in route and key not in MAY_BE_OPEN.get(folder, ()):
                route_name = f"the route {key} of {block.logical_id}"
                yield f"{route_name} must have no Auth of its own: the API's decides who may call"


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
    needed = {FRONT_DOOR: OPEN.get(mode, set()), SIGN_IN: SIGN_IN_ROUTES}
    for folder in needed.keys() & project.functions.keys():
        block = project.functions[folder]
        open_routes = {key for key, route in _routes(block).items() if route.get("Auth") == NO_AUTHORIZER}
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


def settings_of_routes_name_routes_that_exist(project: Project) -> Iterator[str]:
    """Check RouteSettings of the API: without its route, CloudFormation refuses a deployment (SAM, issue 1939)."""
    keys = {key for block in project.blocks for key in _routes(block)}
    for logical_id, api in project.of_type("AWS::Serverless::HttpApi").items():
        for key in sorted(set(api.get("RouteSettings") or {}) - keys):
            yield f"RouteSettings of {logical_id} names the route {key}, which no function has: remove it there"


def clients_of_a_user_pool_wait_for_its_scopes(project: Project) -> Iterator[str]:
    """Check that Cognito knows the scopes of a resource server before a client names them."""
    servers = project.of_type("AWS::Cognito::UserPoolResourceServer")
    for logical_id, client in project.of_type("AWS::Cognito::UserPoolClient").items():
        awaited = iam.as_list(project.template["Resources"][logical_id].get("DependsOn", []))
        for server, properties in servers.items():
            is_of_pool = properties.get("UserPoolId") == client.get("UserPoolId")
            if is_of_pool and server not in awaited:
                yield f"{logical_id} must have DependsOn: {server}, because its scopes may be those of {server}"


def _enforced_mode(auth: JSONObject) -> str:
    """Return the mode that an API enforces, by its property Auth; of an unknown authorizer, its name."""
    default = auth.get("DefaultAuthorizer")
    if default is None:
        return "none"
    if default == "AWS_IAM" and auth.get("EnableIamAuthorizer") is True:
        return "iam"
    if "JwtConfiguration" in auth.get("Authorizers", {}).get(default, {}):
        return "jwt"
    return str(default)


def _other_events(block: Block) -> dict[str, str]:
    """Return the types of a function's events that are no routes, by their names."""
    events = (block.properties.get("Events") or {}).items()
    return {name: event["Type"] for name, event in events if event and event["Type"] != ROUTE}


def _routes(block: Block) -> dict[str, JSONObject]:
    """Return the routes of a function by their keys, such as "ANY /mcp/add"."""
    routes: dict[str, JSONObject] = {}
    for event in (block.properties.get("Events") or {}).values():
        if event and event["Type"] == ROUTE:
            route = event.get("Properties", {})
            routes[f"{route.get('Method', 'ANY')} {route.get('Path')}"] = route
    return routes
