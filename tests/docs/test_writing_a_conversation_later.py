"""The page "Writing a conversation", on late answers, new versions of a function, and the low-level API."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, Question, Step, serve, tool
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState
from mcp_functions_harness.testing import Conversation
from tests.docs.stand_ins import FROZEN, YES, Ledger, Ok, Other

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.gateway import LambdaFunction


# ---- Waiting for people


def test_a_user_may_answer_after_days(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["request_leave"])).call(days=2).later(days=2, hours=23)
    talk.upgrade(serve(page["request_leave"]))  # a container that started a moment ago
    assert talk.accept(approval=True).text == "2 days off."
    patient = Conversation(page["handler"]).call(title="Fire").later(minutes=9)
    assert patient.accept(urgency={"urgency": "low"}).text == "Opened: Fire."


def test_a_late_answer_is_refused(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["request_leave"])).call(days=2).later(days=3)
    assert talk.accept(approval=True).error["message"] == FROZEN
    impatient = Conversation(page["handler"]).call(title="Fire").later(minutes=10)
    assert impatient.accept(urgency={"urgency": "low"}).error["message"] == FROZEN


@pytest.mark.parametrize(("options", "days"), [({}, 1 / 24), ({"answer_within": 86_400}, 6)])
def test_a_conversation_lasts_six_times_as_long_as_one_answer(options: dict[str, Any], days: float) -> None:
    @tool(**options)
    def curious(*, elicit: Elicit) -> str:
        """Ask for ever."""
        for number in itertools.count():
            elicit(f"question-{number}", f"Question {number}?", Ok)
        return "never"

    talk = Conversation(serve(curious)).call()
    for _ in range(6):
        talk.later(days=days * 0.16).accept(**dict.fromkeys(talk.asked, YES))
        assert not talk.done
    assert talk.later(days=days * 0.05).accept(**dict.fromkeys(talk.asked, YES)).done


# ---- Keeping a record of who was asked


def test_the_record_names_the_caller_and_the_answers(page: dict[str, Any]) -> None:
    talk = Conversation(page["audited"], principal="ada").call(days=2).accept(approval=True).retry()
    assert talk.text == "2 days off."
    asking, answered, again = page["TRAIL"]
    assert (asking.round, asking.handler, asking.asked) == (1, "request_leave", {"approval": "May I take 2 days off?"})
    assert asking.principal
    assert (answered.round, answered.flow, answered.answered) == (2, asking.flow, {"approval": "accept"})
    assert again == answered
    assert ": True" not in str(page["TRAIL"])
    for say, said in ((Conversation.decline, "decline"), (Conversation.cancel, "cancel")):
        say(Conversation(page["audited"]).call(days=2))
        assert page["TRAIL"][-1].answered == {"approval": said}


def test_the_client_gets_no_result_if_the_audit_fails(page: dict[str, Any]) -> None:
    def full(_said: object) -> None:
        raise OSError

    talk = Conversation(serve(page["request_leave"], audit=full)).call(days=2)
    assert (talk.status, talk.error["code"]) == (200, -32603)


# ---- Changing a function while people talk to it


def make_version(*keys: str, words: str = "{}?") -> LambdaFunction:
    @tool
    def links(*, elicit: Elicit) -> str:
        """Ask for accounts."""
        return ", ".join(elicit(key, words.format(key), Other).said for key in keys)

    return serve(links)


def test_a_new_version_asks_only_its_new_questions() -> None:
    talk = Conversation(make_version("github", "google", "orkut")).call()
    talk.accept(github={"said": "octocat"}).accept(google={"said": "googler"})
    talk.upgrade(make_version("github", "microsoft", "google"))
    assert talk.answer(orkut={"action": "accept", "content": {"said": "old"}}).asked == ["microsoft"]
    assert talk.accept(microsoft={"said": "bill"}).text == "octocat, bill, googler"


def test_only_a_question_with_a_new_message_is_asked_again() -> None:
    talk = Conversation(make_version("github", "google")).call().accept(github={"said": "octocat"})
    talk.upgrade(make_version("github", "google", words="Who are you at {}?"))
    assert talk.accept(google={"said": "googler"}).messages == {"github": "Who are you at github?"}


def test_alternating_versions_find_their_own_answers() -> None:
    old, new = make_version("github", "google"), make_version("github", "google", words="Who are you at {}?")
    talk = Conversation(old).call().accept(github={"said": "old github"})
    talk.upgrade(new).answer().accept(github={"said": "new github"})
    assert talk.messages == {"google": "Who are you at google?"}
    assert talk.upgrade(old).answer().messages == {"google": "google?"}
    assert talk.accept(google={"said": "old google"}).text == "old github, old google"
    assert talk.upgrade(new).answer().accept(google={"said": "new google"}).text == "new github, new google"


def test_a_new_step_runs_in_an_old_conversation(ledger: Ledger) -> None:
    def make_version(*items: str) -> LambdaFunction:
        @tool
        def look(*, elicit: Elicit, step: Step) -> str:
            """Look things up, and ask."""
            offers = [step(f"look-up-{item}", ledger.look_up, item) for item in items]
            elicit("sure", "Sure?", Ok)
            return ", ".join(offers)

        return serve(look)

    talk = Conversation(make_version("lamp", "sofa")).call().upgrade(make_version("sofa", "table")).accept(sure=YES)
    assert talk.text == "offer for sofa, offer for table"
    assert ledger.calls == ["lamp", "sofa", "table"]


class OfferOne(BaseModel):
    euros: int


class OfferTwo(BaseModel):
    euros: int
    currency: str = "EUR"


class OfferThree(BaseModel):
    euros: int
    currency: str


def test_a_recorded_result_gains_fields_with_defaults(author_error: Callable[[Conversation], str]) -> None:
    def make_version(offer: type[BaseModel]) -> LambdaFunction:
        def look_up() -> BaseModel:
            return offer.model_validate({"euros": 5, "currency": "EUR"})

        look_up.__annotations__["return"] = offer

        @tool
        def look(*, elicit: Elicit, step: Step) -> str:
            """Look something up, and ask."""
            found = step("look-up", look_up)
            elicit("sure", "Sure?", Ok)
            return repr(found)

        return serve(look)

    talk = Conversation(make_version(OfferOne)).call().upgrade(make_version(OfferTwo)).accept(sure=YES)
    assert talk.text == "OfferTwo(euros=5, currency='EUR')"
    talk = Conversation(make_version(OfferOne)).call().upgrade(make_version(OfferThree)).accept(sure=YES)
    assert "new fields need defaults" in author_error(talk)


def test_a_function_that_stops_asking_keeps_its_elicit_for_a_while() -> None:
    @tool
    def greet(*, elicit: Elicit) -> str:
        """Ask for a name."""
        return f"Hello, {elicit('name', 'Your name?', Other).said}."

    @tool(name="greet")
    def greet_all(*, elicit: Elicit) -> str:  # noqa: ARG001 - it keeps the right to open states
        """Ask no more."""
        return "Hello."

    @tool(name="greet")
    def greet_at_last() -> str:
        """Have no use for a key."""
        return "Hello."

    talk = Conversation(serve(greet)).call()
    assert talk.upgrade(serve(greet_all)).accept(name={"said": "Ada"}).text == "Hello."
    talk = Conversation(serve(greet)).call()
    assert talk.upgrade(serve(greet_at_last)).accept(name={"said": "Ada"}).error["message"] == FROZEN


# ---- The low level


def test_a_function_with_elicit_and_input_responses_is_refused() -> None:
    def both(*, elicit: Elicit, answers: InputResponses) -> str:
        return f"{elicit}{answers}"

    with pytest.raises(TypeError, match="does not ask inline"):
        tool(both)


def test_the_low_level_has_the_answers_of_all_rounds() -> None:
    seen = []

    @tool
    def low(*, answers: InputResponses) -> str | InputRequiredResult:
        """Ask one thing after the other."""
        seen.append((sorted(answers), sorted(answers.unproven)))
        missing = [key for key in ("one", "two") if not answers.accepted(key, Ok)]
        return InputRequiredResult({missing[0]: Question(f"{missing[0]}?", Ok)}) if missing else "done"

    accepted = {"action": "accept", "content": YES}
    talk = Conversation(serve(low)).call().answer(one=accepted, three=accepted).answer(two=accepted)
    assert talk.text == "done"
    assert seen == [([], []), (["one"], ["three"]), (["one", "two"], [])]


def test_accepted_returns_none_for_four_reasons(page: dict[str, Any]) -> None:
    def asked() -> Conversation:
        return Conversation(serve(page["find_city"])).call()

    assert asked().answer().asked == ["city"]
    assert asked().accept(city={"city": 7}).asked == ["city"]
    assert asked().decline().text == asked().cancel().text == "No city, then."

    @tool
    def stubborn(*, answers: InputResponses) -> str | InputRequiredResult:
        """Repeat the question when the user declines."""
        if answers.accepted("city", Other):
            return "thanks"
        return InputRequiredResult({"city": Question("Which city?", Other)})

    talk = Conversation(serve(stubborn)).call()
    while talk.asked:
        talk.decline()
    assert talk.text == "This conversation has used its 16 rounds. Start again."


def test_the_next_round_gets_the_typed_state_back(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["find_city"])).call().answer().accept(city={"city": "Rome"})
    assert talk.text == "Rome, after asking 2 times."

    class Strict(BaseModel):
        needed: int

    def strict(*, state: RequestState[Strict]) -> str:
        return str(state.value)

    strict.__annotations__["state"] = RequestState[Strict]  # a class of this test
    with pytest.raises(TypeError, match="every field needs a default"):
        tool(strict)


class Town(BaseModel):
    town: str | None = None


def keep_state(kept: BaseModel) -> LambdaFunction:
    """Another version of the page's `find_city`, which keeps something else."""

    @tool(name="find_city")
    def find(*, state: RequestState[Town]) -> str | InputRequiredResult:  # noqa: ARG001 - what it was does not matter
        """Keep a state, and ask."""
        return InputRequiredResult({"city": Question("Which city?", Other)}, kept)

    return serve(find)


def test_a_state_of_another_shape_is_migrated(page: dict[str, Any]) -> None:
    talk = Conversation(keep_state(Town(town="Rome"))).call().upgrade(serve(page["find_city"]))
    assert talk.answer().text == "Rome, after asking 1 times."


def test_a_state_that_cannot_be_read_is_reset(page: dict[str, Any]) -> None:
    class Odd(BaseModel):
        attempts: str = "many"

    talk = Conversation(keep_state(Odd())).call().upgrade(serve(page["find_city"]))
    assert talk.accept(city={"city": "Rome"}).text == "Rome, after asking 0 times."
