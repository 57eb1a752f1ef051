"""The low level: a function returns InputRequiredResult, and reads InputResponses and RequestState in the next round.

The three request classes mirror the specification's; `wire()` writes the message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.input_requests import form_request, roots_request, sampling_request, url_request
from mcp_functions.schemas import forms
from mcp_functions.schemas.forms import InvalidAnswer
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from pydantic import BaseModel
    from typing_extensions import TypeForm

    from mcp_functions.protocol.wire_types import InputRequest as WireRequest
    from mcp_functions.protocol.wire_types import JSONObject, Model
    from mcp_functions.rounds.round import Round

Answer = TypeVar("Answer")
State = TypeVar("State", bound="BaseModel")


class InputRequest:
    """One of the three requests that a server may make: ElicitRequest, CreateMessageRequest or ListRootsRequest."""

    def __eq__(self, other: object) -> bool:
        """Compare with another request, for unit tests."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Hash the type only, because options are a dict."""
        return hash(type(self))

    def wire(self, key: str = "answer", *, camel_case: bool = False) -> WireRequest:
        """Return the message of the specification."""
        raise NotImplementedError


class ElicitRequest(InputRequest):
    """Asks the user to fill in a form, or (`ElicitRequest.url`) to open a page (client/elicitation)."""

    def __init__(self, message: str, form: TypeForm[Any] | None, page: str | None = None) -> None:
        """Take the message, and the form to fill in or the page to open."""
        self.message = message
        self.form = form
        self.page = page

    @classmethod
    def url(cls, message: str, url: str) -> ElicitRequest:
        """Ask the user to open `url`. An accept is consent to open it, not completion of what happens there."""
        return cls(message, None, url)

    def wire(self, key: str = "answer", *, camel_case: bool = False) -> WireRequest:
        """Return the ElicitRequest of the specification."""
        if self.form is None:
            return url_request(self.message, self.page or "")
        return form_request(self.message, forms.read_form(self.form, key, camel_case=camel_case))


class CreateMessageRequest(InputRequest):
    """Asks the client's model (client/sampling).

    Args:
        messages: the conversation, as dicts or as SamplingMessage objects of the official SDK; a string is one message
            of the user.
        max_tokens: the limit for the answer.
        options: the further params by their wire names: `systemPrompt`, `temperature`, `tools`, `toolChoice`, …
    """

    def __init__(
        self, messages: str | Sequence[JSONObject | Model], max_tokens: int, options: Mapping[str, Any] | None = None
    ) -> None:
        """Take the params of the request, under their names in Python."""
        self.messages = messages
        self.max_tokens = max_tokens
        self.options = options or {}

    def wire(self, key: str = "answer", *, camel_case: bool = False) -> WireRequest:  # noqa: ARG002 - the wire names are the protocol's
        """Return the CreateMessageRequest of the specification."""
        return sampling_request(self.messages, self.max_tokens, self.options)


class ListRootsRequest(InputRequest):
    """Asks the client which folders it works in (client/roots)."""

    def wire(self, key: str = "answer", *, camel_case: bool = False) -> WireRequest:  # noqa: ARG002 - one shape for all three
        """Return the ListRootsRequest."""
        return roots_request()


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
        return self._round.record.last_answer(key)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys that have an answer."""
        return iter(self._round.record.answered_keys())

    def __len__(self) -> int:
        """Count the answers."""
        return len(self._round.record.answered_keys())

    @property
    def unproven(self) -> dict[str, JSONObject]:
        """Other responses of the client. They answer no question of this server, so treat them as arguments."""
        return self._round.unproven_responses

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
    value: State  # a model of the type in brackets; `InputRequiredResult(request_state=…)` keeps it for the next round

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
        state = cls(round_)
        (model,) = args
        state.value = _read(model, round_.record.previous_state)
        return state


def _read(model: type[State], state: str | None) -> State:
    if state is None:
        return model()
    try:
        return model.model_validate_json(state, strict=False)  # JSON has no dates or sets
    except (ValueError, TypeError, LookupError, AttributeError):
        # Another deployed version wrote the state with other fields. The model may migrate them in a validator of mode
        # "before". Otherwise the state starts empty, and the recorded answers still count.
        return model()
