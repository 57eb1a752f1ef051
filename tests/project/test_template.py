"""functions/, template.yaml and catalog.json agree, and every permission in the template is needed.

`mcp_functions_harness.checks` makes these checks, so that authors' projects can run them too. This repository passes
them. With a mistake in the template, the checks print the line that names the mistake.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sys
import tomllib
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from packaging.requirements import Requirement

from mcp_functions import settings
from mcp_functions.aws import endpoints as aws_endpoints
from mcp_functions_harness import catalog as catalogs
from mcp_functions_harness import checks, template
from mcp_functions_harness.auth import set_auth
from mcp_functions_harness.checks.iam import MAY_INVOKE, scaffold_statements
from mcp_functions_harness.lambdas.functions import SIGN_IN
from tests.benchmarks import cost
from tests.support import filters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcp_functions_harness.checks import Project
    from mcp_functions_harness.template import Template

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
FRONT_DOOR = "mcp"
DEVELOPERS_ONLY = {"__main__.py", "attack", "local", "testing"}  # in the package, not in the layer
PACKAGES_OF_LAMBDA = {"boto3", "botocore", "snapshot_restore_py"}
DEVELOPER_PACKAGES = {"click", "PyYAML", "tomlkit"}  # of the command, which no layer has
AUTHOR_PACKAGES = {"aws-lambda-powertools"}  # the layer ships it, and nothing of the package imports it
MAX_LINES = 40
LONGEST_LINE = 100  # of template.yaml
FUNCTION_LINES = 15
LONGEST_WINDOW = 30  # days, in which a deletion can be taken back


@pytest.fixture(scope="module")
def project() -> Project:
    """Read this repository once. A test that changes something changes a copy."""
    return checks.read(ROOT)


@pytest.mark.parametrize("claim", checks.CHECKS, ids=lambda claim: claim.__name__)
def test_the_project_passes_every_check(claim: Callable[[Project], Iterator[str]], project: Project) -> None:
    complaints = list(claim(project))
    assert not complaints, "\n".join(complaints)


PERMISSION = {"Type": "AWS::Lambda::Permission"}

# ---- Mistakes: the place in template.yaml (a resource or its property), the wrong value, and the message

ABSENT = object()
KEY = {"Fn::GetAtt": "RequestStateKey.Arn"}
(MAY_SEAL,), (MAY_KEEP, *_OTHERS) = scaffold_statements("MaySeal"), scaffold_statements("MayKeep")
NO_AUTH = {"Authorizer": "NONE"}
SEAL, KEEP = {"Ref": "MaySeal"}, {"Ref": "MayKeep"}
WRONG_ROUTE: dict[str, Any] = {
    "Mcp": {"Type": "HttpApi", "Properties": {"ApiId": {"Ref": "HttpApi"}, "Path": "/mcp/sum", "Method": "ANY"}}
}
OWN_AUTHORIZER = {"Mcp": {**WRONG_ROUTE["Mcp"], "Properties": {**WRONG_ROUTE["Mcp"]["Properties"], "Auth": NO_AUTH}}}
TABLE_ARN = {"Fn::GetAtt": "Table.Arn"}


ARN = "arn:${AWS::Partition}:any:${AWS::Region}:${AWS::AccountId}"


def _own(action: str, resource: object) -> list[dict[str, Any]]:
    return [{"Statement": [{"Effect": "Allow", "Action": action, "Resource": resource}]}]


MISTAKES: list[tuple[str, object, str]] = [
    ("AuditYearWorker", ABSENT, "functions/audit_year has tasks: add AuditYearWorker"),
    ("AuditYearWorker.RecursiveLoop", ABSENT, 'AuditYearWorker must have RecursiveLoop: "Allow"'),
    (
        "AuditYearWorker.Environment",
        {"Variables": {"A": "b"}},
        "AuditYearWorker must have the Environment of AuditYear",
    ),
    ("AuditYearWorker.Policies", [SEAL], "AuditYearWorker must have Policies: [!Ref MaySeal, !Ref MayKeep]"),
    (
        "AuditYearWorker.Tags",
        {"mcp-function": "ticket"},
        "AuditYearWorker must have Tags: mcp-function: audit_year, not t",
    ),
    ("AuditYearWorker.Events", WRONG_ROUTE, "AuditYearWorker must have no Events"),
    (
        "AuditYearWorker.EventInvokeConfig",
        ABSENT,
        'AuditYearWorker must have EventInvokeConfig: {"MaximumRetryAttempts": 0}, as mcp-functions block audit_year',
    ),
    ("AuditYearWorker.FunctionName", {"Fn::Sub": "x-worker"}, "AuditYearWorker must have FunctionName: "),
    ("Add", ABSENT, "functions/add has no block in template.yaml: add Add with"),
    ("Add.FunctionName", "add", "Add must have FunctionName: !Sub ${AWS::StackName}_add, not add"),
    ("Add.CodeUri", "functions/sum/", "template.yaml deploys functions/sum, but there is no functions/sum/app.py"),
    ("Add.Policies", SEAL, "functions/add never asks (if it asked until now"),
    ("Add.Policies", [KEEP], "functions/add keeps nothing: remove !Ref MayKeep from Policies of Add"),
    ("Add.Policies", _own("*", "*"), "Add may use kms on *, beyond its own name"),
    ("Add.Policies", _own("kms:Decrypt", KEY), "Add may use kms on RequestStateKey, beyond its own name"),
    ("Add.Policies", _own("dynamodb:Scan", TABLE_ARN), "Add may use dynamodb on Table, beyond its own name"),
    (
        "Add.Policies",
        {"Fn::If": ["HasBlobs", *_own("DynamoDB:Scan", "*"), {"Ref": "AWS::NoValue"}]},
        "Add may use dynamodb",
    ),
    ("Add.Policies", _own("lambda:InvokeFunction", {"Fn::GetAtt": "Ticket.Arn"}), "Add may use lambda on Ticket"),
    (
        "Add.Policies",
        _own("lambda:InvokeFunction", "*"),
        "Add may use lambda on *: it could call a function as any user",
    ),
    (
        "Add.Policies",
        _own("dynamodb:Scan", {"Fn::Sub": f"{ARN}:table/${{AWS::StackName}}-*"}),
        "Add may use dynamodb on",
    ),
    ("Add.Policies", _own("kms:Decrypt", {"Fn::Sub": f"{ARN}:key/*"}), "Add may use kms on arn:"),
    ("Add.Policies", _own("lambda:*", {"Fn::Sub": f"{ARN}:function:*"}), "Add may use lambda on arn:"),
    (
        "Add.Policies",
        {"Statement": {"Effect": "Allow", "NotAction": "iam:*", "NotResource": "a"}},
        "Add may use kms on *, beyond its own name",
    ),
    (
        "Add.Policies",
        {"DynamoDBReadPolicy": {"TableName": {"Ref": "Table"}}},
        "may not have DynamoDBReadPolicy on Table",
    ),
    ("Add.Policies", [{"S3CrudPolicy": {"BucketName": {"Ref": "Blobs"}}}], "Add may not have S3CrudPolicy on Blobs"),
    ("Add.Policies", {"LambdaInvokePolicy": {"FunctionName": {"Ref": "Ticket"}}}, "LambdaInvokePolicy on Ticket"),
    ("Add.Policies", MAY_INVOKE, "Add may not have LambdaInvokePolicy on ${AWS::StackName}_: name a resource of your"),
    (
        "Add.Policies",
        {"LambdaInvokePolicy": {"FunctionName": {"Fn::Sub": "${AWS::StackName}_ticket"}}},
        "Add may not have LambdaInvokePolicy on ${AWS::StackName}_ticket",
    ),
    ("Add.Policies", {"LambdaInvokePolicy": {"FunctionName": {"Ref": "AWS::StackName"}}}, "on AWS::StackName: name a"),
    ("Add.Policies", [{"KMSDecryptPolicy": {"KeyId": "*"}}], "Add may not have KMSDecryptPolicy on *"),
    (
        "Add.Policies",
        [{"DynamoDBReadPolicy": {"TableName": {"Fn::Sub": "${AWS::StackName}-Table*"}}}],
        "Add may not have DynamoDBReadPolicy on ${AWS::StackName}-Table*",
    ),
    ("Add.Policies", _own("kms:CreateGrant", {"Fn::GetAtt": ["RequestStateKey", "Arn"]}), "kms on RequestStateKey"),
    ("Add.Policies", _own("s3:DeleteObject", {"Fn::Sub": "${Blobs.Arn}/*"}), "Add may use s3 on Blobs, beyond its"),
    (
        "Add.Policies",
        _own("lambda:InvokeFunction", {"Fn::Join": ["", ["arn:function:", {"Ref": "AWS::StackName"}, "_ticket"]]}),
        "Add may use lambda on arn:function:${AWS::StackName}_ticket",
    ),
    ("Add.Policies", _own("iam:Tag*", "*"), "Add may use iam on *: it could open what other functions keep"),
    ("Add.Policies", ["arn:aws:iam::aws:policy/IAMFullAccess"], "Add may not have IAMFullAccess on *"),
    ("Add.Policies", ["arn:aws:iam::aws:policy/AdministratorAccess"], "Add may not have AdministratorAccess on *"),
    ("Add.Role", "arn:aws:iam::123456789012:role/mine", "Add has a Role that is not in template.yaml"),
    ("Mcp.Role", {"Fn::GetAtt": "MyRole.Arn"}, "Mcp must have no Role"),
    ("Add.Tags", {"mcp-function": "ticket"}, "Add must have Tags: mcp-function: add, not ticket"),
    ("PayInvoice.Policies", SEAL, "functions/pay_invoice needs MayKeep: add !Ref MayKeep to Policies of PayInvoice"),
    ("Ticket.Policies", ABSENT, "functions/ticket needs MaySeal: add !Ref MaySeal to Policies of Ticket"),
    ("Ticket.Tags", ABSENT, "Ticket must have Tags: mcp-function: ticket, not None"),
    ("Ticket.Tags", {"mcp-function": "*"}, "Ticket must have Tags: mcp-function: ticket, not *"),
    ("Mcp.Tags", {"mcp-function": "ticket"}, "Mcp must have Tags: mcp-function: mcp, not ticket"),
    ("MaySeal", ABSENT, "MaySeal must have exactly this statement"),
    ("MaySeal.PolicyDocument.Statement", [{**MAY_SEAL, "Action": "kms:*"}], "MaySeal must have exactly this statement"),
    ("MayKeep.PolicyDocument.Statement", [{**MAY_KEEP, "Condition": {}}], "MayKeep must have no statements but these"),
    ("Table", ABSENT, "functions/audit_year keeps something, and template.yaml has no Table: mcp-functions add table"),
    ("Table.TimeToLiveSpecification", ABSENT, 'Table must have TimeToLiveSpecification: {"AttributeName": "expires"'),
    ("Globals.Environment.Variables.MCP_PAGESIZE", "5", "Globals sets MCP_PAGESIZE, which no function reads"),
    ("Globals.Environment.Variables.MCP_PAGE_SIZE", "many", "Globals: MCP_PAGE_SIZE must be a whole number"),
    ("Globals.Environment.Variables.MCP_TABLE", "mine", "Globals needs MCP_TABLE: !Ref Table"),
    ("Globals.Environment.Variables.MCP_KMS_KEYS", ABSENT, "Globals needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"),
    (
        "Globals.Environment.Variables.MCP_AUTH_MODE",
        "jwt",
        "the API enforces iam, but functions believe MCP_AUTH_MODE jwt",
    ),
    ("Add.Environment", {"Variables": {"MCP_AUTH_MODE": "none"}}, "functions/add must not set MCP_AUTH_MODE"),
    (
        "HttpApi.Auth",
        ABSENT,
        "the API enforces none, but functions believe MCP_AUTH_MODE iam: run mcp-functions auth iam",
    ),
    ("HttpApi.Auth.EnableIamAuthorizer", ABSENT, "the API enforces AWS_IAM, but functions believe"),
    ("HttpApi.Auth.DefaultAuthorizer", ABSENT, "the API enforces none, but functions believe"),
    ("Mcp.Policies", [SEAL, KEEP], "Mcp must have this policy for Lambda, and no other"),
    ("Mcp.Policies", [MAY_INVOKE, *_own("lambda:InvokeFunction", "*")], "Mcp must have this policy for Lambda, and no"),
    ("Mcp.Policies", _own("kms:Decrypt", KEY), "Mcp may use kms on RequestStateKey, beyond its own name"),
    (
        "HttpApi.RouteSettings",
        {"ANY /mcp/add": {}, "ANY /token": {}},
        "RouteSettings of HttpApi names the route ANY /token, which no function has: remove it there",
    ),
    ("Mcp.Events.Preflight", ABSENT, "Mcp has other open routes than iam needs: run mcp-functions auth iam"),
    ("Mcp.Events.Preflight.Properties.Auth", ABSENT, "Mcp has other open routes than iam needs"),
    ("Mcp.Events.Mcp.Properties.Auth", NO_AUTH, "the route ANY /mcp of Mcp must have no Auth of its own"),
    ("Add.Events", ABSENT, "Add has no route: add an event of type HttpApi with ANY /mcp/add"),
    ("Add.Events", WRONG_ROUTE, "Add has no route: add an event of type HttpApi with ANY /mcp/add"),
    ("Add.Events", OWN_AUTHORIZER, "the route ANY /mcp/sum of Add must have no Auth of its own"),
    ("Add.Events.Mcp.Properties.ApiId", ABSENT, "the route ANY /mcp/add of Add must have ApiId: !Ref HttpApi"),
    ("FunctionLogs", {**PERMISSION, "Properties": {"FunctionName": {"Ref": "Add"}}}, "FunctionLogs lets others than"),
    ("Globals.Timeout", 29, "functions/add: Timeout 29 must be under the front door's 29"),
    ("Mcp.Timeout", 30, "the front door's Timeout must be a number under API Gateway's 30 s"),
]


@pytest.mark.parametrize(
    ("where", "instead", "complaint"), MISTAKES, ids=[f"{slip[0]}: {slip[2]}" for slip in MISTAKES]
)
def test_the_checks_report_a_mistake_in_the_template(
    where: str, instead: object, complaint: str, project: Project
) -> None:
    slipped = replace(project, template=_with_mistake(project.template, where, instead))
    complaints = checks.complaints(slipped)
    assert any(complaint in line for line in complaints), complaints


POOL = {"UserPoolId": {"Ref": "People"}}
LAMBDA = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
LOGS = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
ROLE: dict[str, Any] = {
    "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [LAMBDA]},
    "ManagedPolicyArns": [LOGS, {"Ref": "MaySeal"}],
    "Tags": [{"Key": "mcp-function", "Value": "book_trip"}],
}
EVERYBODY = {"Statement": [{**LAMBDA, "Principal": {"AWS": "*"}}]}
ALL_TABLES = {"PolicyDocument": {"Statement": {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}}}
SHARES = "MyRole is the Role of functions/add and of functions/book_trip: give each its own"


def with_role(project: Project, function: str = "BookTrip", **changes: object) -> Project:
    """Give a function a role of its own in place of that of SAM."""
    changed = deepcopy(project.template)
    changed["Resources"]["MyRole"] = {"Type": "AWS::IAM::Role", "Properties": {**ROLE, **changes}}
    for name in {"BookTrip", function}:
        properties = changed["Resources"][name]["Properties"]
        for ignored in ("Policies", "Tags"):
            properties.pop(ignored, None)
        properties["Role"] = {"Fn::GetAtt": "MyRole.Arn"}
    return replace(project, template=changed)


def test_the_checks_accept_a_role_of_ones_own_with_what_the_function_needs(project: Project) -> None:
    assert checks.complaints(with_role(project)) == []
    may_log = {"Statement": [{"Effect": "Allow", "Action": ["logs:CreateLogStream", "logs:Put*"], "Resource": "*"}]}
    inline = [{"PolicyName": "log", "PolicyDocument": may_log}]
    assert checks.complaints(with_role(project, ManagedPolicyArns=[{"Ref": "MaySeal"}], Policies=inline)) == []


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"ManagedPolicyArns": [LOGS]}, "needs MaySeal: add !Ref MaySeal to ManagedPolicyArns of MyRole"),
        ({"ManagedPolicyArns": [LOGS, {"Ref": "MaySeal"}, {"Ref": "MayKeep"}]}, "keeps nothing: remove !Ref MayKeep"),
        ({"ManagedPolicyArns": [{"Ref": "MaySeal"}]}, "MyRole may not write the log: add arn:aws:iam::aws:policy/serv"),
        ({"Tags": []}, "MyRole must have Tags with Key mcp-function and Value book_trip, not None"),
        ({"Tags": [{"Key": "mcp-function", "Value": "add"}]}, "Value book_trip, not add"),
        ({"AssumeRolePolicyDocument": EVERYBODY}, "MyRole must be assumed by Lambda alone"),
        ({"Policies": [ALL_TABLES]}, "BookTrip may use dynamodb on *, beyond its own name"),
        (
            {"ManagedPolicyArns": [LOGS, {"Ref": "MaySeal"}, "arn:aws:iam::aws:policy/AdministratorAccess"]},
            "may not have Ad",
        ),
    ],
)
def test_the_checks_report_a_role_of_ones_own_that_lacks_or_opens_something(
    changes: dict[str, Any], complaint: str, project: Project
) -> None:
    (said,) = checks.complaints(with_role(project, **changes))
    assert complaint in said


def test_the_checks_report_a_role_of_two_functions(project: Project) -> None:
    assert SHARES in checks.complaints(with_role(project, "Add"))


MOVE = "a plain SAM function outside functions/ takes events, without a route (docs/own-resources.md)"
SCHEDULE = {"Nightly": {"Type": "Schedule", "Properties": {"Schedule": "rate(1 day)"}}}


def test_the_checks_send_what_is_not_mcp_out_of_the_folder_and_advise_no_route(project: Project) -> None:
    assert checks.complaints(replace(project, folders=project.folders | {"report"})) == [
        f"functions/report has no tool, prompt or resource: {MOVE}"
    ]
    expected = [f"Add gets events of type Schedule (Nightly), and an MCP function takes HTTP alone: {MOVE}"]
    routes = project.template["Resources"]["Add"]["Properties"]["Events"]
    for events in (SCHEDULE, {**routes, **SCHEDULE}):
        scheduled = replace(project, template=_with_mistake(project.template, "Add.Events", events))
        assert checks.complaints(scheduled) == expected


SERVER = {"Type": "AWS::Cognito::UserPoolResourceServer", "Properties": POOL}
CLIENT = {"Type": "AWS::Cognito::UserPoolClient", "Properties": POOL}


def test_the_checks_make_a_client_of_a_user_pool_wait_for_its_scopes(project: Project) -> None:
    def complaints_about(client: dict[str, Any]) -> list[str]:
        changed: Any = deepcopy(project.template)
        changed["Resources"] |= {"Scopes": SERVER, "Desk": client}
        return checks.complaints(replace(project, template=changed))

    assert complaints_about({**CLIENT, "DependsOn": "Scopes"}) == []
    assert complaints_about({**CLIENT, "DependsOn": ["Table", "Scopes"]}) == []
    assert complaints_about({**CLIENT, "Properties": {"UserPoolId": {"Ref": "Others"}}}) == []
    for wrong in (CLIENT, {**CLIENT, "DependsOn": "Table"}):
        expected = "Desk must have DependsOn: Scopes, because its scopes may be those of Scopes"
        assert complaints_about(wrong) == [expected]


OWN_PROPERTIES: list[tuple[str, object]] = [
    ("Policies", [{"DynamoDBCrudPolicy": {"TableName": {"Ref": "Bookings"}}}]),
    ("Policies", _own("dynamodb:Query", {"Fn::Sub": "${Bookings.Arn}/index/*"})),
    ("Policies", _own("kms:Decrypt", {"Fn::GetAtt": "MyKey.Arn"})),
    ("Policies", _own("sqs:SendMessage", {"Fn::Sub": f"{ARN}:${{AWS::StackName}}-orders"})),
    ("Policies", _own("s3:ListAllMyBuckets", "*")),
    ("Policies", _own("iam:GetRole", "*")),
    ("Policies", _own("iam:TagRole", "arn:aws:iam::123456789012:role/mine")),
    ("Policies", [{"LambdaInvokePolicy": {"FunctionName": {"Ref": "Reports"}}}]),
    ("Policies", [{"DynamoDBCrudPolicy": {"TableName": {"Fn::Sub": "${AWS::StackName}-orders"}}}]),
    ("Policies", ["AWSLambdaVPCAccessExecutionRole", {"AWSSecretsManagerGetSecretValuePolicy": {"SecretArn": "arn"}}]),
    ("Policies", {"Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}),
    ("Environment", {"Variables": {"BOOKINGS": {"Ref": "Bookings"}}}),
    ("VpcConfig", {"SecurityGroupIds": ["sg-1"], "SubnetIds": {"Ref": "Subnets"}}),
    ("Layers", ["arn:aws:lambda:eu-west-1:336392948345:layer:AWSSDKPandas-Python313:1"]),
    ("Timeout", {"Ref": "Seconds"}),
    ("MemorySize", 1024),
]


@pytest.mark.parametrize(("name", "value"), OWN_PROPERTIES, ids=str)
def test_the_checks_accept_additional_properties_of_a_function(name: str, value: object, project: Project) -> None:
    changed = deepcopy(project.template)
    changed["Resources"]["Add"]["Properties"][name] = value
    assert checks.complaints(replace(project, template=changed)) == []


def test_the_checks_apply_to_managed_policies_of_the_template(project: Project) -> None:
    changed = deepcopy(project.template)
    (policy,) = _own("kms:Decrypt", KEY)
    changed["Resources"]["Broad"] = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": policy}}
    changed["Resources"]["Add"]["Properties"]["Policies"] = [{"Ref": "Broad"}]
    (complaint,) = checks.complaints(replace(project, template=changed))
    assert complaint.startswith("Add may use kms on RequestStateKey, beyond its own name")


def _with_mistake(template: Template, where: str, instead: object) -> Template:
    slipped = deepcopy(template)
    first, *path = where.split(".")
    places: list[Any] = [slipped["Resources"]]
    if first == "Globals":
        places = [slipped["Globals"]["Function"]]
    elif path:
        places = [slipped["Resources"][first]["Properties"]]
    for step in path[:-1]:
        places.append(places[-1][step])
    name = path[-1] if path else first
    if instead is ABSENT:
        del places[-1][name]
    else:
        places[-1][name] = instead
    return slipped


OLD_KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROTATIONS = [  # docs/runbooks.md: deploys 1 and 2 (3 stands below), and the other ways to write them
    {"Fn::Join": [",", [OLD_KEY, KEY]]},
    {"Fn::Join": [",", [KEY, {"Ref": "OldKey"}]]},
    {"Fn::Sub": "${RequestStateKey.Arn}," + OLD_KEY},
]


KEYS, SEALING = "Globals.Environment.Variables.MCP_KMS_KEYS", "MaySeal.PolicyDocument.Statement"


@pytest.mark.parametrize("keys", ROTATIONS, ids=str)
def test_the_checks_accept_two_keys_during_a_rotation(keys: object, project: Project) -> None:
    both = {**MAY_SEAL, "Resource": [KEY, OLD_KEY]}
    rotating = replace(project, template=_with_mistake(_with_mistake(project.template, KEYS, keys), SEALING, [both]))
    assert checks.complaints(rotating) == []


NEW_KEY = {"Fn::GetAtt": "NewKey.Arn"}


@pytest.mark.parametrize(
    ("allowed", "complaints"),
    [(NEW_KEY, []), (KEY, ["functions ask: Globals needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"])],
    ids=str,
)
def test_the_checks_accept_a_replaced_key_only_if_the_policy_allows_it(
    allowed: object, complaints: list[str], project: Project
) -> None:
    template = _with_mistake(
        _with_mistake(project.template, KEYS, NEW_KEY), SEALING, [{**MAY_SEAL, "Resource": allowed}]
    )
    assert checks.complaints(replace(project, template=template)) == complaints


@pytest.mark.parametrize("more", ["*", "arn:aws:kms:eu-west-1:123456789012:key/*", OLD_KEY.replace("key/", "alias/")])
def test_the_checks_report_a_policy_for_more_keys_than_the_configured_ones(more: str, project: Project) -> None:
    loose = {**MAY_SEAL, "Resource": [KEY, more]}
    slipped = replace(project, template=_with_mistake(project.template, SEALING, [loose]))
    assert checks.complaints(slipped) == [f"MaySeal opens more than your own keys: {more}"]


AUDIENCE = {**MAY_SEAL["Condition"]["StringEquals"], "kms:EncryptionContext:service": "orders"}
OWN_POLICIES = [
    [{"Statement": [{**MAY_SEAL, "Condition": {**MAY_SEAL["Condition"], "StringEquals": AUDIENCE}}]}],
    ["AWSLambdaVPCAccessExecutionRole", {"DynamoDBCrudPolicy": {"TableName": {"Ref": "Orders"}}}],
    _own("dynamodb:GetItem", {"Fn::GetAtt": "Orders.Arn"}),
    _own("kms:Decrypt", "arn:aws:kms:eu-west-1:123456789012:key/1"),
    _own("sqs:SendMessage", "*"),
    _own("lambda:InvokeFunction", "arn:aws:lambda:eu-west-1:123456789012:function:reports"),
]


@pytest.mark.parametrize("policies", OWN_POLICIES, ids=str)
def test_the_checks_accept_additional_policies_of_a_function(policies: list[Any], project: Project) -> None:
    assert checks.complaints(replace(project, template=_with_mistake(project.template, "Add.Policies", policies))) == []


def test_the_checks_report_a_function_missing_in_the_catalog(project: Project) -> None:
    forgotten = {"forgotten"}
    project_with_folder = replace(project, folders=project.folders | forgotten, offering=project.offering | forgotten)
    assert list(checks.routes.every_folder_is_listed(project_with_folder)) == [
        "functions/forgotten offers nothing in functions/mcp/catalog.json: run make catalog"
    ]


def test_only_the_mode_oauth_deploys_the_sign_in_front(project: Project) -> None:
    """Its folder is there in every mode, and offers nothing that a catalog could list."""
    assert SIGN_IN in project.folders - project.functions.keys() - project.offering
    text = set_auth((ROOT / "template.yaml").read_text(encoding="utf-8"), "oauth")
    oauth = replace(project, template=template.parse(text))
    assert checks.complaints(oauth) == []


SIGN_IN_COMPLAINT = "the sign-in front is for MCP_AUTH_MODE oauth alone, and needed there"
EVENT = "Oauth.Events.Token"
SIGN_IN_MISTAKES: list[tuple[str, object, str]] = [
    ("Oauth", ABSENT, SIGN_IN_COMPLAINT),
    ("Globals.Environment.Variables.MCP_AUTH_MODE", "jwt", SIGN_IN_COMPLAINT),
    ("Oauth.Policies", ABSENT, "functions/oauth needs MaySeal"),
    ("Oauth.Tags", ABSENT, "Oauth must have Tags: mcp-function: oauth"),
    (EVENT, ABSENT, "Oauth has no route: add an event of type HttpApi with ANY /token"),
    (f"{EVENT}.Properties.Auth", ABSENT, "Oauth has other open routes than oauth"),
    (f"{EVENT}.Properties.Path", "/mcp/x", "the route ANY /mcp/x of Oauth must have no Auth"),
    ("HttpApi.Auth.DefaultAuthorizer", ABSENT, "the API enforces none, but functions believe"),
]


@pytest.mark.parametrize(
    ("where", "instead", "complaint"), SIGN_IN_MISTAKES, ids=[f"{slip[0]}: {slip[2]}" for slip in SIGN_IN_MISTAKES]
)
def test_the_checks_report_a_mistake_in_the_template_with_a_sign_in_front(
    where: str, instead: object, complaint: str, project: Project
) -> None:
    text = set_auth((ROOT / "template.yaml").read_text(encoding="utf-8"), "oauth")
    complaints = checks.complaints(replace(project, template=_with_mistake(template.parse(text), where, instead)))
    assert any(complaint in line for line in complaints), complaints


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
    auth = project.template["Resources"]["HttpApi"]["Properties"]["Auth"]
    assert auth == {"EnableIamAuthorizer": True, "DefaultAuthorizer": "AWS_IAM"}
    assert project.variable("MCP_AUTH_MODE") == "iam"


def test_the_key_rotates_and_has_the_deletion_policy_retain(project: Project) -> None:
    key = project.template["Resources"]["RequestStateKey"]
    assert key["Properties"]["EnableKeyRotation"] is True
    assert key["Properties"]["PendingWindowInDays"] == LONGEST_WINDOW
    # on create: no client holds a state of a stack that did not exist
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_the_template_has_short_lines_no_anchors_and_no_flow_mappings() -> None:
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if len(line) > LONGEST_LINE] == []
    events = list(yaml.parse(text))
    assert [event for event in events if getattr(event, "anchor", None)] == [], "no anchors and no aliases"
    assert [event for event in events if isinstance(event, yaml.MappingStartEvent) and event.flow_style] == []


LONGER = {"Mcp": "it has two routes", "PayInvoice": "it reads a secret"}


def test_a_function_takes_at_most_fifteen_lines(project: Project) -> None:
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    blocks = re.findall(r"^  (\w+):.*\n((?:    .*\n)+)", text, re.MULTILINE)
    functions = project.of_type("AWS::Serverless::Function")
    lines = {name: 1 + block.count("\n") for name, block in blocks if name in functions}
    assert lines.keys() == functions.keys()
    assert {name for name, count in lines.items() if count > FUNCTION_LINES} == LONGER.keys()


def test_every_parameter_has_a_default_and_the_costly_ones_are_off(project: Project) -> None:
    parameters = project.template["Parameters"]
    assert {name for name, one in parameters.items() if "Default" not in one or "Description" not in one} == set()
    nothing = {"AlarmTopic": "", "BlobBucket": "", "LogCallers": "off", "MonthlyBudget": 0}
    assert {name: parameters[name]["Default"] for name in nothing} == nothing


def test_a_parameter_that_costs_money_states_its_price(project: Project) -> None:
    parameters = project.template["Parameters"]
    assert {name for name, one in parameters.items() if "USD" in one["Description"]} == {
        "AlarmTopic",
        "BankSecret",
        "BlobBucket",
        "LogCallers",
        "LogDays",
        "MonthlyBudget",
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
    crashed, busy = alarms.pop("CrashedAlarm"), alarms.pop("BusyAlarm")
    assert {(one["MetricName"], str(one["Namespace"])) for one in alarms.values()} == {
        ("AsyncEventsDropped", "AWS/Lambda"),
        *((name, str(ours)) for name in ("Ended", "Misconfigured", "Outages")),
    }
    uncounted = {(one["MetricName"], str(one["Namespace"])) for one in alarms.values()} - counted
    assert uncounted == {("AsyncEventsDropped", "AWS/Lambda")}, "Lambda writes no line of an order that it drops"
    assert {("Crashed", str(ours)), ("Busy", str(ours))} <= counted
    assert crashed["Metrics"][0]["Expression"]["Fn::Sub"].startswith(
        'SELECT SUM(Crashed) FROM SCHEMA("mcp-functions/${AWS::StackName}", handler) GROUP BY handler'
    )
    assert all(one["AlarmActions"] == [{"Ref": "AlarmTopic"}] for one in (crashed, busy, *alarms.values()))


def test_every_worker_has_an_alarm_of_dropped_orders(project: Project) -> None:
    alarms = project.of_type("AWS::CloudWatch::Alarm").values()
    dimensions = [alarm["Dimensions"] for alarm in alarms if alarm.get("MetricName") == "AsyncEventsDropped"]
    workers = [{"Ref": worker.logical_id} for worker in project.workers.values()]
    assert dimensions == [[{"Name": "FunctionName", "Value": worker}] for worker in workers]


SLOW_ALARMS = {"OutageAlarm": (3, 5), "BusyAlarm": (None, 5)}  # of how many minutes; None: of all


def test_a_short_outage_pages_nobody(project: Project) -> None:
    alarms = project.of_type("AWS::CloudWatch::Alarm")
    minutes = {name: (alarms[name].get("DatapointsToAlarm"), alarms[name]["EvaluationPeriods"]) for name in SLOW_ALARMS}
    measured = [one["MetricStat"]["Period"] for one in alarms["BusyAlarm"]["Metrics"] if "MetricStat" in one]
    assert {alarms["OutageAlarm"]["Period"], *measured} == {60}
    assert minutes == SLOW_ALARMS


@pytest.mark.parametrize(
    ("busy", "claimed", "requests", "raised"),
    [
        pytest.param(9, 1000, 30, True, id="another workload fills the account"),
        pytest.param(9, 1000, 499, True, id="another workload, beside as many requests as fill half of it"),
        pytest.param(9, 1000, 3000, False, id="clients fill the account at the throttle's limit"),
        pytest.param(9, 1000, 1100, False, id="one client fills it with calls of 28 s"),
        pytest.param(9, 10, 30, False, id="one client fills a function with its own ReservedConcurrentExecutions"),
        pytest.param(9, 0, 30, False, id="a stopped function"),
        pytest.param(0, 1000, 30, False, id="a full account that refuses nobody here"),
    ],
)
def test_one_client_that_keeps_lambda_busy_pages_nobody(
    project: Project, busy: int, claimed: int, requests: int, *, raised: bool
) -> None:
    metrics = project.of_type("AWS::CloudWatch::Alarm")["BusyAlarm"]["Metrics"]
    (expression,) = [one["Expression"] for one in metrics if "Expression" in one]
    quota = str(project.template["Parameters"]["AccountConcurrency"]["Default"])
    text = expression["Fn::Sub"][0].replace("${Most}", quota).replace("FILL(requests, 0)", "requests")
    condition = re.fullmatch(r"IF\((.*), 1, 0\)", text)
    assert condition, text
    values = {"busy": busy, "claimed": claimed, "requests": requests}
    assert all(compare(term, values) for term in condition[1].split(" AND ")) is raised


def test_fewer_requests_than_the_busy_alarm_allows_cannot_fill_an_account(project: Project) -> None:
    """A request holds two executions for as long as the endpoint may work, and a caller 100 workers."""
    quota = project.template["Parameters"]["AccountConcurrency"]["Default"]
    seconds = project.of_type("AWS::Serverless::Function")["Mcp"]["Timeout"]
    workers = settings.Settings({"MCP_STACK": "shop"}).max_open_tasks
    assert quota / 2 / 60 * 2 * seconds + workers < 0.9 * quota


def compare(term: str, values: dict[str, int]) -> bool:
    """Decide a comparison of two products, such as `2 * requests < 1000`."""
    left, right = (
        math.prod(values[one] if one in values else float(one) for one in side.split(" * "))
        for side in re.split(" [<>] ", term)
    )
    return left < right if "<" in term else left > right


def test_a_budget_needs_a_recipient_and_counts_what_the_stack_made(project: Project) -> None:
    assert project.template["Resources"]["Budget"]["Condition"] == "HasBudget"
    assert {"Condition": "HasAlarms"} in project.template["Conditions"]["HasBudget"]["Fn::And"]
    (budget,) = project.of_type("AWS::Budgets::Budget").values()
    (tagged,) = budget["Budget"]["CostFilters"]["TagKeyValue"]
    assert tagged == {"Fn::Join": ["$", ["aws:cloudformation:stack-name", {"Ref": "AWS::StackName"}]]}
    who = [one["Subscribers"] for one in budget["NotificationsWithSubscribers"]]
    assert who == [[{"SubscriptionType": "SNS", "Address": {"Ref": "AlarmTopic"}}]] * 2


@pytest.mark.parametrize(
    "names", [(), ("2026-11.fbIZn1rBHzMDjVTr",), ("2026-11.fbIZn1rBHzMDjVTr", "2026-10.fbIZn1rBH-_DjVTr")]
)
def test_a_deployment_accepts_stopped_callers_by_their_names_in_the_log(
    project: Project, names: tuple[str, ...]
) -> None:
    pattern = project.template["Parameters"]["StoppedCallers"]["AllowedPattern"]
    assert re.fullmatch(pattern, ",".join(names))


@pytest.mark.parametrize("name", ["fbIZn1rBHzMDjVTr", "2026-11.fbIZn1rBHzMDjVT", "alice"])
def test_a_deployment_refuses_a_stopped_caller_that_is_no_name_of_the_log(project: Project, name: str) -> None:
    pattern = project.template["Parameters"]["StoppedCallers"]["AllowedPattern"]
    assert not re.fullmatch(pattern, name)


def test_globals_reserve_no_concurrency(project: Project) -> None:
    assert "ReservedConcurrentExecutions" not in project.template["Globals"]["Function"]


def _metrics(filters: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in filters:
        (metric,) = one["MetricTransformations"]
        yield metric["MetricName"], metric


def test_a_bucket_is_optional_private_and_deletes_old_objects(project: Project) -> None:
    assert project.template["Conditions"]["HasOwnBlobs"] == {"Fn::Equals": [{"Ref": "BlobBucket"}, "new"]}
    bucket = project.template["Resources"]["Blobs"]
    assert (bucket["Condition"], bucket["DeletionPolicy"]) == ("HasOwnBlobs", "RetainExceptOnCreate")
    (rule,) = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] * 24 * 3600 > settings.Settings({"MCP_STACK": "shop"}).max_task_ttl
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}


def test_neither_the_table_nor_an_object_is_lost_or_read_by_mistake(project: Project) -> None:
    """A table that is deleted forgets which rounds ran; no rollback can delete a protected one, so it is retained."""
    table = project.template["Resources"]["Table"]
    assert (table["DeletionPolicy"], table["Properties"]["DeletionProtectionEnabled"]) == ("Retain", True)
    assert "Condition" not in table, "a parameter that removes it and makes another would let used rounds run again"
    (policy,) = project.of_type("AWS::S3::BucketPolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_the_access_log_is_json_without_content_or_callers(project: Project) -> None:
    written = project.of_type("AWS::Serverless::HttpApi")["HttpApi"]["AccessLogSettings"]["Format"]
    assert set(json.loads(written)) >= {"id", "route", "status", "integration_status", "integration_error", "ms"}
    told = set(re.findall(r"\$context\.([\w.]+)", written))
    of_callers = {name for name in told if name.startswith(("identity", "authorizer", "path", "domain"))}
    assert of_callers == {"authorizer.error"}, "why a token is refused, and not whose it is"


def test_the_costs_count_the_bytes_of_the_access_log() -> None:
    line = filters.access_line(
        requestId="JKJaXmPLvHcESHA=",
        routeKey="ANY /mcp",
        status="200",
        integrationStatus="200",
        responseLatency="34",
        integrationLatency="31",
        responseLength="949",
    )
    assert json.loads(line)["route"] == "ANY /mcp"
    assert len(line) + cost.EVENT_BYTES == pytest.approx(cost.ACCESS_BYTES, abs=5)


def test_the_access_log_does_not_grow_the_policy_of_the_accounts_logs(project: Project) -> None:
    access_logs = project.of_type("AWS::Logs::LogGroup")["AccessLogs"]
    assert access_logs["LogGroupName"]["Fn::Sub"].startswith("/aws/vendedlogs/")


def test_the_dashboard_is_json(project: Project) -> None:
    body = project.of_type("AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"]["Fn::Sub"]
    assert len(json.loads(body)["widgets"]) == 3


def test_every_log_group_has_a_retention_time(project: Project) -> None:
    logs = project.of_type("AWS::Logs::LogGroup")
    assert {one["RetentionInDays"]["Ref"] for one in logs.values()} == {"LogDays"}
    assert project.template["Globals"]["Function"]["LoggingConfig"]["LogGroup"] == {"Ref": "FunctionLogs"}


def test_the_first_output_is_the_endpoint(project: Project) -> None:
    name, output = next(iter(project.template["Outputs"].items()))
    assert name == "Endpoint"
    assert output["Value"]["Fn::Sub"].endswith("/mcp")


def test_every_variable_that_the_template_sets_is_read_by_the_toolkit_or_by_boto3(project: Project) -> None:
    blocks = [project.template["Globals"]["Function"], *(block.properties for block in project.functions.values())]
    variables = {name: value for block in blocks for name, value in _variables(block).items()}
    endpoints = {name for name in variables if name.startswith("AWS_ENDPOINT_URL_")}
    assert {variables[name] for name in endpoints} == {""}, "deployed, the endpoints are AWS's"
    sources = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in (settings, aws_endpoints))
    read = {name for name in variables if f'"{name}"' in sources}
    assert sorted(variables.keys() - endpoints - read) == [
        "BANK_SECRET",
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
    assert {wanted.name for wanted in shipped} == needed.keys() - PACKAGES_OF_LAMBDA - DEVELOPER_PACKAGES
    for wanted in shipped:
        (pin,) = wanted.specifier
        assert pin.version in needed[wanted.name].specifier, f"pyproject.toml does not allow {wanted}"
        assert wanted == tested[wanted.name], f"the dev extra tests {tested[wanted.name]}, the layer ships {wanted}"


def test_the_package_declares_its_imports() -> None:
    package = ROOT / "layers/shared/mcp_functions"
    # Who adopts a server has its library: `adopt` alone imports it.
    others = DEVELOPERS_ONLY | {"adopt"}
    shipped = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in others]
    imported = {name for path in shipped for name in _imported(path.read_text(encoding="utf-8"))}
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {Requirement(line).name for line in metadata["dependencies"]}
    # pydantic brings annotated_types and pydantic_core; _typeshed and typing_extensions are for type checkers.
    imported -= {"mcp_functions", "annotated_types", "pydantic_core", "_typeshed", "typing_extensions"}
    assert (
        imported - sys.stdlib_module_names - PACKAGES_OF_LAMBDA
        == declared - PACKAGES_OF_LAMBDA - AUTHOR_PACKAGES - DEVELOPER_PACKAGES
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
