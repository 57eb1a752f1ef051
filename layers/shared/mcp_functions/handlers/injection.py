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

import atexit
from functools import cache, partial
from string import Formatter
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from mcp_functions.handlers.return_types import union_members
from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.capabilities import Ask, Capability, Shared
from mcp_functions.schemas.parameters import MISSING, to_camel_case
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from mcp_functions.rounds.elicitation import Question
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.parameters import Parameter

T = TypeVar("T")
# for error messages
CAPABILITIES = "Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress, Log, Caller"
ESCAPED_BRACE = "{{"  # how an author writes a brace in the message of a question


class SharedValue:
    """A value that the calls of a process share: a parameter `Annotated[Database, Shared(open_database)]`.

    `open_database` returns a context manager. The first call that needs the value enters it:

        a plain context manager    is entered at once, and its value is kept
        an async one               is entered by `event_loop.Lifespan` in the event loop, which keeps its value
    """

    def __init__(self, make_manager: Callable[[], Any]) -> None:
        """Take the function that returns the context manager; it is not called yet."""
        self._make_manager = make_manager
        self._lock = Lock()  # the local harness runs several calls at once
        self._get_value: Callable[[], object] | None = None  # set by the first call, for all later calls

    def get(self) -> object:
        """Return the value. If the author's function raises, the next call tries again.

        Raises:
            DeveloperError: the function returned no context manager.
        """
        with self._lock:
            if self._get_value is None:
                self._get_value = self._open()
        return self._get_value()

    def _open(self) -> Callable[[], object]:
        """Make the context manager; return the function by which calls get the value."""
        manager = self._make_manager()
        if hasattr(type(manager), "__aenter__"):
            return self._open_async(manager)
        if hasattr(type(manager), "__enter__"):
            return self._open_plain(manager)
        rule = "Shared(…) takes a function that returns a context manager; write it with contextlib.contextmanager"
        raise DeveloperError(rule)

    def _open_plain(self, manager: AbstractContextManager[Any]) -> Callable[[], object]:
        """Enter the context manager now."""
        value = manager.__enter__()
        # It runs when a local process ends. Lambda ends a process without calling it.
        atexit.register(manager.__exit__, None, None, None)

        def get_value() -> object:
            return value

        return get_value

    def _open_async(self, first: AbstractAsyncContextManager[Any]) -> Callable[[], object]:
        """Leave the entering to the event loop; `first` is the manager that was made to see its type."""
        from mcp_functions.handlers import event_loop  # noqa: PLC0415 - it imports asyncio

        unused = [first]

        def next_manager() -> AbstractAsyncContextManager[Any]:
            """Return the first manager, and then new ones: a manager whose entering failed cannot be entered again."""
            if not unused:
                unused.append(self._make_manager())
            return unused.pop()

        lifespan = event_loop.Lifespan(next_manager)

        def get_value() -> object:
            return event_loop.run(lifespan.state())

        return get_value


# Handlers that name the same function share one value.
shared_value = cache(SharedValue)


class DeclaredCapability(NamedTuple):
    """A capability as a signature declares it: `state: RequestState[int]` has the class and the types `(int,)`."""

    kind: type[Capability]
    types: tuple[Any, ...]  # the types in the brackets


class Injection(NamedTuple):
    """The parameters after `*`, by name, and what their questions need from those before it."""

    capabilities: dict[str, DeclaredCapability]
    questions: dict[str, Question[Any]]
    optional: set[str]  # the questions whose answer is None if the user gives none
    shared: dict[str, SharedValue]
    defaults: Mapping[str, Any]  # the values of arguments that a client may leave out
    camel_case: bool  # whether forms use camelCase on the wire

    @property
    def needs_state(self) -> bool:
        """Whether a round may end before the function does, so that a state is needed to continue."""
        return bool(self.questions) or any(declared.kind.needs_state for declared in self.capabilities.values())

    @property
    def asks(self) -> bool:
        """Whether the function may ask its user."""
        return bool(self.questions) or any(declared.kind.asks for declared in self.capabilities.values())

    @property
    def logs(self) -> bool:
        """Whether the function can send log messages."""
        return any(declared.kind.logs for declared in self.capabilities.values())

    def inject(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Return the arguments and, for one round, the values of the parameters after `*`."""
        answers = self.ask_questions(arguments, round_)
        made = {name: kind.for_round(round_, types) for name, (kind, types) in self.capabilities.items()}
        shared = {name: value.get() for name, value in self.shared.items()}
        # The function gets copies: the next round compares the arguments with those that the client sent.
        return {**copy_json(arguments), **answers, **made, **shared}

    def ask_questions(self, arguments: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Ask the questions, all together; return the answers by parameter. The round ends if one is missing."""
        if not self.questions:
            return {}
        known = {**self.defaults, **arguments}
        wire_questions = []
        for name, question in self.questions.items():
            wire_question = question.formatted(known).to_wire_question(camel_case=self.camel_case)
            if name in self.optional:
                wire_question = wire_question._replace(read=partial(_read_or_none, wire_question.read))
            wire_questions.append(wire_question)
        return dict(zip(self.questions, round_.ask(*wire_questions), strict=True))


def _read_or_none(read_answer: Callable[[Any], Any], response: object) -> object:
    """Read an answer; return None if the user declined."""
    try:
        return read_answer(response)
    except NotAnswered:
        return None


def read_injection(parameters: Sequence[Parameter], hints: Mapping[str, Any], *, camel_case: bool) -> Injection:
    """Read the parameters after `*`.

    Args:
        parameters: all parameters of the function, on both sides of `*`.
        hints: the annotation of each parameter.
        camel_case: True if names are camelCase on the wire.

    Raises:
        TypeError: an argument is after `*`, a function asks inline and at the low level, or a form is not possible.
    """
    arguments = [parameter for parameter in parameters if not parameter.keyword_only]
    defaults = {argument.name: argument.default for argument in arguments if argument.default is not MISSING}
    found = Injection(
        capabilities={}, questions={}, optional=set(), shared={}, defaults=defaults, camel_case=camel_case
    )
    for name in [parameter.name for parameter in parameters if parameter.keyword_only]:
        hint = hints.get(name)
        shared_mark = _find_mark(hint, Shared)
        ask = _find_mark(hint, Ask)
        if shared_mark:
            found.shared[name] = _read_shared(name, shared_mark)
        elif ask:
            _check_message(name, ask.message, {argument.name for argument in arguments})
            found.questions[name] = _read_question(name, hint, ask, camel_case=camel_case)
            if type(None) in union_members(get_args(hint)[0]):
                found.optional.add(name)
        else:
            found.capabilities[name] = DeclaredCapability(_read_capability(name, hint), get_args(hint))
    _check_capabilities(found.capabilities)
    return found


def check_arguments(parameters: Sequence[Parameter], hints: Mapping[str, Any]) -> None:
    """Refuse a capability, a question or a shared value before `*`, with a TypeError."""
    for name in [parameter.name for parameter in parameters if not parameter.keyword_only]:
        hint = hints.get(name)
        misplaced = {
            "a capability": _find_capability(hint),
            "a question to the user": _find_mark(hint, Ask),
            "what calls share": _find_mark(hint, Shared),
        }
        for kind, found in misplaced.items():
            if found:
                message = f"{name}: {kind} is a parameter after *, as in (…, *, {name})"
                raise TypeError(message)


def _read_capability(name: str, hint: object) -> type[Capability]:
    capability = _find_capability(hint)
    if capability is None:
        rule = f"after * a function takes capabilities ({CAPABILITIES}); what the client sends is before *"
        message = f"{name}: {rule}"
        raise TypeError(message)
    return capability


def _read_shared(name: str, shared: Shared) -> SharedValue:
    if not callable(shared.enter):
        message = f"{name}: Shared takes a function that returns a context manager: Shared(open_database)"
        raise TypeError(message)
    return shared_value(shared.enter)


def _check_capabilities(capabilities: Mapping[str, DeclaredCapability]) -> None:
    """Refuse a function that asks in both ways, and types in brackets that a capability cannot use."""
    is_low_level = {declared.kind.low_level for declared in capabilities.values() if declared.kind.needs_state}
    if is_low_level == {True, False}:
        message = "InputResponses and RequestState are the low level: a function that uses them does not ask inline"
        raise TypeError(message)
    for name, (kind, types) in capabilities.items():
        kind.check(name, types)


def _check_message(name: str, message: str, arguments: set[str]) -> None:
    """Refuse a message with a `{name}` that is not the name of an argument."""
    fields = {field for _text, field, _spec, _conversion in Formatter().parse(message) if field is not None}
    unknown = sorted(fields - arguments)
    if unknown:
        field = "{" + unknown[0] + "}"
        text = f"{name}: the message names {field}, which is none of the arguments ({ESCAPED_BRACE} writes a brace)"
        raise TypeError(text)


def _read_question(name: str, hint: object, ask: Ask, *, camel_case: bool) -> Question[Any]:
    from mcp_functions.rounds.elicitation import Question  # noqa: PLC0415 - few functions declare a question

    annotation, *metadata = get_args(hint)
    metadata.remove(ask)
    members = tuple(member for member in union_members(annotation) if member is not type(None))
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
    return question


def _find_capability(hint: object) -> type[Capability] | None:
    """Return the capability that an annotation names, with or without brackets; None if it names none."""
    annotation = get_origin(hint) or hint
    return annotation if isinstance(annotation, type) and issubclass(annotation, Capability) else None


def _find_mark(hint: object, kind: type[T]) -> T | None:
    """Return the `Ask` or the `Shared` in an annotation; None if it has none."""
    return next((item for item in get_args(hint) if isinstance(item, kind)), None)
