"""The low level: an author's function ends its round itself, and keeps a state of its own.

    round 1    the function returns InputRequiredResult(questions, request_state)
    round 2    it gets the answers in InputResponses, and the state in RequestState

A round is one request of the conversation with a client. At the high level, `elicit` and `step` do this for the author.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.schemas import forms
from mcp_functions.schemas.forms import InvalidAnswer
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import Self

    from pydantic import BaseModel
    from typing_extensions import TypeForm

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

    input_requests: Mapping[str, InputRequest] = {}
    request_state: BaseModel | None = None


class InputResponses(Capability, Mapping[str, "JSONObject"]):
    """The client's answers by key, for the questions that the sealed state proves."""

    needs_state = True
    asks = True
    low_level = True

    def __getitem__(self, key: str) -> JSONObject:
        """Return one answer: ElicitResult, CreateMessageResult or ListRootsResult."""
        answers = list(self._round.record.answers[key].values())  # there are several if the question was reworded
        answer: JSONObject = copy_json(answers[-1])
        return answer

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys that have an answer."""
        return iter(self._round.record.answers)

    def __len__(self) -> int:
        """Count the answers."""
        return len(self._round.record.answers)

    @property
    def unproven(self) -> dict[str, JSONObject]:
        """Other responses of the client. They answer no question of this server, so treat them as arguments."""
        responses = self._round.request.responses
        return {key: copy_json(response) for key, response in responses.items() if key not in self}

    def accepted(self, key: str, form: TypeForm[Answer]) -> Answer | None:
        """Return an accepted form; None if it is missing, was declined or cancelled, or does not fit."""
        answer = self.get(key, {})
        if answer.get("action") != "accept":
            return None
        asked = forms.read_form(form, key, camel_case=self._round.request.camel_case)
        try:
            return cast("Answer", asked.accept(answer.get("content")))
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
            # Another deployed version may have written the state with other fields. The model may migrate them in a
            # validator of mode "before". Otherwise the state starts empty, and the recorded answers still count.
            with suppress(ValueError, TypeError, LookupError, AttributeError):
                # JSON has no dates or sets, so even a strict model reads them from text and lists.
                self.value = model.model_validate_json(round_.record.state, strict=False)

    @classmethod
    def check(cls, parameter: str, args: tuple[Any, ...]) -> None:
        """Refuse a RequestState without a model, or whose model has no empty instance for the first round."""
        if not args:
            message = f"{parameter}: RequestState needs its model in brackets, as in RequestState[Draft]"
            raise TypeError(message)
        (model,) = args
        try:
            model()
        except ValueError:
            message = (
                f"{parameter}: the first round begins with an empty {model.__name__}, so every field needs a default"
            )
            raise TypeError(message) from None

    @classmethod
    def for_round(cls, round_: Round, args: tuple[Any, ...]) -> Self:
        """Read the state as the model in brackets."""
        return cls(round_, *args)
