"""Rules of questions: what an author reads who gives a question a wrong key, message, form or URL.

The handler runs from its first line in every round. So the toolkit knows a question by its key and its message, which
must be the same in every round: otherwise no answer ever reaches it. `talk_to(tool)` is the client of the tool, and
`author_error(talk)` the message that the author of a tool reads after the tool has broken a rule.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import pytest
from pydantic import BaseModel

from mcp_functions import Ask, Declined, Elicit, ListRoots, Question, Sample, Step, serve, tool
from mcp_functions.low_level import InputRequiredResult, InputResponses
from mcp_functions.protocol.errors import InputRequired
from mcp_functions.rounds.questions import MAX_MESSAGE_CHANGES
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.base import Handler
    from tests.rounds.conftest import AuthorError


class Name(BaseModel):
    name: str


class Consent(BaseModel):
    agreed: bool


# A key belongs to one question.


def test_two_messages_may_not_have_one_key(author_error: AuthorError) -> None:
    @tool
    def invite(*, elicit: Elicit) -> list[str]:
        return [elicit("guest", f"Who is guest {number}?", str) for number in range(3)]

    expected = "two different questions under the key 'guest': give each question a key of its own"
    assert author_error(talk_to(invite).call().accept(guest="Ann")) == expected


def test_two_forms_may_not_have_one_key(author_error: AuthorError) -> None:
    @tool
    def invite(*, elicit: Elicit) -> str:
        return str([elicit("guest", "Well?", str), elicit("guest", "Well?", bool)])

    talk = talk_to(invite).call().accept(guest="Ann")
    assert "two different questions under the key 'guest'" in author_error(talk)


def test_a_question_of_the_signature_may_not_share_its_key(author_error: AuthorError) -> None:
    @tool
    def invite(*, guest: Annotated[str, Ask("Who?")], elicit: Elicit) -> str:
        return guest + elicit("guest", "Who else?", str)

    talk = talk_to(invite).call().accept(guest="Ann")
    assert "two different questions under the key 'guest'" in author_error(talk)


def test_two_tasks_may_not_ask_under_one_key(author_error: AuthorError) -> None:
    @tool
    async def invite(*, elicit: Elicit) -> str:
        async def ask(number: int) -> str:
            return elicit("guest", f"Who is guest {number}?", str)

        async with asyncio.TaskGroup() as group:
            group.create_task(ask(1))
            group.create_task(ask(2))
        return "unreached"

    assert "two different questions under the key 'guest'" in author_error(talk_to(invite).call())


def test_a_thousand_rows_may_share_one_question() -> None:
    @tool
    def convert(*, elicit: Elicit) -> int:
        return sum(len(elicit("currency", "Which currency?", str)) for _row in range(1000))

    assert talk_to(convert).call().accept(currency="EUR").text == "3000"


def test_a_loop_may_not_wait_for_another_answer_to_one_question(author_error: AuthorError) -> None:
    @tool
    def wait(*, elicit: Elicit) -> str:
        while not elicit("sure", "Are you sure?", bool):
            pass
        return "sure"

    assert author_error(talk_to(wait).call().accept(sure=False)) == (
        "the question 'sure' is asked over and over in one round, but an answer stays as it is: "
        "give it a key of its own each time round a loop"
    )


# A message may change, but not in every round.


def test_an_answer_counts_only_for_the_price_in_its_message() -> None:
    price = 420

    @tool
    def buy(*, elicit: Elicit) -> str:
        agreed = elicit("consent", f"Pay {price} EUR?", bool)
        return f"{price} EUR: {agreed}"

    talk = talk_to(buy).call()
    price = 900
    assert talk.accept(consent=True).messages == {"consent": "Pay 900 EUR?"}
    assert talk.accept(consent=False).text == "900 EUR: False"
    price = 420
    assert talk.retry().text == "420 EUR: True"


def test_a_message_may_not_change_in_every_round(author_error: AuthorError) -> None:
    rounds = Counter[str]()

    @tool
    def tell_time(*, elicit: Elicit) -> bool:
        rounds["tell_time"] += 1
        return elicit("consent", f"It is 12:0{rounds['tell_time']}. Go on?", bool)

    talk = talk_to(tell_time).call()
    for _ in range(MAX_MESSAGE_CHANGES):
        assert talk.accept(consent=True).asked == ["consent"]
    assert author_error(talk.accept(consent=True)) == (
        "the question 'consent' says something else in every round, so no answer ever belongs to it: "
        "make its message from the arguments and from recorded values (step, step.now()), not from a clock"
    )


# A key may change, but not in every round.


# Each kind of question, as a call with its key.
ASK: dict[str, Callable[..., object]] = {
    "form": lambda key, elicit, _sample, _list_roots: elicit(key, "Who?", Name),
    "outcome": lambda key, elicit, _sample, _list_roots: elicit.outcome(key, "Who?", Name),
    "page": lambda key, elicit, _sample, _list_roots: elicit.url(key, "Sign in", "https://forge.example/login"),
    "model": lambda key, _elicit, sample, _list_roots: sample(key, "Well?", max_tokens=9),
    "roots": lambda key, _elicit, _sample, list_roots: list_roots(key),
}
RESPONSES: dict[str, dict[str, Any]] = {
    "form": {"action": "accept", "content": {"name": "Ann"}},
    "outcome": {"action": "decline"},
    "page": {"action": "accept"},
    "model": {"role": "assistant", "content": {"type": "text", "text": "sunny"}, "model": "m"},
    "roots": {"roots": [{"uri": "file:///a"}]},
}


@pytest.mark.parametrize("kind", ASK)
def test_a_key_may_not_change_in_every_round(kind: str, author_error: AuthorError) -> None:
    rounds = Counter[str]()

    @tool
    def ask_again(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> str:
        rounds["ask_again"] += 1
        ASK[kind](f"key-{rounds['ask_again']}", elicit, sample, list_roots)
        return "unreached"

    talk = talk_to(ask_again).call().answer(**{"key-1": RESPONSES[kind]})
    assert talk.asked == ["key-2"]
    assert author_error(talk.answer(**{"key-2": RESPONSES[kind]})) == (
        "a question's key must be the same in every round: the answer to 'key-2' was never read, and 'key-3' "
        "asks the same again; make keys from the arguments, answers and recorded values (step, step.uuid()), not at "
        "random or from a clock"
    )


def test_of_two_keys_with_the_same_question_the_error_names_the_first(author_error: AuthorError) -> None:
    rounds = Counter[str]()

    @tool
    def ask_both(*, elicit: Elicit) -> str:
        rounds["ask_both"] += 1
        elicit.together(*[Question("Who?", Name, key=f"{side}-{rounds['ask_both']}") for side in ("left", "right")])
        return "unreached"

    talk = talk_to(ask_both).call().decline().decline()
    assert "the answer to 'left-2' was never read, and 'left-3' asks the same again" in author_error(talk)


def test_of_two_answers_that_were_never_read_the_error_names_the_first(author_error: AuthorError) -> None:
    rounds = Counter[str]()

    @tool
    def ask_both(*, elicit: Elicit) -> str:
        rounds["ask_both"] += 1
        questions = [Question(text, Name, key=f"{text}-{rounds['ask_both']}") for text in ("who", "where")]
        elicit.together(*(reversed(questions) if rounds["ask_both"] == 3 else questions))
        return "unreached"

    talk = talk_to(ask_both).call().decline().decline()
    assert "the answer to 'who-2' was never read, and 'who-3' asks the same again" in author_error(talk)


def test_a_random_key_after_a_stable_question_is_logged_with_its_line(
    author_error: AuthorError, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def draw(*, elicit: Elicit) -> str:
        name = elicit("name", "Who?", str)
        return f"{name} {elicit(str(uuid4()), 'Are you sure?', Consent)}"

    talk = talk_to(draw).call().accept(name="Ann")
    for _ in range(2):
        (random_key,) = talk.asked
        talk.accept(**{random_key: True})
    assert author_error(talk).startswith("a question's key must be the same in every round")
    assert re.search(r" at /.+\.py:\d+ in ", caplog.messages[-1])


def greet_version(key: str) -> Handler[..., Any]:
    """Make a version of a tool that asks for a name under this key."""

    @tool
    def greet(*, elicit: Elicit) -> str:
        name = elicit(key, "Who?", Name).name
        elicit("sure", "Sure?", bool)
        return f"Hello, {name}!"

    return greet


def test_each_new_version_may_rename_a_key() -> None:
    talk = talk_to(greet_version("old")).call()
    assert talk.upgrade(serve(greet_version("new"))).accept(old="Ann").asked == ["new"]
    assert talk.answer().asked == ["new"]  # a round that renames no key
    assert talk.upgrade(serve(greet_version("newer"))).accept(new="Ann").asked == ["newer"]
    assert talk.accept(newer="Ann").asked == ["sure"]


def test_two_versions_that_take_turns_may_have_different_keys() -> None:
    def version(prefix: str) -> Handler[..., Any]:
        @tool
        def invite(*, elicit: Elicit) -> list[str]:
            return [elicit(f"{prefix}-{number}", "Who comes?", Name).name for number in range(3)]

        return invite

    versions = [serve(version("person")), serve(version("guest"))]
    talk = talk_to(version("guest")).call()
    for turn in range(6):
        (key,) = talk.asked
        talk.upgrade(versions[turn % 2]).accept(**{key: "Ann"})
    assert talk.result["structuredContent"] == ["Ann"] * 3


def test_each_price_may_have_its_own_key() -> None:
    price = 420

    @tool
    def buy(*, elicit: Elicit) -> bool:
        return elicit(f"consent-{price}", f"Pay {price} EUR?", Consent).agreed

    talk = talk_to(buy).call()
    for _ in range(8):
        (key,) = talk.asked
        assert key == f"consent-{price}"
        price += 1
        talk.accept(**{key: True})


def test_a_loop_may_ask_the_same_under_many_keys() -> None:
    @tool
    def confirm(*, elicit: Elicit) -> int:
        return sum(elicit(f"row-{row}", "Sure?", Consent).agreed for row in range(4))

    talk = talk_to(confirm).call()
    for row in range(4):
        talk.accept(**{f"row-{row}": True})
    assert talk.text == "4"


def test_tasks_may_ask_the_same_under_many_keys() -> None:
    @tool
    async def confirm(*, elicit: Elicit) -> int:
        answers = await asyncio.gather(
            asyncio.to_thread(elicit, "task-1", "Sure?", Consent), asyncio.to_thread(elicit, "task-2", "Sure?", Consent)
        )
        return len(answers)

    talk = talk_to(confirm).call()
    for _ in range(2):
        talk.accept(**{talk.asked[0]: True})
    assert talk.text == "2"


def test_a_declined_question_may_be_asked_under_another_key() -> None:
    @tool
    def insist(*, elicit: Elicit) -> str:
        for attempt in range(3):
            with contextlib.suppress(Declined):
                return f"agreed in attempt {attempt}: {elicit(f'attempt-{attempt}', 'Sure?', Consent).agreed}"
        return "never agreed"

    assert talk_to(insist).call().decline().decline().decline().text == "never agreed"


def test_a_low_level_function_may_use_a_new_key_in_each_round() -> None:
    @tool
    def insist(*, answers: InputResponses) -> str | InputRequiredResult:
        if len(answers) == 3:
            return "3 answers"
        return InputRequiredResult({f"attempt-{len(answers)}": Question("Who?", Name)})

    talk = talk_to(insist).call()
    for attempt in range(3):
        talk.accept(**{f"attempt-{attempt}": "Ann"})
    assert talk.text == "3 answers"


# Keys, messages, forms and URLs have types.


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_a_key_is_a_string(ask: Callable[..., object], author_error: AuthorError) -> None:
    """JSON writes the key 3 as "3": no response to the question would ever be found."""

    @tool
    def ask_with_number(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> str:
        ask(3, elicit, sample, list_roots)
        return "unreached"

    assert author_error(talk_to(ask_with_number).call()) == "a question's key is text, and not of type int"


def test_a_key_of_a_low_level_function_is_a_string(author_error: AuthorError) -> None:
    key: Any = 3

    @tool
    def ask_with_number(*, answers: InputResponses) -> str | InputRequiredResult:
        return "unreached" if answers else InputRequiredResult({key: Question("Who?", Name)})

    assert author_error(talk_to(ask_with_number).call()) == "a question's key is text, and not of type int"


def test_a_message_is_a_string(author_error: AuthorError) -> None:
    message: Any = 3

    @tool
    def ask_with_number(*, elicit: Elicit) -> str:
        return elicit("name", message, str)

    assert author_error(talk_to(ask_with_number).call()) == "a question's message is text, and not of type int"


def test_a_form_before_the_message_is_refused_with_a_list_of_forms(author_error: AuthorError) -> None:
    @tool
    def greet(*, elicit: Elicit) -> str:
        return elicit("guest", Name, "Who?").name  # type: ignore[arg-type]

    assert author_error(talk_to(greet).call()).startswith("guest: a form is a dataclass, a TypedDict, a pydantic model")


@pytest.mark.parametrize("form", [object(), dict, Any, 7])
def test_an_invalid_form_is_refused_even_if_the_error_is_caught(form: Any, author_error: AuthorError) -> None:  # noqa: ANN401
    @tool
    def ask(*, elicit: Elicit) -> str:
        with contextlib.suppress(Exception):
            elicit("it", "Well?", form)
        return "done"

    assert author_error(talk_to(ask).call()).startswith("it: a form ")


def test_an_invalid_url_is_refused_even_if_the_error_is_caught(author_error: AuthorError) -> None:
    @tool
    def open_page(*, elicit: Elicit) -> str:
        with contextlib.suppress(Exception):
            elicit.url("page", "Open it", "javascript:alert(1)")
        return "opened"

    assert "https://" in author_error(talk_to(open_page).call())


# Only the toolkit may raise InputRequired, which ends a round.


def raise_input_required() -> str:
    raise InputRequired


def raise_alone() -> str:
    return raise_input_required()


def raise_in_step(*, step: Step) -> str:
    return step("raise", raise_input_required)


async def raise_in_thread(*, step: Step) -> str:
    return await asyncio.to_thread(step, "raise", raise_input_required)


@pytest.mark.parametrize("function", [raise_alone, raise_in_step, raise_in_thread])
def test_a_function_that_raises_input_required_crashes(
    function: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    talk = talk_to(tool(function)).call()
    assert talk.result["isError"]
    assert isinstance(talk.raised, InputRequired)
    assert f"{__file__}:" in caplog.messages[-1]


def test_a_function_that_raises_input_required_after_an_answer_crashes() -> None:
    @tool
    def greet(*, elicit: Elicit) -> str:
        elicit("name", "Who?", str)
        return raise_input_required()

    talk = talk_to(greet).call().accept(name="Ann")
    assert talk.result["isError"]
    assert isinstance(talk.raised, InputRequired)
