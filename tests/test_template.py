"""functions/, template.yaml and catalog.json say the same, and nothing in the template may more than it needs.

A claim is a function from the project to complaints, each a line that says what is missing where. The project as it is
earns none; the same project with a slip in it earns the line that names the slip.
"""

from __future__ import annotations

import ast
import importlib
import sys
import tomllib
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from packaging.requirements import Requirement

from mcp_functions import settings
from mcp_functions.local import catalog as catalogs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
FUNCTIONS = ROOT / "functions"
FRONT_DOOR = "mcp"
DEVELOPERS_ONLY = {"local", "testing.py"}  # in the package, not in the layer
BROUGHT_BY_LAMBDA = {"boto3", "botocore", "snapshot_restore_py"}
MAX_LINES = 40
API_GATEWAY_SECONDS = 30

AUTHORIZER = {
    "AuthorizationType": {"Fn::If": ["UsesIam", "AWS_IAM", {"Fn::If": ["UsesJwt", "JWT", "NONE"]}]},
    "AuthorizerId": {"Fn::If": ["UsesJwt", {"Ref": "JwtAuthorizer"}, {"Ref": "AWS::NoValue"}]},
}
KEY = {"Fn::GetAtt": "RequestStateKey.Arn"}


@dataclass(frozen=True)
class Project:
    """What has to agree."""

    folders: frozenset[str]  # of functions/ that hold an app.py
    asking: frozenset[str]  # those with a handler that can ask
    catalog: dict[str, Any]
    template: dict[str, Any]

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Logical id -> properties, of the resources of one type."""
        found = self.template["Resources"].items()
        return {name: resource["Properties"] for name, resource in found if resource["Type"] == kind}

    @property
    def functions(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Folder -> (logical id, properties)."""
        blocks = self.of_type("AWS::Serverless::Function").items()
        return {Path(block["CodeUri"]).name: (logical_id, block) for logical_id, block in blocks}


class TemplateLoader(yaml.SafeLoader):
    """YAML with CloudFormation's short functions: `!Ref X` is {"Ref": "X"}, `!Sub X` is {"Fn::Sub": "X"}."""


def _short_function(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    name = tag if tag in ("Ref", "Condition") else f"Fn::{tag}"
    match node:
        case yaml.ScalarNode():
            return {name: loader.construct_scalar(node)}
        case yaml.SequenceNode():
            return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)} if isinstance(node, yaml.MappingNode) else {}


TemplateLoader.add_multi_constructor("!", _short_function)


def as_it_is() -> Project:
    folders = frozenset(path.parent.name for path in FUNCTIONS.glob("*/app.py"))
    apps = {folder: importlib.import_module(f"functions.{folder}.app") for folder in folders}
    return Project(
        folders=folders,
        asking=frozenset(folder for folder, app in apps.items() if any(made.asks for made in app.handler.handlers)),
        catalog=catalogs.read(FUNCTIONS),
        template=yaml.load((ROOT / "template.yaml").read_text(encoding="utf-8"), TemplateLoader),  # noqa: S506 - a SafeLoader
    )


@pytest.fixture
def project() -> Project:
    return as_it_is()


# ---- Claims


def every_folder_is_deployed(project: Project) -> Iterator[str]:
    for folder in sorted(project.folders - project.functions.keys()):
        yield (
            f"functions/{folder} has no block in template.yaml: add {_pascal(folder)} with CodeUri functions/{folder}/,"
            f" its Integration, Route and Permission, and name it in the front door's policy"
        )
    for folder in sorted(project.functions.keys() - project.folders):
        yield f"template.yaml deploys functions/{folder}, but there is no functions/{folder}/app.py"
    for folder, (logical_id, block) in project.functions.items():
        if (name := block.get("FunctionName")) != {"Fn::Sub": f"${{AWS::StackName}}-{folder}"}:
            yield f"{logical_id} must have FunctionName: !Sub ${{AWS::StackName}}-{folder}, not {name}"
        if logical_id != _pascal(folder):
            yield f"functions/{folder} is {logical_id} in template.yaml: call it {_pascal(folder)}"


def every_folder_is_listed(project: Project) -> Iterator[str]:
    listed = {folder for names in project.catalog.get("functions", {}).values() for folder in names.values()}
    for folder in sorted(project.folders - listed - {FRONT_DOOR}):
        yield f"functions/{folder} offers nothing in functions/mcp/catalog.json: run make catalog"
    for folder in sorted(listed - project.folders):
        yield f"functions/mcp/catalog.json lists functions/{folder}, which is gone: run make catalog"


def a_function_may_seal_if_and_only_if_it_can_ask(project: Project) -> Iterator[str]:
    for folder, (logical_id, block) in sorted(project.functions.items()):
        sealing = [statement for statement in _statements(block) if any(map(_touches_keys, _actions(statement)))]
        keys = block.get("Environment", {}).get("Variables", {}).get("MCP_KMS_KEYS")
        if folder in project.asking:
            if sealing != [_may_seal_as(folder)]:
                yield f"functions/{folder} asks: {logical_id} needs exactly this statement: {_may_seal_as(folder)}"
            if keys != KEY:
                yield f"functions/{folder} asks: {logical_id} needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"
        else:
            if sealing:
                yield f"functions/{folder} never asks: {logical_id} must have no permission for KMS"
            if keys is not None:
                yield f"functions/{folder} never asks: {logical_id} must have no MCP_KMS_KEYS"


def the_front_door_may_invoke_the_others_and_nothing_else(project: Project) -> Iterator[str]:
    others = {block_id for folder, (block_id, _) in project.functions.items() if folder != FRONT_DOOR}
    front_door, block = project.functions[FRONT_DOOR]
    statements = _statements(block)
    if [_actions(statement) for statement in statements] != [["lambda:InvokeFunction"]]:
        yield f"{front_door} must have one statement, which allows lambda:InvokeFunction"
        return
    allowed = {str(resource.get("Fn::GetAtt")).removesuffix(".Arn") for resource in statements[0]["Resource"]}
    for block_id in sorted(others - allowed):
        yield f"{front_door} may not invoke {block_id}: add !GetAtt {block_id}.Arn to its policy"
    for block_id in sorted(allowed - others):
        yield f"{front_door} may invoke {block_id}, which is no handler: remove it from its policy"


def every_function_has_its_route_and_every_route_its_authorizer(project: Project) -> Iterator[str]:
    routes = project.of_type("AWS::ApiGatewayV2::Route")
    expected = {_route_key(folder): block_id for folder, (block_id, _) in project.functions.items()}
    for logical_id, route in routes.items():
        if {name: route.get(name) for name in AUTHORIZER} != AUTHORIZER:
            yield f"{logical_id} must carry AuthorizationType and AuthorizerId as the other routes do: it is open"
        if (key := route["RouteKey"]) not in expected:
            yield f"{logical_id} routes {key} to no function of functions/"
    for key, block_id in expected.items():
        route = next((found for found in routes.values() if found["RouteKey"] == key), {})
        if not route:
            yield f"{block_id} has no route: add {block_id}Route with RouteKey: {key}"
        elif route["Target"] != {"Fn::Sub": f"integrations/${{{block_id}Integration}}"}:
            yield f"the route {key} must go to {block_id}Integration"
        yield from _reaches(project, block_id, path=key.split()[1])


def _reaches(project: Project, block_id: str, path: str) -> Iterator[str]:
    integration = project.of_type("AWS::ApiGatewayV2::Integration").get(f"{block_id}Integration", {})
    if not str(integration.get("IntegrationUri", {}).get("Fn::Sub")).endswith(f":function:${{{block_id}}}"):
        yield f"{block_id}Integration must have an IntegrationUri that ends in :function:${{{block_id}}}"
    if integration.get("PayloadFormatVersion") != "2.0":
        yield f'{block_id}Integration must have PayloadFormatVersion: "2.0"'
    permission = project.of_type("AWS::Lambda::Permission").get(f"{block_id}Permission", {})
    if permission.get("FunctionName") != {"Ref": block_id}:
        yield f"{block_id}Permission must be there, for FunctionName: !Ref {block_id}"
    if not str(permission.get("SourceArn", {}).get("Fn::Sub")).endswith(f":${{HttpApi}}/*/*{path}"):
        yield f"{block_id}Permission must have a SourceArn, only of this API: it ends in :${{HttpApi}}/*/*{path}"


def functions_end_before_those_that_wait_for_them(project: Project) -> Iterator[str]:
    default = project.template["Globals"]["Function"]["Timeout"]
    seconds = {folder: block.get("Timeout", default) for folder, (_, block) in project.functions.items()}
    if seconds[FRONT_DOOR] >= API_GATEWAY_SECONDS:
        yield f"the front door's Timeout must be under API Gateway's {API_GATEWAY_SECONDS} s"
    for folder in sorted(project.functions.keys() - {FRONT_DOOR}):
        if seconds[folder] >= seconds[FRONT_DOOR]:
            yield f"functions/{folder}: Timeout {seconds[folder]} must be under the front door's {seconds[FRONT_DOOR]}"


CLAIMS = (
    every_folder_is_deployed,
    every_folder_is_listed,
    a_function_may_seal_if_and_only_if_it_can_ask,
    the_front_door_may_invoke_the_others_and_nothing_else,
    every_function_has_its_route_and_every_route_its_authorizer,
    functions_end_before_those_that_wait_for_them,
)


def _pascal(folder: str) -> str:
    return "".join(word.capitalize() for word in folder.replace("-", "_").split("_"))


def _route_key(folder: str) -> str:
    return "ANY /mcp" if folder == FRONT_DOOR else f"ANY /mcp/{folder}"


def _statements(block: dict[str, Any]) -> list[dict[str, Any]]:
    return [statement for policy in block.get("Policies", []) for statement in policy["Statement"]]


def _actions(statement: dict[str, Any]) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else action


def _touches_keys(action: str) -> bool:
    return action.startswith("kms:") or action == "*"


def _may_seal_as(folder: str) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Action": ["kms:GenerateDataKey", "kms:Decrypt"],
        "Resource": KEY,
        "Condition": {
            "StringEquals": {
                "kms:EncryptionContext:purpose": "mcp-request-state",
                "kms:EncryptionContext:service": {"Fn::Sub": f"${{AWS::StackName}}/{folder}"},
                "kms:EncryptionContext:stage": {"Ref": "Stage"},
            },
            "ForAllValues:StringEquals": {
                "kms:EncryptionContextKeys": ["purpose", "service", "stage", "generation", "born"]
            },
            "Null": {"kms:EncryptionContextKeys": "false"},
        },
    }


def _may_invoke(block_id: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": [{"Fn::GetAtt": f"{block_id}.Arn"}]}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_the_project_as_it_is_earns_no_complaint(claim: Callable[[Project], Iterator[str]], project: Project) -> None:
    complaints = list(claim(project))
    assert not complaints, "\n".join(complaints)


# ---- Slips: where in template.yaml (a resource, or its property), what stands there instead, and the complaint

ABSENT = object()
SLIPS: list[tuple[str, object, str]] = [
    ("Add", ABSENT, "functions/add has no block in template.yaml: add Add with"),
    ("Add.FunctionName", "add", "Add must have FunctionName: !Sub ${AWS::StackName}-add, not add"),
    ("Add.CodeUri", "functions/sum/", "template.yaml deploys functions/sum, but there is no functions/sum/app.py"),
    ("Add.Policies", [{"Statement": [_may_seal_as("add")]}], "Add must have no permission for KMS"),
    ("Add.Policies", [{"Statement": [{"Action": "*"}]}], "Add must have no permission for KMS"),
    ("Add.Environment", {"Variables": {"MCP_KMS_KEYS": KEY}}, "Add must have no MCP_KMS_KEYS"),
    ("Ticket.Environment", ABSENT, "Ticket needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"),
    ("Ticket.Policies", ABSENT, "Ticket needs exactly this statement"),
    ("Ticket.Policies", [{"Statement": [_may_seal_as("briefing")]}], "Ticket needs exactly this statement"),
    ("Mcp.Policies", [{"Statement": [_may_invoke("Add")]}], "Mcp may not invoke Ticket: add !GetAtt Ticket.Arn"),
    ("Mcp.Policies", [{"Statement": [_may_invoke("Mcp")]}], "Mcp may invoke Mcp, which is no handler"),
    ("Mcp.Policies", [{"Statement": [_may_seal_as("mcp")]}], "Mcp must have one statement"),
    ("AddRoute", ABSENT, "Add has no route: add AddRoute with RouteKey: ANY /mcp/add"),
    ("AddRoute.RouteKey", "ANY /mcp/sum", "AddRoute routes ANY /mcp/sum to no function of functions/"),
    ("AddRoute.Target", {"Fn::Sub": "integrations/${TicketIntegration}"}, "ANY /mcp/add must go to AddIntegration"),
    ("AddRoute.AuthorizationType", ABSENT, "AddRoute must carry AuthorizationType"),
    ("AddRoute.AuthorizationType", "NONE", "AddRoute must carry AuthorizationType"),
    ("AddIntegration", ABSENT, "AddIntegration must have an IntegrationUri"),
    ("AddPermission", ABSENT, "AddPermission must be there"),
    ("AddPermission.SourceArn", ABSENT, "AddPermission must have a SourceArn"),
    ("Globals.Timeout", 29, "functions/add: Timeout 29 must be under the front door's 29"),
    ("Mcp.Timeout", 30, "the front door's Timeout must be under API Gateway's 30 s"),
]


@pytest.mark.parametrize(("where", "instead", "complaint"), SLIPS, ids=[f"{slip[0]}: {slip[2]}" for slip in SLIPS])
def test_a_slip_in_the_template_is_named(where: str, instead: object, complaint: str, project: Project) -> None:
    slipped = Project(project.folders, project.asking, project.catalog, _slip(project.template, where, instead))
    complaints = [line for claim in CLAIMS for line in claim(slipped)]
    assert any(complaint in line for line in complaints), complaints


def _slip(template: dict[str, Any], where: str, instead: object) -> dict[str, Any]:
    slipped = deepcopy(template)
    match where.split("."):
        case ["Globals", name]:
            place = slipped["Globals"]["Function"]
        case [resource, name]:
            place = slipped["Resources"][resource]["Properties"]
        case [name]:
            place = slipped["Resources"]
    if instead is ABSENT:
        del place[name]
    else:
        place[name] = instead
    return slipped


def test_a_function_that_the_catalog_forgot_is_named(project: Project) -> None:
    grown = Project(project.folders | {"forgotten"}, project.asking, project.catalog, project.template)
    assert list(every_folder_is_listed(grown)) == [
        "functions/forgotten offers nothing in functions/mcp/catalog.json: run make catalog"
    ]


def test_the_catalog_is_fresh(project: Project) -> None:
    generated = catalogs.generate(FUNCTIONS)
    stale = "functions/mcp/catalog.json is stale: run make catalog"
    assert catalogs.differences(project.catalog, generated) == [], stale
    assert (FUNCTIONS / FRONT_DOOR / catalogs.FILE).read_text(encoding="utf-8") == catalogs.text(generated), stale


# ---- The rest of the template


def test_the_api_is_closed_unless_somebody_opens_it(project: Project) -> None:
    assert project.template["Parameters"]["AuthMode"]["Default"] == "iam"
    assert project.template["Conditions"]["UsesIam"] == {"Fn::Equals": [{"Ref": "AuthMode"}, "iam"]}
    assert project.template["Conditions"]["UsesJwt"] == {"Fn::Equals": [{"Ref": "AuthMode"}, "jwt"]}
    assert project.template["Resources"]["JwtAuthorizer"]["Condition"] == "UsesJwt"


def test_the_key_rotates_and_outlives_the_stack(project: Project) -> None:
    key = project.template["Resources"]["RequestStateKey"]
    assert key["Properties"]["EnableKeyRotation"] is True
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_first_output_is_the_endpoint(project: Project) -> None:
    name, output = next(iter(project.template["Outputs"].items()))
    assert name == "Endpoint"
    assert output["Value"]["Fn::Sub"].endswith("/mcp")


def test_every_variable_that_the_template_sets_is_read_by_the_toolkit(project: Project) -> None:
    blocks = [project.template["Globals"]["Function"], *(block for _, block in project.functions.values())]
    variables = {name for block in blocks for name in block.get("Environment", {}).get("Variables", {})}
    read = Path(settings.__file__).read_text(encoding="utf-8")
    assert [name for name in sorted(variables) if f'"{name}"' not in read] == []


# ---- The layer, and what functions may need


def test_the_layer_ships_what_the_package_needs_and_what_was_tested() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {wanted.name: wanted for wanted in map(Requirement, metadata["dependencies"])}
    tested = {wanted.name: wanted for wanted in map(Requirement, metadata["optional-dependencies"]["dev"])}
    lines = (ROOT / "layers/dependencies/requirements.txt").read_text(encoding="utf-8").splitlines()
    shipped = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert {wanted.name for wanted in shipped} == needed.keys() - BROUGHT_BY_LAMBDA
    for wanted in shipped:
        (pin,) = wanted.specifier
        assert pin.version in needed[wanted.name].specifier, f"pyproject.toml does not allow {wanted}"
        assert wanted == tested[wanted.name], f"the dev extra tests {tested[wanted.name]}, the layer ships {wanted}"


def test_what_the_package_imports_is_what_it_declares() -> None:
    package = ROOT / "layers/shared/mcp_functions"
    shipped = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in DEVELOPERS_ONLY]
    imported = {name for path in shipped for name in _imported(path.read_text(encoding="utf-8"))}
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {Requirement(line).name for line in metadata["dependencies"]}
    assert imported - sys.stdlib_module_names - {"mcp_functions"} - BROUGHT_BY_LAMBDA == declared - BROUGHT_BY_LAMBDA


@pytest.mark.parametrize("path", sorted(FUNCTIONS.glob("*/app.py")), ids=lambda path: path.parent.name)
def test_a_function_is_short_and_needs_only_what_its_layers_bring(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_LINES, f"{path.parent.name}: more than {MAX_LINES} lines are not one story"
    allowed = {"mcp_functions", "pydantic"} | sys.stdlib_module_names
    assert set(_imported(source)) <= allowed, f"{path.parent.name}: no layer brings that"


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module)):
                yield module.partition(".")[0]
