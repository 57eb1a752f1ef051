"""Low-level functions: they read InputResponses and RequestState, and return an InputRequiredResult to ask.

These are the terms of the MCP specification. The function runs from its first line in every round, and decides itself
what to ask next. `RequestState[Model]` brings back the state that it returned. `talk_to(tool)` is the client:
`answer(…)` sends responses by key, with the encrypted state of the previous round.
"""

from __future__ import annotations

from datetime import date  # noqa: TC003 - read at run time, from annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, computed_field, model_validator

from mcp_functions import Elicit, Question, RootsQuestion, SampleQuestion, Step, serve, tool
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState
from mcp_functions.protocol.errors import InputRequired
from mcp_functions.rounds.input_requests import fingerprint
from mcp_functions.rounds.round import History, Round, RoundRequest
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from mcp_functions.handlers.base import Handler
    from tests.rounds.conftest import AuthorError


class Name(BaseModel):
    name: str


def ask_name() -> InputRequiredResult:
    return InputRequiredResult({"name": Question("Who?", Name)})


# The responses to the questions.


def test_input_responses_are_a_mapping_by_key() -> None:
    @tool
    def ask_three(*, responses: InputResponses) -> str | InputRequiredResult:
        requests = {
            "name": Question("Who?", Name),
            "roots": RootsQuestion(),
            "model": SampleQuestion("Well?", 9),
        }
        missing = {key: request for key, request in requests.items() if key not in responses}
        return InputRequiredResult(missing) if missing else str(sorted(responses.items()))

    talk = talk_to(ask_three).call()
    assert talk.asked == ["name", "roots", "model"]
    assert talk.answer(roots={"roots": []}).asked == ["name", "model"]
    talk.answer(model={"any": "thing"}, name={"action": "decline"})
    assert talk.text == "[('model', {'any': 'thing'}), ('name', {'action': 'decline'}), ('roots', {'roots': []})]"


def test_types_in_the_brackets_of_input_responses_have_no_meaning() -> None:
    @tool
    def ask(*, responses: InputResponses[str, Name]) -> str | InputRequiredResult:  # type: ignore[type-arg]
        return responses["name"]["action"] if responses else ask_name()

    assert talk_to(ask).call().answer(name={"action": "decline"}).text == "decline"


def test_responses_without_a_question_are_unproven() -> None:
    @tool
    def ask(*, responses: InputResponses) -> str | InputRequiredResult:
        return str(responses.unproven) if "name" in responses else ask_name()

    talk = talk_to(ask).call().answer(name={"action": "decline"}, other={"surprise": 1})
    assert talk.text == "{'other': {'surprise': 1}}"


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"action": "accept", "content": {"name": "Ann"}}, "name='Ann'"),
        ({"action": "accept", "content": {"name": 7}}, "None"),
        ({"action": "accept"}, "None"),
        ({"action": "decline"}, "None"),
        ({"action": "cancel"}, "None"),
        ({}, "None"),
    ],
)
def test_an_accepted_form_is_a_model_and_anything_else_is_none(response: dict[str, Any], text: str) -> None:
    @tool
    def ask(*, responses: InputResponses) -> str | InputRequiredResult:
        return str(responses.accepted("name", Name)) if "name" in responses else ask_name()

    assert talk_to(ask).call().answer(name=response).text == text


def test_a_reader_may_be_stricter_than_the_form() -> None:
    class Initials(BaseModel):
        name: Annotated[str, Field(pattern="^[A-Z]+$")]

    @tool
    def ask(*, responses: InputResponses) -> str | InputRequiredResult:
        initials = responses.accepted("name", Initials)
        return initials.name if initials else ask_name()

    talk = talk_to(ask).call().accept(name="Ann")
    assert talk.asked == ["name"]
    assert talk.accept(name="AB").text == "AB"


def test_a_form_may_be_the_type_of_one_value() -> None:
    seats = Literal["window", "aisle"]

    @tool
    def sit(*, responses: InputResponses) -> str | InputRequiredResult:
        seat = responses.accepted("seat", seats)
        return seat or InputRequiredResult({"seat": Question("Where?", seats)})

    talk = talk_to(sit).call().accept(seat="roof")
    assert talk.requests["seat"]["params"]["requestedSchema"]["properties"] == {
        "seat": {"type": "string", "enum": ["window", "aisle"]}
    }
    assert talk.accept(seat="aisle").text == "aisle"


def test_a_question_asked_again_needs_a_new_answer() -> None:
    @tool
    def ask(*, responses: InputResponses) -> str | InputRequiredResult:
        name = responses.accepted("name", Name)
        return name.name if name else ask_name()

    talk = talk_to(ask).call().decline()
    assert talk.asked == ["name"]
    assert talk.accept(name="Ann").text == "Ann"


def test_changing_a_response_leaves_the_request_unchanged() -> None:
    sent = {"asked": {"roots": ["a"]}, "unasked": {"roots": ["b"]}}
    round_ = Round(RoundRequest(responses=sent), History(asked={"asked": fingerprint(RootsQuestion().wire())}))
    responses = InputResponses(round_)
    responses["asked"]["roots"].clear()
    responses.unproven["unasked"]["roots"].clear()
    assert sent == {"asked": {"roots": ["a"]}, "unasked": {"roots": ["b"]}}
    assert responses["asked"] == {"roots": ["a"]}


# The result that asks.


def test_results_that_ask_the_same_are_equal() -> None:
    def ask(message: str) -> InputRequiredResult:
        requests = {
            "name": Question(message, Name),
            "model": SampleQuestion(message, 9),
            "roots": RootsQuestion(),
        }
        return InputRequiredResult(requests, Name(name="Ann"))

    assert ask("Who?") == ask("Who?")
    assert ask("Who?") != ask("Whom?")


def test_requests_that_ask_the_same_have_the_same_hash() -> None:
    assert len({Question("Who?", Name), Question("Who?", Name), RootsQuestion()}) == 2


@pytest.mark.parametrize("key", ["", "name"])
def test_a_question_may_repeat_its_key(key: str) -> None:
    @tool
    def ask(*, responses: InputResponses) -> str | InputRequiredResult:
        name = responses.accepted("name", Name)
        return name.name if name else InputRequiredResult({"name": Question("Who?", Name, key=key)})

    assert talk_to(ask).call().accept(name="Ann").text == "Ann"


def test_a_question_may_not_have_another_key(author_error: AuthorError) -> None:
    @tool
    def ask(*, responses: InputResponses) -> str | InputRequiredResult:
        return "unreached" if responses else InputRequiredResult({"name": Question("Who?", Name, key="who")})

    rule = "a question has the key 'who', but input_requests names it 'name': leave its own key out"
    assert author_error(talk_to(ask).call()) == rule


def test_a_result_needs_questions_or_a_state(author_error: AuthorError) -> None:
    @tool
    def ask(*, responses: InputResponses) -> str | InputRequiredResult:
        return "unreached" if responses else InputRequiredResult()

    assert author_error(talk_to(ask).call()) == "an InputRequiredResult needs input_requests or a request_state"


# The state of the function.


class Draft(BaseModel):
    where: str | None = None
    rounds: int = 0


@tool
def plan(*, responses: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
    """Plan a trip, and count the rounds."""
    draft = state.value
    draft.rounds += 1
    place = responses.accepted("where", Name)
    if place:
        return f"{place.name} after {draft.rounds} rounds"
    return InputRequiredResult({"where": Question("Where to?", Name)}, draft)


def test_a_state_comes_back_as_its_model() -> None:
    talk = talk_to(plan).call().answer().answer()
    assert talk.accept(where="Lisbon").text == "Lisbon after 4 rounds"


def test_a_repeated_round_begins_with_the_same_state() -> None:
    talk = talk_to(plan).call().answer().retry().retry()
    assert talk.accept(where="Lisbon").text == "Lisbon after 3 rounds"


def test_a_state_is_encrypted() -> None:
    assert "rounds" not in talk_to(plan).call().state


def test_a_function_may_return_a_state_without_a_question() -> None:
    @tool
    def count(*, state: RequestState[Draft]) -> str | InputRequiredResult:
        state.value.rounds += 1
        return "done" if state.value.rounds == 2 else InputRequiredResult(request_state=state.value)

    talk = talk_to(count).call()
    assert not talk.done
    assert talk.asked == []
    assert talk.answer().text == "done"


def test_a_question_without_a_state_ends_the_earlier_state() -> None:
    @tool
    def ask(*, responses: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
        if responses:
            return f"{state.value.rounds} rounds"
        return ask_name() if state.value.rounds else InputRequiredResult(request_state=Draft(rounds=1))

    assert talk_to(ask).call().answer().accept(name="Ann").text == "0 rounds"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    day: date | None = None
    tags: set[str] = set()


class Aliased(BaseModel):
    where: str | None = Field(default=None, alias="whereTo")


class Nested(BaseModel):
    drafts: dict[str, list[Draft]] = {}


class WithComputedField(BaseModel):
    """Writes a field that it does not accept."""

    model_config = ConfigDict(extra="forbid")

    where: str = ""

    @computed_field
    def length(self) -> int:
        return len(self.where)


class TwoNames(BaseModel):
    number: int = Field(default=0, validation_alias=AliasChoices("id", "ident"), serialization_alias="no")


def write_state(state: BaseModel) -> dict[str, Any]:
    """Return the record of a round that ended with this state."""
    round_ = Round()
    with pytest.raises(InputRequired):
        InputRequiredResult(request_state=state).end_round(round_)
    return round_.next_record()


@pytest.mark.parametrize(
    "state",
    [
        Strict.model_validate_json('{"day": "2027-01-02", "tags": ["a"]}'),
        Aliased(whereTo="Lisbon"),
        Nested(drafts={"x": [Draft(where="Lisbon")]}),
        WithComputedField(where="Lisbon"),
        TwoNames.model_validate({"id": 7}),
        Draft(where="x" * 4096),
    ],
    ids=lambda state: type(state).__name__,
)
def test_any_model_that_fits_json_is_read_as_it_was_written(state: BaseModel) -> None:
    record = write_state(state)
    assert RequestState(Round(history=History(record=record)), type(state)).value == state


class Migrating(BaseModel):
    notes: list[Any] = []

    @model_validator(mode="before")
    @classmethod
    def rename_words(cls, data: Any) -> Any:  # noqa: ANN401 - the JSON of the state
        for note in data.get("notes", []):
            note["text"] = note.pop("words", note.get("text"))
        return data


def test_a_validator_that_changes_the_state_changes_no_record() -> None:
    record = {"state": '{"notes":[{"words":"kept"}]}'}
    for _ in range(2):
        state = RequestState(Round(history=History(record=record)), Migrating).value
        assert state.notes.pop() == {"text": "kept"}
    assert record["state"] == '{"notes":[{"words":"kept"}]}'


class WithObject(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    thing: object = None


class Measured(BaseModel):
    metres: float = 0.0
    feet: float | None = 0.0


class Listed(BaseModel):
    levels: list[Any] = []


def nest(levels: int) -> list[Any]:
    """Return a list of a list of a list, and so on."""
    return [nest(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(WithObject(thing=object()), id="an object"),
        pytest.param(Measured(metres=float("nan")), id="NaN, which JSON lacks"),
        pytest.param(Measured(feet=float("nan")), id="NaN, which JSON writes as null"),
        pytest.param(Listed(levels=nest(200)), id="too many levels"),
        pytest.param(Listed(levels=["\ud800"]), id="half of a surrogate pair"),
    ],
)
def test_a_state_that_could_not_be_read_again_is_refused(state: BaseModel, author_error: AuthorError) -> None:
    @tool
    def write(*, responses: InputResponses) -> str | InputRequiredResult:
        return "unreached" if responses else InputRequiredResult(request_state=state)

    name = type(state).__name__
    expected = f"request_state: a {name} that holds this cannot be read again from the JSON that it writes"
    assert author_error(talk_to(write).call()) == expected


def test_a_recorded_step_that_is_too_deep_is_refused(author_error: AuthorError) -> None:
    @tool
    def reserve(*, elicit: Elicit, step: Step) -> str:
        step("reserve", nest, 300)
        return elicit("name", "Who?", str)

    assert author_error(talk_to(reserve).call()) == "the state is nested deeper than 200"


# A new version of a function reads the state that an old one returned.


class MigratedDraft(BaseModel):
    """Reads the older draft with a validator."""

    place: str | None = None
    rounds: int = 0

    @model_validator(mode="before")
    @classmethod
    def migrate(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {"place": data["where"], "rounds": data["rounds"]} if "where" in data else data


class StrictDraft(BaseModel):
    """Does not accept the fields of the older draft."""

    model_config = ConfigDict(extra="forbid")

    rounds: int = 0


class FailingDraft(BaseModel):
    """Has a validator that fails with a KeyError."""

    rounds: int = 0

    @model_validator(mode="before")
    @classmethod
    def migrate(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {"rounds": data["visited"]} if data else data


def plan_version(model: type[BaseModel]) -> Handler[..., Any]:
    """Make a version of `plan` whose state is this model."""

    def plan(*, responses: InputResponses, state: Any) -> str | InputRequiredResult:  # noqa: ANN401 - see below
        state.value.rounds += 1
        return f"{state.value.rounds} rounds, {len(responses)} answers"

    plan.__annotations__["state"] = RequestState[model]  # type: ignore[valid-type]  # as if it stood there
    return tool(plan)


@pytest.mark.parametrize(
    ("model", "rounds"),
    [
        pytest.param(MigratedDraft, 3, id="migrated"),
        pytest.param(StrictDraft, 1, id="begun anew"),
        pytest.param(FailingDraft, 1, id="begun anew after an error"),
    ],
)
def test_a_state_of_another_shape_is_migrated_or_begun_anew(model: type[BaseModel], rounds: int) -> None:
    talk = talk_to(plan).call().answer()
    talk.upgrade(serve(plan_version(model))).accept(where="Lisbon")
    assert talk.text == f"{rounds} rounds, 1 answers"


def test_a_new_version_gets_the_answer_to_the_old_one() -> None:
    @tool(name="plan")
    def newer(*, responses: InputResponses) -> str | InputRequiredResult:
        requests = {"where": Question("Where to?", Name), "who": Question("Who?", Name)}
        missing = {key: request for key, request in requests.items() if key not in responses}
        return InputRequiredResult(missing) if missing else f"{len(responses)} answers"

    talk = talk_to(plan).call().upgrade(serve(newer)).accept(where="Lisbon")
    assert talk.asked == ["who"]
    assert talk.accept(who="Ann").text == "2 answers"
