"""Reads the parameters after `*`: capabilities by their types, and questions (`Annotated[Form, Ask("…")]`).

A function without such parameters does not load this module.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from mcp_functions.handlers.return_types import union_members
from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.rounds.capabilities import Ask, Capability
from mcp_functions.schemas.parameters import to_camel_case
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.rounds.elicitation import Question
    from mcp_functions.rounds.questions import WireQuestion
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.parameters import Parameter

CAPABILITIES = "Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress, Log, Caller"


class DeclaredCapability(NamedTuple):
    """A capability in a signature: its parameter, its class, and the types in the brackets of the annotation."""

    parameter: str
    capability: type[Capability]
    types: tuple[Any, ...]


class DeclaredQuestion(NamedTuple):
    """A question in a signature: the parameter that gets the answer, and whether the answer may be None."""

    parameter: str
    question: Question[Any]
    optional: bool

    def to_wire(self, arguments: Mapping[str, Any], *, camel_case: bool) -> WireQuestion:
        """Return the question with the arguments in its message."""
        wire = self.question.formatted(arguments).to_wire(camel_case=camel_case)
        return wire._replace(read=_or_none(wire.read)) if self.optional else wire


class Injection(NamedTuple):
    """The parameters after `*`. Their values are made for each round."""

    capabilities: tuple[DeclaredCapability, ...]
    questions: tuple[DeclaredQuestion, ...]  # asked before the function runs

    @property
    def needs_state(self) -> bool:
        """Whether the function can end a round."""
        return bool(self.questions) or any(declared.capability.needs_state for declared in self.capabilities)

    @property
    def logs(self) -> bool:
        """Whether the function can send log messages."""
        return any(declared.capability.logs for declared in self.capabilities)

    def make(self, round_: Round) -> dict[str, Capability]:
        """Make the function's capabilities for one round."""
        return {parameter: capability.of(round_, types) for parameter, capability, types in self.capabilities}

    def ask(
        self, sent: Sequence[Parameter], arguments: Mapping[str, Any], round_: Round, *, camel_case: bool
    ) -> dict[str, Any]:
        """Ask the questions of the signature, all together; return the answers by parameter."""
        if not self.questions:
            return {}
        known = {**{parameter.name: parameter.default for parameter in sent}, **arguments}
        answers = round_.ask(*(question.to_wire(known, camel_case=camel_case) for question in self.questions))
        return {question.parameter: answer for question, answer in zip(self.questions, answers, strict=True)}


def read(parameters: Sequence[Parameter], hints: Mapping[str, Any], *, camel_case: bool) -> Injection:
    """Read the capabilities and questions of a signature.

    Raises:
        TypeError: a parameter is on the wrong side of `*`, a function asks inline and at the low level, or a form is
            not possible.

    """
    capabilities, questions = list[DeclaredCapability](), list[DeclaredQuestion]()
    for parameter in parameters:
        hint = hints.get(parameter.name)
        ask = _ask_of(hint)
        if not parameter.keyword_only:
            _check_sent(parameter, hint)
        elif ask:
            questions.append(_read_question(parameter, hint, ask, parameters, camel_case=camel_case))
        else:
            capabilities.append(_read_capability(parameter, hint))
    _check_capabilities(capabilities)
    return Injection(tuple(capabilities), tuple(questions))


def _capability_of(hint: object) -> type[Capability] | None:
    """Return the capability that an annotation names, with or without brackets."""
    annotation = get_origin(hint) or hint
    return annotation if isinstance(annotation, type) and issubclass(annotation, Capability) else None


def _ask_of(hint: object) -> Ask | None:
    return next((item for item in get_args(hint) if isinstance(item, Ask)), None)


def _check_sent(parameter: Parameter, hint: object) -> None:
    if _capability_of(hint):
        message = f"{parameter.name}: a capability is a parameter after *, as in (…, *, {parameter.name})"
        raise TypeError(message)
    if _ask_of(hint):
        message = f"{parameter.name}: a question to the user is a parameter after *"
        raise TypeError(message)


def _read_capability(parameter: Parameter, hint: object) -> DeclaredCapability:
    capability = _capability_of(hint)
    if capability is None:
        rule = f"after * a function takes capabilities ({CAPABILITIES}); what the client sends is before *"
        message = f"{parameter.name}: {rule}"
        raise TypeError(message)
    return DeclaredCapability(parameter.name, capability, get_args(hint))


def _check_capabilities(declared: Sequence[DeclaredCapability]) -> None:
    ways_to_ask = {each.capability.low_level for each in declared if each.capability.needs_state}
    if len(ways_to_ask) > 1:
        message = "InputResponses and RequestState are the low level: a function that uses them does not ask inline"
        raise TypeError(message)
    for parameter, capability, types in declared:
        capability.check(parameter, types)


def _read_question(
    parameter: Parameter, hint: object, ask: Ask, parameters: Sequence[Parameter], *, camel_case: bool
) -> DeclaredQuestion:
    from mcp_functions.rounds.elicitation import Question  # noqa: PLC0415 - few functions declare a question

    _check_message(parameter.name, ask.message, parameters)
    annotation, *metadata = get_args(hint)
    metadata.remove(ask)
    members = union_members(annotation)
    members_of_form = tuple(member for member in members if member is not type(None))
    form: Any = Union.__getitem__(members_of_form)  # the members are known at run time only
    if metadata:
        form = Annotated[(form, *metadata)]
    key = to_camel_case(parameter.name) if camel_case else parameter.name
    question: Question[Any] = Question(key, ask.message, form)
    try:
        question.to_wire(camel_case=camel_case)
    except DeveloperError as error:  # no client could show the form
        message = f"parameter {parameter.name!r}: {error}"
        raise TypeError(message) from error
    return DeclaredQuestion(parameter.name, question, optional=members_of_form != members)


def _check_message(name: str, message: str, parameters: Sequence[Parameter]) -> None:
    sent = {parameter.name for parameter in parameters if not parameter.keyword_only}
    fields = {field for _text, field, _spec, _conversion in Formatter().parse(message) if field is not None}
    if unknown := sorted(fields - sent):
        text = f"{name}: the message names {{{unknown[0]}}}, which is none of the arguments ({{{{ writes a brace)"
        raise TypeError(text)


def _or_none(read_answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_optional(response: object) -> object:
        try:
            return read_answer(response)
        except NotAnswered:
            return None

    return read_optional
