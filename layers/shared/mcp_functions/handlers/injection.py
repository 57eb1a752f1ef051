"""The values of the parameters after `*`, which the toolkit makes for each round of a call.

    def book(city: str, *, step: Step, seat: Annotated[Seat, Ask("Which seat in {city}?")]) -> str: ...

The client sends the argument `city`. The capability `step` is an object of this round. The answer `seat` comes from the
user, before the function runs. `injected_parameters` reads these declarations once, from the signature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import NotAnswered
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.shared_values import SharedValue
    from mcp_functions.rounds.capabilities import Capability
    from mcp_functions.rounds.elicitation import Question
    from mcp_functions.rounds.questions import WireQuestion
    from mcp_functions.rounds.round import Round


class DeclaredCapability(NamedTuple):
    """A capability in a signature: its parameter, its class, and the types in the brackets of the annotation."""

    parameter: str
    capability: type[Capability]
    types: tuple[Any, ...]


class DeclaredQuestion(NamedTuple):
    """A question in a signature: the parameter that gets the answer, and whether the answer may be None."""

    parameter: str
    question: Question[Any]
    is_optional: bool

    def to_wire(self, arguments: Mapping[str, Any], *, camel_case: bool) -> WireQuestion:
        """Return the question with the arguments in its message."""
        wire = self.question.formatted(arguments).to_wire(camel_case=camel_case)
        return wire._replace(read=_or_none(wire.read)) if self.is_optional else wire


class DeclaredValue(NamedTuple):
    """A value in a signature that the calls of a process share."""

    parameter: str
    value: SharedValue


class Injection(NamedTuple):
    """The parameters after `*`, and what their questions need from those before it."""

    capabilities: tuple[DeclaredCapability, ...]
    questions: tuple[DeclaredQuestion, ...]
    defaults: Mapping[str, Any]  # of the arguments that a client may leave out, by parameter
    camel_case: bool  # whether forms use camelCase on the wire
    shared: tuple[DeclaredValue, ...] = ()

    @property
    def needs_state(self) -> bool:
        """Whether a round may end before the function does, so that a state is needed to continue."""
        return bool(self.questions) or any(declared.capability.needs_state for declared in self.capabilities)

    @property
    def asks(self) -> bool:
        """Whether the function may ask its user."""
        return bool(self.questions) or any(declared.capability.asks for declared in self.capabilities)

    @property
    def logs(self) -> bool:
        """Whether the function can send log messages."""
        return any(declared.capability.logs for declared in self.capabilities)

    def make_capabilities(self, round_: Round) -> dict[str, object]:
        """Make the capabilities for one round, and get what its process shares; return both by parameter."""
        made = {parameter: capability.for_round(round_, types) for parameter, capability, types in self.capabilities}
        return {**made, **{declared.parameter: declared.value.get() for declared in self.shared}}

    def ask_questions(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Ask the questions, all together; return the answers by parameter. The round ends if one is missing."""
        if not self.questions:
            return {}
        known = {**self.defaults, **arguments}
        wire_questions = [declared.to_wire(known, camel_case=self.camel_case) for declared in self.questions]
        answers = round_.ask(*wire_questions)
        return {declared.parameter: answer for declared, answer in zip(self.questions, answers, strict=True)}


def _or_none(read_answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a function that reads an answer, so that it returns None if the user declined."""

    def read_optional(response: object) -> object:
        try:
            return read_answer(response)
        except NotAnswered:
            return None

    return read_optional
