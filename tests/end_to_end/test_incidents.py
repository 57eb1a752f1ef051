"""Incidents with KMS keys: rotation, compromise, denial and outage, over boto3 and HTTP.

Deploys replace the containers of a function; each container has its own environment and memory. KMS is moto's, behind
HTTP, and refuses the requests that AWS refuses. No incident loses a user's answer or keeps a revoked state alive.
"""

# No `from __future__ import annotations`: the tool below is read as an author writes it.

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
from mcp_functions.local import environment
from mcp_functions.local.doubles import keyfile
from mcp_functions.local.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions.local.loopback import Loopback
from tests.support import wire
from tests.support.attacker import ObservedKms, kms_refuses, observed_kms

FROZEN = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}
BUSY = {"code": -32603, "message": "Temporarily unavailable", "data": {"retryable": True}}
BROKEN = {"code": -32603, "message": "Internal error"}
EPOCH, STALE, LIFETIME = 900, 900, 600
CLOSED = "http://127.0.0.1:9"
DONE = "Lisbon: A1, fish"


class Text(BaseModel):
    text: str


@tool
def book(city: str, *, elicit: Elicit) -> str:
    """Book a journey, in three rounds."""
    seat = elicit("seat", f"Which seat to {city}?", Text)
    meal = elicit("meal", "Which meal?", Text)
    return f"{city}: {seat.text}, {meal.text}"


handler = serve(book)
ANSWERS = {key: {"action": "accept", "content": {"text": text}} for key, text in {"seat": "A1", "meal": "fish"}.items()}


class Round:
    """A response, and the parameters of the client's next request."""

    def __init__(self, response: Mapping[str, Any]) -> None:
        self.status, self.headers = response["statusCode"], response["headers"]
        self.body: dict[str, Any] = json.loads(response["body"])

    @property
    def next_(self) -> dict[str, Any]:
        """The state as it came, and an answer to every question."""
        result = self.body["result"]
        return {
            "requestState": result["requestState"],
            "inputResponses": {key: ANSWERS[key] for key in result["inputRequests"]},
        }

    @property
    def text(self) -> str:
        return str(self.body["result"]["content"][0]["text"])


@dataclass
class Region:
    """KMS, a clock, and the environment of containers that start now."""

    kms: ObservedKms
    client: Any
    first: str
    ahead: float = field(default_factory=lambda: EPOCH / 2 - time.time() % EPOCH)  # begins in the middle of an epoch
    environment: dict[str, str] = field(default_factory=dict)

    def create_key(self) -> str:
        return str(self.client.create_key()["KeyMetadata"]["Arn"])

    def now(self) -> float:
        return time.time() + self.ahead

    def container(self, *arns: str, generation: str = "1") -> "Container":
        around = {"MCP_KMS_KEYS": ",".join(arns or (self.first,)), "MCP_GENERATION": generation}
        return Container(handler.fresh(now=self.now), around | self.environment)


@dataclass
class Container:
    """One execution environment of the function."""

    function: LambdaFunction
    around: dict[str, str]

    def send(self, **more: Any) -> Round:  # noqa: ANN401 - JSON values
        message = wire.message("tools/call", {"name": "book", "arguments": {"city": "Lisbon"}, **more})
        with environment.applied(self.around):
            return Round(self.function(wire.event(message), wire.Context("local-book")))


@pytest.fixture
def region(tmp_path: Path) -> Iterator[Region]:
    with ExitStack() as stack:
        kms = stack.enter_context(observed_kms())
        server = stack.enter_context(Loopback(max_body=MAX_REQUEST))
        api = KmsApi(keyfile.load(tmp_path))
        server.start(api.answer)
        own = environment.settings(port=80, name="tested", key_arn=api.arn)
        pointed = environment.endpoints(kms=server.url, invoke=server.url)
        stack.enter_context(environment.applied(environment.CREDENTIALS | own | pointed))
        client = boto3.client("kms")
        stack.callback(client.close)
        yield Region(kms, client, api.arn)


def whole_conversation(*containers: Container) -> str:
    """Hold a conversation whose rounds are answered by these containers, one after the other."""
    first, second, third = containers
    return third.send(**second.send(**first.send().next_).next_).text


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the log says of refusals."""
    return [message.removeprefix("refused: ") for message in caplog.messages if message.startswith("refused: ")]


# ---- Rotation


def test_rotation_in_three_deploys_loses_no_conversation(region: Region) -> None:
    old, new = region.first, region.create_key()
    for before, after in [((old,), (old, new)), ((old, new), (new, old))]:
        one, other = region.container(*before), region.container(*after)
        for order in [(one, other, one), (other, one, other)]:  # while the deploy goes through the fleet
            assert whole_conversation(*order) == DONE
    left = region.container(old, new).send()  # the last state that is wrapped by the old key
    region.ahead += LIFETIME - 60
    assert region.container(new, old).send(**left.next_).next_["inputResponses"].keys() == {"meal"}
    region.ahead += EPOCH + STALE  # and now nothing that is wrapped by it may be answered any more
    last = region.container(new)
    assert last.send(**left.next_).status == 400
    assert whole_conversation(last, region.container(new), last) == DONE


def test_from_the_second_deploy_on_only_the_new_key_seals(region: Region) -> None:
    old, new = region.first, region.create_key()
    region.kms.bodies.clear()
    one = region.container(new, old)
    assert whole_conversation(one, region.container(new, old), one) == DONE
    assert {json.loads(body)["KeyId"] for body in region.kms.bodies} == {new}


def test_promoting_a_minter_first_fails_visibly(region: Region, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    old, new = region.first, region.create_key()
    hasty, behind = region.container(new, old), region.container(old)
    sealed = hasty.send()
    refused = behind.send(**sealed.next_)
    assert (refused.status, refused.body["error"]) == (400, FROZEN)
    assert reasons(caplog) == ["-32602 kek_unknown"]
    assert region.container(new, old).send(**sealed.next_).status == 200  # when the deploy is through, it is over


def test_a_state_under_a_key_that_was_taken_off_the_list_is_refused(
    region: Region, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    new = region.create_key()
    refused = region.container(new).send(**region.container(region.first).send().next_)
    assert (refused.status, refused.body["error"]) == (400, FROZEN)
    assert reasons(caplog) == ["-32602 kek_unknown"]


def test_rotation_within_kms_needs_no_deployment(region: Region) -> None:
    sealed = region.container().send()
    region.client.rotate_key_on_demand(KeyId=region.first)
    assert region.container().send(**sealed.next_).status == 200


# ---- Compromise


def test_a_raised_generation_invalidates_every_state_and_breaks_nothing_else(
    region: Region, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    old = region.container()
    before = [old.send() for _ in range(3)]
    before.append(old.send(**before[0].next_))
    after = region.container(generation="2")
    for number, state in enumerate(before):
        region.ahead += 31 * number  # a caller may waste three unwraps, and one more every 30 s
        refused = after.send(**state.next_)
        assert (refused.status, refused.body["error"]) == (400, FROZEN)
    assert reasons(caplog) == ["-32602 wrapped_key"] * 4
    assert whole_conversation(after, region.container(generation="2"), after) == DONE
    assert whole_conversation(old, region.container(), old) == DONE  # what is not deployed yet goes on


# ---- KMS says no: the operator's work


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "DisabledException", "KMSInvalidStateException", "NotFoundException"]
)
def test_a_denial_is_500_and_names_itself_in_the_log(
    region: Region, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    sealed = region.container().send()
    region.kms.weather = lambda _action: kms_refuses(code)
    for more in ({}, sealed.next_):
        broken = region.container().send(**more)
        assert (broken.status, broken.body["error"]) == (500, BROKEN)
        assert "retry-after" not in broken.headers
    assert reasons(caplog) == [f"-32603 kms:{code}"] * 2
    assert {record.levelname for record in caplog.records if "kms:" in record.message} == {"ERROR"}
    region.kms.weather = lambda _action: None
    assert region.container().send(**sealed.next_).status == 200  # the same answers, as if nothing had been


def test_a_disabled_key_is_500_until_it_is_enabled(region: Region) -> None:
    sealed = region.container().send()
    region.client.disable_key(KeyId=region.first)
    assert [region.container().send(**more).status for more in ({}, sealed.next_)] == [500, 500]
    region.client.enable_key(KeyId=region.first)
    assert region.container().send(**sealed.next_).status == 200


def test_a_disabled_second_key_ends_its_conversations_without_an_alarm(
    region: Region, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    new = region.create_key()
    sealed = region.container(region.first).send()
    region.client.disable_key(KeyId=region.first)
    refused = region.container(new, region.first).send(**sealed.next_)
    assert (refused.status, refused.body["error"]) == (400, FROZEN)
    assert reasons(caplog) == ["-32602 kek_retired"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    one = region.container(new, region.first)
    assert whole_conversation(one, one, one) == DONE


# ---- KMS cannot answer: an outage


def closed_port(region: Region) -> None:
    region.environment["AWS_ENDPOINT_URL_KMS"] = CLOSED


def refusing(code: str, status: int) -> Callable[[Region], None]:
    def begin(region: Region) -> None:
        region.kms.weather = lambda _action: kms_refuses(code, status)

    return begin


OUTAGES = {
    "a closed port": closed_port,
    "throttling": refusing("ThrottlingException", 400),
    "an internal error": refusing("KMSInternalException", 500),
    "a gateway's 503": refusing("ServiceUnavailable", 503),
}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_an_outage_is_503_and_the_conversation_continues_with_the_same_answers(
    region: Region, outage: Callable[[Region], None]
) -> None:
    sealed = region.container().send()
    sent = sealed.next_
    outage(region)
    cold = region.container()
    for more in ({}, sent):
        busy = cold.send(**more)
        assert (busy.status, busy.body["error"]) == (503, BUSY)
        assert int(busy.headers["retry-after"]) > 0
    region.kms.weather = lambda _action: None
    region.environment.clear()
    after = cold if outage is not closed_port else region.container()  # its client was built for the closed port
    assert after.send(**after.send(**sent).next_).text == DONE


def test_a_warm_container_gets_through_a_short_outage(region: Region, caplog: pytest.LogCaptureFixture) -> None:
    warm = region.container()
    sealed = warm.send()
    region.kms.weather = lambda _action: kms_refuses("ThrottlingException")
    region.ahead += EPOCH  # its key's epoch is over, and no new key is to be had
    assert warm.send().status == 200
    assert any("of an earlier epoch" in message for message in caplog.messages)
    region.ahead += STALE
    assert warm.send().status == 503
    region.kms.weather = lambda _action: None
    region.ahead += 6
    assert warm.send().status == 200
    assert warm.send(**sealed.next_).status == 400  # it is half an hour old by now


def test_an_outage_is_never_reported_as_a_bad_state_and_uses_no_budget(region: Region) -> None:
    sent = region.container().send().next_
    cold = region.container()
    region.kms.weather = lambda _action: kms_refuses("KMSInternalException", 500)
    assert {cold.send(**sent).status for _ in range(5)} == {503}
    region.kms.weather = lambda _action: None
    assert cold.send(**sent).status == 200
