"""Checks that every function is deployed, listed, and reached by its own route behind the authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.local.checks.invocations import API_ROLE
from mcp_functions.local.checks.project import pascal
from mcp_functions.local.checks.statements import substitution
from mcp_functions.local.lambdas.functions import FRONT_DOOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.checks.project import Project

AUTHORIZER = {
    "AuthorizationType": {"Fn::If": ["UsesIam", "AWS_IAM", {"Fn::If": ["UsesJwt", "JWT", "NONE"]}]},
    "AuthorizerId": {"Fn::If": ["UsesJwt", {"Ref": "JwtAuthorizer"}, {"Ref": "AWS::NoValue"}]},
}
METADATA = "/.well-known/oauth-protected-resource"
OPEN = {  # route -> the condition under which it needs no authorization, because its answer is public
    "OPTIONS /mcp": "HasOrigins",
    f"ANY {METADATA}": "UsesJwt",
    f"ANY {METADATA}/mcp": "UsesJwt",
}


def every_folder_is_deployed(project: Project) -> Iterator[str]:
    """Check that every folder of functions/ has a block in template.yaml, and every block a folder."""
    for folder in sorted(project.folders - project.functions.keys()):
        yield (
            f"functions/{folder} has no block in template.yaml: add {pascal(folder)} with CodeUri functions/{folder}/,"
            f" its Integration and its Route, and name it in the front door's policy"
        )
    for folder in sorted(project.functions.keys() - project.folders):
        yield f"template.yaml deploys functions/{folder}, but there is no functions/{folder}/app.py"
    for folder, (logical_id, properties) in project.functions.items():
        name = properties.get("FunctionName")
        if name != {"Fn::Sub": f"${{AWS::StackName}}-{folder}"}:
            yield f"{logical_id} must have FunctionName: !Sub ${{AWS::StackName}}-{folder}, not {name}"
        if logical_id != pascal(folder):
            yield f"functions/{folder} is {logical_id} in template.yaml: call it {pascal(folder)}"


def every_folder_is_listed(project: Project) -> Iterator[str]:
    """Check that catalog.json lists every folder, and no other."""
    listed = {folder for names in project.catalog.get("functions", {}).values() for folder in names.values()}
    for folder in sorted(project.folders - listed - {FRONT_DOOR}):
        yield f"functions/{folder} offers nothing in functions/mcp/catalog.json: run make catalog"
    for folder in sorted(listed - project.folders):
        yield f"functions/mcp/catalog.json lists functions/{folder}, which is gone: run make catalog"


def every_function_has_its_route_and_every_route_its_authorizer(project: Project) -> Iterator[str]:
    """Check that every function answers at its own path, and that no path under /mcp is open."""
    routes = {name: route for name, route in project.of_type("AWS::ApiGatewayV2::Route").items() if _is_ours(route)}
    expected = {_route_key(folder): block.logical_id for folder, block in project.functions.items()}
    for logical_id, route in routes.items():
        key = route["RouteKey"]
        if key in OPEN:
            continue
        if {name: route.get(name) for name in AUTHORIZER} != AUTHORIZER:
            yield f"{logical_id} must have AuthorizationType and AuthorizerId as the other routes do: it is open"
        if key not in expected:
            yield f"{logical_id} routes {key} to no function of functions/"
    targets = {route["RouteKey"]: route.get("Target") for route in routes.values()}
    for key, logical_id in expected.items():
        if key not in targets:
            yield f"{logical_id} has no route: add {logical_id}Route with RouteKey: {key}"
        elif targets[key] != _integration(logical_id):
            yield f"the route {key} must go to {logical_id}Integration"
        yield from _integration_differences(project, logical_id)


def public_routes_exist_and_are_conditional(project: Project) -> Iterator[str]:
    """Check that preflight requests and metadata need no authorization, and exist only under their conditions."""
    if project.front_door is None:
        return
    logical_id = project.front_door.logical_id
    resources = project.template["Resources"].values()
    routes = {one["Properties"]["RouteKey"]: one for one in resources if one["Type"] == "AWS::ApiGatewayV2::Route"}
    for key, condition in OPEN.items():
        if key not in routes:
            yield f"{logical_id} has no route {key}: clients cannot discover how to connect"
            continue
        properties = routes[key]["Properties"]
        if routes[key].get("Condition") != condition or properties.get("AuthorizationType") != "NONE":
            yield f"the route {key} must have Condition: {condition} and AuthorizationType: NONE"
        if properties.get("Target") != _integration(logical_id):
            yield f"the route {key} must go to {logical_id}Integration"


def _integration(logical_id: str) -> dict[str, str]:
    return {"Fn::Sub": f"integrations/${{{logical_id}Integration}}"}


def _integration_differences(project: Project, logical_id: str) -> Iterator[str]:
    integration = project.of_type("AWS::ApiGatewayV2::Integration").get(f"{logical_id}Integration", {})
    ending = f":function:${{{logical_id}}}${{Qualifier}}"
    if not str(substitution(integration.get("IntegrationUri"))).endswith(ending):
        yield f"{logical_id}Integration must have an IntegrationUri that ends in {ending}"
    if integration.get("PayloadFormatVersion") != "2.0":
        yield f'{logical_id}Integration must have PayloadFormatVersion: "2.0"'
    if integration.get("CredentialsArn") != {"Fn::GetAtt": f"{API_ROLE}.Arn"}:
        yield f"{logical_id}Integration must have CredentialsArn: !GetAtt {API_ROLE}.Arn"


def _is_ours(route: dict[str, Any]) -> bool:
    path = str(route.get("RouteKey")).rpartition(" ")[2]
    return path == "/mcp" or path.startswith("/mcp/")


def _route_key(folder: str) -> str:
    return "ANY /mcp" if folder == FRONT_DOOR else f"ANY /mcp/{folder}"
