"""The specification's own words, for functions that return InputRequiredResult: what was answered, what was kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.round import revive
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
    """The client's answers by key, as far as the sealed state proves that they were asked for.

    Attributes:
        unproven: what the client sent beyond that. It never answers a question of this server: treat it as an argument.

    """

    asks = True
    low_level = True

    def __getitem__(self, key: str) -> JSONObject:
        """Return one answer as it came: ElicitResult, CreateMessageResult or ListRootsResult."""
        answer: JSONObject = self._round.proven_answer(key)
        return answer

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys that have an answer."""
        return iter(self._round.proven)

    def __len__(self) -> int:
        """Count the answers."""
        return len(self._round.proven)

    @property
    def unproven(self) -> dict[str, JSONObject]:
        """Answers to nothing that this server can prove it asked."""
        return self._round.unproven

    def accepted(self, key: str, form: TypeForm[Answer]) -> Answer | None:
        """Return an accepted form; None if it is missing, was declined or cancelled, or does not fit."""
        answer = self.get(key, {})
        if answer.get("action") != "accept":
            return None
        try:
            accepted: Answer = forms.read_form(form, key, camel_case=self._round.camel_case).accept(
                answer.get("content")
            )
        except InvalidAnswer:
            return None
        return accepted


class RequestState(Capability, Generic[State]):
    """What this function kept in the last round, `request_state.value`; a new one in the first.

    Attributes:
        value: a model of the type in brackets. Return it in `InputRequiredResult(request_state=…)` to keep it.

    """

    asks = True
    low_level = True
    value: State

    @classmethod
    def of(cls, round_: Round, args: tuple[Any, ...]) -> Self:
        """Open the state of one round as the model in brackets."""
        made = cls(round_)
        (model,) = args
        made.value = _read(model, round_.state)
        return made


def _read(model: type[State], state: str | None) -> State:
    if state is None:
        return model()
    try:
        return revive(model, state)
    except (ValueError, TypeError, LookupError, AttributeError):
        # A state of another shape, from before or after a deployment. A model that knows how migrates it itself, in a
        # validator of mode "before" (which may meet shapes that it does not know either); otherwise what was answered
        # still counts, and the rest begins anew.
        return model()
