"""The page "Writing a conversation", on asking: questions, answers and refusals."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from mcp.client._input_required import DEFAULT_INPUT_REQUIRED_MAX_ROUNDS
from pydantic import BaseModel

from mcp_functions import (
    Ask,
    Declined,
    Elicit,
    NotAnswered,
    prompt,
    resource,
    serve,
    tool,
)
from mcp_functions_harness.testing import Conversation
from tests.docs.stand_ins import YES, Ok
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.gateway import LambdaFunction


# ---- Asking


def test_two_questions_under_one_key_are_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def asking(*, elicit: Elicit) -> str:
        """Ask two things under one key."""
        return f"{elicit('sure', 'Sure?', Ok)} {elicit('sure', 'Really?', Ok)}"

    talk = Conversation(serve(asking)).call().accept(sure=YES)
    assert "two different questions under the key 'sure'" in author_error(talk)


def question_of(words: str) -> LambdaFunction:
    @tool
    def ask(*, elicit: Elicit) -> str:
        """Ask."""
        first = elicit("first", "First?", Ok).ok
        return f"{first} {elicit('sure', words, Ok).ok}"

    return serve(ask)


def test_a_key_that_changes_in_every_round_is_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def forgetful(*, elicit: Elicit) -> str:
        """Draw a key in every round."""
        return str(elicit(f"q{random.random()}", "Are you sure?", Ok).ok)  # noqa: S311 - any change will do

    talk = Conversation(serve(forgetful)).call()
    assert len(talk.accept(**{talk.asked[0]: YES}).asked) == 1
    assert "a question's key must be the same in every round" in author_error(talk.accept(**{talk.asked[0]: YES}))


def test_a_deployment_may_rename_a_key() -> None:
    def version(key: str) -> LambdaFunction:
        @tool
        def confirm(*, elicit: Elicit) -> str:
            """Ask one thing."""
            return str(elicit(key, "Are you sure?", Ok).ok)

        return serve(confirm)

    talk = Conversation(version("sure")).call().upgrade(version("certain")).accept(sure=YES)
    assert talk.accept(certain=YES).text == "True"


def test_another_message_is_another_question() -> None:
    talk = Conversation(question_of("Pay 420?")).call().accept(first=YES)
    assert talk.messages == {"sure": "Pay 420?"}
    talk.upgrade(question_of("Pay 900?")).accept(sure=YES)
    assert talk.messages == {"sure": "Pay 900?"}
    assert talk.accept(sure=YES).text == "True True"


def test_an_invalid_answer_is_asked_again_and_the_other_answers_are_kept(page: dict[str, Any]) -> None:
    talk = Conversation(page["handler"]).call(title="Fire").accept(urgency={"urgency": "high"})
    talk.accept(phone={"phone": "1"})
    assert talk.messages == {
        "phone": "Which number do we ring? (Please answer again: phone must have at least 3 characters.)"
    }
    assert talk.accept(phone={"phone": "112"}).text == "Opened, and 112 will ring: Fire."


def test_unknown_keys_of_an_answer_are_ignored(page: dict[str, Any]) -> None:
    talk = Conversation(page["handler"]).call(title="Fire").accept(urgency={"urgency": "low", "mood": "grim"})
    assert talk.text == "Opened: Fire."


def test_a_missing_answer_is_asked_for_again(page: dict[str, Any]) -> None:
    talk = Conversation(page["handler"]).call(title="Fire")
    asked = talk.requests
    assert talk.answer().requests == asked


def test_a_later_answer_does_not_replace_the_earlier_one(page: dict[str, Any]) -> None:
    talk = Conversation(page["handler"]).call(title="Fire").accept(urgency={"urgency": "high"})
    talk.answer(urgency={"action": "accept", "content": {"urgency": "low"}})
    assert talk.asked == ["phone"]


def test_answers_count_only_for_questions_that_were_asked(page: dict[str, Any]) -> None:
    answer = {"urgency": {"action": "accept", "content": {"urgency": "low"}}}
    first = wire.message("tools/call", {"name": "open_ticket", "arguments": {"title": "x"}, "inputResponses": answer})
    response = page["handler"](wire.event(first), wire.Context("local_open_ticket"))
    assert list(wire.read(response, "tools/call")["result"]["inputRequests"]) == ["urgency"]


# ---- No is an answer


def test_the_model_reads_that_the_user_declined_a_question(page: dict[str, Any]) -> None:
    assert issubclass(Declined, NotAnswered)
    declined = Conversation(page["handler"]).call(title="Fire").decline()
    assert declined.result["isError"]
    assert declined.text == "The user declined to answer: How urgent is 'Fire'?"
    cancelled = Conversation(page["handler"]).call(title="Fire").cancel()
    assert cancelled.text == "The user dismissed without answering: How urgent is 'Fire'?"


def test_a_declined_prompt_or_resource_is_an_error() -> None:
    @prompt
    def a_prompt(*, elicit: Elicit) -> str:
        """Ask."""
        return str(elicit("sure", "Sure?", Ok).ok)

    @resource("things://all")
    def a_resource(*, elicit: Elicit) -> str:
        """Ask."""
        return str(elicit("sure", "Sure?", Ok).ok)

    told = {"code": -32602, "message": "The user declined to answer: Sure?"}
    assert Conversation(serve(a_prompt)).call().decline().error == told
    assert Conversation(serve(a_resource)).read("things://all").decline().error == told


def test_decline_cancel_and_accept_are_distinct_outcomes(page: dict[str, Any]) -> None:
    def asked() -> Conversation:
        return Conversation(serve(page["rename"])).call(old="Rex")

    assert asked().accept(name="Max").text == "Rex is called Max now."
    assert asked().decline().text == "Rex keeps its name."
    assert asked().answer().asked == ["name"]
    cancelled = asked().cancel()
    assert (cancelled.text, cancelled.result["isError"]) == ("Nobody chose a name. Ask again later.", True)


# ---- Several things in one round


def test_questions_asked_together_take_one_round(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["plan"])).call(days=5)
    assert talk.messages == {"where": "Where to?", "when": "When?"}
    assert talk.accept(where={"city": "Rome"}).asked == ["when"]
    assert talk.accept(when={"month": "May"}).text == "5 days in Rome in May."


def test_a_declined_question_raises_after_the_others_are_answered(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["plan"])).call(days=5).decline("where")
    assert talk.asked == ["when"]
    assert talk.accept(when={"month": "May"}).text == "The user declined to answer: Where to?"


# ---- In the signature


def test_declared_questions_are_asked_together_before_the_function_runs(page: dict[str, Any]) -> None:
    assert list(page["close_bug"].describe()["inputSchema"]["properties"]) == ["bug"]
    talk = Conversation(serve(page["close_bug"])).call(bug=7)
    assert talk.messages == {"how": "How was bug 7 resolved?"}
    assert talk.accept(how="Fixed").text == "Bug 7 is closed: Fixed."

    ran = []

    @tool
    def both(*, one: Annotated[Ok, Ask("One?")], two: Annotated[Ok, Ask("Two?")]) -> str:
        """Ask two things."""
        ran.append((one, two))
        return "done"

    talk = Conversation(serve(both)).call()
    assert (talk.asked, ran) == (["one", "two"], [])
    assert talk.accept(one=YES, two=YES).text == "done"
    assert ran == [(Ok(ok=True), Ok(ok=True))]


def test_an_optional_declared_question_gives_none() -> None:
    @tool
    def perhaps(*, sure: Annotated[Ok | None, Ask("Sure?")]) -> str:
        """Ask."""
        return repr(sure)

    assert Conversation(serve(perhaps)).call().accept(sure=YES).text == "Ok(ok=True)"
    assert Conversation(serve(perhaps)).call().decline().text == "None"
    assert Conversation(serve(perhaps)).call().cancel().text == "None"


# ---- A page


def test_a_page_is_asked_until_the_author_sees_its_outcome(page: dict[str, Any]) -> None:
    agreed = {"sign-in": {"action": "accept"}}
    talk = Conversation(serve(page["repositories"])).call(user="ada")
    assert talk.requests["sign-in"]["params"]["url"] == "https://forge.example/login"
    assert talk.answer(**agreed).asked == ["sign-in"]
    page["CONNECTED"].add("ada")
    assert talk.answer(**agreed).text == "ada has 3 repositories."


def test_the_answer_to_a_url_question_has_no_content() -> None:
    heard: list[object] = []

    @tool
    def sign_in(*, elicit: Elicit) -> str:
        """Ask to sign in."""
        heard.append(elicit.url("sign-in", "Please sign in", "https://forge.example/login"))  # type: ignore[func-returns-value]
        return "welcome"

    talk = Conversation(serve(sign_in)).call()
    talk.answer(**{"sign-in": {"action": "accept", "content": {"password": "hunter2"}}})
    assert (talk.text, heard) == ("welcome", [None])


def test_a_form_that_asks_for_a_secret_is_refused() -> None:
    class Login(BaseModel):
        api_key: str

    def log_in(*, login: Any) -> str:  # noqa: ANN401 - declared below, with a class of this test
        return str(login)

    log_in.__annotations__["login"] = Annotated[Login, Ask("Your key?")]
    with pytest.raises(TypeError, match="a form is no place for secrets"):
        tool(log_in)


# ---- The client's model, and its folders


def test_sampling_and_roots_are_asked_like_a_question(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["describe_workspace"])).call()
    assert talk.requests == {"roots": {"method": "roots/list", "params": {}}}
    talk.answer(roots={"roots": [{"uri": "file:///home/ada"}]})
    said = talk.requests["summary"]["params"]["messages"]
    assert said == [{"role": "user", "content": {"type": "text", "text": "Describe in a sentence: file:///home/ada"}}]
    message = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "A home."}}
    assert talk.answer(summary=message).text == "A home."


def test_possible_shows_the_clients_capabilities(page: dict[str, Any]) -> None:
    roots_only = Conversation(serve(page["describe_workspace"]), capabilities={"roots": {}}).call()
    assert roots_only.answer(roots={"roots": [{"uri": "file:///a"}]}).text == "file:///a"
    nothing = Conversation(serve(page["describe_workspace"]), capabilities={}).call()
    assert (nothing.status, nothing.result["isError"]) == (200, True)
    assert "It asks: the client's roots." in nothing.text

    @tool
    def can(*, elicit: Elicit) -> str:
        """Return the client's capabilities."""
        return f"forms {elicit.possible}, pages {elicit.url_possible}"

    forms_only = Conversation(serve(can), capabilities={"elicitation": {}}).call()
    assert forms_only.text == "forms True, pages False"


# ---- Loops, and questions that depend on data


def test_each_question_in_a_loop_has_its_own_key(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["split_bill"])).call(euros=90).accept(people=2)
    assert talk.messages == {"guest-1": "Who is guest 1?", "guest-2": "Who is guest 2?"}
    talk.accept(**{"guest-1": "Ada", "guest-2": "Bob"})
    assert talk.text == "45.00 EUR each: Ada, Bob."


def test_a_conversation_that_always_asks_ends_at_the_limit_of_rounds() -> None:
    @tool
    def curious(*, elicit: Elicit) -> str:
        """Ask for ever."""
        for number in itertools.count():
            elicit(f"question-{number}", f"Question {number}?", Ok)
        return "never"

    talk = Conversation(serve(curious)).call()
    while not talk.done:
        talk.accept(**dict.fromkeys(talk.asked, YES))
    assert talk.result["isError"]
    assert talk.text == "This conversation has used its 16 rounds. Start again."
    assert len(talk.rounds) == 17


def test_the_python_client_gives_up_after_ten_rounds() -> None:
    assert DEFAULT_INPUT_REQUIRED_MAX_ROUNDS == 10


def test_an_answer_to_one_price_does_not_count_for_another_price(page: dict[str, Any]) -> None:
    prices = [420]

    @tool
    def dear(*, elicit: Elicit) -> str:
        """Ask whether a price is right."""
        elicit("sure", f"Pay {prices[-1]} EUR?", Ok)
        return f"paid {prices[-1]}"

    talk = Conversation(serve(dear)).call()
    prices.append(900)
    talk.accept(sure=YES)
    assert talk.messages == {"sure": "Pay 900 EUR?"}
    assert talk.accept(sure=YES).text == "paid 900"

    def dearer(_item: str) -> Any:  # noqa: ANN401 - the page's own Offer
        return page["Offer"](number="A-1", euros=900)

    talk = Conversation(serve(page["buy"])).call(item="lamp")
    page["look_up"] = dearer  # too late: the state holds the text that the user saw
    dearer.__annotations__["return"] = page["Offer"]
    assert talk.accept(consent=True).text.endswith("for 280 EUR")


def test_a_question_that_changes_in_every_round_is_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def nervous(*, elicit: Elicit) -> str:
        """Ask something else in every round."""
        return str(elicit("sure", f"It is {random.random()}. Are you sure?", Ok).ok)  # noqa: S311 - any change will do

    talk = Conversation(serve(nervous)).call()
    for _ in range(2):
        assert talk.accept(sure=YES).asked == ["sure"]
    assert "the question 'sure' says something else in every round" in author_error(talk.accept(sure=YES))
