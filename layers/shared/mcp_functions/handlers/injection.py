"""The parameters after `*` in a signature, whose values the toolkit makes.

    def book(
        city: str,                                                # before `*`: an argument, which the client sends
        *,
        step: Step,                                               # a capability: an object that acts in one request
        seat: Annotated[Seat, Ask("Which seat in {city}?")],      # a question: the value is the user's answer
        database: Annotated[Database, Shared(open_database)],     # a shared value: opened once for all calls
    ) -> str: ...

`read_injection` reads these parameters once, when the author's module loads. A call may take several requests, and each
of them runs one round. In each round `Injection.inject` makes the values:

    1. It copies the arguments.
    2. It asks all the questions. If an answer is missing, the round ends here; the next one begins again at step 1.
    3. It creates the capabilities.
    4. It gets the shared values.

A function without parameters after `*` does not load this module.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from mcp_functions.handlers.return_types import union_members
from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.capabilities import Ask, Capability, Shared
from mcp_functions.schemas.parameters import MISSING, to_camel_case
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcp_functions.rounds.asking import WireQuestion
    from mcp_functions.rounds.elicitation import Question
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.parameters import Parameter

# For error messages: the classes of capabilities, and the words for an `Ask` and a `Shared`.
CAPABILITIES = "Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress, Log, Caller"
NOUNS = {Ask: "a question to the user", Shared: "a shared value"}


class DeclaredCapability(NamedTuple):
    """A capability in a signature: `state: RequestState[int]` has this class, and the types `(int,)`."""

    capability: type[Capability]
    types: tuple[Any, ...]  # the types in the brackets


class DeclaredQuestion(NamedTuple):
    """A question in a signature: `seat: Annotated[Seat | None, Ask("Which seat?")]` is an optional one."""

    question: Question[Any]
    is_optional: bool  # whether the value is None if the user declines

    def to_wire_question(self, arguments: Mapping[str, Any], *, camel_case: bool) -> WireQuestion:
        """Write the message for the client, with arguments in place of `{name}`."""
        question = self.question.formatted(arguments)
        wire_question = question.to_wire_question(camel_case=camel_case)
        if not self.is_optional:
            return wire_question

        def read_or_none(response: dict[str, Any]) -> object:
            try:
                return wire_question.read(response)
            except NotAnswered:
                return None

        return wire_question._replace(read=read_or_none)


class Injection(NamedTuple):
    """The parameters after `*`, by name, and what their questions need from the arguments."""

    capabilities: Mapping[str, DeclaredCapability]
    questions: Mapping[str, DeclaredQuestion]
    shared_values: Mapping[str, Callable[[], object]]
    defaults: Mapping[str, Any]  # the values of the arguments that a client may leave out
    camel_case: bool  # whether the names in forms are camelCase on the wire

    @property
    def asks(self) -> bool:
        """Whether the function may ask its user."""
        return bool(self.questions) or any(each.capability.asks for each in self.capabilities.values())

    @property
    def needs_state(self) -> bool:
        """Whether a round may end before the function does. The next round then needs a state to continue from."""
        return bool(self.questions) or any(each.capability.needs_state for each in self.capabilities.values())

    @property
    def logs(self) -> bool:
        """Whether the function can send log messages to the client."""
        return any(each.capability.logs for each in self.capabilities.values())

    def inject(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Return copies of the arguments, and the values of the parameters after `*` for one round."""
        # The function may change its copies: the next round compares the arguments with those that the client sent.
        values: dict[str, Any] = copy_json(arguments)
        values |= self.ask_questions(arguments, round_)
        for name, declared in self.capabilities.items():
            values[name] = declared.capability.for_round(round_, declared.types)
        for name, get_value in self.shared_values.items():
            values[name] = get_value()
        return values

    def ask_questions(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Ask all the questions at once, and return the answers by parameter.

        Raises:
            InputRequired: an answer is missing, and the round has ended with the questions.
        """
        if not self.questions:
            return {}
        known = {**self.defaults, **arguments}
        questions = [each.to_wire_question(known, camel_case=self.camel_case) for each in self.questions.values()]
        return dict(zip(self.questions, round_.ask(*questions), strict=True))


def read_injection(
    client_parameters: Sequence[Parameter], after: Sequence[str], hints: Mapping[str, Any], *, camel_case: bool
) -> Injection | None:
    """Read the parameters after `*`; return None if the function has none.

    Args:
        client_parameters: the parameters before `*`.
        after: the names of the parameters after it.
        hints: the annotation of each parameter.
        camel_case: whether names are camelCase on the wire.

    Raises:
        TypeError: a parameter is on the wrong side of `*`, a form is not possible, or the function asks in two ways.
    """
    for parameter in client_parameters:
        _check_argument(parameter.name, hints.get(parameter.name))
    if not after:
        return None
    capabilities = {}
    questions = {}
    shared_values = {}
    for name in after:
        hint = hints.get(name)
        declaration = _find_declaration(hint)
        if declaration is None:
            rule = f"after * a function takes capabilities ({CAPABILITIES}); what the client sends is before *"
            message = f"{name}: {rule}"
            raise TypeError(message)
        if isinstance(declaration, Shared):
            shared_values[name] = _read_shared(name, declaration)
        elif isinstance(declaration, Ask):
            _check_message(name, declaration.message, client_parameters)
            questions[name] = _read_question(name, hint, declaration, camel_case=camel_case)
        else:
            types = get_args(hint)
            declaration.check(name, types)
            capabilities[name] = DeclaredCapability(declaration, types)
    _check_one_level(each.capability for each in capabilities.values())
    defaults = {each.name: each.default for each in client_parameters if each.default is not MISSING}
    return Injection(capabilities, questions, shared_values, defaults=defaults, camel_case=camel_case)


def _find_declaration(hint: object) -> type[Capability] | Ask | Shared | None:
    """Find what an annotation declares: a capability by its class, and the others by an object in `Annotated`."""
    annotation = get_origin(hint) or hint  # a capability may have types in brackets
    if isinstance(annotation, type) and issubclass(annotation, Capability):
        return annotation
    return next((item for item in get_args(hint) if isinstance(item, Ask | Shared)), None)


def _check_argument(name: str, hint: object) -> None:
    """Refuse a parameter before `*` that belongs after it, with a TypeError."""
    declaration = _find_declaration(hint)
    if declaration is not None:
        noun = NOUNS.get(type(declaration), "a capability")
        message = f"{name}: {noun} is a parameter after *, as in (…, *, {name})"
        raise TypeError(message)


def _check_one_level(capabilities: Iterable[type[Capability]]) -> None:
    """Refuse capabilities that ask in two ways: inline, and by the results of the low level."""
    if len({capability.low_level for capability in capabilities if capability.needs_state}) > 1:
        message = "InputResponses and RequestState are the low level: a function that uses them does not ask inline"
        raise TypeError(message)


def _check_message(name: str, message: str, client_parameters: Sequence[Parameter]) -> None:
    """Refuse a message with a `{name}` that is not the name of an argument."""
    arguments = {parameter.name for parameter in client_parameters}
    for _text, field, _format, _conversion in Formatter().parse(message):
        if field is not None and field not in arguments:
            error = f"{name}: the message names {{{field}}}, which is none of the arguments ({{{{ writes a brace)"
            raise TypeError(error)


def _read_shared(name: str, shared: Shared) -> Callable[[], object]:
    if not callable(shared.enter):
        message = f"{name}: Shared takes a function that returns a context manager: Shared(open_database)"
        raise TypeError(message)
    from mcp_functions.handlers.shared_values import shared_value  # noqa: PLC0415 - few functions share values

    return shared_value(shared.enter)


def _read_question(name: str, hint: object, ask: Ask, *, camel_case: bool) -> DeclaredQuestion:
    """Read a question from the annotation of its parameter: `Annotated[<form>, Ask(…), …]`."""
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
