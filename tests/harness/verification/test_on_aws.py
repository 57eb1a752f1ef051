"""`mcp-functions verify STACK`: moto has the stack, and another process serves its endpoint."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws
from moto.cloudformation import parsing
from moto.core.common_models import CloudFormationModel

from mcp_functions_harness import command
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response

from .conftest import FOLDERS, SIGNER, demand_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Verified

    Verify = Callable[..., Verified]
    Gate = Callable[..., str]
    Decide = Callable[[HttpRequest], HttpRequest | HttpResponse]

# `mock_aws` drops what other files stored in moto's S3, and moto leaves the closing of their buffers to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

REGION = "eu-central-1"
GROUP = "/aws/lambda/shop_greet"  # moto knows no LoggingConfig
ROLE = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {}}]}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": ROLE}},
        "Greet": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "FunctionName": "shop_greet",
                "Runtime": "python3.13",
                "Handler": "index.handler",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Code": {"ZipFile": "handler = None"},
                "Environment": {"Variables": {"MCP_AUTH_MODE": "iam"}},
            },
        },
        "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": GROUP}},
        "CrashedAlarm": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {"AlarmName": "shop-crashed"},
        },
    },
}


@pytest.fixture(scope="module")
def url(directory: Path) -> Iterator[str]:
    """Serve in another process, because the harness redirects AWS's clients of its process."""
    words = [sys.executable, "-m", "mcp_functions_harness", "serve", "--port", "0", "--functions", str(directory)]
    with subprocess.Popen(words, cwd=directory.parent, stdout=subprocess.PIPE, text=True) as serving:  # noqa: S603 - our own
        assert serving.stdout
        yield serving.stdout.readline().split()[-1]
        serving.terminate()
        serving.communicate()


class AlarmOfStack(CloudFormationModel):
    """An alarm as a resource of a stack, which moto's CloudFormation does not know."""

    physical_resource_id = "shop-crashed"

    @staticmethod
    def cloudformation_name_type() -> str:
        return "AlarmName"

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::CloudWatch::Alarm"

    @classmethod
    def create_from_cloudformation_json(cls, *_: object, **__: object) -> AlarmOfStack:
        return cls()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Make an account on moto, and return its clients by the name of a service."""
    with mock_aws():
        monkeypatch.setitem(parsing.get_model_map(), "AWS::CloudWatch::Alarm", AlarmOfStack)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", SIGNER.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SIGNER.secret_key)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")  # those of functions under test
        session: Any = boto3.Session()
        yield session.client


@pytest.fixture
def deploy(aws: Callable[[str], Any], url: str, gate: Gate) -> Callable[..., None]:
    """Deploy the stack, with its endpoint behind signatures, where each request writes its line."""

    def stack(*, decide: Decide = demand_signature, logs: bool = True, **changes: object) -> None:
        def told(request_id: str) -> None:
            if logs:
                event = {"timestamp": int(time.time() * 1000), "message": json.dumps({"correlation_id": request_id})}
                aws("logs").put_log_events(logGroupName=GROUP, logStreamName="one", logEvents=[event])

        endpoint = gate(url, decide, told)
        outputs = {"Endpoint": {"Value": endpoint}} if endpoint else {}
        template = {"Resources": TEMPLATE["Resources"] | changes, "Outputs": outputs}
        aws("cloudformation").create_stack(StackName="shop", TemplateBody=json.dumps(template))
        aws("logs").put_metric_filter(
            logGroupName=GROUP,
            filterName="crashed",
            filterPattern='{ $.outcome = "crashed" }',
            metricTransformations=[
                {"metricNamespace": "mcp-functions/shop", "metricName": "Crashed", "metricValue": "1"}
            ],
        )
        put_alarm(aws, AlarmActions=[f"arn:aws:sns:{REGION}:123456789012:pager"])
        aws("logs").create_log_stream(logGroupName=GROUP, logStreamName="one")

    return stack


def put_alarm(aws: Callable[[str], Any], **more: object) -> None:
    aws("cloudwatch").put_metric_alarm(
        AlarmName="shop-crashed",
        Namespace="mcp-functions/shop",
        MetricName="Crashed",
        Statistic="Sum",
        Period=300,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
        **more,
    )


def test_verify_reports_ok_for_every_check_of_a_working_stack(deploy: Callable[..., None], verify: Verify) -> None:
    deploy()
    verified = verify("shop", "--tool", "count", "--arguments", '{"most": 3}')
    assert verified.code == 0, verified.lines
    skipped = [name for name, (outcome, _) in verified.lines.items() if outcome != "ok"]
    assert skipped == []
    assert verified.lines["closed routes"][1] == f"/mcp and {FOLDERS} functions refuse a caller without credentials"
    assert verified.lines["stack"][1] == "CREATE_COMPLETE, 1 functions believe mode iam"
    assert verified.lines["logs"][1].startswith(f"{GROUP}, with the line of request ")
    assert verified.lines["alarms"][1] == "1 alarms, none of them raised"


def test_verify_reports_functions_with_another_auth_mode_than_the_api(
    deploy: Callable[..., None], verify: Verify
) -> None:
    deploy(decide=lambda request: request)
    assert verify("shop").failed() == {"stack": "the API enforces none, and functions believe iam"}


def test_verify_accepts_a_stack_whose_metadata_shows_its_auth_mode(deploy: Callable[..., None], verify: Verify) -> None:
    def decide(request: HttpRequest) -> HttpResponse:
        origin = f"http://{request.header('host')}"
        document = {"resource": f"{origin}/mcp", "authorization_servers": [origin]}
        return json_response(200, document) if request.method == "GET" else json_response(401, {})

    greet = copy.deepcopy(TEMPLATE["Resources"]["Greet"])
    greet["Properties"]["Environment"]["Variables"]["MCP_AUTH_MODE"] = "oauth"
    deploy(decide=decide, Greet=greet)
    assert verify("shop", "--token", "ann").lines["stack"][1] == "CREATE_COMPLETE, 1 functions believe mode oauth"


def test_verify_reports_a_log_without_request_lines(deploy: Callable[..., None], verify: Verify) -> None:
    deploy(logs=False)
    failed = verify("shop", "--seconds", "0").failed()
    assert list(failed) == ["logs"]
    assert failed["logs"].endswith(f"after 0 s (--seconds) in {GROUP}")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda aws: aws("cloudwatch").delete_alarms(AlarmNames=["shop-crashed"]), "there is no alarm shop"),
        (
            lambda aws: aws("cloudwatch").set_alarm_state(
                AlarmName="shop-crashed", StateValue="ALARM", StateReason="it crashed"
            ),
            "raised: shop-crashed",
        ),
        (
            lambda aws: aws("logs").delete_metric_filter(logGroupName=GROUP, filterName="crashed"),
            "there is no metric filter that counts Crashed",
        ),
        (
            put_alarm,
            "no action follows shop-crashed",
        ),
    ],
)
def test_verify_reports_alarms_that_would_not_reach_an_operator(
    spoil: Callable[[Any], object],
    why: str,
    deploy: Callable[..., None],
    aws: Callable[[str], Any],
    verify: Verify,
) -> None:
    deploy()
    spoil(aws)
    failed = verify("shop").failed()
    assert list(failed) == ["alarms"]
    assert failed["alarms"].startswith(why)


def test_verify_reports_a_missing_log_group(
    deploy: Callable[..., None], aws: Callable[[str], Any], verify: Verify
) -> None:
    deploy(logs=False)
    aws("logs").delete_log_group(logGroupName=GROUP)
    failed = verify("shop").failed()
    assert failed["logs"] == f"there is no log group {GROUP}"


def test_verify_says_how_missing_alarms_are_made(deploy: Callable[..., None], verify: Verify) -> None:
    topic = {"Type": "AWS::SNS::Topic"}
    deploy(CrashedAlarm=topic)
    verified = verify("shop")
    assert verified.lines["alarms"] == ("skipped", "the stack has none: mcp-functions add alarms, and set AlarmTopic")


@pytest.mark.parametrize("name", ["warehouse", "shop"])
def test_a_stack_that_cannot_be_verified_is_reported_in_one_line(
    name: str, aws: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    template = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    aws("cloudformation").create_stack(StackName="shop", TemplateBody=template)
    assert command.run(["verify", name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"the stack {name} " in err
