"""The audit hook: what each round asked of whom, and how it was answered, for an author to write down."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_functions import AuditRecord, Elicit, ListRoots, Question, Sample, prompt, serve, tool
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.binding import principal_digest
from mcp_functions.testing import Conversation


class Name(BaseModel):
    name: str


class Ok(BaseModel):
    ok: bool


YES = {"ok": True}


class Ledger(list[AuditRecord]):
    """The records that an author's audit function received."""

    def write(self, record: AuditRecord) -> None:
        self.append(record)

    @property
    def told(self) -> list[tuple[int, dict[str, str], dict[str, str]]]:
        return [(record.round, dict(record.asked), dict(record.answered)) for record in self]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@tool
def transfer(euros: int, *, elicit: Elicit) -> str:
    """Send money."""
    to = elicit("to", "To whom?", Name).name
    return f"{euros} to {to}: {elicit('consent', f'Send {euros} EUR to {to}?', Ok).ok}"


def test_each_rounds_record_names_its_questions_and_the_previous_answers(ledger: Ledger) -> None:
    talk = Conversation(serve(transfer, audit=ledger.write)).call(euros=7)
    assert talk.accept(to={"name": "Ann"}).accept(consent=YES).text == "7 to Ann: True"
    assert ledger.told == [
        (1, {"to": "To whom?"}, {}),
        (2, {"consent": "Send 7 EUR to Ann?"}, {"to": "accept"}),
        (3, {}, {"consent": "accept"}),
    ]
    assert {record.handler for record in ledger} == {"transfer"}
    assert len({record.flow for record in ledger}) == 1
    assert {record.principal for record in ledger} == {None}


def test_every_conversation_has_another_flow(ledger: Ledger) -> None:
    function = serve(transfer, audit=ledger.write)
    for _ in range(2):
        Conversation(function).call(euros=7)
    assert len({record.flow for record in ledger}) == 2


def test_a_record_names_the_caller_by_the_digest_in_the_state(ledger: Ledger) -> None:
    alice = Principal("https://issuer.example", "alice", "client")
    Conversation(serve(transfer, audit=ledger.write), principal=alice).call(euros=7)
    assert ledger[0].principal == principal_digest(alice)
    assert "alice" not in str(ledger)


def test_a_declined_question_is_recorded_even_where_it_is_an_error(ledger: Ledger) -> None:
    @prompt
    def brief(*, elicit: Elicit) -> str:
        return elicit("audience", "For whom?", Name).name

    assert Conversation(serve(brief, audit=ledger.write)).get().decline().error["code"] == -32602
    Conversation(serve(transfer, audit=ledger.write)).call(euros=7).cancel()
    assert ledger.told == [
        (1, {"audience": "For whom?"}, {}),
        (2, {}, {"audience": "decline"}),
        (1, {"to": "To whom?"}, {}),
        (2, {}, {"to": "cancel"}),
    ]


def test_a_record_distinguishes_an_invalid_answer_from_a_valid_one(ledger: Ledger) -> None:
    talk = Conversation(serve(transfer, audit=ledger.write)).call(euros=7).accept(to={})
    assert ledger.told[1] == (2, talk.messages, {"to": "invalid"})
    assert "Please answer again" in ledger[1].asked["to"]
    talk.answer(to={"action": "perhaps"})
    assert ledger.told[2][2] == {"to": "invalid"}


def test_a_record_omits_answers_that_do_not_count(ledger: Ledger) -> None:
    talk = Conversation(serve(transfer, audit=ledger.write)).call(euros=7)
    talk.answer(consent={"action": "accept", "content": YES})
    talk.accept(to={"name": "Ann"}).accept(to={"name": "Eve"}, consent=YES)
    assert [answered for _round, _asked, answered in ledger.told] == [{}, {}, {"to": "accept"}, {"consent": "accept"}]


def test_a_record_never_holds_the_content_of_an_answer(ledger: Ledger) -> None:
    talk = Conversation(serve(transfer, audit=ledger.write)).call(euros=7)
    talk.accept(to={"name": "a well-kept name", "more": "a secret"}).decline()
    told = str([(record.answered, record.flow, record.handler) for record in ledger])
    assert "well-kept" not in told
    assert "secret" not in str(ledger)


def test_a_repeated_round_is_recorded_again_with_the_same_flow_and_number(ledger: Ledger) -> None:
    Conversation(serve(transfer, audit=ledger.write)).call(euros=7).accept(to={"name": "Ann"}).retry()
    assert ledger[1] == ledger[2]


def test_questions_to_models_clients_and_pages_are_recorded_too(ledger: Ledger) -> None:
    @tool
    def various(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> str:
        elicit.url("page", "Please sign in", "https://example.com/")
        list_roots()
        return str(sample("said", "Well?", max_tokens=9)["content"]["text"])

    talk = Conversation(serve(various, audit=ledger.write)).call()
    talk.answer(page={"action": "accept"}).answer(roots={"roots": []})
    talk.answer(said={"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"})
    assert ledger.told == [
        (1, {"page": "Please sign in"}, {}),
        (2, {"roots": "roots/list"}, {"page": "accept"}),
        (3, {"said": "sampling/createMessage"}, {"roots": "answer"}),
        (4, {}, {"said": "answer"}),
    ]


def test_a_question_that_is_not_sent_is_not_recorded(ledger: Ledger) -> None:
    assert Conversation(serve(transfer, audit=ledger.write), capabilities={}).call(euros=7).result["isError"] is True
    assert ledger.told == [(1, {}, {})]


def test_functions_that_never_ask_make_no_records(ledger: Ledger) -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    Conversation(serve(add, audit=ledger.write)).call(a=1, b=2)
    assert ledger == []


def test_a_failed_function_is_recorded_with_its_answers(ledger: Ledger) -> None:
    @tool
    def breaks(*, elicit: Elicit) -> str:
        message = elicit("name", "Who?", Name).name
        raise LookupError(message)

    assert Conversation(serve(breaks, audit=ledger.write)).call().accept(name={"name": "Ann"}).raised
    assert ledger.told[1] == (2, {}, {"name": "accept"})


def test_a_question_whose_record_fails_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    def full(_record: AuditRecord) -> None:
        message = "the ledger is full of secrets"
        raise OSError(message)

    talk = Conversation(serve(transfer, audit=full)).call(euros=7)
    assert (talk.status, talk.error["message"]) == (200, "Internal error")
    assert "requestState" not in talk.body
    assert "secrets" not in caplog.text


def test_several_questions_of_one_round_are_one_record(ledger: Ledger) -> None:
    @tool
    async def several(*, elicit: Elicit) -> str:
        await asyncio.sleep(0)
        found: tuple[Any, ...] = elicit.together(Question("a", "A?", Ok), Question("b", "B?", Ok))
        return str(len(found))

    talk = Conversation(serve(several, audit=ledger.write)).call()
    talk.answer(b={"action": "accept", "content": YES}).accept(a=YES)
    assert ledger.told == [
        (1, {"a": "A?", "b": "B?"}, {}),
        (2, {"a": "A?"}, {"b": "accept"}),
        (3, {}, {"a": "accept"}),
    ]
