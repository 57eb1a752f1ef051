"""The low level: an author's function itself ends its round, and chooses what the next round gets.

    round 1    the function returns InputRequiredResult(questions, request_state); `end_round` puts both into the record
    round 2    it gets the answers in InputResponses, and the state in RequestState

A round is one request of the conversation with a client. At the high level, `elicit` and `step` do this for the author.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.protocol.json_writer import dumps
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

MAX_CHECKED_CHARS = 4096  # a longer state is not read again as a check: that takes as long as the rest of the round


class InputRequiredResult(NamedTuple):
    """The result of a low-level function that ends a round.

    Args:
        input_requests: the questions for the client by the author's keys; may be empty.
        request_state: the model for `RequestState.value` in the next round; the client gets it sealed.
    """

    input_requests: Mapping[str, InputRequest] = {}
    request_state: BaseModel | None = None

    def end_round(self, round_: Round) -> NoReturn:
        """End the round of the function that returned this result.

        "servers MUST include at least one of inputRequests or requestState" (basic/patterns/mrtr).
        """
        if not self.input_requests and self.request_state is None:
            round_.fail("an InputRequiredResult needs input_requests or a request_state")
        try:
            for key, request in self.input_requests.items():
                round_.questions.open_low_level(key, request.wire(key, camel_case=round_.request.camel_case))
            round_.record.state = None if self.request_state is None else _write_state(self.request_state)
        except DeveloperError as error:
            round_.keep_error(error)
            raise
        round_.end()


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


def _write_state(state: BaseModel) -> str:
    """Write a function's model as JSON, and check that the next round can read it again.

    A long state is not checked, to save time. A model that cannot be read again fails with short states, too, so its
    author sees the error soon.
    """
    options: Any = {"by_alias": True, "warnings": False}  # a warning would quote the state in the log
    try:
        text = state.model_dump_json(**options)
        if "null" in text:  # pydantic writes NaN and infinity as null, too; `dumps` refuses them
            dumps(state.model_dump(mode="json", **options))
        if len(text) <= MAX_CHECKED_CHARS:
            type(state).model_validate_json(text, strict=False)
    except (TypeError, ValueError, LookupError, AttributeError):
        rule = "request_state: a {model} that holds this cannot be read again from the JSON that it writes"
        raise DeveloperError(rule, model=type(state).__name__) from None  # the cause would quote the state
    return text
