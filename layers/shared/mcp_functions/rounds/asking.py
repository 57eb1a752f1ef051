"""How a question of an author reaches the client.

    1. elicit("seat", "Which seat?", Seat)          the author's function asks
    2. Question("Which seat?", Seat, key="seat")    an `InputRequest`, with the message and the type of the answer
    3. WireQuestion("seat", {"method": …}, read)    the JSON for the client, and a function that reads its response
    4. round_.ask(wire_question)                    returns the answer if the client has sent it, or ends the round

If an answer is missing, the exception InputRequired ends the author's function. The next round, which is the client's
next request, runs it from its first line. So it asks the same question again, and finds the answer by its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcp_functions.protocol.errors import DeveloperError

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.questions import WireQuestion
    from mcp_functions.rounds.round import Round

Answer_co = TypeVar("Answer_co", covariant=True)


class InputRequest(Generic[Answer_co]):
    """A question of an author. The answer to an `InputRequest[Seat]` is a Seat.

    It is a Question, a SampleQuestion or a RootsQuestion; the specification calls them ElicitRequest,
    CreateMessageRequest and ListRootsRequest.
    """

    def __init__(self, key: str = "") -> None:
        """Take the key in `inputRequests`, by which the next rounds find the answer; "" if the author gave none."""
        self.key = key

    def __eq__(self, other: object) -> bool:
        """Compare with another request, for unit tests."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Hash the type only: equal requests have equal hashes, and the attributes may hold a dict, which has none."""
        return hash(type(self))

    def to_wire_question(self, key: str, *, camel_case: bool) -> WireQuestion:
        """Return the request as JSON, with the function that reads its response.

        With `camel_case`, the field `first_name` of a form is `firstName` for the client. Only forms have fields.
        """
        raise NotImplementedError

    def wire(self, key: str = "answer", *, camel_case: bool = False) -> JSONObject:
        """Return the request as JSON, as the client gets it."""
        return self.to_wire_question(key, camel_case=camel_case).request


def ask(round_: Round, question: InputRequest[Answer_co]) -> Answer_co:
    """Return the answer to an author's question, or end the round with the question (`Round.ask`)."""
    answer: Answer_co = ask_together(round_, question)[0]
    return answer


def ask_together(round_: Round, *questions: InputRequest[Any]) -> list[Any]:
    """Return the answers to an author's questions, or end the round with those that have no answer (`Round.ask`)."""
    camel_case = round_.options.camel_case
    try:
        wire_questions = [question.to_wire_question(question.key, camel_case=camel_case) for question in questions]
    except DeveloperError as error:
        round_.failed(error)  # even if the author's function catches it
        raise
    return round_.ask(*wire_questions)
