"""The deployed resources match the template one by one; the test names those that moto cannot deploy."""

from __future__ import annotations

import hashlib
import io
import zipfile
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness.lambdas.functions import SIGN_IN
from tests.package.conftest import BUCKET
from tests.package.stack import ACCOUNT, NAME, REGION, Stack, policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.package.stack import Json

ROOT = Path(__file__).parents[2]
FOLDERS = sorted({path.parent.name for path in (ROOT / "functions").glob("*/app.py")} - {SIGN_IN})
BASIC = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"  # to write logs

# Of an HTTP API and of asynchronous invocations moto's CloudFormation knows nothing: these are looked at in the
# translated template only (tests/project/test_translation.py).
SKIPPED = {"AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage", "AWS::Lambda::EventInvokeConfig"}
WORKERS = ["audit_year-worker"]  # the same code once more, without a route
WATCHING = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Logs::MetricFilter"}
POLICIES = {
    "add": (),
    "sales": (),
    **dict.fromkeys(("audit_year", "mcp", "pay_invoice"), ("MaySeal", "MayKeep")),
}  # others seal
TRACES = "arn:aws:iam::aws:policy/AWSXrayWriteOnlyAccess"


def logical_id(folder: str) -> str:
    return "".join(word.capitalize() for word in folder.split("_"))


def test_the_stack_is_complete(stack: Stack) -> None:
    (described,) = stack.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
    assert described["StackStatus"] == "CREATE_COMPLETE"
    wanted = {name for name, resource in stack.resources() if resource["Type"] not in SKIPPED}
    assert stack.physical.keys() == wanted


def test_the_resources_that_moto_skips_are_known(stack: Stack) -> None:
    assert stack.skipped == SKIPPED


def test_the_properties_that_moto_omits_are_known(stack: Stack) -> None:
    found = stack.client("lambda").get_function_configuration(FunctionName=f"{NAME}_add")
    assert found["Layers"] == [], "so test_a_function_has_the_configuration_of_the_template reads them in the template"
    attached = stack.client("iam").list_attached_role_policies(RoleName=stack.physical["AddRole"])
    assert attached["AttachedPolicies"] == [], "so its managed policy is read there too"


def test_every_resource_has_a_type_that_these_tests_check(stack: Stack) -> None:
    assert {resource["Type"] for _, resource in stack.resources(AlarmTopic="arn")} == {
        *SKIPPED,
        *WATCHING,
        "AWS::DynamoDB::Table",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "AWS::KMS::Key",
        "AWS::Lambda::Function",
        "AWS::Lambda::LayerVersion",
        "AWS::Lambda::Permission",
        "AWS::Logs::LogGroup",
        "AWS::SNS::Topic",
    }


def test_alarms_exist_only_with_a_recipient(stack: Stack) -> None:
    assert {resource["Type"] for _, resource in stack.resources()}.isdisjoint(WATCHING)


# ---- Functions


@pytest.fixture(scope="module")
def deployed(stack: Stack) -> Callable[[str], Json]:
    lambdas = stack.client("lambda")
    return lambda folder: dict(lambdas.get_function_configuration(FunctionName=f"{NAME}_{folder}"))


def test_the_stack_has_one_function_for_each_folder(stack: Stack) -> None:
    there = stack.client("lambda").list_functions(MaxItems=1000)["Functions"]
    assert sorted(function["FunctionName"] for function in there) == sorted(
        f"{NAME}_{name}" for name in [*FOLDERS, *WORKERS]
    )


def test_a_worker_has_the_code_of_its_function_the_longest_timeout_and_no_retry(stack: Stack) -> None:
    functions = stack.of_type("AWS::Lambda::Function")
    worker, own = functions["AuditYearWorker"], functions["AuditYear"]
    assert (worker["Timeout"], worker["RecursiveLoop"]) == (900, "Allow")
    assert {
        name: value for name, value in worker.items() if name not in {"FunctionName", "Timeout", "RecursiveLoop"}
    } == {
        name: value if name != "Role" else {"Fn::GetAtt": ["AuditYearWorkerRole", "Arn"]}
        for name, value in own.items()
        if name not in {"FunctionName", "Timeout"}
    }
    ((_, invoked),) = stack.of_type("AWS::Lambda::EventInvokeConfig").items()
    assert invoked["MaximumRetryAttempts"] == 0
    assert invoked["DestinationConfig"] == {"OnFailure": {"Destination": {"Ref": "TaskFailures"}}}


def test_the_table_expires_items_and_is_kept_when_the_stack_is_deleted(stack: Stack) -> None:
    dynamodb, name = stack.client("dynamodb"), stack.physical["Table"]
    found = dynamodb.describe_table(TableName=name)["Table"]
    assert found["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    assert found["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    resource = dict(stack.resources())["Table"]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    written = resource["Properties"]
    assert written["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert written["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "SSESpecification" not in written, "AWS's own key: ours opens nothing but request states"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_function_has_the_configuration_of_the_template(
    folder: str, stack: Stack, deployed: Callable[[str], Json]
) -> None:
    written, found = stack.of_type("AWS::Lambda::Function")[logical_id(folder)], deployed(folder)
    same = ("Runtime", "Handler", "Timeout", "MemorySize", "Architectures")
    assert {name: found[name] for name in same} == {name: written[name] for name in same}
    assert found["Role"].endswith(f":role/{stack.physical[f'{logical_id(folder)}Role']}")
    assert [layer["Ref"].rstrip("0123456789abcdef") for layer in written["Layers"]] == [
        "DependenciesLayer",
        "SharedLayer",
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_function_has_the_variables_of_the_template(
    folder: str, stack: Stack, deployed: Callable[[str], Json]
) -> None:
    written = stack.of_type("AWS::Lambda::Function")[logical_id(folder)]["Environment"]["Variables"]
    found = deployed(folder)["Environment"]["Variables"]
    assert found.keys() == written.keys()
    assert {name: value for name, value in found.items() if isinstance(written[name], str)} == {
        name: value for name, value in written.items() if isinstance(value, str)
    }
    assert (found["MCP_STACK"], found["MCP_AUTH_MODE"]) == (NAME, "iam")
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{stack.physical['RequestStateKey']}"
    assert found.get("MCP_KMS_KEYS", key) == key


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_zip_of_a_function_is_its_folder(folder: str, stack: Stack, deployed: Callable[[str], Json]) -> None:
    code = stack.of_type("AWS::Lambda::Function")[logical_id(folder)]["Code"]
    zipped = uploaded(stack, code["S3Bucket"], code["S3Key"])
    assert hashlib.sha256(zipped).digest() == b64decode(deployed(folder)["CodeSha256"])
    assert contents(zipped) == {
        path.name: path.read_bytes() for path in (ROOT / "functions" / folder).iterdir() if path.is_file()
    }


# ---- Layers


@pytest.mark.parametrize("name", ["DependenciesLayer", "SharedLayer"])
def test_a_layer_has_the_content_of_the_build(name: str, stack: Stack, built: Path) -> None:
    ((found, layer),) = [one for one in stack.of_type("AWS::Lambda::LayerVersion").items() if one[0].startswith(name)]
    zipped = uploaded(stack, layer["Content"]["S3Bucket"], layer["Content"]["S3Key"])
    assert contents(zipped) == {
        str(path.relative_to(built / name)): path.read_bytes() for path in (built / name).rglob("*") if path.is_file()
    }
    there = stack.client("lambda").list_layers()["Layers"]
    (version,) = [one["LatestMatchingVersion"] for one in there if found in one["LayerName"]]
    assert (version["Description"], version["CompatibleRuntimes"]) == (layer["Description"], ["python3.13"])


def test_the_layers_are_smaller_than_the_limit_of_lambda(stack: Stack) -> None:
    layers = [layer["Content"] for layer in stack.of_type("AWS::Lambda::LayerVersion").values()]
    sizes = [len(each) for one in layers for each in contents(uploaded(stack, one["S3Bucket"], one["S3Key"])).values()]
    assert sum(sizes) < 250 * 1024 * 1024  # "The unzipped size of all layers and the function"


def uploaded(stack: Stack, bucket: str, key: str) -> bytes:
    assert bucket == BUCKET
    return bytes(stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())


def contents(zipped: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(zipped)) as files:
        return {name: files.read(name) for name in files.namelist() if not name.endswith("/")}


# ---- The key


def test_the_key_rotates_and_has_the_policy_of_the_template(stack: Stack) -> None:
    kms, key = stack.client("kms"), stack.physical["RequestStateKey"]
    assert kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"] is True
    found = policy(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
    written: Any = stack.of_type("AWS::KMS::Key")["RequestStateKey"]["KeyPolicy"]
    written["Statement"][0]["Principal"]["AWS"] = f"arn:aws:iam::{ACCOUNT}:root"
    assert found == written


def test_the_key_is_kept_when_the_stack_is_deleted(stack: Stack) -> None:
    key = dict(stack.resources())["RequestStateKey"]
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


# ---- Roles and permissions; test_iam.py evaluates them


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_role_holds_its_functions_policies_and_may_write_logs(folder: str, stack: Stack) -> None:
    iam, name = stack.client("iam"), stack.physical[f"{logical_id(folder)}Role"]
    written = stack.of_type("AWS::IAM::Role")[f"{logical_id(folder)}Role"]
    trust = policy(iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"])
    assert trust == written["AssumeRolePolicyDocument"]
    own = [{"Ref": name} for name in POLICIES.get(folder, ("MaySeal",))]
    assert written["ManagedPolicyArns"] == [BASIC, TRACES, *own]
    assert {"Key": "mcp-function", "Value": folder} in written["Tags"] or not own
    there = iam.list_role_policies(RoleName=name)["PolicyNames"]
    assert sorted(there) == sorted(one["PolicyName"] for one in written.get("Policies", []))


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_the_route_of_this_api_may_invoke_a_function(folder: str, stack: Stack) -> None:
    permissions = stack.of_type("AWS::Lambda::Permission").values()
    mine = [one for one in permissions if one["FunctionName"] == {"Ref": logical_id(folder)}]
    assert {(one["Action"], one["Principal"]) for one in mine} == {
        ("lambda:InvokeFunction", "apigateway.amazonaws.com")
    }
    for one in mine:
        source, values = one["SourceArn"]["Fn::Sub"]
        assert values["__ApiId__"] == {"Ref": "HttpApi"}
        assert source.endswith("/mcp" if folder == "mcp" else f"/mcp/{folder}")


def test_a_worker_is_invoked_by_its_function_alone(stack: Stack) -> None:
    permissions = stack.of_type("AWS::Lambda::Permission").values()
    assert [one for one in permissions if one["FunctionName"] == {"Ref": "AuditYearWorker"}] == []
