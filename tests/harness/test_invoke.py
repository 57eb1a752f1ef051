"""The Invoke API of the harness, called with boto3."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import boto3
import pytest
from botocore.exceptions import ClientError

from mcp_functions_harness import Harness

from .conftest import write_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPConnection

LambdaClient: TypeAlias = Any  # the stubs of one service are a package of their own
ARN = "arn:aws:lambda:us-east-1:123456789012:function:local_echo"
FUNCTIONS = {
    "echo/app.py": "def handler(event, context):\n    return {'was': event, 'id': context.aws_request_id}\n",
    "raises/app.py": "def handler(event, context):\n    raise LookupError('no such thing')\n",
}


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    root = tmp_path_factory.mktemp("project")
    with Harness(write_functions(root / "functions", FUNCTIONS), state_dir=root / "state") as running:
        yield running


@pytest.fixture(scope="module")
def client(harness: Harness) -> Iterator[LambdaClient]:
    assert harness.url
    made = boto3.session.Session().client("lambda")
    yield made
    made.close()


def test_invoke_returns_the_payload_of_a_function(client: LambdaClient, harness: Harness) -> None:
    answer = client.invoke(FunctionName="local_echo", Payload=b'{"a": "\xc3\xa9"}')
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    assert "FunctionError" not in answer
    assert json.loads(answer["Payload"].read()) == {"was": {"a": "é"}, "id": harness.invocations[-1].request_id}
    assert answer["ResponseMetadata"]["RequestId"] == harness.invocations[-1].request_id


@pytest.mark.parametrize(
    "name", ["local_echo", "local_echo:$LATEST", "123456789012:function:local_echo", ARN, f"{ARN}:7"]
)
def test_invoke_accepts_every_form_of_a_function_name(client: LambdaClient, name: str) -> None:
    assert json.loads(client.invoke(FunctionName=name)["Payload"].read())["was"] == {}


def test_a_function_that_raises_is_a_function_error(client: LambdaClient) -> None:
    answer = client.invoke(FunctionName="local_raises")
    document = json.loads(answer["Payload"].read())
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    assert (document["errorType"], document["errorMessage"]) == ("LookupError", "no such thing")
    assert [line.count("app.py") for line in document["stackTrace"]] == [1]


@pytest.mark.parametrize("name", ["local_nobody", "echo", "local_", "other-echo"])
def test_invoking_a_missing_function_is_resource_not_found(client: LambdaClient, name: str) -> None:
    with pytest.raises(client.exceptions.ResourceNotFoundException, match=f"Function not found: .*{name}"):
        client.invoke(FunctionName=name)


def test_an_asynchronous_invocation_returns_before_the_function_runs(client: LambdaClient, harness: Harness) -> None:
    before = len(harness.invocations)
    answer = client.invoke(FunctionName="local_echo", InvocationType="Event", Payload=b"{}")
    assert (answer["StatusCode"], answer["Payload"].read()) == (202, b"")
    while len(harness.invocations) == before:
        time.sleep(0.001)
    assert harness.invocations[-1].folder == "echo"


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"Payload": b"{"}, "InvalidRequestContentException"),
        ({"Payload": b'"' + b"a" * 6 * 1024 * 1024 + b'"'}, "RequestTooLargeException"),
        ({"InvocationType": "Sideways"}, "InvalidParameterValueException"),
    ],
)
def test_an_unknown_function_is_refused(client: LambdaClient, how: dict[str, Any], code: str) -> None:
    with pytest.raises(ClientError) as error:
        client.invoke(FunctionName="local_echo", **how)
    assert error.value.response["Error"]["Code"] == code


def test_a_page_cannot_invoke_because_it_cannot_sign(
    client: LambdaClient, connect: Callable[[str], HTTPConnection]
) -> None:
    connection = connect(client.meta.endpoint_url)
    connection.request("POST", "/2015-03-31/functions/local_echo/invocations", b"{}", {"content-type": "text/plain"})
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["Message"]) == (403, "Missing Authentication Token")


def test_no_other_operation_of_lambda_is_supported(client: LambdaClient) -> None:
    with pytest.raises(ClientError, match="Only Invoke is served here"):
        client.list_functions()
