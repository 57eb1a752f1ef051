"""An operator stops a function or a caller with an environment variable; the log names callers by pseudonyms.

A pseudonym is an HMAC of the caller with a KMS key (`hmac_key`; KMS is moto's), and it changes each month. `log` has
the fields of each request's line. `call` calls a function in a new container. The decorators read real annotations at
run time, so this module does not import `annotations` from `__future__`.
"""

import logging
import re
from calendar import timegm
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import boto3
import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, serve, serve_catalog, tool
from mcp_functions.aws.errors import ClientError
from mcp_functions.http.callers import PAUSE_SECONDS, Pseudonyms, pseudonyms
from mcp_functions.http.gateway import LambdaFunction, WorkFailed
from mcp_functions.protocol.errors import CallerStopped, Misconfigured, TemporarilyUnavailable
from mcp_functions_harness import environment
from mcp_functions_harness.testing import WITH_TASKS, Conversation, deployed
from tests.support import wire

NOVEMBER, DECEMBER = timegm((2026, 11, 22, 0, 0, 0)), timegm((2026, 12, 1, 0, 0, 0))
CALLER_STOPPED_ERROR = {"code": -32600, "message": "The operator of this server has stopped this caller"}
FUNCTION_STOPPED_ERROR = {
    "code": -32603,
    "message": "The operator of this server has stopped this function",
    "data": {"retryable": True},
}


class Seat(BaseModel):
    seat: str


@tool
def book(city: str, *, elicit: Elicit) -> str:
    """Book a seat."""
    return f"{city}: {elicit('seat', 'Which seat?', Seat).seat}"


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@tool(task="required")
def audit() -> str:
    """Audit a year."""
    return "done"


book_function, add_function, audit_function = serve(book), serve(add), serve(audit)


class FieldsHandler(logging.Handler):
    """A log handler that keeps the fields of each request's line."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "outcome"):
            self.fields.append(vars(record))


Log = list[dict[str, Any]]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    handler = FieldsHandler()
    caplog.set_level(logging.INFO, "mcp_functions")
    logging.getLogger("mcp_functions").addHandler(handler)
    yield handler.fields
    logging.getLogger("mcp_functions").removeHandler(handler)


@pytest.fixture
def hmac_key() -> Iterator[str]:
    """Deploy with an HMAC key, and return its ARN."""
    with deployed():
        response = boto3.client("kms").create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")
        arn = str(response["KeyMetadata"]["Arn"])
        with environment.applied({"MCP_LOG_CALLERS": arn}):
            yield arn
    pseudonyms.cache_clear()


def call(handler: LambdaFunction, principal: str, *, now: float = NOVEMBER, **arguments: object) -> Conversation:
    """Call a function in a new container, which has no pseudonyms in its memory."""
    pseudonyms.cache_clear()
    return Conversation(handler.fresh(now=lambda: now), principal=principal).call(**arguments)


def stopped_callers(*names: str) -> AbstractContextManager[None]:
    return environment.applied({"MCP_STOPPED_CALLERS": ",".join(names)})


def assert_error(talk: Conversation, *, status: int, error: dict[str, Any]) -> None:
    assert talk.status == status
    assert talk.error == error


# ---- Pseudonyms


@pytest.mark.usefixtures("hmac_key")
def test_a_caller_has_one_pseudonym_in_all_functions(log: Log) -> None:
    call(book_function, "alice", city="Lisbon")
    call(add_function, "alice", a=1)
    assert re.fullmatch(r"2026-11\.[\w-]{16}", log[0]["caller"])
    assert log[1]["caller"] == log[0]["caller"]


@pytest.mark.usefixtures("hmac_key")
def test_two_callers_have_different_pseudonyms(log: Log) -> None:
    call(add_function, "alice", a=1)
    call(add_function, "bob", a=1)
    assert log[0]["caller"] != log[1]["caller"]


@pytest.mark.usefixtures("hmac_key")
def test_the_pseudonym_changes_with_the_month(log: Log) -> None:
    for now in (NOVEMBER, DECEMBER - 1, DECEMBER):
        call(add_function, "alice", now=now, a=1)
    (_, begin_of_november), (_, end_of_november), (month, december) = (line["caller"].split(".") for line in log)
    assert begin_of_november == end_of_november
    assert month == "2026-12"
    assert december != end_of_november


@pytest.mark.usefixtures("hmac_key")
def test_a_container_calls_kms_once_a_month(log: Log) -> None:
    pseudonyms.cache_clear()
    container = add_function.fresh(now=lambda: NOVEMBER)
    for principal in ("alice", "bob", "alice"):
        Conversation(container, principal=principal).call(a=1)
    assert [line["kms_calls"] for line in log] == [1, 0, 0]


def test_the_log_names_no_caller_without_an_hmac_key(log: Log) -> None:
    with deployed():
        call(add_function, "alice", a=1)
    assert log[0]["outcome"] == "complete"
    assert "caller" not in log[0]


# ---- A stopped caller


@pytest.mark.usefixtures("hmac_key")
def test_every_function_refuses_a_stopped_caller(log: Log) -> None:
    call(add_function, "alice", a=1)
    with stopped_callers(log[0]["caller"]):
        assert_error(call(book_function, "alice", city="Lisbon"), status=403, error=CALLER_STOPPED_ERROR)
        assert_error(call(add_function, "alice", a=1), status=403, error=CALLER_STOPPED_ERROR)


@pytest.mark.usefixtures("hmac_key")
def test_the_log_names_a_stopped_caller(log: Log) -> None:
    call(add_function, "alice", a=1)
    with stopped_callers(log[0]["caller"]):
        call(add_function, "alice", a=1)
    assert log[1]["outcome"] == "refused"
    assert log[1]["caller"] == log[0]["caller"]


@pytest.mark.usefixtures("hmac_key")
def test_another_caller_is_not_stopped(log: Log) -> None:
    call(add_function, "alice", a=1)
    with stopped_callers(log[0]["caller"]):
        assert call(add_function, "bob", a=1).text == "2"


@pytest.mark.usefixtures("hmac_key")
def test_a_stopped_caller_causes_one_call_of_kms_in_a_container(log: Log) -> None:
    asked = call(book_function, "alice", city="Lisbon")
    with stopped_callers(log[0]["caller"]):
        pseudonyms.cache_clear()
        container = book_function.fresh(now=lambda: NOVEMBER)
        for _ in range(3):
            talk = Conversation(container, principal="alice").call(city="Lisbon")
            talk.rounds = asked.rounds  # the state that the function returned before the stop
            assert talk.accept(seat={"seat": "A1"}).status == 403
    assert [line["kms_calls"] for line in log[1:]] == [1, 0, 0, 0, 0, 0]


@pytest.mark.usefixtures("hmac_key")
def test_a_stop_is_valid_in_the_next_month(log: Log) -> None:
    call(add_function, "alice", a=1)
    with stopped_callers(log[0]["caller"], "2026-10.AAAAAAAAAAAAAAAA"):
        assert call(add_function, "alice", now=DECEMBER, a=1).status == 403
        assert call(add_function, "bob", now=DECEMBER, a=1).status == 200


def event_of_2025(address: str) -> dict[str, Any]:
    """Write a call of a client of 2025 without a sign-in, from this address."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}}
    event = wire.event(message, headers={"mcp-protocol-version": "2025-11-25"})
    event["requestContext"]["http"]["sourceIp"] = address
    return event


@pytest.mark.usefixtures("hmac_key")
@pytest.mark.parametrize(
    ("stopped", "same_network", "other_network"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:3::1"),
    ],
)
def test_a_client_without_a_sign_in_is_stopped_by_its_network(
    log: Log, stopped: str, same_network: str, other_network: str
) -> None:
    context = wire.Context("local_add")
    add_function.fresh()(event_of_2025(stopped), context)
    with stopped_callers(log[0]["caller"]):
        assert add_function.fresh()(event_of_2025(same_network), context)["statusCode"] == 403
        assert add_function.fresh()(event_of_2025(other_network), context)["statusCode"] == 200


def test_a_client_without_a_sign_in_has_one_budget_of_kms_calls_for_its_network(log: Log) -> None:
    with deployed():
        state = Conversation(book_function).call(city="Lisbon").state
        container = book_function.fresh()
        params = {"name": "book", "arguments": {"city": "Lisbon"}}
        statuses = []
        for number in range(9):
            damaged = state[: 150 + number] + ("A" if state[150 + number] != "A" else "B") + state[151 + number :]
            event = wire.event(wire.message("tools/call", {**params, "requestState": damaged}))
            event["requestContext"]["http"]["sourceIp"] = f"2001:db8:1:2::{number:x}"
            statuses.append(container(event, wire.Context("local_book"))["statusCode"])
    assert statuses == [400] * 3 + [503] * 6
    assert sum(line["kms_calls"] for line in log[1:]) == 3


def test_stopped_callers_without_an_hmac_key_are_a_misconfiguration(log: Log) -> None:
    with deployed(), stopped_callers("2026-11.fbIZn1rBHzMDjVTr"):
        assert call(add_function, "alice", a=1).status == 500
    assert log[0]["misconfigured"]


class FailingKms:
    """KMS that answers with an error code until it is None; it counts its calls."""

    def __init__(self) -> None:
        self.error_code: str | None = None
        self.calls = 0

    def generate_mac(self, *, KeyId: str, MacAlgorithm: str, Message: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        self.calls += 1
        assert KeyId == "arn:aws:kms:eu-west-1:123456789012:key/h"
        assert MacAlgorithm == "HMAC_SHA_256"
        if self.error_code:
            raise ClientError(self.error_code, 400)
        return {"Mac": Message}


@pytest.fixture
def kms() -> FailingKms:
    return FailingKms()


@pytest.fixture
def names(kms: FailingKms) -> Pseudonyms:
    return Pseudonyms("arn:aws:kms:eu-west-1:123456789012:key/h", lambda: kms)


def test_a_failing_kms_is_called_once_a_minute_and_no_request_fails(names: Pseudonyms, kms: FailingKms) -> None:
    kms.error_code = "ThrottlingException"
    for second in (0, 1, PAUSE_SECONDS - 1, PAUSE_SECONDS):
        names.log_caller("alice", NOVEMBER + second)
    assert kms.calls == 2


def test_callers_have_pseudonyms_again_after_kms_failed(names: Pseudonyms, kms: FailingKms) -> None:
    kms.error_code = "ThrottlingException"
    names.log_caller("alice", NOVEMBER)
    kms.error_code = None
    names.log_caller("alice", NOVEMBER + PAUSE_SECONDS)
    assert names.pseudonym("alice", "2026-11", NOVEMBER).startswith("2026-11.")


def test_a_caller_with_the_pseudonym_of_a_stopped_one_is_refused(names: Pseudonyms) -> None:
    stopped = [names.pseudonym("alice", "2026-11", NOVEMBER)]
    with pytest.raises(CallerStopped):
        names.refuse_stopped_caller("alice", stopped, NOVEMBER)


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException"])
def test_no_caller_is_admitted_while_some_are_stopped_and_kms_fails(
    code: str, names: Pseudonyms, kms: FailingKms
) -> None:
    kms.error_code = code
    names.log_caller("alice", NOVEMBER)
    with pytest.raises(TemporarilyUnavailable):
        names.refuse_stopped_caller("alice", ["2026-11.fbIZn1rBHzMDjVTr"], NOVEMBER)


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", TemporarilyUnavailable), ("AccessDeniedException", Misconfigured)]
)
def test_the_error_of_a_pseudonym_says_whether_a_retry_helps(
    code: str, error: type[Exception], names: Pseudonyms, kms: FailingKms
) -> None:
    kms.error_code = code
    with pytest.raises(error):
        names.pseudonym("alice", "2026-11", NOVEMBER)


# ---- A stopped function


def test_a_stopped_function_is_503_without_a_call_of_kms(log: Log) -> None:
    with deployed(MCP_STOPPED_FUNCTIONS="add, book"):
        for talk in (call(book_function, "alice", city="Lisbon"), call(add_function, "alice", a=1)):
            assert_error(talk, status=503, error=FUNCTION_STOPPED_ERROR)
            assert talk.rounds[-1][1]["headers"]["retry-after"] == "300"
    assert {line["reason"] for line in log} == {"FunctionStopped"}
    assert {line["kms_calls"] for line in log} == {0}


def test_a_stopped_function_is_503_for_a_client_of_2025() -> None:
    with deployed(MCP_STOPPED_FUNCTIONS="add"):
        response = add_function.fresh()(event_of_2025("192.0.2.1"), wire.Context("local_add"))
    assert response["statusCode"] == 503


def test_a_stopped_endpoint_does_not_stop_its_functions() -> None:
    endpoint = serve_catalog(Path(__file__).parents[2] / "functions/mcp/catalog.json")
    with deployed(MCP_STOPPED_FUNCTIONS="mcp"):
        listing = wire.event(wire.message("tools/list"))
        assert endpoint(listing, wire.Context("local_mcp"))["statusCode"] == 503
        assert add_function.fresh()(listing, wire.Context("local_add"))["statusCode"] == 200


def test_another_function_is_not_stopped() -> None:
    with deployed(MCP_STOPPED_FUNCTIONS="book"):
        assert call(add_function, "alice", a=1).text == "2"


WORK = {"mcpTask": {"id": "1", "owner": None}}  # the event of a task's worker
WORKER_CONTEXT = wire.Context("local_audit-worker", 900_000)


def test_a_worker_of_a_stopped_function_does_not_work_on_its_task(log: Log) -> None:
    with deployed(MCP_STOPPED_FUNCTIONS="audit"):
        assert audit_function.fresh()(WORK, WORKER_CONTEXT) == {}
    assert log[0]["outcome"] == "refused"
    assert log[0]["reason"] == "FunctionStopped"


@pytest.mark.usefixtures("hmac_key")
def test_a_worker_does_not_work_on_a_task_of_a_stopped_caller(log: Log) -> None:
    talks = {name: call_as_task(name) for name in ("alice", "bob")}
    with stopped_callers(log[0]["caller"]):
        for talk in talks.values():
            pseudonyms.cache_clear()
            talk.poll()  # runs the task's worker, and gets the task
    assert talks["bob"].text == "done"
    refused, _get, done = log[2:5]
    assert (refused["outcome"], refused["reason"], refused["caller"]) == ("refused", "CallerStopped", log[0]["caller"])
    assert (done["outcome"], done["caller"]) == ("complete", log[1]["caller"])
    # The task waits. After the stop, a poll invokes another worker.
    talks["alice"].later(seconds=15).poll()
    assert talks["alice"].poll().text == "done"


def call_as_task(principal: str) -> Conversation:
    """Begin a task as somebody; its worker has been invoked and has not run."""
    pseudonyms.cache_clear()
    function = audit_function.fresh(now=lambda: NOVEMBER)
    return Conversation(function, principal=principal, capabilities=WITH_TASKS).call()


def test_a_worker_without_a_stack_fails_although_its_function_is_stopped() -> None:
    with deployed(MCP_STOPPED_FUNCTIONS="audit", MCP_STACK=""), pytest.raises(WorkFailed):
        audit_function.fresh()(WORK, WORKER_CONTEXT)
