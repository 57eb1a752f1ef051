"""One round of a multi round-trip request, by replay.

A handler runs from its first line in every round. Where it asks, the answer is there if an earlier round brought it;
otherwise the round ends with the question. An answer counts only if the sealed state shows that exactly this question
was asked (key and fingerprint); anything else is asked again, and nothing answered is lost. The engine does not know
who carries the state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_functions.errors import DeveloperError
from mcp_functions.forms import InvalidAnswer
from mcp_functions.input_requests import asked_again, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.input_requests import InputRequiredResult
    from mcp_functions.schema import InputRequest

Answered = TypeVar("Answered")


class InputRequired(BaseException):
    """Ends a round: `round.requests` says what the client has to answer first."""


@dataclass(slots=True)
class Round:
    """What is known in this round, and what it leaves for the next.

    Args:
        record: what earlier rounds left; `{}` in the first.
        asked: the questions that the sealed state proves were asked in the last round: key to fingerprint.
        responses: `inputResponses` as the client sent them, claims until proven.
        camel_case: whether forms go to the wire in camelCase.
        meta: `_meta` of the request: where progress goes, and which log messages are wanted.
        requests: what the client has to answer before the next round.
        notifications: what goes to the client before the result.

    """

    record: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    responses: Mapping[str, Any] = field(default_factory=dict)
    camel_case: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    requests: dict[str, InputRequest] = field(default_factory=dict)
    notifications: list[dict[str, Any]] = field(default_factory=list)
    _answers: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _seen: dict[str, str] = field(default_factory=dict)
    _state: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Take over every proven answer at once, so that none is lost if this round ends before it is read."""
        proven = {key: (print_, self.responses[key]) for key, print_ in self.asked.items() if key in self.responses}
        kept = {key: (print_, response) for key, (print_, response) in self.record.get("answers", {}).items()}
        self._answers = {**proven, **kept}  # a later answer never replaces an accepted one

    @property
    def proven(self) -> dict[str, Any]:
        """The answers to questions that the sealed state shows were asked."""
        return {key: response for key, (_print, response) in self._answers.items()}

    @property
    def unproven(self) -> dict[str, Any]:
        """What the client sent beyond that: its own words, which prove nothing."""
        return {key: response for key, response in self.responses.items() if key not in self._answers}

    @property
    def state(self) -> Mapping[str, Any] | None:
        """What a function of the low level kept in the last round."""
        state: Mapping[str, Any] | None = self.record.get("state")
        return state

    def ask(self, key: str, request: InputRequest, read: Callable[[Any], Answered], *, keep: bool = True) -> Answered:
        """Return the answer to one question, or end the round with it.

        Args:
            key: names the question, on the wire and across rounds.
            request: what the client would be asked.
            read: turns the client's response into the answer; raises InvalidAnswer if it does not fit.
            keep: whether the answer holds for all rounds to come, or is used up by reading it.

        Raises:
            InputRequired: the answer is not known yet.
            DeveloperError: this round already asked something else under this key.

        """
        print_ = fingerprint(request)
        if self._seen.setdefault(key, print_) != print_:
            message = f"two different questions under the key {key!r}: give each question a key of its own"
            raise DeveloperError(message)
        known = self._answers.get(key) if keep else self._answers.pop(key, None)
        if known and known[0] == print_:
            try:
                return read(known[1])
            except InvalidAnswer as invalid:
                request = asked_again(request, str(invalid))
        self._answers.pop(key, None)
        self.requests[key] = request
        raise InputRequired

    def require(self, result: InputRequiredResult) -> None:
        """End the round as a function of the low level wants it.

        Raises:
            InputRequired: always.
            DeveloperError: "servers MUST include at least one of inputRequests or requestState".

        """
        if not result.input_requests and result.request_state is None:
            message = "an InputRequiredResult needs input_requests or a request_state"
            raise DeveloperError(message)
        for key, asked in result.input_requests.items():
            self.requests[key] = asked.wire(camel_case=self.camel_case)
            self._seen[key] = fingerprint(self.requests[key])
            self._answers.pop(key, None)  # asked anew, so answered anew
        self._state = None if result.request_state is None else result.request_state.model_dump(mode="json")
        raise InputRequired

    def leave(self) -> dict[str, Any]:
        """Say what the next round must know: JSON, to be sealed by whoever carries it."""
        answers = {"answers": {key: list(answer) for key, answer in self._answers.items()}} if self._answers else {}
        return {**answers, **({} if self._state is None else {"state": dict(self._state)})}

    def leave_asked(self) -> dict[str, str]:
        """Say which questions are open now: key to fingerprint."""
        return {key: self._seen[key] for key in self.requests}
