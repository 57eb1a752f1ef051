"""`serve(…, audit=function)` gives each round's record to a function of the author: what was asked, and the answers.

`ledger` is the list of these records; `Conversation` is the client. A record has no content of an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, ListRoots, Question, Sample, prompt, serve, tool
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.binding import principal_digest
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from mcp_functions.handlers.base import Handler
    from mcp_functions.hooks import AuditRecord


@pytest.fixture
def ledger() -> list[AuditRecord]:
    return []


def talk_to(handler: Handler[..., Any], ledger: list[AuditRecord]) -> Conversation:
    return Conversation(serve(handler, audit=ledger.append))


def summaries(ledger: list[AuditRecord]) -> list[tuple[int, dict[str, str], dict[str, str]]]:
    """Return the number of each round, its questions and the answers that it received."""
    return [(record.round, dict(record.asked), dict(record.answered)) for record in ledger]


@tool
def transfer(euros: int, *, elicit: Elicit) -> str:
    """Send money."""
    payee = elicit("payee", "To whom?", str)
    consent = elicit("consent", f"Send {euros} EUR to {payee}?", bool)
    return f"{euros} EUR to {payee}: {consent}"


# Each round has a record.


def test_a_record_has_the_questions_of_its_round_and_the_answers_to_the_previous_ones(
    ledger: list[AuditRecord],
) -> None:
    talk_to(transfer, ledger).call(euros=7).accept(payee="Ann").accept(consent=True)
    assert summaries(ledger) == [
        (1, {"payee": "To whom?"}, {}),
        (2, {"consent": "Send 7 EUR to Ann?"}, {"payee": "accept"}),
        (3, {}, {"consent": "accept"}),
    ]


def test_a_record_names_the_handler(ledger: list[AuditRecord]) -> None:
    talk_to(transfer, ledger).call(euros=7)
    assert ledger[0].handler == "transfer"


def test_all_records_of_a_conversation_have_its_flow(ledger: list[AuditRecord]) -> None:
    talk_to(transfer, ledger).call(euros=7).accept(payee="Ann")
    assert ledger[0].flow == ledger[1].flow


def test_each_conversation_has_its_own_flow(ledger: list[AuditRecord]) -> None:
    talk_to(transfer, ledger).call(euros=7).call(euros=7)
    assert ledger[0].flow != ledger[1].flow


def test_a_record_names_the_caller_by_a_digest(ledger: list[AuditRecord]) -> None:
    alice = Principal("https://issuer.example", "alice", "client")
    Conversation(serve(transfer, audit=ledger.append), principal=alice).call(euros=7)
    assert ledger[0].principal == principal_digest(alice)
    assert "alice" not in str(ledger)


def test_a_record_without_a_caller_has_no_principal(ledger: list[AuditRecord]) -> None:
    talk_to(transfer, ledger).call(euros=7)
    assert ledger[0].principal is None


def test_several_questions_of_one_round_are_one_record(ledger: list[AuditRecord]) -> None:
    @tool
    def ask_two(*, elicit: Elicit) -> str:
        return str(elicit.together(Question("A?", bool, key="a"), Question("B?", bool, key="b")))

    talk_to(ask_two, ledger).call().accept(b=True).accept(a=True)
    assert summaries(ledger) == [
        (1, {"a": "A?", "b": "B?"}, {}),
        (2, {"a": "A?"}, {"b": "accept"}),
        (3, {}, {"a": "accept"}),
    ]


@tool
def ask_model(*, sample: Sample) -> str:
    return str(sample("model", "Well?", max_tokens=9))


@tool
def ask_for_roots(*, list_roots: ListRoots) -> str:
    return str(list_roots())


def test_questions_to_the_client_and_its_model_are_recorded_by_their_methods(ledger: list[AuditRecord]) -> None:
    @tool
    def ask_three(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> str:
        elicit.url("page", "Please sign in", "https://example.com/")
        list_roots()
        return str(sample("model", "Well?", max_tokens=9))

    talk = talk_to(ask_three, ledger).call().answer(page={"action": "accept"}).answer(roots={"roots": []})
    talk.answer(model={"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"})
    assert summaries(ledger) == [
        (1, {"page": "Please sign in"}, {}),
        (2, {"roots": "roots/list"}, {"page": "accept"}),
        (3, {"model": "sampling/createMessage"}, {"roots": "answer"}),
        (4, {}, {"model": "answer"}),
    ]


@pytest.mark.parametrize("ask", [ask_model, ask_for_roots])
def test_a_function_that_asks_only_the_client_has_records(ask: Handler[..., Any], ledger: list[AuditRecord]) -> None:
    talk_to(ask, ledger).call()
    assert len(ledger) == 1


# A record says how each question was answered.


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_record_names_the_action_of_the_user(ledger: list[AuditRecord], action: str) -> None:
    talk_to(transfer, ledger).call(euros=7).answer(payee={"action": action})
    assert ledger[1].answered == {"payee": action}


def test_a_declined_question_of_a_prompt_is_recorded_though_it_is_an_error(ledger: list[AuditRecord]) -> None:
    @prompt
    def brief(*, elicit: Elicit) -> str:
        return elicit("audience", "For whom?", str)

    assert talk_to(brief, ledger).get().decline().error["code"] == -32602
    assert ledger[1].answered == {"audience": "decline"}


@pytest.mark.parametrize("response", [{"action": "accept", "content": {}}, {"action": "perhaps"}])
def test_a_record_distinguishes_an_invalid_answer(ledger: list[AuditRecord], response: dict[str, object]) -> None:
    talk = talk_to(transfer, ledger).call(euros=7).answer(payee=response)
    assert summaries(ledger)[1] == (2, talk.messages, {"payee": "invalid"})
    assert "Please answer again" in ledger[1].asked["payee"]


def test_a_record_omits_an_answer_before_its_question(ledger: list[AuditRecord]) -> None:
    talk_to(transfer, ledger).call(euros=7).answer(consent={"action": "accept", "content": {"consent": True}})
    assert ledger[1].answered == {}


def test_a_record_omits_a_second_answer(ledger: list[AuditRecord]) -> None:
    talk_to(transfer, ledger).call(euros=7).accept(payee="Ann").accept(payee="Eve", consent=True)
    assert ledger[2].answered == {"consent": "accept"}


def test_a_record_never_has_the_content_of_an_answer(ledger: list[AuditRecord]) -> None:
    @tool
    def greet(*, elicit: Elicit) -> str:
        return elicit("name", "Who?", str)

    assert talk_to(greet, ledger).call().accept(name="a secret name").text == "a secret name"
    assert "secret" not in str(ledger)


# Some rounds are recorded, others are not.


def test_a_repeated_round_is_recorded_again_with_the_same_flow_and_number(ledger: list[AuditRecord]) -> None:
    talk_to(transfer, ledger).call(euros=7).accept(payee="Ann").retry()
    assert ledger[1] == ledger[2]


def test_a_question_that_the_client_cannot_show_is_not_recorded(ledger: list[AuditRecord]) -> None:
    talk = Conversation(serve(transfer, audit=ledger.append), capabilities={}).call(euros=7)
    assert talk.result["isError"]
    assert summaries(ledger) == [(1, {}, {})]


def test_functions_that_never_ask_make_no_records(ledger: list[AuditRecord]) -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    talk_to(add, ledger).call(a=1, b=2)
    assert ledger == []


def test_the_round_of_a_function_that_crashes_is_recorded(ledger: list[AuditRecord]) -> None:
    @tool
    def crash(*, elicit: Elicit) -> str:
        message = elicit("name", "Who?", str)
        raise LookupError(message)

    assert talk_to(crash, ledger).call().accept(name="Ann").raised
    assert summaries(ledger)[1] == (2, {}, {"name": "accept"})


def test_a_question_whose_record_fails_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    def write_record(_record: AuditRecord) -> None:
        message = "the ledger is full of secrets"
        raise OSError(message)

    talk = Conversation(serve(transfer, audit=write_record)).call(euros=7)
    assert talk.error["message"] == "Internal error"
    assert "requestState" not in str(talk.body)
    assert "secrets" not in caplog.text
