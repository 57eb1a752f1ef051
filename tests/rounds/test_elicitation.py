"""Questions inside a function: their forms, the answers to them, and whom they ask.

A tool asks with `elicit(key, message, form)`, in the middle of its code. The call ends the request, and the client's
next request brings the answer. `talk_to(tool)` is that client: `accept(name="Ann")`, `decline()` and `cancel()` answer
as a user does, and `answer(…)` sends any responses. Rules for authors are in test_question_rules.py.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, field_validator

from mcp_functions import (
    Ask,
    Cancelled,
    Declined,
    Elicit,
    ListRoots,
    NotAnswered,
    Question,
    RootsQuestion,
    Sample,
    SampleQuestion,
    serve,
    tool,
)
from mcp_functions.annotated import Between, Titles
from mcp_functions.protocol.errors import InputRequired
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from mcp_functions.handlers.base import Handler
    from mcp_functions.low_level import InputRequest
    from tests.rounds.conftest import AuthorError

DECLINED = {"action": "decline"}
ROOTS = {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "b"}]}
MODEL_MESSAGE = {"role": "assistant", "content": {"type": "text", "text": "sunny"}, "model": "m"}


def accepted(**content: object) -> dict[str, Any]:
    return {"action": "accept", "content": content}


class Name(BaseModel):
    name: str


class Trip(BaseModel):
    city: str = Field(min_length=2)
    month: Literal["May", "June"] = "May"
    at: date | None = None


@tool
def plan(*, elicit: Elicit) -> str:
    """Plan a trip."""
    trip = elicit("trip", "Where to?", Trip)
    return f"{trip.city} in {trip.month}"


# A form is a type, and the answer has this type.


class Meal(StrEnum):
    FISH = "fish"
    BEANS = "beans"


@dataclass
class Guest:
    name: str
    nights: Annotated[int, Between(1, 7)] = 1

    def __post_init__(self) -> None:
        if self.name == "nobody":
            message = "nobody cannot come"
            raise ValueError(message)


class Room(TypedDict):
    beds: int


Seat = Literal["window", "aisle"]


@pytest.mark.parametrize(
    ("form", "content", "answer"),
    [
        (bool, {"it": False}, False),
        (str, {"it": "Ann"}, "Ann"),
        (int, {"it": 7}, 7),
        (float, {"it": 7}, 7.0),
        (Seat, {"it": "aisle"}, "aisle"),
        (Meal, {"it": "beans"}, Meal.BEANS),
        (list[Meal], {"it": ["beans", "fish"]}, [Meal.BEANS, Meal.FISH]),
        (date, {"it": "2026-07-28"}, date(2026, 7, 28)),
        (str | None, {}, None),
        (Guest, {"name": "Ann"}, Guest("Ann", 1)),
        (Room, {"beds": 2}, {"beds": 2}),
        (Trip, {"city": "Lisbon", "at": "2027-01-02"}, Trip(city="Lisbon", at=date(2027, 1, 2))),
    ],
    ids=str,
)
def test_an_answer_has_the_type_of_its_form(form: Any, content: dict[str, Any], answer: object) -> None:  # noqa: ANN401
    @tool
    def ask(*, elicit: Elicit) -> str:
        inline = elicit("it", "It?", form)
        outcome = elicit.outcome("it", "It?", form)
        (together,) = elicit.together(Question("It?", form, key="it"))
        return repr([inline, outcome, together])

    assert talk_to(ask).call().accept(it=content).text == repr([answer] * 3)


@pytest.mark.parametrize(
    ("form", "content", "reason"),
    [
        (bool, {"it": "yes"}, "it must be a boolean"),
        (int, {"it": 1.5}, "it must be an integer"),
        (Seat, {"it": "roof"}, 'it must be one of "window", "aisle"'),
        (Seat, {}, "it is missing"),
        (Meal, {"it": "meat"}, 'it must be one of "fish", "beans"'),
        (Guest, {"name": "Ann", "nights": 8}, "nights must be at most 7"),
        (Guest, {"name": "nobody"}, "nobody cannot come"),
        (Guest, {"nights": 2}, "name is missing"),
        (Room, {"beds": "two"}, "beds must be an integer"),
        (Trip, {"city": "X"}, "city must have at least 2 characters"),
        (Trip, {"city": "Lisbon", "month": "July"}, 'month must be one of "May", "June"'),
        (Trip, {"city": 7}, "city must be a string"),
        (Trip, {"month": "May"}, "city is missing"),
        (Trip, ["Lisbon"], "the form came back without content"),
        (Trip, None, "the form came back without content"),
    ],
)
def test_a_question_with_an_invalid_answer_is_asked_again_with_the_reason(
    form: Any,  # noqa: ANN401 - any type that a form may be
    content: object,
    reason: str,
) -> None:
    @tool
    def ask(*, elicit: Elicit) -> str:
        return repr(elicit("it", "It?", form))

    talk = talk_to(ask).call().answer(it={"action": "accept", "content": content})
    assert talk.messages == {"it": f"It? (Please answer again: {reason}.)"}


@pytest.mark.parametrize(
    ("key", "camel_case", "name"),
    [("write_off", False, "write_off"), ("write_off", True, "writeOff"), ("guest no. 1", False, "guest_no_1")],
)
def test_a_form_of_one_value_has_a_property_named_by_its_key(key: str, name: str, *, camel_case: bool) -> None:
    @tool(camel_case=camel_case)
    def ask(*, elicit: Elicit) -> str:
        return repr(elicit(key, "Sure?", bool))

    talk = talk_to(ask).call()
    assert talk.requests[key]["params"]["requestedSchema"] == {
        "type": "object",
        "properties": {name: {"type": "boolean"}},
        "required": [name],
    }
    assert talk.accept(**{key: True}).text == "True"


# An answer counts if it is valid, and if the question was asked.


@pytest.mark.parametrize("response", [{}, {"action": "perhaps"}, {"action": None}, {"content": {"city": "Lisbon"}}])
def test_a_question_with_an_unknown_action_is_asked_again(response: dict[str, Any]) -> None:
    talk = talk_to(plan).call().answer(trip=response)
    assert talk.messages["trip"].endswith("(Please answer again: the answer was not accept, decline or cancel.)")


def test_the_reason_never_quotes_the_answer() -> None:
    talk = talk_to(plan).call().accept(trip={"city": "Lisbon", "month": "hunter2"})
    assert "hunter2" not in talk.messages["trip"]


def test_a_valid_answer_counts_after_invalid_ones() -> None:
    talk = talk_to(plan).call()
    for _ in range(4):
        talk.accept(trip={})
    assert talk.messages["trip"].count("again") == 1
    assert talk.accept(trip={"city": "Lisbon"}).text == "Lisbon in May"


def test_a_validator_of_the_author_may_reject_an_answer() -> None:
    class EvenNumber(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def check_even(cls, number: int) -> int:
            if number % 2:
                message = "must be even"
                raise ValueError(message)
            return number

    @tool
    def ask(*, elicit: Elicit) -> int:
        return elicit("number", "An even number?", EvenNumber).number

    talk = talk_to(ask).call().accept(number=3)
    assert talk.messages == {"number": "An even number? (Please answer again: number must be even.)"}
    assert talk.accept(number=4).text == "4"


def test_an_exception_of_a_validator_is_raised_even_if_it_is_false() -> None:
    class NoLuckError(Exception):
        def __bool__(self) -> bool:
            return False

    class LuckyNumber(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def check_luck(cls, _number: int) -> int:
            raise NoLuckError

    @tool
    def ask(*, elicit: Elicit) -> str:
        return str(elicit("number", "A lucky number?", LuckyNumber))

    assert talk_to(ask).call().accept(number=3).text == "The tool ask failed unexpectedly. The server's log says why."


@tool
def ask_two_names(*, elicit: Elicit) -> str:
    """Ask for a name, and for another."""
    first = elicit("first", "First?", Name).name
    second = elicit("second", f"After {first}?", Name).name
    return f"{first} and {second}"


def test_fields_that_the_form_lacks_are_not_stored() -> None:
    small = talk_to(ask_two_names).call().accept(first={"name": "Ann"})
    large = talk_to(ask_two_names).call().accept(first={"name": "Ann", "more": "x" * 50_000})
    assert abs(len(large.state) - len(small.state)) < 8
    assert large.accept(second="Bob").text == "Ann and Bob"


def test_an_answer_does_not_count_before_its_question_was_asked() -> None:
    talk = talk_to(ask_two_names).call()
    talk.answer(first=accepted(name="Ann"), second=accepted(name="too early"))
    assert talk.messages == {"second": "After Ann?"}


def test_a_later_answer_does_not_replace_an_earlier_one() -> None:
    talk = talk_to(ask_two_names).call().accept(first="Ann")
    talk.answer(first=accepted(name="too late"), second=accepted(name="Bob"))
    assert talk.text == "Ann and Bob"


# A user may decline a question, or cancel it.


def test_decline_and_cancel_raise_different_exceptions() -> None:
    @tool
    def rename(*, elicit: Elicit) -> str:
        try:
            return elicit("name", "Which name?", str)
        except Declined as declined:
            return f"declined {declined.key}"
        except Cancelled as cancelled:
            return f"cancelled {cancelled.key}"

    assert talk_to(rename).call().decline().text == "declined name"
    assert talk_to(rename).call().cancel().text == "cancelled name"


def test_one_except_clause_may_handle_both() -> None:
    @tool
    def rename(*, elicit: Elicit) -> str:
        try:
            return elicit("name", "Which name?", str)
        except NotAnswered as error:
            return f"no answer to {error.key}"

    assert talk_to(rename).call().decline().text == "no answer to name"
    assert talk_to(rename).call().cancel().text == "no answer to name"


def test_an_author_may_match_on_an_outcome() -> None:
    @tool
    def rename(*, elicit: Elicit) -> str:
        match elicit.outcome("name", "Which name?", Name):
            case Declined():
                return "declined"
            case Cancelled():
                return "cancelled"
            case answer:
                return answer.name

    assert talk_to(rename).call().accept(name="Ann").text == "Ann"
    assert talk_to(rename).call().decline().text == "declined"
    assert talk_to(rename).call().cancel().text == "cancelled"


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("decline", "The user declined to answer: Where to?"),
        ("cancel", "The user dismissed without answering: Where to?"),
    ],
)
def test_without_an_except_clause_the_model_reads_the_action_of_the_user(action: str, text: str) -> None:
    talk = talk_to(plan).call().answer(trip={"action": action})
    assert talk.result["isError"]
    assert talk.text == text


def test_an_empty_response_neither_declines_nor_cancels() -> None:
    assert talk_to(plan).call().answer().asked == ["trip"]


def test_a_declined_question_stays_declined() -> None:
    @tool
    def ask(*, elicit: Elicit) -> str:
        first = elicit.outcome("first", "First?", bool)
        second = elicit("second", "Second?", bool)
        return f"{type(first).__name__} {second}"

    talk = talk_to(ask).call().decline()
    assert talk.answer(first=accepted(first=True)).asked == ["second"]
    assert talk.accept(second=True).text == "Declined True"


# `elicit.together` asks several questions in one round.


@tool
def ask_four(*, elicit: Elicit) -> str:
    """Ask the user twice, and the client and its model once."""
    name, agreed, roots, message = elicit.together(
        Question("Who?", str, key="name"),
        Question("Agreed?", bool, key="agreed"),
        RootsQuestion(key="roots"),
        SampleQuestion("How is the weather?", 20, key="weather"),
    )
    return f"{name} {agreed} {len(roots)} {message['content']['text']}"


def test_several_things_are_asked_in_one_round() -> None:
    talk = talk_to(ask_four).call()
    assert talk.asked == ["name", "agreed", "roots", "weather"]
    talk.answer(name=accepted(name="Ann"), agreed=accepted(agreed=True), roots=ROOTS, weather=MODEL_MESSAGE)
    assert talk.text == "Ann True 2 sunny"


def test_only_the_unanswered_questions_are_asked_again() -> None:
    talk = talk_to(ask_four).call().answer(weather=MODEL_MESSAGE, agreed=accepted(agreed="perhaps"))
    assert talk.asked == ["name", "agreed", "roots"]
    assert "Please answer again" in talk.messages["agreed"]
    assert talk.answer(roots=ROOTS).asked == ["name", "agreed"]
    assert talk.accept(name="Ann", agreed=True).text == "Ann True 2 sunny"


def test_a_declined_question_raises_after_the_other_questions_are_answered() -> None:
    talk = talk_to(ask_four).call().answer(name=DECLINED, weather=MODEL_MESSAGE)
    assert talk.asked == ["agreed", "roots"]
    talk.answer(agreed={"action": "cancel"}, roots=ROOTS)
    assert talk.text == "The user declined to answer: Who?"  # the first of them in the author's order


@tool
def invite(count: int, *, elicit: Elicit) -> list[str]:
    """Ask for the names of some guests."""
    questions = [Question("Who?", Name, key=f"guest-{number}") for number in range(count)]
    return [guest.name for guest in elicit.together(*questions)]


def test_an_author_may_ask_many_questions_together() -> None:
    talk = talk_to(invite).call(count=7)
    assert len(talk.asked) == 7
    talk.accept(**dict.fromkeys(talk.asked, "Ann"))
    assert talk.result["structuredContent"] == ["Ann"] * 7


def test_a_page_may_be_asked_for_together_with_a_form() -> None:
    @tool
    def book(*, elicit: Elicit) -> str:
        page, name = elicit.together(
            Question.url("Sign in", "https://forge.example", key="login"), Question("Who?", str, key="name")
        )
        return f"{name}, signed in: {page}"

    talk = talk_to(book).call()
    assert talk.asked == ["login", "name"]
    assert talk.requests["login"]["params"]["url"] == "https://forge.example"
    talk.answer(login={"action": "accept"}, name=accepted(name="Ann"))
    assert talk.text == "Ann, signed in: None"


@pytest.mark.parametrize("question", [Question("Who?", str), SampleQuestion("Who?", 20), RootsQuestion()])
def test_a_question_that_is_asked_together_needs_a_key(question: InputRequest[Any], author_error: AuthorError) -> None:
    @tool
    def ask(*, elicit: Elicit) -> str:
        return str(elicit.together(Question("Agreed?", bool, key="agreed"), question))

    rule = 'a question of elicit.together needs a key: Question("Where to?", City, key="where")'
    assert author_error(talk_to(ask).call()) == rule


def test_a_question_with_its_key_first_gets_an_error_that_shows_the_order(author_error: AuthorError) -> None:
    @tool
    def ask(*, elicit: Elicit) -> str:
        return str(elicit.together(Question("who", "Who?", str)))  # type: ignore[arg-type]

    rule = 'a Question has the message first, and the key last: Question("Where to?", City, key="where")'
    assert author_error(talk_to(ask).call()) == rule


def test_a_question_to_the_model_with_its_key_first_gets_an_error_that_shows_the_order(
    author_error: AuthorError,
) -> None:
    @tool
    def ask(*, elicit: Elicit) -> str:
        return str(elicit.together(SampleQuestion("said", SampleQuestion("Hi", 20))))  # type: ignore[arg-type]

    rule = 'a SampleQuestion has the messages first: SampleQuestion("Summarise …", 200, key="summary")'
    assert author_error(talk_to(ask).call()) == rule


def test_no_questions_together_need_no_round() -> None:
    assert talk_to(invite).call(count=0).result["structuredContent"] == []


# A question in the signature is asked before the function begins.


def test_questions_of_the_signature_come_first_and_together() -> None:
    runs = Counter[str]()

    @tool
    def close(
        bug: int, *, how: Annotated[str, Ask("How was {bug} closed?")], sure: Annotated[bool, Ask("Sure?")]
    ) -> str:
        runs["close"] += 1
        return f"{bug} {how} {sure}"

    talk = talk_to(close).call(bug=7)
    assert talk.messages == {"how": "How was 7 closed?", "sure": "Sure?"}
    assert talk.accept(sure=True).messages == {"how": "How was 7 closed?"}
    assert runs == {}
    assert talk.accept(how="by hand").text == "7 by hand True"
    assert runs == {"close": 1}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_question_of_the_signature_that_may_be_none_may_be_declined(action: str) -> None:
    @tool
    def close(*, how: Annotated[str | None, Ask("How?")], sure: Annotated[bool, Ask("Sure?")]) -> str:
        return f"{how} {sure}"

    talk = talk_to(close).call().answer(how={"action": action}, sure=accepted(sure=True))
    assert talk.text == "None True"


def test_another_question_of_the_signature_ends_the_call_if_it_is_declined() -> None:
    @tool
    def close(*, sure: Annotated[bool, Ask("Sure?")]) -> str:
        return f"closed: {sure}"

    assert talk_to(close).call().decline().text == "The user declined to answer: Sure?"


def test_a_question_of_the_signature_may_have_titles_and_a_description() -> None:
    @tool
    def sit(
        *, seat: Annotated[Seat, Titles("At the window", "At the aisle"), "For the whole flight", Ask("Where?")]
    ) -> str:
        return seat

    talk = talk_to(sit).call()
    assert talk.requests["seat"]["params"]["requestedSchema"]["properties"]["seat"] == {
        "type": "string",
        "oneOf": [{"const": "window", "title": "At the window"}, {"const": "aisle", "title": "At the aisle"}],
        "description": "For the whole flight",
    }
    assert talk.accept(seat="aisle").text == "aisle"


# `elicit.url` asks the user to open a page.


def test_a_page_is_asked_for_until_its_author_accepts_the_outcome() -> None:
    signed_in: list[str] = []

    @tool
    def list_repositories(*, elicit: Elicit) -> str:
        while not signed_in:
            elicit.url("sign-in", "Please sign in", "https://forge.example/login")
        return "3 repositories"

    talk = talk_to(list_repositories).call()
    opened = {"sign-in": {"action": "accept"}}
    for _ in range(3):
        assert talk.answer(**opened).asked == ["sign-in"]
    signed_in.append("Ann")
    assert talk.answer(**opened).text == "3 repositories"


@tool
def agree(*, elicit: Elicit) -> str:
    """Show the terms, and ask."""
    elicit.url("terms", "Please read this", "https://example.com/terms")
    return str(elicit("agreed", "Do you agree?", bool))


def test_a_page_is_a_request_with_a_message_and_a_url() -> None:
    params = {"mode": "url", "message": "Please read this", "url": "https://example.com/terms"}
    assert talk_to(agree).call().requests["terms"]["params"] == params


def test_a_page_that_was_opened_is_not_asked_for_again() -> None:
    talk = talk_to(agree).call().answer(terms={"action": "accept"})
    assert talk.asked == ["agreed"]
    assert talk.answer().asked == ["agreed"]
    assert talk.accept(agreed=True).text == "True"


def test_a_page_that_is_opened_again_comes_after_the_questions_before_it() -> None:
    @tool
    def connect(*, elicit: Elicit) -> None:
        elicit.url("login", "Sign in", "https://example.com/login")
        with suppress(InputRequired):  # as another thread or task would go on
            elicit("account", "Which account?", str)
        elicit.url("login", "Sign in", "https://example.com/login")

    assert talk_to(connect).call().answer(login={"action": "accept"}).asked == ["account", "login"]


def test_a_page_may_be_declined() -> None:
    assert talk_to(agree).call().decline().text == "The user declined to answer: Please read this"


# `list_roots` asks the client for its folders, and `sample` its model.


@tool
def describe(*, sample: Sample, list_roots: ListRoots) -> str:
    """Describe folders."""
    folders = [root["uri"] for root in list_roots()]
    message = sample("model", "Describe them", max_tokens=9, temperature=0.5)
    return f"{folders} {message['content']['text']}"


def test_the_client_and_its_model_are_asked_like_a_user() -> None:
    talk = talk_to(describe).call()
    assert talk.requests == {"roots": {"method": "roots/list", "params": {}}}
    talk.answer(roots=ROOTS)
    message = {"role": "user", "content": {"type": "text", "text": "Describe them"}}
    assert talk.requests["model"]["params"] == {"messages": [message], "temperature": 0.5, "maxTokens": 9}
    assert talk.answer(model=MODEL_MESSAGE).text == "['file:///a', 'file:///b'] sunny"


@pytest.mark.parametrize(
    "response", [{}, {"roots": {}}, {"roots": [{}]}, {"roots": ["file:///a"]}, {"action": "accept"}]
)
def test_a_malformed_list_of_roots_is_asked_for_again(response: dict[str, Any]) -> None:
    talk = talk_to(describe).call().answer(roots=response)
    assert talk.asked == ["roots"]
    assert talk.answer(roots=ROOTS).asked == ["model"]


@pytest.mark.parametrize("response", [{}, {"role": "system"}, {**MODEL_MESSAGE, "content": "sunny"}, DECLINED])
def test_a_malformed_message_of_the_model_is_asked_for_again(response: dict[str, Any]) -> None:
    talk = talk_to(describe).call().answer(roots=ROOTS)
    assert talk.answer(model=response).asked == ["model"]
    assert talk.answer(model=MODEL_MESSAGE).done


def test_changing_an_answer_of_the_client_changes_no_record() -> None:
    readings: list[str] = []

    @tool
    def change(*, list_roots: ListRoots, sample: Sample, elicit: Elicit) -> str:
        for _ in range(2):
            roots = list_roots()
            message = sample("weather", "How is the weather?", max_tokens=20)
            readings.append(f"{roots} {message}")
            roots.pop()["uri"] = "file:///changed"
            message["content"]["text"] = "changed"
        return str(elicit("ok", "Ok?", bool))

    talk_to(change).call().answer(roots=ROOTS).answer(weather=MODEL_MESSAGE).accept(ok=True)
    assert readings == [f"{ROOTS['roots']} {MODEL_MESSAGE}"] * 4


@pytest.mark.parametrize(
    ("capabilities", "possible"),
    [
        ({}, []),
        ({"elicitation": {}}, ["form"]),
        ({"elicitation": {"url": {}}}, ["url"]),
        ({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}, ["form", "url", "sample", "roots"]),
    ],
)
def test_an_author_may_read_what_the_client_can_be_asked(capabilities: dict[str, Any], possible: list[str]) -> None:
    @tool
    def list_possible(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> list[str]:
        flags = {
            "form": elicit.possible,
            "url": elicit.url_possible,
            "sample": sample.possible,
            "roots": list_roots.possible,
        }
        return [name for name, flag in flags.items() if flag]

    result = talk_to(list_possible, capabilities=capabilities).call().result
    assert result["structuredContent"] == possible


# A new version of a function reads the answers that an old one received.


def greet_version(form: type[Name]) -> Handler[..., Any]:
    """Make a version of a tool that asks for a name with this form, and then for consent."""

    @tool
    def greet(*, elicit: Elicit) -> str:
        name = elicit("name", "Who?", form).name
        elicit("sure", "Sure?", bool)
        return f"Hello, {name}!"

    return greet


def test_a_version_that_never_asks_refuses_a_state() -> None:
    @tool
    def greet() -> str:
        return "Hello!"

    talk = talk_to(greet_version(Name)).call().upgrade(serve(greet)).accept(name="Ann")
    assert talk.status == 400
    assert talk.error["code"] == -32602


def test_a_new_form_makes_a_new_question() -> None:
    class FullName(Name):
        surname: str

    talk = talk_to(greet_version(Name)).call().accept(name="Ann")
    assert talk.upgrade(serve(greet_version(FullName))).accept(sure=True).asked == ["name"]
    assert talk.accept(name={"name": "Ann", "surname": "Lee"}).text == "Hello, Ann!"


def test_a_stricter_validator_asks_again_for_an_answer_that_it_rejects() -> None:
    class KnownName(Name):
        @field_validator("name")
        @classmethod
        def check_known(cls, name: str) -> str:
            if name == "Ann":
                message = "must be somebody else"
                raise ValueError(message)
            return name

    talk = talk_to(greet_version(Name)).call().accept(name="Ann")
    talk.upgrade(serve(greet_version(KnownName))).accept(sure=True)
    assert talk.messages == {"name": "Who? (Please answer again: name must be somebody else.)"}
    assert talk.accept(name="Bob").text == "Hello, Bob!"
