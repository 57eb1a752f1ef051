"""Responses and state for functions that return InputRequiredResult (the low level)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.record import read_state
from mcp_functions.schemas import forms
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from typing import Self

    from pydantic import BaseModel
    from typing_extensions import TypeForm

    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.round import Round

Answer = TypeVar("Answer")
State = TypeVar("State", bound="BaseModel")


class InputResponses(Capability, Mapping[str, "JSONObject"]):
    """The client's answers by key, for the questions that the sealed state proves."""

    needs_state = True
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
        try:
            accepted: Answer = forms.read_form(form, key, camel_case=self._round.request.camel_case).accept(
                answer.get("content")
            )
        except InvalidAnswer:
            return None
        return accepted


class RequestState(Capability, Generic[State]):
    """The state that this function kept in the previous round, `request_state.value`; a new one in the first.

    Attributes:
        value: a model of the type in brackets. Return it in `InputRequiredResult(request_state=…)` to keep it.

    """

    needs_state = True
    low_level = True
    value: State

    @classmethod
    def of(cls, round_: Round, args: tuple[Any, ...]) -> Self:
        """Read the state as the model in brackets."""
        state = cls(round_)
        (model,) = args
        state.value = _read(model, round_.record.previous_state)
        return state


def _read(model: type[State], state: str | None) -> State:
    if state is None:
        return model()
    try:
        return read_state(model, state)
    except (ValueError, TypeError, LookupError, AttributeError):
        # Another deployed version wrote the state with other fields. The model may migrate them in a validator of mode
        # "before". Otherwise the answers still count, and the state begins anew.
        return model()
