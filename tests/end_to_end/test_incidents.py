"""Incidents with KMS keys: rotation, compromise, denied access and outage. No incident loses a user's answer.

`region` has moto's KMS behind HTTP, a clock, and containers of one function. A container has its own environment and
memory; a deploy replaces it. `Container.send` sends a request and returns a `Round`: the response, and the
client's next request. The decorator reads real annotations at run time, so this module does not import `annotations`
from `__future__`.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, serve, tool
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions_harness import environment
from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions_harness.loopback import Loopback
from tests.support import wire
from tests.support.attacker import ObservedKms, kms_refuses, observed_kms

INVALID_REQUEST_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
UNAVAILABLE_ERROR = {"code": -32603, "message": "Temporarily unavailable", "data": {"retryable": True}}
INTERNAL_ERROR = {"code": -32603, "message": "Internal error"}
EPOCH_SECONDS = 900  # a container encrypts with one data key for so long
STALE_SECONDS = 900  # if KMS fails, it uses the data key for so much longer
LIFETIME_SECONDS = 600  # of a request state
RESULT = "Lisbon: A1, fish"


class Text(BaseModel):
    text: str


@tool
def book(city: str, *, elicit: Elicit) -> str:
    """Book a journey, in three rounds."""
    seat = elicit("seat", f"Which seat to {city}?", Text)
    meal = elicit("meal", "Which meal?", Text)
    return f"{city}: {seat.text}, {meal.text}"


handler = serve(book)
ANSWERS = {
    "seat": {"action": "accept", "content": {"text": "A1"}},
    "meal": {"action": "accept", "content": {"text": "fish"}},
}


class Round:
    """A response, and the parameters of the client's next request."""

    def __init__(self, response: Mapping[str, Any]) -> None:
        self.status, self.headers = response["statusCode"], response["headers"]
        self.body: dict[str, Any] = json.loads(response["body"])

    @property
    def next_params(self) -> dict[str, Any]:
        """The request state, and an answer to every question."""
        result = self.body["result"]
        return {
            "requestState": result["requestState"],
            "inputResponses": {key: ANSWERS[key] for key in result["inputRequests"]},
        }

    @property
    def text(self) -> str:
        return str(self.body["result"]["content"][0]["text"])


@dataclass
class Container:
    """One execution environment of the function."""

    function: LambdaFunction
    variables: dict[str, str]

    def send(self, **params: Any) -> Round:  # noqa: ANN401 - JSON values
        message = wire.message("tools/call", {"name": "book", "arguments": {"city": "Lisbon"}, **params})
        with environment.applied(self.variables):
            return Round(self.function(wire.event(message), wire.Context("local_book")))


@dataclass
class Region:
    """KMS, a clock, and the environment of new containers."""

    kms: ObservedKms
    client: Any
    key: str
    # The clock begins in the middle of an epoch.
    clock_offset: float = field(default_factory=lambda: EPOCH_SECONDS / 2 - time.time() % EPOCH_SECONDS)
    environment: dict[str, str] = field(default_factory=dict)

    def create_key(self) -> str:
        return str(self.client.create_key()["KeyMetadata"]["Arn"])

    def container(self, *keys: str, generation: str = "1") -> Container:
        """Start a container with these keys, in the order of MCP_KMS_KEYS: the first one encrypts."""
        variables = {"MCP_KMS_KEYS": ",".join(keys or [self.key]), "MCP_GENERATION": generation}
        function = handler.fresh(now=lambda: time.time() + self.clock_offset)
        return Container(function, variables | self.environment)

    def break_kms(self, code: str, status: int = 400) -> None:
        """Let KMS answer every request with this error."""
        self.kms.refuse = lambda _operation: kms_refuses(code, status)

    def unplug_kms(self) -> None:
        """Let new containers call a closed port."""
        self.environment["AWS_ENDPOINT_URL_KMS"] = "http://127.0.0.1:9"

    def repair_kms(self) -> None:
        self.kms.refuse = lambda _operation: None
        self.environment.clear()


@pytest.fixture
def region(tmp_path: Path) -> Iterator[Region]:
    with ExitStack() as stack:
        kms = stack.enter_context(observed_kms())
        server = stack.enter_context(Loopback(max_body=MAX_REQUEST))
        api = KmsApi(keyfile.load(tmp_path))
        server.start(api.answer)
        settings = environment.settings(port=80, name="tested", key_arn=api.arn)
        endpoints = environment.endpoints(kms=server.url, invoke=server.url)
        stack.enter_context(environment.applied(environment.CREDENTIALS | settings | endpoints))
        client = boto3.client("kms")
        stack.callback(client.close)
        yield Region(kms, client, api.arn)


def book_journey(first: Container, second: Container, third: Container) -> str:
    """Hold a whole conversation; each round reaches another container."""
    return third.send(**second.send(**first.send().next_params).next_params).text


def assert_refused(response: Round, *, status: int, error: dict[str, Any]) -> None:
    assert response.status == status
    assert response.body["error"] == error


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the code and the reason of each refusal in the log."""
    return [message.removeprefix("refused: ") for message in caplog.messages if message.startswith("refused: ")]


# ---- Rotation: the new key is first listed second, then first, then alone


def test_conversations_continue_while_a_deploy_adds_the_new_key(region: Region) -> None:
    old, new = region.key, region.create_key()
    before, after = region.container(old), region.container(old, new)
    assert book_journey(before, after, before) == RESULT
    assert book_journey(after, before, after) == RESULT


def test_conversations_continue_while_a_deploy_promotes_the_new_key(region: Region) -> None:
    old, new = region.key, region.create_key()
    before, after = region.container(old, new), region.container(new, old)
    assert book_journey(before, after, before) == RESULT
    assert book_journey(after, before, after) == RESULT


def test_a_state_under_the_old_key_is_valid_for_its_lifetime(region: Region) -> None:
    old, new = region.key, region.create_key()
    first = region.container(old, new).send()
    region.clock_offset += LIFETIME_SECONDS - 60
    assert region.container(new, old).send(**first.next_params).next_params["inputResponses"].keys() == {"meal"}


def test_a_state_under_a_key_that_was_removed_is_refused(region: Region, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    old, new = region.key, region.create_key()
    first = region.container(old).send()
    response = region.container(new).send(**first.next_params)
    assert_refused(response, status=400, error=INVALID_REQUEST_STATE_ERROR)
    assert refusals(caplog) == ["-32602 kek_unknown"]


def test_only_the_first_key_encrypts(region: Region) -> None:
    old, new = region.key, region.create_key()
    region.kms.bodies.clear()
    container = region.container(new, old)
    assert book_journey(container, region.container(new, old), container) == RESULT
    assert {json.loads(body)["KeyId"] for body in region.kms.bodies} == {new}


def test_a_key_that_encrypts_before_all_containers_have_it_breaks_conversations_during_the_deploy(
    region: Region, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    old, new = region.key, region.create_key()
    first = region.container(new, old).send()
    assert_refused(region.container(old).send(**first.next_params), status=400, error=INVALID_REQUEST_STATE_ERROR)
    assert refusals(caplog) == ["-32602 kek_unknown"]
    assert region.container(new, old).send(**first.next_params).status == 200


def test_rotation_within_kms_needs_no_deployment(region: Region) -> None:
    first = region.container().send()
    region.client.rotate_key_on_demand(KeyId=region.key)
    assert region.container().send(**first.next_params).status == 200


# ---- Compromise


def test_a_raised_generation_invalidates_every_earlier_state(region: Region, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    first = region.container().send()
    second = region.container().send(**first.next_params)
    raised = region.container(generation="2")
    assert_refused(raised.send(**first.next_params), status=400, error=INVALID_REQUEST_STATE_ERROR)
    assert_refused(raised.send(**second.next_params), status=400, error=INVALID_REQUEST_STATE_ERROR)
    assert refusals(caplog) == ["-32602 wrapped_key"] * 2


@pytest.mark.parametrize("generation", ["1", "2"])
def test_containers_of_one_generation_continue_their_conversations(region: Region, generation: str) -> None:
    container = region.container(generation=generation)
    assert book_journey(container, region.container(generation=generation), container) == RESULT


# ---- KMS denies access: the operator must act


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "DisabledException", "KMSInvalidStateException", "NotFoundException"]
)
def test_denied_access_is_500_and_the_log_names_the_code(
    region: Region, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = region.container().send()
    region.break_kms(code)
    for params in ({}, first.next_params):
        response = region.container().send(**params)
        assert_refused(response, status=500, error=INTERNAL_ERROR)
        assert "retry-after" not in response.headers
    assert refusals(caplog) == [f"-32603 kms:{code}"] * 2
    assert {record.levelname for record in caplog.records if "kms:" in record.message} == {"ERROR"}


def test_a_conversation_continues_after_access_was_denied(region: Region) -> None:
    first = region.container().send()
    region.break_kms("AccessDeniedException")
    region.container().send(**first.next_params)
    region.repair_kms()
    assert region.container().send(**first.next_params).status == 200


def test_a_disabled_key_is_500_until_it_is_enabled(region: Region) -> None:
    first = region.container().send()
    region.client.disable_key(KeyId=region.key)
    assert region.container().send().status == 500
    assert region.container().send(**first.next_params).status == 500
    region.client.enable_key(KeyId=region.key)
    assert region.container().send(**first.next_params).status == 200


def test_a_disabled_second_key_ends_its_conversations_without_an_alarm(
    region: Region, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    old, new = region.key, region.create_key()
    first = region.container(old).send()
    region.client.disable_key(KeyId=old)
    container = region.container(new, old)
    assert_refused(container.send(**first.next_params), status=400, error=INVALID_REQUEST_STATE_ERROR)
    assert refusals(caplog) == ["-32602 kek_retired"]
    assert "ERROR" not in {record.levelname for record in caplog.records}
    assert book_journey(container, container, container) == RESULT


# ---- KMS does not answer


OUTAGES: dict[str, Callable[[Region], None]] = {
    "a closed port": Region.unplug_kms,
    "throttling": lambda region: region.break_kms("ThrottlingException"),
    "an internal error": lambda region: region.break_kms("KMSInternalException", 500),
    "a gateway's 503": lambda region: region.break_kms("ServiceUnavailable", 503),
}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_an_outage_is_503_and_the_conversation_continues_with_the_same_answers(
    region: Region, outage: Callable[[Region], None]
) -> None:
    first = region.container().send()
    outage(region)
    for params in ({}, first.next_params):
        response = region.container().send(**params)
        assert_refused(response, status=503, error=UNAVAILABLE_ERROR)
        assert int(response.headers["retry-after"]) > 0
    region.repair_kms()
    container = region.container()
    assert container.send(**container.send(**first.next_params).next_params).text == RESULT


def test_a_warm_container_uses_its_data_key_during_a_short_outage(
    region: Region, caplog: pytest.LogCaptureFixture
) -> None:
    container = region.container()
    container.send()
    region.break_kms("ThrottlingException")
    region.clock_offset += EPOCH_SECONDS  # it is time for a new data key
    assert container.send().status == 200
    assert any("of an earlier epoch" in message for message in caplog.messages)
    region.clock_offset += STALE_SECONDS
    assert container.send().status == 503


def test_a_warm_container_works_again_after_a_long_outage(region: Region) -> None:
    container = region.container()
    container.send()
    region.break_kms("ThrottlingException")
    region.clock_offset += EPOCH_SECONDS + STALE_SECONDS
    assert container.send().status == 503
    region.repair_kms()
    region.clock_offset += 6  # seconds; a container asks a failing KMS only from time to time
    assert container.send().status == 200


def test_an_outage_does_not_use_up_the_callers_budget_for_invalid_states(region: Region) -> None:
    first = region.container().send()
    container = region.container()
    region.break_kms("KMSInternalException", 500)
    assert {container.send(**first.next_params).status for _ in range(5)} == {503}
    region.repair_kms()
    assert container.send(**first.next_params).status == 200
