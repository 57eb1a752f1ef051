"""Asking inline: every kind of question, every kind of answer, and what an author may not do."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from threading import Barrier, BrokenBarrierError
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict
from uuid import uuid4

import pytest
from pydantic import BaseModel, Field, field_validator

from mcp_functions import (
    Ask,
    Between,
    Cancelled,
    CreateMessageRequest,
    Declined,
    Elicit,
    ElicitRequest,
    InputRequiredResult,
    InputResponses,
    ListRoots,
    NotAnswered,
    Question,
    RootsQuestion,
    Sample,
    SampleQuestion,
    Step,
    Titles,
    ToolError,
    prompt,
    resource,
    serve,
    tool,
)
from mcp_functions.protocol.errors import InputRequired
from mcp_functions.rounds.questions import MAX_MESSAGE_CHANGES
from mcp_functions.testing import Conversation
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.base import Handler


class Name(BaseModel):
    name: str


class Ok(BaseModel):
    ok: bool


class Trip(BaseModel):
    city: str = Field(min_length=2)
    month: Literal["May", "June"] = "May"


ANN, YES, NO = {"name": "Ann"}, {"ok": True}, {"ok": False}
SAID = {"role": "assistant", "content": {"type": "text", "text": "sunny"}, "model": "m"}
ROOTS = {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "b"}]}


# Questions that break a rule.


def test_an_author_who_swaps_form_and_message_gets_an_error_that_explains_forms(
    author_error: Callable[[Conversation], str],
) -> None:
    @tool
    def swapped(*, elicit: Elicit) -> str:
        return elicit("guest", Name, "Who?").name  # type: ignore[arg-type]

    assert author_error(talk_to(swapped).call()).startswith(
        "guest: a form is a dataclass, a TypedDict, a pydantic model"
    )


def test_two_questions_under_one_key_are_refused_by_name(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def forgetful(*, elicit: Elicit) -> list[str]:
        return [elicit("guest", f"Who is guest {n}?", Name).name for n in range(3)]

    talk = talk_to(forgetful).call().accept(guest=ANN)
    assert author_error(talk) == "two different questions under the key 'guest': give each question a key of its own"


def test_one_question_with_two_forms_is_two_questions(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def forgetful(*, elicit: Elicit) -> str:
        return elicit("it", "Well?", Name).name + str(elicit("it", "Well?", Ok).ok)

    assert "two different questions under the key 'it'" in author_error(talk_to(forgetful).call().accept(it=ANN))


def test_two_questions_with_one_key_in_one_call_are_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def forgetful(*, elicit: Elicit) -> str:
        return str(elicit.together(Question("it", "Who?", Name), Question("it", "Where?", Name)))

    assert "two different questions under the key 'it'" in author_error(talk_to(forgetful).call())


def test_a_declared_question_and_an_inline_question_may_not_have_the_same_key(
    author_error: Callable[[Conversation], str],
) -> None:
    @tool
    def forgetful(*, it: Annotated[Name, Ask("Who?")], elicit: Elicit) -> str:
        return it.name + elicit("it", "Who else?", Name).name

    assert "two different questions under the key 'it'" in author_error(talk_to(forgetful).call().accept(it=ANN))


def test_a_question_that_changes_in_every_round_is_refused_by_name(author_error: Callable[[Conversation], str]) -> None:
    clock = Counter[str]()

    @tool
    def ticking(*, elicit: Elicit) -> str:
        clock["it"] += 1
        return elicit("consent", f"It is 12:0{clock['it']}. Go on?", Ok).model_dump_json()

    talk = talk_to(ticking).call()
    for _ in range(MAX_MESSAGE_CHANGES):
        assert talk.accept(consent=YES).asked == ["consent"]
    assert author_error(talk.accept(consent=YES)) == (
        "the question 'consent' says something else in every round, so no answer ever belongs to it: "
        "make its message from the arguments and from recorded values (step, step.now()), not from a clock"
    )


@pytest.mark.parametrize("place", ["alone", "in a step", "after an answer", "in a task of its own"])
def test_a_signal_that_the_function_raises_itself_is_a_crash(place: str, caplog: pytest.LogCaptureFixture) -> None:
    def raise_signal() -> str:
        raise InputRequired

    def alone() -> str:
        return raise_signal()

    def behind_a_step(*, step: Step) -> str:
        return step("raise", raise_signal)

    def behind_an_answer(*, elicit: Elicit) -> str:
        elicit("name", "Who?", Name)
        return raise_signal()

    async def behind_an_await(*, step: Step) -> str:
        return await asyncio.ensure_future(asyncio.to_thread(step, "raise", raise_signal))

    functions: dict[str, Callable[..., Any]] = {
        "alone": alone,
        "in a step": behind_a_step,
        "after an answer": behind_an_answer,
        "in a task of its own": behind_an_await,
    }
    talk = talk_to(tool(name="raising")(functions[place])).call()
    if not talk.done:
        talk.accept(name=ANN)
    assert isinstance(talk.raised, InputRequired)
    assert (talk.done, talk.result["isError"]) == (True, True)
    assert f"{__file__}:" in caplog.messages[-1]


@pytest.mark.parametrize("ask", ["question", "message", "url", "sample", "roots", "low level"])
def test_a_key_or_message_that_is_not_a_string_is_refused(
    ask: str, author_error: Callable[[Conversation], str]
) -> None:
    """JSON writes the key 3 as "3": no answer to the question would ever be found."""
    three: Any = 3

    @tool
    def numbering(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> str:
        match ask:
            case "question":
                elicit(three, "Who?", Name)
            case "message":
                elicit("name", three, Name)
            case "url":
                elicit.url(three, "Please sign in", "https://forge.example/login")
            case "sample":
                sample(three, "Well?", max_tokens=9)
            case _:
                list_roots(three)
        return "done"

    @tool
    def low(*, answers: InputResponses) -> str | InputRequiredResult:
        return "done" if answers else InputRequiredResult({three: ElicitRequest("Who?", Name)})

    what = "message" if ask == "message" else "key"
    talk = talk_to(low if ask == "low level" else numbering).call()
    assert author_error(talk) == f"a question's {what} is text, and not of type int"


CHANGING = "a question's key must be the same in every round: the answer to '"


@pytest.mark.parametrize("stable", [True, False], ids=["behind a question that stays", "the only question"])
def test_a_key_that_changes_in_every_round_is_refused_by_name(
    author_error: Callable[[Conversation], str], caplog: pytest.LogCaptureFixture, *, stable: bool
) -> None:
    @tool
    def drawing(*, elicit: Elicit) -> str:
        name = elicit("name", "Who?", Name).name if stable else "Ann"
        return name + str(elicit(str(uuid4()), "Are you sure?", Ok).ok)

    talk = talk_to(drawing).call()
    if stable:
        talk.accept(name=ANN)
    (first,) = talk.asked
    (second,) = talk.accept(**{first: YES}).asked
    reason = author_error(talk.accept(**{second: YES}))
    assert reason.startswith(f"{CHANGING}{second}' was never read, and '")
    assert reason.endswith(
        "asks the same again; make keys from the arguments, answers and recorded values (step, step.uuid()), not at "
        "random or from a clock"
    )
    assert re.search(r" at /.+\.py:\d+ in ", caplog.messages[-1])


@pytest.mark.parametrize("ask", ["url", "sample", "roots", "together", "async", "careless", "declined"])
def test_any_kind_of_question_with_a_changing_key_is_refused_by_name(
    ask: str, author_error: Callable[[Conversation], str]
) -> None:
    @tool
    async def clocked(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> str:
        clock["ticks"] += 1
        key = f"q{clock['ticks']}"
        match ask:
            case "url":
                elicit.url(key, "Please sign in", "https://forge.example/login")
            case "sample":
                sample(key, "Well?", max_tokens=9)
            case "roots":
                list_roots(key)
            case "together":
                elicit.together(Question(f"{key}-a", "Who?", Name), Question(f"{key}-b", "Who else?", Name))
            case "async":
                async with asyncio.TaskGroup() as group:
                    group.create_task(asyncio.to_thread(elicit, key, "Who?", Name))
            case "careless":
                with contextlib.suppress(BaseException):
                    elicit(key, "Who?", Name)
            case _:
                elicit.outcome(key, "Who?", Name)
        return "done"

    clock = Counter[str]()
    responses: dict[str, Any] = {
        "url": {"action": "accept"},
        "sample": SAID,
        "roots": ROOTS,
        "declined": {"action": "decline"},
    }
    talk = talk_to(clocked).call()
    for _ in range(2):
        assert not talk.done
        talk.answer(**{key: responses.get(ask, accepted(name="Ann")) for key in talk.asked})
    assert author_error(talk).startswith(f"{CHANGING}q2")


def test_a_key_may_change_once_and_again_when_its_answer_was_read() -> None:
    keys = iter(["old", "new", "new", "newer", "newer", "newest", "newest"])

    @tool
    def renamed(*, elicit: Elicit) -> str:
        key = next(keys)
        name = elicit(key, "Who?", Name).name
        return name + elicit(f"after-{key}", f"After {key}?", Name).name

    talk = talk_to(renamed).call().accept(old=ANN)  # as two versions do that take turns
    assert talk.asked == ["new"]
    assert talk.accept(new=ANN).asked == ["after-new"]
    assert talk.accept(**{"after-new": ANN}).asked == ["newer"]
    assert talk.accept(newer=ANN).asked == ["after-newer"]
    assert talk.accept(**{"after-newer": ANN}).asked == ["newest"]
    assert talk.accept(newest=ANN).asked == ["after-newest"]


def test_alternating_versions_may_use_different_keys_for_the_same_loop() -> None:
    def version(prefix: str) -> Handler[..., Any]:
        @tool
        def listed(*, elicit: Elicit) -> list[str]:
            return [elicit(f"{prefix}-{n}", "Who comes?", Name).name for n in range(3)]

        return listed

    talk = talk_to(version("guest")).call()
    for turn in range(1, 20):
        if talk.done:
            break
        talk.upgrade(serve(version("person" if turn % 2 else "guest"))).accept(**dict.fromkeys(talk.asked, ANN))
    assert talk.result["structuredContent"] == ["Ann"] * 3


def test_questions_for_a_changing_price_may_have_a_key_for_each_price() -> None:
    prices = iter(range(420, 430))

    @tool
    def buy(*, elicit: Elicit) -> str:
        price = next(prices)
        return str(elicit(f"consent-{price}", f"Pay {price} EUR?", Ok).ok)

    talk = talk_to(buy).call()
    for price in range(420, 428):
        assert talk.asked == [f"consent-{price}"]
        talk.accept(**{f"consent-{price}": YES})


def test_loops_gathers_and_branches_may_use_one_message_with_many_keys() -> None:
    @tool
    async def many(*, elicit: Elicit) -> int:
        async def confirm(key: str) -> bool:
            await asyncio.sleep(0)
            return elicit(key, "Sure?", Ok).ok

        found = [elicit(f"row-{row}", "Sure?", Ok).ok for row in range(3)]
        found += await asyncio.gather(*(confirm(f"task-{task}") for task in range(3)))
        for attempt in range(3):
            try:
                found.append(elicit(f"attempt-{attempt}", "Sure?", Ok).ok)
            except Declined:
                continue
        return len(found)

    talk = talk_to(many).call()
    while not talk.done:
        talk.decline() if talk.asked == ["attempt-1"] else talk.accept(**{talk.asked[-1]: YES})
    assert talk.text == "8"


def test_a_low_level_function_may_use_a_new_key_in_each_round() -> None:
    @tool
    def insists(*, answers: InputResponses) -> str | InputRequiredResult:
        if len(answers) == 5:
            return f"{len(answers)} answers"
        return InputRequiredResult({f"try-{len(answers)}": ElicitRequest("Who?", Name)})

    talk = talk_to(insists).call()
    while not talk.done:
        talk.accept(**{talk.asked[0]: ANN})
    assert talk.text == "5 answers"


def test_an_answer_counts_only_for_the_price_in_its_question() -> None:
    price = [420]

    @tool
    def buy(*, elicit: Elicit) -> str:
        euros = price[0]
        return f"{euros}: {elicit('consent', f'Pay {euros} EUR?', Ok).ok}"

    talk = talk_to(buy).call()
    price[0] = 900
    assert talk.accept(consent=YES).messages == {"consent": "Pay 900 EUR?"}
    assert talk.accept(consent=NO).text == "900: False"
    price[0] = 420
    assert talk.retry().text == "420: True"


def test_a_loop_that_repeats_a_question_ends_with_an_error_for_its_author(
    author_error: Callable[[Conversation], str],
) -> None:
    @tool
    def waiting(*, elicit: Elicit) -> str:
        while not elicit("sure", "Are you sure?", Ok).ok:
            pass
        return "sure"

    assert talk_to(waiting).call().accept(sure=YES).text == "sure"
    assert author_error(talk_to(waiting).call().accept(sure=NO)) == (
        "the question 'sure' is asked over and over in one round, but an answer stays as it is: "
        "give it a key of its own each time round a loop"
    )


def test_a_helper_may_ask_one_question_for_a_thousand_rows() -> None:
    @tool
    def convert(*, elicit: Elicit) -> int:
        return sum(len(elicit("currency", "Which currency?", Name).name) for _row in range(1000))

    assert talk_to(convert).call().accept(currency=ANN).text == "3000"


@pytest.mark.parametrize("form", [object(), dict, Any, 7])
def test_an_invalid_form_is_refused_even_if_the_function_catches_everything(
    form: Any,  # noqa: ANN401 - that is what is tried
    author_error: Callable[[Conversation], str],
) -> None:
    @tool
    def careless(*, elicit: Elicit) -> str:
        with contextlib.suppress(Exception):
            return str(elicit("it", "Well?", form))
        return "well"

    assert author_error(talk_to(careless).call()).startswith("it: a form ")


def test_an_invalid_page_url_is_refused_even_if_the_function_catches_everything(
    author_error: Callable[[Conversation], str],
) -> None:
    @tool
    def careless(*, elicit: Elicit) -> str:
        with contextlib.suppress(Exception):
            elicit.url("page", "Open it", "javascript:alert(1)")
        return "opened"

    assert "https://" in author_error(talk_to(careless).call())


def test_a_broken_rule_in_an_async_task_is_reported_too(author_error: Callable[[Conversation], str]) -> None:
    @tool
    async def forgetful(*, elicit: Elicit) -> str:
        async def ask(n: int) -> str:
            return elicit("guest", f"Guest {n}?", Name).name

        async with asyncio.TaskGroup() as group:
            for n in range(2):
                group.create_task(ask(n))
        return "done"

    assert "under the key 'guest'" in author_error(talk_to(forgetful).call())


# Forms that need no pydantic.


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
    ],
)
def test_an_answer_has_the_type_of_its_form(form: Any, content: dict[str, Any], answer: object) -> None:  # noqa: ANN401
    @tool
    def ask(*, elicit: Elicit) -> str:
        one, two = elicit("it", "It?", form), elicit.outcome("it", "It?", form)
        (three,) = elicit.together(Question("it", "It?", form))
        return repr([one, two, three])

    assert talk_to(ask).call().accept(it=content).text == repr([answer] * 3)


@pytest.mark.parametrize(
    ("form", "content", "reason"),
    [
        (bool, {"it": "yes"}, "it must be a boolean"),
        (int, {"it": 1.5}, "it must be an integer"),
        (Seat, {"it": "roof"}, 'it must be one of "window", "aisle"'),
        (Seat, {}, 'it must be one of "window", "aisle"'),
        (Meal, {"it": "meat"}, 'it must be one of "fish", "beans"'),
        (Guest, {"name": "Ann", "nights": 8}, "nights must be at most 7"),
        (Guest, {"name": "nobody"}, "nobody cannot come"),
        (Guest, {"nights": 2}, "name is missing"),
        (Room, {"beds": "two"}, "beds must be an integer"),
    ],
)
def test_a_question_with_an_answer_of_the_wrong_type_is_asked_again(
    form: Any,  # noqa: ANN401
    content: dict[str, Any],
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


def test_a_signature_declares_one_value_with_its_titles() -> None:
    @tool
    def sit(
        *,
        seat: Annotated[Seat, Titles("At the window", "At the aisle"), "For the whole flight", Ask("Where?")],
        day: Annotated[date | None, Ask("When?")],
    ) -> str:
        return f"{seat} {day!r}"

    talk = talk_to(sit).call()
    assert talk.requests["seat"]["params"]["requestedSchema"]["properties"]["seat"] == {
        "type": "string",
        "oneOf": [{"const": "window", "title": "At the window"}, {"const": "aisle", "title": "At the aisle"}],
        "description": "For the whole flight",
    }
    assert talk.accept(seat="aisle", day="2026-07-28").text == "aisle datetime.date(2026, 7, 28)"
    assert talk_to(sit).call().answer(seat=accepted(seat="aisle"), day={"action": "decline"}).text == "aisle None"


# Answers.


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"city": "X"}, "city String should have at least 2 characters"),
        ({"city": "Lisbon", "month": "July"}, "month should be 'May' or 'June'"),
        ({"city": 7}, "city should be a valid string"),
        ({"month": "May"}, "city Field required"),
        (["Lisbon"], "the form came back without content"),
        (None, "the form came back without content"),
    ],
)
def test_a_question_with_an_invalid_answer_is_asked_again_with_the_reason(content: object, reason: str) -> None:
    talk = talk_to(planned).call().answer(trip={"action": "accept", "content": content})
    assert talk.messages == {"trip": f"Where to? (Please answer again: {reason}.)"}
    assert talk.accept(trip={"city": "Lisbon"}).text == "Lisbon in May"


@tool
def planned(*, elicit: Elicit) -> str:
    """Plan a trip."""
    trip = elicit("trip", "Where to?", Trip)
    return f"{trip.city} in {trip.month}"


@pytest.mark.parametrize("response", [{}, {"action": "perhaps"}, {"action": None}, {"content": {"city": "Lisbon"}}])
def test_a_question_with_an_unknown_action_is_asked_again(response: dict[str, Any]) -> None:
    talk = talk_to(planned).call().answer(trip=response)
    assert talk.messages["trip"].endswith("(Please answer again: the answer was not accept, decline or cancel.)")


def test_the_reason_never_quotes_the_answer() -> None:
    talk = talk_to(planned).call().accept(trip={"city": "Lisbon", "month": "hunter2"})
    assert "hunter2" not in talk.messages["trip"]


def test_a_valid_third_answer_counts_like_a_first() -> None:
    talk = talk_to(planned).call()
    for _ in range(4):
        talk.accept(trip={})
    assert talk.messages["trip"].count("again") == 1
    assert talk.accept(trip={"city": "Lisbon"}).text == "Lisbon in May"


def test_unknown_keys_in_an_answer_are_ignored_and_not_stored() -> None:
    @tool
    def two(*, elicit: Elicit) -> str:
        return elicit("a", "A?", Name).name + elicit("b", "B?", Name).name

    small, large = talk_to(two).call().accept(a=ANN), talk_to(two).call().accept(a={**ANN, "more": "x" * 50_000})
    assert abs(len(large.state) - len(small.state)) < 8
    assert large.accept(b={"name": "Bob"}).text == "AnnBob"


def test_an_answer_that_an_authors_validator_rejects_is_asked_again() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, number: int) -> int:
            if number % 2:
                message = "must be even"
                raise ValueError(message)
            return number

    @tool
    def asks(*, elicit: Elicit) -> int:
        return elicit("number", "An even number?", Even).number

    talk = talk_to(asks).call().accept(number={"number": 3})
    assert talk.messages == {"number": "An even number? (Please answer again: number must be even.)"}
    assert talk.accept(number={"number": 4}).text == "4"


# Yes, no, and neither.


@tool
def renamed(*, elicit: Elicit) -> str:
    """Rename something."""
    try:
        return elicit("name", "Which name?", Name).name
    except Declined as declined:
        return f"declined {declined.key}"
    except Cancelled as cancelled:
        return f"cancelled {cancelled.key}"


def test_decline_and_cancel_raise_different_exceptions() -> None:
    assert talk_to(renamed).call().decline().text == "declined name"
    assert talk_to(renamed).call().cancel().text == "cancelled name"
    assert talk_to(renamed).call().answer().asked == ["name"]
    assert not issubclass(Declined, Cancelled)
    assert not issubclass(Cancelled, Declined)
    assert issubclass(Declined, NotAnswered)
    assert issubclass(Cancelled, NotAnswered)


def test_uncaught_decline_and_cancel_become_results_for_the_model() -> None:
    talk = talk_to(planned).call().decline()
    assert (talk.text, talk.result["isError"]) == ("The user declined to answer: Where to?", True)
    talk = talk_to(planned).call().cancel()
    assert (talk.text, talk.result["isError"]) == ("The user dismissed without answering: Where to?", True)


def test_an_author_may_match_on_an_outcome() -> None:
    @tool
    def matched(*, elicit: Elicit) -> str:
        match elicit.outcome("name", "Which name?", Name):
            case Declined():
                return "declined"
            case Cancelled():
                return "cancelled"
            case chosen:
                return chosen.name

    assert talk_to(matched).call().accept(name=ANN).text == "Ann"
    assert talk_to(matched).call().decline().text == "declined"
    assert talk_to(matched).call().cancel().text == "cancelled"
    assert talk_to(matched).call().answer().asked == ["name"]


def test_a_declined_question_is_not_asked_again() -> None:
    @tool
    def asks(*, elicit: Elicit) -> str:
        first = elicit.outcome("first", "First?", Ok)
        return f"{type(first).__name__} {elicit('second', 'Second?', Ok).ok}"

    talk = talk_to(asks).call().decline()
    assert talk.asked == ["second"]
    assert talk.answer(first={"action": "accept", "content": YES}).asked == ["second"]
    assert talk.accept(second=YES).text == "Declined True"


# Several at once.


@tool
def several(*, elicit: Elicit) -> str:
    """Ask four things of three."""
    name, ok, roots, said = elicit.together(
        Question("name", "Who?", Name),
        Question("ok", "Ok?", Ok),
        RootsQuestion(),
        SampleQuestion("weather", CreateMessageRequest("How is the weather?", 20)),
    )
    return f"{name.name} {ok.ok} {len(roots)} {said['content']['text']}"


def accepted(**content: object) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def test_several_things_are_asked_in_one_round() -> None:
    talk = talk_to(several).call()
    assert talk.asked == ["name", "ok", "roots", "weather"]
    talk.answer(name=accepted(name="Ann"), ok=accepted(ok=True), roots=ROOTS, weather=SAID)
    assert talk.text == "Ann True 2 sunny"


def test_only_the_unanswered_questions_are_asked_again() -> None:
    talk = talk_to(several).call().answer(weather=SAID, ok=accepted(ok="perhaps"))
    assert talk.asked == ["name", "ok", "roots"]
    assert "Please answer again" in talk.messages["ok"]
    assert talk.answer(roots=ROOTS).asked == ["name", "ok"]
    assert talk.accept(name=ANN, ok=YES).text == "Ann True 2 sunny"


def test_a_declined_question_raises_after_the_other_questions_are_answered() -> None:
    talk = talk_to(several).call().answer(name={"action": "decline"}, weather=SAID)
    assert talk.asked == ["ok", "roots"]
    talk.answer(ok={"action": "cancel"}, roots=ROOTS)
    assert talk.text == "The user declined to answer: Who?"  # the first of them in the author's order


def test_an_author_may_ask_any_number_of_questions_together() -> None:
    @tool
    def listed(count: int, *, elicit: Elicit) -> list[str]:
        asked = [Question(f"guest-{n}", f"Guest {n}?", Name) for n in range(count)]
        return [guest.name for guest in elicit.together(*asked)]

    assert talk_to(listed).call(count=0).result["structuredContent"] == []
    talk = talk_to(listed).call(count=7)
    assert len(talk.asked) == 7
    talk.accept(**{key: {"name": key} for key in talk.asked})
    assert talk.result["structuredContent"] == [f"guest-{n}" for n in range(7)]


# Declared in the signature.


def test_declared_questions_come_first_and_together() -> None:
    entered = Counter[str]()

    @tool
    def closed(bug: int, *, how: Annotated[Name, Ask("How was {bug} closed?")], who: Annotated[Ok, Ask("You?")]) -> str:
        entered["closed"] += 1
        return f"{bug} {how.name} {who.ok}"

    talk = talk_to(closed).call(bug=7)
    assert talk.messages == {"how": "How was 7 closed?", "who": "You?"}
    assert talk.accept(who=YES).messages == {"how": "How was 7 closed?"}
    assert entered == {}
    assert talk.accept(how=ANN).text == "7 Ann True"
    assert entered == {"closed": 1}


def test_a_declared_question_may_be_declined_if_none_is_one_of_its_types() -> None:
    @tool
    def closed(*, how: Annotated[Name | None, Ask("How?")], who: Annotated[Ok, Ask("You?")]) -> str:
        return f"{how.name if how else None} {who.ok}"

    assert talk_to(closed).call().answer(how={"action": "decline"}, who=accepted(ok=True)).text == "None True"
    assert talk_to(closed).call().answer(how={"action": "cancel"}, who=accepted(ok=True)).text == "None True"
    assert talk_to(closed).call().answer(how=accepted(name="x"), who={"action": "decline"}).text.startswith("The user")


# Pages.


def test_a_page_is_asked_again_until_its_author_accepts_the_outcome() -> None:
    signed_in: list[str] = []

    @tool
    def repositories(*, elicit: Elicit) -> str:
        while not signed_in:
            elicit.url("sign-in", "Please sign in", "https://forge.example/login")
        return "3 repositories"

    talk = talk_to(repositories).call()
    assert talk.requests["sign-in"]["params"] == {
        "mode": "url",
        "message": "Please sign in",
        "url": "https://forge.example/login",
    }
    for _ in range(3):
        assert talk.answer(**{"sign-in": {"action": "accept"}}).asked == ["sign-in"]
    signed_in.append("Ann")
    assert talk.answer(**{"sign-in": {"action": "accept"}}).text == "3 repositories"


def test_a_page_that_was_opened_is_not_asked_for_again_by_later_questions() -> None:
    @tool
    def terms(*, elicit: Elicit) -> str:
        elicit.url("terms", "Please read this", "https://example.com/terms")
        return str(elicit("agreed", "Do you agree?", Ok).ok)

    talk = talk_to(terms).call().answer(terms={"action": "accept"})
    assert talk.asked == ["agreed"]
    assert talk.answer().asked == ["agreed"]
    assert talk.accept(agreed=YES).text == "True"


def test_a_page_may_be_declined() -> None:
    @tool
    def terms(*, elicit: Elicit) -> str:
        elicit.url("terms", "Please read this", "https://example.com/terms")
        return "read"

    assert talk_to(terms).call().decline().text == "The user declined to answer: Please read this"


# The client's model and folders.


@tool
def described(*, sample: Sample, list_roots: ListRoots) -> str:
    """Describe folders."""
    folders = [root["uri"] for root in list_roots()]
    return f"{folders} {sample('said', 'Describe them', max_tokens=9, temperature=0.5)['content']['text']}"


def test_the_client_and_its_model_are_asked_like_a_user() -> None:
    talk = talk_to(described).call()
    assert talk.requests == {"roots": {"method": "roots/list", "params": {}}}
    talk.answer(roots=ROOTS)
    said = {"role": "user", "content": {"type": "text", "text": "Describe them"}}
    assert talk.requests["said"]["params"] == {"messages": [said], "temperature": 0.5, "maxTokens": 9}
    assert talk.answer(said=SAID).text == "['file:///a', 'file:///b'] sunny"


@pytest.mark.parametrize("bad", [{}, {"roots": {}}, {"roots": [{}]}, {"roots": ["file:///a"]}, {"action": "accept"}])
def test_a_malformed_list_of_roots_is_asked_again(bad: dict[str, Any]) -> None:
    talk = talk_to(described).call().answer(roots=bad)
    assert talk.asked == ["roots"]
    assert talk.answer(roots=ROOTS).asked == ["said"]


@pytest.mark.parametrize("bad", [{}, {"role": "system"}, {**SAID, "content": "sunny"}, {"action": "decline"}])
def test_a_malformed_sampling_result_is_asked_again(bad: dict[str, Any]) -> None:
    talk = talk_to(described).call().answer(roots=ROOTS)
    assert talk.answer(said=bad).asked == ["said"]
    assert talk.answer(said=SAID).done


@pytest.mark.parametrize(
    ("capabilities", "can"),
    [
        ({}, "FFFF"),
        ({"elicitation": {}}, "TFFF"),
        ({"elicitation": {"url": {}}}, "FTFF"),
        ({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}, "TTTT"),
    ],
)
def test_an_author_may_read_the_clients_capabilities(capabilities: dict[str, Any], can: str) -> None:
    @tool
    def sees(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> str:
        possible = (elicit.possible, elicit.url_possible, sample.possible, list_roots.possible)
        return "".join("T" if one else "F" for one in possible)

    assert talk_to(sees, capabilities=capabilities).call().text == can


def test_changing_a_sampling_result_or_roots_changes_no_record() -> None:
    seen: list[str] = []

    @tool
    def spoils(*, list_roots: ListRoots, sample: Sample, elicit: Elicit) -> str:
        for _ in range(2):
            roots, said = list_roots(), sample("weather", "How is the weather?", max_tokens=20)
            seen.append(f"{roots} {said}")
            roots.pop()["uri"] = "file:///spoilt"
            said["content"]["text"] = "spoilt"
        elicit("ok", "Ok?", Ok)
        return "done"

    talk = talk_to(spoils).call().answer(roots=ROOTS).answer(weather=SAID)
    assert talk.accept(ok=YES).text == "done"
    assert seen == [f"{ROOTS['roots']} {SAID}"] * 4


# Where questions may stand.


def test_functions_that_the_handler_calls_ask_too() -> None:
    def name_of(elicit: Elicit, whom: str) -> str:
        return elicit(f"name-{whom}", f"What is {whom}'s name?", Name).name

    def couple(elicit: Elicit) -> list[str]:
        return [name_of(elicit, whom) for whom in ("her", "him")]

    @tool
    def invite(*, elicit: Elicit) -> str:
        return " and ".join(couple(elicit))

    talk = talk_to(invite).call().accept(**{"name-her": ANN}).accept(**{"name-him": {"name": "Bob"}})
    assert talk.text == "Ann and Bob"


def test_prompts_templates_and_static_resources_ask_too() -> None:
    @prompt
    def brief(*, elicit: Elicit) -> str:
        return elicit("name", "For whom?", Name).name

    @resource("house://rules")
    def rules(*, elicit: Elicit) -> str:
        return elicit("name", "For whom?", Name).name

    @resource("tickets://{number}")
    def ticket(number: int, *, elicit: Elicit) -> str:
        return f"{number} {elicit('name', 'For whom?', Name).name}"

    assert talk_to(brief).get().accept(name=ANN).text == "Ann"
    assert talk_to(rules).read("house://rules").accept(name=ANN).text == "Ann"
    assert talk_to(ticket).read("tickets://7").accept(name=ANN).text == "7 Ann"


def test_finally_runs_in_every_round() -> None:
    closed = Counter[str]()

    @tool
    def opens(*, elicit: Elicit) -> str:
        try:
            return elicit("a", "A?", Name).name + elicit("b", "B?", Name).name
        finally:
            closed["connection"] += 1

    assert talk_to(opens).call().accept(a=ANN).accept(b=ANN).text == "AnnAnn"
    assert closed == {"connection": 3}


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_no_except_clause_suppresses_a_question(caught: type[BaseException]) -> None:
    @tool
    def careless(*, elicit: Elicit) -> str:
        try:
            return elicit("name", "Who?", Name).name
        except caught:
            return "nobody"

    assert talk_to(careless).call().asked == ["name"]
    assert talk_to(careless).call().accept(name=ANN).text == "Ann"


class Rollback:
    """A context manager that makes its own error of whatever happens inside, or fails to close."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            raise self._error from error


@pytest.mark.parametrize("error", [OSError("connection lost"), ToolError("No."), ValueError()], ids=repr)
def test_an_error_after_a_question_does_not_suppress_it(error: Exception) -> None:
    @tool
    def transaction(*, elicit: Elicit) -> str:
        with Rollback(error):
            return elicit("name", "Who?", Name).name

    @prompt
    def brief(*, elicit: Elicit) -> str:
        with Rollback(error):
            return elicit("name", "Who?", Name).name

    for talk in (talk_to(transaction).call(), talk_to(brief).get()):
        assert talk.asked == ["name"]
        assert talk.accept(name=ANN).text == "Ann"


def test_threads_ask_too() -> None:
    @tool
    def threaded(*, elicit: Elicit) -> list[str]:
        with ThreadPoolExecutor(1) as pool:
            return list(pool.map(lambda key: elicit(key, f"{key}?", Name).name, ["a", "b"]))

    talk = talk_to(threaded).call()
    assert talk.asked[0] == "a"
    while not talk.done:
        talk.accept(**{key: {"name": key.upper()} for key in talk.asked})
    assert talk.result["structuredContent"] == ["A", "B"]


def test_threads_that_ask_at_once_are_asked_in_one_round() -> None:
    met = Barrier(8)

    @tool
    def threaded(*, elicit: Elicit) -> int:
        def asks(number: int) -> int:
            with contextlib.suppress(BrokenBarrierError):
                met.wait(10)
            return len(elicit(f"guest-{number}", f"Guest {number}?", Name).name)

        with ThreadPoolExecutor(8) as pool:
            return sum(future.result() for future in [pool.submit(asks, number) for number in range(8)])

    talk = talk_to(threaded).call()
    assert sorted(talk.asked) == [f"guest-{number}" for number in range(8)]
    assert talk.accept(**dict.fromkeys(talk.asked, ANN)).text == "24"


# Async handlers.


async def ask(elicit: Elicit, key: str) -> str:
    await asyncio.sleep(0)
    return elicit(key, f"{key}?", Name).name


def test_an_async_handler_asks_without_awaiting() -> None:
    @tool
    async def single(*, elicit: Elicit) -> str:
        await asyncio.sleep(0)
        return await ask(elicit, "a") + await ask(elicit, "b")

    assert talk_to(single).call().accept(a=ANN).accept(b=ANN).text == "AnnAnn"


@pytest.mark.parametrize("group", [True, False], ids=["a task group", "gather"])
def test_questions_of_tasks_are_asked_in_one_round(*, group: bool) -> None:
    @tool
    async def tasks(*, elicit: Elicit) -> list[str]:
        if not group:
            return list(await asyncio.gather(ask(elicit, "a"), ask(elicit, "b")))
        async with asyncio.TaskGroup() as running:
            asked = [running.create_task(ask(elicit, key)) for key in "ab"]
        return [task.result() for task in asked]

    talk = talk_to(tasks).call()
    assert talk.asked == ["a", "b"]
    assert talk.accept(b={"name": "Bob"}).asked == ["a"]
    assert talk.accept(a=ANN).result["structuredContent"] == ["Ann", "Bob"]


def test_a_declined_question_in_a_task_is_a_tool_error() -> None:
    @tool
    async def tasks(*, elicit: Elicit) -> str:
        async with asyncio.TaskGroup() as running:
            asked = [running.create_task(ask(elicit, key)) for key in "ab"]
        return str([task.result() for task in asked])

    talk = talk_to(tasks).call().answer(a=accepted(name="Ann"), b={"action": "decline"})
    assert (talk.text, talk.result["isError"]) == ("The user declined to answer: b?", True)


def test_a_tool_error_in_a_task_is_a_tool_error_and_in_a_prompt_an_error() -> None:
    async def fails(_elicit: Elicit) -> None:
        message = "No."
        raise ToolError(message)

    @tool
    async def tasks(*, elicit: Elicit) -> str:
        async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as inner:
            outer.create_task(asyncio.sleep(0))
            inner.create_task(fails(elicit))
        return "unreached"

    @prompt
    async def brief(*, elicit: Elicit) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails(elicit))
        return "unreached"

    assert (talk_to(tasks).call().text, talk_to(brief).get().error["message"]) == ("No.", "No.")


def test_a_question_takes_precedence_over_other_errors_of_its_round() -> None:
    @tool
    async def tasks(*, elicit: Elicit) -> str:
        async def fails_when_cancelled() -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                message = "closed in the middle"
                raise OSError(message) from None

        async with asyncio.TaskGroup() as group:
            slow = group.create_task(fails_when_cancelled())
            await asyncio.sleep(0)
            name = await ask(elicit, "a")
            slow.cancel()
        return name

    assert talk_to(tasks).call().asked == ["a"]


def test_an_error_in_a_task_without_a_question_is_a_crash(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        message = "a secret text"
        raise OSError(message)

    @tool
    async def tasks(*, elicit: Elicit) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
        return str(elicit.possible)

    talk = talk_to(tasks).call()
    assert (talk.status, talk.result["isError"]) == (200, True)
    assert "a secret text" not in talk.text + caplog.text


def test_a_worker_thread_of_an_async_handler_may_ask() -> None:
    @tool
    async def threaded(*, elicit: Elicit) -> str:
        return (await asyncio.to_thread(elicit, "name", "Who?", Name)).name

    assert talk_to(threaded).call().accept(name=ANN).text == "Ann"


# Answers count only for their own question.


def test_answers_in_a_first_request_do_not_replace_its_questions() -> None:
    talk = talk_to(planned)
    talk.call()
    cold = Conversation(serve(planned))
    cold._begin("tools/call", {"name": "planned", "arguments": {}, "inputResponses": {"trip": accepted(city="X")}})  # noqa: SLF001 - no client does that
    assert cold.messages == talk.messages


def test_an_answer_reaches_the_question_it_was_given_to_and_no_other() -> None:
    @tool
    def asks(*, elicit: Elicit) -> str:
        first = elicit("first", "First?", Name).name
        return f"{first} {elicit('second', f'After {first}?', Name).name}"

    talk = talk_to(asks).call()
    talk.answer(first=accepted(name="one"), second=accepted(name="too early"))
    assert talk.messages == {"second": "After one?"}
    talk.answer(first=accepted(name="too late"), second=accepted(name="two"))
    assert talk.text == "one two"


def test_dates_and_choices_arrive_with_their_types() -> None:
    class When(BaseModel):
        at: datetime
        rooms: list[Literal["red", "green"]] = Field(default=[], max_length=2)

    @tool
    def book(*, elicit: Elicit) -> str:
        when = elicit("when", "When?", When)
        return f"{when.at:%H:%M} {when.rooms}"

    talk = talk_to(book).call().accept(when={"at": "2027-01-02T03:04:00Z", "rooms": ["green"]})
    assert talk.text == "03:04 ['green']"


# Two versions of a function, side by side.


def asking(words: str, form: type[BaseModel] = Name, *, then: str = "") -> Handler[..., Any]:
    """Make a version of a tool that asks in these words, and then perhaps for more."""

    @tool(name="asks")
    def asks(*, elicit: Elicit) -> str:
        name = getattr(elicit("name", words, form), "name", "?")
        return f"{words} {name}{then and elicit('more', then, Name).name}"

    return asks


def test_alternating_versions_each_find_the_answer_to_their_own_message() -> None:
    versions = [serve(asking(words, then="And?")) for words in ("Who?", "Who are you?")]
    talk = Conversation(versions[0]).call()
    given = {"Who?": {"name": "Ann"}, "Who are you?": {"name": "I am Ann"}}
    asked = []
    for turn in range(1, 7):
        asked.append(talk.messages)
        answers = {key: given[words] for key, words in talk.messages.items() if key == "name"}
        talk.upgrade(versions[turn % 2]).accept(**answers)
    assert [messages.get("name") for messages in asked[:3]] == ["Who?", "Who are you?", None]
    assert all(messages == {"more": "And?"} for messages in asked[2:])
    assert talk.upgrade(versions[1]).accept(more={"name": "."}).text == "Who are you? I am Ann."


def test_a_version_that_asks_nothing_refuses_a_state_because_it_has_no_key() -> None:
    @tool(name="asks")
    def asks_nothing() -> str:
        return "nothing to ask"

    talk = talk_to(asking("Who?")).call()
    talk.upgrade(serve(asks_nothing)).accept(name=ANN)
    assert (talk.status, talk.error["code"]) == (400, -32602)


def test_another_form_with_the_same_message_is_another_question() -> None:
    class Full(Name):
        surname: str

    talk = talk_to(asking("Who?", then="And?")).call().accept(name=ANN)
    talk.upgrade(serve(asking("Who?", Full, then="And?")))
    assert talk.accept(more={"name": "."}).asked == ["name"]
    assert talk.accept(name={"name": "Ann", "surname": "Lee"}).text == "Who? Ann."


def test_a_stricter_version_asks_again_for_an_answer_that_it_rejects() -> None:
    class Known(Name):
        @field_validator("name")
        @classmethod
        def known(cls, name: str) -> str:
            if name == "Ann":
                message = "must be somebody else"
                raise ValueError(message)
            return name

    talk = talk_to(asking("Who?", then="And?")).call().accept(name=ANN)
    talk.upgrade(serve(asking("Who?", Known, then="And?"))).accept(more={"name": "."})
    assert talk.messages == {"name": "Who? (Please answer again: name must be somebody else.)"}
    assert talk.accept(name={"name": "Bob"}).text == "Who? Bob."
