"""What a template declares is there in a test, and empty in each: tables, buckets, queues and secrets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from mcp_functions_harness.testing.deployment import deployed_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

TEMPLATE = """
Resources:
  Notes:
    Type: AWS::Serverless::SimpleTable
  Reports:
    Type: AWS::S3::Bucket
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 180
  Token:
    Type: AWS::SecretsManager::Secret
    Properties:
      Name: shop/token
  Order:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/order/
      Environment:
        Variables:
          NOTES: !Ref Notes
          REPORTS: !Ref Reports
          ORDERS: !Ref Orders
          ORDERS_NAME: !GetAtt Orders.QueueName
          ORDERS_ARN: !GetAtt Orders.Arn
          TOKEN: !Ref Token
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    root: Path = tmp_path_factory.mktemp("shop")
    (root / "functions/order").mkdir(parents=True)
    (root / "functions/order/app.py").write_text("handler = None\n", encoding="utf-8")
    (root / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
    with deployed_project(root / "functions") as for_one_test:
        yield for_one_test


def clients() -> tuple[Any, Any, Any, Any]:
    return (
        boto3.resource("dynamodb").Table(os.environ["NOTES"]),
        boto3.client("s3"),
        boto3.client("sqs"),
        boto3.client("secretsmanager"),
    )


def test_each_test_has_the_templates_resources_and_they_are_empty(
    project: Callable[[], AbstractContextManager[None]],
) -> None:
    with project():
        table, s3, sqs, secrets = clients()
    for _ in range(2):  # a function keeps its clients for all tests
        with project():
            assert table.scan()["Items"] == []
            table.put_item(Item={"id": "1"})
            assert "Contents" not in s3.list_objects_v2(Bucket=os.environ["REPORTS"])
            s3.put_object(Bucket=os.environ["REPORTS"], Key="a b/ü", Body=b"\x00report")
            assert s3.get_object(Bucket=os.environ["REPORTS"], Key="a b/ü")["Body"].read() == b"\x00report"
            assert "Messages" not in sqs.receive_message(QueueUrl=os.environ["ORDERS"])
            sqs.send_message(QueueUrl=os.environ["ORDERS"], MessageBody="one")
            assert sqs.receive_message(QueueUrl=os.environ["ORDERS"])["Messages"][0]["Body"] == "one"
            assert secrets.get_secret_value(SecretId=os.environ["TOKEN"])["SecretString"] == "local"
            secrets.put_secret_value(SecretId=os.environ["TOKEN"], SecretString="t")


def test_a_queue_has_the_properties_of_the_template(project: Callable[[], AbstractContextManager[None]]) -> None:
    with project():
        sqs = boto3.client("sqs")
        url = sqs.get_queue_url(QueueName=os.environ["ORDERS_NAME"])["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert attributes["VisibilityTimeout"] == "180"
        assert attributes["QueueArn"] == os.environ["ORDERS_ARN"]


def test_what_the_template_does_not_declare_is_not_there(project: Callable[[], AbstractContextManager[None]]) -> None:
    with project(), pytest.raises(ClientError, match="NoSuchBucket"):
        boto3.client("s3").get_object(Bucket="elsewhere", Key="a")
    assert "REPORTS" not in os.environ
