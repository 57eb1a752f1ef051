"""What no emulator judges, read in the translated template: retention, the worker, and who may invoke a function."""

from __future__ import annotations

import pytest

from tests.policies.test_iam import logical_id
from tests.policies.translated import Translated, delivered
from tests.project.test_translation import FOLDERS

WATCHING = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Logs::MetricFilter"}


@pytest.fixture(scope="module")
def template() -> Translated:
    return delivered()


def test_alarms_exist_only_with_a_recipient(template: Translated) -> None:
    assert {resource["Type"] for _, resource in template.resources()}.isdisjoint(WATCHING)
    assert {resource["Type"] for _, resource in template.under(AlarmTopic="arn").resources()} > WATCHING


def test_a_worker_has_the_code_of_its_function_the_longest_timeout_and_no_retry(template: Translated) -> None:
    functions = template.of_type("AWS::Lambda::Function")
    worker, own = functions["AuditYearWorker"], functions["AuditYear"]
    assert (worker["Timeout"], worker["RecursiveLoop"]) == (900, "Allow")
    differ = {"FunctionName", "Timeout", "RecursiveLoop", "Role"}
    assert {name: value for name, value in worker.items() if name not in differ} == {
        name: value for name, value in own.items() if name not in differ
    }
    ((_, invoked),) = template.of_type("AWS::Lambda::EventInvokeConfig").items()
    assert invoked["MaximumRetryAttempts"] == 0
    assert not invoked.get("DestinationConfig"), "Lambda's own line tells of a death, and an alarm of a dropped order"


def test_the_table_expires_items_and_the_key_rotates(template: Translated) -> None:
    table = template.of_type("AWS::DynamoDB::Table")["Table"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "SSESpecification" not in table, "AWS's own key: ours opens nothing but request states"
    assert template.of_type("AWS::KMS::Key")["RequestStateKey"]["EnableKeyRotation"] is True


@pytest.mark.parametrize(("name", "policy"), [("RequestStateKey", "RetainExceptOnCreate"), ("Table", "Retain")])
def test_what_clients_need_is_kept_when_the_stack_is_deleted(name: str, policy: str, template: Translated) -> None:
    resource = dict(template.resources())[name]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == (policy, "Retain")


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_the_route_of_this_api_may_invoke_a_function(folder: str, template: Translated) -> None:
    permissions = template.of_type("AWS::Lambda::Permission").values()
    mine = [one for one in permissions if one["FunctionName"] == {"Ref": logical_id(folder)}]
    assert {(one["Action"], one["Principal"]) for one in mine} == {
        ("lambda:InvokeFunction", "apigateway.amazonaws.com")
    }
    for one in mine:
        source, values = one["SourceArn"]["Fn::Sub"]
        assert values["__ApiId__"] == {"Ref": "HttpApi"}
        assert source.endswith("/mcp" if folder == "mcp" else f"/mcp/{folder}")


def test_a_worker_is_invoked_by_its_function_alone(template: Translated) -> None:
    permissions = template.of_type("AWS::Lambda::Permission").values()
    assert [one for one in permissions if one["FunctionName"] == {"Ref": "AuditYearWorker"}] == []
