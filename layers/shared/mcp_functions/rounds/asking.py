"""The base of everything that asks a client, for the user (`elicitation`) or for itself (`client_questions`).

    elicit("seat", "Which seat?", Seat)      a call of an `AskingCapability`
      -> Question("seat", …)                 an `AnyQuestion`: a key, and an `InputRequest`
      -> WireQuestion("seat", {…}, read)     the message that the client gets, and the function that reads its response
      -> Round.ask                           returns the answer, or ends the round with the message

A round is one request of a conversation. A question has the same key in all rounds, so that its answer is found again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.input_requests import is_declared
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.protocol import wire_types
    from mcp_functions.protocol.wire_types import JSONObject

Answer_co = TypeVar("Answer_co", covariant=True)


class WireQuestion(NamedTuple):
    """A question as the client gets it, and the function that reads the response.

    `read` returns the answer. It raises InvalidAnswer if the response does not fit the question, and any other
    exception if the handler should get that exception in place of an answer.
    """

    key: str  # the question's key in `inputRequests`
    request: wire_types.InputRequest
    read: Callable[[JSONObject], object]
    # True if an answer counts for one call in a round, and a second call asks the user again: see `elicit.url`.
    read_once: bool = False


class InputRequest:
    """One of the three requests that a server may make: ElicitRequest, CreateMessageRequest or ListRootsRequest."""

    def __eq__(self, other: object) -> bool:
        """Compare with another request, for unit tests."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Hash the type only: equal requests have equal hashes, and the attributes may hold a dict, which has none."""
        return hash(type(self))

    def to_wire_question(self, key: str, *, camel_case: bool) -> WireQuestion:
        """Return the message under its key in `inputRequests`, with the function that reads its response."""
        raise NotImplementedError

    def wire(self, key: str = "answer", *, camel_case: bool = False) -> wire_types.InputRequest:
        """Return the message of the specification."""
        return self.to_wire_question(key, camel_case=camel_case).request


class AnyQuestion(Generic[Answer_co]):
    """A question that `elicit.together` can ask; the type in brackets is the type of its answer."""

    def __init__(self, key: str, request: InputRequest) -> None:
        """Take the key in `inputRequests`, and the request."""
        self.key = key
        self.request = request

    def to_wire_question(self, *, camel_case: bool) -> WireQuestion:
        """Return the question for the client."""
        return self.request.to_wire_question(self.key, camel_case=camel_case)


class AskingCapability(Capability):
    """The base of the capabilities that ask the client."""

    needs_state = True

    def _ask(self, *questions: AnyQuestion[Any]) -> list[Any]:
        """Return the answers, or end the round with the questions."""
        camel_case = self._round.request.camel_case
        try:
            wire_questions = [question.to_wire_question(camel_case=camel_case) for question in questions]
        except DeveloperError as error:
            self._round.stop(error)
        return self._round.ask(*wire_questions)

    def _is_declared(self, capability: str, member: str = "") -> bool:
        return is_declared(self._round.request.capabilities, capability, member)
