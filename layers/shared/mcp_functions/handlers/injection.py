"""Makes the values of the parameters after `*` in an author's function.

    def book(
        city: str,                                                # before `*`: an argument, which the client sends
        *,
        step: Step,                                               # a capability: an object with methods for this call
        seat: Annotated[Seat, Ask("Which seat in {city}?")],      # a question: the value is the user's answer
        database: Annotated[Database, Shared(open_database)],     # a shared value: opened once for all calls
    ) -> str: ...

`read_injection` reads these parameters once, when the author's module loads.

A call that asks takes several requests. Each request is a round, in which the function runs from its first line. Before
each run, `Injection.inject` does this:

    1. It copies the arguments.
    2. It asks all questions. If an answer is missing, the round ends, and the questions are the result of the request.
       The client sends the answers with its next request, which begins at step 1.
    3. It creates the capabilities, and gets the shared values.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from mcp_functions.handlers.return_types import make_union, union_members
from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.capabilities import Ask, Capability, Shared
from mcp_functions.schemas.parameters import MISSING, to_camel_case
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.elicitation import Question
    from mcp_functions.rounds.questions import WireQuestion
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.parameters import Parameter


class DeclaredCapability(NamedTuple):
    """A capability in a signature, as in `state: RequestState[Draft]`."""

    class_: type[Capability]  # RequestState
    types: tuple[Any, ...]  # the types in brackets: `(Draft,)`


class DeclaredQuestion(NamedTuple):
    """A question in a signature, as in `seat: Annotated[Seat | None, Ask("Which seat?")]`."""

    question: Question[Any]
    is_optional: bool  # as with `Seat | None`: without an answer, the value is None

    def write(self, arguments: Mapping[str, Any], *, camel_case: bool) -> WireQuestion:
        """Write the question for the client, with the values of arguments in place of `{name}` in its message."""
        question = self.question.formatted(arguments)
        written = question.to_wire_question(question.key, camel_case=camel_case)
        if not self.is_optional:
            return written

        def read_or_none(response: JSONObject) -> object:
            try:
                return written.read(response)
            except NotAnswered:
                return None

        return written._replace(read=read_or_none)


class Injection(NamedTuple):
    """The parameters after `*` of a function. Each mapping has the names of parameters as keys."""

    questions: Mapping[str, DeclaredQuestion]
    capabilities: Mapping[str, DeclaredCapability]
    shared_values: Mapping[str, Callable[[], object]]  # the first call opens the value
    defaults: Mapping[str, Any]  # of the parameters before `*`, for the messages of questions

    @property
    def asks(self) -> bool:
        """Whether the function may ask its user."""
        return bool(self.questions) or any(each.class_.asks for each in self.capabilities.values())

    @property
    def needs_state(self) -> bool:
        """Whether a call may take more than one request, which a state then connects."""
        return bool(self.questions) or any(each.class_.needs_state for each in self.capabilities.values())

    @property
    def logs(self) -> bool:
        """Whether the function can send log messages to the client."""
        return any(each.class_.logs for each in self.capabilities.values())

    def inject(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Return the keyword arguments for one run of the function; raise InputRequired if an answer is missing."""
        # The function gets copies, which it may change: the state is bound to the arguments as the client sent them.
        values: dict[str, Any] = copy_json(arguments)
        values |= self.ask_questions(arguments, round_)
        for name, capability in self.capabilities.items():
            values[name] = capability.class_(round_, *capability.types)
        for name, get_value in self.shared_values.items():
            values[name] = get_value()
        return values

    def ask_questions(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Ask all questions at once, and return the answers by parameter; InputRequired if one is missing."""
        camel_case = round_.options.camel_case
        known = {**self.defaults, **arguments}
        answers = round_.ask(*[question.write(known, camel_case=camel_case) for question in self.questions.values()])
        return dict(zip(self.questions, answers, strict=True))


CAPABILITY_NAMES = "Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress, Log, Caller"


def read_injection(
    client_parameters: Sequence[Parameter], after_star: list[str], annotations: Mapping[str, Any], *, camel_case: bool
) -> Injection:
    """Read the parameters after `*`; `client_parameters` are those before it.

    Raises:
        TypeError: the client sends a parameter after `*`, the specification has no form for the type of a question, its
            message names something else than an argument, or the function asks in two ways.
    """
    questions: dict[str, DeclaredQuestion] = {}
    capabilities: dict[str, DeclaredCapability] = {}
    shared_values: dict[str, Callable[[], object]] = {}
    for name in after_star:
        annotation = annotations.get(name)
        declaration = _find_declaration(name, annotation)
        if isinstance(declaration, Ask):
            questions[name] = _read_question(name, annotation, declaration, client_parameters, camel_case=camel_case)
        elif isinstance(declaration, Shared):
            shared_values[name] = _read_shared_value(name, declaration)
        else:
            types = get_args(annotation)
            declaration.check(name, types)
            capabilities[name] = DeclaredCapability(declaration, types)
    # Inline, a function calls `answer = elicit(…)`. On the low level, it returns an InputRequiredResult.
    asks_inline = any(each.class_.needs_state and not each.class_.low_level for each in capabilities.values())
    is_low_level = any(each.class_.low_level for each in capabilities.values())
    if asks_inline and is_low_level:
        raise TypeError(
            "InputResponses and RequestState are the low level: a function that uses them does not ask inline"
        )
    defaults = {each.name: each.default for each in client_parameters if each.default is not MISSING}
    return Injection(questions, capabilities, shared_values, defaults)


def _find_declaration(name: str, annotation: object) -> type[Capability] | Ask | Shared:
    """Find what the annotation of a parameter declares; raise a TypeError if the parameter belongs before `*`."""
    class_ = get_origin(annotation) or annotation  # of `RequestState[Draft]`: RequestState
    if isinstance(class_, type) and issubclass(class_, Capability):
        return class_
    for item in get_args(annotation):
        if isinstance(item, Ask | Shared):  # in `Annotated[…]`
            return item
    raise TypeError(
        f"{name}: after * a function takes capabilities ({CAPABILITY_NAMES}); what the client sends is before *"
    )


def _read_question(
    name: str, annotation: object, ask: Ask, client_parameters: Sequence[Parameter], *, camel_case: bool
) -> DeclaredQuestion:
    """Read a question from the annotation of its parameter: `Annotated[<form>, Ask(…), …]`."""
    from mcp_functions.rounds.elicitation import Question

    _check_braces(name, ask.message, client_parameters)
    answer_type, *metadata = get_args(annotation)
    metadata.remove(ask)
    members = union_members(answer_type)
    form: Any = make_union(tuple(member for member in members if member is not type(None)))
    if metadata:  # a `Field`, for example, describes the form
        form = Annotated[(form, *metadata)]
    key = to_camel_case(name) if camel_case else name
    question: Question[Any] = Question(ask.message, form, key)
    try:
        question.to_wire_question(key, camel_case=camel_case)
    except DeveloperError as error:
        raise TypeError(f"parameter {name!r}: {error}") from error
    return DeclaredQuestion(question, is_optional=type(None) in members)


def _check_braces(name: str, message: str, client_parameters: Sequence[Parameter]) -> None:
    """Check that each `{field}` in the message of a question is an argument; otherwise raise a TypeError."""
    arguments = {parameter.name for parameter in client_parameters}
    for _text, field, _format, _conversion in Formatter().parse(message):
        if field is not None and field not in arguments:
            raise TypeError(
                f"{name}: the message names {{{field}}}, which is none of the arguments ({{{{ writes a brace)"
            )


def _read_shared_value(name: str, shared: Shared) -> Callable[[], object]:
    """Return a function that returns the shared value, and opens it at the first call."""
    from mcp_functions.handlers.shared_values import shared_value

    if not callable(shared.enter):
        raise TypeError(f"{name}: Shared takes a function that returns a context manager: Shared(open_database)")
    return shared_value(shared.enter)
