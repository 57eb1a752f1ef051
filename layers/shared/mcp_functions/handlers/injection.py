"""Reads the parameters after `*`: capabilities by their types, and questions (`Annotated[Form, Ask("…")]`).

A function without such parameters does not load this module.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, Union, get_args, get_origin

from mcp_functions.handlers.return_types import union_members
from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.rounds.capabilities import Ask, Capability
from mcp_functions.schemas.parameters import to_camel_case

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.rounds.elicitation import Question
    from mcp_functions.rounds.questions import WireQuestion
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.parameters import Parameter

    # By parameter: the capability, and the types in the brackets of its annotation.
    Capabilities: TypeAlias = Mapping[str, tuple[type[Capability], tuple[Any, ...]]]

CAPABILITIES = "Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress, Log, Caller"


class DeclaredQuestion(NamedTuple):
    """A question in a signature: the parameter that gets the answer, and whether the answer may be None."""

    parameter: str
    question: Question[Any]
    optional: bool

    def to_wire(self, arguments: Mapping[str, Any], *, camel_case: bool) -> WireQuestion:
        """Return the question with the arguments in its message."""
        message = self.question.message.format(**arguments)
        wire = type(self.question)(self.question.key, message, self.question.form).to_wire(camel_case=camel_case)
        return wire._replace(read=_or_none(wire.read)) if self.optional else wire


class Injection(NamedTuple):
    """The values of the parameters after `*`, made for each round."""

    capabilities: Capabilities
    questions: tuple[DeclaredQuestion, ...]  # asked before the function runs

    @property
    def needs_state(self) -> bool:
        """Whether the function can end a round with a question."""
        return bool(self.questions) or any(capability.needs_state for capability, _types in self.capabilities.values())

    @property
    def logs(self) -> bool:
        """Whether the function can send log messages."""
        return any(capability.logs for capability, _types in self.capabilities.values())

    def make(self, round_: Round) -> dict[str, Capability]:
        """Make the function's capabilities for one round."""
        return {name: capability.of(round_, types) for name, (capability, types) in self.capabilities.items()}

    def ask(
        self, sent: Sequence[Parameter], arguments: Mapping[str, Any], round_: Round, *, camel_case: bool
    ) -> dict[str, Any]:
        """Ask the questions of the signature, all together; return the answers by parameter."""
        if not self.questions:
            return {}
        known = {**{parameter.name: parameter.default for parameter in sent}, **arguments}
        answers = round_.ask(*(question.to_wire(known, camel_case=camel_case) for question in self.questions))
        return dict(zip((question.parameter for question in self.questions), answers, strict=True))


def read(parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any], *, camel_case: bool) -> Injection:
    """Read the capabilities and questions of a signature.

    Raises:
        TypeError: a parameter is on the wrong side of `*`, both levels of asking are mixed, or a form is not possible.

    """
    capabilities: dict[str, tuple[type[Capability], tuple[Any, ...]]] = {}
    for parameter in parameters:
        hint = hints.get(parameter.name)
        capability: Any = get_origin(hint) or hint
        if parameter.kind is not parameter.KEYWORD_ONLY:
            _check_sent(parameter, hint, capability)
        elif _is_capability(capability):
            capabilities[parameter.name] = (capability, get_args(hint))
        elif not _ask_of(hint):
            rule = f"after * a function takes capabilities ({CAPABILITIES}); what the client sends is before *"
            message = f"{parameter}: {rule}"
            raise TypeError(message)
    _check_capabilities(capabilities)
    questions = tuple(
        _question(parameter, hints[parameter.name], ask, parameters, camel_case=camel_case)
        for parameter in parameters
        if (ask := _ask_of(hints.get(parameter.name)))
    )
    return Injection(capabilities, questions)


def _is_capability(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Capability)


def _ask_of(hint: object) -> Ask | None:
    return next((item for item in get_args(hint) if isinstance(item, Ask)), None)


def _check_sent(parameter: inspect.Parameter, hint: object, capability: object) -> None:
    if _is_capability(capability):
        message = f"{parameter}: a capability is a parameter after *, as in (…, *, {parameter})"
        raise TypeError(message)
    if _ask_of(hint):
        message = f"{parameter.name}: a question to the user is a parameter after *"
        raise TypeError(message)


def _check_capabilities(capabilities: Capabilities) -> None:
    if len({capability.low_level for capability, _types in capabilities.values() if capability.needs_state}) > 1:
        message = "InputResponses and RequestState are the low level: a function that uses them does not ask inline"
        raise TypeError(message)
    for name, (capability, types) in capabilities.items():
        capability.check(name, types)


def _question(
    parameter: inspect.Parameter, hint: object, ask: Ask, parameters: Sequence[inspect.Parameter], *, camel_case: bool
) -> DeclaredQuestion:
    from mcp_functions.rounds.elicitation import Question  # noqa: PLC0415 - imported already, with Ask

    _check_message(parameter.name, ask.message, parameters)
    annotation, *metadata = get_args(hint)
    metadata.remove(ask)
    members = tuple(member for member in union_members(annotation) if member is not type(None))
    form: Any = Union.__getitem__(members)  # the members are known at run time only
    if metadata:
        form = Annotated[(form, *metadata)]
    key = to_camel_case(parameter.name) if camel_case else parameter.name
    question: Question[Any] = Question(key, ask.message, form)
    try:
        question.to_wire(camel_case=camel_case)
    except DeveloperError as error:  # no client could show the form
        message = f"parameter {parameter.name!r}: {error}"
        raise TypeError(message) from error
    return DeclaredQuestion(parameter.name, question, optional=members != union_members(annotation))


def _check_message(name: str, message: str, parameters: Sequence[inspect.Parameter]) -> None:
    sent = {parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY}
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
