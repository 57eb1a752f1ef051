"""With `single_use`, each round of a conversation runs once, and a repeated request gets the recorded response.

The first tests show the rules with the tool below. The others need faults: the tool of `PaymentService` is longer,
because it looks up the price before the payment and asks for a note after it. Its workers can crash and its table can
fail. `send` sends one round to a worker and returns the reply. `begin_payment` sends the rounds before the approval,
and returns the state that the approval is sent with.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, Step, prompt, resource, serve, store, tool
from mcp_functions.dispatch import single_use
from mcp_functions_harness.doubles import dynamodb
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing import Conversation, deployed
from mcp_functions_harness.testing.dynamodb import MemoryTable
from tests.support import wire
from tests.support.payments import (
    ADD_NOTE,
    ANSWER_SECONDS,
    APPROVE,
    DISAPPROVE,
    INVALID_STATE_ERROR,
    INVOCATION_SECONDS,
    RETRY_LATER_ERROR,
    PaymentService,
    WorkerCrash,
    begin_payment,
    send,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.handlers.base import Handler
    from mcp_functions_harness.testing.dynamodb import Fault
    from tests.support.payments import Worker


class Approval(BaseModel):
    pay: bool


class Bank:
    """A bank without idempotency: each call makes a transfer."""

    def __init__(self) -> None:
        self.transfers: list[str] = []

    def transfer(self, key: str) -> None:
        self.transfers.append(key)


def make_payer(bank: Bank) -> Handler[..., str]:
    """Return a tool that pays after an approval."""

    @tool(single_use="replay")
    def pay(*, elicit: Elicit, step: Step) -> str:
        if not elicit("approval", "Pay 75 EUR?", Approval).pay:
            return "Nothing was paid."
        step.keyed("transfer", bank.transfer)
        return "Paid."

    return pay


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def conversation(bank: Bank) -> Iterator[Conversation]:
    """Deploy the tool and call it, so that it asks for the approval."""
    with deployed():
        yield Conversation(serve(make_payer(bank)), principal="alice").call()


def test_a_repeated_answer_gets_the_same_result_without_a_second_payment(
    conversation: Conversation, bank: Bank
) -> None:
    assert conversation.accept(approval={"pay": True}).text == "Paid."
    assert conversation.retry().text == "Paid."
    assert len(bank.transfers) == 1


def test_another_answer_to_the_same_question_is_refused(conversation: Conversation, bank: Bank) -> None:
    assert conversation.accept(approval={"pay": False}).text == "Nothing was paid."
    assert conversation.accept(approval={"pay": True}).error == INVALID_STATE_ERROR
    assert bank.transfers == []


def test_another_principal_cannot_run_or_read_a_round(conversation: Conversation, bank: Bank) -> None:
    conversation.accept(approval={"pay": True})
    assert conversation.as_("mallory").retry().error == INVALID_STATE_ERROR
    assert len(bank.transfers) == 1


def test_with_dynamodb_of_moto_a_payment_is_made_once(bank: Bank) -> None:
    with deployed(dynamodb.Moto(dynamodb.table(TABLE))):
        conversation = Conversation(serve(make_payer(bank))).call()
        assert conversation.accept(approval={"pay": True}).text == "Paid."
        assert conversation.retry().text == "Paid."
        assert conversation.accept(approval={"pay": False}).error == INVALID_STATE_ERROR
    assert len(bank.transfers) == 1


# The same with workers that may crash, a table that may fail, and a clock

AFTER_LEASE = INVOCATION_SECONDS + 2  # seconds after which another worker may run a round whose worker crashed
CLAIM = ["GetItem", "PutItem"]  # before a round runs, it reads the conversation's item and writes its claim
RECORD = ["PutItem"]  # after a round has run, it writes its result


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> PaymentService:
    service = PaymentService()
    monkeypatch.setattr(store, "make_call", lambda: service.table)
    return service


@pytest.fixture
def pay(service: PaymentService) -> Worker:
    return service.new_container()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def refusal_lines(log: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in log.messages if line.startswith("refused: ")]


def test_a_first_round_ends_before_its_first_step(service: PaymentService, pay: Worker) -> None:
    assert send(pay).questions == []
    assert service.price_lookups == 0
    assert service.table.calls == []


def test_a_round_is_claimed_before_it_runs_and_recorded_before_the_response(
    service: PaymentService, pay: Worker
) -> None:
    state = begin_payment(pay)
    service.table.calls.clear()
    calls_at_transfer: list[str] = []
    service.before_transfer = lambda: calls_at_transfer.extend(service.table.calls)
    assert send(pay, state, APPROVE).questions == ["note"]
    assert calls_at_transfer == CLAIM
    assert service.table.calls == CLAIM + RECORD


@pytest.mark.parametrize("container", ["the same", "another"])
def test_a_step_runs_once_in_a_repeated_round(service: PaymentService, pay: Worker, container: str) -> None:
    state = begin_payment(pay)
    first = send(pay, state, APPROVE)
    worker = {"the same": pay, "another": service.new_container()}[container]
    repeated = send(worker, state, APPROVE, id="another", meta={"progressToken": 1})
    assert repeated.body == {**first.body, "id": "another"}
    assert service.price_lookups == 1
    assert service.transfer_calls == 1


def test_an_item_expires_after_every_state_of_its_conversation(service: PaymentService, pay: Worker) -> None:
    longest_conversation = 6 * ANSWER_SECONDS  # a conversation may take six times `answer_within`
    spare_seconds = 120  # because the clocks of two containers may differ by 60 s
    start = service.now
    approved = send(pay, begin_payment(pay), APPROVE)
    assert send(pay, approved.state, ADD_NOTE).text == "transfer 1: thanks"
    (item,) = service.table.items.values()
    assert int(item["expires"]["N"]) == start + longest_conversation + spare_seconds


def test_the_key_of_an_item_begins_with_the_stack_and_the_function(service: PaymentService, pay: Worker) -> None:
    begin_payment(pay)
    (item,) = service.table.items.values()
    assert item["key"]["S"].startswith("local/pay/")  # the function's role may use only these items


def test_two_conversations_are_two_payments(service: PaymentService, pay: Worker) -> None:
    send(pay, begin_payment(pay), APPROVE)
    send(pay, begin_payment(pay), APPROVE)
    assert list(service.transfers.values()) == [75, 75]


# Other answers, and old states


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(DISAPPROVE, id="another answer"),
        pytest.param({}, id="empty answers"),
        pytest.param(None, id="no answers"),
        pytest.param({**APPROVE, "more": {"action": "cancel"}}, id="one answer more"),
    ],
)
def test_other_answers_to_the_same_question_are_refused(
    service: PaymentService, pay: Worker, answers: dict[str, Any] | None
) -> None:
    state = begin_payment(pay)
    send(pay, state, APPROVE)
    assert send(pay, state, answers).error == INVALID_STATE_ERROR
    assert service.transfer_calls == 1


@pytest.mark.parametrize("answers", [APPROVE, DISAPPROVE], ids=["the same answer", "another answer"])
def test_a_state_of_an_earlier_round_is_refused(
    pay: Worker, log: pytest.LogCaptureFixture, answers: dict[str, Any]
) -> None:
    state = begin_payment(pay)
    approved = send(pay, state, APPROVE)
    send(pay, approved.state, ADD_NOTE)
    assert send(pay, state, answers).error == INVALID_STATE_ERROR
    assert refusal_lines(log) == ["refused: -32602 used_rewound"]


def test_single_use_reject_refuses_the_same_request_again(
    service: PaymentService, log: pytest.LogCaptureFixture
) -> None:
    pay = service.new_container("reject")
    state = begin_payment(pay)
    approved = send(pay, state, APPROVE)
    assert send(pay, state, APPROVE).error == INVALID_STATE_ERROR
    assert refusal_lines(log) == ["refused: -32602 used_again"]
    assert send(pay, approved.state, ADD_NOTE).text == "transfer 1: thanks"


def test_single_use_reject_records_no_result(service: PaymentService) -> None:
    pay = service.new_container("reject")
    approved = send(pay, begin_payment(pay), APPROVE)
    send(pay, approved.state, ADD_NOTE)
    assert b"transfer 1: thanks" not in b"".join(service.codec.payloads)


# Two requests at once


def test_one_of_two_simultaneous_requests_runs_and_both_get_its_response(service: PaymentService, pay: Worker) -> None:
    state = begin_payment(pay)
    containers = [service.new_container(), service.new_container()]
    for container in containers:
        send(container)  # the first request of a container is slow
    start = Barrier(2)

    def race(container: Worker) -> wire.Reply:
        start.wait()
        return send(container, state, APPROVE)

    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(race, containers))
    results = [reply.questions for reply in replies if reply.error != RETRY_LATER_ERROR]
    assert results in ([["note"]], [["note"], ["note"]])
    assert [send(container, state, APPROVE).questions for container in containers] == [["note"], ["note"]]
    assert service.transfer_calls == 1


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        pytest.param(APPROVE, RETRY_LATER_ERROR, id="the same answer"),
        pytest.param(DISAPPROVE, INVALID_STATE_ERROR, id="another answer"),
    ],
)
def test_a_request_during_a_running_round_is_told_to_retry(
    service: PaymentService, pay: Worker, answers: dict[str, Any], error: dict[str, Any]
) -> None:
    state = begin_payment(pay)
    other_container = service.new_container()
    replies: list[wire.Reply] = []
    service.before_transfer = lambda: replies.append(send(other_container, state, answers))
    assert send(pay, state, APPROVE).questions == ["note"]
    assert [reply.error for reply in replies] == [error]
    assert service.transfer_calls == 1


# Workers that crash, hang or fail


def crash_worker(service: PaymentService, pay: Worker) -> str:
    """Let a worker crash before its transfer, and return the state that it was called with."""
    state = begin_payment(pay)
    service.before_transfer = service.crash
    with pytest.raises(WorkerCrash):
        send(pay, state, APPROVE)
    return state


def test_a_round_whose_worker_died_continues_after_its_lease(service: PaymentService, pay: Worker) -> None:
    state = crash_worker(service, pay)
    service.now += AFTER_LEASE
    assert send(service.new_container(), state, APPROVE).questions == ["note"]
    assert service.transfer_calls == 1


def test_a_payment_before_a_crash_is_repeated_with_the_same_idempotency_key(
    service: PaymentService, pay: Worker
) -> None:
    state = begin_payment(pay)
    service.after_transfer = service.crash
    with pytest.raises(WorkerCrash):
        send(pay, state, APPROVE)
    service.now += AFTER_LEASE
    assert send(service.new_container(), state, APPROVE).questions == ["note"]
    assert service.transfer_calls == 2
    assert len(service.transfers) == 1


def test_a_round_whose_worker_died_waits_for_the_end_of_its_lease(service: PaymentService, pay: Worker) -> None:
    state = crash_worker(service, pay)
    assert send(pay, state, APPROVE).error == RETRY_LATER_ERROR


def test_other_answers_are_refused_after_the_lease_because_a_payment_may_have_been_made(
    service: PaymentService, pay: Worker
) -> None:
    state = crash_worker(service, pay)
    service.now += AFTER_LEASE
    assert send(pay, state, DISAPPROVE).error == INVALID_STATE_ERROR


def test_a_worker_that_outlives_its_lease_does_not_send_its_result(
    service: PaymentService, pay: Worker, log: pytest.LogCaptureFixture
) -> None:
    state = begin_payment(pay)
    second_worker = service.new_container()
    second_replies: list[wire.Reply] = []

    def outlive_lease() -> None:
        service.now += AFTER_LEASE
        second_replies.append(send(second_worker, state, APPROVE))

    service.before_transfer = outlive_lease
    assert send(pay, state, APPROVE).error == RETRY_LATER_ERROR
    assert log.messages[-1] == "refused: -32603 used_overtaken"
    assert second_replies == [send(pay, state, APPROVE)]
    assert second_replies[0].questions == ["note"]
    assert len(service.transfers) == 1


def test_after_an_exception_the_same_request_runs_again_at_once(service: PaymentService, pay: Worker) -> None:
    def fail() -> None:
        raise OSError

    state = begin_payment(pay)
    service.after_transfer = fail
    assert "failed unexpectedly" in send(pay, state, APPROVE).text
    assert send(pay, state, DISAPPROVE).error == INVALID_STATE_ERROR
    assert send(pay, state, APPROVE).questions == ["note"]
    assert len(service.transfers) == 1


# Faults of the table. The function tries each operation twice.


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("throttled", id="DynamoDB refuses"),
        pytest.param("unanswered", id="nothing happens and no response comes"),
        pytest.param("lost", id="a write happens, but no response comes"),
    ],
)
def test_no_payment_is_made_during_an_outage_of_the_table(service: PaymentService, pay: Worker, fault: Fault) -> None:
    state = begin_payment(pay)
    service.table_faults = [fault] * 9
    assert send(pay, state, APPROVE).error == RETRY_LATER_ERROR
    assert service.transfer_calls == 0


def test_denied_access_to_the_table_is_a_misconfiguration(
    service: PaymentService, pay: Worker, log: pytest.LogCaptureFixture
) -> None:
    state = begin_payment(pay)
    service.table_faults = ["denied"]
    assert send(pay, state, APPROVE).error == {"code": -32603, "message": "Internal error"}
    assert refusal_lines(log) == ["refused: -32603 table:AccessDeniedException"]
    assert service.transfer_calls == 0


def test_a_stored_claim_without_a_response_counts(service: PaymentService, pay: Worker) -> None:
    state = begin_payment(pay)
    service.table_faults = [None, "lost"]  # the read, and the claim
    assert send(pay, state, APPROVE).questions == ["note"]
    assert service.transfer_calls == 1


def test_a_result_that_cannot_be_recorded_is_not_sent(service: PaymentService, pay: Worker) -> None:
    state = begin_payment(pay)
    service.table_faults = [None, None, "throttled", "throttled"]  # the read, the claim, and two tries to record
    assert send(pay, state, APPROVE).error == RETRY_LATER_ERROR
    assert send(pay, state, DISAPPROVE).error == INVALID_STATE_ERROR
    service.now += AFTER_LEASE
    assert send(pay, state, APPROVE).questions == ["note"]
    assert len(service.transfers) == 1


def test_an_unreadable_item_does_not_allow_a_payment(
    service: PaymentService, pay: Worker, log: pytest.LogCaptureFixture
) -> None:
    state = begin_payment(pay)
    (item,) = service.table.items.values()
    item["sealed"] = {"S": "not a sealed value"}
    assert send(pay, state, APPROVE).error == INVALID_STATE_ERROR
    assert refusal_lines(log) == ["refused: -32602 used_unreadable"]
    assert service.transfer_calls == 0


def test_a_new_table_runs_no_round_of_the_table_before(
    service: PaymentService, pay: Worker, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after the table was removed from the template and added again: CloudFormation gives it another name."""
    state = begin_payment(pay)
    assert send(pay, state, APPROVE).questions == ["note"]
    monkeypatch.setenv("MCP_TABLE", "shop-Table-2")
    service.table = MemoryTable("shop-Table-2")
    assert send(service.new_container(), state, APPROVE).error == INVALID_STATE_ERROR
    assert refusal_lines(log) == ["refused: -32602 used_other_table"]
    assert service.transfer_calls == 1


def test_a_state_that_was_sealed_before_states_named_their_table_continues(
    pay: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(single_use, "TABLE_KEY", "of yesterday")
        state = begin_payment(pay)
    assert send(pay, state, APPROVE).questions == ["note"]


def test_a_claim_that_loses_every_race_is_refused_until_later(
    service: PaymentService, pay: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_args: object, **_options: object) -> None:
        raise store.Conflict

    state = begin_payment(pay)
    with monkeypatch.context() as patch:
        patch.setattr(store.SealedTable, "replace", lose)
        assert send(pay, state, APPROVE).error == RETRY_LATER_ERROR
    assert service.transfer_calls == 0
    assert send(pay, state, APPROVE).questions == ["note"]


# Results that are recorded


class PlainCodec:
    """Writes a payload as text, so that a long result makes a large item."""

    def seal(self, payload: bytes, /) -> str:
        return payload.decode("latin-1")

    def unseal(self, token: str, /) -> bytes:
        return token.encode("latin-1")


def test_a_result_too_large_for_the_table_is_sent_once(service: PaymentService, log: pytest.LogCaptureFixture) -> None:
    @tool(single_use="replay")
    def pay(*, elicit: Elicit) -> str:
        elicit("approval", "Pay?", Approval)
        service.transfer_calls += 1
        return "x" * 400_000

    function = serve(pay, codec=PlainCodec(), now=lambda: service.now)
    state = send(function).state
    assert send(function, state, APPROVE).text == "x" * 400_000
    assert send(function, state, APPROVE).text == "This was done before, and its answer was not kept."
    assert service.transfer_calls == 1
    (reason,) = [vars(line)["reason"] for line in log.records if vars(line).get("reason")]
    assert reason.startswith("a payload of ")


def test_a_recorded_question_is_repeated_only_to_a_client_that_can_answer(pay: Worker) -> None:
    state = begin_payment(pay)
    send(pay, state, APPROVE)
    assert send(pay, state, APPROVE, capabilities={}).result["isError"] is True


def test_a_recorded_error_is_repeated_too(service: PaymentService) -> None:
    runs: list[str] = []

    @tool(single_use="replay")
    def pay(*, elicit: Elicit) -> str:
        runs.append("pay")
        elicit("approval", "Pay?", Approval)
        return "paid"

    function = serve(pay, codec=service.codec, now=lambda: service.now)
    declined = {"approval": {"action": "decline"}}
    state = send(function).state
    first = send(function, state, declined)
    assert first.result["isError"] is True
    assert send(function, state, declined) == first
    assert len(runs) == 2  # the call, and the declined question


# Declarations and deployment


def ask_approval(*, elicit: Elicit) -> str:
    return str(elicit("approval", "Pay?", Approval).pay)


def ask_nothing(amount: int) -> int:
    return amount


@pytest.mark.parametrize(
    ("decorate", "error"),
    [
        pytest.param(
            lambda: tool(single_use="once")(ask_approval),  # type: ignore[call-overload]
            'single_use is "replay" or "reject", not \'once\'',
            id="an unknown mode",
        ),
        pytest.param(
            lambda: tool(single_use="replay")(ask_nothing),
            "single_use needs several rounds: add an `elicit`",
            id="a tool that asks nothing",
        ),
        pytest.param(
            lambda: tool(single_use="replay", max_sheds=0)(ask_approval),
            "single_use needs max_sheds=1 or more",
            id="no first round without steps",
        ),
        pytest.param(
            lambda: prompt(single_use="replay")(ask_approval),  # type: ignore[call-overload]
            "unexpected keyword argument 'single_use'",
            id="a prompt",
        ),
        pytest.param(
            lambda: resource("a://b", single_use="replay")(ask_approval),  # type: ignore[call-arg]
            "unexpected keyword argument 'single_use'",
            id="a resource",
        ),
    ],
)
def test_an_invalid_single_use_option_is_refused_at_decoration(decorate: Callable[[], object], error: str) -> None:
    with pytest.raises(TypeError) as caught:
        decorate()
    assert error in str(caught.value)


@pytest.mark.parametrize("missing", ["MCP_TABLE", "MCP_KMS_KEYS"])
def test_without_table_or_key_every_event_is_a_misconfiguration(missing: str, log: pytest.LogCaptureFixture) -> None:
    function = serve(tool(name="pay", single_use="replay")(ask_approval))
    with deployed(**{missing: None}):
        response = function(wire.event(wire.message("tools/list")), wire.Context())
    assert response["statusCode"] == 500
    (line,) = refusal_lines(log)
    assert line.startswith("refused: -32603 MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the tab")


def test_a_conversation_that_began_before_single_use_continues(service: PaymentService) -> None:
    earlier_version = service.new_container(mode=None)
    first = send(earlier_version)
    approved = send(earlier_version, first.state, APPROVE)
    pay = service.new_container()
    assert send(pay, approved.state, ADD_NOTE).text == "transfer 1: thanks"
    assert send(pay, first.state, APPROVE).error == INVALID_STATE_ERROR
