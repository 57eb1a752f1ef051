"""The parameters after `*`: the toolkit reads them once from the signature, and makes their values for each round.

    def book(
        city: str,                                                     # before `*`: an argument, which the client sends
        *,
        step: Step,                                                    # a capability: an object made for this round
        seat: Annotated[Seat, Ask("Which seat in {city}?")],           # a question: its value is the user's answer
        database: Annotated[Database, Shared(open_database)],          # a shared value: the process has it once
    ) -> str: ...

A round is one request of a call. If an answer is missing, the round ends with the question, and the next request of the
client begins another round. A function without such parameters does not load this module.
"""

from __future__ import annotations

from functools import partial
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from mcp_functions.handlers.return_types import union_members
from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.capabilities import Ask, Capability, Shared
from mcp_functions.schemas.parameters import MISSING, to_camel_case
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers.shared_values import SharedValue
    from mcp_functions.rounds.elicitation import Question
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.parameters import Parameter

# The capabilities, for error messages.
CAPABILITIES = "Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress, Log, Caller"
# The words for a mark (`_find_mark`) before `*`, for error messages. Any other mark is a capability.
MISPLACED = {Ask: "a question to the user", Shared: "what calls share"}


class DeclaredCapability(NamedTuple):
    """A capability as a signature declares it: `state: RequestState[int]` has the class and the types `(int,)`."""

    kind: type[Capability]
    types: tuple[Any, ...]  # the types in the brackets


class DeclaredQuestion(NamedTuple):
    """A question as a signature declares it: `seat: Annotated[Seat | None, Ask("Which seat?")]` is optional."""

    question: Question[Any]
    is_optional: bool  # whether the answer is None if the user gives none


class Injection(NamedTuple):
    """The parameters after `*`, by name, and what their questions need from those before it."""

    capabilities: Mapping[str, DeclaredCapability]
    questions: Mapping[str, DeclaredQuestion]
    shared: Mapping[str, SharedValue]
    defaults: Mapping[str, Any]  # the values of arguments that a client may leave out
    camel_case: bool  # whether forms use camelCase on the wire
    needs_state: bool  # whether a round may end before the function does, so that a state is needed to continue
    asks: bool  # whether the function may ask its user
    logs: bool  # whether the function can send log messages

    def inject(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Return the arguments and, for one round, the values of the parameters after `*`."""
        # The function gets copies: the next round compares the arguments with those that the client sent.
        values: dict[str, Any] = copy_json(arguments)
        values |= self.ask_questions(arguments, round_)
        for name, capability in self.capabilities.items():
            values[name] = capability.kind.for_round(round_, capability.types)
        for name, shared_value in self.shared.items():
            values[name] = shared_value.get()
        return values

    def ask_questions(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Ask the questions, all together; return the answers by parameter. The round ends if one is missing."""
        if not self.questions:
            return {}
        known = {**self.defaults, **arguments}
        wire_questions = []
        for question, is_optional in self.questions.values():
            wire_question = question.formatted(known).to_wire_question(camel_case=self.camel_case)
            if is_optional:
                wire_question = wire_question._replace(read=partial(_read_or_none, wire_question.read))
            wire_questions.append(wire_question)
        answers = round_.ask(*wire_questions)
        return dict(zip(self.questions, answers, strict=True))


def _read_or_none(read_answer: Callable[[Any], Any], response: object) -> object:
    """Read an answer; return None if the user declined."""
    try:
        return read_answer(response)
    except NotAnswered:
        return None


def read_injection(
    client_parameters: Sequence[Parameter], after: Sequence[str], hints: Mapping[str, Any], *, camel_case: bool
) -> Injection | None:
    """Check the parameters before `*`, and read those after it; None if there are none.

    Args:
        client_parameters: the parameters before `*`.
        after: the names of the parameters after it.
        hints: the annotation of each parameter.
        camel_case: True if names are camelCase on the wire.

    Raises:
        TypeError: a parameter is on the wrong side of `*`, a form is not possible, or the function asks in two ways.
    """
    _check_before(client_parameters, hints)
    if not after:
        return None
    capabilities = {}
    questions = {}
    shared = {}
    arguments = {parameter.name for parameter in client_parameters}
    for name in after:
        hint = hints.get(name)
        mark = _find_mark(hint)
        if mark is None:
            rule = f"after * a function takes capabilities ({CAPABILITIES}); what the client sends is before *"
            message = f"{name}: {rule}"
            raise TypeError(message)
        if isinstance(mark, Shared):
            shared[name] = _read_shared(name, mark)
        elif isinstance(mark, Ask):
            _check_message(name, mark.message, arguments)
            questions[name] = _read_question(name, hint, mark, camel_case=camel_case)
        else:
            capabilities[name] = DeclaredCapability(mark, get_args(hint))
            mark.check(name, get_args(hint))
    kinds = [declared.kind for declared in capabilities.values()]
    if len({kind.low_level for kind in kinds if kind.needs_state}) > 1:
        message = "InputResponses and RequestState are the low level: a function that uses them does not ask inline"
        raise TypeError(message)
    return Injection(
        capabilities=capabilities,
        questions=questions,
        shared=shared,
        defaults={each.name: each.default for each in client_parameters if each.default is not MISSING},
        camel_case=camel_case,
        needs_state=bool(questions) or any(kind.needs_state for kind in kinds),
        asks=bool(questions) or any(kind.asks for kind in kinds),
        logs=any(kind.logs for kind in kinds),
    )


def _check_before(client_parameters: Sequence[Parameter], hints: Mapping[str, Any]) -> None:
    """Refuse a capability, a question or a shared value before `*`, with a TypeError."""
    for parameter in client_parameters:
        mark = _find_mark(hints.get(parameter.name))
        if mark is not None:
            misplaced = MISPLACED.get(type(mark), "a capability")
            message = f"{parameter.name}: {misplaced} is a parameter after *, as in (…, *, {parameter.name})"
            raise TypeError(message)


def _find_mark(hint: object) -> type[Capability] | Ask | Shared | None:
    """Return what tells that a parameter belongs after `*`: its capability, or the Ask or Shared in its annotation."""
    annotation = get_origin(hint) or hint  # a capability may have types in brackets
    if isinstance(annotation, type) and issubclass(annotation, Capability):
        return annotation
    return next((item for item in get_args(hint) if isinstance(item, Ask | Shared)), None)


def _read_shared(name: str, shared: Shared) -> SharedValue:
    if not callable(shared.enter):
        message = f"{name}: Shared takes a function that returns a context manager: Shared(open_database)"
        raise TypeError(message)
    from mcp_functions.handlers.shared_values import shared_value  # noqa: PLC0415 - few functions share values

    return shared_value(shared.enter)


def _check_message(name: str, message: str, arguments: set[str]) -> None:
    """Refuse a message with a `{name}` that is not the name of an argument."""
    for _text, field, _format, _conversion in Formatter().parse(message):
        if field is not None and field not in arguments:
            rule = f"the message names {{{field}}}, which is none of the arguments" + " ({{ writes a brace)"
            error = f"{name}: {rule}"
            raise TypeError(error)


def _read_question(name: str, hint: object, ask: Ask, *, camel_case: bool) -> DeclaredQuestion:
    from mcp_functions.rounds.elicitation import Question  # noqa: PLC0415 - few functions declare a question

    annotation, *metadata = get_args(hint)
    metadata.remove(ask)
    all_members = union_members(annotation)
    members = tuple(member for member in all_members if member is not type(None))
    # A type checker allows `Union[members]` only for members that it knows, and these are found at run time.
    form: Any = Union.__getitem__(members)
    if metadata:  # a `Field`, for example, describes the form
        form = Annotated[(form, *metadata)]
    key = to_camel_case(name) if camel_case else name
    question: Question[Any] = Question(key, ask.message, form)
    try:
        question.to_wire_question(camel_case=camel_case)
    except DeveloperError as error:  # no form of the specification has this type
        message = f"parameter {name!r}: {error}"
        raise TypeError(message) from error
    return DeclaredQuestion(question, is_optional=members != all_members)
