"""What template.yaml becomes, by the code that SAM's transform is: who may call, and what a parameter changes.

The translator lives in .venv-sam, which `make test-all` prepares; where it is missing, these tests are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.local.auth import METADATA, set_auth
from tests.package.stack import Resolved
from tests.project.test_build import SAM_BIN, TRANSLATE, run

if TYPE_CHECKING:
    from mcp_functions.settings import AuthMode

    Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
TEXT = (ROOT / "template.yaml").read_text(encoding="utf-8")
CLOSED = {f"ANY /mcp/{folder}" for folder in FOLDERS if folder != "mcp"} | {"ANY /mcp"}
SCHEMES: dict[AuthMode, Any] = {"iam": [{"AWS_IAM": []}], "jwt": [{"jwt": []}], "none": None}
OPEN: dict[AuthMode, set[str]] = {
    "iam": {"OPTIONS /mcp"},
    "jwt": {"OPTIONS /mcp", f"ANY {METADATA}", f"ANY {METADATA}/mcp"},
    "none": set(),
}

pytestmark = pytest.mark.skipif(not SAM_BIN.exists(), reason="no .venv-sam: make test-all prepares it")


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> dict[AuthMode, Json]:
    """Translate the template in every mode."""
    directory = tmp_path_factory.mktemp("modes")
    found: dict[AuthMode, Json] = {}
    for mode in SCHEMES:
        path = directory / f"{mode}.yaml"
        path.write_text(set_auth(TEXT, mode), encoding="utf-8")
        found[mode] = json.loads(run("python", TRANSLATE, path))
    return found


def _routes(template: Json) -> dict[str, Json]:
    paths = template["Resources"]["HttpApi"]["Properties"]["Body"]["paths"]
    keys = {"x-amazon-apigateway-any-method": "ANY", "options": "OPTIONS"}
    return {f"{keys[method]} {path}": route for path, methods in paths.items() for method, route in methods.items()}


@pytest.mark.parametrize("mode", SCHEMES)
def test_every_route_has_the_security_of_its_mode(mode: AuthMode, translated: dict[AuthMode, Json]) -> None:
    routes = _routes(translated[mode])
    assert routes.keys() == CLOSED | OPEN[mode]
    secured = {key: route.get("security") for key, route in routes.items()}
    assert secured == dict.fromkeys(CLOSED, SCHEMES[mode]) | {key: [{"NONE": []}] for key in OPEN[mode]}


@pytest.mark.parametrize("mode", SCHEMES)
def test_every_function_believes_the_mode_of_the_api(mode: AuthMode, translated: dict[AuthMode, Json]) -> None:
    functions = [one for one in translated[mode]["Resources"].values() if one["Type"] == "AWS::Lambda::Function"]
    assert len(functions) > len(FOLDERS)
    assert {one["Properties"]["Environment"]["Variables"]["MCP_AUTH_MODE"] for one in functions} == {mode}


def test_tokens_are_of_the_issuer_and_the_audience_of_the_deployment(translated: dict[AuthMode, Json]) -> None:
    schemes = translated["jwt"]["Resources"]["HttpApi"]["Properties"]["Body"]["components"]["securitySchemes"]
    authorizer = schemes["jwt"]["x-amazon-apigateway-authorizer"]
    assert authorizer["jwtConfiguration"] == {"audience": {"Ref": "JwtAudience"}, "issuer": {"Ref": "JwtIssuer"}}
    assert (authorizer["type"], authorizer["identitySource"]) == ("jwt", "$request.header.Authorization")


def test_routes_and_the_endpoint_invoke_the_newest_code(translated: dict[AuthMode, Json]) -> None:
    resources = translated["iam"]["Resources"]
    assert {"AWS::Lambda::Version", "AWS::Lambda::Alias"}.isdisjoint({one["Type"] for one in resources.values()})
    for route in _routes(translated["iam"]).values():
        assert route["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"].endswith(".Arn}/invocations")
    assert "MCP_QUALIFIER" not in resources["Mcp"]["Properties"]["Environment"]["Variables"]


FUNCTIONS = {"AWS::Lambda::Function"}
NEEDS_ALARMS = {"CrashesAllowed", "MonthlyBudget"}
TOPIC = "arn:aws:sns:eu-west-1:111122223333:told"
WATCHERS = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Logs::MetricFilter"}
# parameter -> another value, and what is different with it
CHANGES: dict[str, tuple[str, set[str]]] = {
    "AlarmTopic": (TOPIC, FUNCTIONS | WATCHERS),
    "AllowedOrigins": ("https://app.example", FUNCTIONS),
    "Architecture": ("arm64", FUNCTIONS | {"AWS::Lambda::LayerVersion"}),
    "AwsClient": ("boto3", FUNCTIONS),
    "BankSecret": ("arn:aws:secretsmanager:eu-west-1:111122223333:secret:bank", FUNCTIONS | {"AWS::IAM::Role"}),
    "BlobBucket": ("new", FUNCTIONS | {"AWS::IAM::ManagedPolicy", "AWS::S3::Bucket"}),
    "CrashesAllowed": ("7", {"AWS::CloudWatch::Alarm"}),
    "Generation": ("2", FUNCTIONS),
    "JwtAudience": ("us", FUNCTIONS),
    "JwtIssuer": ("https://issuer.example", FUNCTIONS),
    "LogCallers": ("on", FUNCTIONS | {"AWS::KMS::Key"}),
    "LogDays": ("7", {"AWS::Logs::LogGroup"}),
    "MonthlyBudget": ("7", {"AWS::Budgets::Budget"}),
    "RequestBurst": ("7", {"AWS::ApiGatewayV2::Stage"}),
    "RequestsPerSecond": ("7", {"AWS::ApiGatewayV2::Stage"}),
    "ResourceUrl": ("https://m.example/mcp", FUNCTIONS),
    "Runtime": ("python3.12", FUNCTIONS | {"AWS::Lambda::LayerVersion"}),
    "ServerVersion": ("7", FUNCTIONS),
    "StoppedCallers": ("2026-11.fbIZn1rBHzMDjVTr", FUNCTIONS),
    "StoppedFunctions": ("add", FUNCTIONS),
    "Stage": ("dev", FUNCTIONS | {"AWS::IAM::ManagedPolicy"}),
    "WithTable": ("false", FUNCTIONS | {"AWS::DynamoDB::Table", "AWS::IAM::ManagedPolicy"}),
}


def test_every_parameter_is_changed_here(translated: dict[AuthMode, Json]) -> None:
    assert translated["iam"]["Parameters"].keys() == CHANGES.keys()


@pytest.mark.parametrize("parameter", CHANGES)
def test_a_parameter_that_is_changed_changes_what_is_invoked(parameter: str, translated: dict[AuthMode, Json]) -> None:
    value, kinds = CHANGES[parameter]
    given = {"AlarmTopic": TOPIC} if parameter in NEEDS_ALARMS else {}
    before = _deployed(translated["iam"], **given)
    after = _deployed(translated["iam"], **given, **{parameter: value})
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {(after.get(name) or before[name])["Type"] for name in changed} == kinds
    functions = {name for name, one in before.items() if one["Type"] == "AWS::Lambda::Function"}
    if kinds >= FUNCTIONS and parameter != "BankSecret":
        assert changed >= functions, "of every function"


def _deployed(template: Json, **parameters: str) -> dict[str, Json]:
    resolved = Resolved(template, parameters)
    there = [name for name, one in template["Resources"].items() if resolved.is_deployed(one)]
    return {name: resolved.value(template["Resources"][name]) for name in there}
