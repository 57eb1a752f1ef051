"""SAM's own code translates template.yaml: the tests read who may call, and which resources a parameter changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness.api_gateway.api import METADATA, METADATA_OF_FUNCTION, SIGN_IN_PATHS
from mcp_functions_harness.auth import set_auth
from mcp_functions_harness.lambdas.functions import SIGN_IN
from tests.policies.translated import Translated
from tests.support import contract
from tests.support.translation import ROOT, translate

if TYPE_CHECKING:
    from mcp_functions.settings import AuthMode

    Json = dict[str, Any]

FOLDERS = sorted({path.parent.name for path in (ROOT / "functions").glob("*/app.py")} - {SIGN_IN})
TEMPLATE = (ROOT / "template.yaml").read_text(encoding="utf-8")
SCHEMES: dict[AuthMode, Any] = {"iam": [{"AWS_IAM": []}], "jwt": [{"jwt": []}], "oauth": [{"jwt": []}], "none": None}


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> dict[AuthMode, Json]:
    """Translate the template in every mode."""
    directory = tmp_path_factory.mktemp("modes")
    found: dict[AuthMode, Json] = {}
    for mode in SCHEMES:
        path = directory / f"{mode}.yaml"
        path.write_text(set_auth(TEMPLATE, mode), encoding="utf-8")
        found[mode] = translate(path)
    return found


def _routes(template: Json) -> dict[str, Json]:
    paths = template["Resources"]["HttpApi"]["Properties"]["Body"]["paths"]
    keys = {"x-amazon-apigateway-any-method": "ANY", "options": "OPTIONS"}
    return {f"{keys[method]} {path}": route for path, methods in paths.items() for method, route in methods.items()}


def _name(resource: str) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "_", resource).lower()


@pytest.mark.parametrize("mode", SCHEMES)
def test_the_routes_are_those_of_the_contract(mode: AuthMode, translated: dict[AuthMode, Json]) -> None:
    routes = _routes(translated[mode])
    promised = contract.routes(mode, [folder for folder in FOLDERS if folder != "mcp"])
    assert routes.keys() == promised.keys()
    for key, route in routes.items():
        row, integration = promised[key], route["x-amazon-apigateway-integration"]
        assert integration["payloadFormatVersion"] == contract.CONTRACT["api"]["payloadFormatVersion"]
        function = re.findall(r"\$\{(\w+)\.Arn\}", integration["uri"]["Fn::Sub"])
        folder = {"endpoint": "mcp", "sign-in": SIGN_IN}.get(row["to"], row["path"].removeprefix("/mcp/"))
        assert [_name(one) for one in function] == [folder], key
        assert route.get("security") == ([{"NONE": []}] if row["caller"] == "anybody" else SCHEMES[mode]), key


def test_the_routes_of_the_contract_are_those_of_the_local_gateway() -> None:
    opened = {row["path"] for row in contract.CONTRACT["routes"] if row["caller"] == "anybody"}
    assert opened == {"/mcp", METADATA, f"{METADATA}/mcp", METADATA_OF_FUNCTION, *SIGN_IN_PATHS}


@pytest.mark.parametrize("mode", SCHEMES)
def test_the_variables_of_a_mode_are_those_of_the_contract(mode: AuthMode, translated: dict[AuthMode, Json]) -> None:
    variables = translated[mode]["Resources"]["Mcp"]["Properties"]["Environment"]["Variables"]
    assert {name for name in variables if name.startswith("MCP_")} == {
        name
        for name, row in contract.CONTRACT["variables"].items()
        if mode in row["templateSets"] and row["readBy"] != "sign-in"
    }


@pytest.mark.parametrize("mode", SCHEMES)
def test_every_function_has_the_auth_mode_of_the_api(mode: AuthMode, translated: dict[AuthMode, Json]) -> None:
    functions = [one for one in translated[mode]["Resources"].values() if one["Type"] == "AWS::Lambda::Function"]
    assert len(functions) > len(FOLDERS)
    assert {one["Properties"]["Environment"]["Variables"]["MCP_AUTH_MODE"] for one in functions} == {mode}


def test_the_jwt_authorizer_has_the_issuer_and_the_audience_of_the_parameters(translated: dict[AuthMode, Json]) -> None:
    schemes = translated["jwt"]["Resources"]["HttpApi"]["Properties"]["Body"]["components"]["securitySchemes"]
    authorizer = schemes["jwt"]["x-amazon-apigateway-authorizer"]
    assert authorizer["jwtConfiguration"] == {"audience": {"Ref": "JwtAudience"}, "issuer": {"Ref": "JwtIssuer"}}
    assert (authorizer["type"], authorizer["identitySource"]) == ("jwt", "$request.header.Authorization")


def test_no_mode_but_oauth_has_resources_of_the_sign_in_front(translated: dict[AuthMode, Json]) -> None:
    added = {name: one["Type"] for name, one in translated["oauth"]["Resources"].items()}
    for mode in ("iam", "none"):
        for name in translated[mode]["Resources"]:
            added.pop(name, None)
    assert {kind for name, kind in added.items() if not name.startswith(("Oauth", "UserPool"))} == {
        "AWS::Lambda::Permission"  # of the metadata's routes
    }
    assert "Oauth" not in translated["jwt"]["Resources"]
    assert translated["jwt"]["Conditions"].keys() == translated["iam"]["Conditions"].keys()


def test_the_sign_in_front_has_its_own_throttle_and_concurrency(translated: dict[AuthMode, Json]) -> None:
    deployed = _deployed(translated["oauth"], SignInsPerSecond="3", SignInBurst="4", SignInConcurrency="5")
    (stage,) = [one for one in deployed.values() if one["Type"] == "AWS::ApiGatewayV2::Stage"]
    limits = {"ThrottlingRateLimit": "3", "ThrottlingBurstLimit": "4"}
    assert stage["Properties"]["RouteSettings"] == dict.fromkeys([f"ANY {path}" for path in SIGN_IN_PATHS], limits)
    assert deployed["Oauth"]["Properties"]["ReservedConcurrentExecutions"] == "5"
    assert "ReservedConcurrentExecutions" not in deployed["Mcp"]["Properties"]


ARN = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider"
URL = "https://m.example/mcp"


def test_the_sign_in_front_may_read_only_its_secret(translated: dict[AuthMode, Json]) -> None:
    def readable(**parameters: str) -> list[Any]:
        role = _deployed(translated["oauth"], **parameters)["OauthRole"]["Properties"]
        statements = [one for policy in role.get("Policies", []) for one in policy["PolicyDocument"]["Statement"]]
        assert {one["Action"] for one in statements} <= {"secretsmanager:GetSecretValue"}
        return [one["Resource"] for one in statements]

    assert readable() == []
    assert readable(SignInSecret=ARN) == [ARN]
    assert readable(JwtIssuer="new", ResourceUrl=URL) == [{"Ref": "UserPoolClientSecret"}]


def test_the_issuer_new_creates_a_user_pool_with_tokens_for_the_url_of_the_server(
    translated: dict[AuthMode, Json],
) -> None:
    given = _deployed(translated["oauth"], JwtIssuer="https://id.example", JwtAudience="us", SignInClientId="front")
    assert not [name for name in given if name.startswith("UserPool")]
    variables = given["Mcp"]["Properties"]["Environment"]["Variables"]
    assert (variables["MCP_OAUTH_CLIENT_ID"], variables["MCP_JWT_ISSUER"]) == ("front", "https://id.example")

    made = _deployed(translated["oauth"], JwtIssuer="new", ResourceUrl=URL)
    issuer = {"Fn::GetAtt": ["UserPool", "ProviderURL"]}
    schemes = made["HttpApi"]["Properties"]["Body"]["components"]["securitySchemes"]
    authorizer = schemes["jwt"]["x-amazon-apigateway-authorizer"]
    assert authorizer["jwtConfiguration"] == {"audience": [URL], "issuer": issuer}
    variables = made["Mcp"]["Properties"]["Environment"]["Variables"]
    assert (variables["MCP_JWT_ISSUER"], variables["MCP_JWT_AUDIENCE"]) == (issuer, URL)
    assert (variables["MCP_OAUTH_CLIENT_ID"], variables["MCP_OAUTH_BINDING"]) == ({"Ref": "UserPoolClient"}, "aud")
    client = made["UserPoolClient"]["Properties"]
    assert client["AccessTokenValidity"] == 15
    assert client["RefreshTokenRotation"]["Feature"] == "ENABLED"
    assert client["EnableTokenRevocation"] is True
    assert made["UserPoolResourceServer"]["Properties"]["Identifier"] == URL
    assert made["UserPoolClientSecret"]["Properties"]["SecretString"] == {
        "Fn::GetAtt": ["UserPoolClient", "ClientSecret"]
    }


def _broken_rules(template: Json, **parameters: str) -> list[str]:
    resolved = Translated(template, parameters)
    return [
        name
        for name, rule in template["Rules"].items()
        if resolved.decided(rule["RuleCondition"])
        and not all(resolved.decided(one["Assert"]) for one in rule["Assertions"])
    ]


def test_the_template_refuses_a_deployment_that_cannot_sign_users_in(translated: dict[AuthMode, Json]) -> None:
    def stopped(**parameters: str) -> list[str]:
        return _broken_rules(translated["oauth"], **parameters)

    assert stopped(JwtIssuer="new") == ["NewNeedsTheUrlThatTokensAreFor"]
    assert stopped(JwtIssuer="https://id.example") == ["YourProviderKnowsTheFront"]
    assert stopped(JwtIssuer="new", ResourceUrl=URL) == []
    assert stopped(JwtIssuer="https://id.example", SignInClientId="front") == []
    assert _broken_rules(translated["jwt"], JwtIssuer="new") == []


@pytest.mark.parametrize("mode", SCHEMES)
def test_the_template_refuses_stopped_callers_without_log_callers(
    mode: AuthMode, translated: dict[AuthMode, Json]
) -> None:
    given = {"JwtIssuer": "https://id.example", "SignInClientId": "front"} if mode == "oauth" else {}
    name = "2026-11.fbIZn1rBHzMDjVTr"
    assert _broken_rules(translated[mode], StoppedCallers=name, **given) == ["StoppedCallersAreKnown"]
    assert _broken_rules(translated[mode], StoppedCallers=name, LogCallers="on", **given) == []
    assert _broken_rules(translated[mode], **given) == []


def test_routes_and_the_endpoint_invoke_the_newest_code(translated: dict[AuthMode, Json]) -> None:
    resources = translated["iam"]["Resources"]
    assert {"AWS::Lambda::Version", "AWS::Lambda::Alias"}.isdisjoint({one["Type"] for one in resources.values()})
    for route in _routes(translated["iam"]).values():
        assert route["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"].endswith(".Arn}/invocations")
    assert "MCP_QUALIFIER" not in resources["Mcp"]["Properties"]["Environment"]["Variables"]


FUNCTIONS = {"AWS::Lambda::Function"}
NEEDS_ALARMS = {"AccountConcurrency", "CrashesAllowed", "EndsAllowed", "MonthlyBudget"}
TOPIC = "arn:aws:sns:eu-west-1:111122223333:told"
ALARM_TYPES = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Logs::MetricFilter"}
# parameter -> another value, and what is different with it
CHANGES: dict[str, tuple[str, set[str]]] = {
    "AlarmTopic": (TOPIC, FUNCTIONS | ALARM_TYPES),
    "Architecture": ("arm64", FUNCTIONS | {"AWS::Lambda::LayerVersion"}),
    "BankSecret": ("arn:aws:secretsmanager:eu-west-1:111122223333:secret:bank", FUNCTIONS | {"AWS::IAM::Role"}),
    "BlobBucket": ("new", FUNCTIONS | {"AWS::IAM::ManagedPolicy", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"}),
    **dict.fromkeys(("AccountConcurrency", "CrashesAllowed", "EndsAllowed"), ("7", {"AWS::CloudWatch::Alarm"})),
    "Generation": ("2", FUNCTIONS),
    "LogCallers": ("on", FUNCTIONS | {"AWS::KMS::Key"}),
    "LogDays": ("7", {"AWS::Logs::LogGroup"}),
    "MonthlyBudget": ("7", {"AWS::Budgets::Budget"}),
    "RequestBurst": ("7", {"AWS::ApiGatewayV2::Stage"}),
    "RequestsPerSecond": ("7", {"AWS::ApiGatewayV2::Stage"}),
    "Runtime": ("python3.12", FUNCTIONS | {"AWS::Lambda::LayerVersion"}),
    "StoppedCallers": ("2026-11.fbIZn1rBHzMDjVTr", FUNCTIONS),
    "StoppedFunctions": ("add", FUNCTIONS),
    "Stage": ("dev", FUNCTIONS | {"AWS::IAM::ManagedPolicy"}),
}

API = {"AWS::ApiGatewayV2::Api"}
# the same for the parameters of the mode jwt
JWT_CHANGES: dict[str, tuple[str, set[str]]] = {
    "AllowedOrigins": ("https://app.example", FUNCTIONS),
    "JwtAudience": ("us", FUNCTIONS | API),
    "JwtIssuer": ("https://issuer.example", FUNCTIONS | API),
    "ResourceUrl": ("https://m.example/mcp", FUNCTIONS),
}


# parameter of the sign-in -> another value, and the resources that are different with it
FRONT, EVERY = {"Oauth"}, {"every function"}
SIGN_IN_CHANGES: dict[str, tuple[str, set[str]]] = {
    "SignInAllScopes": ("on", FRONT),
    "SignInBinding": ("client_id", EVERY),
    "SignInBlockedClients": ("https://app.example", FRONT),
    "SignInBlockedHosts": ("evil.example", FRONT),
    "SignInBurst": ("7", {"HttpApiApiGatewayDefaultStage"}),
    "SignInClientDocuments": ("off", FRONT),
    "SignInClientGeneration": ("2", FRONT),
    "SignInClientId": ("another", EVERY),
    "SignInClients": ("[1]", FRONT),
    "SignInConcurrency": ("7", FRONT),
    "SignInExtraPrompt": ("consent", FRONT),
    "SignInExtraScopes": ("offline_access", FRONT),
    "SignInRegistration": ("off", FRONT),
    "SignInResourceParameter": ("audience", FRONT),
    "SignInScopePrefix": ("api://shop/", EVERY),
    "SignInSecret": ("arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider", {"Oauth", "OauthRole"}),
    "SignInsPerSecond": ("7", {"HttpApiApiGatewayDefaultStage"}),
}


def test_these_tests_change_every_parameter_of_the_template(translated: dict[AuthMode, Json]) -> None:
    assert translated["iam"]["Parameters"].keys() == CHANGES.keys()
    assert translated["jwt"]["Parameters"].keys() == CHANGES.keys() | JWT_CHANGES.keys()
    assert translated["oauth"]["Parameters"].keys() == CHANGES.keys() | JWT_CHANGES.keys() | SIGN_IN_CHANGES.keys()
    assert translated["none"]["Parameters"].keys() == CHANGES.keys() | {"AllowedOrigins"}


@pytest.mark.parametrize("parameter", SIGN_IN_CHANGES)
def test_a_changed_parameter_of_the_sign_in_front_changes_the_deployed_resources(
    parameter: str, translated: dict[AuthMode, Json]
) -> None:
    value, names = SIGN_IN_CHANGES[parameter]
    given = {"JwtIssuer": "https://id.example", "SignInClientId": "front"}
    before = _deployed(translated["oauth"], **given)
    after = _deployed(translated["oauth"], **{**given, parameter: value})
    functions = {name for name, one in before.items() if one["Type"] == "AWS::Lambda::Function"}
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == (functions if names == EVERY else names)


@pytest.mark.parametrize("parameter", [*CHANGES, *JWT_CHANGES])
def test_a_changed_parameter_changes_the_deployed_resources(parameter: str, translated: dict[AuthMode, Json]) -> None:
    value, kinds = {**CHANGES, **JWT_CHANGES}[parameter]
    given = {"AlarmTopic": TOPIC} if parameter in NEEDS_ALARMS else {}
    template = translated["jwt" if parameter in JWT_CHANGES else "iam"]
    before = _deployed(template, **given)
    after = _deployed(template, **given, **{parameter: value})
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {(after.get(name) or before[name])["Type"] for name in changed} == kinds
    functions = {name for name, one in before.items() if one["Type"] == "AWS::Lambda::Function"}
    if kinds >= FUNCTIONS and parameter != "BankSecret":
        assert changed >= functions, "of every function"


def _deployed(template: Json, **parameters: str) -> dict[str, Json]:
    resolved = Translated(template, parameters)
    there = [name for name, one in template["Resources"].items() if resolved.is_deployed(one)]
    return {name: resolved.value(template["Resources"][name]) for name in there}
