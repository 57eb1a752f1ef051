"""functions/, template.yaml and catalog.json agree, and every permission in the template is needed.

`mcp_functions.local.checks` makes these checks, so that authors' projects can run them too. This repository passes
them. With a mistake in the template, the checks print the line that names the mistake.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement

from mcp_functions import settings
from mcp_functions.aws import endpoints as aws_endpoints
from mcp_functions.local import catalog as catalogs
from mcp_functions.local import checks
from mcp_functions.local.checks import KEY, TABLE, may_keep_as, may_seal_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcp_functions.local.checks import Project

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
FRONT_DOOR = "mcp"
DEVELOPERS_ONLY = {"__main__.py", "attack", "local", "testing"}  # in the package, not in the layer
BROUGHT_BY_LAMBDA = {"boto3", "botocore", "snapshot_restore_py"}
FOR_DEVELOPERS = {"click"}  # the command, which no layer has
FOR_AUTHORS = {"aws-lambda-powertools"}  # the layer ships it, and nothing of the package imports it
MAX_LINES = 40
LINES, LINES_OF_A_FUNCTION, LINES_OF_A_WORKER = 300, 12, 24  # of template.yaml: so much for all, for each of these
LONGEST_WINDOW = 30  # days, in which a deletion can be taken back


@pytest.fixture
def project() -> Project:
    return checks.read(ROOT)


def _may_invoke(block_id: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": [{"Fn::GetAtt": f"{block_id}.Arn"}]}


@pytest.mark.parametrize("claim", checks.CHECKS, ids=lambda claim: claim.__name__)
def test_the_project_as_it_is_earns_no_complaint(claim: Callable[[Project], Iterator[str]], project: Project) -> None:
    complaints = list(claim(project))
    assert not complaints, "\n".join(complaints)


PERMISSION = {"Type": "AWS::Lambda::Permission"}

# ---- Mistakes: the place in template.yaml (a resource or its property), the wrong value, and the message

ABSENT = object()
NEWEST_WORKER = {
    "Effect": "Allow",
    "Action": "lambda:InvokeFunction",
    "Resource": {"Fn::Sub": "arn:aws:lambda:eu-west-1:1:function:${AWS::StackName}-audit_year-worker"},
}
SLIPS: list[tuple[str, object, str]] = [
    ("AuditYearWorker", ABSENT, "functions/audit_year has tasks: add AuditYearWorker"),
    ("AuditYearWorker.RecursiveLoop", ABSENT, "AuditYearWorker needs RecursiveLoop: Allow"),
    ("AuditYearWorker.Environment", ABSENT, "AuditYearWorker must have the Environment of AuditYear"),
    ("AuditYearWorker.Policies", [], "AuditYearWorker may not invoke a function that ends in -audit_year-worker${Qual"),
    ("AuditYear.Policies", [{"Statement": [NEWEST_WORKER]}], "AuditYear may not invoke a function that ends in -audit"),
    (
        "AuditYearWorkerInvocations",
        ABSENT,
        "AuditYearWorker needs an AWS::Lambda::EventInvokeConfig with MaximumRetr",
    ),
    (
        "AuditYearWorkerInvocations.Qualifier",
        "$LATEST",
        "the EventInvokeConfig of AuditYearWorker needs Qualifier: !",
    ),
    ("Add.Environment", {"Variables": {"MCP_BLOBS": "b"}}, "functions/add keeps nothing: Add must have no MCP_BLOBS"),
    ("PayInvoice.Environment", {"Variables": {"MCP_BLOBS": "b"}}, "PayInvoice has MCP_BLOBS, so it needs exactly this"),
    ("Add", ABSENT, "functions/add has no block in template.yaml: add Add with"),
    ("Add.FunctionName", "add", "Add must have FunctionName: !Sub ${AWS::StackName}-add, not add"),
    ("Add.CodeUri", "functions/sum/", "template.yaml deploys functions/sum, but there is no functions/sum/app.py"),
    ("Add.Policies", [{"Statement": [may_seal_as("add")]}], "Add must have no permission for KMS"),
    ("Add.Policies", [{"Statement": [{"Action": "*"}]}], "Add must have no permission for KMS"),
    ("Add.Environment", {"Variables": {"MCP_KMS_KEYS": KEY}}, "Add must have no MCP_KMS_KEYS"),
    ("Add.Environment", {"Variables": {"MCP_TABLE": TABLE}}, "Add must have no MCP_TABLE, nor permission for DynamoDB"),
    ("Add.Policies", [{"Statement": [may_keep_as("add")]}], "Add must have no MCP_TABLE, nor permission for DynamoDB"),
    ("PayInvoice.Environment", ABSENT, "PayInvoice needs MCP_TABLE: !Ref Table"),
    ("PayInvoice.Policies", ABSENT, "functions/pay_invoice keeps something: PayInvoice needs exactly this statement"),
    ("PayInvoice.Policies", [{"Statement": [may_keep_as("ticket")]}], "PayInvoice needs exactly this statement"),
    ("Table", ABSENT, "template.yaml needs a Table of type AWS::DynamoDB::Table"),
    ("Table.TimeToLiveSpecification", ABSENT, 'Table must have TimeToLiveSpecification: {"AttributeName": "expires"'),
    ("Ticket.Environment", ABSENT, "Ticket needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"),
    ("Ticket.Policies", ABSENT, "Ticket needs exactly this statement"),
    ("Ticket.Policies", [{"Statement": [may_seal_as("briefing")]}], "Ticket needs exactly this statement"),
    (
        "Mcp.Policies",
        [{"Statement": [_may_invoke("Add")]}],
        "Mcp may not invoke Ticket: add !Sub ${Ticket.Arn}${Qualif",
    ),
    ("Mcp.Policies", [{"Statement": [_may_invoke("Mcp")]}], "Mcp may invoke Mcp, which is no handler"),
    ("Mcp.Policies", [{"Statement": [may_seal_as("mcp")]}], "Mcp must have one statement"),
    ("Mcp.Policies", [{"Statement": [may_seal_as("add")]}], "functions/mcp asks: Mcp needs exactly this statement"),
    ("Mcp.Policies", [{"Statement": [may_keep_as("add")]}], "functions/mcp keeps something: Mcp needs exactly this"),
    ("AddRoute", ABSENT, "Add has no route: add AddRoute with RouteKey: ANY /mcp/add"),
    ("AddRoute.RouteKey", "ANY /mcp/sum", "AddRoute routes ANY /mcp/sum to no function of functions/"),
    ("AddRoute.Target", {"Fn::Sub": "integrations/${TicketIntegration}"}, "ANY /mcp/add must go to AddIntegration"),
    ("AddRoute.AuthorizationType", ABSENT, "AddRoute must have AuthorizationType"),
    ("AddRoute.AuthorizationType", "NONE", "AddRoute must have AuthorizationType"),
    ("McpPreflightRoute", ABSENT, "Mcp has no route OPTIONS /mcp: clients cannot discover how to connect"),
    ("McpPreflightRoute.AuthorizationType", "JWT", "the route OPTIONS /mcp must have Condition: HasOrigins and"),
    ("McpPreflightRoute.RouteKey", "OPTIONS /mcp/add", "McpPreflightRoute must have AuthorizationType"),
    ("McpMetadataRoute.AuthorizationType", ABSENT, "/mcp must have Condition: UsesJwt and AuthorizationType: NONE"),
    ("McpRootMetadataRoute.Target", "integrations/x", "resource must go to McpIntegration"),
    ("AddIntegration", ABSENT, "AddIntegration must have an IntegrationUri"),
    ("AddIntegration.CredentialsArn", ABSENT, "AddIntegration must have CredentialsArn: !GetAtt ApiRole.Arn"),
    ("AddIntegration.PayloadFormatVersion", "1.0", 'AddIntegration must have PayloadFormatVersion: "2.0"'),
    ("ApiRole", ABSENT, "there is no ApiRole: the API cannot invoke a function"),
    (
        "ApiRole.Policies",
        [{"PolicyDocument": {"Statement": [_may_invoke("Mcp")]}}],
        "ApiRole may not invoke Ticket: add",
    ),
    ("ApiRole.Policies", [{"PolicyDocument": {"Statement": [_may_invoke("X")]}}], "ApiRole may invoke X, which is no"),
    (
        "ApiRole.Policies",
        [{"PolicyDocument": {"Statement": [may_seal_as("add")]}}],
        "ApiRole must be allowed only lambda:Inv",
    ),
    (
        "ApiRole.ManagedPolicyArns",
        ["arn:aws:iam::aws:policy/AdministratorAccess"],
        "ApiRole must be allowed only lambda:Inv",
    ),
    ("FunctionLogs", {**PERMISSION, "Properties": {"FunctionName": {"Ref": "Add"}}}, "FunctionLogs lets others than"),
    ("Globals.Timeout", 29, "functions/add: Timeout 29 must be under the front door's 29"),
    ("Mcp.Timeout", 30, "the front door's Timeout must be under API Gateway's 30 s"),
]


@pytest.mark.parametrize(("where", "instead", "complaint"), SLIPS, ids=[f"{slip[0]}: {slip[2]}" for slip in SLIPS])
def test_a_slip_in_the_template_is_named(where: str, instead: object, complaint: str, project: Project) -> None:
    slipped = replace(project, template=_slip(project.template, where, instead))
    complaints = checks.complaints(slipped)
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


OLD_KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROTATIONS = [  # docs/security.md: deploys 1 and 2 (3 stands below), and the other ways to write them
    {"Fn::Join": [",", [OLD_KEY, KEY]]},
    {"Fn::Join": [",", [KEY, {"Ref": "OldKey"}]]},
    {"Fn::Sub": "${RequestStateKey.Arn}," + OLD_KEY},
]


@pytest.mark.parametrize("keys", ROTATIONS, ids=str)
def test_two_keys_are_right_while_one_is_rotated(keys: object, project: Project) -> None:
    template = _slip(project.template, "Ticket.Environment", {"Variables": {"MCP_KMS_KEYS": keys}})
    both = {**may_seal_as("ticket"), "Resource": [KEY, OLD_KEY]}
    rotating = replace(project, template=_slip(template, "Ticket.Policies", [{"Statement": [both]}]))
    assert checks.complaints(rotating) == []


NEW_KEY = {"Fn::GetAtt": "NewKey.Arn"}


@pytest.mark.parametrize(
    ("allowed", "complaints"),
    [(NEW_KEY, []), (KEY, ["functions/ticket asks: Ticket needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"])],
    ids=str,
)
def test_a_key_that_took_the_place_of_the_first_is_right_where_the_role_may_use_it(
    allowed: object, complaints: list[str], project: Project
) -> None:
    template = _slip(project.template, "Ticket.Environment", {"Variables": {"MCP_KMS_KEYS": NEW_KEY}})
    statement = {**may_seal_as("ticket"), "Resource": allowed}
    rotated = replace(project, template=_slip(template, "Ticket.Policies", [{"Statement": [statement]}]))
    assert checks.complaints(rotated) == complaints


@pytest.mark.parametrize("more", ["*", "arn:aws:kms:eu-west-1:123456789012:key/*", OLD_KEY.replace("key/", "alias/")])
def test_a_key_that_is_all_keys_is_named(more: str, project: Project) -> None:
    loose = {**may_seal_as("ticket"), "Resource": [KEY, more]}
    slipped = replace(project, template=_slip(project.template, "Ticket.Policies", [{"Statement": [loose]}]))
    assert checks.complaints(slipped) == [f"functions/ticket asks: Ticket may use more than your own keys: {more}"]


def test_a_function_that_the_catalog_forgot_is_named(project: Project) -> None:
    grown = replace(project, folders=project.folders | {"forgotten"})
    assert list(checks.every_folder_is_listed(grown)) == [
        "functions/forgotten offers nothing in functions/mcp/catalog.json: run make catalog"
    ]


def test_the_catalog_is_fresh(project: Project) -> None:
    generated = catalogs.generate(FUNCTIONS)
    stale = "functions/mcp/catalog.json is stale: run make catalog"
    assert catalogs.differences(project.catalog, generated) == [], stale
    assert (FUNCTIONS / FRONT_DOOR / catalogs.FILE).read_text(encoding="utf-8") == catalogs.text(generated), stale


# ---- The rest of the template


def test_every_skipped_lint_rule_has_a_reason() -> None:
    skipped = (ROOT / ".checkov.yaml").read_text(encoding="utf-8").partition("skip-check:\n")[2].splitlines()
    assert [line for line in skipped if not re.fullmatch(r"  - CKV_\w+ # \w.{20,}", line)] == []


def test_the_api_is_closed_by_default(project: Project) -> None:
    assert project.template["Parameters"]["AuthMode"]["Default"] == "iam"
    assert project.template["Conditions"]["UsesIam"] == {"Fn::Equals": [{"Ref": "AuthMode"}, "iam"]}
    assert project.template["Conditions"]["UsesJwt"] == {"Fn::Equals": [{"Ref": "AuthMode"}, "jwt"]}
    assert project.template["Resources"]["JwtAuthorizer"]["Condition"] == "UsesJwt"


def test_every_open_route_is_open_on_request_only(project: Project) -> None:
    conditions = project.template["Conditions"]
    assert conditions["HasOrigins"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "AllowedOrigins"}, ""]}]}
    routes = {name: one for name, one in project.template["Resources"].items() if one["Type"].endswith("::Route")}
    opened = {
        name: one["Condition"] for name, one in routes.items() if one["Properties"]["AuthorizationType"] == "NONE"
    }
    assert opened == {
        "McpPreflightRoute": "HasOrigins",
        "McpMetadataRoute": "UsesJwt",
        "McpRootMetadataRoute": "UsesJwt",
    }


def test_the_key_rotates_and_outlives_the_stack(project: Project) -> None:
    key = project.template["Resources"]["RequestStateKey"]
    assert key["Properties"]["EnableKeyRotation"] is True
    assert key["Properties"]["PendingWindowInDays"] == LONGEST_WINDOW
    # on create: no client holds a state of a stack that did not exist
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_the_template_is_short(project: Project) -> None:
    lines = (ROOT / "template.yaml").read_text(encoding="utf-8").splitlines()
    workers = LINES_OF_A_WORKER * len(project.workers)
    assert len(lines) <= LINES + LINES_OF_A_FUNCTION * len(project.functions) + workers


def test_each_variable_of_an_invocation_has_a_default_that_a_new_account_can_bear(project: Project) -> None:
    parameters = project.template["Parameters"]
    assert {name for name, one in parameters.items() if "Default" not in one or "Description" not in one} == set()
    nothing = {
        "ReservedConcurrency": 0, "ProvisionedConcurrency": 0, "SnapStart": "None", "AlarmTopic": "", "BlobBucket": "",
    }  # fmt: skip
    assert {name: parameters[name]["Default"] for name in nothing} == nothing


def test_a_parameter_that_costs_money_states_its_price(project: Project) -> None:
    parameters = project.template["Parameters"]
    assert {name for name, one in parameters.items() if "USD" in one["Description"]} == {
        "AlarmTopic",
        "BankSecret",
        "BlobBucket",
        "LogDays",
        "ProvisionedConcurrency",
        "SnapStart",
    }
    assert "1 USD a month" in project.template["Description"]


def test_alarms_and_dashboard_exist_only_with_a_recipient(project: Project) -> None:
    watching = ("AWS::CloudWatch::", "AWS::Logs::MetricFilter")
    resources = project.template["Resources"].values()
    watchers = [resource for resource in resources if resource["Type"].startswith(watching)]
    assert {resource.get("Condition") for resource in watchers} == {"HasAlarms"}
    alarms = project.of_type("AWS::CloudWatch::Alarm")
    filters = project.of_type("AWS::Logs::MetricFilter")
    ours = {"Fn::Sub": "mcp-functions/${AWS::StackName}"}  # each stack has its own namespace
    counted = {(one, str(each["MetricNamespace"])) for one, each in _metrics(filters.values())}
    assert {(one["MetricName"], str(one["Namespace"])) for one in alarms.values()} == {
        ("Errors", "AWS/Lambda"),
        ("Latency", "AWS/ApiGateway"),
        *((name, str(ours)) for name in ("Failed", "KmsFailures", "Misconfigured")),
    }
    assert {(one["MetricName"], str(one["Namespace"])) for one in alarms.values()} - counted == {
        ("Errors", "AWS/Lambda"), ("Latency", "AWS/ApiGateway"),
    }  # fmt: skip
    assert all(one["AlarmActions"] == [{"Ref": "AlarmTopic"}] for one in alarms.values())


def _metrics(filters: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in filters:
        (metric,) = one["MetricTransformations"]
        yield metric["MetricName"], metric


def test_a_bucket_is_optional_private_and_deletes_old_objects(project: Project) -> None:
    assert project.template["Conditions"]["HasOwnBlobs"] == {"Fn::Equals": [{"Ref": "BlobBucket"}, "new"]}
    bucket = project.template["Resources"]["Blobs"]
    assert (bucket["Condition"], bucket["DeletionPolicy"]) == ("HasOwnBlobs", "RetainExceptOnCreate")
    (rule,) = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] * 24 * 3600 > settings.MAX_TASK_TTL_SECONDS
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}


def test_the_access_log_is_json_without_content_or_callers(project: Project) -> None:
    written = project.of_type("AWS::ApiGatewayV2::Stage")["DefaultStage"]["AccessLogSettings"]["Format"]["Fn::Sub"]
    assert set(json.loads(written)) >= {"service", "time", "route", "status", "integration_status", "ms"}
    told = set(re.findall(r"\$context\.([\w.]+)", written))
    assert {name for name in told if name.startswith(("identity", "authorizer", "path", "domain"))} == set()


def test_the_dashboard_is_json(project: Project) -> None:
    body = project.of_type("AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"]["Fn::Sub"]
    assert len(json.loads(body)["widgets"]) == 3


def test_every_log_ends(project: Project) -> None:
    logs = project.of_type("AWS::Logs::LogGroup")
    assert {one["RetentionInDays"]["Ref"] for one in logs.values()} == {"LogDays"}
    assert project.template["Globals"]["Function"]["LoggingConfig"]["LogGroup"] == {"Ref": "FunctionLogs"}


def test_the_first_output_is_the_endpoint(project: Project) -> None:
    name, output = next(iter(project.template["Outputs"].items()))
    assert name == "Endpoint"
    assert output["Value"]["Fn::Sub"].endswith("/mcp")


def test_every_variable_that_the_template_sets_is_read_by_the_toolkit_or_by_boto3(project: Project) -> None:
    blocks = [project.template["Globals"]["Function"], *(block for _, block in project.functions.values())]
    variables = {name: value for block in blocks for name, value in _variables(block).items()}
    endpoints = {name for name in variables if name.startswith("AWS_ENDPOINT_URL_")}
    assert {variables[name] for name in endpoints} == {""}, "deployed, the endpoints are AWS's"
    read = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in (settings, aws_endpoints))
    assert [name for name in sorted(variables.keys() - endpoints) if f'"{name}"' not in read] == [
        "BANK_SECRET",
        "POWERTOOLS_LOGGER_LOG_EVENT",
        "POWERTOOLS_METRICS_DISABLED",
        "POWERTOOLS_METRICS_NAMESPACE",
        "POWERTOOLS_SERVICE_NAME",
        "POWERTOOLS_TRACER_CAPTURE_ERROR",
        "POWERTOOLS_TRACER_CAPTURE_RESPONSE",
    ], "Powertools reads these, and the sample pay_invoice its own"


def _variables(block: dict[str, Any]) -> dict[str, Any]:
    variables: dict[str, Any] = block.get("Environment", {}).get("Variables", {})
    return variables


# ---- The layer, and what functions may need


def test_the_layer_ships_the_packages_tested_dependencies() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {wanted.name: wanted for wanted in map(Requirement, metadata["dependencies"])}
    tested = {wanted.name: wanted for wanted in map(Requirement, metadata["optional-dependencies"]["dev"])}
    lines = (ROOT / "layers/dependencies/requirements.txt").read_text(encoding="utf-8").splitlines()
    shipped = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert {wanted.name for wanted in shipped} == needed.keys() - BROUGHT_BY_LAMBDA - FOR_DEVELOPERS
    for wanted in shipped:
        (pin,) = wanted.specifier
        assert pin.version in needed[wanted.name].specifier, f"pyproject.toml does not allow {wanted}"
        assert wanted == tested[wanted.name], f"the dev extra tests {tested[wanted.name]}, the layer ships {wanted}"


def test_the_package_declares_its_imports() -> None:
    package = ROOT / "layers/shared/mcp_functions"
    shipped = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in DEVELOPERS_ONLY]
    imported = {name for path in shipped for name in _imported(path.read_text(encoding="utf-8"))}
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {Requirement(line).name for line in metadata["dependencies"]}
    # pydantic brings annotated_types and pydantic_core; _typeshed and typing_extensions are for type checkers.
    imported -= {"mcp_functions", "annotated_types", "pydantic_core", "_typeshed", "typing_extensions"}
    assert (
        imported - sys.stdlib_module_names - BROUGHT_BY_LAMBDA
        == declared - BROUGHT_BY_LAMBDA - FOR_AUTHORS - FOR_DEVELOPERS
    )


@pytest.mark.parametrize("path", sorted(FUNCTIONS.glob("*/app.py")), ids=lambda path: path.parent.name)
def test_a_function_is_short_and_imports_only_from_its_layers(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_LINES, f"{path.parent.name}: more than {MAX_LINES} lines are not one story"
    allowed = {"aws_lambda_powertools", "mcp_functions", "pydantic"} | sys.stdlib_module_names
    assert set(_imported(source)) <= allowed, f"{path.parent.name}: no layer brings that"


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module)):
                yield module.partition(".")[0]
