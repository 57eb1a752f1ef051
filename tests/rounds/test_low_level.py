"""The specification's own words: InputResponses, RequestState, InputRequiredResult."""

from __future__ import annotations

import json
from datetime import date  # noqa: TC003 - read at run time, from annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator

from mcp_functions import (
    CreateMessageRequest,
    Elicit,
    ElicitRequest,
    InputRequiredResult,
    InputResponses,
    ListRootsRequest,
    RequestState,
    Step,
    serve,
    tool,
)
from mcp_functions.protocol.errors import InputRequired
from mcp_functions.rounds.input_requests import fingerprint
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.seal.binding import Binding
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.request_state import RequestStates
from tests.support import wire
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.base import Handler
    from mcp_functions.testing import Conversation


class Name(BaseModel):
    name: str


class Draft(BaseModel):
    where: str | None = None
    day: date | None = None
    rounds: int = 0


ANN = {"name": "Ann"}
ROOTS = {"roots": [{"uri": "file:///a"}]}


# Answers.


@tool
def three_things(*, input_responses: InputResponses) -> str | InputRequiredResult:
    """Ask for three things at once."""
    asked = {
        "name": ElicitRequest("Who?", Name),
        "roots": ListRootsRequest(),
        "said": CreateMessageRequest("Well?", 9),
    }
    if missing := {key: request for key, request in asked.items() if key not in input_responses}:
        return InputRequiredResult(missing)
    return f"{len(input_responses)} {sorted(input_responses)} {input_responses['roots']['roots'][0]['uri']}"


def test_results_that_ask_the_same_are_equal() -> None:
    def asked(words: str) -> InputRequiredResult:
        requests = {
            "name": ElicitRequest(words, Name),
            "model": CreateMessageRequest(words, 9),
            "a": ListRootsRequest(),
        }
        return InputRequiredResult(requests, Draft())

    assert asked("Who?") == asked("Who?")
    assert asked("Who?") != asked("Whom?")
    assert len({ElicitRequest("Who?", Name), ElicitRequest("Who?", Name), ListRootsRequest()}) == 2


def test_input_responses_map_keys_to_answers() -> None:
    talk = talk_to(three_things).call()
    assert talk.asked == ["name", "roots", "said"]
    assert talk.answer(roots=ROOTS, other={"surprise": 1}).asked == ["name", "said"]
    assert talk.answer(said={"any": "thing"}, name={"action": "decline"}).text == (
        "3 ['name', 'roots', 'said'] file:///a"
    )


def test_answers_without_a_question_are_unproven() -> None:
    seen: list[dict[str, Any]] = []

    @tool
    def curious(*, input_responses: InputResponses) -> str | InputRequiredResult:
        seen.append(input_responses.unproven)
        return "done" if "name" in input_responses else InputRequiredResult({"name": ElicitRequest("Who?", Name)})

    talk = talk_to(curious).call()
    talk.answer(other={"surprise": 1}, name={"action": "accept", "content": ANN})
    assert seen == [{}, {"other": {"surprise": 1}}]


class Notes(BaseModel):
    lines: list[str] = []


def test_changing_answers_or_the_state_changes_no_record() -> None:
    read: list[str] = []

    @tool
    def spoils(*, answers: InputResponses, state: RequestState[Notes]) -> str | InputRequiredResult:
        for said in (answers, answers.unproven):
            for key in said:
                read.append(f"{key}: {said[key]}")
                said[key]["content"]["name"] = "spoilt"
        read.extend(f"{key}: {answers[key]}" for key in answers)
        read.append(str(state.value.lines))
        state.value.lines.append("spoilt")
        if len(answers) == 2:
            return "done"
        return InputRequiredResult({f"name-{len(answers)}": ElicitRequest("Who?", Name)}, Notes(lines=["kept"]))

    def answer() -> dict[str, Any]:
        return {"action": "accept", "content": dict(ANN)}

    talk = talk_to(spoils).call().answer(**{"name-0": answer(), "more": answer()})
    assert talk.answer(**{"name-1": answer()}).text == "done"
    first, second, more = (f"{key}: {answer()}" for key in ("name-0", "name-1", "more"))
    assert read == ["[]", first, more, first, "['kept']", first, second, first, second, "['kept']"]


def test_changing_an_answer_leaves_the_request_unchanged() -> None:
    sent = {"asked": {"roots": [{"uri": "file:///a"}]}, "more": {"roots": [{"uri": "file:///b"}]}}
    answers = InputResponses(
        Round(RoundRequest(responses=sent), asked={"asked": fingerprint(ListRootsRequest().wire())})
    )
    for said in (answers["asked"], answers.unproven["more"]):
        said["roots"].pop()["uri"] = "file:///spoilt"
    assert sent == {"asked": {"roots": [{"uri": "file:///a"}]}, "more": {"roots": [{"uri": "file:///b"}]}}
    assert (answers["asked"], answers.unproven["more"]) == (sent["asked"], sent["more"])


def test_a_reader_may_validate_an_answer_more_strictly_than_its_form() -> None:
    class Initials(BaseModel):
        name: Annotated[str, Field(pattern="^[A-Z]+$")]

    @tool
    def strict(*, input_responses: InputResponses) -> str | InputRequiredResult:
        if name := input_responses.accepted("name", Initials):
            return name.name
        return InputRequiredResult({"name": ElicitRequest("Your initials?", Name)})

    talk = talk_to(strict).call().accept(name={"name": "Ann"})
    assert talk.asked == ["name"]
    assert talk.accept(name={"name": "AB"}).text == "AB"


def test_a_form_may_be_the_type_of_one_value() -> None:
    @tool
    def sits(*, input_responses: InputResponses) -> str | InputRequiredResult:
        seat = input_responses.accepted("seat", Literal["window", "aisle"])
        return seat or InputRequiredResult({"seat": ElicitRequest("Where?", Literal["window", "aisle"])})

    talk = talk_to(sits).call().accept(seat="roof")
    assert talk.requests["seat"]["params"]["requestedSchema"]["properties"] == {
        "seat": {"type": "string", "enum": ["window", "aisle"]}
    }
    assert talk.accept(seat="aisle").text == "aisle"


@pytest.mark.parametrize(
    ("response", "found"),
    [
        ({"action": "accept", "content": ANN}, "Ann"),
        ({"action": "accept", "content": {"name": 7}}, "None"),
        ({"action": "accept"}, "None"),
        ({"action": "decline"}, "None"),
        ({"action": "cancel"}, "None"),
        ({}, "None"),
    ],
)
def test_an_accepted_form_is_a_model_and_anything_else_is_none(response: dict[str, Any], found: str) -> None:
    @tool
    def accepts(*, input_responses: InputResponses) -> str | InputRequiredResult:
        if "name" not in input_responses:
            return InputRequiredResult({"name": ElicitRequest("Who?", Name)})
        name = input_responses.accepted("name", Name)
        return str(name.name if name else None)

    assert talk_to(accepts).call().answer(name=response).text == found


def test_a_question_asked_again_needs_a_new_answer() -> None:
    @tool
    def insists(*, input_responses: InputResponses) -> str | InputRequiredResult:
        name = input_responses.accepted("name", Name)
        return name.name if name else InputRequiredResult({"name": ElicitRequest("Who?", Name)})

    talk = talk_to(insists).call().decline().answer(name={"action": "accept", "content": {}})
    assert talk.accept(name=ANN).text == "Ann"


# The state that a function keeps.


@tool
def planned(*, input_responses: InputResponses, request_state: RequestState[Draft]) -> str | InputRequiredResult:
    """Keep a draft."""
    draft = request_state.value
    draft.rounds += 1
    if name := input_responses.accepted("where", Name):
        draft.where = name.name
    if not draft.where:
        return InputRequiredResult({"where": ElicitRequest("Where to?", Name)}, draft)
    return f"{draft.where} after {draft.rounds} rounds"


def test_a_state_comes_back_as_its_model() -> None:
    talk = talk_to(planned).call().answer().answer()
    assert talk.accept(where={"name": "Lisbon"}).text == "Lisbon after 4 rounds"


def test_a_repeated_round_begins_with_the_state_it_began_with() -> None:
    talk = talk_to(planned).call().answer().retry().retry()
    assert talk.accept(where={"name": "Lisbon"}).text == "Lisbon after 3 rounds"


def test_a_state_travels_sealed() -> None:
    assert "rounds" not in talk_to(planned).call().state


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    day: date | None = None
    tags: set[str] = set()


class Aliased(BaseModel):
    where: str | None = Field(default=None, alias="whereTo")


class Nested(BaseModel):
    drafts: dict[str, list[Draft]] = {}


@pytest.mark.parametrize(
    "state",
    [
        Strict.model_validate_json('{"day": "2027-01-02", "tags": ["a"]}'),
        Aliased(whereTo="Lisbon"),
        Nested(drafts={"x": [Draft(where="Lisbon")]}),
    ],
    ids=lambda state: type(state).__name__,
)
def test_any_model_that_fits_json_is_read_as_it_was_written(state: BaseModel) -> None:
    round_ = Round()
    with pytest.raises(InputRequired):
        InputRequiredResult(request_state=state).end_round(round_)
    assert RequestState(Round(record=round_.next_record()), type(state)).value == state


class Unreadable(BaseModel):
    model_config = ConfigDict(extra="forbid")

    where: str = ""

    @computed_field
    def length(self) -> int:
        return len(self.where)


class Opaque(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    thing: object = None


class Measured(BaseModel):
    metres: float = 0.0
    feet: float | None = 0.0


class Listed(BaseModel):
    levels: list[Any] = []


def deep(levels: int) -> list[Any]:
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "state",
    [
        Unreadable(where="Lisbon"),
        Opaque(thing=object()),
        Measured(metres=float("nan")),
        Measured(feet=float("nan")),
        Listed(levels=deep(200)),
        Listed(levels=["\ud800"]),
    ],
    ids=["unreadable", "opaque", "nan", "nan, where null would do", "deep", "half of a pair"],
)
def test_a_state_that_could_not_be_read_again_is_refused_when_it_is_kept(
    state: BaseModel, author_error: Callable[[Conversation], str]
) -> None:
    @tool
    def keeps(*, input_responses: InputResponses) -> str | InputRequiredResult:
        return "done" if input_responses else InputRequiredResult(request_state=state)

    name = type(state).__name__
    expected = f"request_state: a {name} that holds this cannot be read again from the JSON that it writes"
    assert author_error(talk_to(keeps).call()) == expected


@tool
def steps_too_deep(*, elicit: Elicit, step: Step) -> str:
    """Record what no later round could read."""
    step("reserve", deep, 300)
    return elicit("name", "Who?", str)


def test_a_record_that_json_cannot_carry_is_a_result_that_names_the_rule(
    author_error: Callable[[Conversation], str],
) -> None:
    assert author_error(talk_to(steps_too_deep).call()) == "the state is nested deeper than 200"


class Migrating(BaseModel):
    notes: list[Any] = []

    @model_validator(mode="before")
    @classmethod
    def renamed(cls, data: Any) -> Any:  # noqa: ANN401 - whatever was kept
        for note in data.get("notes", []):
            note["text"] = note.pop("words", note.get("text"))
        return data


def test_a_validator_that_changes_what_it_reads_changes_no_record() -> None:
    round_ = Round()
    with pytest.raises(InputRequired):
        InputRequiredResult(request_state=Migrating.model_construct(notes=[{"words": "kept"}])).end_round(round_)
    left = round_.next_record()
    assert left["state"] == '{"notes":[{"words":"kept"}]}'
    for _ in range(2):
        read = RequestState(Round(record=left), Migrating).value
        assert read.notes.pop() == {"text": "kept"}


def test_the_model_alone_writes_and_reads_a_megabyte_of_state_once_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes: list[str] = []

    def counted(kind: type, name: str) -> None:
        made = getattr(kind, name)

        def count(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as what it stands for
            if len(str(args)) > 1_000_000:
                passes.append(name)
            return made(*args, **options)

        monkeypatch.setattr(kind, name, count)

    for kind, name in ((json.JSONEncoder, "iterencode"), (json.JSONDecoder, "decode")):
        counted(kind, name)
    for name in ("model_dump", "model_dump_json", "model_validate", "model_validate_json"):
        counted(Listed, name)
    bound = Binding("a/b/c", "tools/call", "keeps", "", None)
    states = RequestStates(CodecAdapter(wire.Boxes(), b""), anonymous=True)
    kept = Listed(levels=[{"id": row, "name": "x" * 100} for row in range(10_000)])

    round_ = Round()
    with pytest.raises(InputRequired):
        InputRequiredResult(request_state=kept).end_round(round_)
    token = states.seal(bound, None, asked={}, record=round_.next_record())
    assert passes == ["model_dump_json"]
    record = states.open(token, bound).record
    assert RequestState(Round(record=record), Listed).value == kept
    assert passes == ["model_dump_json", "model_validate_json"]


def test_a_result_that_requires_nothing_is_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def idle(*, input_responses: InputResponses) -> str | InputRequiredResult:
        return "done" if input_responses else InputRequiredResult()

    assert author_error(talk_to(idle).call()) == "an InputRequiredResult needs input_requests or a request_state"


# A state of another version.


class Later(BaseModel):
    place: str | None = None
    rounds: int = 0
    people: int = Field(default=1, ge=1)

    @model_validator(mode="before")
    @classmethod
    def migrate(cls, found: dict[str, Any]) -> dict[str, Any]:
        return {"place": found["where"], "rounds": found["rounds"]} if "where" in found else found


class Other(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rounds: int = 0
    stops: list[str] = []


class Clumsy(BaseModel):
    rounds: int = 0

    @model_validator(mode="before")
    @classmethod
    def migrate(cls, found: dict[str, Any]) -> dict[str, Any]:
        return {"rounds": len(found["visited"]["places"])} if found else found


class Both(BaseModel):
    kept: str = ""


def version(model: type[BaseModel], field: str) -> Handler[..., Any]:
    """Make a version of `planned` whose state has another shape."""

    def another(*, input_responses: InputResponses, request_state: Any) -> str | InputRequiredResult:  # noqa: ANN401
        state = request_state.value
        state.rounds += 1
        if name := input_responses.accepted("where", Name):
            return f"{name.name} {getattr(state, field)} after {state.rounds} rounds"
        return InputRequiredResult({"where": ElicitRequest("Where to?", Name)}, state)

    another.__annotations__["request_state"] = RequestState[model]  # type: ignore[valid-type]  # as if it stood there
    return tool(name="planned")(another)


@pytest.mark.parametrize(
    ("model", "field", "expected"),
    [
        (Later, "people", "Lisbon 1 after 3 rounds"),  # migrated by the model's own validator
        (Other, "stops", "Lisbon [] after 1 rounds"),  # begun anew
        (Clumsy, "rounds", "Lisbon 1 after 1 rounds"),  # a migration that fails begins anew as well
    ],
    ids=["migrated", "begun anew", "a migration that fails"],
)
def test_a_state_of_another_shape_is_migrated_or_reset_and_answers_are_kept(
    model: type[BaseModel], field: str, expected: str
) -> None:
    talk = talk_to(planned).call().answer()
    talk.upgrade(serve(version(model, field))).accept(where={"name": "Lisbon"})
    assert talk.text == expected


def test_an_answer_given_to_the_old_version_is_not_asked_for_again_by_the_new() -> None:
    @tool(name="planned")
    def newer(*, input_responses: InputResponses, request_state: RequestState[Both]) -> str | InputRequiredResult:
        wanted = {"where": ElicitRequest("Where to?", Name), "who": ElicitRequest("Who?", Name)}
        missing = {key: asked for key, asked in wanted.items() if not input_responses.accepted(key, Name)}
        if missing:
            return InputRequiredResult(missing, Both(kept=request_state.value.kept + "."))
        return " ".join(str(input_responses[key]["content"]["name"]) for key in wanted)

    talk = talk_to(planned).call().upgrade(serve(newer)).accept(where={"name": "Lisbon"})
    assert talk.asked == ["who"]
    assert talk.accept(who=ANN).text == "Lisbon Ann"
