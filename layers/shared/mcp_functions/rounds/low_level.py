"""The low level: the author's function itself says which questions it asks, and what the next round gets.

A call that asks takes several requests, and a round is one of them:

    def book(city: str, *, answers: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
        seat = answers.accepted("seat", Seat)
        if seat is None:
            return InputRequiredResult({"seat": Question("Which seat?", Seat)}, Draft(city=city))
        return f"Booked {seat} in {state.value.city}."

    round 1    the function returns the question "seat" and a Draft; the client gets the Draft sealed (encrypted)
    round 2    the client sends the user's answer and the sealed Draft: `answers` and `state.value` have them

At the high level, `elicit` and `step` do this for the author.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.step_values import ADVICE, warn_of_loss
from mcp_functions.schemas import forms
from mcp_functions.schemas.forms import InvalidAnswer
from mcp_functions.schemas.type_reader import read_type
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from pydantic import BaseModel
    from typing_extensions import TypeForm

    from mcp_functions.protocol.errors import InputRequired
    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.asking import InputRequest
    from mcp_functions.rounds.round import Round

Answer = TypeVar("Answer")
State = TypeVar("State", bound="BaseModel")


class InputRequiredResult(NamedTuple):
    """The result of a low-level function that ends a round.

    Args:
        input_requests: the questions for the client by the author's keys; may be empty.
        request_state: the model for `RequestState.value` in the next round; the client gets it sealed.
    """

    input_requests: Mapping[str, InputRequest[Any]] = {}
    request_state: BaseModel | None = None

    def end_round(self, round_: Round) -> InputRequired:
        """Put the questions and the state into the round, end it, and return what the caller raises.

        "servers MUST include at least one of inputRequests or requestState" (basic/patterns/mrtr).

        Raises:
            DeveloperError: a question or the state breaks a rule.
        """
        if not self.input_requests and self.request_state is None:
            raise round_.failed(DeveloperError("an InputRequiredResult needs input_requests or a request_state"))
        try:
            for key, request in self.input_requests.items():
                _check_key(request.key, key)
                round_.questions.open_low_level(key, request.wire(key, camel_case=round_.options.camel_case))
            round_.record.state = None if self.request_state is None else _write_state(self.request_state, round_)
        except DeveloperError as error:
            round_.failed(error)
            raise
        return round_.interrupted()


class InputResponses(Capability, Mapping[str, "JSONObject"]):
    """The client's answers by key, to questions that an earlier round of this conversation asked.

    The sealed state has the questions. A response to any other key is in `unproven`.
    """

    needs_state = True
    asks = True
    low_level = True

    def __init__(self, round_: Round, *_types: object) -> None:
        """Keep the round. Every Mapping takes types in brackets; here they have no meaning."""
        super().__init__(round_)

    def __getitem__(self, key: str) -> JSONObject:
        """Return one answer: ElicitResult, CreateMessageResult or ListRootsResult."""
        oldest_first = list(self._round.record.answers[key].values())
        newest: JSONObject = copy_json(oldest_first[-1])
        return newest

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys that have an answer."""
        return iter(self._round.record.answers)

    def __len__(self) -> int:
        """Count the answers."""
        return len(self._round.record.answers)

    @property
    def unproven(self) -> dict[str, JSONObject]:
        """The responses to keys that this server did not ask: treat them like arguments, which a client may invent."""
        responses = self._round.request.responses
        return {key: copy_json(response) for key, response in responses.items() if key not in self}

    def accepted(self, key: str, form: TypeForm[Answer]) -> Answer | None:
        """Return the answer to a form as a value of its type; None if the user has not accepted, or it does not fit."""
        answer = self.get(key, {})
        if answer.get("action") != "accept":
            return None
        form_type = forms.read_form(form, key, camel_case=self._round.options.camel_case)
        try:
            return cast("Answer", form_type.accept(answer.get("content")))
        except InvalidAnswer:
            return None


class RequestState(Capability, Generic[State]):
    """The state that this function kept in the previous round, as `request_state.value`; empty in the first round."""

    needs_state = True
    low_level = True

    def __init__(self, round_: Round, model: type[State]) -> None:
        """Read `value`, a model of the type in brackets; `InputRequiredResult(request_state=…)` keeps the next one."""
        super().__init__(round_)
        self.value = model()
        if round_.record.state is not None:
            # Another deployed version may have written other fields. A validator of the model (mode "before") may
            # convert them. If it raises or nothing does, the value stays empty; `InputResponses` has the answers.
            with suppress(ValueError, TypeError, LookupError, AttributeError):
                # Not strict: JSON has no dates and no sets, so a strict model would refuse what it wrote itself.
                self.value = model.model_validate_json(round_.record.state, strict=False, by_alias=True, by_name=True)

    @classmethod
    def check(cls, parameter: str, type_args: tuple[Any, ...]) -> None:
        """Check that the brackets have a model, and that every field of it has a default, or raise a TypeError."""
        if not type_args:
            raise TypeError(f"{parameter}: RequestState needs its model in brackets, as in RequestState[Draft]")
        (model,) = type_args
        try:
            model()
        except ValueError:
            raise TypeError(
                f"{parameter}: the first round begins with an empty {model.__name__}, so every field needs a default"
            ) from None
        read_type(model).check_recordable()


def _check_key(own: str, key: str) -> None:
    """Refuse a question whose own key is not that of `input_requests`, by which the client answers."""
    if own not in ("", key):
        rule = "a question has the key {own!r}, but input_requests names it {key!r}: leave its own key out"
        raise DeveloperError(rule, own=own, key=key)


def _write_state(state: BaseModel, round_: Round) -> str:
    """Write a model as JSON; DeveloperError if the next round could not read this JSON as the same model."""
    model = type(state).__name__
    try:
        written, is_whole = read_type(type(state)).record(state)
        text = dumps(written)
        if not is_whole:  # `record` has read it again otherwise
            type(state).model_validate_json(text, strict=False, by_alias=True, by_name=True)
    except (TypeError, ValueError, LookupError, AttributeError):
        rule = "request_state: a {model} that holds this cannot be read again from the JSON that it writes"
        raise DeveloperError(rule, model=model) from None  # the cause would quote the state
    if not is_whole:
        problem = f"request_state: the next round does not get an equal {model} from the record"
        warn_of_loss(problem, ADVICE, round_)
    return text
